"""Statements that move and combine elements. In: what is in scope. Out: their ops."""

from __future__ import annotations

from cpu_fuzz.draw_elementwise import BINARY
from cpu_fuzz.drawing import Drawing
from cpu_fuzz.program import SMALL_FLOATS, Block, Op, Type, Value


class Moves(Drawing):
    """Shapes, gathers, histograms, products, reductions and scans."""

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
            op = str(self.pick((*BINARY[:1], *BINARY[2:], "first", "last", *["affine"] * 4, "argmax")))
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
