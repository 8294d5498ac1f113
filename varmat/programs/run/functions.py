from __future__ import annotations
import decimal, math
import llvmlite.binding as llvm
from llvmlite import ir
WIDTH = 8
COMPARED = {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
FUNCTIONS = ("exp", "expm1", "log", "log1p")
DOUBLE, INT, INT32, BIT, BYTE, POINTER = ir.DoubleType(), ir.IntType(64), ir.IntType(32), ir.IntType(1), ir.IntType(8), ir.PointerType()
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
HAS_512 = llvm.get_host_cpu_features().get("avx512f", False)
SUPPORTED = frozenset({"add","subtract","multiply","divide","negative","sqrt","absolute","maximum","minimum","isfinite","isnan","where","logical_and","logical_or","logical_not",*COMPARED,*FUNCTIONS})

def fitted(f, low: float, high: float, degree: int) -> list[float]:
    """Coefficients of a polynomial through f at Chebyshev's points, where f takes and returns decimals."""
    D = decimal.Decimal
    points = [(D(low) + D(high)) / 2 + (D(high) - D(low)) / 2 * D(math.cos(math.pi * (i + 0.5) / (degree + 1))) for i in range(degree + 1)]
    slopes = [f(x) for x in points]
    for j in range(1, degree + 1):
        slopes[j:] = [(slopes[i] - slopes[i - 1]) / (points[i] - points[i - j]) for i in range(j, degree + 1)]
    powers = [slopes[-1]]
    for x, slope in zip(points[-2::-1], slopes[-2::-1], strict=True):
        powers = [a - x * b for a, b in zip([D(0), *powers], [*powers, D(0)], strict=True)]
        powers[0] += slope
    return [float(c) for c in powers]


with decimal.localcontext(decimal.Context(prec=60)):
    OF_EXP = fitted(lambda r: (r.exp() - 1 - r) / r**2, -0.3467, 0.3467, 10)
    OF_LOG = fitted(lambda z: (((1 + z.sqrt()) / (1 - z.sqrt())).ln() / z.sqrt() - 2) / z, 1e-9, 0.02945, 6)
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


class Lanes:
    """Arithmetic on numbers (width 1) or vectors."""

    def __init__(self, module: ir.Module, width: int) -> None:
        self.module, self.width = module, width
        self.kind, self.ints, self.bits = (t if width == 1 else ir.VectorType(t, width) for t in (DOUBLE, INT, BIT))
        self.suffix = "f64" if width == 1 else f"v{width}f64"
        self.functions = {}

    def of(self, x, kind=None):
        kind = kind or (self.bits if isinstance(x, bool) else self.kind)
        return ir.Constant(kind, x if self.width == 1 else [x] * self.width)

    def intrinsic(self, build, name: str, args, made=None, suffix=None):
        name = f"llvm.{name}.{suffix or self.suffix}"
        function = self.module.globals.get(name) or ir.Function(self.module, ir.FunctionType(made or self.kind, [a.type for a in args]), name)
        return build.call(function, args)

    def fma(self, b, x, y, z):
        return self.intrinsic(b, "fma", [x, y, z])

    def polynomial(self, b, x, powers):
        """By Estrin's scheme: short chains."""
        terms = [self.of(c) for c in powers]
        while len(terms) > 1:
            terms = [self.fma(b, terms[i + 1], x, terms[i]) if i + 1 < len(terms) else terms[i] for i in range(0, len(terms), 2)]
            x = b.fmul(x, x)
        return terms[0]

    def function(self, name: str) -> ir.Function:
        if name not in self.functions:
            f = ir.Function(self.module, ir.FunctionType(self.kind, [self.kind]), f"{name}.{self.width}")
            f.linkage = "internal"
            f.attributes.add("noinline" if self.width == 1 else "alwaysinline")
            b, (x,) = ir.IRBuilder(f.append_basic_block()), f.args
            b.ret(self.exponential(b, x, name == "expm1") if name in ("exp", "expm1") else self.logarithm(b, x, name == "log1p"))
            self.functions[name] = f
        return self.functions[name]

    def exponential(self, b, x, less_one: bool):
        most, least = 800.0, -40.0 if less_one else -800.0
        y = b.select(b.fcmp_unordered("<", x, self.of(most)), x, self.of(most))  # nan stays
        y = b.select(b.fcmp_unordered(">", y, self.of(least)), y, self.of(least))
        k = self.intrinsic(b, "rint", [b.fmul(y, self.of(1.4426950408889634))])
        r = self.fma(b, k, self.of(-LN2_LOW), self.fma(b, k, self.of(-LN2_HIGH), y))
        p = self.fma(b, b.fmul(r, r), self.polynomial(b, r, OF_EXP), r)
        one = self.of(1.0)
        return self.scaled(b, b.fadd(p, b.fsub(one, self.scaled(b, one, b.fneg(k))) if less_one else one), k)

    def scaled(self, b, x, k):
        """x 2**k, which may be subnormal, zero or infinite."""
        if self.width == WIDTH and HAS_512:
            given = [x, k, self.of(0.0), BYTE(255), INT32(4)]
            return self.intrinsic(b, "x86.avx512.mask.scalef.pd", given, suffix="512")
        kind = INT32 if self.width == 1 else ir.VectorType(INT32, self.width)
        return self.intrinsic(b, "ldexp", [x, b.fptosi(k, kind)], suffix=f"{self.suffix}.{self.suffix.replace('f64', 'i32')}")

    def logarithm(self, b, x, plus_one: bool):
        one = self.of(1.0)
        if plus_one:  # log(u) where u + c is 1 + x
            u = b.fadd(one, x)
            c = b.fsub(x, b.fsub(u, one))
            shift = self.of(0.0)
        else:
            small = b.fcmp_ordered("<", x, self.of(2.2250738585072014e-308))
            u, c = b.select(small, b.fmul(x, self.of(2.0**54)), x), None
            shift = b.select(small, self.of(-54.0), self.of(0.0))
        bits = b.bitcast(u, self.ints)
        # the exponent of u / sqrt(1/2), so that m lies between sqrt(1/2) and sqrt(2)
        up = b.sub(bits, self.of(0x3FE6A09E667F3BCD, self.ints))
        high = b.and_(up, self.of(-(1 << 52), self.ints))
        k = b.fadd(b.sitofp(b.ashr(up, self.of(52, self.ints)), self.kind), shift)
        m = b.bitcast(b.sub(bits, high), self.kind)
        f = b.fsub(m, one)
        if plus_one:
            scale = b.sub(self.of(0x3FF0000000000000, self.ints), high)
            scale = b.select(b.icmp_signed(">", scale, self.of(0, self.ints)), scale, self.of(0, self.ints))
            f = self.fma(b, c, b.bitcast(scale, self.kind), f)
        s = b.fdiv(f, b.fadd(self.of(2.0), f))
        z, half = b.fmul(s, s), b.fmul(self.of(0.5), b.fmul(f, f))
        tail = self.fma(b, s, self.fma(b, z, self.polynomial(b, z, OF_LOG), half), b.fmul(k, self.of(LN2_LOW)))
        made = b.fsub(b.fmul(k, self.of(LN2_HIGH)), b.fsub(b.fsub(half, tail), f))
        made = b.select(b.fcmp_ordered("==", u, self.of(math.inf)), u, made)
        made = b.select(b.fcmp_ordered(">", u, self.of(0.0)), made, self.of(math.nan))
        return b.select(b.fcmp_ordered("==", u, self.of(0.0)), self.of(-math.inf), made)


class Functions(Lanes):
    @property
    def truth(self): return self.bits
    def constant(self, x): return self.of(x)
    def apply(self, b, op, *x):
        if op in FUNCTIONS:
            return b.call(self.function(op), x)
        if op in ("add", "subtract", "multiply", "divide"):
            return getattr(b, {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}[op])(*x)
        if op in ("sqrt", "absolute"):
            return self.intrinsic(b, {"sqrt": "sqrt", "absolute": "fabs"}[op], x)
        if op in COMPARED:
            return (b.fcmp_unordered if op == "not_equal" else b.fcmp_ordered)(COMPARED[op], *x)
        if op in ("maximum", "minimum"):
            first = b.fcmp_ordered(">" if op == "maximum" else "<", *x)
            return b.select(b.or_(first, b.fcmp_unordered("uno", x[0], x[0])), *x)
        if op == "isfinite":
            return b.fcmp_ordered("<", self.intrinsic(b, "fabs", x), self.of(math.inf))
        if op == "isnan":
            return b.fcmp_unordered("uno", x[0], x[0])
        if op == "where":
            return b.select(*x)
        if op == "negative":
            return b.fneg(x[0])
        return b.not_(x[0]) if op == "logical_not" else {"logical_and": b.and_, "logical_or": b.or_}[op](*x)


def _expit(apply, number, x):
    e = apply("exp", apply("negative", apply("absolute", x)))
    r = apply("divide", number(1.0), apply("add", number(1.0), e))
    return apply("where", apply("greater_equal", x, number(0.0)), r, apply("multiply", e, r))

def _tanh(apply, number, x):
    e = apply("expm1", apply("multiply", number(-2.0), apply("absolute", x)))
    t = apply("divide", apply("negative", e), apply("add", number(2.0), e))
    return apply("where", apply("less", x, number(0.0)), apply("negative", t), t)

def _logaddexp(apply, number, x, y):
    e = apply("exp", apply("negative", apply("absolute", apply("subtract", x, y))))
    far = apply("add", apply("maximum", x, y), apply("log1p", e))
    return apply("where", apply("equal", x, y), apply("add", x, number(math.log(2))), far)

PARTS = {"expit": _expit, "tanh": _tanh, "logaddexp": _logaddexp}
