"""What is computed where. In: a function's IR. Out: users, sinks, store groups, and the values that get a buffer.

A lazy value is evaluated again in each sink's loop nest. It is materialised when that would be wrong (memory it reads
is written before a sink) or wasteful (expensive with several sinks, used in a deeper loop, repeated by a broadcast).
"""

from __future__ import annotations

from precast.engines.cpu import aliasing, kinds
from precast.engines.cpu.ir import Block, Function, Op, Value

_WORTH_A_BUFFER = 6.0
_WORTH_HOISTING = 1.0
_WORTH_ONE_PASS = 3.0


class Analysis:
    """Facts about one function, computed once."""

    def __init__(self, function: Function) -> None:
        self.users: dict[Value, list[Op]] = {}
        self.position: dict[Op, int] = {}
        self._order: list[Op] = []
        self._loops: dict[Op, tuple[Op, ...]] = {}
        self._number(function.blocks, ())
        self.groups: dict[Op, tuple[Op, ...]] = {}  # a store to the stores that are emitted together with it
        for blocks in [function.blocks, *(region for op in self._order for region in op.regions)]:
            for block in blocks:
                self._group_stores(block)
        self._sinks: dict[Value, frozenset[Op]] = {}
        self._costs: dict[Value, float] = {}
        self.materialized: set[Value] = set()
        self._forced = self._find_overlaps()
        self._writes = [op for op in self._order if op.name in kinds.WRITES]
        self._decide()

    # Order, users, loops.

    def _number(self, blocks: list[Block], loops: tuple[Op, ...]) -> None:
        for block in blocks:
            for operation in block.operations:
                self.position[operation] = len(self._order)
                self._order.append(operation)
                self._loops[operation] = loops
                for operand in operation.operands + [each for _, passed in operation.successors for each in passed]:
                    self.users.setdefault(operand, []).append(operation)
                inner = (*loops, operation) if operation.name in kinds.LOOPS else loops
                for region in operation.regions:
                    self._number(region, inner)

    def _loops_of(self, value: Value) -> tuple[Op, ...]:
        if value.definition:
            return self._loops[value.definition]
        owner = value.block.parent if value.block else None
        if owner is None or owner not in self._loops:
            return ()
        return (*self._loops[owner], owner) if owner.name in kinds.LOOPS else self._loops[owner]

    def same_loops(self, value: Value, operation: Op) -> bool:
        """Whether `operation` runs exactly as often as `value` is defined, as far as loops go."""
        return self._loops_of(value) == self._loops[operation]

    # Stores.

    def _group_stores(self, block: Block) -> None:
        """Adjacent stores of one shape with nothing but lazy and scalar ops between them, no load among these."""
        group: list[Op] = []
        for operation in block.operations:
            if operation.name == "tt.store":
                if group and not self._joins(group, operation):
                    self._close(group)
                    group = []
                group.append(operation)
            elif self._breaks(operation):
                self._close(group)
                group = []
        self._close(group)

    def _joins(self, group: list[Op], store: Op) -> bool:
        same_shape = group[0].operands[1].type.shape == store.operands[1].type.shape
        return same_shape and not any(aliasing.may_overlap(each.operands[0], store.operands[0]) for each in group)

    def _breaks(self, operation: Op) -> bool:
        return operation.name == "tt.load" or kinds.is_sink(operation) or bool(operation.regions)

    def _close(self, group: list[Op]) -> None:
        for store in group:
            self.groups[store] = tuple(group)

    def leader(self, operation: Op) -> Op:
        """The op in whose place a store is emitted: the last of its group."""
        group = self.groups.get(operation)
        return group[-1] if group else operation

    def _find_overlaps(self) -> set[Value]:
        """Loads that a store's own nest reads at other places than it writes, in memory that may be the same."""
        found: set[Value] = set()
        for operation in self._order:
            if operation.name in kinds.WRITES:
                for user in self.groups.get(operation, (operation,)):
                    for operand in user.operands:
                        self._visit_loads(operand, False, operation, found, set())
        return found

    def _visit_loads(
        self, value: Value, moved: bool, store: Op, found: set[Value], seen: set[tuple[Value, bool]]
    ) -> None:
        operation = value.definition
        if operation is None or (value, moved) in seen or not kinds.is_lazy(operation):
            return
        seen.add((value, moved))
        if operation.name == "tt.load" and aliasing.may_overlap(operation.operands[0], store.operands[0], moved):
            found.add(value)
        moved = moved or operation.name in ("tt.broadcast", "tt.trans", "tt.reshape", "tt.split")
        for operand in operation.operands:
            self._visit_loads(operand, moved, store, found, seen)

    # Sinks and costs.

    def sinks(self, value: Value) -> frozenset[Op]:
        """The ops in whose nests the value is evaluated, or that define the buffer it goes into."""
        if value not in self._sinks:
            found: set[Op] = set()
            for user in self.users.get(value, ()):
                found |= self._sinks_through(user)
            self._sinks[value] = frozenset(found)
        return self._sinks[value]

    def _sinks_through(self, user: Op) -> frozenset[Op]:
        if kinds.is_sink(user) or not user.results or not user.results[0].type.is_tensor:
            return frozenset((self.leader(user),))
        found: frozenset[Op] = frozenset()
        for result in user.results:
            found |= frozenset((user,)) if result in self.materialized else self.sinks(result)
        return found

    def cost(self, value: Value) -> float:
        """Rough cost of evaluating one element anew."""
        if value not in self._costs:
            operation = value.definition
            lazy = operation is not None and kinds.is_lazy(operation) and value not in self.materialized
            self._costs[value] = 1.0
            if lazy and operation is not None:
                self._costs[value] = kinds.own_cost(operation) + sum(
                    self.cost(each) for each in operation.operands if each.type.is_tensor
                )
        return self._costs[value]

    def reads_memory(self, value: Value) -> bool:
        """Whether evaluating the value loads from the kernel's memory."""
        return any(op.name == "tt.load" for op in self.closure(value))

    def closure(self, value: Value) -> list[Op]:
        """The lazy ops that evaluating the value runs."""
        found: dict[Op, None] = {}
        pending = [value]
        while pending:
            each = pending.pop()
            operation = each.definition
            if operation is None or operation in found or each in self.materialized or not kinds.is_lazy(operation):
                continue
            found[operation] = None
            pending += operation.operands
        return list(found)

    def buffers_read(self, value: Value) -> set[tuple[Value, bool]]:
        """Values that are not lazy and that evaluating `value` reads, and whether they are read at another place."""
        found: set[tuple[Value, bool]] = set()
        seen: set[tuple[Value, bool]] = set()
        pending = [(value, False)]
        while pending:
            each, moved = pending.pop()
            if (each, moved) in seen or not each.type.is_tensor:
                continue
            seen.add((each, moved))
            operation = each.definition
            if operation is None or each in self.materialized or not kinds.is_lazy(operation):
                found.add((each, moved))
                continue
            moved = moved or operation.name in ("tt.broadcast", "tt.trans", "tt.reshape", "tt.split", "tt.expand_dims")
            pending += [(operand, moved) for operand in operation.operands]
        return found

    # Decisions.

    def _decide(self) -> None:
        """Last values first: what is materialised late stands for all its uses when earlier ones are asked."""
        for operation in reversed(self._order):
            if not kinds.is_lazy(operation):
                continue
            for value in operation.results:
                if self._needs_buffer(value, operation):
                    self.materialized.add(value)
            self._costs.clear()

    def _needs_buffer(self, value: Value, operation: Op) -> bool:
        sinks = self.sinks(value)
        if not sinks:
            return False
        if operation.name == "tt.load" and (value in self._forced or self._is_overwritten(operation, sinks)):
            return True
        cost = self.cost(value)
        if (
            self._is_deeper(value, sinks)
            and (operation.name == "tt.load" or cost > _WORTH_HOISTING)
            and self._computes(value)
        ):
            return True
        if cost >= _WORTH_ONE_PASS and self._is_repeated(value):
            return True
        return len(sinks) > 1 and cost >= _WORTH_A_BUFFER

    def _computes(self, value: Value) -> bool:
        """More than index arithmetic: floats, or memory."""
        return any(
            op.name == "tt.load" or op.result.type.is_float for op in self.closure(value) if op.name != "arith.constant"
        )

    def _is_overwritten(self, load: Op, sinks: frozenset[Op]) -> bool:
        """Whether something may write memory between the load and one of its sinks."""
        first = self.position[load]
        for write in self._writes:
            after = self.position[self.leader(write)]
            if first < self.position[write] and any(after < self.position[sink] for sink in sinks):
                return True
        return False

    def _is_deeper(self, value: Value, sinks: frozenset[Op]) -> bool:
        depth = len(self._loops_of(value))
        return any(len(self._loops[sink]) > depth for sink in sinks)

    def _is_repeated(self, value: Value) -> bool:
        return any(self._repeats(user, value) for user in self.users.get(value, ()))

    def _repeats(self, user: Op, value: Value) -> bool:
        if user.name == "tt.expand_dims":
            result = user.result
            return any(self._repeats(each, result) for each in self.users.get(result, ()))
        return user.name == "tt.broadcast" and user.result.type.count > value.type.count
