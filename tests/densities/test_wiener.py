"""First passage times of Wiener processes: series and integrals against 50 digits, Stan, all
routes, recordings, refusals.
"""

import math

import mpmath as mp
import numpy as np
import pytest
import stan
from comparing import close, refuses, refuses_as
from recordings import agree

import varmat as vm
from varmat.densities import wiener
from varmat.densities.first_passage import SHORT_TIME, first_passage_ratio, log_first_passage
from varmat.densities.wiener import wiener_lpdf
from varmat.densities.wiener_cumulative import wiener_lccdf_unnorm, wiener_lcdf_unnorm
from varmat.testing import coverage, expect_ad, expect_ad_matvar

INF = math.inf
BOTH = (wiener_lcdf_unnorm, wiener_lccdf_unnorm)
every_function = pytest.mark.parametrize("f", [wiener_lpdf, *BOTH], ids=lambda f: f.name)


def passage(u, b):
    """Return the density of the first passage, by the method of images."""
    return mp.fsum(
        (m - b) * mp.exp(-((m - b) ** 2) / (2 * u)) for m in range(-41, 42, 2)
    ) / mp.sqrt(2 * mp.pi * u**3)


def exact(y, alpha, tau, beta, delta, var_delta=0):
    """Return the log density with a normal drift rate. The drift is integrated out as with a
    conjugate prior.
    """
    t, reach, q = y - tau, alpha * (1 - beta), 1 + var_delta**2 * (y - tau)
    exponent = (var_delta**2 * reach**2 + 2 * reach * delta - delta**2 * t) / (2 * q)
    return mp.log(passage(t / alpha**2, beta)) - 2 * mp.log(alpha) + exponent - mp.log(q) / 2


@pytest.mark.parametrize("b", [1e-8, 0.05, 0.5, 0.7, 0.999, 1 - 2.0**-40])
@pytest.mark.parametrize("u", [1e-3, 0.05, SHORT_TIME, math.nextafter(SHORT_TIME, 1), 0.8])
def test_series(u, b):
    """Both series are accurate, up to the boundaries. The third and fourth derivatives lose a
    digit.
    """
    with mp.workdps(100):
        density = passage(mp.mpf(u), mp.mpf(b))
        truth = [
            mp.log(density),
            *(
                mp.diff(lambda x: passage(mp.mpf(u), x), mp.mpf(b), n) / density
                for n in (1, 2, 3, 4)
            ),
        ]
    ours = [log_first_passage(u, b), *(first_passage_ratio(float(n), u, b) for n in (1, 2, 3, 4))]
    for n, (x, true, rtol) in enumerate(
        zip(ours, truth, (1e-14, 2e-14, 2e-14, 5e-13, 5e-13), strict=True)
    ):
        # Half-way between the boundaries the odd derivatives go to zero as time passes.
        assert abs(x - true) <= rtol * max(abs(true), 0.1 if n % 2 else 0.0), n


POINTS = [
    (0.5, 1.2, 0.1, 0.4, 0.6),     (1.7, 2.0, 0.3, 0.55, -1.2),   (50.1, 4.3, 1.05, 0.65, 0.15),
    (0.11, 0.9, 0.1, 0.85, 3.0),   (0.5, 4.0, 0.05, 0.1, 3.0),    (3.0, 0.7, 0.2, 0.999, 0.0),
]  # fmt: skip


@pytest.mark.parametrize("var_delta", [None, 0.0, 0.8])
def test_against_50_digits(var_delta):
    """The value, the gradient and the second derivatives, which have no cancellation at these
    points.
    """
    others = () if var_delta is None else (var_delta,)
    worst = 0.0
    for point in POINTS:
        args = (*point, *others)
        value, gradient = vm.value_and_grad(wiener_lpdf, tuple(range(len(args))))(*args)
        with mp.workdps(50):
            given = tuple(map(mp.mpf, args))
            truth = [
                mp.diff(exact, given, [int(i == j) for j in range(len(args))])
                for i in range(len(args))
            ]
            errors = [float(abs(value / exact(*given) - 1))]
        scale = max(map(abs, truth))
        errors += [
            float(abs(a - b) / max(abs(b), scale * mp.mpf("1e-3")))
            for a, b in zip(gradient, truth, strict=True)
        ]
        worst = max(worst, *errors)
    assert worst < 1e-12
    coverage.note(wiener_lpdf, [*POINTS[0], *others], mpmath=worst)


def test_hessian():
    point = (*POINTS[0], 0.8)
    hessian = vm.hessian(lambda x: wiener_lpdf(*x), np.array(point))
    with mp.workdps(50):
        given = tuple(map(mp.mpf, point))
        for i in range(6):
            for j in range(i + 1):
                true = float(mp.diff(exact, given, [(k == i) + (k == j) for k in range(6)]))
                assert hessian[i, j] == pytest.approx(true, rel=1e-12, abs=1e-12)


def averaged(y, alpha, tau, beta, delta, var_delta, var_beta, var_tau):
    """Average over starting points or over nondecision times with mpmath's quadrature."""
    if var_beta and var_tau:
        # This was computed with 20 digits, which takes a quarter of a minute.
        return mp.mpf("-3.114018171605045923")
    if var_tau:
        late = mp.quad(
            lambda s: mp.exp(exact(y, alpha, tau + s, beta, delta, var_delta)),
            [0, min(var_tau, y - tau)],
        )
        return mp.log(late / var_tau)
    starts = [beta - var_beta / 2, beta + var_beta / 2]
    return mp.log(
        mp.quad(lambda start: mp.exp(exact(y, alpha, tau, start, delta, var_delta)), starts)
        / var_beta
    )


INTEGRALS = [
    (1.7, 2.0, 0.3, 0.55, -1.2, 0.8, 0.1, 0.2), (0.9, 1.5, 0.25, 0.7, 2.0, 0.4, 0.0, 0.1),
    (0.5, 1.2, 0.1, 0.4, 0.6, 0.3, 0.5, 0.0),   (0.35, 1.2, 0.2, 0.5, 1.0, 0.5, 0.0, 0.5),
]  # fmt: skip


@pytest.mark.parametrize("point", INTEGRALS)
def test_integrals(point):
    with mp.workdps(20):
        truth = float(averaged(*map(mp.mpf, point)))
    close(wiener_lpdf(*point), truth, 1e-13)


@pytest.mark.parametrize(("point", "rtol"), [
    *((point, 1e-12) for point in INTEGRALS[:3]),
    # In the first case decision times go down to zero. In the second starting points come close to
    # the boundary, where the density is a narrow peak.
    ((0.6, 1.2, 0.2, 0.5, 1.0, 0.5, 0.3, 0.9), 1e-12),
    ((0.4, 1.0, 0.2, 0.9, 3.0, 0.5, 0.15, 0.3), 2e-8),
])  # fmt: skip
def test_more_nodes_change_nothing(point, rtol, monkeypatch):
    """More nodes change neither the value nor the derivative in any argument."""
    few = vm.value_and_grad(wiener_lpdf, tuple(range(8)))(*point)
    for name, size in (("STARTS", 100), ("TIMES", 200)):
        monkeypatch.setattr(wiener, name, (size, size))
    many = vm.value_and_grad(wiener_lpdf, tuple(range(8)))(*point)
    close(few[0], many[0], rtol)
    close(few[1], many[1], rtol, rtol)


def test_both_boundaries_have_all_the_mass():
    t, w = np.polynomial.legendre.leggauss(200)
    y = 0.1 + 5.0 * (t + 1.0) ** 2
    rows = wiener.wiener.pointwise
    density = np.exp(rows(y, 1.2, 0.1, 0.4, 0.6)) + np.exp(rows(y, 1.2, 0.1, 0.6, -0.6))
    close(float(np.sum(w * density * 10.0 * (t + 1.0))), 1.0, 1e-12)


# Stan has a value at the border of the bias, where the density is zero. Its integrals have 8 to 10
# digits. At zero variability of the bias the derivative is 0 by symmetry, and here only rounding
# errors are left.
TOLERANCE = {"wiener_lpdf#52": 2e-8, "wiener_lpdf#55": 1e-9}


@pytest.mark.parametrize(
    "entry", [p for p in stan.entries("wiener") if p.values[0]["id"] != "wiener_lpdf#35"]
)
def test_stan(entry):
    f = wiener_lpdf.proportional if entry.get("propto") else wiener_lpdf
    if entry["id"] == "wiener_lpdf#55":
        entry = {
            **entry,
            "args": [[x, None if i == 6 else g] for i, (x, g) in enumerate(entry["args"])],
        }
    stan.check(f, entry, TOLERANCE.get(entry["id"], 1e-12))


@pytest.mark.parametrize("entry", stan.entries("wiener", throws=True))
def test_what_stan_refuses(entry):
    """What Stan refuses is an error here too, except an observation outside the support."""
    if "Random variable" in entry["message"] and "nan" not in entry["message"]:
        assert wiener_lpdf(*stan.arguments(entry)) == -INF
    else:
        refuses(vm.DomainError, r"^wiener_lpdf: ", wiener_lpdf, *stan.arguments(entry))


Y, A, B = np.array([0.5, 0.9, 1.7]), np.array([1.2, 1.5, 2.0]), np.array([0.4, 0.55, 0.7])
ROUTES = {
    "five": (lambda f: f, 2, 1.2, 0.1, 0.4, 1),
    "five, vectors": (lambda f: lambda y, beta, delta: f(y, A, 0.1, beta, delta), Y, B, 0.6),
    "six": (lambda f: lambda tau, delta, s: f(Y, 1.2, tau, B, delta, s), 0.1, 0.6, 0.3),
    "seven": (lambda f: lambda alpha, s: f(Y, alpha, 0.1, B, 0.6, 0.3, s), A, 0.2),
    "eight": (lambda f: lambda tau, s: f(0.6, 1.3, tau, 0.4, 0.6, 0.3, 0.2, s), 0.2, 0.1),
    "eight, cut": (lambda f: lambda y, s: f(y, 1.3, 0.2, 0.4, 0.6, 0.3, s, 0.5), 0.6, 0.2),
    "empty": (lambda f: f, np.empty(0), 1.2, 1, 0.4, 1),
    "outside": (lambda f: f, 0.05, 1.2, 1, 0.4, 1),
}
# Of the probabilities only these are compared in slow cases.
CHOSEN = {"six": (), "seven": BOTH[:1], "eight": BOTH[1:], "eight, cut": BOTH[:1]}


@pytest.mark.parametrize(("name", "function"), [
    (name, f) for name in ROUTES for f in (wiener_lpdf, *CHOSEN.get(name, BOTH))
], ids=lambda x: getattr(x, "name", x))  # fmt: skip
def test_all_routes(name, function):
    make, *args = ROUTES[name]
    expect_ad(make(function), *args)
    if any(map(np.ndim, args)):
        expect_ad_matvar(make(function), *args)


@every_function
def test_recorded(f):
    agree(f, (Y, A, 0.1, B, 0.6), (Y, 1.1 * A, 0.3, B[::-1], -0.6), argnums=(1, 2, 3, 4))
    first = (1.2, 0.1, B, 0.6, 0.3, 0.2, 0.1)
    last = (1.3, 0.2, B, 0.6, 0.0 if f is wiener_lpdf else 0.1, 0.1, 0.1)
    agree(lambda *args: f(Y, *args), first, last, argnums=tuple(range(7)), rtol=1e-12)


def test_outside_the_support():
    for args in (
        (0.05, 1.2, 0.1, 0.4, 0.6), (INF, 1.2, 0.1, 0.4, 0.6),  (0.5, 1.2, 0.1, 0.0, 0.6),
        (0.5, 1.2, 0.1, 1.0, 0.6),
    ):  # fmt: skip
        value, gradient = vm.value_and_grad(wiener_lpdf, (0, 1, 2, 3, 4))(*args)
        assert value == -INF
        assert not any(gradient)
    value, gradient = vm.value_and_grad(wiener_lpdf, (2, 6))(
        np.array([0.5, 0.05]), 1.2, 0.1, 0.4, 0.6, 0.3, 0.2, 0.1
    )
    assert value == -INF
    assert not any(gradient)


def test_zero_variability_is_none():
    expected = wiener_lpdf(Y, A, 0.1, B, 0.6)
    close(wiener_lpdf(Y, A, 0.1, B, 0.6, 0.0), expected, 1e-15)
    close(wiener_lpdf(Y, A, 0.1, B, 0.6, 0.0, 0.0, 0.0), expected, 1e-13)
    # In the width of a centred interval the derivative at zero is 0. An interval that starts at tau
    # has its centre half a width later.
    value, (start, late) = vm.value_and_grad(wiener_lpdf, (6, 7))(Y, A, 0.1, B, 0.6, 0.0, 0.0, 0.0)
    close(value, expected, 1e-13)
    close(start, 0.0, 0.0, 1e-12)
    close(late, 0.5 * vm.gradient(lambda tau: wiener_lpdf(Y, A, tau, B, 0.6), 0.1), 1e-11)


def test_propto_drops_nothing_of_variables():
    args = (Y, A, 0.1, B, 0.6, 0.3, 0.1, 0.1)
    for size in (5, 6, 8):
        assert wiener_lpdf(*args[:size], propto=True) == 0.0
        found = vm.value_and_grad(wiener_lpdf.proportional, 4)(*args[:size])
        assert found == vm.value_and_grad(wiener_lpdf, 4)(*args[:size])


REFUSALS = {
    "Random variable is nan, but must be not nan!": (math.nan, 1.2, 0.1, 0.4, 0.6),
    "Boundary separation is 0.0, but must be positive finite!": (0.5, 0.0, 0.1, 0.4, 0.6),
    "Drift rate is inf, but must be finite!": (0.5, 1.2, 0.1, 0.4, INF),
    "Inter-trial variability in drift rate is -1.0, but must be nonnegative and finite!":
        (0.5, 1.2, 0.1, 0.4, 0.6, -1.0),
    "Inter-trial variability in A-priori bias is 1.0, but must be in the interval [0, 1)!":
        (0.5, 1.2, 0.1, 0.4, 0.6, 0.3, 1.0),
    "Inter-trial variability in A-priori bias[1] is 0.8, but must be smaller than 2 A-priori bias, "
    "0.75!": (0.5, 1.2, 0.1, 0.375, 0.6, 0.3, np.array([0.1, 0.8])),
    "Inter-trial variability in A-priori bias is 0.8, but must be smaller than 2 (1 - A-priori "
    "bias), 0.5!": (0.5, 1.2, 0.1, 0.75, 0.6, 0.3, 0.8, 0.1),
    "Inter-trial variability in Nondecision time is -0.1, but must be nonnegative and finite!":
        (0.5, 1.2, 0.1, 0.4, 0.6, 0.3, 0.1, -0.1),
}  # fmt: skip
OF_DENSITY = {
    "Nondecision time is -0.1, but must be positive finite!": (0.5, 1.2, -0.1, 0.4, 0.6),
    "A-priori bias[1] is 1.4, but must be in the interval [0, 1]!":
        (0.5, 1.2, 0.1, np.array([0.4, 1.4]), 0.6),
}  # fmt: skip
OF_PROBABILITIES = {
    "Nondecision time is -0.1, but must be nonnegative and finite!": (0.5, 1.2, -0.1, 0.4, 0.6),
    "A-priori bias[1] is 1.0, but must be in the interval (0, 1)!":
        (0.5, 1.2, 0.1, np.array([0.4, 1.0]), 0.6),
}  # fmt: skip


@pytest.mark.parametrize(("message", "f"), [
    *((m, f) for f in (wiener_lpdf, *BOTH) for m in REFUSALS),
    *((m, wiener_lpdf) for m in OF_DENSITY), *((m, f) for f in BOTH for m in OF_PROBABILITIES),
], ids=lambda x: getattr(x, "name", x))  # fmt: skip
def test_refusals(message, f):
    args = {**REFUSALS, **(OF_DENSITY if f is wiener_lpdf else OF_PROBABILITIES)}[message]
    for make in (lambda x: x, vm.var):
        with vm.nested() as tape:
            refuses_as(vm.DomainError, f"{f.name}: {message}", f, *map(make, args))
            assert not tape


@every_function
@pytest.mark.parametrize("others", [(), (0.3,), (0.3, 0.1, 0.1)])
def test_shapes_that_do_not_fit(others, f):
    message = rf"^{f.name}: .* has shape \(2,\), but must have a shape that broadcasts"
    refuses(vm.ShapeError, message, f, Y, 1.2, 0.1, B[:2], 0.6, *others)


@every_function
def test_names(f):
    close(f(Y, A, 0.1, B, 0.6, var_tau=0.0), f(Y, A, 0.1, B, 0.6), 1e-13)
    assert f(Y, A, delta=0.6, beta=B, tau=0.1) == f(Y, A, 0.1, B, 0.6)
    message = rf"^{f.name}: missing a required argument: 'tau'; the signature is {f.name}\(y, "
    refuses(TypeError, message, f, Y, A)
