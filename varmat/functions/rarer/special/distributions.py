"""SciPy's distribution functions and their inverses, as a table: of counts, gamma, chi square, F,
Student's t, and others.

They are incomplete gamma and beta functions, with the derivatives of these, in the shapes as well.
Numbers of events are rounded down, and have the derivative zero. The inverses solve for any
operand."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.rules import ZERO
from varmat.functions.rarer.special.further_rows import POLISHED, direct, inverse, of_scipy, row

_P, _Q = (
    "gammainc(mpf({}), 0, {}, regularized=True)",
    "gammainc(mpf({}), {}, inf, regularized=True)",
)
_I, _C = (
    "betainc(mpf({}), {}, 0, {}, regularized=True)",
    "betainc(mpf({}), {}, {}, 1, regularized=True)",
)
_SOLVED = "findroot(lambda t: {} - {}, {})"
_STEPS = "Numbers of events are rounded down: the derivative in them is 0"
_TRIALS = ("the number of trials",)
_EXACT = "The derivatives in the shapes are integrals in one tail"
_SEARCH = "The value is what SciPy's search finds, to about 1e-12"

# Gamma, chi square and Poisson distributions, with the derivatives of the lower incomplete gamma
# function.

_SHAPE, _GAMMA = "gammainc_derivative(1.0, {}, {})", "gamma_density_derivative(0.0, {}, {})"
_CHI = (
    "0.5 * " + _SHAPE.format("0.5 * {0}", "0.5 * {1}"),
    "0.5 * " + _GAMMA.format("0.5 * {0}", "0.5 * {1}"),
)
_GDTR = (
    "{2} * " + _GAMMA.format("{1}", "{0} * {2}"),
    _SHAPE.format("{1}", "{0} * {2}"),
    "{0} * " + _GAMMA.format("{1}", "{0} * {2}"),
)
_POISSON = ("-" + _SHAPE.format("{0} + 1.0", "{1}"), "-" + _GAMMA.format("{0} + 1.0", "{1}"))
_FLOORED = "-" + _GAMMA.format("floor({0}) + 1.0", "{1}")

row(
    "chdtr",
    direct(_CHI),
    "Distribution function of the chi square distribution with x degrees of freedom",
    _P.format("x / 2", "y / 2"),
    ((7.5, 6.0), (1.4, 3.0)),
    domain="x > 0, y >= 0",
    note=_EXACT,
)
row(
    "chdtrc",
    direct(_CHI, "-"),
    "Probability above y in the chi square distribution with x degrees of freedom",
    _Q.format("x / 2", "y / 2"),
    ((7.5, 6.0), (1.4, 30.0)),
    domain="x > 0, y >= 0",
    note=_EXACT,
)
inverse(
    "chdtri",
    tuple(f"-{text}" for text in _CHI),
    1,
    "Inverse of `chdtrc` in its argument",
    _SOLVED.format(_Q.format("x / 2", "t / 2"), "y", "(x, x + 1)"),
    ((7.5, 0.3),),
    domain="x > 0, 0 < y < 1",
    note=_EXACT,
)
inverse(
    "chdtriv",
    _CHI,
    0,
    "Inverse of `chdtr` in the degrees of freedom",
    _SOLVED.format(_P.format("t / 2", "y / 2"), "x", "(y, y + 1)"),
    ((0.3, 6.0),),
    domain="0 < x < 1, y > 0",
    note=_SEARCH,
)
row(
    "gdtr",
    direct(_GDTR),
    "Distribution function of the gamma distribution of rate x and shape y",
    _P.format("y", "x * z"),
    ((0.7, 7.5, 6.0), (3.0, 0.7, 0.1)),
    domain="x > 0, y > 0, z >= 0",
    note=_EXACT,
)
row(
    "gdtrc",
    direct(_GDTR, "-"),
    "Probability above z in the gamma distribution of rate x and shape y",
    _Q.format("y", "x * z"),
    ((0.7, 7.5, 6.0), (3.0, 0.7, 2.0)),
    domain="x > 0, y > 0, z >= 0",
    note=_EXACT,
)
inverse(
    "gdtria",
    _GDTR,
    0,
    "Inverse of `gdtr` in the rate",
    _SOLVED.format(_P.format("y", "t * z"), "x", "(y / z, y / z + 0.1)"),
    ((0.3, 7.5, 6.0),),
    domain="0 < x < 1, y > 0, z > 0",
    note=_SEARCH,
)
inverse(
    "gdtrib",
    _GDTR,
    1,
    "Inverse of `gdtr` in the shape",
    _SOLVED.format(_P.format("t", "x * z"), "y", "(x * z, x * z + 0.1)"),
    ((0.7, 0.3, 6.0),),
    domain="x > 0, 0 < y < 1, z > 0",
    note=_SEARCH,
)
inverse(
    "gdtrix",
    _GDTR,
    2,
    "Inverse of `gdtr` in the argument",
    _SOLVED.format(_P.format("y", "x * t"), "z", "(y / x, y / x + 0.1)"),
    ((0.7, 7.5, 0.3),),
    domain="x > 0, y > 0, 0 < z < 1",
    note=_SEARCH,
)
row(
    "pdtr",
    (ZERO, f"g * ({_FLOORED.format('x', 'y')})"),
    "Probability of at most x events in the Poisson distribution of mean y",
    _Q.format("floor(x) + 1", "y"),
    ((3.5, 2.7), (20.0, 31.5)),
    domain="x >= 0, y >= 0",
    note=_STEPS,
)
row(
    "pdtrc",
    (ZERO, f"-g * ({_FLOORED.format('x', 'y')})"),
    "Probability of more than x events in the Poisson distribution of mean y",
    _P.format("floor(x) + 1", "y"),
    ((3.5, 2.7), (20.0, 31.5)),
    domain="x >= 0, y >= 0",
    note=_STEPS,
)
row(
    "pdtri",
    (ZERO, f"g / ({_FLOORED.format('x', 'r')})"),
    "Mean of the Poisson distribution in which the probability of at most x is y",
    _SOLVED.format(_Q.format("floor(x) + 1", "t"), "y", "(x, x + 1)"),
    ((3.0, 0.4), (20.0, 0.9)),
    domain="x >= 0, 0 < y < 1",
    note=_STEPS,
)
inverse(
    "pdtrik",
    _POISSON,
    0,
    "Solution for the number of events, a real number, of ``gammaincc(r + 1, y) = x``",
    _SOLVED.format(_Q.format("t + 1", "y"), "x", "(y, y + 1)"),
    ((0.4, 3.0),),
    domain="0 < x < 1, y > 0",
    note=_SEARCH,
)

# Binomial, negative binomial, F and Student's t distributions, with the derivatives of the
# incomplete beta function.

_IN_A, _IN_B = "betainc_derivative(10.0, {}, {}, {})", "betainc_derivative(1.0, {}, {}, {})"
_BETA = "beta_density_derivative(0.0, {}, {}, {})"
_BETAS = tuple(text.format("{0}", "{1}", "{2}") for text in (_IN_A, _IN_B, _BETA))
_SUCCESSES = tuple(text.format("{0} + 1.0", "{1} - {0}", "{2}") for text in (_IN_A, _IN_B, _BETA))
_BINOMIAL = (f"{_SUCCESSES[1]} - {_SUCCESSES[0]}", f"-{_SUCCESSES[1]}", f"-{_SUCCESSES[2]}")
_NEGATIVE = tuple(text.format("{1}", "{0} + 1.0", "{2}") for text in (_IN_B, _IN_A, _BETA))
_BINOMIAL_DENSITY = _BETA.format("floor({0}) + 1.0", "{1} - floor({0})", "{2}")
_NEGATIVE_DENSITY = _BETA.format("{1}", "floor({0}) + 1.0", "{2}")
_EVENTS, _FAILURES = "0 <= x < y, y = 1, 2, ..., 0 < z < 1", "x >= 0, y = 1, 2, ..., 0 < z < 1"
_SUCCESS = ("the number of successes",)


def _counted(
    name: str, sign: str, slope: str, about: str, reference: str, held: tuple[str, ...], domain: str
) -> None:
    # Numbers of trials as integers, because SciPy warns of floats.
    ufunc = of_scipy(lambda s, k, n, p: getattr(s, name)(k, np.asarray(n).astype(int), p))
    row(
        name,
        (ZERO, None, f"{sign}g * {slope.format('x', 'y', 'z')}"),
        about,
        reference,
        ((3.0, 9.0, 0.35), (0.0, 20.0, 0.1)),
        domain=domain,
        note=_STEPS,
        held=held,
        ufunc=ufunc,
        of=name,
    )


_counted(
    "bdtr",
    "-",
    _BINOMIAL_DENSITY,
    "Probability of at most x successes in y trials, each with probability z",
    _C.format("floor(x) + 1", "y - floor(x)", "z"),
    _TRIALS,
    _EVENTS,
)
_counted(
    "bdtrc",
    "",
    _BINOMIAL_DENSITY,
    "Probability of more than x successes in y trials, each with probability z",
    _I.format("floor(x) + 1", "y - floor(x)", "z"),
    _TRIALS,
    _EVENTS,
)
_counted(
    "nbdtr",
    "",
    _NEGATIVE_DENSITY,
    "Probability of at most x failures before y successes, each with probability z",
    _I.format("y", "floor(x) + 1", "z"),
    _SUCCESS,
    _FAILURES,
)
_counted(
    "nbdtrc",
    "-",
    _NEGATIVE_DENSITY,
    "Probability of more than x failures before y successes, each with probability z",
    _C.format("y", "floor(x) + 1", "z"),
    _SUCCESS,
    _FAILURES,
)
row(
    "bdtri",
    (ZERO, None, f"-g / {_BINOMIAL_DENSITY.format('x', 'y', 'r')}"),
    "Probability of success with which that of at most x successes in y trials is z",
    _SOLVED.format(_C.format("floor(x) + 1", "y - floor(x)", "t"), "z", "(0.3, 0.4)"),
    ((3.0, 9.0, 0.35),),
    domain=_EVENTS,
    note=_STEPS,
    held=_TRIALS,
    ufunc=of_scipy(lambda s, k, n, y: s.bdtri(k, np.asarray(n).astype(int), y)),
    of="bdtri",
)
row(
    "nbdtri",
    (ZERO, None, f"g / {_NEGATIVE_DENSITY.format('x', 'y', 'r')}"),
    "Probability of success with which that of at most x failures before y successes is z",
    _SOLVED.format(_I.format("y", "floor(x) + 1", "t"), "z", "(0.5, 0.6)"),
    ((3.0, 9.0, 0.35),),
    domain=_FAILURES,
    note=_STEPS,
    held=_SUCCESS,
)
inverse(
    "bdtrik",
    _BINOMIAL,
    0,
    "Solution for the number of successes, a real number, of ``betaincc(r + 1, y - r, z) = x``",
    _SOLVED.format(_C.format("t + 1", "y - t", "z"), "x", "(y * z, y * z + 0.1)"),
    ((0.4, 10.0, 0.35),),
    domain="0 < x < 1, y > 0, 0 < z < 1",
    note=_SEARCH,
)
inverse(
    "bdtrin",
    _BINOMIAL,
    1,
    "Solution for the number of trials, a real number, of ``betaincc(x + 1, r - x, z) = y``",
    _SOLVED.format(_C.format("x + 1", "t - x", "z"), "y", "(x / z + 1, x / z + 2)"),
    ((3.0, 0.4, 0.35),),
    domain="x >= 0, 0 < y < 1, 0 < z < 1",
    note=_SEARCH,
)
inverse(
    "nbdtrik",
    _NEGATIVE,
    0,
    "Solution for the number of failures, a real number, of ``betainc(y, r + 1, z) = x``",
    _SOLVED.format(_I.format("y", "t + 1", "z"), "x", "(y, 2 * y)"),
    ((0.4, 5.0, 0.35),),
    domain="0 < x < 1, y > 0, 0 < z < 1",
    note=_SEARCH,
)
inverse(
    "nbdtrin",
    _NEGATIVE,
    1,
    "Solution for the number of successes, a real number, of ``betainc(r, x + 1, z) = y``",
    _SOLVED.format(_I.format("t", "x + 1", "z"), "y", "(x, 2 * x)"),
    ((3.0, 0.4, 0.35),),
    domain="x >= 0, 0 < y < 1, 0 < z < 1",
    note=POLISHED,
    polish=lambda s, x, y, z: s.betainc(y, x + 1.0, z),
)
inverse(
    "btdtria",
    _BETAS,
    0,
    "Inverse of `betainc` in its first shape",
    _SOLVED.format(_I.format("t", "y", "z"), "x", "(y, 2 * y)"),
    ((0.4, 5.0, 0.35),),
    domain="0 < x < 1, y > 0, 0 < z < 1",
    note=_SEARCH,
)
inverse(
    "btdtrib",
    _BETAS,
    1,
    "Inverse of `betainc` in its second shape",
    _SOLVED.format(_I.format("x", "t", "z"), "y", "(x, 2 * x)"),
    ((3.0, 0.4, 0.35),),
    domain="x > 0, 0 < y < 1, 0 < z < 1",
    note=_SEARCH,
)

# The argument of the beta function is y = dfn x / (dfd + dfn x). Its derivative in dfn is y (1 - y)
# / dfn, that in dfd is -y (1 - y) / dfd.
_AT = "{0} * {2} / ({1} + {0} * {2})"
_LOG_SLOPE = (
    f"{_BETA.format('0.5 * {0}', '0.5 * {1}', _AT)} * {{0}} * {{1}} * {{2}} / "
    f"square({{1}} + {{0}} * {{2}})"
)
_F = (
    f"0.5 * {_IN_A.format('0.5 * {0}', '0.5 * {1}', _AT)} + {_LOG_SLOPE} / {{0}}",
    f"0.5 * {_IN_B.format('0.5 * {0}', '0.5 * {1}', _AT)} - {_LOG_SLOPE} / {{1}}",
    f"{_LOG_SLOPE} / {{2}}",
)
_RATIO = "x * {0} / (y + x * {0})"
_DEGREES = "x > 0, y > 0, z > 0"
_CANCELS = (
    "In the degrees of freedom two parts of the derivative cancel: it loses about as many digits "
    "as these have"
)
row(
    "fdtr",
    direct(_F),
    "Distribution function of the F distribution with x and y degrees of freedom",
    _I.format("x / 2", "y / 2", _RATIO.format("z")),
    ((3.0, 9.0, 0.8), (12.5, 6.0, 2.5)),
    domain=_DEGREES,
    note=_CANCELS,
)
row(
    "fdtrc",
    direct(_F, "-"),
    "Probability above z in the F distribution with x and y degrees of freedom",
    _C.format("x / 2", "y / 2", _RATIO.format("z")),
    ((3.0, 9.0, 0.8), (12.5, 6.0, 2.5)),
    domain=_DEGREES,
    note=_CANCELS,
)
inverse(
    "fdtri",
    _F,
    2,
    "Inverse of `fdtr` in its argument",
    _SOLVED.format(_I.format("x / 2", "y / 2", _RATIO.format("t")), "z", "(mpf(1), mpf(1.1))"),
    ((3.0, 9.0, 0.6),),
    domain="x > 0, y > 0, 0 < z < 1",
    note=_CANCELS,
)
inverse(
    "fdtridfd",
    _F,
    1,
    "Inverse of `fdtr` in the second degrees of freedom",
    _SOLVED.format(_I.format("x / 2", "t / 2", "x * z / (t + x * z)"), "y", "(mpf(8), mpf(9))"),
    ((3.0, 0.95, 4.0),),
    domain="x > 0, 0 < y < 1, z > 0",
    note=POLISHED,
    polish=lambda s, x, y, z: s.fdtr(x, y, z),
)

# The probability between 0 and t is half of an incomplete beta function, of t**2 / (df + t**2)
# where that is small, and of its complement elsewhere.
_SMALL = "{1} * {1} / ({0} + {1} * {1})"
_LARGE = "{0} / ({0} + {1} * {1})"
_STUDENT_DENSITY = (
    "exp(-0.5 * ({0} + 1.0) * log1p({1} * {1} / {0})) / (sqrt({0}) * beta(0.5, 0.5 * {0}))"
)
_WITHIN = (
    f"where({{1}} * {{1}} < {{0}}, {_IN_B.format('0.5', '0.5 * {0}', _SMALL)}, "
    f"-{_IN_A.format('0.5 * {0}', '0.5', _LARGE)})"
)
_STUDENT = (
    f"0.25 * sign({{1}}) * {_WITHIN} - 0.5 * {{1}} / {{0}} * {_STUDENT_DENSITY}",
    _STUDENT_DENSITY,
)
_STUDENT_CDF = (
    "((1 + sign({1}) * betainc(mpf(1) / 2, {0} / 2, 0, {1}**2 / ({0} + {1}**2), "
    "regularized=True)) / 2)"
)
row(
    "stdtr",
    direct(_STUDENT),
    "Distribution function of Student's t distribution with x degrees of freedom",
    _STUDENT_CDF.format("x", "y"),
    ((7.5, 1.3), (2.0, -4.0), (1.4, 0.2)),
    domain="x > 0",
    note=_CANCELS,
)
inverse(
    "stdtrit",
    _STUDENT,
    1,
    "Inverse of `stdtr` in its argument",
    _SOLVED.format(
        _STUDENT_CDF.format("x", "t"),
        "y",
        "(mpf(0.5), mpf(0.6)) if y > 0.5 else (-mpf(0.5), -mpf(0.6))",
    ),
    ((7.5, 0.8), (3.0, 0.3)),
    domain="x > 0, 0 < y < 1",
    note=_CANCELS,
)
inverse(
    "stdtridf",
    _STUDENT,
    0,
    "Inverse of `stdtr` in the degrees of freedom",
    _SOLVED.format(_STUDENT_CDF.format("t", "y"), "x", "(mpf(2), mpf(3))"),
    ((0.9, 1.5),),
    domain="0 < x < 1",
    note=_SEARCH,
)

# Mean and standard deviation of a normal distribution from a probability; Tukey's lambda
# distribution, by its quantile function.

row(
    "nrdtrimn",
    (
        "-g * y * exp(0.5 * square(ndtri(x))) * " + repr(math.sqrt(2.0 * math.pi)),
        "-g * ndtri(x)",
        "g",
    ),
    "Mean of the normal distribution with standard deviation y in which the probability below z is "
    "x",
    "z - y * sqrt(2) * erfinv(2 * x - 1)",
    ((0.3, 1.5, 2.0),),
    domain="0 < x < 1, y > 0",
)
row(
    "nrdtrisd",
    (
        "-g / ndtri(y)",
        "-g * r / ndtri(y) * exp(0.5 * square(ndtri(y))) * " + repr(math.sqrt(2.0 * math.pi)),
        "g / ndtri(y)",
    ),
    "Standard deviation of the normal distribution of mean x in which the probability below z is y",
    "(z - x) / (sqrt(2) * erfinv(2 * y - 1))",
    ((0.5, 0.8, 2.0),),
    domain="0 < y < 1, x < z if y > 1 / 2, else x > z",
)
_SLOPE = "(power(r, y - 1.0) + exp((y - 1.0) * log1p(-r)))"
_IN_LAMBDA = "0.5 * square({0}) * hyp1f1(2.0, 3.0, y * {0})"
row(
    "tklmbda",
    (
        f"g / {_SLOPE}",
        f"g * ({_IN_LAMBDA.format('log1p(-r)')} - {_IN_LAMBDA.format('log(r)')}) / {_SLOPE}",
    ),
    "Distribution function of Tukey's lambda distribution of shape y",
    _SOLVED.format("(t**y - (1 - t)**y) / y", "x", "(mpf(0.5), mpf(0.6))"),
    ((0.7, 0.4), (-0.5, -0.3), (0.2, 1.5)),
    domain="inside the support: abs(x) < 1 / y where y > 0",
    note="SciPy's value is found by bisection, to about 1e-13",
)
