"""What kind of thing an op is: lazy, sink, write. In: op names. Out: facts that analyses and lowerings share."""

from __future__ import annotations

from precast.engines.cpu.branches import is_pure
from precast.engines.cpu.flips import FLIP
from precast.engines.cpu.ir import Dense, Op, Value
from precast.engines.cpu.shapes import is_view

# Ops whose tensor results are computed where they stand and live in a buffer (or are written through).
EAGER = frozenset({
    "tt.reduce", "tt.scan", "tt.dot", "tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load",
    "tt.atomic_poll", "tt.histogram", "tt.gather", FLIP,
    "tt.join", "tt.cat", "scf.for", "scf.while", "scf.if",
})  # fmt: skip
# Ops that use tensors and have no tensor result of their own.
CONSUMERS = frozenset({
    "tt.store", "tt.atomic_store", "tt.assert", "tt.print", "tt.return", "tt.unsplat", "scf.yield", "scf.condition",
    "cf.br", "cf.cond_br",
})  # fmt: skip
ATOMICS = frozenset({"tt.atomic_store", "tt.atomic_rmw", "tt.atomic_cas"})
WRITES = ATOMICS | {"tt.store"}
_ACQUIRES = ("tt.atomic_load", "tt.atomic_poll")  # what is read after them was written before what they read
BARRIERS = frozenset({"gpu.barrier", "ttg.barrier", "tt.debug_barrier", "ttg.local_barrier"})
_INLINED = ("scf.if", "scf.yield", "tt.map_elementwise.return")
TAKEN, LOADS = "precast.taken", "precast.loads"  # attributes of a loop that each element runs through for itself
LOOPS = frozenset({"scf.for", "scf.while"})
_EXPENSIVE = frozenset(
    {"exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "powf", "log1p", "extern_elementwise"}
)
_SLOW = frozenset({
    "divf", "sqrt", "rsqrt", "divsi", "divui", "remsi", "remui", "remf", "precise_divf", "precise_sqrt", "approx_divf",
})  # fmt: skip


def is_sink(operation: Op) -> bool:
    """Whether the op evaluates its tensor operands in a loop nest of its own."""
    if operation.name == "tt.reshape":
        return not is_view(operation)
    if operation.name == "tt.map_elementwise":
        return runs_by_element(operation)
    if is_by_element(operation):
        return False
    return operation.name in EAGER or operation.name in CONSUMERS or is_volatile(operation)


def runs_by_element(operation: Op) -> bool:
    """Whether a `tt.map_elementwise` cannot be applied to vectors: it loops or loads."""
    inside = (inner for inner in operation.walk() if inner is not operation)
    return not all(is_pure(inner) or inner.name in _INLINED for inner in inside)


def is_by_element(operation: Op) -> bool:
    """Whether the op is a loop that each element runs through for itself."""
    return TAKEN in operation.attributes


def inputs(operation: Op) -> list[Value]:
    """What evaluating an op's results takes: its operands, and what such a loop uses of outside."""
    return [*operation.operands, *operation.attributes.get(TAKEN, ())]


def loads_of(operation: Op) -> tuple[Op, ...]:
    """The loads that evaluating an op's results runs."""
    if operation.name == "tt.load":
        return (operation,)
    loads: tuple[Op, ...] = operation.attributes.get(LOADS, ())
    return loads


def is_volatile(operation: Op) -> bool:
    """Whether the op is a load that happens where it stands, once, whatever becomes of its result."""
    return operation.name == "tt.load" and bool(operation.attributes.get("isVolatile"))


def is_ordered(operation: Op) -> bool:
    """Whether no load may be moved from one side of the op to the other."""
    return operation.name in WRITES or operation.name in BARRIERS or operation.name in _ACQUIRES


def is_lazy(operation: Op) -> bool:
    """Whether the op's tensor results are evaluated where they are used."""
    return bool(operation.results) and operation.results[0].type.is_tensor and not is_sink(operation)


def own_cost(operation: Op) -> float:
    """Rough cost of one element, where a buffer read is 1."""
    name = operation.name.split(".")[1]
    if name in _EXPENSIVE or is_by_element(operation):
        return 8.0
    if name in _SLOW:
        return 3.0
    if operation.name in (
        "tt.splat",
        "tt.broadcast",
        "tt.expand_dims",
        "arith.constant",
        "tt.make_range",
        "tt.reshape",
    ):
        return 0.0
    return 1.0 if operation.name == "tt.load" else 0.3


def known_constant(value: Value) -> int | None:
    """The integer that a scalar or splat constant holds."""
    operation = value.definition
    while operation and operation.name in ("tt.splat", "tt.broadcast", "tt.expand_dims", "arith.extsi"):
        operation = operation.operands[0].definition
    if operation is None or operation.name != "arith.constant":
        return None
    constant = operation.attributes["value"]
    if isinstance(constant, Dense):
        return int(constant.values[0]) if constant.splat and not operation.result.type.is_float else None
    return int(constant) if not operation.result.type.is_float else None
