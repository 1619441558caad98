"""The way from Triton's MLIR to the upstream bindings and back, as text, losing nothing.

In: a module of libtriton. Out: the same module as `mlir.ir.Module` for Python passes, and a libtriton module parsed
(and so verified) from what they left. The two are different builds of MLIR in one process and share no memory.
`import mlir.ir` must come before any native plugin is loaded: both register one LLVM option, and the second to do so
ends the process. This module is imported by whatever loads either.
"""

from __future__ import annotations

import re
import tempfile
from typing import Any

from mlir import ir as upstream
from mlir._mlir_libs import _mlir
from triton._C import libtriton

from precast.engines.triton.capture import capture_errors, first_error
from precast.errors import PassError

DIALECTS = ("arith", "cf", "func", "math", "scf", "ub")
_POISON = "?"  # no data layout: with it a module does not verify, and MLIR prints what does not verify generically
_ATTRIBUTE = f'llvm.data_layout = "{_POISON}"'
_ALIAS = re.compile(r"^([#!](?!loc\d*\b)[A-Za-z_][\w.$]*) = (.*)$", re.MULTILINE)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[#!][A-Za-z_][\w.$]*')


def print_generic(module: Any, *, locations: bool = True) -> str:
    """The generic text of a libtriton module. Spoils `module`: go on with a parsed copy."""
    builder = libtriton.ir.builder(module.context)
    module.set_attr("llvm.data_layout", builder.get_string_attr(_POISON))
    text = str(module) if locations else str(module.str_nodebug())
    text = text.replace(f"{{{_ATTRIBUTE}, ", "{").replace(f", {_ATTRIBUTE}", "").replace(f" {{{_ATTRIBUTE}}}", "")
    assert _ATTRIBUTE not in text, "the module's printed form has changed"
    return inline_aliases(text)


def make_generic(text: str) -> str:
    """TTIR text in the generic form, with locations where it has any; `PassError` when libtriton does not know it."""
    context = libtriton.ir.context()
    libtriton.ir.load_dialects(context)
    with capture_errors() as errors:
        try:
            module = parse_triton(text, context)
        except RuntimeError as error:
            raise PassError(f"the TTIR is not valid: {first_error(errors.read()) or error}") from error
    return print_generic(module, locations="loc(" in text)


def inline_aliases(text: str) -> str:
    """`text` without attribute and type aliases (locations keep theirs).

    The upstream parser keeps attributes of unregistered dialects as text, and would lose aliases inside them.
    """
    values: dict[str, str] = {}

    def substitute(match: re.Match[str]) -> str:
        return values.get(match[0], match[0])

    for name, value in _ALIAS.findall(text):
        values[name] = _TOKEN.sub(substitute, value)
    if not values:
        return text
    return _TOKEN.sub(substitute, _ALIAS.sub("", text))


def open_context(stage: str) -> Any:
    """An upstream context for IR of `stage`: unknown dialects allowed, known ones loaded as they are met.

    Those that passes make ops of are loaded at once, be they in the IR or not. In llir nothing is registered: the
    upstream NVVM and ROCDL dialects refuse Triton's newer ones.
    """
    context = _mlir.ir._Context() if stage == "llir" else upstream.Context(load_on_create_dialects=[])
    context.enable_multithreading(False)
    context.allow_unregistered_dialects = True
    for name in () if stage == "llir" else DIALECTS:
        _ = context.dialects[name]
    return context


def parse_upstream(text: str, stage: str) -> Any:
    """An `mlir.ir.Module` of generic text; `mlir.ir.MLIRError` when it is not valid."""
    return upstream.Module.parse(text, open_context(stage))


def print_upstream(module: Any) -> str:
    """Generic text with locations, which both parsers read."""
    return str(module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True, assume_verified=True))


def parse_triton(text: str, context: Any) -> Any:
    """A libtriton module of `text` in `context`, verified; `RuntimeError` when libtriton refuses it."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".mlir", prefix="pass-output-") as file:
        file.write(text)
        file.flush()
        module = libtriton.ir.parse_mlir_module(file.name, context)
    module.context = context
    return module
