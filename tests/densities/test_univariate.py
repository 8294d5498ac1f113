"""Every density of one variable, from its row of the table: 50 digits, Stan, all routes, dropped
terms, refusals, the border.
"""

import itertools
import math
import re
from functools import partial

import mpmath
import numpy as np
import pytest
import stan
from comparing import close, equal, refuses, refuses_as
from densities.references import ROWS, columns, continuous, every, exact, given

import varmat as vm
import varmat.distributions as dist
from varmat.densities import univariate
from varmat.programs.run import emit
from varmat.testing import expect_ad, expect_ad_matvar, expect_value

every_row = every(ROWS)


@every_row
def test_bulk(row):
    for point in row.points:
        expect_value(row, exact(row), [given(row, point)], rtol=1e-12)


@every_row
def test_tails(row):
    for point in row.tails:
        expect_value(row, exact(row), [given(row, point)], rtol=1e-7)


def stan_entries(throws):
    names = {row.name for row in ROWS}
    entries = [p for file in ("univariate", "univariate_more") for p in stan.entries(file, throws)]
    return [p for p in entries if p.values[0]["function"] in names]


# Entries at which Stan is wrong, with the right results.
FAR = math.exp(-25.0) / (1.0 + math.exp(-25.0))
CORRECTED = {
    # Stan drops exp(-x) beyond 20, and in the last case its sign is wrong.
    "bernoulli_logit_lpmf#5": {"gradients": [None, FAR - 1.0]},
    "bernoulli_logit_lpmf#6": {"gradients": [None, 1.0 - FAR]},
    "bernoulli_logit_lpmf#11": {"gradients": [None, FAR]},
    # The right gradient is the limit of -1 / (1 - theta) at 1.
    "bernoulli_lpmf#12": {"gradients": [None, -math.inf]},
    # The right gradients are the limits of n / rate - 1 at the rate 0, and of n - exp(alpha).
    "poisson_lpmf#10": {"gradients": [None, -1.0]},
    "poisson_lpmf#11": {"gradients": [None, math.inf]},
    "poisson_log_lpmf#9": {"gradients": [None, -math.inf]},
    # The right gradient is the limit of (z * z - 1) / (z * z + 1) / sigma.
    "cauchy_lpdf#14": {"gradients": [math.nan, math.nan, 1.0 / 1.5]},
    "cauchy_lpdf#15": {"gradients": [math.nan, math.nan, 1.0 / 1.5]},
    # 0 log 0 is zero.
    "beta_lpdf#9": {"output": 0.0, "gradients": [0.0, -math.inf, 1.0]},
    "weibull_lpdf#7": {"output": 0.0, "gradients": [-1.0, -math.inf, -1.0]},
    # The right value is the limit of -z - exp(-z) at -inf. Outside the support the gradient is
    # zero.
    "gumbel_lpdf#16": {"output": -math.inf, "gradients": [0.0, 0.0, 0.0]},
    "skew_normal_lpdf#16": {"gradients": [0.0, 0.0, 0.0, 0.0]},
    # Stan's erfc underflows. The right results are from 50 digits.
    "exp_mod_normal_lpdf#9": {"output": -1.3991518862371114,
                              "gradients": [-0.979608801161543929, 0.979608801161543929,
                                            -0.0399511407612596372, -0.000391198838456071318]},
}  # fmt: skip
# Parameters that Stan does not check.
UNCHECKED = {"pareto_type_2_lpdf#17": "Location parameter is -inf, but must be finite!"}
# Terms that Stan fails to drop with propto.
KEPT = {"lognormal_lpdf": 0.5 * math.log(2.0 * math.pi)}


@pytest.mark.parametrize("entry", stan_entries(throws=False))
def test_stan(entry):
    row = getattr(vm, entry["function"])
    if entry["id"] in UNCHECKED:
        with pytest.raises(vm.DomainError, match=f"^{row.name}: {UNCHECKED[entry['id']]}$"):
            row(*stan.arguments(entry))
        return
    right = CORRECTED.get(entry["id"], {})
    if "gradients" in right:
        entry = entry | {
            "args": [[x, g] for (x, _), g in zip(entry["args"], right["gradients"], strict=True)]
        }
    if entry.get("propto"):
        kept = KEPT.get(row.name, 0.0) if any(g is not None for _, g in entry["args"]) else 0.0
        row, right = row.proportional, {"output": entry["output"] + kept}
    stan.check(row, entry | right, rtol=1e-11)


@pytest.mark.parametrize("entry", stan_entries(throws=True))
def test_refuses_what_stan_refuses(entry):
    """What Stan refuses is an error here too, except an observation outside the support or on its
    border.
    """
    row = getattr(vm, entry["function"])
    try:
        value = row(*stan.arguments(entry))
    except (vm.DomainError, vm.ShapeError):
        return
    assert value == (0.0 if entry["id"] == "gamma_lpdf#9" else -math.inf)


@every_row
def test_all_routes_agree(row):
    expect_ad(row, *columns(row))
    expect_ad(row, *given(row, row.points[0]))
    expect_ad_matvar(row, *columns(row))


@every_row
def test_a_number_among_arrays_counts_for_every_element(row):
    vectors, scalars = columns(row), given(row, row.points[0])
    names = continuous(row)
    for i, number in enumerate(scalars):
        args, tiled = (
            [one if k == i else v for k, v in enumerate(vectors)]
            for one in (number, np.full(len(vectors[0]), number))
        )
        # Some observation may be outside the support that the number implies.
        if not names or len(args) == 1 or not np.isfinite(row(*args)):
            continue
        value, gradients = vm.value_and_grad(row, names)(*tiled)
        expected = [np.sum(g) if k == i else g for k, g in zip(names, gradients, strict=True)]
        size = max(np.max(np.abs(g)) for g in gradients)
        for f in (vm.value_and_grad(row, names), vm.recorded(row, names, runner="numpy")):
            found = f(*args)
            close(found[0], value, 1e-12)
            close(found[1], expected, 1e-11, 1e-12 * size)
        if i in names:
            args[i] = vm.Dual(number, 1.0)
            slope = expected[names.index(i)]
            close(row(*args).tan, slope, 1e-11, 1e-12 * size)


def test_arrays_of_integers_are_numbers():
    """Arithmetic of small or unsigned integers would wrap around."""
    small, ones = np.array([1, 3, 200], np.uint8), np.ones(3, np.int8)
    for row in (vm.normal_lpdf, vm.logistic_lpdf, vm.double_exponential_lpdf, vm.cauchy_lpdf):
        for args in ((small, ones + 2, 2.0), (ones, small, ones), (0.5, small, small)):
            for f in (row, row.pointwise):
                equal(f(*args), f(*(np.asarray(x, float) for x in args)))
    for row in (vm.poisson_lpmf, vm.poisson_log_lpmf):
        equal(row(small, ones), row(small.astype(float), 1.0))
    message = "normal_lpdf: y has dtype complex128, but must be real numbers"
    refuses(TypeError, message, vm.normal_lpdf, np.array([1j]), 0.0, 1.0)


@every_row
def test_shapes(row):
    vectors = columns(row)
    tall = [np.array([v, v])[:, ::-1] for v in vectors]
    many = row(*tall)
    close(many, 2 * row(*vectors), 1e-13)
    close(row(*(v[:, None] for v in vectors)), row(*vectors), 1e-13)
    assert row(*(v[:0] for v in vectors)) == 0.0


@every_row
def test_long_arrays_agree_with_short_ones(row, monkeypatch):
    """Long arrays are computed in place and block by block, with scalars among them, data and
    variables, with propto and without.
    """
    monkeypatch.setattr(emit, "BLOCK", 20)  # several blocks, the last one shorter
    monkeypatch.setattr(row, "_uses", {})
    vectors, scalars = columns(row), given(row, row.points[0])
    free = continuous(row)
    count = len(vectors)
    # All arrays, or one argument as the odd one out.
    odd = [[i == k for i in range(count)] for k in range(count)] if count > 1 else []
    for chosen in [[True] * count, *odd, *([not c for c in each] for each in odd)]:
        args = [
            np.tile(v, 103 // v.size + 1)[:103] if c else s
            for v, s, c in zip(vectors, scalars, chosen, strict=True)
        ]
        parts = (free[:1], free[-1:]) if all(chosen) else ()
        for variables in (free, *parts):
            results = []
            for long in (1, 1000):
                monkeypatch.setattr(univariate, "LONG", long)
                kept = [] if free == variables else [row.proportional]
                results.append(
                    [vm.value_and_grad(f, tuple(variables))(*args) for f in (row, *kept)]
                )
            for (value, gradients), (expected, others) in zip(*results, strict=True):
                close(value, expected, 1e-12)
                close(gradients, others, 1e-12)


def test_results_of_long_arrays_are_their_own():
    y = np.linspace(-1.0, 2.0, 3 * univariate.LONG)
    gradients = vm.value_and_grad(vm.normal_lpdf, (0, 1))(y, 0.5 * y, 2.0)[1]
    again = vm.value_and_grad(vm.normal_lpdf, (0, 1))(y, 0.25 * y, 2.0)[1]
    arrays = [y, *gradients, *again]
    assert not any(np.may_share_memory(a, b) for a, b in itertools.combinations(arrays, 2))
    close(gradients[0], -0.125 * y, 1e-14)
    equal(gradients[1], -gradients[0])


def test_long_arrays_where_floats_raise():
    """Python's floats raise where IEEE arithmetic gives an infinite value or derivative."""
    found = vm.value_and_grad(vm.poisson_log_lpmf, 1)(np.ones(univariate.LONG), 800.0)
    assert found == (-math.inf, -math.inf)
    for counts in (3, [0, 3], np.ones(univariate.LONG)):
        found = vm.value_and_grad(vm.poisson_lpmf, 1)(counts, math.inf)
        assert found == (-math.inf, -float(np.size(counts)))


@pytest.mark.parametrize("long", [univariate.LONG, 1], ids=["short", "long"])
@every([row for row in ROWS if row.fast and row.fast.number])
@pytest.mark.parametrize(
    ("residual", "sigma"),
    [(1.0, 2.0), (1e-170, 1e-170), (1e170, 1e170), (1e160, 1e10), (1.0, 1e-120)],
)
def test_quick_forms(row, residual, sigma, long, monkeypatch):
    """Arrays beside a number agree with their elements one by one, even if the squares of residuals
    or of sigma overflow.
    """
    monkeypatch.setattr(univariate, "LONG", long)
    monkeypatch.setattr(row, "_uses", {})
    forms, original = [], row._functions
    monkeypatch.setattr(row, "_functions", lambda *args: forms.append(args[-1]) or original(*args))
    y = residual * np.array([1.0, -2.0, 3.0])
    y = np.exp(np.clip(y, -700.0, 700.0)) if row.formula.support is not None else y
    freedom = [5.0] if "nu" in row.arguments else []
    names = tuple(range(len(row.arguments)))
    args = [y, *freedom, 0.25 * min(residual, 1.0), sigma]
    value, gradients = vm.value_and_grad(row, names)(*args)
    holds = (
        1e-100 < sigma < 1e100
        and np.max(np.abs(np.log(y) if row.formula.support is not None else y)) < 1e154
    )
    assert forms == ([True] if holds else [True, False])
    single = [vm.value_and_grad(row, names)(float(x), *args[1:]) for x in y]
    close(value, sum(v for v, _ in single), 1e-13)
    close(gradients[0], [g[0] for _, g in single], 1e-13)
    for g, *each in zip(gradients[1:], *(g[1:] for _, g in single), strict=True):
        assert g == pytest.approx(math.fsum(each), rel=1e-12, abs=1e-14 * max(map(abs, each)))


@pytest.mark.parametrize("long", [univariate.LONG, 1], ids=["short", "long"])
@pytest.mark.parametrize(("row", "argnum", "args"), [
    (vm.poisson_lpmf, 1, ([0, 3, 2], [0.0, 2.5, 1.0])),
    (vm.poisson_log_lpmf, 1, ([0, 3, 2], [-math.inf, 0.5, 0.0])),
    (vm.binomial_lpmf, 2, ([0, 10, 4], 10, [0.0, 1.0, 0.5])),
    (vm.bernoulli_lpmf, 1, ([0, 1, 1], [0.0, 1.0, 0.5])),
    (vm.beta_lpdf, 0, ([0.0, 0.25, 0.5], 1.0, 3.0)),
    (vm.beta_lpdf, 0, ([1.0, 0.25, 0.5], 2.5, 1.0)),
    (vm.gamma_lpdf, 0, ([0.0, 0.25, 0.5], 1.0, 3.0)),
    (vm.chi_square_lpdf, 0, ([0.0, 0.25, 0.5], 2.0)),
    (vm.weibull_lpdf, 0, ([0.0, 0.25, 0.5], 1.0, 3.0)),
])  # fmt: skip
def test_quick_forms_at_limits(row, argnum, args, long, monkeypatch):
    """At these limits 0 times infinity must be 0."""
    monkeypatch.setattr(univariate, "LONG", long)
    assert row.fast is not None
    value, gradient = vm.value_and_grad(row, argnum)(
        *(np.array(x) if isinstance(x, list) else x for x in args)
    )
    single = [
        vm.value_and_grad(row, argnum)(*(x[i] if isinstance(x, list) else x for x in args))
        for i in range(3)
    ]
    assert math.isfinite(value)
    close(value, sum(v for v, _ in single), 1e-14)
    close(gradient, [g for _, g in single], 1e-14)


# Density, position of the variable, arguments, second derivative.
BORDER = [
    (vm.poisson_lpmf, 1, (0, 0.0), 0.0),
    (vm.poisson_lpmf, 1, (2, 0.0), -math.inf),
    (vm.binomial_lpmf, 2, (0, 5, 0.0), -5.0),
    (vm.binomial_lpmf, 2, (5, 5, 1.0), -5.0),
    (vm.binomial_lpmf, 2, (2, 5, 1.0), -math.inf),
    (vm.bernoulli_lpmf, 1, (0, 0.0), -1.0),
    (vm.bernoulli_lpmf, 1, (1, 1.0), -1.0),
    (vm.bernoulli_lpmf, 1, (1, 0.0), -math.inf),
    (vm.beta_lpdf, 0, (0.0, 1.0, 3.0), -2.0),
    (vm.beta_lpdf, 0, (1.0, 3.0, 1.0), -2.0),
    (vm.beta_lpdf, 0, (0.0, 2.0, 3.0), -math.inf),
    (vm.gamma_lpdf, 0, (0.0, 1.0, 1.5), 0.0),
    (vm.gamma_lpdf, 0, (0.0, 2.0, 1.5), -math.inf),
    (vm.chi_square_lpdf, 0, (0.0, 2.0), 0.0),
    (vm.weibull_lpdf, 0, (0.0, 1.0, 1.5), 0.0),
    (vm.weibull_lpdf, 0, (0.0, 2.0, 1.5), -math.inf),
]


@pytest.mark.parametrize("pointwise", [False, True], ids=["sum", "pointwise"])
@pytest.mark.parametrize(("row", "argnum", "args", "second"), BORDER)
def test_forward_and_second_derivatives_on_the_border(row, argnum, args, second, pointwise):
    """They are as exact as the gradient: never 0 times infinity, and infinite only if that is the
    limit.
    """
    f = row.pointwise if pointwise else row
    along = lambda t: f(*args[:argnum], t, *args[argnum + 1 :])  # noqa: E731 - used below
    at = args[argnum]
    assert vm.jvp(along, (at,), (1.0,)) == (along(at), vm.gradient(along, at))
    assert vm.hessian(along, at) == second
    # The same point beside an observation in the bulk.
    inside = row.points[0]
    arrays = [np.array(pair) for pair in zip(args, inside, strict=True)]
    both = vm.hessian(
        lambda t: np.sum(f(*arrays[:argnum], t, *arrays[argnum + 1 :])), arrays[argnum]
    )
    alone = vm.hessian(lambda t: row(*inside[:argnum], t, *inside[argnum + 1 :]), inside[argnum])
    assert both[0, 0] == second
    close(both[1, 1], alone, 1e-14)
    if math.isfinite(second):
        equal(both - np.diag(np.diag(both)), 0.0)


@every_row
def test_propto_drops_what_is_constant(row):
    """The proportional density has the same gradient. It differs from the density by one number,
    whatever the variables are.
    """
    vectors = columns(row)
    free = continuous(row)
    for count in range(1, len(free) + 1):
        for chosen in itertools.combinations(free, count):
            full = vm.value_and_grad(row, chosen)
            some = vm.value_and_grad(row.proportional, chosen)
            # Reversing the vectors moves the variables, and the points stay inside the domain.
            gaps, size = [], 1.0
            for order in (slice(None), slice(None, None, -1)):
                args = [v[order] if i in chosen else v for i, v in enumerate(vectors)]
                (a, g), (b, h) = full(*args), some(*args)
                gaps.append(a - b)
                size = max(size, *(abs(x) for x in (a, b) if math.isfinite(x)))
                equal(g, h)
            finite = [gap for gap in gaps if math.isfinite(gap)]
            assert max(finite) - min(finite) <= 1e-12 * size
    assert row.proportional(*vectors) == 0.0


BAD = {
    "positive": -1.0, "positive finite": math.inf, "finite": math.inf, "nonnegative": -1.0,
    "not nan": math.nan, "nonnegative finite": math.inf, "positive and less than 1": 1.0,
}  # fmt: skip


@every_row
def test_arguments_outside_their_domain(row):
    vectors, free = columns(row), continuous(row)
    for i, (title, domain) in enumerate(row.arguments.values()):
        for bad in {BAD.get(domain.phrase, math.nan), math.nan}:
            scalars = [float(x) for x in row.points[0]]
            scalars[i] = bad
            arrays = [np.array(v, dtype=float) for v in vectors]
            arrays[i][-1] = bad
            for args, place in ((scalars, ""), (arrays, f"[{len(row.points) - 1}]")):
                text = f"{row.name}: {title}{place} is {bad!r}, but must be {domain.phrase}!"
                for make in (lambda x: x, vm.var):
                    with vm.nested() as tape:
                        given_ = [make(x) if k in free else x for k, x in enumerate(args)]
                        refuses_as(vm.DomainError, text, row, *given_)
                        assert not tape


def not_possible(row, point):
    """Whether an observation has a density of zero whatever the parameters are."""
    return row.data_domain is not None and not row.data_domain(*point).holds(point[0])


def refused_as_data(row, free, point):
    """The refusal names the observation and is not recoverable, and nothing is recorded."""
    title = row.arguments[row.operands[0]][0]
    text = (
        f"{row.name}: {title} is {float(point[0])!r}, but must be {row.data_domain(*point).phrase}!"
    )
    for propto in (False, True):
        with vm.nested() as tape:
            args = [vm.var(float(x)) if i in free else x for i, x in enumerate(point)]
            with pytest.raises(vm.DataError) as caught:
                row(*args, propto=propto)
            assert str(caught.value) == text
            assert not caught.value.is_recoverable
            assert not tape
    with pytest.raises(vm.DataError, match=re.escape(text)):
        row(*(vm.Dual(float(x), 1.0) if i in free else x for i, x in enumerate(point)))


@pytest.mark.parametrize("long", [univariate.LONG, 1], ids=["short", "long"])
@every_row
def test_outside_the_support(row, long, monkeypatch):
    monkeypatch.setattr(univariate, "LONG", long)
    assert bool(row.outside) == (row.formula.support is not None)
    free = continuous(row)
    for point in row.outside:
        assert row(*point) == -math.inf
        if free and not_possible(row, point):
            found = row(*(np.append(c, x) for c, x in zip(columns(row), point, strict=True)))
            assert found == -math.inf
            refused_as_data(row, free, point)
            continue
        value, gradients = vm.value_and_grad(row, free)(*point)
        assert value == -math.inf
        assert gradients == (0.0,) * len(free)
        arrays = [np.append(c, x) for c, x in zip(columns(row), point, strict=True)]
        value, gradients = vm.value_and_grad(row, free)(*arrays)
        assert value == -math.inf
        for g in gradients:
            equal(g, np.zeros(len(arrays[0])))
        duals = [vm.Dual(a, np.ones(len(a))) if i in free else a for i, a in enumerate(arrays)]
        if free:
            assert row(*duals).tan == 0.0


@every_row
def test_discrete_arguments_are_no_variables(row):
    for i, name in enumerate(row.arguments):
        if name in row.discrete:
            args = list(row.points[0])
            with vm.nested() as tape:
                args[i] = vm.var(float(args[i]))
                title = row.arguments[name][0]
                text = f"{row.name}: {title} is a variable, but has no derivative"
                refuses_as(TypeError, text, row, *args)
                assert not tape


def test_second_derivatives_where_the_terms_of_the_first_cancel():
    """With a count of zero and a small mean the log mass is -phi log(1 + mu / phi)."""
    hessian = vm.hessian(lambda mu: vm.neg_binomial_2_lpmf(0, mu, 0.038), 2.4306141564956047e-09)
    close(hessian, 0.038 / (0.038 + 2.4306141564956047e-09) ** 2, 1e-13)


@pytest.mark.parametrize("make", [float, lambda x: np.array([x])])
def test_a_mean_of_zero_is_the_limit(make):
    """Derivatives of n log(mu / (mu + phi)) - phi log(1 + mu / phi), one-sided at mu = 0."""
    phi = mpmath.mpf(1.5)

    def log_mass(mu, phi):
        return -phi * mpmath.log1p(mu / phi)

    def limit(order):
        return float(mpmath.diff(log_mass, (mpmath.mpf(0), phi), order))

    def f(n, mu, phi):
        return vm.neg_binomial_2_lpmf(n, mu, phi)

    for of in (vm.value_and_grad, vm.recorded):
        value, slopes = of(partial(f, 0), (0, 1))(make(0.0), 1.5)
        close(value, 0.0, 0.0)
        close(np.hstack(slopes), [limit((1, 0)), limit((0, 1))], 1e-15, 1e-30)
    second = vm.hessian(lambda x: f(0, x[0], x[1]), np.array([0.0, 1.5]))
    close(second, [[limit((2, 0)), limit((1, 1))], [limit((1, 1)), limit((0, 2))]], 1e-15, 1e-30)
    assert f(make(2.0), 0.0, 1.5) == f([0, 1], 0.0, 1.5) == -np.inf
    mixed = vm.value_and_grad(f, 1)([0, 0, 3], np.append(make(0.0), [1.0, 2.0]), 1.5)
    others = vm.value_and_grad(f, 1)([0, 3], [1.0, 2.0], 1.5)
    close(mixed[0], others[0], 1e-15)
    close(mixed[1], [-1.0, *others[1]], 1e-15)
    for name in ("cdf", "lcdf"):
        of = getattr(vm, f"neg_binomial_2_{name}")
        slopes = vm.value_and_grad(of, (1, 2))(0, make(0.0), 1.5)[1]
        close(np.hstack(slopes), [-1.0, 0.0], 1e-15)
    assert vm.neg_binomial_2_lccdf(0, make(0.0), 1.5) == -np.inf
    assert vm.neg_binomial_2_rng(make(0.0), 1.5, rng=1) == 0
    thinned = dist.Mixture(0.25, [dist.NegBinomial2(0.0, 2.0), dist.NegBinomial2(3.0, 2.0)])
    zeros = dist.Mixture(0.25, [dist.DiscreteRange(0, 0), dist.NegBinomial2(3.0, 2.0)])
    close(thinned.lpdf.pointwise([0, 1, 5]), zeros.lpdf.pointwise([0, 1, 5]), 1e-15)


@pytest.mark.parametrize("make", [float, lambda x: np.array([x])])
def test_tiny_shapes(make):
    """The pole of the digamma function at zero dominates, and nothing else overflows."""
    in_phi = vm.value_and_grad(vm.neg_binomial_2_lpmf, 2)(make(0.0), 0.1, 1e-100)[1]
    close(in_phi, 1.0 - math.log1p(1e99), 1e-14)
    in_alpha, in_beta = vm.value_and_grad(vm.beta_lpdf, (1, 2))(make(0.5), 1e-100, 1e-140)[1]
    assert (in_alpha, in_beta) == (pytest.approx(1e60, rel=1e-12), pytest.approx(1e140, rel=1e-14))
