"""Statements with statements inside. In: what is in scope. Out: their ops, with regions or functions of their own."""

from __future__ import annotations

from collections.abc import Callable

from cpu_fuzz.draw_elementwise import Elementwise
from cpu_fuzz.draw_moves import Moves
from cpu_fuzz.draw_products import Products
from cpu_fuzz.program import INTEGERS, SMALL_FLOATS, Array, Block, Function, Op, Type, Value


class Control(Elementwise, Moves, Products):
    """Loops, branches, functions, and regions that are applied."""

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
