"""Every cumulative function, from its row of the table: 50 digits, Stan, all routes, both ends of
the support, refusals.
"""

import math
import pickle

import mpmath
import numpy as np
import pytest
import stan
from comparing import close, equal, refuses, refuses_as
from densities.references import TAILS, WITH_TAILS, columns, continuous, every, exact, given
from recordings import EVERY_RUNNER

import varmat as vm
from varmat.densities import univariate
from varmat.densities.cumulative.row import Cumulative
from varmat.programs.run import emit
from varmat.testing import Tolerances, expect_ad, expect_ad_matvar, expect_value

FILES = sorted(path.stem for path in stan.DATA.glob("cumulative*.json"))
every_row, every_density = every(TAILS), every(WITH_TAILS)


@every_row
def test_bulk(row):
    for point in row.points:
        expect_value(row, exact(row), [given(row, point)], rtol=1e-12)


@every_row
def test_tails(row):
    for point in row.tails:
        expect_value(row, exact(row), [given(row, point)], rtol=1e-9)


@every_row
def test_all_routes_agree(row):
    vectors, scalars = columns(row), given(row, row.points[0])
    expect_ad(row, *vectors)
    if not row.name.endswith("_lccdf"):  # whose two tails are those of the others
        expect_ad(row, *scalars, tolerances=Tolerances(hessian=math.inf))
    expect_ad_matvar(row, *vectors)


@every_density
def test_probability_is_the_exponential_of_its_logarithm(row):
    vectors, scalars = columns(row.lcdf), given(row, row.lcdf.points[0])
    if continuous(row):
        expect_ad(row.cdf, *scalars)
        expect_ad_matvar(row.cdf, *scalars)
    for args in (vectors, scalars):
        value, gradients = vm.value_and_grad(row.cdf, continuous(row))(*args)
        log, in_log = vm.value_and_grad(row.lcdf, continuous(row))(*args)
        assert value == math.exp(log)
        for g, h in zip(gradients, in_log, strict=True):
            close(g, value * h, 1e-15)
    equal(row.cdf.pointwise(*vectors), np.exp(row.lcdf.pointwise(*vectors)))
    assert row.cdf(*(v[:0] for v in vectors)) == 1.0


@pytest.mark.parametrize("runner", EVERY_RUNNER)
@pytest.mark.parametrize(("cdf", "args", "slope"), [
    (vm.bernoulli_cdf, (0,), -1.0),            (vm.bernoulli_cdf, ([0, 1],), -1.0),
    (vm.bernoulli_cdf, ([0, 0],), 0.0),        (vm.binomial_cdf, (0, 5), 0.0),
    (vm.binomial_cdf, (4, 5), -5.0),           (vm.binomial_cdf, ([4, 7], [5, 6]), -5.0),
    (vm.binomial_cdf, ([4, -1], 5), 0.0),      (vm.binomial_cdf, ([[4], [2]], 5), 0.0),
])  # fmt: skip
def test_a_certain_success_leaves_a_derivative(cdf, args, slope, runner):
    """At theta = 1 the probability is zero and its logarithm has no finite derivative. The
    derivative here is the one-sided limit, which comes from the mass.
    """
    value, gradient = vm.value_and_grad(lambda theta: cdf(*args, theta))(1.0)
    assert value == 0.0
    close(gradient, slope, 1e-14)
    recorded = vm.recorded(lambda theta: 2.0 * cdf(*args, theta), runner=runner)
    recorded(0.5)
    assert recorded(1.0) == (0.0, pytest.approx(2.0 * slope, rel=1e-14))
    near = 1.0 - 1e-9
    found = vm.value_and_grad(lambda theta: cdf(*args, theta))(near)[1]
    assert found == pytest.approx(slope, rel=1e-7, abs=1e-7)
    refuses(vm.DomainError, r"Probability parameter is 1\.5", cdf, *args, vm.var(1.5))


def entries(throws):
    return [entry for file in FILES for entry in stan.entries(file, throws)]


# Entries at which Stan's relative error is above 1e-9. There we compare with 50 digits.
STAN_IS_OFF = {
    "chi_square_cdf#3",  # derivative in the degrees of freedom
    "exponential_lcdf#5", "exponential_lcdf#7",  # cancellation in 1 - exp(-t) for small t
    # Stan uses a rational approximation of the inverse Mills ratio.
    "normal_lcdf#2", "normal_lcdf#8", "normal_lcdf#24", "std_normal_lcdf#3", "std_normal_lcdf#5",
    "std_normal_lcdf#15",
    "std_normal_lccdf#6", "std_normal_lccdf#9",  # the complement of a number next to 1
    "cauchy_lcdf#5", "frechet_lccdf#5", "gumbel_lccdf#4", "rayleigh_lcdf#5",
    # Incomplete gamma and beta functions lose digits in shape derivatives and in complements of
    # numbers near one.
    "beta_lccdf#5", "beta_lcdf#5", "beta_proportion_lcdf#5", "chi_square_cdf#18",
    "chi_square_cdf#8", "chi_square_lccdf#1", "chi_square_lccdf#18", "chi_square_lcdf#1",
    "chi_square_lcdf#18", "gamma_cdf#1", "gamma_cdf#23", "gamma_cdf#9", "gamma_lccdf#2",
    "gamma_lccdf#23", "gamma_lccdf#9", "gamma_lcdf#4", "inv_chi_square_cdf#17",
    "inv_chi_square_cdf#3", "inv_chi_square_cdf#7", "inv_chi_square_lccdf#1",
    "inv_chi_square_lccdf#17", "inv_chi_square_lccdf#5", "inv_chi_square_lcdf#17",
    "inv_chi_square_lcdf#2", "inv_gamma_cdf#21", "inv_gamma_cdf#3", "inv_gamma_cdf#8",
    "inv_gamma_lccdf#2", "inv_gamma_lccdf#20", "inv_gamma_lcdf#20", "inv_gamma_lcdf#3",
    "neg_binomial_2_cdf#6", "neg_binomial_2_lccdf#8", "neg_binomial_cdf#6",
    "scaled_inv_chi_square_cdf#20", "scaled_inv_chi_square_cdf#3", "scaled_inv_chi_square_lccdf#1",
    "scaled_inv_chi_square_lccdf#20", "scaled_inv_chi_square_lccdf#7",
    "scaled_inv_chi_square_lcdf#2", "scaled_inv_chi_square_lcdf#20", "exp_mod_normal_cdf#6",
    "exp_mod_normal_lccdf#6", "skew_normal_lcdf#5",
    # an approximation from kappa = 50 on
    "von_mises_cdf#5", "von_mises_cdf#8", "von_mises_lccdf#7", "von_mises_lcdf#7",
}  # fmt: skip
# Entries at which Stan's value is wrong, with the right value.
CORRECTED = {
    "uniform_cdf#8": 1.0, "bernoulli_lcdf#8": -math.inf,
    # The scale is infinite. Stan's derivatives are not finite there, and its value is rounded.
    "skew_normal_cdf#17": pytest.approx(0.5 - math.atan(0.8) / math.pi, rel=1e-14),
    "skew_normal_lcdf#17": pytest.approx(math.log(0.5 - math.atan(0.8) / math.pi), rel=1e-14),
}  # fmt: skip
# Stan returns a limit for an infinite location, which is refused here.
REFUSED = {"pareto_type_2_lcdf#15"}
# Observations on the border, where derivatives are one-sided.
ON_THE_BORDER = {"exponential_lccdf#4", "pareto_lccdf#4"}


@pytest.mark.parametrize("entry", entries(throws=False))
def test_stan(entry):
    row = getattr(vm, entry["function"])
    numbers = [stan.number(x) for pair in entry["args"] for x in pair if x is not None] + [
        stan.number(entry["output"])
    ]
    if entry["id"] in REFUSED:
        refuses(vm.DomainError, None, row, *stan.arguments(entry))
    elif entry["id"] in STAN_IS_OFF:
        refuses(AssertionError, None, stan.check, row, entry, rtol=1e-9)
        assert np.ndim(row(*stan.arguments(entry))) == 0
        log = row.log if isinstance(row, Cumulative) else row
        for point in np.broadcast(*stan.arguments(entry)):
            expect_value(log, exact(log), [given(log, map(float, point))], rtol=1e-10)
    elif entry["id"] in {*ON_THE_BORDER, *CORRECTED} or not all(
        np.all(np.isfinite(x)) for x in numbers
    ):
        # `test_outside_the_support` tests the derivatives at the ends of the support.
        found = row(*stan.arguments(entry))
        assert found == CORRECTED.get(entry["id"], stan.number(entry["output"]))
    else:
        stan.check(row, entry, rtol=1e-9)


@pytest.mark.parametrize("entry", entries(throws=True))
def test_refuses_what_stan_refuses(entry):
    """What Stan refuses is an error here too, except an observation outside the support."""
    row = getattr(vm, entry["function"])
    try:
        value = row(*stan.arguments(entry))
    except (vm.DomainError, vm.ShapeError):
        return
    if row.name.startswith("von_mises"):  # the scale 0 is accepted: the distribution is uniform
        assert 0.0 in stan.arguments(entry)
        return
    assert value in (-math.inf, 0.0, 1.0)


@pytest.mark.parametrize("kappa", [300.0, 355.0, 1e3, 1e5])
@pytest.mark.parametrize("deviation", [-8.0, 0.5, 3.0])
def test_concentrated_angles(kappa, deviation):
    """The density at the end of the circle underflows. Far from it, moving the location is moving
    the observation the other way.
    """
    y = 0.1 + deviation / math.sqrt(kappa)
    for row in (vm.von_mises_cdf, vm.von_mises_lcdf, vm.von_mises_lccdf):
        in_y, in_mu, in_kappa = vm.value_and_grad(row, (0, 1, 2))(y, 0.1, kappa)[1]
        assert in_y != 0.0
        close(in_mu, -in_y, 1e-13)
        assert math.isfinite(in_kappa)


def test_angles_outside_the_circle_are_refused():
    """The density has a value there, so the probability is not 0 or 1."""
    for row in (vm.von_mises_cdf, vm.von_mises_lcdf, vm.von_mises_lccdf):
        for y, place in ((4.0, ""), (-math.inf, ""), ([0.3, -3.5], r"\[1\]")):
            worst = y if isinstance(y, float) else y[1]
            rule = (
                rf"^{row.name}: Random variable{place} is {worst}, but must be in the interval "
                r"\[-pi, pi\]!$"
            )
            refuses(vm.DomainError, rule, row, y, vm.var(0.1), 1.5)


@pytest.mark.parametrize("phi", [1e6, 1e8, 1e10, 1e12])
@pytest.mark.parametrize(("n", "mu"), [(3, 2.5), (37, 40.0), (4, 5.0), (3, 3.0), (37, 37.0)])
def test_large_precision(n, mu, phi):
    """The derivative in it is of order phi**-2, except at a mean equal to the count."""
    with mpmath.workdps(90):

        def exact_sum(precision):
            mass = total = (precision / (mu + precision)) ** precision
            for k in range(n):
                mass *= (precision + k) / (k + 1) * mu / (mu + precision)
                total += mass
            return total

        at, step = mpmath.mpf(phi), phi * mpmath.mpf(10) ** -20
        slope = (exact_sum(at + step) - exact_sum(at - step)) / (2 * step)
        expected = [float(x) for x in (slope, slope / exact_sum(at), slope / (exact_sum(at) - 1))]
    for row, right in zip(
        (vm.neg_binomial_2_cdf, vm.neg_binomial_2_lcdf, vm.neg_binomial_2_lccdf),
        expected,
        strict=True,
    ):
        absolute = 1e-12 / phi**2 if n == mu else 0.0
        assert vm.grad(row, 2)(n, mu, phi) == pytest.approx(right, rel=1e-12, abs=absolute)


@every_row
def test_long_arrays_agree_with_short_ones(row, monkeypatch):
    """Long arrays are computed in place and block by block."""
    monkeypatch.setattr(emit, "BLOCK", 20)  # several blocks, the last one shorter
    args = [np.tile(v, 103 // v.size + 1)[:103] for v in columns(row)]
    results = []
    for long in (1, 1000):
        monkeypatch.setattr(row, "_uses", {})
        monkeypatch.setattr(univariate, "LONG", long)
        results.append(vm.value_and_grad(row, continuous(row))(*args))
    (value, gradients), (expected, others) = results
    close(value, expected, 1e-12)
    close(gradients, others, 1e-12)


@every_density
def test_outside_the_support(row):
    """One of the two probabilities is 0 and the other is 1. All derivatives are 0."""
    for of_zero, of_one in ((row.lcdf, row.lccdf), (row.lccdf, row.lcdf)):
        assert bool(of_zero.outside) == (of_zero.formula.support is not None)
        for point in of_zero.outside:
            args = given(row, point) if all(map(math.isfinite, point)) else point
            names = continuous(row)
            for f, expected in ((of_zero, -math.inf), (of_one, 0.0)):
                value, gradients = vm.value_and_grad(f, names)(*args)
                assert (value, gradients) == (expected, (0.0,) * len(names))
                last = names[-1] if names else 0
                assert (
                    not names
                    or vm.hessian(lambda x, f=f: f(*args[:last], x, *args[last + 1 :]), args[last])  # noqa: B023
                    == 0.0
                )
            # The same point beside observations in the bulk.
            arrays = [
                np.append(np.asarray(c, float), x)
                for c, x in zip(columns(of_one), point, strict=True)
            ]
            alone = vm.value_and_grad(of_one, names)(*columns(of_one))
            value, gradients = vm.value_and_grad(of_one, names)(*arrays)
            close(value, alone[0], 1e-15)
            for g, h in zip(gradients, alone[1], strict=True):
                close(g, np.append(h, 0.0), 2e-15)
            assert of_zero(*arrays) == -math.inf


@every_density
def test_arguments_outside_their_domain(row):
    for f in (row.cdf, row.lcdf, row.lccdf):
        for i, (title, domain) in enumerate(f.arguments.values()):
            args = [*given(row, row.lcdf.points[0])]
            args[i] = math.nan
            with vm.nested() as tape:
                variables = [
                    vm.var(float(x)) if k in continuous(row) else x for k, x in enumerate(args)
                ]
                text = f"{f.name}: {title} is nan, but must be {domain.phrase}!"
                refuses_as(vm.DomainError, text, f, *variables)
                assert not tape


@every_density
def test_functions_of_a_family(row):
    family = row.name.rpartition("_")[0]
    found = [f.name for f in (row.cdf, row.lcdf, row.lccdf)]
    assert found == [f"{family}_{suffix}" for suffix in ("cdf", "lcdf", "lccdf")]
    for f in (row.cdf, row.lcdf, row.lccdf, row.cdf.log):
        assert pickle.loads(pickle.dumps(f)) is f
        assert "propto" not in str(f.__signature__)


def test_every_function_belongs_to_a_density():
    assert {*TAILS} == {f for row in WITH_TAILS for f in (row.lcdf, row.lccdf)}
    functions = {f for name in vm.__all__ if isinstance(f := getattr(vm, name), Cumulative)}
    assert functions == {row.cdf for row in WITH_TAILS}
