"""What is computed where. In: a function's IR. Out: users, sinks, store groups, and the values that get a buffer.

A lazy value is evaluated again in each sink's loop nest. It is materialised when that would be wrong (memory it reads
is written before a sink) or wasteful (expensive with several sinks, used in a deeper loop, repeated by a broadcast).
Each fact is found once for each value, from its operands' or from its users': the time grows with the number of ops.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace

from precast.engines.cpu import kinds
from precast.engines.cpu.aliasing import Addresses
from precast.engines.cpu.ir import Block, Function, Op, Value
from precast.engines.cpu.shapes import MOVES

_WORTH_A_BUFFER = 6.0
_WORTH_HOISTING = 1.0
_WORTH_ONE_PASS = 3.0
_MOVED = ("tt.broadcast", "tt.trans", "tt.reshape", "tt.split")


@dataclass(frozen=True)
class Sinks:
    """The ops in whose nests a value is evaluated, or that define the buffer it goes into, in summary."""

    any: Op | None = None
    several: bool = False
    latest: int = -1  # position in program order
    deepest: int = 0  # loops around
    # Stores among them, and whether they use the value at another place; asked only of what reads memory.
    stores: frozenset[tuple[Op, bool]] = frozenset()

    def joined(self, other: Sinks) -> Sinks:
        if self.any is None or self is other:
            return other
        if other.any is None:
            return self
        return Sinks(
            self.any,
            self.several or other.several or self.any is not other.any,
            max(self.latest, other.latest),
            max(self.deepest, other.deepest),
            self.stores if self.stores >= other.stores else self.stores | other.stores,
        )

    def moved(self) -> Sinks:
        stores = frozenset((store, True) for store, _ in self.stores)
        return Sinks(self.any, self.several, self.latest, self.deepest, stores)


class Analysis:
    """Facts about one function, computed once."""

    def __init__(self, function: Function, strict: bool = False) -> None:
        self.users: dict[Value, list[Op]] = {}
        self.position: dict[Op, int] = {}
        self._order: list[Op] = []
        self._loops: dict[Op, tuple[Op, ...]] = {}
        self._addresses = Addresses(function, strict)
        self._number(function.blocks, ())
        self.groups: dict[Op, tuple[Op, ...]] = {}  # a store to the stores that are emitted together with it
        for blocks in [function.blocks, *(region for op in self._order for region in op.regions)]:
            for block in blocks:
                self._group_stores(block)
        self._sinks: dict[Value, Sinks] = {}
        self._costs: dict[Value, float] = {}
        self._loads: set[Value] = set()  # whose evaluation loads from memory
        self._computed: set[Value] = set()  # whose evaluation is more than index arithmetic
        self.materialized: set[Value] = set()
        for operation in self._order:
            self._look_at_operands(operation)
        self._number_writes()
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
                if kinds.is_by_element(operation):
                    for operand in kinds.inputs(operation)[len(operation.operands) :]:
                        self.users.setdefault(operand, []).append(operation)
                    continue
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

    def innermost_loop(self, operation: Op) -> Op | None:
        loops = self._loops[operation]
        return loops[-1] if loops else None

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
        overlap = self._addresses.may_overlap
        return same_shape and not any(overlap(each.operands[0], store.operands[0]) for each in group)

    def _breaks(self, operation: Op) -> bool:
        return operation.name in ("tt.load", *kinds.BARRIERS) or kinds.is_sink(operation) or bool(operation.regions)

    def _close(self, group: list[Op]) -> None:
        for store in group:
            self.groups[store] = tuple(group)

    def leader(self, operation: Op) -> Op:
        """The op in whose place a store is emitted: the last of its group."""
        group = self.groups.get(operation)
        return group[-1] if group else operation

    def _number_writes(self) -> None:
        """For each write and barrier, in program order, the first place from there on where one takes effect."""
        found = [(self.position[op], self.position[self.leader(op)]) for op in self._order if kinds.is_ordered(op)]
        self._write_positions = [position for position, _ in found]
        effects = [effect for _, effect in found]
        for index in reversed(range(len(effects) - 1)):
            effects[index] = min(effects[index], effects[index + 1])
        self._first_effects = effects

    # Sinks and costs.

    def _look_at_operands(self, operation: Op) -> None:
        """What evaluating a lazy op's result costs and does, were nothing materialised."""
        if not kinds.is_lazy(operation):
            return
        tensors = [each for each in kinds.inputs(operation) if each.type.is_tensor]
        loads = bool(kinds.loads_of(operation)) or any(each in self._loads for each in tensors)
        floats = operation.results[0].type.is_float and operation.name != "arith.constant"
        computed = loads or floats or any(each in self._computed for each in tensors)
        cost = min(kinds.own_cost(operation) + sum(self._costs.get(each, 1.0) for each in tensors), 1e6)
        for result in operation.results:
            self._costs[result] = cost
            if loads:
                self._loads.add(result)
            if computed:
                self._computed.add(result)

    def sinks(self, value: Value) -> Sinks:
        """Where the value is evaluated."""
        if value not in self._sinks:
            found = Sinks()
            for user in self.users.get(value, ()):
                found = found.joined(self._sinks_through(user, value))
            self._sinks[value] = found
        return self._sinks[value]

    def _sinks_through(self, user: Op, value: Value) -> Sinks:
        if not kinds.is_lazy(user):
            return self._sink(self.leader(user), value in self._loads)
        found = Sinks()
        for result in user.results:
            through = self._sink(user, False) if result in self.materialized else self.sinks(result)
            found = found.joined(through)
        if kinds.is_by_element(user):
            found = replace(found, deepest=found.deepest + 1)
        elsewhere = user.name in _MOVED or kinds.is_by_element(user)
        return found.moved() if found.stores and elsewhere else found

    def _sink(self, operation: Op, reads: bool) -> Sinks:
        stores: Iterable[Op] = ()
        if reads and operation.name in kinds.WRITES:
            stores = self.groups.get(operation, (operation,))
        pairs = frozenset((store, False) for store in stores)
        return Sinks(operation, False, self.position[operation], len(self._loops[operation]), pairs)

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
            pending += kinds.inputs(operation)
        return list(found)

    def reads_memory(self, value: Value) -> bool:
        """Whether evaluating the value loads from the kernel's memory."""
        return any(kinds.loads_of(op) for op in self.closure(value))

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
            moved = moved or operation.name in (*_MOVED, "tt.expand_dims") or kinds.is_by_element(operation)
            pending += [(operand, moved) for operand in kinds.inputs(operation)]
        return found

    # Decisions.

    def _decide(self) -> None:
        """Last values first: what is materialised late stands for all its uses when earlier ones are asked."""
        for operation in reversed(self._order):
            if kinds.is_lazy(operation):
                self.materialized.update(each for each in operation.results if self._needs_buffer(each, operation))

    def _needs_buffer(self, value: Value, operation: Op) -> bool:
        sinks = self.sinks(value)
        if sinks.any is None:
            return False
        reads = kinds.loads_of(operation)
        if reads and (self._overlaps(operation, sinks) or self._is_overwritten(operation, sinks)):
            return True
        cost = self._costs[value]
        deeper = sinks.deepest > len(self._loops_of(value))
        if deeper and (operation.name == "tt.load" or cost > _WORTH_HOISTING) and value in self._computed:
            return True
        if cost >= _WORTH_ONE_PASS and self._is_repeated(value):
            return True
        return sinks.several and cost >= _WORTH_A_BUFFER

    def _overlaps(self, operation: Op, sinks: Sinks) -> bool:
        """Whether a store's own nest loads at other places than it writes, in memory that may be the same. Elements of
        an atomic operation may share a place, which is what it is for: the others have written it meanwhile."""
        overlap = self._addresses.may_overlap
        return any(
            overlap(load.operands[0], store.operands[0], moved or load is not operation or store.name in kinds.ATOMICS)
            for load in kinds.loads_of(operation)
            for store, moved in sinks.stores
        )

    def _is_overwritten(self, load: Op, sinks: Sinks) -> bool:
        """Whether something may write memory between the load and one of its sinks."""
        following = bisect_right(self._write_positions, self.position[load])
        return following < len(self._first_effects) and self._first_effects[following] < sinks.latest

    def _is_repeated(self, value: Value) -> bool:
        return any(self._repeats(user, value) for user in self.users.get(value, ()))

    def _repeats(self, user: Op, value: Value) -> bool:
        if user.name == "tt.expand_dims":
            result = user.result
            return any(self._repeats(each, result) for each in self.users.get(result, ()))
        return user.name == "tt.broadcast" and user.result.type.count > value.type.count


def find_widened(function: Function) -> frozenset[Value]:
    """Integer tensors in whose computation an index is widened: their form depends on what they are wanted for."""
    found: set[Value] = set()
    for operation in function.operation.walk():
        for argument, start in _carried(operation):
            if start in found:
                found.add(argument)
        result = operation.results[0] if operation.results else None
        if result is None or not result.type.is_tensor or result.type.is_float or result.type.element == "i1":
            continue
        widens = operation.name in ("arith.extsi", "arith.index_cast")
        passes_on = operation.name.startswith("arith.") or operation.name in MOVES
        if widens or (passes_on and any(each in found for each in operation.operands)):
            found.update(operation.results)
    return frozenset(found)


def _carried(operation: Op) -> list[tuple[Value, Value]]:
    """What a loop hands on, with what it begins with."""
    if operation.name != "scf.for":
        return []
    starts = operation.operands[3:]
    pairs = [*zip(operation.body.arguments[1:], starts, strict=True), *zip(operation.results, starts, strict=True)]
    return pairs
