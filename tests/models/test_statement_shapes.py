"""A statement has the shape of its data or its parameter: log density, pointwise log-likelihood and
predictions.
"""

import numpy as np
import pytest
from comparing import close

import varmat as vm
import varmat.distributions as dist
from varmat.models.functions import never

N = 4
X = np.arange(1.0, N + 1.0)
Y = np.array([1.0, 2.5, 3.0, 4.5])
COLUMN = X[:, np.newaxis]
DESIGN = np.stack([np.ones(N), X], axis=1)
GROUP = np.array([0, 0, 1, 1])
LINE = {"a": vm.real(prior=dist.Normal(0, 5)), "b": vm.real(prior=dist.Normal(0, 5))}

COUNTS = np.array([1, 0, 1, 1])
ONE = np.ones(N)
ROWS, HALF = np.tile([0.2, 0.8], (N, 1)), np.full((2, 2), 0.5)

# The observations and the distribution, a function of the parameters a and b of `LINE`.
FITTING = {
    "scalars": (Y, lambda a, b: dist.Normal(a, np.exp(b))),
    "vectors": (Y, lambda a, b: dist.Normal(a + b * X, 1.0)),
    "columns": (Y[:, None], lambda a, b: dist.Normal(a + b * COLUMN, 1.0)),
    "a table": (np.outer(Y, [1, 2, 3]), lambda a, b: dist.Normal(a + b * COLUMN, 1.0)),
    "its rows": (np.outer([1, 2, 3], Y), lambda a, b: dist.Normal(a + b * X, 1.0)),
    "a number": (2.0, lambda a, b: dist.Normal(a, np.exp(b))),
    "an axis of one": (Y[:1], lambda a, b: dist.Normal(a, ONE[:1])),
    "counts": (COUNTS, lambda a, b: dist.BernoulliLogit(a + b * X)),
    "categories": (COUNTS + 1, lambda a, b: dist.Categorical(ROWS)),
    "an order": (COUNTS + 1, lambda a, b: dist.OrderedLogistic(a + b * X, np.array([0.0, 1.0]))),
    "truncated": (Y, lambda a, b: dist.Normal(a + b * X, ONE).truncated(lower=0.0)),
    "censored": (Y, lambda a, b: dist.Exponential(np.exp(b)).censored(upper=3.0 * ONE)),
    "a mixture": (Y, lambda a, b: dist.Mixture(0.3, [dist.Normal(a * X, 1), dist.Normal(b, 1)])),
    "mixed weights": (Y, lambda a, b: dist.Mixture(ROWS, [dist.Normal(a, 1), dist.Normal(b, 2)])),
    "vector events": (np.stack([Y, X], axis=1), lambda a,
                      b: dist.MultiNormal(np.stack([a * X, b * X], axis=1), np.eye(2))),
    "a predictor": (Y, lambda a, b: dist.NormalIdGLM(DESIGN, a, np.stack([a, b]), 1.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", FITTING)
def test_data_log_likelihood_and_predictions_have_one_shape(name):
    y, distribution = FITTING[name]
    model = vm.Model(**LINE, y=vm.observed(y, distribution))
    drawn = model.sample_prior_predictive(seed=1, draws=3)
    assert drawn["prior_predictive"]["y"].shape == (1, 3, *np.shape(y))
    terms = model.likelihood.of_draws(model.completed, drawn["prior"], (1, 3), never)["y"]
    event = 1 if name == "vector events" else 0
    assert terms.shape == (1, 3, *np.shape(y)[: np.ndim(y) - event])
    q = np.array([0.3, 0.1])
    priors = vm.normal_lpdf(q, 0, 5)
    values = model.constrain(q)
    total = np.sum(model.likelihood.at(values)["y"])
    close(model.log_density(q, propto=False), priors + total, 1e-12)


# What is stated, the shape of the distribution, that to which it must broadcast, and whether a
# column is to blame.
OBSERVED = {
    "a column of data": (Y, lambda a, b: dist.Normal(a + b * COLUMN, 1), (4, 1), (4,), True),
    "a column of observations": (Y[:, None], lambda a, b: dist.Normal(a + b * X, 1), (4,), (4, 1),
        True),
    "observations by group": (Y,
        lambda a, b: dist.Normal(np.stack([a, b])[GROUP[:, None]], 1), (4, 1), (4,), True),
    "one observation": (2.0, lambda a, b: dist.Normal(a + b * X, 1), (4,), (), False),
    "too few": (Y[:3], lambda a, b: dist.Normal(a + b * X, 1), (4,), (3,), False),
    "a fixed distribution": (Y, dist.Normal(np.zeros((2, 4)), 1), (2, 4), (4,), False),
    "the weights of a mixture": (2.0, lambda a, b: dist.Mixture(ROWS, 2 * [dist.Normal(a, 1)]),
        (4,), (), False),
    "a predictor": (Y[:1], lambda a, b: dist.NormalIdGLM(DESIGN, a, np.stack([a, b]), 1.0), (4,),
        (1,), False),
    "ends": (2.0, lambda a, b: dist.Normal(a, 1).censored(upper=ONE), (4,), (), False),
    "vectors": (Y, lambda a, b: dist.MultiNormal(np.zeros((3, 4)), np.eye(4)), (3,), (), False),
    "categories": ((COUNTS + 1)[:, None], lambda a, b: dist.Categorical(ROWS), (4,), (4, 1), True),
    "hidden states": (Y[:1], lambda a, b: dist.HiddenMarkov(HALF[0], HALF, dist.Normal(ROWS, 1.0)),
        (4,), (1,), False),
    "missing observations": ([1.0, np.nan], lambda a, b: dist.Normal(a * COLUMN, 1), (4, 1), (2,),
        True),
}  # fmt: skip
PRIORS = {
    "the prior of a": (lambda: {"a": vm.real(prior=dist.Normal(np.zeros(3), 1))}, (3,), ()),
    "the prior of b": (
        lambda: {"a": vm.real(), "b": vm.positive(prior=lambda a: dist.Gamma(ONE, a * a))}, (4,),
        ()),
    "the prior of c": (lambda: {"c": vm.simplex(3, prior=dist.Dirichlet(np.ones((2, 3))))}, (2,),
        ()),
    "the prior of a parameter with centred=False": (
        lambda: {"a": vm.real(prior=dist.StudentT(ONE, 0, 1), centred=False)}, (4,), ()),
}  # fmt: skip


def expect_wrong(make, title, outer, inner, is_column):
    """Axes have counterparts from the right, as in broadcasting."""
    with pytest.raises(vm.ShapeError) as caught:
        make()
    counterparts = dict(zip(range(len(outer))[::-1], inner[::-1], strict=False))
    other = f"instead of {counterparts[0]}" if 0 in counterparts else "and no counterpart"
    assert str(caught.value) == (
        f"Model: {title} has shape {outer}, but must broadcast to shape {inner}: its axis 0 has "
        f"length {outer[0]} {other}!" + is_column * " A column x becomes a vector by np.ravel(x)."
    )


@pytest.mark.parametrize("name", OBSERVED)
def test_a_distribution_never_counts_more_than_there_is(name):
    y, distribution, outer, inner, is_column = OBSERVED[name]
    more = {"missing": vm.real} if name == "missing observations" else {}

    def make():
        model = vm.Model(**LINE, y=vm.observed(y, distribution, **more))
        model.log_density(np.full(model.param_unc_num(), 0.5))

    expect_wrong(make, "the distribution of y", outer, inner, is_column)


@pytest.mark.parametrize("title", PRIORS)
def test_a_prior_never_counts_more_than_there_is(title):
    parameters, outer, inner = PRIORS[title]
    make = lambda: vm.Model(**parameters()).log_density(np.full(2, 0.5))  # noqa: E731
    expect_wrong(make, title, outer, inner, False)


def test_a_column_gives_the_estimates_of_a_vector():
    q = vm.Model(**LINE, y=vm.observed(Y, FITTING["vectors"][1])).optimize(seed=1).q
    column = vm.Model(**LINE, y=vm.observed(Y[:, None], FITTING["columns"][1]))
    close(column.optimize(seed=1).q, q, 1e-6)


def test_other_data_are_checked_too():
    model = vm.Model(**LINE, y=vm.observed(Y, FITTING["vectors"][1]))
    with pytest.raises(vm.ShapeError, match="its axis 0 has length 4 instead of 1!"):
        model.with_data(y=Y[:, None]).optimize(seed=1)


def test_every_distribution_of_numbers_is_checked():
    for name in dist.__all__:
        made = getattr(dist, name)
        if not hasattr(getattr(made, "row", None), "pointwise"):
            continue
        parameters = [0.5 * ONE] * len(made.__signature__.parameters)
        if not parameters:
            continue
        with pytest.raises(vm.ShapeError, match=r"but must broadcast to shape \(\): its axis 0"):
            vm.Model(y=vm.observed(0.5, made(*parameters)))
