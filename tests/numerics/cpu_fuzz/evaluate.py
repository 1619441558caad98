"""What a program must do, in NumPy. In: a program and its arguments. Out: what memory holds then, with error bounds.

Every op is done on whole tensors, in program order, element by element in row-major order where elements meet in
memory. Floats whose rounding is not determined carry a float64 value and a bound on the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cpu_fuzz.arithmetic import (
    ATOMIC,
    FLOAT,
    FUNCTIONS,
    INTEGER,
    UNSIGNED,
    compare,
    from_integer,
    round_to_element,
    unsigned,
    widened,
)  # fmt: skip
from cpu_fuzz.numbers import FORMATS, REGISTERS, Numbers, cut_to, from_memory, round_to, to_memory, unit
from cpu_fuzz.program import BITS, Block, Function, Op, Type, Value

# Units in the last place by which a function may be off, before the result is rounded to its format.
ULPS = {"exp": 2.0, "exp2": 2.0, "log": 2.0, "log2": 2.0, "sin": 2.0, "cos": 2.0, "tanh": 2.5, "erf": 2.0, "rsqrt": 2.0}
INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
ATOMICS = ("", "and", "or", "xor", "add", "fadd", "max", "min", "umax", "umin", "exch")


@dataclass
class Memory:
    """One array as memory holds it; `errors` are the bounds of a sink's elements."""

    stored: Numbers
    errors: Numbers | None = None


@dataclass(frozen=True)
class Pointer:
    """Places in an argument's memory, in elements."""

    argument: int
    places: Numbers


@dataclass(frozen=True)
class Inexact:
    """float64 values and how far the engine's may be from them; NaN bounds say nothing of an element."""

    values: Numbers
    errors: Numbers


@dataclass
class Evaluator:
    """Runs one program of a grid."""

    memories: Sequence[Memory | None]
    elements: Sequence[str]
    program_id: tuple[int, int, int]
    grid: tuple[int, int, int]
    known: dict[Value, Any] = field(default_factory=dict)
    functions: Sequence[Function] = ()

    def run(self, block: Block) -> list[Any]:
        """The values of the terminator's operands."""
        with np.errstate(all="ignore"):
            for operation in block.operations[:-1]:
                self.step(operation)
        return [self.known[each] for each in block.operations[-1].operands] if block.operations else []

    def step(self, operation: Op) -> None:
        name = operation.name.replace(".", "_")
        handler = getattr(self, f"do_{name}", None)
        operands = [self.known[each] for each in operation.operands]
        results = handler(operation, *operands) if handler is not None else self.elementwise(operation, operands)
        if not isinstance(results, list):
            results = [results]
        for value, result in zip(operation.results, results, strict=True):
            self.known[value] = result

    # Elementwise.

    def elementwise(self, operation: Op, operands: list[Any]) -> Any:
        dialect, name = operation.name.split(".")
        type_ = operation.results[0].type
        if any(isinstance(each, Inexact) for each in operands) or (dialect == "math" and name in ULPS):
            return self.inexact(name, type_, operation, operands)
        if name in INTEGER:
            return INTEGER[name](*operands)
        if name in UNSIGNED:
            return UNSIGNED[name](*(unsigned(each) for each in operands)).view(REGISTERS[type_.element])
        return round_to_element(type_.element, FLOAT[name](*(widened(each) for each in operands)))

    def inexact(self, name: str, type_: Type, operation: Op, operands: list[Any]) -> Inexact:
        element = type_.element
        parts = [each if isinstance(each, Inexact) else Inexact(each.astype(np.float64), 0.0 * each.astype(np.float64))
                 for each in operands]  # fmt: skip
        if name in ULPS:
            values = FUNCTIONS[name](parts[0].values)
            wide = "f32" if element in ("f16", "bf16") else element
            errors = ULPS[name] * unit(wide, values)
        elif name in ("addf", "subf"):
            values = parts[0].values + (parts[1].values if name == "addf" else -parts[1].values)
            errors = parts[0].errors + parts[1].errors
        else:
            values, errors = parts[0].values, parts[0].errors
            values = -values if name == "negf" else values
        errors = errors + unit(element, np.abs(values) + errors)
        over = ~np.isfinite(values) | (np.abs(values) + errors > 0.99 * FORMATS[element][2])
        errors = np.where(over & ~np.isnan(values), np.nan, np.where(np.isnan(values), 0.0, errors))
        return Inexact(values, errors)

    def do_arith_constant(self, operation: Op) -> Any:
        type_ = operation.results[0].type
        raw = operation.attributes["value"].removeprefix("dense<").split(">")[0].split(" : ")[0]
        value = {"true": 1, "false": 0}.get(raw) if raw in ("true", "false") else float(raw)
        assert value is not None
        if type_.element[0] == "i":
            return np.full(type_.shape, int(raw) if raw not in ("true", "false") else value, REGISTERS[type_.element])
        return round_to(type_.element, np.full(type_.shape, value))

    def do_arith_cmpi(self, operation: Op, a: Numbers, b: Numbers) -> Numbers:
        predicate = INTEGER_PREDICATES[int(operation.attributes["predicate"].split()[0])]
        if predicate[0] == "u":
            a, b = unsigned(a), unsigned(b)
        elif a.dtype == np.bool_:
            a, b = -a.astype(np.int8), -b.astype(np.int8)
        return compare(predicate[-2:], a, b)

    def do_arith_cmpf(self, operation: Op, a: Numbers, b: Numbers) -> Numbers:
        predicate = FLOAT_PREDICATES[int(operation.attributes["predicate"].split()[0])]
        unordered = np.isnan(a) | np.isnan(b)
        if predicate in ("false", "true"):
            return np.full(np.shape(a), predicate == "true")
        if predicate in ("ord", "uno"):
            return unordered if predicate == "uno" else ~unordered
        plain = compare(predicate[1:], a, b)
        return plain | unordered if predicate[0] == "u" else plain & ~unordered

    def do_arith_select(self, operation: Op, mask: Numbers, a: Any, b: Any) -> Any:
        if isinstance(a, Inexact) or isinstance(b, Inexact):
            a, b = (each if isinstance(each, Inexact) else Inexact(each.astype(np.float64), np.zeros(np.shape(each)))
                    for each in (a, b))  # fmt: skip
            return Inexact(np.where(mask, a.values, b.values), np.where(mask, a.errors, b.errors))
        return np.where(mask, a, b)

    def do_arith_extui(self, operation: Op, a: Numbers) -> Numbers:
        return unsigned(a).astype(REGISTERS[operation.results[0].type.element])

    def do_arith_extsi(self, operation: Op, a: Numbers) -> Numbers:
        signed = -a.astype(np.int8) if a.dtype == np.bool_ else a
        return signed.astype(REGISTERS[operation.results[0].type.element])

    def do_arith_trunci(self, operation: Op, a: Numbers) -> Numbers:
        element = operation.results[0].type.element
        return (a & 1).astype(np.bool_) if element == "i1" else a.astype(REGISTERS[element])

    def do_arith_sitofp(self, operation: Op, a: Numbers) -> Numbers:
        signed = -a.astype(np.int8) if a.dtype == np.bool_ else a
        return from_integer(operation.results[0].type.element, signed)

    def do_arith_uitofp(self, operation: Op, a: Numbers) -> Numbers:
        return from_integer(operation.results[0].type.element, unsigned(a))

    def _to_integer(self, operation: Op, a: Numbers, signed: bool) -> Numbers:
        """Saturating; NaN gives 0."""
        element = operation.results[0].type.element
        kind = np.dtype(REGISTERS[element] if signed else f"u{BITS[element] // 8}")
        bounds = np.iinfo(kind)
        wide = np.trunc(np.nan_to_num(a.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
        inside = np.clip(wide, float(bounds.min), float(bounds.max))
        top = wide >= float(bounds.max)
        result = np.where(top, 0, inside).astype(kind)
        return np.where(top, kind.type(bounds.max), result).view(REGISTERS[element])

    def do_tt_clampf(self, operation: Op, x: Numbers, low: Numbers, high: Numbers) -> Numbers:
        word = "imumf" if operation.attributes["propagateNan"].startswith("65535") else "numf"
        element = operation.results[0].type.element
        raised = FLOAT[f"max{word}"](widened(x), widened(low))
        return round_to_element(element, FLOAT[f"min{word}"](raised, widened(high)))

    def do_arith_fptosi(self, operation: Op, a: Numbers) -> Numbers:
        return self._to_integer(operation, a, True)

    def do_arith_fptoui(self, operation: Op, a: Numbers) -> Numbers:
        return self._to_integer(operation, a, False)

    def _convert(self, operation: Op, a: Any) -> Any:
        element = operation.results[0].type.element
        if isinstance(a, Inexact):
            return self.inexact("convert", operation.results[0].type, operation, [a])
        if operation.attributes.get("rounding", "").startswith("0"):
            return cut_to(element, a)
        return round_to(element, a)

    do_arith_extf = do_arith_truncf = do_tt_fp_to_fp = _convert

    def do_tt_bitcast(self, operation: Op, a: Any) -> Any:
        source, target = operation.operands[0].type.element, operation.results[0].type.element
        bits = np.asarray(to_memory(source, a))
        kind = np.dtype(REGISTERS[target] if target not in ("bf16", "f8E4M3FN", "f8E5M2") else f"u{bits.itemsize}")
        return from_memory(target, bits.view(kind))

    do_arith_bitcast = do_tt_bitcast

    def do_tt_mulhiui(self, operation: Op, a: Numbers, b: Numbers) -> Numbers:
        bits = BITS[operation.results[0].type.element]
        wide = (unsigned(a).astype(object) * unsigned(b).astype(object)) >> bits
        return np.asarray(wide).astype(f"u{bits // 8}").view(REGISTERS[operation.results[0].type.element])

    # Shapes.

    def do_tt_get_program_id(self, operation: Op) -> Numbers:
        return np.int32(self.program_id[int(operation.attributes["axis"].split()[0])])[...]

    def do_tt_get_num_programs(self, operation: Op) -> Numbers:
        return np.int32(self.grid[int(operation.attributes["axis"].split()[0])])[...]

    def do_tt_make_range(self, operation: Op) -> Numbers:
        start, end = (int(operation.attributes[each].split()[0]) for each in ("start", "end"))
        return np.arange(start, end, dtype=np.int32)

    def moved(self, move: Any, a: Any) -> Any:
        if isinstance(a, Inexact):
            return Inexact(move(a.values), move(a.errors))
        if isinstance(a, Pointer):
            return Pointer(a.argument, move(a.places))
        return move(np.asarray(a))

    def _broadcast(self, operation: Op, a: Any) -> Any:
        return self.moved(lambda x: np.broadcast_to(x, operation.results[0].type.shape), a)

    do_tt_splat = do_tt_broadcast = _broadcast

    def _reshape(self, operation: Op, a: Any) -> Any:
        return self.moved(lambda x: np.reshape(x, operation.results[0].type.shape), a)

    do_tt_reshape = do_tt_expand_dims = do_tt_unsplat = _reshape

    def do_tt_trans(self, operation: Op, a: Any) -> Any:
        order = [int(each) for each in operation.attributes["order"].split(": ")[1].strip(">").split(",")]
        return self.moved(lambda x: np.transpose(x, order), a)

    def do_tt_join(self, operation: Op, a: Numbers, b: Numbers) -> Numbers:
        return np.stack([a, b], -1)

    def do_tt_cat(self, operation: Op, a: Numbers, b: Numbers) -> Numbers:
        return np.concatenate([a, b])

    def do_tt_split(self, operation: Op, a: Numbers) -> list[Numbers]:
        return [a[..., 0], a[..., 1]]

    def do_tt_gather(self, operation: Op, a: Numbers, index: Numbers) -> Numbers:
        axis = int(operation.attributes["axis"].split()[0])
        return np.take_along_axis(a, unsigned(index).astype(np.int64), axis)

    def do_tt_histogram(self, operation: Op, a: Numbers, mask: Numbers | None = None) -> Numbers:
        bins = operation.results[0].type.shape[0]
        kept = a if mask is None else a[mask]
        return np.bincount(kept[(kept >= 0) & (kept < bins)], minlength=bins).astype(np.int32)

    def do_tt_dot(self, operation: Op, a: Numbers, b: Numbers, c: Numbers) -> Numbers:
        return (np.matmul(a.astype(np.int64), b.astype(np.int64)) + c).astype(np.int32)

    # Memory.

    def do_tt_addptr(self, operation: Op, pointer: Pointer, offset: Numbers) -> Pointer:
        return Pointer(pointer.argument, pointer.places + offset.astype(np.int64))

    def _memory(self, pointer: Pointer) -> Memory:
        memory = self.memories[pointer.argument]
        assert memory is not None
        return memory

    def do_tt_load(self, operation: Op, pointer: Pointer, mask: Any = None, other: Any = None) -> Numbers:
        stored, element = self._memory(pointer).stored, self.elements[pointer.argument]
        active = np.broadcast_to(True if mask is None else mask, np.shape(pointer.places))
        taken = np.zeros(np.shape(pointer.places), stored.dtype)
        assert np.all((pointer.places >= 0) & (pointer.places < len(stored)) | ~active), "the program reads outside"
        taken[active] = stored[pointer.places[active]]
        result = from_memory(element, taken)
        return result if other is None else np.where(active, result, other)

    def do_tt_store(self, operation: Op, pointer: Pointer, value: Any, mask: Any = None) -> list[Any]:
        memory, element = self._memory(pointer), self.elements[pointer.argument]
        active = np.broadcast_to(True if mask is None else mask, np.shape(pointer.places))
        places = pointer.places[active]
        assert np.all((places >= 0) & (places < len(memory.stored))), "the program writes outside"
        assert len(set(places.tolist())) == places.size, "two elements of one store meet"
        if memory.errors is not None:
            errors = value.errors if isinstance(value, Inexact) else np.zeros(np.shape(value))
            values = value.values if isinstance(value, Inexact) else value
            memory.stored[places] = np.broadcast_to(values, active.shape)[active]
            memory.errors[places] = np.broadcast_to(errors, active.shape)[active]
        else:
            memory.stored[places] = to_memory(element, np.asarray(value)[active])
        return []

    def do_tt_atomic_rmw(self, operation: Op, pointer: Pointer, value: Numbers, mask: Any = None) -> Numbers:
        kind = ATOMICS[int(operation.attributes["atomic_rmw_op"].split()[0])]
        stored, element = self._memory(pointer).stored, self.elements[pointer.argument]
        active = np.broadcast_to(True if mask is None else mask, np.shape(value))
        old = np.zeros(np.shape(value), REGISTERS[element])
        for index in np.ndindex(np.shape(value)):
            if active[index]:
                place = int(pointer.places[index])
                current = from_memory(element, stored[place : place + 1])
                old[index] = current[0]
                new = ATOMIC[kind](current, value[index][None], element)
                stored[place : place + 1] = to_memory(element, new)
        return old

    def do_tt_atomic_cas(self, operation: Op, pointer: Pointer, expected: Numbers, new: Numbers) -> Numbers:
        stored = self._memory(pointer).stored
        old = np.zeros(np.shape(new), stored.dtype)
        for index in np.ndindex(np.shape(new)):
            place = int(pointer.places[index])
            old[index] = stored[place]
            if stored[place] == expected[index]:
                stored[place] = new[index]
        return old

    def _nothing(self, operation: Op) -> list[Any]:
        return []

    do_ttg_barrier = do_gpu_barrier = _nothing

    # Control.

    def do_scf_for(self, operation: Op, lower: Numbers, upper: Numbers, step: Numbers, *carried: Any) -> list[Any]:
        body = operation.regions[0]
        values = list(carried)
        for index in range(int(lower), int(upper), int(step)):
            self.known[body.arguments[0]] = np.asarray(index, lower.dtype)
            self.known.update(zip(body.arguments[1:], values, strict=True))
            values = self.run(body)
        return values

    def do_tt_call(self, operation: Op, *arguments: Any) -> list[Any]:
        function = next(each for each in self.functions if f"@{each.name}" == operation.attributes["callee"])
        block = function.blocks[0]
        self.known.update(zip(block.arguments, arguments, strict=True))
        while True:
            self.run(block)
            end = block.operations[-1]
            if end.name == "tt.return":
                return [self.known[each] for each in end.operands]
            taken = 0 if end.name == "cf.br" or self.known[end.operands[0]] else 1
            block = end.successors[taken]
            self.known.update(zip(block.arguments, [self.known[each] for each in end.passed[taken]], strict=True))

    def do_tt_map_elementwise(self, operation: Op, *operands: Numbers) -> list[Any]:
        region = operation.regions[0]
        self.known.update(zip(region.arguments, operands, strict=True))
        # What does not depend on an element is the same for all of them.
        return [np.broadcast_to(each, np.shape(operands[0])) for each in self.run(region)]

    def do_scf_if(self, operation: Op, condition: Numbers) -> list[Any]:
        region = 0 if condition else 1
        return self.run(operation.regions[region]) if region < len(operation.regions) else []

    def do_scf_while(self, operation: Op, *carried: Any) -> list[Any]:
        before, after = operation.regions
        values = list(carried)
        while True:
            self.known.update(zip(before.arguments, values, strict=True))
            condition, *values = self.run(before)
            if not condition:
                return values
            self.known.update(zip(after.arguments, values, strict=True))
            values = self.run(after)

    # Reductions and scans.

    def do_tt_reduce(self, operation: Op, *operands: Numbers) -> Any:
        axis = int(operation.attributes["axis"].split()[0])
        if _sums_floats(operation):
            return [self._float_sums(operation, operands[0], axis, running=False)]
        rows = [np.moveaxis(each, axis, 0) for each in operands]
        return self._combined(operation, rows)[-1]

    def do_tt_scan(self, operation: Op, *operands: Numbers) -> Any:
        axis = int(operation.attributes["axis"].split()[0])
        reverse = operation.attributes["reverse"] == "true"
        operands = tuple(np.flip(each, axis) for each in operands) if reverse else operands
        if _sums_floats(operation):
            found = [self._float_sums(operation, operands[0], axis, running=True)]
        else:
            steps = self._combined(operation, [np.moveaxis(each, axis, 0) for each in operands])
            found = [np.moveaxis(np.stack(each), 0, axis) for each in zip(*steps, strict=True)]
        return [self.moved(lambda x: np.flip(x, axis), each) for each in found] if reverse else found

    def _combined(self, operation: Op, rows: list[Numbers]) -> list[list[Numbers]]:
        """The running combination, first element first."""
        region = operation.regions[0]
        found = [[each[0] for each in rows]]
        for place in range(1, len(rows[0])):
            self.known.update(zip(region.arguments, [*found[-1], *(each[place] for each in rows)], strict=True))
            found.append(self.run(region))
        return found

    def _float_sums(self, operation: Op, values: Numbers, axis: int, running: bool) -> Inexact:
        """Sums in any order: f64 in f64, all others in f32 and rounded once."""
        element = operation.operands[0].type.element
        wide = values.astype(np.float64)
        add = (lambda x: np.cumsum(x, axis)) if running else (lambda x: np.sum(x, axis))
        total, magnitude = np.asarray(add(wide)), np.asarray(add(np.abs(wide)))
        digits = 53 if element == "f64" else 24
        errors = magnitude * values.shape[axis] * 2.0**-digits + unit(element, total) / 2
        loud = ~(magnitude < 0.5 * min(FORMATS[element][2], 3e38))
        return Inexact(total, np.where(loud & ~np.isnan(total), np.nan, np.where(np.isnan(total), np.nan, errors)))


def _sums_floats(operation: Op) -> bool:
    return [each.name for each in operation.regions[0].operations[:-1]] == ["arith.addf"]
