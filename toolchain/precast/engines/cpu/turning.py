"""Products that are cheaper the other way round. In: a function's IR. Out: the IR with turned products in their place.

q · kᵀ in a loop that q stays for would turn each k. Its transpose k · qᵀ takes k as it lies, and turns q once; what is
computed of it element by element, and reduced, is so of the transpose as well. Sums along its rows then run in lanes.
"""

from __future__ import annotations

from precast.engines.cpu import grouped
from precast.engines.cpu.ir import Function, Op, Type, Value
from precast.engines.cpu.machine import Machine
from precast.engines.cpu.shapes import is_turned

_DEEPEST = 16  # ops of a tensor that is computed of rows, columns and numbers alone


def turn_products(function: Function, machine: Machine) -> None:
    """Rewrites the function in place."""
    for loop in list(function.operation.walk()):
        if loop.name == "scf.for" and any(op.name == "tt.dot" for op in loop.body.operations):
            _Turning(loop, machine).run()


class _Turning:
    """A loop's body, and which of its values are known turned."""

    def __init__(self, loop: Op, machine: Machine) -> None:
        self.body = loop.body
        self.machine = machine
        ops = [op for op in loop.walk() if op is not loop]
        blocks = [block for op in [loop, *ops] for region in op.regions for block in region]
        self.inside = {value for op in ops for value in op.results}
        self.inside.update(value for block in blocks for value in block.arguments)
        self.users: dict[Value, list[Op]] = {}
        for op in ops:
            for value in op.operands:
                self.users.setdefault(value, []).append(op)
        self.turned: dict[Value, Value] = {}
        self.written: list[Op] = []

    def run(self) -> None:
        for operation in self.body.operations:
            if operation.name == "tt.dot":
                self._look_at_product(operation)
            elif any(each in self.turned for each in operation.operands):
                self._look_at_user(operation)
            self.written.append(operation)
        self.body.operations = self.written

    def _look_at_product(self, operation: Op) -> None:
        a, b, c = operation.operands
        if a in self.inside or b not in self.inside or not is_turned(b) or not _is_filled(c):
            return
        if grouped.find_group(self.machine, a.type, b.type, c.type.element) or not self._suits(operation.result):
            return
        assert b.definition
        operands = [b.definition.operands[0], self._turn(a), self._turn(c)]
        self._become(operation, self._write(operation, "tt.dot", operands, operation.result.type))

    def _suits(self, product: Value) -> bool:
        """Whether all that is made of a product can be made of its transpose."""
        made, pending = {product}, [product]
        while pending:
            for user in self.users.get(pending.pop(), ()):
                if _is_elementwise(user) and user.result not in made:
                    made.add(user.result)
                    pending.append(user.result)
        return all(self._takes_turned(user, made) for value in made for user in self.users.get(value, ()))

    def _takes_turned(self, user: Op, made: set[Value]) -> bool:
        first, *others = user.operands
        if user.name == "tt.dot":
            return first in made and not made.intersection(others)
        if user.name != "tt.reduce" and not _is_elementwise(user):
            return False
        return all(each in made or not each.type.is_tensor or _is_simple(each) for each in user.operands)

    def _look_at_user(self, operation: Op) -> None:
        """Of all that a turned product is used for, a product takes its transpose as it is."""
        operands = [self._turn(each) if each.type.is_tensor else each for each in operation.operands]
        if operation.name == "tt.reduce":
            operation.operands = operands
            operation.attributes = {**operation.attributes, "axis": 1 - operation.attributes["axis"]}
        else:
            self._become(operation, self._write(operation, operation.name, operands, operation.result.type))

    def _become(self, operation: Op, turned: Value) -> None:
        """Makes an op the transpose of what was written for it."""
        operation.name, operation.operands, operation.attributes = "tt.trans", [turned], {"order": (1, 0)}
        self.turned[operation.result] = turned

    def _turn(self, value: Value) -> Value:
        if value in self.turned:
            return self.turned[value]
        made = value.definition
        if made is not None and _is_filled(value):
            return self._write(made, made.name, made.operands, value.type)
        operation = Op("tt.trans", [value], [], {"order": (1, 0)}, [], [], made.where if made else None, self.body)
        return self._finish(operation, value.type)

    def _write(self, like: Op, name: str, operands: list[Value], type_: Type) -> Value:
        """An op like another one, whose result has the type of that one's transpose."""
        return self._finish(Op(name, operands, [], dict(like.attributes), [], [], like.where, self.body), type_)

    def _finish(self, operation: Op, type_: Type) -> Value:
        operation.results = [Value(Type(type_.element, type_.shape[::-1], type_.pointee), operation)]
        self.written.append(operation)
        return operation.result


def _is_elementwise(operation: Op) -> bool:
    family = operation.name.split(".")[0]
    return (family in ("arith", "math") or operation.name == "tt.fp_to_fp") and len(operation.results) == 1


def _is_filled(value: Value) -> bool:
    """Whether a tensor is one number, everywhere."""
    made = value.definition
    if made is None:
        return False
    return made.name == "tt.splat" or (made.name == "arith.constant" and bool(made.attributes["value"].splat))


def _is_simple(value: Value, depth: int = 0) -> bool:
    """Whether a tensor is computed of rows, columns and numbers alone, so that it is as easily read turned."""
    made = value.definition
    if made is None or depth > _DEEPEST:
        return False
    if _is_filled(value) or made.name == "tt.broadcast":
        return True
    tensors = [each for each in made.operands if each.type.is_tensor]
    return _is_elementwise(made) and bool(tensors) and all(_is_simple(each, depth + 1) for each in tensors)
