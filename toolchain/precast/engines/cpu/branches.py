"""Branches between blocks, made structured. In: a region whose blocks branch. Out: one block, with `scf.if` in it.

Early returns are the only branches that Triton writes, so blocks never form a circle. Each block runs under the
condition that control comes to it; what has no effect is computed in any case, so that it stays lazy for all blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from precast.engines.cpu.errors import refuse
from precast.engines.cpu.ir import Block, Op, Type, Value
from precast.engines.cpu.shapes import MOVES

_BOOLEAN = Type("i1")
_RETURNS = ("tt.return", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return")
_PURE = ("tt.splat", "tt.addptr", "tt.make_range", "tt.bitcast", "tt.ptr_to_int", "tt.int_to_ptr", "tt.fp_to_fp",
         "tt.get_program_id", "tt.get_num_programs", "tt.clampf", "tt.mulhiui", "ub.poison", *MOVES)  # fmt: skip


def structure_regions(operation: Op) -> None:
    """Makes every region inside of an op one block, in place."""
    for inner in list(operation.walk()):
        inner.regions = [[_Structuring(region).run()] if len(region) > 1 else region for region in inner.regions]


@dataclass
class _Arrival:
    """One way into a block: the condition that it is taken (None: always) and the values it passes."""

    condition: Value | None
    passed: list[Value]


@dataclass
class _Structuring:
    """One region's blocks being put behind one another."""

    blocks: list[Block]
    result: Block = field(default_factory=Block)
    renamed: dict[Value, Value] = field(default_factory=dict)
    arrivals: dict[Block, list[_Arrival]] = field(default_factory=dict)
    returned: list[Value] | None = None
    last: Op | None = None

    def run(self) -> Block:
        entry = self.blocks[0]
        self.result.parent, self.result.arguments = entry.parent, entry.arguments
        for argument in entry.arguments:
            argument.block = self.result
        used_in = _find_users(self.blocks)
        for block in _order(self.blocks):
            self._add_block(block, used_in)
        assert self.last is not None
        self.result.operations.append(Op(self.last.name, self.returned or [], where=self.last.where, block=self.result))
        return self.result

    def _add_block(self, block: Block, used_in: dict[Value, set[Block]]) -> None:
        active = self._enter(block) if block is not self.blocks[0] else None
        for operation in block.operations:
            _rename(operation, self.renamed)
        *operations, end = block.operations
        if active is None:
            self._append(operations)
        else:
            self._guard(block, active, operations, used_in)
            _rename(end, self.renamed)
        self._leave(end, active)

    def _enter(self, block: Block) -> Value | None:
        """The condition of a block; its arguments stand for what the ways into it pass."""
        arrivals = self.arrivals[block]
        for index, argument in enumerate(block.arguments):
            value = arrivals[0].passed[index]
            for other in arrivals[1:]:
                if other.passed[index] is not value:
                    assert other.condition is not None
                    value = self._emit("arith.select", [other.condition, other.passed[index], value], value.type)
            self.renamed[argument] = value
        condition = arrivals[0].condition
        for other in arrivals[1:]:
            if condition is not None and other.condition is not None:
                condition = self._emit("arith.ori", [condition, other.condition], _BOOLEAN)
        return condition

    def _leave(self, end: Op, active: Value | None) -> None:
        if end.name == "cf.br":
            self._arrive(end.successors[0], active)
        elif end.name == "cf.cond_br":
            taken = end.operands[0]
            if active is not None:
                taken = self._emit("arith.andi", [active, taken], _BOOLEAN)
            self._arrive(end.successors[0], taken)
            other = self._emit("arith.xori", [end.operands[0], self._constant(True)], _BOOLEAN)
            if active is not None:
                other = self._emit("arith.andi", [active, other], _BOOLEAN)
            self._arrive(end.successors[1], other)
        elif end.name in _RETURNS:
            self._return(end, active)
        else:
            raise refuse(end, "a block does not end with it")

    def _arrive(self, successor: tuple[Block, list[Value]], condition: Value | None) -> None:
        block, passed = successor
        self.arrivals.setdefault(block, []).append(_Arrival(condition, list(passed)))

    def _return(self, end: Op, active: Value | None) -> None:
        self.last = end
        if self.returned is None or active is None:
            self.returned = list(end.operands)
        else:
            pairs = zip(end.operands, self.returned, strict=True)
            self.returned = [self._emit("arith.select", [active, new, old], new.type) for new, old in pairs]

    # What a block does.

    def _append(self, operations: Sequence[Op]) -> None:
        for operation in operations:
            operation.block = self.result
            self.result.operations.append(operation)

    def _guard(self, block: Block, active: Value, operations: list[Op], used_in: dict[Value, set[Block]]) -> None:
        """What has an effect goes under the block's condition; what other blocks use of it comes out as a result."""
        guarded: set[Op] = set()
        for operation in operations:
            inside = any(each.definition in guarded for each in operation.operands)
            if inside or operation.regions or not is_pure(operation):
                guarded.add(operation)
        self._append([each for each in operations if each not in guarded])
        if not guarded:
            return
        kept = [each for each in operations if each in guarded]
        ends = {block.terminator}
        exports = [
            value for each in kept for value in each.results
            if used_in.get(value, set()) - {block} or any(value in _operands_of(end) for end in ends)
        ]  # fmt: skip
        self._append([self._branch(active, kept, exports)])

    def _branch(self, active: Value, operations: list[Op], exports: list[Value]) -> Op:
        where = operations[0].where
        branch = Op("scf.if", [active], where=where)
        branch.results = [Value(each.type, branch, index) for index, each in enumerate(exports)]
        then, otherwise = Block(parent=branch), Block(parent=branch)
        for operation in operations:
            operation.block = then
        then.operations = [*operations, Op("scf.yield", list(exports), block=then)]
        missing = [Op("ub.poison", block=otherwise) for _ in exports]
        for operation, value in zip(missing, exports, strict=True):
            operation.results = [Value(value.type, operation)]
        otherwise.operations = [*missing, Op("scf.yield", [each.result for each in missing], block=otherwise)]
        branch.regions = [[then], [otherwise]]
        self.renamed.update(zip(exports, branch.results, strict=True))
        return branch

    # Small ops.

    def _emit(self, name: str, operands: list[Value], type_: Type) -> Value:
        operation = Op(name, operands, block=self.result)
        operation.results = [Value(type_, operation)]
        self.result.operations.append(operation)
        return operation.result

    def _constant(self, value: bool) -> Value:
        result = self._emit("arith.constant", [], _BOOLEAN)
        assert result.definition is not None
        result.definition.attributes["value"] = value
        return result


def is_pure(operation: Op) -> bool:
    """Whether an op may be computed without being wanted: it neither touches memory nor traps."""
    return operation.name.startswith(("arith.", "math.")) or operation.name in _PURE


def _operands_of(operation: Op) -> list[Value]:
    return [*operation.operands, *(each for _, passed in operation.successors for each in passed)]


def _find_users(blocks: list[Block]) -> dict[Value, set[Block]]:
    """The blocks of the region in which a value is used."""
    found: dict[Value, set[Block]] = {}
    for block in blocks:
        for operation in block.operations:
            for inner in operation.walk():
                for value in _operands_of(inner):
                    found.setdefault(value, set()).add(block)
    return found


def _order(blocks: list[Block]) -> list[Block]:
    """The blocks that control reaches, each after all that lead to it."""
    ordered: list[Block] = []
    done: set[Block] = set()
    open_: set[Block] = set()
    pending = [(blocks[0], False)]
    while pending:
        block, is_left = pending.pop()
        if is_left:
            open_.discard(block)
            done.add(block)
            ordered.append(block)
            continue
        if block in done:
            continue
        open_.add(block)
        pending.append((block, True))
        for successor, _ in block.terminator.successors:
            if successor in open_:
                raise refuse(block.terminator, "it leads back to a block before it")
            pending.append((successor, False))
    return ordered[::-1]


def _rename(operation: Op, renamed: dict[Value, Value]) -> None:
    for inner in operation.walk():
        inner.operands = [renamed.get(each, each) for each in inner.operands]
        inner.successors = [(block, [renamed.get(each, each) for each in passed]) for block, passed in inner.successors]
