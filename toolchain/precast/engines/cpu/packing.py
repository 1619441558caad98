"""`tt.map_elementwise` with several elements to a call. In: a function's IR. Out: the IR with one element to a call.

Elements that follow one another in row-major order go into one call. Each operand becomes as many tensors as a call
takes of it; what a call returns is joined again.
"""

from __future__ import annotations

from precast.engines.cpu.errors import refuse
from precast.engines.cpu.expansion import Expansion, shaped
from precast.engines.cpu.ir import Op, Value


class PackedMap(Expansion):
    """One op being spelled out."""

    def run(self) -> None:
        operation = self.operation
        pack = int(operation.attributes.get("pack", 1))
        if pack == 1:
            self.written.append(operation)
            return
        count = operation.operands[0].type.count
        if count % pack:
            raise refuse(operation, f"it packs {pack} of {count} elements")
        parts = [part for each in operation.operands for part in self.take_apart(each, pack)]
        calls = Op("tt.map_elementwise", parts, [], {**operation.attributes, "pack": 1}, operation.regions)
        results = operation.results
        self.finish(calls, [Value(shaped(each, [count // pack])) for each in results for _ in range(pack)])
        for number, each in enumerate(results):
            joined = self.put_together(calls.results[number * pack : (number + 1) * pack])
            self.finish(Op("tt.reshape", [joined]), [each])

    def take_apart(self, x: Value, pack: int) -> list[Value]:
        """Every `pack`-th element from the first on, from the second on, …"""
        if pack == 1:
            return [x]
        halves = Op("tt.split", [self.reshape(x, [x.type.count // 2, 2])])
        type_ = shaped(x, [x.type.count // 2])
        self.finish(halves, [Value(type_), Value(type_)])
        even, odd = (self.take_apart(each, pack // 2) for each in halves.results)
        return [part for pair in zip(even, odd, strict=True) for part in pair]

    def put_together(self, parts: list[Value]) -> Value:
        """One tensor of which `take_apart` would make the parts."""
        if len(parts) == 1:
            return parts[0]
        even, odd = self.put_together(parts[::2]), self.put_together(parts[1::2])
        joined = self.emit("tt.join", [even, odd], shaped(even, [even.type.count, 2]))
        return self.reshape(joined, [2 * even.type.count])
