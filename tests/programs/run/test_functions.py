"""Elementary functions as LLVM code: errors against mpmath, and special values against NumPy."""

import ctypes
import math
from functools import cache

import mpmath as mp
import numpy as np
import pytest
import scipy.special
from comparing import close, equal

pytest.importorskip("llvmlite", reason="code is made by llvmlite")

import llvmlite.binding as llvm
from layouts import python
from llvmlite import ir

from varmat.programs.run import functions
from varmat.programs.run.compiler import Module
from varmat.programs.run.functions import SUPPORTED, Functions

WIDTHS = (1, 4, 8)
ARITY = dict.fromkeys(
    ["add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin", "copysign",
     "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and",
     "logical_or", "logical_xor", "logaddexp", "power", "xlogy", "xlog1py"], 2,
) | {"where": 3}  # fmt: skip
PARTS_ONLY = {"divide1p", "half_exp", "half_expm1"}


@cache
def of_arrays(name, width):
    """Compile ``out[i] = f(x[i], ...)`` for arrays whose length is a multiple of the width.

    Truth values are numbers, other than zero where they hold.
    """
    n_in, word, pointer = ARITY.get(name, 1), ir.IntType(64), ir.PointerType()
    module = Module()
    f = Functions(module, width)
    kind = ir.FunctionType(ir.VoidType(), [pointer] * (n_in + 1) + [word])
    b = ir.IRBuilder(ir.Function(module, kind, "apply").append_basic_block())
    before, block, after = b.block, b.append_basic_block(), b.append_basic_block()
    *arrays, n = b.function.args
    b.branch(block)
    b.position_at_end(block)
    i = b.phi(word)
    places = [b.gep(each, [i], source_etype=ir.DoubleType()) for each in arrays]
    x = [b.load(place, align=8, typ=f.kind) for place in places[:-1]]
    if name.startswith("logical") or name == "where":
        truths = n_in if name.startswith("logical") else 1
        x[:truths] = [f.apply(b, "not_equal", v, 0.0) for v in x[:truths]]
    result = f.apply(b, name, *x)
    if result.type == f.truth:
        result = f.apply(b, "where", result, 1.0, 0.0)
    b.store(result, places[-1], align=8)
    following = b.add(i, word(width))
    i.add_incoming(word(0), before)
    i.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, n), block, after)
    b.position_at_end(after)
    b.ret_void()
    engine = compiled(module)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (n_in + 1), ctypes.c_int64)(
        engine.get_function_address("apply")
    )

    def apply(*x):
        out = np.empty_like(x[0])
        call(*(each.ctypes.data for each in (*x, out)), out.size)
        assert engine  # the code lives as long as this function
        return out

    return apply


def compiled(module):
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(
        opt=2, cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten()
    )
    parsed = llvm.parse_assembly(str(module))
    passes = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(2))
    passes.getModulePassManager().run(parsed, passes)
    engine = llvm.create_mcjit_compiler(parsed, target)
    engine.finalize_object()
    return engine


def of_numpy(name):
    """The function of a name in NumPy or SciPy."""
    if name == "expit":  # SciPy's is 0 where exp(-x) overflows
        return lambda x: np.where(x < -40.0, np.exp(x), scipy.special.expit(x))
    if name == "log1p_exp":
        return lambda x: np.logaddexp(0.0, x)
    if name == "where":
        return lambda condition, x, y: np.where(condition != 0, x, y)
    return getattr(np, name, None) or getattr(scipy.special, name)


def spread(low, high, n=120):
    """Numbers of all sizes between two powers of ten, with both signs."""
    rng = np.random.default_rng(5)
    return rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(low, high, n)


def even(low, high, n=120):
    return np.random.default_rng(6).uniform(low, high, n)


LOGARITHMS = (abs(spread(-323, 308)), even(0.4, 2.5), 1.0 + spread(-16, -1))
HYPERBOLIC = (even(-710.4, 710.4), even(-2.0, 2.0), spread(-307, 0))
LOGISTIC = (even(-740.0, 40.0), even(-4.0, 4.0), spread(-300, 1))
ANGLES = (
    even(-7.0, 7.0), even(-1e9, 1e9), spread(-307, 12), even(0.0, 1e8).round() * (np.pi / 2),
)  # fmt: skip
# The function of mpmath and the points.
EXACT = {
    "exp": (mp.exp, (even(-745.0, 709.7), even(-2.0, 2.0), spread(-300, 2.5))),
    "exp2": (lambda x: mp.mpf(2) ** x, (even(-1074.0, 1023.9), even(-2.0, 2.0), spread(-300, 2))),
    "expm1": (mp.expm1, (even(-50.0, 709.7), even(-2.0, 2.0), spread(-307, 2.5))),
    "log": (mp.log, LOGARITHMS),
    "log2": (lambda x: mp.log(x, 2), LOGARITHMS),
    "log10": (mp.log10, LOGARITHMS),
    "log1p": (mp.log1p, (abs(spread(-300, 308)), even(-1.0, 3.0), spread(-307, -1e-9))),
    "sinh": (mp.sinh, HYPERBOLIC),
    "cosh": (mp.cosh, HYPERBOLIC),
    "tanh": (mp.tanh, (even(-25.0, 25.0), even(-2.0, 2.0), spread(-307, 0))),
    "sin": (mp.sin, ANGLES),
    "cos": (mp.cos, ANGLES),
    "arctan": (mp.atan, (even(-3.0, 3.0), even(-0.5, 0.5), spread(-307, 300))),
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), LOGISTIC),
    "log1p_exp": (lambda x: mp.log1p(mp.exp(x)), LOGISTIC),
    "log_expit": (lambda x: -mp.log1p(mp.exp(-x)), tuple(-x for x in LOGISTIC)),
    "sqrt": (mp.sqrt, (abs(spread(-323, 308)),)),
    "reciprocal": (lambda x: 1 / x, (spread(-307, 307),)),
    "square": (lambda x: x * x, (spread(-150, 150),)),
    "divide1p": (lambda x: x / (1 + x), (abs(spread(-300, 300)), even(-0.5, 4.0))),
    "half_exp": (lambda x: mp.exp(x) / 2, (even(-700.0, 710.4),)),
    "half_expm1": (lambda x: mp.expm1(x) / 2, (even(-50.0, 710.4), even(-2.0, 2.0))),
}
SPECIAL = np.array([
    0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-310, -1e-310, 2.3e-308, 1.0, -1.0,
    2.0, -2.0, 0.5, -0.5, 1.5, -2.5, 3.0, 8.0, 10.0, 1000.0, 1e15, -1e15, 1e17, 1e300, -1e300,
    1.7976931348623157e308, -1.7976931348623157e308, 709.78, 709.79, 710.47, 710.48, -710.48,
    -745.13, -745.14, -36.7, 36.8, 19.0, -19.1, 1023.5, 1024.0, -1074.5, -1076.0, 1e5, 2.0**30,
    1e22, -1.0 + 1e-16,
])  # fmt: skip


def errors(name, exact, made, *x):
    """The errors in units in the last place of the exact results."""
    with mp.workdps(60):
        results = [exact(*map(mp.mpf, each)) for each in zip(*x, strict=True)]
        return [
            float(abs(mp.mpf(y) - e) / np.spacing(abs(float(e))))
            for y, e in zip(made, results, strict=True)
        ]


@pytest.mark.parametrize("name", EXACT)
def test_errors_are_at_most_two_units_in_the_last_place(name):
    exact, points = EXACT[name]
    x = np.concatenate(points)
    assert max(errors(name, exact, of_arrays(name, functions.LANES)(x), x)) <= 2.0


@pytest.mark.parametrize("name", sorted(SUPPORTED - set(ARITY)))
def test_numbers_and_vectors_give_the_same_digits(name):
    x = np.concatenate([*EXACT.get(name, ((), (spread(-300, 300),)))[1], SPECIAL])
    first, *others = [of_arrays(name, width)(x) for width in WIDTHS]
    for made in others:
        equal(made, first)
        zeros = first == 0.0
        equal(np.signbit(made[zeros]), np.signbit(first[zeros]))


def assert_same(made, expected):
    """Equal infinities, zeros with their signs and nan; else results that are close."""
    close(made, expected, 4.5e-16, 0.0)
    is_zero = expected == 0.0
    equal(np.signbit(made[is_zero]), np.signbit(expected[is_zero]))
    equal(made[is_zero], 0.0)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", sorted(SUPPORTED - set(ARITY) - PARTS_ONLY))
def test_special_values_are_those_of_numpy(name, width):
    with np.errstate(all="ignore"):
        expected = of_numpy(name)(SPECIAL).astype(float)
    assert_same(of_arrays(name, width)(SPECIAL), expected)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", sorted(ARITY))
def test_functions_of_several_operands_are_those_of_numpy(name, width):
    x, y = (each.ravel() for each in np.meshgrid(SPECIAL, SPECIAL))
    operands = (x, y, y[::-1].copy())[: ARITY[name]]
    with np.errstate(all="ignore"):
        expected = of_numpy(name)(*operands).astype(float)
    made = of_arrays(name, width)(*operands)
    if name in ("maximum", "minimum", "fmax", "fmin"):  # NumPy has the sign of zero by chance
        made, expected = made + 0.0, expected + 0.0
    assert_same(made, expected)


def test_errors_of_the_logarithm_of_a_sum():
    """Near zero, where the sum of two exponentials is 1, terms cancel, as they do in NumPy."""
    x, y = even(-3.0, 3.0, 400), even(-30.0, 30.0, 400)
    made = of_arrays("logaddexp", functions.LANES)(x, y)
    scale = np.maximum(1.0, np.maximum(abs(x), abs(y)) / abs(made))
    found = errors("logaddexp", lambda x, y: mp.log(mp.exp(x) + mp.exp(y)), made, x, y)
    assert max(found / scale) <= 2.0


def test_errors_of_powers():
    """Logarithms of some 62 bits are enough for results of all sizes."""
    n = 400
    x = np.concatenate([
        even(0.1, 5.0, n), abs(spread(-300, 300, n)), 1.0 + spread(-12, -3, n),
        even(0.5, 2.0, n), np.sqrt(2.0) * (1.0 + spread(-16, -2, n)),
    ])  # fmt: skip
    y = np.concatenate([
        even(-8.0, 8.0, n), even(-1.0, 1.0, n), spread(0, 5, n), even(-1000.0, 1000.0, n),
        even(-2000.0, 2000.0, n),
    ])  # fmt: skip
    made = of_arrays("power", functions.LANES)(x, y)
    is_normal = (made > 2.0**-1022) & (made < math.inf)
    x, y, made = x[is_normal], y[is_normal], made[is_normal]
    assert made.size > 4 * n
    assert max(errors("power", mp.power, made, x, y)) <= 1.5
    for width in WIDTHS:
        equal(of_arrays("power", width)(*padded(x, y))[: x.size], made)


def padded(*arrays):
    """With further elements, until the length is a multiple of the widths."""
    return [np.append(x, np.ones(-x.size % 8)) for x in arrays]


def test_powers_of_the_base_have_exact_logarithms():
    tens = 10.0 ** np.arange(24.0)
    equal(of_arrays("log10", 8)(tens), np.arange(24.0))
    twos = 2.0 ** np.arange(-1074.0, 1024.0)[:2096]
    equal(of_arrays("log2", 8)(twos), np.log2(twos))
    equal(of_arrays("exp2", 8)(np.log2(twos)), twos)


def root(f):
    return lambda z: f(mp.sqrt(z))


@pytest.mark.parametrize(("powers", "f", "low", "high", "bound"), [
    (functions._EXP, lambda r: mp.hyp1f1(1, 3, r) / 2, -0.3467, 0.3467, 2e-17),
    (functions._LOG, lambda z: mp.hyp2f1(1, 1.5, 2.5, z) * 2 / 3, 0.0, 0.02945, 6e-16),
    (functions._POWER, lambda z: (mp.hyp2f1(1, 1.5, 2.5, z) - 1) * 2 / 3 / z, 1e-9, 0.02945, 3e-17),
    (functions._SIN, root(lambda r: (mp.sin(r) / r - 1) / r**2), 0.0, 0.6169, 4e-17),
    (functions._COS, root(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4), 0.0, 0.6169, 5e-18),
    (functions._ARCTAN, root(lambda r: (mp.atan(r) / r - 1) / r**2), 0.0, 0.1716, 5e-17),
], ids=["exp", "log", "power", "sin", "cos", "arctan"])  # fmt: skip
def test_errors_of_polynomials(powers, f, low, high, bound):
    with mp.workdps(60):
        for x in np.linspace(low, high, 203)[1:-1]:
            made = sum(mp.mpf(c) * mp.mpf(x) ** i for i, c in enumerate(powers))
            assert abs(made - f(mp.mpf(x))) <= bound


def test_constants():
    """Pairs and triples of doubles are expansions of the number."""
    with mp.workdps(60):
        for parts, number in (
            (functions._LN2, mp.log(2)),                    (functions._LOG2_E, 1 / mp.log(2)),
            (functions._LOG10_E, 1 / mp.log(10)),           (functions._LOG10_2, mp.log10(2)),
            (functions._HALF_PI, mp.pi / 2),                (functions._TWO_THIRDS, mp.mpf(2) / 3),
        ):  # fmt: skip
            for i, part in enumerate(parts):
                assert float(number - mp.fsum(parts[:i])) == part


WITHOUT_FMA = """
import sys
import llvmlite.binding as llvm
features = llvm.get_host_cpu_features()
for name in features:
    if name in ("fma", "fma4", "xop") or name.startswith(("avx512", "avx10")):
        features[name] = False
llvm.get_host_cpu_features = lambda: features
import pytest
sys.exit(pytest.main(["-p", "no:cacheprovider", "-p", "no:xdist", *sys.argv[1:]]))
"""


@pytest.mark.skipif(
    "fma" not in llvm.get_host_cpu_features(), reason="this processor always has the instruction"
)
def test_a_processor_without_fused_multiplications():
    """Errors are computed there, because a call of the C library for each lane takes several times
    as long as all the rest.
    """
    only = "calls_of_fma or errors or special or same_digits"  # not this test
    done = python(WITHOUT_FMA, arguments=(__file__, "-k", only))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_calls_of_fma():
    module = Module()
    for name in ("exp", "log", "sin", "power", "arctan"):
        Functions(module, 4).write(name)
    assert ("llvm.fma" in str(module)) is functions._HAS_FMA
