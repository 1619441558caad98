"""A kernel's signature, read from its source with `ast`: nothing is imported, so nothing has to be installed.

In: a module's syntax and a name in it. Out: a `Signature`: parameters, which of them are constexpr, literal
defaults, and what the decorators around it say. The name may be a decorated function, an alias or import of one, a
call of a decorator (`kernel = triton.jit(function)`), or what a factory made (`kernel = make_kernel(…)`): then the
signature is that of the jit function inside the factory.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from precast.errors import SpecError, nearest_hint
from precast.spec.decorators import Config, last_word, read_configs, read_heuristics
from precast.spec.model import Constant
from precast.spec.syntax import ModuleSyntax

GLUON = "triton.experimental.gluon"


@dataclass(frozen=True)
class Parameter:
    """One parameter of the kernel's function. `default_text` is its default's source when that is not a literal."""

    name: str
    constexpr: bool
    has_default: bool = False
    default: Constant = None
    default_text: str = ""


@dataclass(frozen=True)
class Signature:
    """What a kernel's source says about it.

    `configs` are those of `@triton.autotune`: None when they are computed, empty without autotune. `heuristics` are
    the parameters that `@triton.heuristics` computes on the host.
    """

    parameters: tuple[Parameter, ...]
    gluon: bool = False
    configs: tuple[Config, ...] | None = ()
    heuristics: tuple[str, ...] = ()


# Finds the module that an import names, `from ..common import x` as ("..common", "x"); None when it is not there.
Resolve = Callable[[ModuleSyntax, str, str], "ModuleSyntax | None"]


def read_signature(module: ModuleSyntax, name: str, resolve: Resolve) -> Signature:
    """The signature of the kernel that `name` is in the module.

    `SpecError` when the name is not there (without a place) or is no kernel (at its definition).
    """
    found = _Finder(resolve).find(module, name)
    if found is None:
        known = [each.name for each in module.functions() if any(is_jit(module, use) for use in each.decorator_list)]
        raise SpecError(f"`{module.file}` has no function `{name}`", hint=nearest_hint(name, known, "kernels"))
    return found.signature(name)


@dataclass(frozen=True)
class _Found:
    """A function with every decorator that applies to it, each with the module in whose words it is written."""

    module: ModuleSyntax
    function: ast.FunctionDef
    decorators: tuple[tuple[ModuleSyntax, ast.expr], ...]

    def signature(self, name: str) -> Signature:
        jits = [(module, use) for module, use in self.decorators if is_jit(module, use)]
        if not jits:
            raise self.module.error(f"`{name}` is not a kernel: no @triton.jit decorates it", self.function)
        keywords = self.function.args.kwarg
        if keywords:
            raise self.module.error(f"kernel `{name}` takes arguments by any name: `**{keywords.arg}`", keywords)
        module, jit = jits[0]
        gluon = module.dotted(jit.func if isinstance(jit, ast.Call) else jit).startswith(GLUON)
        parameters = tuple(_read_parameters(self.module, self.function.args))
        configs: tuple[Config, ...] | None = ()
        heuristics: tuple[str, ...] = ()
        for module, use in self.decorators:
            if last_word(module, use) == "autotune":
                configs = read_configs(module, use)
            elif last_word(module, use) == "heuristics":
                heuristics += read_heuristics(use)
        return Signature(parameters, gluon, configs, heuristics)


class _Finder:
    """Follows a name through aliases, calls of decorators, factories and imports to a function."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._seen: set[tuple[str, str]] = set()

    def find(self, module: ModuleSyntax, name: str) -> _Found | None:
        """The function that `name` is in the module; None when there is none."""
        if (module.file, name) in self._seen:
            return None
        self._seen.add((module.file, name))
        binding = module.binding(name)
        if isinstance(binding, ast.FunctionDef):
            return _found(module, binding, ())
        if isinstance(binding, ast.ImportFrom):
            there, original = self._imported(module, binding, name)
            return self.find(there, original)
        if binding is None or binding.value is None:
            return None
        found = self._value(module, binding.value)
        if found is None:
            hint = "name a function that @triton.jit decorates, or what a factory in this project returns"
            raise module.error(f"cannot tell which function `{name}` is", binding, hint)
        return found

    def _imported(self, module: ModuleSyntax, binding: ast.ImportFrom, name: str) -> tuple[ModuleSyntax, str]:
        original = next(each.name for each in binding.names if (each.asname or each.name) == name)
        dotted = "." * binding.level + (binding.module or "")
        there = self._resolve(module, dotted, original)
        if there is None:
            raise module.error(f"`{name}` comes from module `{dotted}`, which is not found", binding)
        return there, original

    def _value(self, module: ModuleSyntax, value: ast.expr) -> _Found | None:
        """The function on the right side of an assignment."""
        if isinstance(value, ast.Name):
            return self.find(module, value.id)
        if not isinstance(value, ast.Call):
            return None
        if _decorates(module, value.func) and value.args:
            inner = self._value(module, value.args[0])
            return inner and _Found(inner.module, inner.function, ((module, value.func), *inner.decorators))
        return self._factory(module, value.func.id) if isinstance(value.func, ast.Name) else None

    def _factory(self, module: ModuleSyntax, name: str) -> _Found | None:
        binding = module.binding(name)
        if isinstance(binding, ast.ImportFrom):
            return self._factory(*self._imported(module, binding, name))
        return _made_by(module, binding) if isinstance(binding, ast.FunctionDef) else None


def _found(module: ModuleSyntax, function: ast.FunctionDef, outer: tuple[ast.expr, ...]) -> _Found:
    return _Found(module, function, tuple((module, use) for use in (*outer, *function.decorator_list)))


def _made_by(module: ModuleSyntax, factory: ast.FunctionDef) -> _Found | None:
    """The function that a factory returns: the jit function whose name it returns, else its only one."""
    inner = [each for each in ast.walk(factory) if isinstance(each, ast.FunctionDef) and each is not factory]
    returned = [each.value for each in ast.walk(factory) if isinstance(each, ast.Return) and each.value]
    names = {node.id for value in returned for node in ast.walk(value) if isinstance(node, ast.Name)}
    calls = tuple(value.func for value in returned if isinstance(value, ast.Call) and _decorates(module, value.func))
    kernels = [each for each in inner if calls or any(is_jit(module, use) for use in each.decorator_list)]
    chosen = [each for each in kernels if each.name in names] or kernels
    return _found(module, chosen[0], calls) if len(chosen) == 1 else None


def is_jit(module: ModuleSyntax, use: ast.expr) -> bool:
    """Whether a decorator is `@triton.jit`, `@gluon.jit`, or one of these called with options."""
    return last_word(module, use) == "jit"


def _decorates(module: ModuleSyntax, use: ast.expr) -> bool:
    """Whether calling `use` on a function decorates it: jit, or a call of jit, autotune or heuristics."""
    return is_jit(module, use) or (isinstance(use, ast.Call) and last_word(module, use) in ("autotune", "heuristics"))


def _read_parameters(module: ModuleSyntax, arguments: ast.arguments) -> Iterator[Parameter]:
    positional = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    star = [arguments.vararg] if arguments.vararg else []  # Triton makes one argument of it, a tuple
    defaults = [*missing, *arguments.defaults, *(None for _ in star), *arguments.kw_defaults]
    for argument, default in zip([*positional, *star, *arguments.kwonlyargs], defaults, strict=True):
        # Triton itself asks whether the word stands anywhere in the annotation's text.
        constexpr = argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation)
        if default is None:
            yield Parameter(argument.arg, constexpr)
        else:
            literal, value = module.literal(default)
            yield Parameter(argument.arg, constexpr, True, value, "" if literal else ast.unparse(default))
