"""SciPy's distribution functions and their inverses, as a table: of counts, gamma, chi square, F,
Student's t, and others.

They are incomplete gamma and beta functions, with the derivatives of these, in the shapes as well.
Numbers of events are rounded down, and have the derivative zero. The inverses solve for any
operand."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.rules import ZERO
from varmat.functions.rarer.special.further_rows import POLISHED, Invertible, of_scipy
from varmat.functions.rows import row
from varmat.plain_arrays import special

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
_TWO, _THREE = ("x > 0", "y > 0"), ("x > 0", "y > 0", "z > 0")
chi_square = Invertible(_CHI, _P.format("{0} / 2", "{1} / 2"), _TWO)
chi_square_above = Invertible(_CHI, _Q.format("{0} / 2", "{1} / 2"), _TWO, "-")
gamma = Invertible(_GDTR, _P.format("{1}", "{0} * {2}"), _THREE)
gamma_above = Invertible(_GDTR, _Q.format("{1}", "{0} * {2}"), _THREE, "-")
poisson = Invertible(_POISSON, _Q.format("{0} + 1", "{1}"), _TWO)

# fmt: off
chi_square.row("chdtr",
    "Distribution function of the chi square distribution with x degrees of freedom",
    ((7.5, 6.0), (1.4, 3.0)), domain="x > 0, y >= 0", note=_EXACT)
chi_square_above.row("chdtrc",
    "Invertible above y in the chi square distribution with x degrees of freedom",
    ((7.5, 6.0), (1.4, 30.0)), domain="x > 0, y >= 0", note=_EXACT)
chi_square_above.inverse("chdtri", 1, "Inverse of `chdtrc` in its argument",
    "(x, x + 1)", ((7.5, 0.3),), note=_EXACT)
chi_square.inverse("chdtriv", 0, "Inverse of `chdtr` in the degrees of freedom",
    "(y, y + 1)", ((0.3, 6.0),), note=_SEARCH)
gamma.row("gdtr", "Distribution function of the gamma distribution of rate x and shape y",
    ((0.7, 7.5, 6.0), (3.0, 0.7, 0.1)), domain="x > 0, y > 0, z >= 0", note=_EXACT)
gamma_above.row("gdtrc", "Invertible above z in the gamma distribution of rate x and shape y",
    ((0.7, 7.5, 6.0), (3.0, 0.7, 2.0)), domain="x > 0, y > 0, z >= 0", note=_EXACT)
gamma.inverse("gdtria", 0, "Inverse of `gdtr` in the rate",
    "(y / z, y / z + 0.1)", ((0.3, 7.5, 6.0),), note=_SEARCH)
gamma.inverse("gdtrib", 1, "Inverse of `gdtr` in the shape",
    "(x * z, x * z + 0.1)", ((0.7, 0.3, 6.0),), note=_SEARCH)
gamma.inverse("gdtrix", 2, "Inverse of `gdtr` in the argument",
    "(y / x, y / x + 0.1)", ((0.7, 7.5, 0.3),), note=_SEARCH)
for _name, _sign, _reference, _about in (
    ("pdtr", "", _Q, "Invertible of at most x events in the Poisson distribution of mean y"),
    ("pdtrc", "-", _P, "Invertible of more than x events in the Poisson distribution of mean y"),
):
    row(_name, (ZERO, f"{_sign}g * ({_FLOORED.format('x', 'y')})"), _about,
        None, _reference.format("floor(x) + 1", "y"), ((3.5, 2.7), (20.0, 31.5)),
        domain="x >= 0, y >= 0", note=_STEPS)
row("pdtri", (ZERO, f"g / ({_FLOORED.format('x', 'r')})"),
    "Mean of the Poisson distribution in which the probability of at most x is y", None,
    _SOLVED.format(_Q.format("floor(x) + 1", "t"), "y", "(x, x + 1)"), ((3.0, 0.4), (20.0, 0.9)),
    domain="x >= 0, 0 < y < 1", note=_STEPS)
poisson.inverse("pdtrik", 0,
    "Solution for the number of events, a real number, of ``gammaincc(r + 1, y) = x``",
    "(y, y + 1)", ((0.4, 3.0),), note=_SEARCH)
# fmt: on

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
_COUNTED = (_C.format("{0} + 1", "{1} - {0}", "{2}"), _I.format("{1}", "{0} + 1", "{2}"))
_FRACTION = "0 < z < 1"
binomial = Invertible(_BINOMIAL, _COUNTED[0], ("x >= 0", "y > 0", _FRACTION))
negative_binomial = Invertible(_NEGATIVE, _COUNTED[1], ("x >= 0", "y > 0", _FRACTION))
beta = Invertible(_BETAS, _I.format("{0}", "{1}", "{2}"), ("x > 0", "y > 0", _FRACTION))


def _counted(
    name: str, sign: str, slope: str, about: str, reference: str, held: tuple[str, ...], domain: str
) -> None:
    # Numbers of trials as integers, because SciPy warns of floats.
    ufunc = of_scipy(lambda k, n, p: getattr(special, name)(k, np.asarray(n).astype(int), p))
    row(
        name,
        (ZERO, None, f"{sign}g * {slope.format('x', 'y', 'z')}"),
        about,
        None,
        reference,
        ((3.0, 9.0, 0.35), (0.0, 20.0, 0.1)),
        domain=domain,
        note=_STEPS,
        constant=held,
        ufunc=ufunc,
        answers_for=name,
    )


# fmt: off
_counted("bdtr", "-", _BINOMIAL_DENSITY,
    "Invertible of at most x successes in y trials, each with probability z",
    _C.format("floor(x) + 1", "y - floor(x)", "z"), _TRIALS, _EVENTS)
_counted("bdtrc", "", _BINOMIAL_DENSITY,
    "Invertible of more than x successes in y trials, each with probability z",
    _I.format("floor(x) + 1", "y - floor(x)", "z"), _TRIALS, _EVENTS)
_counted("nbdtr", "", _NEGATIVE_DENSITY,
    "Invertible of at most x failures before y successes, each with probability z",
    _I.format("y", "floor(x) + 1", "z"), _SUCCESS, _FAILURES)
_counted("nbdtrc", "-", _NEGATIVE_DENSITY,
    "Invertible of more than x failures before y successes, each with probability z",
    _C.format("y", "floor(x) + 1", "z"), _SUCCESS, _FAILURES)
row("bdtri", (ZERO, None, f"-g / {_BINOMIAL_DENSITY.format('x', 'y', 'r')}"),
    "Invertible of success with which that of at most x successes in y trials is z",
    None, _SOLVED.format(_C.format("floor(x) + 1", "y - floor(x)", "t"), "z", "(0.3, 0.4)"),
    ((3.0, 9.0, 0.35),), domain=_EVENTS, note=_STEPS, constant=_TRIALS,
    ufunc=of_scipy(lambda k, n, y: special.bdtri(k, np.asarray(n).astype(int), y)),
    answers_for="bdtri")
row("nbdtri", (ZERO, None, f"g / {_NEGATIVE_DENSITY.format('x', 'y', 'r')}"),
    "Invertible of success with which that of at most x failures before y successes is z",
    None, _SOLVED.format(_I.format("y", "floor(x) + 1", "t"), "z", "(0.5, 0.6)"),
    ((3.0, 9.0, 0.35),), domain=_FAILURES, note=_STEPS, constant=_SUCCESS)
binomial.inverse("bdtrik", 0,
    "Solution for the number of successes, a real number, of ``betaincc(r + 1, y - r, z) = x``",
    "(y * z, y * z + 0.1)", ((0.4, 10.0, 0.35),), note=_SEARCH)
binomial.inverse("bdtrin", 1,
    "Solution for the number of trials, a real number, of ``betaincc(x + 1, r - x, z) = y``",
    "(x / z + 1, x / z + 2)", ((3.0, 0.4, 0.35),), note=_SEARCH)
negative_binomial.inverse("nbdtrik", 0,
    "Solution for the number of failures, a real number, of ``betainc(y, r + 1, z) = x``",
    "(y, 2 * y)", ((0.4, 5.0, 0.35),), note=_SEARCH)
negative_binomial.inverse("nbdtrin", 1,
    "Solution for the number of successes, a real number, of ``betainc(r, x + 1, z) = y``",
    "(x, 2 * x)", ((3.0, 0.4, 0.35),), note=POLISHED,
    polish=lambda x, y, z: special.betainc(y, x + 1.0, z))
beta.inverse("btdtria", 0, "Inverse of `betainc` in its first shape",
    "(y, 2 * y)", ((0.4, 5.0, 0.35),), note=_SEARCH)
beta.inverse("btdtrib", 1, "Inverse of `betainc` in its second shape",
    "(x, 2 * x)", ((3.0, 0.4, 0.35),), note=_SEARCH)
# fmt: on

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
_CANCELS = (
    "In the degrees of freedom two parts of the derivative cancel: it loses about as many digits "
    "as these have"
)
f = Invertible(_F, _I.format("{0} / 2", "{1} / 2", _AT), _THREE)
f_above = Invertible(_F, _C.format("{0} / 2", "{1} / 2", _AT), _THREE, "-")

# fmt: off
f.row("fdtr", "Distribution function of the F distribution with x and y degrees of freedom",
    ((3.0, 9.0, 0.8), (12.5, 6.0, 2.5)), note=_CANCELS)
f_above.row("fdtrc", "Invertible above z in the F distribution with x and y degrees of freedom",
    ((3.0, 9.0, 0.8), (12.5, 6.0, 2.5)), note=_CANCELS)
f.inverse("fdtri", 2, "Inverse of `fdtr` in its argument",
    "(mpf(1), mpf(1.1))", ((3.0, 9.0, 0.6),), note=_CANCELS)
f.inverse("fdtridfd", 1, "Inverse of `fdtr` in the second degrees of freedom",
    "(mpf(8), mpf(9))", ((3.0, 0.95, 4.0),), note=POLISHED,
    polish=lambda x, y, z: special.fdtr(x, y, z))
# fmt: on

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
student_t = Invertible(
    (
        f"0.25 * sign({{1}}) * {_WITHIN} - 0.5 * {{1}} / {{0}} * {_STUDENT_DENSITY}",
        _STUDENT_DENSITY,
    ),
    "((1 + sign({1}) * betainc(mpf(1) / 2, {0} / 2, 0, {1}**2 / ({0} + {1}**2), "
    "regularized=True)) / 2)",
    ("x > 0", ""),
)

# fmt: off
student_t.row("stdtr",
    "Distribution function of Student's t distribution with x degrees of freedom",
    ((7.5, 1.3), (2.0, -4.0), (1.4, 0.2)), note=_CANCELS)
student_t.inverse("stdtrit", 1, "Inverse of `stdtr` in its argument",
    "(mpf(0.5), mpf(0.6)) if y > 0.5 else (-mpf(0.5), -mpf(0.6))", ((7.5, 0.8), (3.0, 0.3)),
    note=_CANCELS)
student_t.inverse("stdtridf", 0, "Inverse of `stdtr` in the degrees of freedom",
    "(mpf(2), mpf(3))", ((0.9, 1.5),), note=_SEARCH)

# Mean and standard deviation of a normal distribution from a probability; Tukey's lambda
# distribution, by its quantile function.

row("nrdtrimn",
    ("-g * y * exp(0.5 * square(ndtri(x))) * " + repr(math.sqrt(2.0 * math.pi)),
    "-g * ndtri(x)", "g"),
    "Mean of the normal distribution with standard deviation y in which the probability below z is "
    "x",
    None, "z - y * sqrt(2) * erfinv(2 * x - 1)", ((0.3, 1.5, 2.0),), domain="0 < x < 1, y > 0")
row("nrdtrisd",
    ("-g / ndtri(y)",
    "-g * r / ndtri(y) * exp(0.5 * square(ndtri(y))) * " + repr(math.sqrt(2.0 * math.pi)),
    "g / ndtri(y)"),
    "Standard deviation of the normal distribution of mean x in which the probability below z is y",
    None, "(z - x) / (sqrt(2) * erfinv(2 * y - 1))", ((0.5, 0.8, 2.0),),
    domain="0 < y < 1, x < z if y > 1 / 2, else x > z")
_SLOPE = "(power(r, y - 1.0) + exp((y - 1.0) * log1p(-r)))"
_IN_LAMBDA = "0.5 * square({0}) * hyp1f1(2.0, 3.0, y * {0})"
row("tklmbda",
    (f"g / {_SLOPE}",
    f"g * ({_IN_LAMBDA.format('log1p(-r)')} - {_IN_LAMBDA.format('log(r)')}) / {_SLOPE}"),
    "Distribution function of Tukey's lambda distribution of shape y",
    None, _SOLVED.format("(t**y - (1 - t)**y) / y", "x", "(mpf(0.5), mpf(0.6))"),
    ((0.7, 0.4), (-0.5, -0.3), (0.2, 1.5)),
    domain="inside the support: abs(x) < 1 / y where y > 0",
    note="SciPy's value is found by bisection, to about 1e-13")
# fmt: on
