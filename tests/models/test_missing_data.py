"""Values that are masked, or `NA` of pandas, are missing at every front door: they become
parameters where a statement says so, and are refused by name and index elsewhere.
"""

import math
from contextlib import suppress

import numpy as np
import pytest
from comparing import close, refuses

import varmat as vm
import varmat.distributions as dist
from varmat.functions.missing import with_missing

pandas = pytest.importorskip("pandas")

# Three values whose last is missing. What is under a mask is a plausible number.
KINDS = {
    "masked floats": lambda: np.ma.masked_array([1.0, 2.0, 0.5], [False, False, True]),
    "masked integers": lambda: np.ma.masked_values([1, 2, -999], -999),
    "masked booleans": lambda: np.ma.masked_array([True, False, True], [0, 0, 1]),
    "a list of masked": lambda: [*np.ma.masked_values([1, 2, -999], -999)],
    "nullable integers": lambda: pandas.Series([1, 2, None], dtype="Int64"),
    "nullable floats": lambda: pandas.Series([1.0, 2.0, None], dtype="Float64"),
    "nullable booleans": lambda: pandas.Series([True, False, None], dtype="boolean"),
    "an extension array": lambda: pandas.array([1, 2, None], dtype="Int64"),
    "objects": lambda: pandas.Series([1, 2, pandas.NA], dtype=object),
    "None among objects": lambda: np.array([1.0, 2.0, None], object),
    "None in a list": lambda: [1.0, 2.0, None],
}
ARROW = {
    "arrow integers": lambda arrow: arrow.array([1, 2, None]),
    "arrow booleans": lambda arrow: arrow.array([True, False, None]),
    "arrow chunks": lambda arrow: arrow.chunked_array([[1.5, 2.0], [None]]),
    "a series of arrow": lambda arrow: pandas.Series([1, 2, None], dtype="int64[pyarrow]"),
}


@pytest.fixture(params=[*KINDS, *ARROW])
def missing(request):
    if request.param in KINDS:
        return KINDS[request.param]()
    return ARROW[request.param](pytest.importorskip("pyarrow"))


def stan(declared):
    return vm.stan.Program(
        f"data {{ {declared} }} parameters {{ real a; }} model {{ a ~ normal(0, 1); }}"
    )


def observing(y):
    return vm.Model(a=vm.real(), y=vm.observed(y, lambda a: dist.Normal(a, 1)))


def reading(x):
    return vm.Model(lambda a, x: 0.0, a=vm.real(), data={"x": x})


SUM = vm.stan.Program("functions { real f(vector y) { return sum(y); } }")
# Each door is given the data, and must raise: the text of what it says.
DOORS = {
    "observed": (lambda x: observing(x), r"Model: y\[2\] is nan, but must be a number: missing=v"),
    "other observations": (lambda x: observing([1.0, 2.0, 3.0]).with_data(y=x),
        r"Model: y\[2\] is nan, but must be a number"),
    "data": (lambda x: reading(x), r"Model: x\[2\] is missing, but must be a number!"),
    "other data": (lambda x: reading(1.0).with_data(x=x),
        r"Model: x\[2\] is missing, but must be a number!"),
    "reals of a Stan program": (lambda x: stan("vector[3] y;").model({"y": x}),
                                r"data: y\[2\] is missing, but must be a number!"),
    "integers of a Stan program": (lambda x: stan("array[3] int y;").model({"y": x}),
        r"data: y\[2\] is missing, but must be a number!"),
    "arguments of a Stan function": (lambda x: SUM.functions.f(x),
        r"f: no overload takes these arguments: a value\[2\] is missing, but must be a number!"),
    "upper ends of censoring": (lambda x: dist.Normal(0.0, 1.0).censored(upper=x),
                                r"Censored: upper\[2\] is missing, but must be a number!"),
    "lower ends of truncation": (lambda x: dist.Normal(0.0, 1.0).truncated(lower=x),
        r"Truncated: lower\[2\] is missing, but must be a number!"),
    "parameters of a censored distribution": (lambda x: dist.Normal(x, 1.0).censored(upper=2.0),
        r"Censored: mu\[2\] is missing, but must be a number!"),
    "weights": (lambda x: dist.Mixture(x, 3 * [dist.Normal(0.0, 1.0)]),
                r"Mixture: weights\[2\] is missing, but must be a number!"),
    "first states": (lambda x: dist.HiddenMarkov(x, np.eye(3), dist.Normal(np.zeros(3), 1.0)),
                     r"HiddenMarkov: initial\[2\] is missing, but must be a number!"),
    "bounds": (lambda x: vm.lower(x, 3), r"Lower: a bound\[2\] is missing, but must be a number!"),
    "density": (lambda x: vm.normal_lpdf(x, 0.0, 1.0), ""),
    "product": (lambda x: vm.gradient(lambda q: np.sum(q * x), np.ones(3)), None),
    "index": (lambda x: vm.gradient(lambda q: np.sum(q[x]), np.ones(3)), ""),
    "starts": (lambda x: vm.Model(a=vm.real(3, prior=dist.Normal(0, 1))).initial_point({"a": x}),
               ""),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_missing_values_are_refused(door, missing):
    make, text = DOORS[door]
    if text is None:  # nan, so that the density is seen to be none
        with suppress(TypeError):
            assert np.isnan(make(missing)[2])
        return
    # NumPy warns of masked constants in lists, and tests make an error of it.
    refuses((ValueError, TypeError, IndexError, UserWarning), f"^{text}", make, missing)


@pytest.mark.parametrize(("function", "name"), [
    (lambda q, x: np.where(x > 0, q, 0.0), "where: condition"),
    (lambda q, x: q[x], "getitem: the index"),
    (lambda q, x: q[x > 0], "getitem: the index"),
    (lambda q, x: np.stack([q, q])[0, x], "getitem: the index"),
    (lambda q, x: np.take(q, x), "take: indices"),
    (lambda q, x: q * x, "multiply: operand 2"),
])  # fmt: skip
def test_masks_are_not_lost_in_functions(function, name):
    x = np.ma.masked_values([0, 1, -1], -1)
    message = f"^{name} is a masked array, but must be real numbers"
    refuses(TypeError, message, vm.gradient, lambda q: np.sum(function(q, x)), np.ones(3))


def test_missing_observations_become_parameters(missing):
    model = vm.Model(
        a=vm.real(prior=dist.Normal(0, 5)),
        y=vm.observed(missing, lambda a: dist.Normal(a, 1.0), missing=vm.real),
    )
    assert model.shapes() == {"a": (), "y_missing": (1,)}
    y = np.append(with_missing(missing)[0][:2], 0.7)
    expected = vm.normal_lpdf(0.2, 0, 5) + vm.normal_lpdf(y, 0.2, 1.0)
    close(model.log_density([0.2, 0.7], propto=False), expected, 1e-14)


WHOLE = {
    "masked": lambda: np.ma.array([1.0, 0.0, 1.0]),
    "nullable integers": lambda: pandas.Series([1, 0, 1], dtype="Int64"),
    "nullable booleans": lambda: pandas.Series([True, False, True], dtype="boolean"),
    "objects": lambda: np.array([1, 0, 1], object),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_data_without_missing_values_are_numbers(kind):
    model = vm.Model(
        a=vm.real(prior=dist.Normal(0, 5)),
        y=vm.observed(WHOLE[kind](), lambda a: dist.BernoulliLogit(a)),
    )
    expected = vm.normal_lpdf(0.2, 0, 5) + vm.bernoulli_logit_lpmf([1, 0, 1], 0.2)
    close(model.log_density([0.2], propto=False), expected, 1e-14)
    assert stan("array[3] int y;").model({"y": WHOLE[kind]()}).log_density([0.2]) == -0.5 * 0.2**2


def test_tables():
    table = pandas.DataFrame({"y": pandas.array([1, None], dtype="Int64"), "x": [1.0, np.nan]})
    message = r"^data: y\[1\] is missing, but must be a number!"
    refuses(vm.DataError, message, stan("vector[2] y;").model, table)
    model = stan("vector[2] x;").model(table)  # a nan among floats is a number
    assert model.log_density([0.0]) == 0.0
    message = r"^Model: x\[1, 0\] is missing, but must be a number!"
    refuses(vm.DataError, message, reading, table)
    arrow = pytest.importorskip("pyarrow")
    model = stan("vector[2] x;").model(arrow.table({"x": [1.0, 2.0]}))
    assert model.log_density([0.0]) == 0.0
    model = vm.Model(a=vm.real(), y=vm.observed(arrow.array([1, 2]), lambda a: dist.Normal(a, 1)))
    assert model.log_density([1.0]) == -0.5 - math.log(2 * math.pi)


def test_masked_draws_are_nan():
    draws = np.ma.masked_array(np.zeros((1, 4)), [[0, 0, 0, 1]])
    model = vm.Model(a=vm.real())
    assert model.summary({"a": draws}).failures == 1
    made = model.sample_posterior_predictive({"a": draws}, lambda a: {"z": a})
    assert np.isnan(made["posterior_predictive"]["z"][0, 3])


def test_what_a_distribution_integrates_out_is_no_parameter():
    y = np.array([1.0, np.nan, 1.4, 0.8])

    def level(walk):
        return dist.LinearStateSpace([1.0], [[1.0]], 0.5, np.reshape(walk, (1,)), [0.0], [[9.0]])

    model = vm.Model(
        walk=vm.positive(prior=dist.Exponential(1.0)), y=vm.observed(y, level, missing="integrated")
    )
    assert model.param_names() == ["walk"]
    q = np.array([0.3])
    walk = np.exp(q[0])
    expected = level(walk).lpdf(y) - walk + q[0]
    np.testing.assert_allclose(model.log_density(q), expected, 1e-12)
    found = model.laplace(seed=1, draws=5)
    assert found.beside["log_likelihood"]["y"].shape == (1, 5, 4)
    replicates = model.sample_posterior_predictive(found, seed=1)["posterior_predictive"]["y"]
    assert np.isfinite(replicates).all()


def test_a_hidden_markov_model_has_gaps():
    start, move = np.array([0.4, 0.6]), np.array([[0.9, 0.1], [0.3, 0.7]])
    y = np.array([0.2, np.nan, 4.5, np.nan])
    chain = dist.HiddenMarkov(start, move, dist.Normal(np.array([0.0, 5.0]), 1.0))
    densities = [
        np.exp(dist.Normal(np.array([0.0, 5.0]), 1.0).lpdf.pointwise(x)) for x in y[[0, 2]]
    ]
    expected = np.log(start * densities[0] @ move @ (move * densities[1]) @ move @ np.ones(2))
    np.testing.assert_allclose(chain.lpdf(y), expected, 1e-13)
    assert chain.lpdf(y[[1, 3]]) == pytest.approx(0.0, abs=1e-15)
    counts = dist.HiddenMarkov(start, move, dist.Poisson(np.array([1.0, 6.0])))
    assert np.isfinite(counts.lpdf([1, None, 7]))


def test_a_distribution_that_cannot_integrate_refuses_what_is_missing():
    model = vm.Model(
        mu=vm.real(),
        y=vm.observed([1.0, np.nan], lambda mu: dist.Normal(mu, 1.0), missing="integrated"),
    )
    refuses(vm.DomainError, r"Random variable\[1\] is nan", model.log_density, [0.0])
    message, given = "missing is 'drop', but must be \"integrated\" or a", dist.Normal(0.0, 1.0)
    refuses(ValueError, message, vm.observed, [1.0, np.nan], given, missing="drop")
