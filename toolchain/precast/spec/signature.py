"""A kernel's signature, read from its source with `ast`: nothing is imported, so nothing has to be installed.

In: a module's syntax and a name in it. Out: a `Signature`: parameters, which of them are constexpr, literal
defaults, and what the decorators around it say. The name may be a decorated function, an alias or import of one, a
call of a decorator (`kernel = triton.jit(function)`), or what a factory made (`kernel = make_kernel(…)`): then the
signature is that of the jit function inside the factory.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from precast.errors import SpecError, nearest_hint
from precast.spec.aliases import Resolve, has_text_annotations, may_hide, spell_out
from precast.spec.children import walk
from precast.spec.decorators import Config, is_tritons, last_word, read_configs, read_heuristics
from precast.spec.imported import ImportedKernel
from precast.spec.model import Constant
from precast.spec.syntax import ModuleSyntax
from precast.spec.toml import Node

GLUON = "triton.experimental.gluon"
_MAKERS = frozenset({"globals", "locals", "vars", "setattr", "exec", "__getattr__"})  # of names that no text binds


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
    docstring: str = ""  # of the function, for people


class UnreadSignature(SpecError):
    """The text alone does not tell which function a kernel is; importing its module may."""


def read_signature(module: ModuleSyntax, name: str, resolve: Resolve) -> Signature:
    """The signature of the kernel that `name` is in the module.

    `SpecError` when the name is not there (without a place) or is no kernel (at its definition); `UnreadSignature`
    when only an import can tell.
    """
    if not name.isidentifier():
        raise UnreadSignature(f"`{name}` is no name of a function")
    found = _Finder(resolve).find(module, name)
    if found is not None:
        return found.signature(name, resolve)
    known = [each.name for each in module.functions() if any(is_jit(module, use) for use in each.decorator_list)]
    kind = UnreadSignature if _may_be_made(module, name) else SpecError
    raise kind(f"`{module.file}` has no function `{name}`", hint=nearest_hint(name, known, "kernels"))


def _may_be_made(module: ModuleSyntax, name: str) -> bool:
    """Whether a name that no statement simply binds may be there once the module is imported: bound in a loop, a case
    or by a function's `global`, or made by what the module asks for."""
    asked = (node.id if isinstance(node, ast.Name) else getattr(node, "name", "") for node in walk(module.tree))
    return module.is_bound(name) or not _MAKERS.isdisjoint(asked)


@dataclass(frozen=True)
class _Found:
    """A function with every decorator that applies to it, each with the module in whose words it is written."""

    module: ModuleSyntax
    function: ast.FunctionDef
    decorators: tuple[tuple[ModuleSyntax, ast.expr], ...]

    def signature(self, name: str, resolve: Resolve) -> Signature:
        jits = [(module, use) for module, use in self.decorators if is_jit(module, use, resolve)]
        if not jits:
            error = self.module.error(f"`{name}` is not a kernel: no @triton.jit decorates it", self.function)
            raise _unread(error) if self.decorators else error
        keywords = self.function.args.kwarg
        if keywords:
            raise self.module.error(f"kernel `{name}` takes arguments by any name: `**{keywords.arg}`", keywords)
        module, jit = jits[0]
        gluon = spell_out(module, jit.func if isinstance(jit, ast.Call) else jit, resolve).startswith(GLUON)
        parameters = tuple(_read_parameters(self.module, self.function.args, resolve))
        configs: tuple[Config, ...] | None = ()
        heuristics: tuple[str, ...] = ()
        for module, use in self.decorators:
            if last_word(module, use) == "autotune":
                configs = read_configs(module, use) if is_tritons(module, use) else None
            elif last_word(module, use) == "heuristics":
                heuristics += read_heuristics(use)
        return Signature(parameters, gluon, configs, heuristics, ast.get_docstring(self.function) or "")


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
        if binding is None:
            return self._star_imported(module, name)
        if binding.value is None:
            return None
        found = self._value(module, binding.value)
        if found is None:
            hint = "name a function that @triton.jit decorates, or what a factory in this project returns"
            raise _unread(module.error(f"cannot tell which function `{name}` is", binding, hint))
        return found

    def _star_imported(self, module: ModuleSyntax, name: str) -> _Found | None:
        """The function, when it comes with all else of another module."""
        for each in module.statements:
            if isinstance(each, ast.ImportFrom) and each.names[0].name == "*":
                there = self._resolve(module, "." * each.level + (each.module or ""), name)
                found = self.find(there, name) if there else None
                if found:
                    return found
        return None

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


def _unread(error: SpecError) -> UnreadSignature:
    return UnreadSignature(error.message, error.where, error.hint)


def is_jit(module: ModuleSyntax, use: ast.expr, resolve: Resolve | None = None) -> bool:
    """Whether a decorator is `@triton.jit`, `@gluon.jit`, one of these by another name, or called with options."""
    if last_word(module, use) == "jit" or resolve is None:
        return last_word(module, use) == "jit"
    return spell_out(module, use.func if isinstance(use, ast.Call) else use, resolve).rpartition(".")[2] == "jit"


def _decorates(module: ModuleSyntax, use: ast.expr) -> bool:
    """Whether calling `use` on a function decorates it: jit, or a call of jit, autotune or heuristics."""
    return is_jit(module, use) or (isinstance(use, ast.Call) and last_word(module, use) in ("autotune", "heuristics"))


def _is_constexpr(module: ModuleSyntax, annotation: ast.expr | None, resolve: Resolve) -> bool:
    """As Triton has it: whether the word stands anywhere in the annotation's text, or in what an alias stands for."""
    if annotation is None:
        return False
    if isinstance(annotation, ast.Attribute) and "constexpr" in annotation.attr:  # as nearly all are written
        return True
    if "constexpr" in ast.unparse(annotation):
        return True
    if isinstance(annotation, ast.Constant) or has_text_annotations(module):
        return False
    if spell_out(module, annotation, resolve).endswith("constexpr"):
        return True
    if may_hide(module, annotation, "constexpr", resolve):
        raise UnreadSignature(f"cannot tell what `{ast.unparse(annotation)}` is")
    return False


def _read_parameters(module: ModuleSyntax, arguments: ast.arguments, resolve: Resolve) -> Iterator[Parameter]:
    positional = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    star = [arguments.vararg] if arguments.vararg else []  # Triton makes one argument of it, a tuple
    defaults = [*missing, *arguments.defaults, *(None for _ in star), *arguments.kw_defaults]
    for argument, default in zip([*positional, *star, *arguments.kwonlyargs], defaults, strict=True):
        constexpr = _is_constexpr(module, argument.annotation, resolve)
        if default is None:
            yield Parameter(argument.arg, constexpr)
        else:
            literal, value = module.literal(default)
            yield Parameter(argument.arg, constexpr, True, value, "" if literal else ast.unparse(default))


def combine_signatures(node: Node, kernels: Mapping[str, ImportedKernel]) -> Signature:
    """The signature of an imported kernel, which its targets must agree on; defaults and configs stay to be asked."""
    found = {target: _imported_signature(kernel) for target, kernel in kernels.items()}
    different = [target for target in found if found[target] != next(iter(found.values()))]
    if different:
        first = next(iter(found))
        raise node.error(f"`{node.text()}` has other parameters on {different[0]} than on {first}")
    return next(iter(found.values()), Signature(()))


def _imported_signature(kernel: ImportedKernel) -> Signature:
    parameters = (
        Parameter(each.name, each.constexpr, each.has_default, None, "computed" if each.has_default else "")
        for each in kernel.parameters
    )
    return Signature(tuple(parameters), kernel.gluon, () if kernel.configs is None else None)
