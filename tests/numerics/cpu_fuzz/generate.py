"""Random block programs. In: a seed. Out: a program whose result is determined, but for the bounds on inexact floats.

What is left undefined is not written: divisors of zero, addresses outside, two elements of one store at one place,
accesses through two names of one memory without a barrier (unless the program is strict).
"""

from __future__ import annotations

from cpu_fuzz.draw_folds import Folds
from cpu_fuzz.draw_memory import TABLE
from cpu_fuzz.program import FLOATS, INTEGERS, SMALL_FLOATS, Array, Number, Op, Program, Type, Value


def generate(seed: int) -> Program:
    return _Generator(seed).run()


class _Generator(Folds):
    """The program as a whole."""

    def run(self) -> Program:
        self.declare()
        for _ in range(int(self.rng.integers(6, 22))):
            self.statement()
        for value in [each for each in self.values if each.type.shape][-3:]:
            self.store_result(value)
        if self.program.seed % 8 == 0:
            self.product()
        if self.program.seed % 40 == 4:
            self.fold()
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
