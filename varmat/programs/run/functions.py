"""Elementary functions as LLVM code, for numbers and for vectors; needs llvmlite.

A function of vectors computes each lane as the function of numbers does, so the digits of a result
do not depend on where in an array the element lies. Errors are at most 2 units in the last place.
Special values are as NumPy's: nan, infinities, zeros with their signs, subnormal numbers.

Arguments are reduced by the method of Cody and Waite, with fused multiplications: a product with
a constant of two or three doubles is subtracted without rounding errors that matter. Polynomials
are Chebyshev interpolants. The logarithms follow fdlibm (Sun Microsystems, 1993).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial, partialmethod
from typing import Any, TypeAlias, TypeVar

from llvmlite import binding, ir

from varmat.locks import Once
from varmat.programs.run.compiler import PURE, Compiled, Module

__all__ = ["LANES", "PARTS", "SUPPORTED", "Functions"]

_DOUBLE, _TRUTH, _INTEGER = ir.DoubleType(), ir.IntType(1), ir.IntType(64)
_FEATURES = binding.get_host_cpu_features()
_HAS_AVX512 = bool(_FEATURES.get("avx512f", False))
# Processors that do not tell, of other kinds than x86, have fused multiplications.
_HAS_FMA = bool(_FEATURES.get("fma", True))
# Lanes of a vector that this machine computes fastest with.
LANES = 8 if _HAS_AVX512 else 4

# --- constants: pairs and triples of doubles sum to the number ---

_LN2 = (0.6931471805599453, 2.3190468138462996e-17)
_LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)
_LOG10_E = (0.4342944819032518, 1.098319650216765e-17)
_LOG10_2 = (0.3010299956639812, -2.8037281277851704e-18)
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_MANTISSA_BITS = (1 << 52) - 1
_ONE_BITS = 0x3FF << 52
# The upper half of the digits of a number.
_UPPER_BITS = -1 << 27
# The sum with a small whole number k holds k in its lowest bits; adding it rounds to whole numbers.
_TO_WHOLE = 1.5 * 2.0**52
_TINY = 2.0**-1022
# Beyond, whole multiples of pi / 2 are no longer exact.
_FAR = 2.0**30

# Coefficients, lowest power first.
# (exp(r) - 1 - r) / r**2 in r, where abs(r) <= log(2) / 2
_EXP = (
    0.5, 0.1666666666666667, 0.04166666666666667, 0.00833333333332612, 0.0013888888888883737,
    0.00019841269874873975, 2.480158732558584e-05, 2.755725533255441e-06, 2.7557273594799413e-07,
    2.510524515390137e-08, 2.0914707069612355e-09,
)  # fmt: skip
# (log((1 + s) / (1 - s)) / s - 2) / z in z = s**2, where 1 + s and 1 - s are as sqrt(2) and 1
_LOG = (
    0.666666666666667, 0.3999999999989924, 0.2857142862609589, 0.2222221111514416,
    0.18182890556695602, 0.1533167403016786, 0.1461703754879165,
)  # fmt: skip
# the same less 2 / 3 and by z, of relative error 2**-55, for powers
_POWER = (
    0.4, 0.28571428571429364, 0.22222222221656232, 0.18181818335314404,
    0.15384594970895457, 0.13334804238225345, 0.11706248540922386, 0.11723051028097753,
)  # fmt: skip
# (sin(r) / r - 1) / z and (cos(r) - 1 + z / 2) / z**2 in z = r**2, where abs(r) <= pi / 4
_SIN = (
    -0.16666666666666666, 0.008333333333330948, -0.0001984126983675712, 2.755731610179909e-06,
    -2.5051131688000297e-08, 1.5918117983848815e-10,
)  # fmt: skip
_COS = (
    0.041666666666666664, -0.0013888888888887398, 2.4801587298764778e-05, -2.7557317271258515e-07,
    2.0876146170183976e-09, -1.1382625349447592e-11,
)  # fmt: skip
# (arctan(t) / t - 1) / z in z = t**2, where abs(t) <= tan(pi / 8)
_ARCTAN = (
    -0.3333333333333333, 0.19999999999995513, -0.1428571428466518, 0.11111111015146714,
    -0.0909090457366906, 0.07692183087342026, -0.06664509989818045, 0.058581362519061465,
    -0.05085383488842831, 0.03922974453661223, -0.019174543572021332,
)  # fmt: skip

# --- functions in terms of others ---


T = TypeVar("T")
# A callback that applies a function, by its name, to values and Python numbers.
Apply: TypeAlias = Callable[..., T]


def _sign(f: Apply[T], x: T) -> T:
    # The sum turns -0.0 into 0.0, and keeps nan.
    other = f("where", f("less", x, 0.0), -1.0, f("add", x, 0.0))
    return f("where", f("greater", x, 0.0), 1.0, other)


def _larger(f: Apply[T], order: str, passes: int, *x: T) -> T:
    """Return the first operand where it comes first in an order, or where an operand is nan."""
    return f("where", f("logical_or", f(order, *x), f("isnan", x[passes])), *x)


def _sinh(f: Apply[T], x: T) -> T:
    # Half of exp(y) - 1 and half of 1 - exp(-y). The bound is for inf, because inf / inf is nan.
    size = f("absolute", x)
    half = f("half_expm1", size)
    less = f("add", half, half)
    less = f("divide1p", f("where", f("less", less, 1e308), less, 1e308))
    result = f("add", half, f("multiply", 0.5, less))
    # Halves of subnormal numbers are rounded.
    return f("copysign", f("where", f("less", size, 1e-9), size, result), x)


def _cosh(f: Apply[T], x: T) -> T:
    half = f("half_exp", f("absolute", x))
    return f("add", half, f("divide", 0.25, half))


def _tanh(f: Apply[T], x: T) -> T:
    half = f("half_expm1", f("multiply", -2.0, f("absolute", x)))
    return f("copysign", f("divide1p", half), x)


def _exp_of_minus(f: Apply[T], x: T) -> T:
    return f("exp", f("negative", f("absolute", x)))


def _expit(f: Apply[T], x: T) -> T:
    less = f("divide1p", _exp_of_minus(f, x))
    return f("where", f("less", x, 0.0), less, f("subtract", 1.0, less))


def _log1p_exp(f: Apply[T], x: T) -> T:
    return f("add", f("maximum", x, 0.0), f("log1p", _exp_of_minus(f, x)))


def _logaddexp(f: Apply[T], x: T, y: T) -> T:
    e = _exp_of_minus(f, f("subtract", x, y))
    unequal = f("add", f("maximum", x, y), f("log1p", e))
    # The difference of equal infinities is nan.
    return f("where", f("equal", x, y), f("add", x, _LN2[0]), unequal)


def _times_log(log: str, f: Apply[T], x: T, y: T) -> T:
    is_zero = f("logical_and", f("equal", x, 0.0), f("logical_not", f("isnan", y)))
    return f("where", is_zero, 0.0, f("multiply", x, f(log, y)))


# Each takes a callback that applies a function by its name, and the operands. Functions that share
# a part, such as exp(-abs(x)), share its computation where the callback knows equal values.
PARTS: dict[str, Callable[..., Any]] = {
    "positive": lambda f, x: x,
    "square": lambda f, x: f("multiply", x, x),
    "reciprocal": lambda f, x: f("divide", 1.0, x),
    "sign": _sign,
    "maximum": lambda f, x, y: _larger(f, "greater", 0, x, y),
    "minimum": lambda f, x, y: _larger(f, "less", 0, x, y),
    "fmax": lambda f, x, y: _larger(f, "greater", 1, x, y),
    "fmin": lambda f, x, y: _larger(f, "less", 1, x, y),
    "isnan": lambda f, x: f("not_equal", x, x),
    "isinf": lambda f, x: f("equal", f("absolute", x), math.inf),
    "isfinite": lambda f, x: f("less", f("absolute", x), math.inf),
    "signbit": lambda f, x: f("less", f("copysign", 1.0, x), 0.0),
    "logical_not": lambda f, x: f("logical_xor", x, True),
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "expit": _expit,
    "log1p_exp": _log1p_exp,
    "log_expit": lambda f, x: f("negative", _log1p_exp(f, f("negative", x))),
    "logaddexp": _logaddexp,
    "xlogy": partial(_times_log, "log"),
    "xlog1py": partial(_times_log, "log1p"),
}

# --- functions in LLVM's terms ---

# Sums of products, "accumulate", may round once instead of twice, as BLAS does. Other sums and
# differences may not, so that x * y - y * x is zero.
CONTRACT = ("contract",)

_ARITHMETIC = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}
_ORDERS = {
    "equal": "==", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
_LOGICAL = {"logical_and": "and_", "logical_or": "or_", "logical_xor": "xor"}
_INTRINSICS = {"absolute": "fabs"} | {
    name: name for name in ("fabs", "sqrt", "copysign", "rint", "floor", "ceil", "trunc")
}
# Some are for parts: x / (1 + x), and half of exp(x) or of expm1(x), which overflow later.
_WRITTEN = {
    "arctan", "cos", "divide1p", "exp", "exp2", "expm1", "half_exp", "half_expm1", "log", "log10",
    "log1p", "log2", "power", "sin",
}  # fmt: skip
SUPPORTED = frozenset(
    {"negative", "not_equal", "where"}.union(
        _ARITHMETIC, _ORDERS, _LOGICAL, _INTRINSICS, _WRITTEN, PARTS
    )
)


class Functions:
    """Functions of numbers or of vectors, in a module.

    Parameters
    ----------
    module : Module
        The module for the code of functions that are called.
    width : int
        Lanes of a vector: `LANES`, or 1 for numbers.

    Attributes
    ----------
    kind, truth : llvmlite.ir.Type
        The types of a value, and of its comparison with another.
    """

    def __init__(self, module: Module, width: int) -> None:
        self.module, self.width = module, width
        self.kind, self.truth, self._integers = (
            t if width == 1 else ir.VectorType(t, width) for t in (_DOUBLE, _TRUTH, _INTEGER)
        )
        self._suffix = "f64" if width == 1 else f"v{width}f64"

    def constant(self, x: float | bool) -> ir.Constant:
        """Return a number or a truth value, in all lanes."""
        return self._constant(x, self.truth if isinstance(x, bool) else self.kind)

    def apply(self, builder: ir.IRBuilder, name: str, *operands: Any) -> ir.Value:
        """Apply a function of `SUPPORTED` to values or Python numbers."""
        if name in PARTS:
            return PARTS[name](partial(self.apply, builder), *operands)
        x = [self.constant(v) if isinstance(v, (float, bool)) else v for v in operands]
        if name in _ARITHMETIC:
            return getattr(builder, _ARITHMETIC[name])(*x, flags=CONTRACT * (name == "multiply"))
        if name == "accumulate":
            return builder.fadd(*x, flags=CONTRACT)
        if name in _ORDERS:
            return builder.fcmp_ordered(_ORDERS[name], *x)
        if name in _LOGICAL:
            return getattr(builder, _LOGICAL[name])(*x)
        if name in _INTRINSICS:
            return self._intrinsic(builder, _INTRINSICS[name], *x)
        if name in _WRITTEN:
            return self._call(builder, name, *x)
        other = {"negative": builder.fneg, "where": builder.select}
        return builder.fcmp_unordered("!=", *x) if name == "not_equal" else other[name](*x)

    def _constant(self, x: float | bool, kind: ir.Type) -> ir.Constant:
        return ir.Constant(kind, x if self.width == 1 else [x] * self.width)

    def _integer(self, x: int) -> ir.Constant:
        return self._constant(x, self._integers)

    def _intrinsic(
        self,
        b: ir.IRBuilder,
        name: str,
        *x: ir.Value,
        result: ir.Type | None = None,
        suffix: str | None = None,
    ) -> ir.Value:
        name = f"llvm.{name}.{suffix or self._suffix}"
        kind = ir.FunctionType(result or self.kind, [v.type for v in x])
        function = self.module.globals.get(name) or ir.Function(self.module, kind, name)
        return b.call(function, x)

    def _fma(self, b: ir.IRBuilder, x: Any, y: Any, z: Any, is_exact: bool = True) -> ir.Value:
        """Compute ``x * y + z``, as if rounded once, or twice if that is faster and harmless."""
        # Without an instruction LLVM would call the C library for each lane. The errors of the
        # product and of the sum are computed instead.
        x, y, z = (self.constant(v) if isinstance(v, float) else v for v in (x, y, z))
        if _HAS_FMA or not is_exact:
            return self._intrinsic(b, "fma" if _HAS_FMA else "fmuladd", x, y, z)
        product, upper = b.fmul(x, y), self._integer(_UPPER_BITS)
        highs = [b.bitcast(b.and_(b.bitcast(v, self._integers), upper), self.kind) for v in (x, y)]
        lows = [b.fsub(v, high) for v, high in zip((x, y), highs, strict=True)]
        error = b.fsub(b.fmul(*highs), product)
        for part in (b.fmul(highs[0], lows[1]), b.fmul(lows[0], highs[1]), b.fmul(*lows)):
            error = b.fadd(error, part)
        total = b.fadd(product, z)
        part = b.fsub(total, product)
        error = b.fadd(error, b.fadd(b.fsub(product, b.fsub(total, part)), b.fsub(z, part)))
        # Where something is infinite, the total says so.
        is_known = b.fcmp_ordered("==", error, error)
        return b.fadd(total, b.select(is_known, error, self.constant(0.0)))

    _near = partialmethod(_fma, is_exact=False)

    def _polynomial(self, b: ir.IRBuilder, x: ir.Value, powers: Sequence[float]) -> ir.Value:
        """Evaluate a polynomial by Estrin's scheme, whose chains of operations are short."""
        terms = [self.constant(c) for c in powers]
        while len(terms) > 1:
            pairs = zip(terms[::2], terms[1::2], strict=False)
            last = terms[-1:] if len(terms) % 2 else []
            terms = [self._near(b, high, x, low) for low, high in pairs] + last
            x = b.fmul(x, x)
        return terms[0]

    def _call(self, b: ir.IRBuilder, name: str, *x: ir.Value) -> ir.Value:
        """Call a function of `_WRITTEN`.

        Functions of vectors are inlined, because a call would spill all vector registers. Functions
        of numbers are compiled once in a process: a program may call them hundreds of times.
        """
        full, is_far = self.full_name(name), name.startswith("far")
        if full not in self.module.globals and (self.width == 1 or is_far):
            self.module.references.append(_compiled(name, self.width))
            f = ir.Function(self.module, ir.FunctionType(self.kind, [self.kind] * len(x)), full)
            f.attributes.update({*PURE, *(["cold"] * is_far)})
        elif full not in self.module.globals:
            written = _written(name, self.width)
            self.module.references += written.references
            for function in written.functions:
                self.module.globals.setdefault(function.name, function)
        return b.call(self.module.globals[full], x)

    def full_name(self, name: str) -> str:
        return f"varmat.{name}.{self._suffix}"

    def write(self, name: str) -> None:
        """Write a function of `_WRITTEN` into the module."""
        kind = ir.FunctionType(self.kind, [self.kind] * (1 + name.endswith("power")))
        f = _Written(self.module, kind, self.full_name(name))
        # Here, because what several modules and threads share must not change later.
        f.attributes.add("nounwind")
        if self.width > 1 and not name.startswith("far"):
            f.linkage = "internal"
            f.attributes.add("alwaysinline")
        special = {
            "arctan": self._arctan, "cos": self._sine, "divide1p": self._divide1p,
            "far_cos": self._far, "far_power": self._far, "far_sin": self._far,
            "power": self._power, "sin": self._sine,
        }  # fmt: skip
        other = self._logarithm if name.startswith("log") else self._exponential
        b = ir.IRBuilder(f.append_basic_block())
        written: Callable[..., ir.Value] = special.get(name, other)
        b.ret(written(b, name, *f.args))

    def _divide1p(self, b: ir.IRBuilder, name: str, x: ir.Value) -> ir.Value:
        """Compute ``x / (1 + x)`` where ``x > -1`` is finite, as if the sum were not rounded."""
        total, error = self._sum(b, self.constant(1.0), x)
        result = b.fdiv(x, total)
        # The derivative with respect to the sum is result / (1 + x) = result (1 - result).
        less = b.fmul(result, error)
        return b.fsub(result, self._fma(b, b.fneg(less), result, less))

    # --- exponentials ---

    def _exponential(
        self, b: ir.IRBuilder, name: str, x: ir.Value, more: ir.Value | None = None
    ) -> ir.Value:
        """Compute the exponential of x, or of the sum of x and far less."""
        start, less_one = x, name.endswith("expm1")
        # Results beyond are inf and 0, or -1. Comparisons are such that nan stays.
        most = 1100.0 if name == "exp2" else 800.0
        least = -40.0 if less_one else -most
        x = b.select(b.fcmp_unordered("<", x, self.constant(most)), x, self.constant(most))
        x = b.select(b.fcmp_unordered(">", x, self.constant(least)), x, self.constant(least))
        # x = k log(2) + r; for exp2, x = k + r / log(2)
        scale = 1.0 if name == "exp2" else _LOG2_E[0]
        k = self._to_whole(b, self._near(b, x, scale, _TO_WHOLE))
        if name == "exp2":
            r = b.fmul(b.fsub(x, k), self.constant(_LN2[0]))
        else:
            reduced = self._fma(b, k, -_LN2[0], x)  # not rounded
            r = self._near(b, k, -_LN2[1], reduced)
            r = r if more is None else b.fadd(r, more)
        tail, square = self._polynomial(b, r, _EXP), b.fmul(r, r)
        one, exponent = self.constant(1.0), k
        if name.startswith("half"):
            exponent = b.fsub(k, one)
        if not less_one:  # exp(x) = 2**k (1 + r + r**2 p)
            return self._scaled(b, b.fadd(one, self._near(b, square, tail, r)), exponent)
        # exp(x) - 1 = 2**k ((1 - 2**-k) + r + r**2 p)
        part = b.fsub(one, self._power_of_two(b, b.fneg(self._least(b, k, 1000.0))))
        total, error = self._sum(b, part, reduced)
        total = b.fadd(total, self._near(b, square, tail, self._near(b, k, -_LN2[1], error)))
        return self._intrinsic(b, "copysign", self._scaled(b, total, exponent), start)  # for -0.0

    def _sum(self, b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return the sum and its rounding error, where x is 0, 1 or larger than y."""
        total = b.fadd(x, y)
        return total, b.fadd(b.fsub(x, total), y)

    def _to_whole(self, b: ir.IRBuilder, x: ir.Value) -> ir.Value:
        """Return the whole number that was rounded by adding a number to `_TO_WHOLE`."""
        return b.fsub(x, self.constant(_TO_WHOLE))

    def _least(self, b: ir.IRBuilder, x: ir.Value, most: float) -> ir.Value:
        return b.select(b.fcmp_ordered("<", x, self.constant(most)), x, self.constant(most))

    def _power_of_two(self, b: ir.IRBuilder, k: ir.Value) -> ir.Value:
        """Compute ``2**k`` where it is a normal number."""
        bits = b.bitcast(b.fadd(k, self.constant(_TO_WHOLE + 1023.0)), self._integers)
        return b.bitcast(b.shl(bits, self._integer(52)), self.kind)

    def _scaled(self, b: ir.IRBuilder, x: ir.Value, k: ir.Value) -> ir.Value:
        """Compute ``x * 2**k``, rounded once, which may be subnormal, zero or infinite."""
        if self.width == 8 and _HAS_AVX512:
            masked = self.constant(0.0), ir.IntType(8)(255), ir.IntType(32)(4)
            return self._intrinsic(b, "x86.avx512.mask.scalef.pd", x, k, *masked, suffix="512")
        half = self._to_whole(b, self._near(b, k, 0.5, _TO_WHOLE))
        x = b.fmul(x, self._power_of_two(b, half))
        return b.fmul(x, self._power_of_two(b, b.fsub(k, half)))

    # --- logarithms ---

    def _logarithm(self, b: ir.IRBuilder, name: str, x: ir.Value) -> ir.Value:
        one = self.constant(1.0)
        bias = self.constant(2.0**52 + 1023)
        if name == "log1p":  # the logarithm of u + c, where u = 1 + x is rounded and c its error
            u = b.fadd(one, x)
            c = b.fsub(x, b.fsub(u, one))
        else:
            is_tiny = b.fcmp_ordered("<", x, self.constant(_TINY))
            u = b.select(is_tiny, b.fmul(x, self.constant(2.0**54)), x)
            bias = b.select(is_tiny, self.constant(2.0**52 + 1023 + 54), bias)
        k, f = self._parted(b, u, bias)
        if name == "log1p":
            scale = self._power_of_two(b, b.fneg(self._least(b, k, 1000.0)))
            f = self._fma(b, c, scale, f)
        # log(1 + f) = f - f**2 / 2 + s (f**2 / 2 + z p(z)), where s = f / (2 + f) and z = s**2
        s = b.fdiv(f, b.fadd(self.constant(2.0), f))
        z, half = b.fmul(s, s), b.fmul(b.fmul(self.constant(0.5), f), f)
        tail = self._near(b, z, self._polynomial(b, z, _LOG), half)
        result = self._in_base(b, name, k, f, half, s, tail)
        result = self._at_special(b, u, result)
        return self._intrinsic(b, "copysign", result, x) if name == "log1p" else result  # for -0.0

    def _parted(self, b: ir.IRBuilder, u: ir.Value, bias: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Find k and f of ``u = 2**k (1 + f)``, where 1 + f lies between sqrt(1/2) and sqrt(2)."""
        bits = b.add(b.bitcast(u, self._integers), self._integer(_ONE_BITS - _SQRT_HALF_BITS))
        k = b.or_(b.lshr(bits, self._integer(52)), self._integer(0x433 << 52))
        mantissa = b.and_(bits, self._integer(_MANTISSA_BITS))
        mantissa = b.bitcast(b.add(mantissa, self._integer(_SQRT_HALF_BITS)), self.kind)
        return b.fsub(b.bitcast(k, self.kind), bias), b.fsub(mantissa, self.constant(1.0))

    def _power(self, b: ir.IRBuilder, name: str, x: ir.Value, y: ir.Value) -> ir.Value:
        """Compute ``exp(y log(x))``; the logarithm is a sum of two numbers, of some 62 bits."""
        k, f = self._parted(b, x, self.constant(2.0**52 + 1023))
        # log(1 + f) = 2 s + s z (2/3 + z q(z)), where s = f / (2 + f) and z = s**2. Each of s, z,
        # their product and the first term of the second has an error that is known.
        total, error = self._sum(b, self.constant(2.0), f)
        s = b.fdiv(f, total)
        minus = b.fneg(s)
        ds = b.fdiv(self._fma(b, minus, error, self._fma(b, minus, total, f)), total)
        z = b.fmul(s, s)
        w = b.fmul(s, z)
        dw = self._fma(b, s, self._fma(b, s, s, b.fneg(z)), self._fma(b, s, z, b.fneg(w)))
        p = b.fmul(w, self.constant(_TWO_THIRDS[0]))
        tail = self._near(b, z, self._polynomial(b, z, _POWER), _TWO_THIRDS[1])
        low = self._near(b, dw, _TWO_THIRDS[0], self._fma(b, w, _TWO_THIRDS[0], b.fneg(p)))
        low = self._near(b, w, tail, low)
        ds = b.fadd(ds, ds)
        low = b.fadd(low, self._near(b, ds, z, ds))
        a = b.fmul(k, self.constant(_LN2[0]))
        low = b.fadd(low, self._near(b, k, _LN2[1], self._fma(b, k, _LN2[0], b.fneg(a))))
        for part in (b.fadd(s, s), p):
            a, error = self._sum(b, a, part)
            low = b.fadd(low, error)
        a, low = self._sum(b, a, low)
        product = b.fmul(y, a)
        error = self._near(b, y, low, self._fma(b, y, a, b.fneg(product)))
        size = self._intrinsic(b, "fabs", product)
        is_small = b.fcmp_ordered("<", size, self.constant(800.0))
        error = b.select(is_small, error, self.constant(0.0))
        result = self._exponential(b, "exp", product, error)
        total = b.fadd(x, self._intrinsic(b, "fabs", y))
        is_far = b.fcmp_unordered("<", x, self.constant(_TINY))
        is_far = b.or_(is_far, b.fcmp_unordered("==", total, self.constant(math.inf)))
        return self._replaced_far(b, is_far, result, name, x, y)

    def _at_special(self, b: ir.IRBuilder, u: ir.Value, result: ir.Value) -> ir.Value:
        """Set logarithms to -inf where u is 0, inf where it is inf, and nan where it has none."""
        if self.width == 8 and _HAS_AVX512:
            # One instruction; each digit is a result for a class of u, from nan to positive.
            table, i32 = self._integer(0x03530422), ir.IntType(32)
            masked = i32(0), ir.IntType(8)(255), i32(4)
            name = "x86.avx512.mask.fixupimm.pd"
            return self._intrinsic(b, name, result, u, table, *masked, suffix="512")
        zero = self.constant(0.0)
        result = b.select(b.fcmp_ordered("<", u, self.constant(math.inf)), result, u)
        is_zero = b.fcmp_ordered("==", u, zero)
        other = b.select(is_zero, self.constant(-math.inf), self.constant(math.nan))
        return b.select(b.fcmp_unordered(">", u, zero), result, other)

    def _in_base(
        self,
        b: ir.IRBuilder,
        name: str,
        k: ir.Value,
        f: ir.Value,
        half: ir.Value,
        s: ir.Value,
        tail: ir.Value,
    ) -> ir.Value:
        """Compute the logarithm of ``2**k (1 + f)`` in the base of a function."""
        if name in ("log", "log1p"):
            small = self._near(b, s, tail, b.fmul(k, self.constant(_LN2[1])))
            return self._fma(b, k, _LN2[0], b.fsub(f, b.fsub(half, small)))
        log = b.fsub(f, b.fsub(half, b.fmul(s, tail)))
        if name == "log2":
            return b.fadd(k, self._fma(b, log, _LOG2_E[0], b.fmul(log, self.constant(_LOG2_E[1]))))
        low = self._fma(b, log, _LOG10_E[1], b.fmul(k, self.constant(_LOG10_2[1])))
        return self._fma(b, k, _LOG10_2[0], self._fma(b, log, _LOG10_E[0], low))

    # --- trigonometric functions ---

    def _sine(self, b: ir.IRBuilder, name: str, x: ir.Value) -> ir.Value:
        # x = k pi / 2 + r
        moved = self._near(b, x, 2.0 / math.pi, _TO_WHOLE)
        k, r = self._to_whole(b, moved), x
        for part in _HALF_PI:
            r = self._fma(b, k, -part, r)
        z = b.fmul(r, r)
        sine = self._near(b, b.fmul(r, z), self._polynomial(b, z, _SIN), r)
        cosine = self._polynomial(b, z, _COS)
        cosine = self._near(b, b.fmul(z, z), cosine, self._near(b, z, -0.5, 1.0))
        quarter = b.bitcast(moved, self._integers)
        if name == "cos":
            quarter = b.add(quarter, self._integer(1))
        else:  # for the sign of zero
            sine = b.select(b.fcmp_ordered("==", x, self.constant(0.0)), x, sine)
        is_odd = b.icmp_signed("!=", b.and_(quarter, self._integer(1)), self._integer(0))
        result = b.bitcast(b.select(is_odd, cosine, sine), self._integers)
        sign = b.shl(b.lshr(quarter, self._integer(1)), self._integer(63))
        is_far = b.fcmp_ordered(">=", self._intrinsic(b, "fabs", x), self.constant(_FAR))
        return self._replaced_far(b, is_far, b.bitcast(b.xor(result, sign), self.kind), name, x)

    def _replaced_far(
        self, b: ir.IRBuilder, is_far: ir.Value, near: ir.Value, name: str, *x: ir.Value
    ) -> ir.Value:
        """Replace results in far lanes by results of the C library, if any lane is far."""
        is_any = is_far
        if self.width > 1:
            suffix = f"v{self.width}i1"
            is_any = self._intrinsic(b, "vector.reduce.or", is_far, result=_TRUTH, suffix=suffix)
        before = b.block
        with b.if_then(is_any):
            output = b.select(is_far, self._call(b, f"far_{name}", *x), near)
            far = b.block
        result = b.phi(self.kind)
        result.add_incoming(near, before)
        result.add_incoming(output, far)
        return result

    def _far(self, b: ir.IRBuilder, name: str, *x: ir.Value) -> ir.Value:
        return self._intrinsic(b, {"far_power": "pow"}.get(name, name.removeprefix("far_")), *x)

    def _arctan(self, b: ir.IRBuilder, name: str, x: ir.Value) -> ir.Value:
        one, quarter = self.constant(1.0), (_HALF_PI[0] / 2, _HALF_PI[1] / 2)
        size = self._intrinsic(b, "fabs", x)
        # The angles of (d, n) and of (1, size) differ by 0, pi / 4 or pi / 2.
        is_mid = b.fcmp_ordered(">", size, self.constant(math.sqrt(2.0) - 1.0))
        is_large = b.fcmp_ordered(">", size, self.constant(math.sqrt(2.0) + 1.0))

        def chosen(small: ir.Value, mid: ir.Value, large: ir.Value) -> ir.Value:
            return b.select(is_large, large, b.select(is_mid, mid, small))

        n = chosen(size, b.fsub(size, one), self.constant(-1.0))
        d = chosen(one, b.fadd(size, one), size)
        high, low = (
            chosen(self.constant(0.0), self.constant(item), self.constant(2.0 * item))
            for item in quarter
        )
        t = b.fdiv(n, d)
        z = b.fmul(t, t)
        total, error = self._sum(b, high, t)
        tail = self._near(b, b.fmul(t, z), self._polynomial(b, z, _ARCTAN), b.fadd(error, low))
        return self._intrinsic(b, "copysign", b.fadd(total, tail), x)


class _Written(ir.Function):  # type: ignore[misc]  # llvmlite has no types
    """A function that is put into several modules: its text is made once."""

    @cached_property
    def _text(self) -> str:
        return str(super().__str__())

    def __str__(self) -> str:
        return self._text


@Once
def _written(name: str, width: int) -> Module:
    module = Module()
    Functions(module, width).write(name)
    return module


@Once
def _compiled(name: str, width: int) -> Compiled:
    """Return a function as machine code, which other code finds by its name."""
    full = Functions(Module(), width).full_name(name)
    code = Compiled(_written(name, width))
    binding.add_symbol(full, code.address(full))
    return code
