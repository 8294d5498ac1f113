"""The machinery for densities of one variable, tested with the normal density."""

import inspect
import itertools
import math

import numpy as np
import pytest
from comparing import SHAPE, close, equal, refuses, refuses_as

import varmat as vm
from varmat.core.domains import finite, positive
from varmat.core.operation import OPERATIONS
from varmat.densities.cumulative.row import LogCumulative
from varmat.densities.density import Density, not_nan
from varmat.densities.normal import normal_lpdf
from varmat.densities.univariate import LogDensity, univariate
from varmat.testing import expect_ad, expect_ad_matvar

Y, MU, SIGMA = np.array([0.3, -2.0, 4.0]), np.array([0.1, -1.0, 3.0]), np.array([1.5, 0.7, 2.5])


COLUMN = np.array([[0.5], [-1.5]])
BROADCAST = {
    "scalars": (0.3, 0.1, 1.5),
    "vectors": (Y, MU, SIGMA),
    **{
        "".join("vs"[not v] for v in vector): tuple(
            a if v else float(a[0]) for a, v in zip((Y, MU, SIGMA), vector, strict=True)
        )
        for vector in list(itertools.product((True, False), repeat=3))[1:-1]
    },
    "outer": (Y, COLUMN, 1.5),
    "outer, scales": (COLUMN, MU, np.exp(COLUMN)),
    "size one": (Y, np.array([0.5]), np.array([[2.0]])),
    "strided": (np.arange(6.0)[::-2], MU, np.array(SIGMA)[::-1]),
    "stack": (np.arange(12.0).reshape(2, 3, 2), COLUMN.ravel(), 3.0),
    "empty": (np.empty(0), 0.5, np.array([2.0])),
    "empty, all": (np.empty((0, 3)), MU, SIGMA),
}


@pytest.mark.parametrize("args", BROADCAST.values(), ids=BROADCAST)
def test_all_routes_agree(args):
    expect_ad(normal_lpdf, *args)
    expect_ad_matvar(normal_lpdf, *args)
    y, mu, sigma = args
    z, constant = (y - mu) / sigma, 0.5 * math.log(2.0 * math.pi)
    close(normal_lpdf(*args), np.sum(-0.5 * z * z - np.log(sigma) - constant), 1e-13)
    full = vm.value_and_grad(normal_lpdf, (0, 1, 2))(*args)
    some = vm.value_and_grad(normal_lpdf.proportional, (0, 1, 2))(*args)
    close(some[0], full[0] + np.size(z + sigma) * constant, 1e-13)
    equal(full[1], some[1])


@pytest.mark.parametrize("chosen", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)], ids=str)
def test_propto_keeps_what_depends_on_variables(chosen):
    z = (Y - MU) / SIGMA
    expected = -0.5 * np.sum(z * z) - (np.sum(np.log(SIGMA)) if 2 in chosen else 0.0)
    slopes = -z / SIGMA, z / SIGMA, (z * z - 1) / SIGMA
    found = vm.value_and_grad(normal_lpdf.proportional, chosen)(Y, MU, SIGMA)
    close(found, (expected, tuple(slopes[i] for i in chosen)), 1e-14)

    def some(*given):
        args = dict(enumerate((Y, MU, SIGMA))) | dict(zip(chosen, given, strict=True))
        return normal_lpdf(*args.values(), propto=True)

    primals = tuple((Y, MU, SIGMA)[i] for i in chosen)
    forward = vm.jvp(some, primals, tuple(np.ones(3) for _ in chosen))
    close(forward, (expected, sum(np.sum(slopes[i]) for i in chosen)), 1e-12)


def test_propto_takes_names_and_matvars():
    value, g = vm.value_and_grad(lambda mu: normal_lpdf(y=0.5, mu=mu, sigma=2.0, propto=True))(0.1)
    close((value, g), (-0.5 * 0.2**2, 0.1), 1e-14)
    with vm.nested():
        mu = vm.matvar(MU)
        y = normal_lpdf(Y, mu, 1.5, propto=True)
        y.grad()
        close(mu.adj, (Y - MU) / 2.25, 1e-14)
    assert normal_lpdf(Y, MU, SIGMA, propto=True) == 0.0


def test_types():
    assert type(normal_lpdf(1, 0, 2)) is float
    assert type(normal_lpdf([1, 2], np.float32(0.0), np.array(2.0))) is float
    expected = normal_lpdf(np.array([1.0, 2.0]), 0.0, 2.0)
    close(normal_lpdf([1, 2], np.float32(0.0), np.array(2.0)), expected, 1e-6)
    with vm.nested():
        assert type(normal_lpdf(vm.var(Y), 0, np.array(2.0))) is vm.Var
        sigma = vm.var(2.0)
        normal_lpdf(np.array(1.0), 3, sigma).grad()
        assert sigma.adj == 0.0
    value = normal_lpdf(np.empty(0), 0.0, 1.0)
    assert value == 0.0
    assert math.copysign(1.0, value) == 1.0


# `test_univariate` tests each argument alone, for all rows.
BAD_ARGUMENTS = [
    ((Y, MU, [1.0, 0.0, -1.0]), "Scale parameter[1] is 0.0, but must be positive!"),
    ((Y, MU, [[1.0, 1.0, 1.0], [1.0, 1.0, -2.0]]),
     "Scale parameter[1, 2] is -2.0, but must be positive!"),
    (([math.inf], [math.inf], 1.0), "Location parameter[0] is inf, but must be finite!"),
    (([], math.nan, 1.0), "Location parameter is nan, but must be finite!"),
    (([], 0.0, -1.0), "Scale parameter is -1.0, but must be positive!"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "text"), BAD_ARGUMENTS, ids=[m for _, m in BAD_ARGUMENTS])
def test_arguments_outside_their_domain(args, text):
    for propto, make in itertools.product((False, True), (np.array, vm.var)):
        with vm.nested() as tape:
            with pytest.raises(vm.DomainError) as caught:
                normal_lpdf(*map(make, args), propto=propto)
            assert str(caught.value) == f"normal_lpdf: {text}"
            assert caught.value.is_recoverable
            assert not tape


def test_lists_behind_an_array_without_axes():
    for f in (vm.weibull_lpdf, vm.normal_lpdf, vm.normal_lcdf):
        expected = f(1.0, np.array([1.0, 2.0]), np.array([2.0]))
        assert f(np.array(1.0), [1.0, 2.0], (2.0,)) == expected
        assert vm.value_and_grad(lambda y, f=f: f(y, [1.0, 2.0], (2.0,)))(1.0)[0] == expected
    with pytest.raises(vm.DomainError, match=r"Scale parameter\[0\] is -2.0"):
        vm.normal_lpdf(np.array(1.0), [1.0, 2.0], [-2.0])


@pytest.mark.parametrize(("args", "error", "text"), [
    ((np.zeros(3), np.zeros(2), 1.0), SHAPE,
     "Location parameter has shape (2,), but must have a shape that "),
    ((Y, MU, []), SHAPE,
     "Scale parameter has shape (0,), but must have a shape that broadcasts with (3,)!"),
    (([[1.0], [2.0, 3.0]], vm.var(0.0), 1.0), SHAPE,
     "y is a list with parts of different shapes, but must be an array!"),
    ((Y, MU), TypeError, "missing a required argument: 'sigma'"),
    ((Y, MU, SIGMA, 1.0), TypeError, "too many positional arguments"),
    ((Y, MU, 1j), TypeError, "sigma has dtype complex128, but must be real numbers"),
    ((Y, "a", 1.0), TypeError, "mu has dtype <U1, but must be real numbers"),
])  # fmt: skip
def test_calls_that_are_refused(args, error, text):
    refuses_as(error, f"normal_lpdf: {text}", normal_lpdf, *args)


def test_a_name_that_no_argument_has_is_refused():
    for settings in ({}, {"propto": True}):
        refuses(TypeError, "normal_lpdf", normal_lpdf, Y, MU, scale=1.0, **settings)


@pytest.mark.parametrize(("args", "value", "gradients"), [
    ((math.inf, 0.0, 1.0), -math.inf, (-math.inf, math.inf, math.inf)),
    ((np.array([0.0, -math.inf]), 0.0, 1.0), -math.inf,
        (np.array([0.0, math.inf]), -math.inf, math.inf)),
    ((0.5, 0.0, math.inf), -math.inf, (0.0, 0.0, 0.0)),
    ((1e200, 0.0, np.array([1.0])), -math.inf, (-1e200, 1e200, np.array([math.inf]))),
    ((1e200, 0.0, 1e-200), -math.inf, (-math.inf, math.inf, math.inf)),
])  # fmt: skip
def test_limits(args, value, gradients):
    result = vm.value_and_grad(normal_lpdf, (0, 1, 2))(*args)
    assert result[0] == value
    equal(result[1], gradients)


def test_signature_and_text():
    assert str(inspect.signature(normal_lpdf)) == "(y, mu, sigma, *, propto=False)"
    assert repr(normal_lpdf) == "<varmat density normal_lpdf(y, mu, sigma, *, propto=False)>"


def test_a_density_of_ones_own():
    @univariate(
        "exponential distribution with a given scale",
        y=("Random variable", not_nan),
        beta=("Scale parameter", positive),
        points=[(1.0, 2.0)],
    )
    def own_exponential_lpdf(y, beta):
        """With :math:`s = 1 / \\beta` the log density is
        :math:`\\log s - y s`.

        >>> 1 + 1
        2
        """
        s = 1.0 / beta
        return LogDensity(-y * s, np.log(s), y=-s, beta=(y * s - 1.0) * s, support=y >= 0)

    own = own_exponential_lpdf
    assert own.__module__ == __name__
    assert "\n    Notes\n    -----\n    With :math:`s = 1 / \\beta`" in own.__doc__
    assert "is\n    :math:`\\log s" in own.__doc__
    assert own.__doc__.endswith("\n    Examples\n    --------\n    >>> 1 + 1\n    2\n")
    positive_y = np.abs(COLUMN)
    for args in (
        (SIGMA, 2.0),        (Y**2, SIGMA),       (2.0, SIGMA),        (positive_y, SIGMA),
        (Y**2, COLUMN + 2),  (positive_y, 3.0),   (0.5, 2.0),
    ):  # fmt: skip
        expect_ad(own, *args)
        close(own(*args), np.sum(-args[0] / args[1] - np.log(args[1])), 1e-14)
    message = r"^own_exponential_lpdf: Scale parameter\[0\] is -1.0, but must be positive!$"
    refuses(vm.DomainError, message, own, 1.0, np.array([-1.0]))
    assert own(np.array([1.0, -1.0]), 2.0) == -math.inf
    del OPERATIONS["own_exponential_lpdf"]


def test_a_second_reverse_pass_finds_its_partials_again():
    """In the first pass the partials became adjoints, to which other contributions were added."""
    for y in (Y, np.tile(Y, 5000)):
        with vm.nested():
            x, m = vm.var(y), vm.var(np.zeros(y.size))
            total = normal_lpdf(x, m, 2.0) + np.sum(x) + np.sum(m)
            for _ in range(3):
                gx, gm = total.grad([x, m])
                close(gx, 1.0 - y / 4.0, 1e-14)
                close(gm, 1.0 + y / 4.0, 1e-14)


def test_a_partial_is_never_an_array_of_somebody_else():
    """If a partial is an argument, or is the partial of another argument too, it is copied before
    it becomes an adjoint.
    """

    @univariate(
        "no distribution",
        y=("Random variable", not_nan),
        mu=("Location parameter", finite),
        w=("Weight", finite),
        points=[(1.0, 2.0, 3.0)],
    )
    def odd_lpdf(y, mu, w):
        return LogDensity(y * mu, y * w, y=mu + w, mu=y, w=y)

    with vm.nested():
        y, mu, w = vm.var(Y), vm.var(MU), vm.var(SIGMA)
        (np.sum(mu * 10.0) + odd_lpdf(y, mu, w)).grad()
        close(mu.adj, Y + 10.0, 1e-7)
        equal(w.adj, Y)
        equal(y.val, Y)
    del OPERATIONS["odd_lpdf"]


def test_bounds_in_the_wrong_order_leave_nothing_on_the_tape():
    with vm.nested() as tape:
        lower, upper = vm.var([1.0, 1.0]), vm.var([[3.0, 4.0], [0.5, 2.0]])
        message = r"Upper bound parameter\[1, 0\] is 0.5, but must be greater"
        refuses(vm.DomainError, message, vm.uniform_lpdf, 1.5, lower, upper)
        assert not tape


@pytest.mark.parametrize(
    "density", [vm.multi_normal_lpdf, vm.multi_gp_lpdf, vm.wishart_cholesky_lpdf]
)
def test_references_of_a_family_are_indented_as_the_text_around_them(density):
    """Sphinx takes what is indented further for the content of the heading."""
    text = inspect.cleandoc(density.__doc__)
    section = text.partition("References\n----------\n")[2].partition("\n\n")[0]
    assert section
    assert not any(line.startswith(" ") for line in section.splitlines())


def test_every_density_has_an_unnormalised_one_under_stans_name():
    rows = [each for name in vm.__all__ if isinstance(each := getattr(vm, name), Density)]
    densities = [each for each in rows if not isinstance(each, LogCumulative)]
    assert len(densities) > 30
    for each in densities:
        assert getattr(vm, each.name.replace("_lp", "_lup")) is each.proportional
