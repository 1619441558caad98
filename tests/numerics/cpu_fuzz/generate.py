"""Random block programs. In: a seed. Out: a program whose result is determined, but for the bounds on inexact floats.

What is left undefined is not written: divisors of zero, addresses outside, two elements of one store at one place,
accesses through two names of one memory without a barrier (unless the program is strict).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cpu_fuzz.program import (
    BITS,
    FLOATS,
    INTEGERS,
    SMALL_FLOATS,
    Array,
    Block,
    Function,
    Number,
    Op,
    Program,
    Type,
    Value,
)

_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_MATHS = ("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "rsqrt")
_BINARY = ("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui")
_SHIFTS = ("shli", "shrsi", "shrui")
_DIVISIONS = ("divsi", "divui", "remsi", "remui")
TABLE = 256  # elements of arrays that are addressed by the low bits of any integer


def generate(seed: int) -> Program:
    return _Generator(seed).run()


class _Generator:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.program = Program(seed, [], Block())
        self.program.signed_zeros = bool(self.chance(0.5))
        self.program.strict = bool(self.chance(0.15))
        self.program.grid = tuple(int(self.rng.integers(1, 3)) for _ in range(3)) if self.chance(0.3) else (1, 1, 1)  # type: ignore[assignment]
        self.block = self.program.body
        self.values: list[Value] = []
        self.constants: dict[tuple[str, Type], Value] = {}
        self.depth = 0
        self.scalars_alone = False
        self.aliased = False

    # Choices.

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, items: Sequence) -> object:  # type: ignore[type-arg]
        return items[int(self.rng.integers(0, len(items)))]

    def shape(self) -> tuple[int, ...]:
        """One to four dimensions, powers of two, some of them 1."""
        count = int(self.pick(_COUNTS))  # type: ignore[call-overload]
        rank = int(self.pick((1, 1, 1, 2, 2, 3, 4)))  # type: ignore[call-overload]
        sizes = [1] * rank
        while count > 1:
            sizes[int(self.rng.integers(0, rank))] *= 2
            count //= 2
        return tuple(sizes)

    # Writing.

    def add(self, name: str, operands: Sequence[Value], types: Sequence[Type], keep: bool = True, exact: bool = True,
            regions: Sequence[Block] = (), **attributes: str) -> list[Value]:  # fmt: skip
        exact = exact and all(each.exact for each in operands)
        results = [Value(type_, exact or not type_.is_float) for type_ in types]
        self.block.operations.append(Op(name, list(operands), results, attributes, list(regions)))
        if keep:
            self.values += [each for each in results if not each.type.pointer]
        return results

    def one(self, name: str, operands: Sequence[Value], type_: Type, keep: bool = True, exact: bool = True,
            regions: Sequence[Block] = (), **attributes: str) -> Value:  # fmt: skip
        return self.add(name, operands, [type_], keep, exact, regions, **attributes)[0]

    def constant(self, value: float, type_: Type) -> Value:
        if type_.element == "i1":
            text = "true" if value else "false"
        elif type_.is_float:
            text = f"{float(value):e}"
        else:
            text = str(int(value))
        typed = f"dense<{text}> : {type_}" if type_.shape else text if type_.element == "i1" else f"{text} : {type_}"
        return self.one("arith.constant", [], type_, keep=False, value=typed)

    def compare(self, a: Value, b: Value, predicate: int) -> Value:
        name = "arith.cmpf" if a.type.is_float else "arith.cmpi"
        return self.one(name, [a, b], Type("i1", a.type.shape), predicate=f"{predicate} : i64")

    # Finding operands.

    def find(self, accept: Callable[[Value], bool]) -> Value | None:
        """A value in scope, late ones preferred."""
        found = [each for each in self.values if accept(each)]
        if not found:
            return None
        index = len(found) - 1 - min(int(self.rng.exponential(4)), len(found) - 1)
        return found[index]

    def get(self, type_: Type, exact: bool = True) -> Value:
        """A value of a type, made if there is none."""
        found = self.find(lambda each: each.type == type_ and (each.exact or not exact))
        if found is not None and not self.chance(0.15):
            return found
        scalar = None
        if type_.shape:
            scalar = self.find(lambda each: each.type == Type(type_.element) and (each.exact or not exact))
        if scalar is not None and self.chance(0.5):
            return self.one("tt.splat", [scalar], type_)
        if type_.is_float:
            return self.constant(float(self.pick((0.5, -2.0, 1.0, 3.25))), type_)  # type: ignore[arg-type]
        if type_.element == "i1":
            return self.constant(self.rng.integers(0, 2), type_)
        bits = min(32, BITS[type_.element])
        value = int(self.pick((1, -1, 3, 5, 7, 2**7 - 1, -(2 ** (bits - 1)), 100, -17)))  # type: ignore[call-overload]
        return self.constant(max(-(2 ** (bits - 1)), min(value, 2 ** (bits - 1) - 1)), type_)

    def resize(self, value: Value, element: str) -> Value:
        """An integer as another one."""
        order = ("i1", *INTEGERS)
        old, new = order.index(value.type.element), order.index(element)
        if old == new:
            return value
        name = "arith.trunci" if new < old else str(self.pick(("arith.extsi", "arith.extui")))
        return self.one(name, [value], value.type.of(element))

    def linear(self, shape: tuple[int, ...], element: str = "i32") -> Value:
        """The row-major index of each element."""
        total: Value | None = None
        stride = 1
        for axis in reversed(range(len(shape))):
            if shape[axis] > 1 or (axis == 0 and total is None):
                part = self.along(shape, axis)
                if stride > 1:
                    part = self.one("arith.muli", [part, self.constant(stride, part.type)], part.type)
                total = part if total is None else self.one("arith.addi", [total, part], part.type)
            stride *= shape[axis]
        assert total is not None
        return self.resize(total, element) if element != "i32" else total

    def along(self, shape: tuple[int, ...], axis: int) -> Value:
        """The index in one dimension."""
        size = shape[axis]
        value = self.one("tt.make_range", [], Type("i32", (size,)), start="0 : i32", end=f"{size} : i32")
        for other in range(len(shape)):
            if other != axis:
                dims = list(value.type.shape)
                dims.insert(other, 1)
                value = self.one("tt.expand_dims", [value], value.type.shaped(*dims), axis=f"{other} : i32")
        return value if value.type.shape == shape else self.one("tt.broadcast", [value], value.type.shaped(*shape))

    # The program.

    def run(self) -> Program:
        self.declare()
        for _ in range(int(self.rng.integers(6, 22))):
            self.statement()
        for value in [each for each in self.values if each.type.shape][-3:]:
            self.store_result(value)
        self.block.operations.append(Op("tt.return"))
        return self.program

    def declare(self) -> None:
        elements = [*INTEGERS, *FLOATS, *SMALL_FLOATS, "i1"]
        chosen = [str(self.pick(elements)) for _ in range(int(self.rng.integers(2, 5)))]
        parameters: list[Array | Number] = [Number("i32")]
        for element in chosen:
            parameters.append(Array(element, 0, bounded=True) if self.chance(0.5) else Array(element, TABLE))
        if self.chance(0.3):
            first = int(self.pick([i for i, each in enumerate(parameters) if isinstance(each, Array)]))  # type: ignore[call-overload]
            original = parameters[first]
            assert isinstance(original, Array)
            parameters.append(Array(original.element, original.count, original.bounded, alias=first))
            self.aliased = True
        for _ in range(int(self.rng.integers(0, 4))):
            parameters.append(Number(str(self.pick([*INTEGERS, *FLOATS]))))
        parameters += [Array(element, 4096) for element in ("i32", "i64", str(self.pick(INTEGERS)))]
        parameters += [Array(element, 4096, sink=True) for element in FLOATS]
        parameters.append(Array("i1", 4096))
        self.program.parameters = parameters
        types = [Type(each.element, (), isinstance(each, Array)) for each in parameters]
        self.block.arguments = [Value(type_) for type_ in types]
        self.values += [each for each in self.block.arguments if not each.type.pointer]
        self.used = dict.fromkeys(range(len(parameters)), 0)
        for axis in range(3):
            if self.program.grid != (1, 1, 1) and self.chance(0.6):
                self.one(f"tt.{self.pick(('get_program_id', 'get_num_programs'))}", [], Type("i32"),
                         axis=f"{axis} : i32")  # fmt: skip
        self.load()

    def statement(self) -> None:
        weights = (
            (self.integer, 5), (self.comparison, 3), (self.selection, 2), (self.floating, 4), (self.conversion, 4),
            (self.load, 4), (self.store, 3), (self.move, 5), (self.reduction, 3), (self.scan, 2), (self.gather, 1),
            (self.histogram, 0.6), (self.atomic, 1.5), (self.swap, 0.4), (self.barrier, 0.4), (self.loop, 1.6),
            (self.branch, 1.6), (self.repetition, 0.6), (self.function, 1.0), (self.product, 0.3), (self.splat, 1),
            (self.call, 0.8), (self.advance, 0.8), (self.mapping, 0.6),
            (self.shift, 1.5),
        )  # fmt: skip
        total = sum(weight for _, weight in weights)
        at = self.rng.random() * total
        for make, weight in weights:
            at -= weight
            if at < 0:
                make()
                return

    # Elementwise.

    def any_type(self, elements: Sequence[str]) -> Type:
        found = self.find(lambda each: each.type.element in elements and each.exact)
        if found is not None and self.chance(0.8):
            return found.type
        shape = () if self.scalars_alone or self.chance(0.2) else self.shape()
        return Type(str(self.pick(elements)), shape)

    def integer(self) -> None:
        type_ = self.any_type(INTEGERS)
        a, b = self.get(type_), self.get(type_)
        kind = self.rng.random()
        if kind < 0.6:
            self.one(f"arith.{self.pick(_BINARY)}", [a, b], type_)
        elif kind < 0.75:
            self.one(f"arith.{self.pick(_SHIFTS)}", [a, b], type_)
        elif kind < 0.92:
            divisor = self.one("arith.ori", [b, self.constant(1, type_)], type_, keep=False)
            self.one(f"arith.{self.pick(_DIVISIONS)}", [a, divisor], type_)
        elif type_.element in ("i32", "i64"):
            self.one("tt.mulhiui", [a, b], type_)
        else:
            self.one("math.absi", [a], type_)

    def splat(self) -> None:
        scalar = self.find(lambda each: not each.type.shape)
        if scalar is not None:
            self.one("tt.splat", [scalar], scalar.type.shaped(*self.shape()))

    def comparison(self) -> None:
        kind = self.rng.random()
        if kind < 0.4:
            shape = self.shape()
            index = self.linear(shape)
            if self.chance(0.5):  # near the ends of the range, where it wraps
                far = self.constant(
                    int(self.pick((2**31 - 1 - index.type.count // 2, -(2**31), 40503 * 65521 - 2**32, 5))), index.type
                )  # type: ignore[call-overload]
                index = self.one(f"arith.{self.pick(('addi', 'muli'))}", [index, far], index.type)
            index = self.resize(index, str(self.pick(("i32", "i32", "i64"))))
            limit = self.get(index.type)
            pair = [index, limit] if self.chance(0.7) else [limit, index]
            self.compare(pair[0], pair[1], int(self.rng.integers(0, 10)))
        elif kind < 0.7:
            type_ = self.any_type(("i1", *INTEGERS))
            self.compare(self.get(type_), self.get(type_), int(self.rng.integers(0, 10)))
        elif kind < 0.85:
            type_ = self.any_type(FLOATS)
            self.compare(self.get(type_), self.get(type_), int(self.rng.integers(1, 15)))
        else:
            type_ = self.any_type(("i1",))
            self.one(f"arith.{self.pick(('andi', 'ori', 'xori', 'addi'))}", [self.get(type_), self.get(type_)], type_)

    def selection(self) -> None:
        type_ = self.any_type(("i1", *INTEGERS, *FLOATS))
        condition = self.get(Type("i1", type_.shape if self.chance(0.8) else ()))
        self.one("arith.select", [condition, self.get(type_, False), self.get(type_, False)], type_)

    def floating(self) -> None:
        type_ = self.any_type(FLOATS)
        a, b = self.get(type_), self.get(type_)
        names = ["addf", "subf", "mulf"]
        names += ["divf"] if self.program.signed_zeros else ["maxnumf", "minnumf", "maximumf", "minimumf"]
        kind = self.rng.random()
        if kind < 0.75:
            self.one(f"arith.{self.pick(names)}", [a, b], type_)
        elif kind < 0.85:
            self.one(f"{self.pick(('arith.negf', 'math.absf'))}", [a], type_)
        elif type_.element in ("f32", "f64"):
            self.one(str(self.pick(("math.sqrt", "math.floor", "math.ceil"))), [a], type_)

    def function(self) -> None:
        """A function whose rounding is not determined; little may be done with the result."""
        type_ = self.any_type(FLOATS)
        result = self.one(f"math.{self.pick(_MATHS)}", [self.get(type_)], type_, exact=False)
        if self.chance(0.5):
            result = self.one(f"arith.{self.pick(('addf', 'subf'))}", [result, self.get(type_, False)], type_)
        if self.chance(0.3) and type_.element != "f64":
            result = self.one("arith.extf", [result], type_.of("f64" if type_.element == "f32" else "f32"))

    def conversion(self) -> None:
        source = self.find(lambda each: each.exact)
        if source is None:
            return
        element, type_ = source.type.element, source.type
        if element in ("i1", *INTEGERS):
            kind = self.rng.random()
            if kind < 0.5:
                self.resize(source, str(self.pick(("i1", *INTEGERS))))
            elif kind < 0.8:
                name = str(self.pick(("arith.sitofp", "arith.uitofp")))
                self.one(name, [source], type_.of(str(self.pick(FLOATS))))
            elif element != "i1":
                same = {"i8": ("f8E4M3FN", "f8E5M2"), "i16": ("f16", "bf16"), "i32": ("f32",), "i64": ("f64",)}[element]
                self.one("tt.bitcast", [source], type_.of(str(self.pick(same))))
        elif element in SMALL_FLOATS:
            self.one("tt.fp_to_fp", [source], type_.of(str(self.pick(FLOATS))))
        else:
            self._convert_float(source)

    def _convert_float(self, source: Value) -> None:
        element, type_ = source.type.element, source.type
        if self.chance(0.4):
            name = str(self.pick(("arith.fptosi", "arith.fptoui")))
            self.one(name, [source], type_.of(str(self.pick(INTEGERS))))
            return
        target = str(self.pick([each for each in (*FLOATS, *SMALL_FLOATS) if each != element]))
        widths = {"f8E4M3FN": 0, "f8E5M2": 0, "f16": 1, "bf16": 1, "f32": 2, "f64": 3}
        if widths[element] == widths[target]:
            return
        if widths[target] > widths[element]:
            self.one("arith.extf", [source], type_.of(target))
        elif target in SMALL_FLOATS or self.chance(0.2):
            self.one("tt.fp_to_fp", [source], type_.of(target), rounding="1 : i32")
        else:
            self.one("arith.truncf", [source], type_.of(target))

    # Moves.

    def move(self) -> None:
        source = self.find(lambda each: bool(each.type.shape))
        if source is None:
            return
        shape, type_ = source.type.shape, source.type
        kinds = ["expand", "reshape", "broadcast", "trans", "join", "split", "cat", "unsplat"]
        kind = str(self.pick(kinds))
        if kind == "expand" and len(shape) < 4:
            axis = int(self.rng.integers(0, len(shape) + 1))
            self.one("tt.expand_dims", [source], type_.shaped(*shape[:axis], 1, *shape[axis:]), axis=f"{axis} : i32")
        elif kind == "reshape":
            self.one("tt.reshape", [source], type_.shaped(*self._other_shape(type_.count)))
        elif kind == "broadcast" and 1 in shape and type_.count <= 64:
            wide = tuple(int(self.pick((1, 2, 4))) if size == 1 else size for size in shape)  # type: ignore[call-overload]
            if wide != shape:
                self.one("tt.broadcast", [source], type_.shaped(*wide))
        elif kind == "trans" and len(shape) > 1:
            order = [int(each) for each in self.rng.permutation(len(shape))]
            text = f"array<i32: {', '.join(map(str, order))}>"
            self.one("tt.trans", [source], type_.shaped(*(shape[each] for each in order)), order=text)
        elif kind == "join" and len(shape) < 4 and source.exact:
            self.one("tt.join", [source, self.get(type_)], type_.shaped(*shape, 2))
        elif kind == "split" and len(shape) > 1 and shape[-1] == 2 and source.exact:
            self.add("tt.split", [source], [type_.shaped(*shape[:-1])] * 2)
        elif kind == "cat" and len(shape) == 1 and source.exact:
            self.one("tt.cat", [source, self.get(type_)], type_.shaped(2 * shape[0]))
        elif kind == "unsplat" and type_.count == 1:
            self.one("tt.unsplat", [source], type_.shaped())

    def _other_shape(self, count: int) -> tuple[int, ...]:
        sizes = [1] * int(self.rng.integers(1, 5))
        while count > 1:
            sizes[int(self.rng.integers(0, len(sizes)))] *= 2
            count //= 2
        return tuple(sizes)

    def gather(self) -> None:
        source = self.find(lambda each: bool(each.type.shape) and each.exact)
        if source is None:
            return
        shape = source.type.shape
        axis = int(self.rng.integers(0, len(shape)))
        size = int(self.pick((1, 2, 8, shape[axis])))  # type: ignore[call-overload]
        wanted = (*shape[:axis], size, *shape[axis + 1 :])
        index_type = Type(str(self.pick(("i8", "i16", "i32", "i64"))), wanted)
        if shape[axis] > 2**8 and index_type.element == "i8":
            return
        low = min(shape[axis] - 1, 255 if index_type.element == "i8" else 65535)
        last = self.constant(low - 256 if index_type.element == "i8" and low > 127 else low, index_type)
        index = self.one("arith.andi", [self.get(index_type), last], index_type, keep=False)
        self.one("tt.gather", [source, index], source.type.shaped(*wanted), axis=f"{axis} : i32")

    def histogram(self) -> None:
        source = self.find(lambda each: each.type.element == "i32" and len(each.type.shape) == 1)
        if source is None:
            return
        bins = int(self.pick((2, 8, 32)))  # type: ignore[call-overload]
        if self.chance(0.7):
            source = self.one("arith.andi", [source, self.constant(2 * bins - 1, source.type)], source.type)
        mask = [self.get(Type("i1", source.type.shape))] if self.chance(0.5) else []
        self.one("tt.histogram", [source, *mask], Type("i32", (bins,)))

    def product(self) -> None:
        m, n, k = (int(self.pick((1, 2, 16, 8))) for _ in range(3))  # type: ignore[call-overload]
        batch = (2,) if self.chance(0.2) else ()
        a, b = self.get(Type("i8", (*batch, m, k))), self.get(Type("i8", (*batch, k, n)))
        total = Type("i32", (*batch, m, n))
        self.one("tt.dot", [a, b, self.get(total)], total, inputPrecision="0 : i32", maxNumImpreciseAcc="0 : i32")

    # Reductions.

    def reduction(self) -> None:
        self._combine("tt.reduce")

    def scan(self) -> None:
        self._combine("tt.scan")

    def _combine(self, name: str) -> None:
        source = self.find(lambda each: bool(each.type.shape) and each.exact and each.type.element not in SMALL_FLOATS)
        if source is None:
            return
        shape, element = source.type.shape, source.type.element
        axis = int(self.rng.integers(0, len(shape)))
        operands, kind, exact = [source], "single", True
        if source.type.is_float:
            names = ["addf", "first", "last"]
            names += [] if self.program.signed_zeros else ["maxnumf", "minnumf", "maximumf", "minimumf"]
            op = str(self.pick(names))
            exact = op != "addf"
        elif element == "i1":
            op = str(self.pick(("andi", "ori", "xori", "first")))
        else:
            op = str(self.pick((*_BINARY[:1], *_BINARY[2:], "first", "last", *["affine"] * 4, "argmax")))
        if op == "affine":
            operands = [source, self.get(source.type)]
        elif op == "argmax":
            operands = [source, self.along(shape, axis)]
        region = self._region(op, [each.type.element for each in operands], name + ".return")
        del kind
        attributes = {"axis": f"{axis} : i32"}
        if name == "tt.scan":
            attributes["reverse"] = str(self.pick(("true", "false")))
            types = [each.type for each in operands]
        else:
            kept = (*shape[:axis], *shape[axis + 1 :])
            types = [each.type.shaped(*kept) for each in operands]
        self.add(name, operands, types, exact=exact, regions=[region], **attributes)

    def _region(self, op: str, elements: list[str], end: str) -> Block:
        block = Block([Value(Type(each)) for each in (*elements, *elements)])
        outer, self.block = self.block, block
        left, right = block.arguments[: len(elements)], block.arguments[len(elements) :]
        type_ = left[0].type
        if op in ("first", "last"):
            results = left if op == "first" else right
        elif op == "affine":
            factor = self.one("arith.muli", [left[0], right[0]], type_, keep=False)
            moved = self.one("arith.muli", [left[1], right[0]], type_, keep=False)
            results = [factor, self.one("arith.addi", [moved, right[1]], type_, keep=False)]
        elif op == "argmax":
            results = self._larger(left, right)
        else:
            results = [self.one(f"arith.{op}", [left[0], right[0]], type_, keep=False)]
        block.operations.append(Op(end, list(results)))
        self.block = outer
        return block

    def _larger(self, left: list[Value], right: list[Value]) -> list[Value]:
        start = len(self.values)
        same, before = self.compare(left[0], right[0], 0), self.compare(left[1], right[1], 2)
        tie = self.one("arith.andi", [same, before], Type("i1"), keep=False)
        wins = self.one("arith.ori", [self.compare(left[0], right[0], 4), tie], Type("i1"), keep=False)
        del self.values[start:]
        return [self.one("arith.select", [wins, a, b], a.type, keep=False) for a, b in zip(left, right, strict=True)]

    # Memory.

    def array(self, accept: Callable[[Array], bool]) -> int | None:
        found = [i for i, each in enumerate(self.program.parameters) if isinstance(each, Array) and accept(each)]
        return int(self.pick(found)) if found else None  # type: ignore[call-overload]

    def place(self, argument: int, shape: tuple[int, ...], injective: bool) -> tuple[Value, Value | None]:
        """Pointers of a shape into an array, and the mask that keeps them inside where one is needed."""
        array = self.program.parameters[argument]
        assert isinstance(array, Array)
        if not shape:
            return self._scalar_place(argument, array)
        index = self.linear(shape)
        mask: Value | None = None
        if array.bounded:
            index = self._offset(index)
            n = self.block_argument(0)
            limit = self.one("tt.splat", [n], index.type)
            if self.chance(0.25):  # from the end
                last = self.one("arith.subi", [limit, self.constant(1, index.type)], index.type)
                index = self.one("arith.subi", [last, index], index.type)
                mask = self.compare(index, self.constant(0, index.type), 5)
                low = self.compare(index, limit, 2)
                mask = self.one("arith.andi", [mask, low], mask.type)
            else:
                mask = self.compare(*((index, limit, 2) if self.chance(0.7) else (limit, index, 4)))
            if self.chance(0.3):
                index = self.one("arith.extsi", [index], index.type.of("i64"))
        else:
            index = self._table_index(index, injective)
        return self._pointers(argument, index), mask

    def block_argument(self, number: int) -> Value:
        return self.program.body.arguments[number]

    def _offset(self, index: Value) -> Value:
        """Each program its own part, sometimes a little off."""
        if self.program.grid != (1, 1, 1) and self.chance(0.5):
            number = self.one("tt.get_program_id", [], Type("i32"), axis="0 : i32")
            start = self.one("arith.muli", [number, self.constant(index.type.count, Type("i32"))], Type("i32"))
            index = self.one("arith.addi", [index, self.one("tt.splat", [start], index.type)], index.type)
        if self.chance(0.3):
            index = self.one("arith.addi", [index, self.constant(int(self.rng.integers(0, 5)), index.type)], index.type)
        return index

    def _table_index(self, index: Value, injective: bool) -> Value:
        last = self.constant(TABLE - 1, index.type)
        if injective or self.chance(0.4):
            odd = self.constant(int(self.pick((1, 1, 3, -1, 77))), index.type)  # type: ignore[call-overload]
            index = self.one("arith.muli", [index, odd], index.type)
            index = self.one(
                "arith.addi", [index, self.constant(int(self.rng.integers(0, 99)), index.type)], index.type
            )
        else:
            index = self.get(index.type)
        return self.one("arith.andi", [index, last], index.type)

    def _scalar_place(self, argument: int, array: Array) -> tuple[Value, Value | None]:
        index = self.get(Type("i32"))
        mask = None
        if array.bounded:
            mask = self.compare(index, self.block_argument(0), 6)
        else:
            index = self.one("arith.andi", [index, self.constant(TABLE - 1, index.type)], index.type)
        return self._pointers(argument, index), mask

    def _pointers(self, argument: int, index: Value) -> Value:
        base = self.block_argument(argument)
        if index.type.shape:
            base = self.one("tt.splat", [base], base.type.shaped(*index.type.shape), keep=False)
        return self.one("tt.addptr", [base, index], base.type, keep=False)

    def fence(self, argument: int) -> None:
        """A barrier between accesses through two names of one memory."""
        if self.aliased and not self.program.strict:
            self.block.operations.append(Op("ttg.barrier", attributes={"addrSpace": "31 : i32"}))

    def load(self) -> None:
        argument = self.array(lambda each: not each.sink and each.count != 4096)
        assert argument is not None
        array = self.program.parameters[argument]
        assert isinstance(array, Array)
        shape = self.shape() if self.chance(0.85) else ()
        pointer, inside = self.place(argument, shape, False)
        mask = inside
        if self.chance(0.4):
            extra = self.get(Type("i1", shape))
            mask = extra if inside is None else self.one("arith.andi", [inside, extra], extra.type)
        other = mask is not None and self.chance(0.6)
        type_ = Type(array.element, shape)
        operands = [pointer, *([mask] if mask is not None else [])]
        if other:
            plain = Type("i8", shape)
            filler = (
                self.get(type_)
                if array.element not in SMALL_FLOATS
                else self.one("tt.bitcast", [self.get(plain)], type_)
            )
            operands.append(filler)
        self.fence(argument)
        self.one("tt.load", operands, type_, isVolatile="true" if self.chance(0.05) else "false",
                 operandSegmentSizes=f"array<i32: 1, {int(mask is not None)}, {int(other)}>")  # fmt: skip
        self.fence(argument)

    def store(self) -> None:
        value = self.find(lambda each: each.exact and each.type.count <= TABLE)
        if value is None:
            return
        argument = self.array(lambda each: each.element == value.type.element and not each.sink and each.count != 4096)
        if argument is None:
            self.store_result(value)
            return
        pointer, mask = self.place(argument, value.type.shape, True)
        if self.chance(0.5):
            shape = value.type.shape
            extra = self.wrapped_mask(shape) if shape and self.chance(0.5) else self.get(Type("i1", shape))
            mask = extra if mask is None else self.one("arith.andi", [mask, extra], extra.type)
        self._write(argument, pointer, value, mask)

    def wrapped_mask(self, shape: tuple[int, ...]) -> Value:
        """An index that wraps within the block, compared with a scalar."""
        index = self.linear(shape)
        middle = int(self.rng.integers(0, index.type.count + 1))
        start = self.constant(2**31 - 1 - middle, index.type)
        index = self.one("arith.addi", [index, start], index.type)
        limit = self.one("tt.splat", [self.get(Type("i32"))], index.type)
        return self.compare(index, limit, int(self.rng.integers(2, 10)))

    def shift(self) -> None:
        """An array read and written at other places of itself."""
        argument = self.array(lambda each: not each.sink and each.count != 4096 and each.element not in SMALL_FLOATS)
        if argument is None:
            return
        shape = self.shape()
        array = self.program.parameters[argument]
        assert isinstance(array, Array)
        source, inside = self.place(argument, shape, False)
        self.fence(argument)
        segments = f"array<i32: 1, {int(inside is not None)}, 0>"
        operands = [source, *([inside] if inside is not None else [])]
        type_ = Type(array.element, shape)
        value = self.one("tt.load", operands, type_, isVolatile="false", operandSegmentSizes=segments)
        target, mask = self.place(argument, shape, True)
        self._write(argument, target, value, mask)

    def _write(self, argument: int, pointer: Value, value: Value, mask: Value | None) -> None:
        self.fence(argument)
        self.block.operations.append(Op("tt.store", [pointer, value, *([mask] if mask is not None else [])]))
        self.fence(argument)

    def store_result(self, value: Value) -> None:
        """A value into an array that is only written: a sink for floats."""
        element = value.type.element
        argument = self.array(lambda each: each.count == 4096 and each.element == element)
        if argument is None or value.type.count > 4096:
            return
        free = self.used[argument]
        if free + value.type.count > 4096:
            return
        self.used[argument] = free + value.type.count
        index = self.linear(value.type.shape) if value.type.shape else self.constant(0, Type("i32"))
        index = self.one("arith.addi", [index, self.constant(free, index.type)], index.type)
        mask = self.get(Type("i1", value.type.shape)) if self.chance(0.4) else None
        self._write(argument, self._pointers(argument, index), value, mask)

    def atomic(self) -> None:
        argument = self.array(lambda each: not each.sink and each.count != 4096 and each.element not in
                              ("i1", "i8", "i16", *SMALL_FLOATS))  # fmt: skip
        if argument is None:
            return
        array = self.program.parameters[argument]
        assert isinstance(array, Array)
        shape = self.shape() if self.chance(0.7) else ()
        value = self.get(Type(array.element, shape))
        pointer, mask = self.place(argument, shape, False)
        kind = 5 if value.type.is_float else int(self.pick((1, 2, 3, 4, 6, 7, 8, 9, 10)))  # type: ignore[call-overload]
        self.fence(argument)
        self.one("tt.atomic_rmw", [pointer, value, *([mask] if mask is not None else [])], value.type,
                 atomic_rmw_op=f"{kind} : i32", scope="1 : i32", sem="4 : i32")  # fmt: skip
        self.fence(argument)

    def swap(self) -> None:
        argument = self.array(lambda each: each.count == TABLE and each.element in ("i32", "i64"))
        if argument is None:
            return
        type_ = Type(self.program.parameters[argument].element, self.shape() if self.chance(0.6) else ())
        pointer, _ = self.place(argument, type_.shape, False)
        self.fence(argument)
        self.one("tt.atomic_cas", [pointer, self.get(type_), self.get(type_)], type_, scope="1 : i32", sem="4 : i32")
        self.fence(argument)

    def barrier(self) -> None:
        self.block.operations.append(Op("ttg.barrier", attributes={"addrSpace": "31 : i32"}))

    # Functions and regions that are applied.

    def call(self) -> None:
        """A function of two to five blocks, each of which branches to later ones or returns; it is called at once."""
        type_ = self.any_type((*INTEGERS, "f32"))
        if self.depth > 2 or not type_.shape:
            return
        arguments, name = [self.get(type_), self.get(Type("i32"))], f"f{len(self.program.functions)}"
        outer, values, self.depth = self.block, self.values, 3
        blocks = [Block([Value(each.type) for each in arguments])]
        blocks += [Block([Value(type_)]) for _ in range(int(self.rng.integers(1, 5)))]
        shared: list[Value] = []
        for index, block in enumerate(blocks):
            self.block, self.values = block, [*shared, *block.arguments]
            for _ in range(int(self.rng.integers(0, 3))):
                self.pick((self.integer, self.floating, self.reduction, self.scan, self.comparison))()  # type: ignore[operator]
            shared = shared or list(self.values)
            block.operations.append(self._end(blocks[index + 1 :], type_))
        self.program.functions.append(Function(name, blocks, type_))
        self.block, self.values, self.depth = outer, values, self.depth - 3
        self.one("tt.call", arguments, type_, callee=f"@{name}")

    def _end(self, later: list[Block], type_: Type) -> Op:
        kind = self.rng.random()
        if not later or kind < 0.2:
            return Op("tt.return", [self.get(type_)])
        if kind < 0.4:
            passed = [self.get(type_)]
            return Op("cf.br", passed, successors=[later[int(self.rng.integers(0, len(later)))]], passed=[passed])
        targets = [later[int(self.rng.integers(0, len(later)))] for _ in range(2)]
        sides = [[self.get(type_)], [self.get(type_)]]
        operands = [self.get(Type("i1")), *sides[0], *sides[1]]
        segments = {"operandSegmentSizes": "array<i32: 1, 1, 1>"}
        return Op("cf.cond_br", operands, [], segments, successors=targets, passed=sides)

    def mapping(self) -> None:
        """Elementwise ops in a region of their own."""
        type_ = self.any_type((*INTEGERS, "f32"))
        if not type_.shape:
            return
        operands = [self.get(type_), self.get(type_)]
        region = Block([Value(Type(type_.element)) for _ in operands])
        outer, values, self.block, self.values = self.block, self.values, region, list(region.arguments)
        self.scalars_alone = True
        for _ in range(int(self.rng.integers(1, 4))):
            self.pick((self.integer, self.floating))()  # type: ignore[operator]
        found = [each for each in self.values if each.type == Type(type_.element) and each.exact][-2:]
        region.operations.append(Op("tt.map_elementwise.return", found))
        self.block, self.values, self.scalars_alone = outer, values, False
        self.add("tt.map_elementwise", operands, [type_] * len(found), regions=[region], pack="1 : i32")

    def advance(self) -> None:
        """A loop that carries pointers: a bounded array read block by block."""
        argument = self.array(lambda each: each.bounded and each.element in (*INTEGERS, "f32"))
        if argument is None or self.depth > 1:
            return
        array = self.program.parameters[argument]
        assert isinstance(array, Array)
        shape, i32 = self.shape(), Type("i32")
        index, limit = self.linear(shape), self.one("tt.splat", [self.block_argument(0)], Type("i32", shape))
        pointer, total = self._pointers(argument, index), self.get(Type(array.element, shape))
        count = index.type.count
        arguments = [Value(i32), Value(pointer.type), Value(total.type)]

        def finish() -> Op:
            start = self.one("arith.muli", [arguments[0], self.constant(count, i32)], i32)
            place = self.one("arith.addi", [index, self.one("tt.splat", [start], index.type)], index.type)
            mask = self.compare(place, limit, 2)
            self.fence(argument)
            value = self.one("tt.load", [arguments[1], mask], total.type, isVolatile="false",
                             operandSegmentSizes="array<i32: 1, 1, 0>")  # fmt: skip
            self.fence(argument)
            name = "arith.subf" if total.type.is_float else str(self.pick(("arith.addi", "arith.xori", "arith.muli")))
            following = self.one(name, [arguments[2], value], total.type)
            step = self.constant(count, index.type)
            moved = self.one("tt.addptr", [arguments[1], step], pointer.type, keep=False)
            return Op("scf.yield", [moved, following])

        body = self.nested(arguments, int(self.rng.integers(0, 3)), finish)
        bounds = [self.constant(each, i32) for each in (0, int(self.rng.integers(0, 4)), 1)]
        self.add("scf.for", [*bounds, pointer, total], [pointer.type, total.type], regions=[body])

    # Control.

    def nested(self, arguments: list[Value], statements: int, finish: Callable[[], Op]) -> Block:
        """A block of its own scope; `finish` makes its terminator."""
        outer, values = self.block, list(self.values)
        self.block = Block(arguments)
        self.values += [each for each in arguments if not each.type.pointer]
        self.depth += 1
        for _ in range(statements):
            self.statement()
        self.block.operations.append(finish())
        block, self.block, self.values = self.block, outer, values
        self.depth -= 1
        return block

    def carried(self) -> list[Value]:
        found = [self.find(lambda each: each.exact and each.type.count <= 256) for _ in range(self.rng.integers(0, 4))]
        return [each for each in dict.fromkeys(found) if each is not None]

    def yielded(self, likes: list[Value]) -> Op:
        values = []
        for like in likes:
            if like.type.element in SMALL_FLOATS:
                values.append(self.find(lambda each, like=like: each.type == like.type) or like)  # type: ignore[misc]
            else:
                values.append(self.get(like.type))
        return Op("scf.yield", values)

    def loop(self) -> None:
        if self.depth > 1:
            return
        starts = self.carried()
        low, high, step = (
            int(each) for each in (self.rng.integers(-2, 3), self.rng.integers(-2, 5), self.pick((1, 1, 2)))
        )  # type: ignore[call-overload]
        i32 = Type("i32")
        bounds = [self.constant(low, i32), self.constant(high, i32), self.constant(step, i32)]
        if self.chance(0.3):
            small = self.get(i32)
            bounds[1] = self.one("arith.andi", [small, self.constant(3, i32)], i32)
        arguments = [Value(i32), *(Value(each.type) for each in starts)]
        body = self.nested(arguments, int(self.rng.integers(1, 6)), lambda: self.yielded(arguments[1:]))
        self.add("scf.for", [*bounds, *starts], [each.type for each in starts], regions=[body])

    def branch(self) -> None:
        if self.depth > 2:
            return
        condition = self.get(Type("i1"))
        likes = self.carried()
        sides = [self.nested([], int(self.rng.integers(0, 5)), lambda: self.yielded(likes)) for _ in range(2)]
        if not likes and self.chance(0.3):
            sides[1:] = [Block()]
        self.add("scf.if", [condition], [each.type for each in likes], regions=sides)

    def repetition(self) -> None:
        """A while loop that counts; what it hands on changes between its two regions."""
        if self.depth > 1:
            return
        i32 = Type("i32")
        starts = self.carried()
        count = self.constant(0, i32)
        before_arguments = [Value(each.type) for each in (count, *starts)]

        def check() -> Op:
            limit = self.constant(int(self.rng.integers(0, 4)), i32)
            return Op("scf.condition", [self.compare(before_arguments[0], limit, 2), *before_arguments])

        before = self.nested(before_arguments, int(self.rng.integers(0, 2)), check)
        after_arguments = [Value(each.type) for each in (count, *starts)]

        def advance() -> Op:
            following = self.one("arith.addi", [after_arguments[0], self.constant(1, i32)], i32)
            return Op("scf.yield", [following, *self.yielded(after_arguments[1:]).operands])

        after = self.nested(after_arguments, int(self.rng.integers(1, 5)), advance)
        self.add("scf.while", [count, *starts], [each.type for each in (count, *starts)], regions=[before, after])
