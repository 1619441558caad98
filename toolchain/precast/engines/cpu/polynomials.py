"""f32 functions as minimax polynomials. In: plain f32 forms. Out: plain f32 forms; errors in ulp are in the tests.

Every function keeps IEEE behaviour at zeros, subnormals, infinities and NaN. Coefficients are from low to high degree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from precast.engines.cpu import floats
from precast.engines.cpu.builder import Builder
from precast.engines.cpu.library import call_library
from precast.engines.cpu.machine import Machine
from precast.engines.cpu.values import Plain, Scalar, Vector

# exp(r) for |r| ≤ ln 2 / 2
_EXP = (
    1.0, 1.0, 0.4999999403953552, 0.1666652262210846, 0.04166829213500023, 0.008368532173335552,
    0.0013818296138197184,
)  # fmt: skip
# 2**r for |r| ≤ ½
_EXP2 = (
    1.0, 0.6931471824645996, 0.24022647738456726, 0.05550359934568405, 0.009618505835533142, 0.0013390806270763278,
    0.00015326461289077997,
)  # fmt: skip
# log(1 + f) = f - f²/2 + f³·q(f) for 1 + f in [√½, √2)
_LOG = (
    0.3333333134651184, -0.2500081956386566, 0.20001231133937836, -0.16623403131961823, 0.1420171707868576,
    -0.13159747421741486, 0.12761615216732025, -0.07635565102100372,
)  # fmt: skip
# tanh(x) = x + x³·q(x²) for |x| ≤ 0.6
_TANH = (-0.333332896232605, 0.1333169788122177, -0.05376208946108818, 0.02071559429168701, -0.005794396623969078)
# erf(x) = x + x·q(x²) for |x| ≤ 0.93
_ERF = (
    0.12837916612625122, -0.37612631916999817, 0.11283687502145767, -0.026858940720558167, 0.005199906416237354,
    -0.0008130010683089495, 8.316767343785614e-05,
)  # fmt: skip
# log(erfc(x)) for 0.92 ≤ x ≤ 4
_ERFC = (
    0.0001758797443471849, -1.1295208930969238, -0.6333345770835876, -0.10829400271177292, 0.02512866072356701,
    -0.004174656700342894, 0.0004352217074483633, -2.1162148186704144e-05,
)  # fmt: skip
# sin(r) = r + r³·q(r²) and cos(r) = 1 - r²/2 + r⁴·q(r²) for |r| ≤ π/4, in f64
_SIN = (-0.1666666663959361, 0.008333329147212413, -0.0001983925754039509, 2.7175721386419523e-06)
_COS = (0.04166664568468003, -0.0013887307381999373, 2.4431341194280098e-05)
# Adding it rounds to an integer in the low bits, above which it leaves the exponents' bias twice.
_MAGIC = 1.5 * 2.0**23 + 254
_EXPONENT = 0x7F800000
_AVX512 = "llvm.x86.avx512.mask"
_EXCEPTIONS_AS_EVER, _SMALLER_MAGNITUDE, _REST_OF_NEAREST = 4, 2, 8  # immediate operands
_LN2_HIGH, _LN2_LOW = 0.693145751953125, 1.42860677e-06  # the high part has 15 bits: its product with n is exact


class Polynomials:
    """The functions, written with one builder; multiply-adds are fused where the machine has them."""

    def __init__(self, builder: Builder, machine: Machine) -> None:
        self.b = builder
        self.fused = machine.fused
        self.native = machine.lanes(32)

    # Small steps.

    def op(self, mnemonic: str, x: Plain, y: Plain | float) -> Plain:
        return self.b.binary(mnemonic, x, self.like(x, y) if isinstance(y, (int, float)) else y)

    def like(self, x: Plain, value: float) -> Plain:
        return floats.filled(self.b, x, value, x.element)

    def fma(self, x: Plain, y: Plain | float, z: Plain | float) -> Plain:
        """x·y + z, in one rounding where that is cheap."""
        y = self.like(x, y) if isinstance(y, (int, float)) else y
        z = self.like(x, z) if isinstance(z, (int, float)) else z
        if self.fused:
            return self.b.like(x, f"math.fma {x.name}, {y.name}, {z.name} : {x.type}")
        return self.op("addf", self.op("mulf", x, y), z)

    def horner(self, x: Plain, coefficients: Sequence[float]) -> Plain:
        result = self.like(x, coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.fma(result, x, coefficient)
        return result

    def choose(self, condition: Plain, x: Plain, y: Plain) -> Plain:
        width = condition.width if isinstance(condition, Vector) else 1
        return self.b.plain(self.b.select(condition, x, y, width), width)

    def test(self, predicate: str, x: Plain, value: float) -> Plain:
        return self.b.compare(predicate, x, self.like(x, value))

    def absolute(self, x: Plain) -> Plain:
        return self.b.like(x, f"math.absf {x.name} : {x.type}")

    def copy_sign(self, x: Plain, sign: Plain) -> Plain:
        return self.b.like(x, f"math.copysign {x.name}, {sign.name} : {x.type}")

    def cast(self, operation: str, x: Plain, element: str) -> Plain:
        return self.b.cast(operation, x, element)

    # Exponentials.

    def exp(self, x: Plain) -> Plain:
        if not self._is_native(x):
            x = self._limited(x, -254 * math.log(2), 89.0)
        shifted = self.fma(x, math.log2(math.e), _MAGIC)
        n = self.op("subf", shifted, _MAGIC)
        r = self.fma(n, -_LN2_HIGH, x)
        r = self.fma(n, -_LN2_LOW, r)
        if self._is_native(x):  # what is infinite has no rest: any will do
            r = self._native("range.ps", [r, self.like(r, 0.5)], _SMALLER_MAGNITUDE)
        return self._scaled(self.horner(r, _EXP), n, shifted)

    def exp2(self, x: Plain) -> Plain:
        if self._is_native(x):
            rest = self._native("reduce.ps", [x], _REST_OF_NEAREST)
            return self._scaled(self.horner(rest, _EXP2), self.op("subf", x, rest), x)
        x = self._limited(x, -254.0, 129.0)
        shifted = self.op("addf", x, _MAGIC)
        n = self.op("subf", shifted, _MAGIC)
        return self._scaled(self.horner(self.op("subf", x, n), _EXP2), n, shifted)

    def _limited(self, x: Plain, low: float, high: float) -> Plain:
        """The lower limit's halves of a power are zeros: a result that underflowed would take x86 a hundred cycles."""
        x = self.choose(self.test("ogt", x, high), self.like(x, high), x)
        return self.choose(self.test("olt", x, low), self.like(x, low), x)

    def _scaled(self, value: Plain, n: Plain, shifted: Plain) -> Plain:
        """value · 2**n, `shifted` being n + magic: rounded once, or in two halves, for subnormal results."""
        if self._is_native(value):
            return self._native("scalef.ps", [value, n])
        bits = self.cast("arith.bitcast", shifted, "i32")
        # Where the exponents lie, those of magic are shifted out; half of n is there one bit lower.
        half = self.op("andi", self.op("shli", bits, 22), _EXPONENT)
        rest = self.b.binary("subi", self.op("shli", bits, 23), half)
        for power in (half, rest):
            value = self.b.binary("mulf", value, self.cast("arith.bitcast", power, "f32"))
        return value

    # AVX-512's own instructions, which take infinities and NaN as they are.

    def _is_native(self, x: Plain) -> bool:
        return self.native == 16 and isinstance(x, Vector) and x.width % 16 == 0

    def _native(self, name: str, operands: Sequence[Plain], mode: int | None = None) -> Plain:
        """An instruction on vectors of 16 lanes, one after the other."""
        b = self.b
        vectors = [each for each in operands if isinstance(each, Vector)]
        every, exceptions = b.constant(-1, "i16").name, b.constant(_EXCEPTIONS_AS_EVER, "i32").name
        given = [b.constant(mode, "i32").name] if mode is not None else []
        parts = []
        for first in range(0, vectors[0].width, 16):
            taken = [b.shuffle(each, each, range(first, first + 16)) for each in vectors]
            names = ", ".join([*(each.name for each in taken), *given, taken[0].name, every, exceptions])
            type_ = taken[0].type
            types = ", ".join([type_] * len(taken) + ["i32"] * len(given) + [type_, "i16", "i32"])
            call = f'llvm.call_intrinsic "{_AVX512}.{name}.512"({names}) : ({types}) -> {type_}'
            parts.append(Vector(b.emit(call), vectors[0].element, 16))
        return b.joined(parts)

    # Logarithms.

    def _log_parts(self, x: Plain) -> tuple[Plain, Plain]:
        """n as f32 and f with x = 2**n · (1 + f)."""
        small = self.test("olt", x, 2.0**-126)
        scaled = self.choose(small, self.op("mulf", x, 2.0**23), x)
        bits = self.cast("arith.bitcast", scaled, "i32")
        exponent = self.op("shrsi", self.op("subi", bits, 0x3F3504F3), 23)
        mantissa = self.b.binary("subi", bits, self.op("shli", exponent, 23))
        n = self.cast("arith.sitofp", exponent, "f32")
        n = self.choose(small, self.op("subf", n, 23.0), n)
        return n, self.op("subf", self.cast("arith.bitcast", mantissa, "f32"), 1.0)

    def _log1p_rest(self, f: Plain) -> Plain:
        """log(1 + f) - f."""
        square = self.op("mulf", f, f)
        cubic = self.op("mulf", square, f)
        return self.fma(self.horner(f, _LOG), cubic, self.op("mulf", square, -0.5))

    def _log_special(self, x: Plain, result: Plain) -> Plain:
        infinity = self.like(x, math.inf)
        result = self.choose(self.b.compare("oeq", x, infinity), infinity, result)
        result = self.choose(self.test("oeq", x, 0.0), self.like(x, -math.inf), result)
        return self.choose(
            self.test("uge", x, 0.0), self.choose(self.b.compare("uno", x, x), x, result), self.like(x, math.nan)
        )

    def log(self, x: Plain) -> Plain:
        n, f = self._log_parts(x)
        low = self.fma(n, _LN2_LOW, self._log1p_rest(f))
        return self._log_special(x, self.fma(n, _LN2_HIGH, self.op("addf", f, low)))

    def log2(self, x: Plain) -> Plain:
        n, f = self._log_parts(x)
        rest = self._log1p_rest(f)
        # 1/ln 2 in two parts: the product with f keeps its low bits.
        high, low = 1.4426950216293335, 1.9259629911266175e-08
        if not self.fused:
            return self._log_special(x, self._log2_wide(n, f, rest))
        tail = self.fma(f, low, self.op("mulf", rest, high))
        return self._log_special(x, self.op("addf", n, self.fma(f, high, tail)))

    def _log2_wide(self, n: Plain, f: Plain, rest: Plain) -> Plain:
        """Without fused multiply-add the product is made in f64."""
        wide_f, wide_rest = self.cast("arith.extf", f, "f64"), self.cast("arith.extf", rest, "f64")
        product = self.op("mulf", self.b.binary("addf", wide_f, wide_rest), math.log2(math.e))
        total = self.b.binary("addf", self.cast("arith.extf", n, "f64"), product)
        return self.cast("arith.truncf", total, "f32")

    # Hyperbolic tangent and the error function.

    def tanh(self, x: Plain) -> Plain:
        magnitude = self.absolute(x)
        square = self.op("mulf", x, x)
        small = self.fma(self.op("mulf", square, magnitude), self.horner(square, _TANH), magnitude)
        power = self.exp(self.op("addf", magnitude, magnitude))
        quotient = self.b.binary("divf", self.like(x, 2.0), self.op("addf", power, 1.0))
        large = self.b.binary("subf", self.like(x, 1.0), quotient)
        return self.copy_sign(self.choose(self.test("olt", magnitude, 0.6), small, large), x)

    def erf(self, x: Plain) -> Plain:
        magnitude = self.absolute(x)
        square = self.op("mulf", x, x)
        small = self.fma(x, self.horner(square, _ERF), x)
        bounded = self.choose(self.test("ogt", magnitude, 4.0), self.like(x, 4.0), magnitude)
        tail = self.exp(self.horner(bounded, _ERFC))
        large = self.copy_sign(self.b.binary("subf", self.like(x, 1.0), tail), x)
        return self.choose(self.test("olt", magnitude, 0.925), small, large)

    # Trigonometric functions.

    def sin(self, x: Plain) -> Plain:
        return self.choose(self.test("oeq", x, 0.0), x, self._circular(x, "sin", 0))

    def cos(self, x: Plain) -> Plain:
        return self._circular(x, "cos", 1)

    def _circular(self, x: Plain, name: str, phase: int) -> Plain:
        """In f64 up to 2**20; a vector with a larger lane goes through the C library."""
        large = self._any(self.test("ugt", self.absolute(x), 2.0**20))
        return self.b.branch(
            large, [x], lambda: [call_library(self.b, name, [x])], lambda: [self._circular_small(x, phase)]
        )[0]

    def _any(self, mask: Plain) -> Scalar:
        if isinstance(mask, Scalar):
            return mask
        return self.b.scalar(f"vector.reduction <or>, {mask.name} : {mask.type} into i1", "i1")

    def _circular_small(self, x: Plain, phase: int) -> Plain:
        wide = self.cast("arith.extf", x, "f64")
        n = self.op("mulf", wide, 2 / math.pi)
        n = self.b.like(n, f"math.roundeven {n.name} : {n.type}")
        # π/2 in two parts, the first of 33 bits.
        r = self.fma(n, -1.5707963267341256, wide)
        r = self.fma(n, -6.077100506506192e-11, r)
        square = self.op("mulf", r, r)
        sine = self.fma(self.op("mulf", square, r), self.horner(square, _SIN), r)
        fourth = self.op("mulf", square, square)
        cosine = self.fma(self.horner(square, _COS), fourth, self.fma(square, -0.5, 1.0))
        quadrant = self.op("addi", self.cast("arith.fptosi", n, "i32"), phase)
        odd = self._bit(quadrant, 1)
        value = self.cast("arith.truncf", self.choose(odd, cosine, sine), "f32")
        return self.choose(self._bit(quadrant, 2), self.b.like(value, f"arith.negf {value.name} : {value.type}"), value)

    def _bit(self, x: Plain, bit: int) -> Plain:
        masked = self.op("andi", x, bit)
        return self.b.compare("ne", masked, self.like(masked, 0))

    def rsqrt(self, x: Plain) -> Plain:
        root = self.b.like(x, f"math.sqrt {x.name} : {x.type}")
        return self.b.binary("divf", self.like(x, 1.0), root)
