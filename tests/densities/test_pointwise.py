"""The pointwise densities of every row of the table, against their sum, whose values and gradients
are tested elsewhere.
"""

import math
import pickle

import numpy as np
import pytest
from comparing import close, equal
from densities.references import ROWS, columns, continuous, every, given

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

every_row = every(ROWS)


@every_row
def test_at_every_point(row):
    expected = [row(*given(row, point)) for point in row.points]
    close(row.pointwise(*columns(row)), expected, 1e-12)
    value = row.pointwise(*given(row, row.points[0]))
    assert type(value) is float
    close(value, expected[0], 1e-13)


@every_row
def test_all_routes_agree(row):
    vectors = columns(row)
    expect_ad(row.pointwise, *vectors)
    expect_ad_matvar(row.pointwise, *vectors)
    if ROWS.index(row) % 3 == 0:  # numbers take the way of all rows to the same function
        expect_ad(row.pointwise, *given(row, row.points[0]))


@every_row
def test_broadcasting(row):
    """Each argument varies along an axis of its own. The gradient of the sum is known."""
    count = len(row.arguments)
    grids = [
        np.reshape(c[:2], (*(2 if i == j else 1 for j in range(count)),))
        for i, c in enumerate(columns(row))
    ]
    free = continuous(row)
    try:
        result = row.pointwise(*grids)
    # The domain of one argument may depend on another, and then some combinations are invalid.
    except vm.DomainError:
        return
    assert result.shape == (2,) * count
    if np.all(np.isfinite(result)):
        value, gradients = vm.value_and_grad(lambda *args: np.sum(row.pointwise(*args)), free)(
            *grids
        )
        expected, others = vm.value_and_grad(row, free)(*grids)
        close(value, expected, 1e-12)
        close(gradients, others, 1e-11)


@every_row
def test_outside_the_support_an_element_is_impossible(row):
    free = continuous(row)
    for point in row.outside:
        arrays = [np.append(c, x) for c, x in zip(columns(row), point, strict=True)]
        result = row.pointwise(*arrays)
        assert result[-1] == -math.inf
        # Beside an infinite count the other counts are computed by the formula for large counts.
        close(result[:-1], row.pointwise(*columns(row)), 1e-13, 1e-15)
        _, gradients = vm.value_and_grad(lambda *args: np.sum(row.pointwise(*args)[:-1]), free)(
            *arrays
        )
        _, impossible = vm.value_and_grad(lambda *args: row.pointwise(*args)[-1], free)(*arrays)
        for g, h in zip(gradients, impossible, strict=True):
            assert g[-1] == 0.0
            equal(h, 0.0)
        for i in free:
            tangent = row.pointwise(
                *(vm.Dual(a, np.ones(len(a))) if i == j else a for j, a in enumerate(arrays))
            ).tan
            assert tangent[-1] == 0.0


@every_row
def test_dropped_terms(row):
    """The same terms are dropped as in the sum."""
    vectors = columns(row)
    for i in continuous(row):
        with vm.nested():
            args = [vm.var(v) if i == j else v for j, v in enumerate(vectors)]
            dropped = row.pointwise(*args, propto=True).val
            close(np.sum(dropped), row(*args, propto=True).val, 1e-12)
    equal(row.pointwise(*vectors, propto=True), 0.0)


def test_no_elements_and_empty_axes():
    assert vm.normal_lpdf.pointwise(np.empty(0), 0.0, 1.0).shape == (0,)
    f = lambda mu: np.sum(vm.normal_lpdf.pointwise(np.empty((0, 1)), mu, 1.0))  # noqa: E731
    equal(vm.gradient(f, np.ones(3)), np.zeros(3))


@every_row
def test_nan_is_refused_and_not_impossible(row):
    for i, (title, domain) in enumerate(row.arguments.values()):
        scalars = [math.nan if i == j else x for j, x in enumerate(given(row, row.points[0]))]
        arrays = [np.array(c, dtype=float) for c in columns(row)]
        arrays[i][1] = math.nan
        for args, place in ((scalars, ""), (arrays, "[1]")):
            text = f"{row.name}.pointwise: {title}{place} is nan, but must be {domain.phrase}!"
            with pytest.raises(vm.DomainError) as caught:
                row.pointwise(*args)
            assert str(caught.value) == text


@pytest.mark.parametrize(("density", "args", "error", "text"), [
    (vm.normal_lpdf, (np.ones(2), 0.0, vm.var([1.0, -1.0])), vm.DomainError,
     "Scale parameter[1] is -1.0, but must be positive!"),
    (vm.normal_lpdf, (np.ones(2), vm.var(np.ones(3)), 1.0), vm.ShapeError,
     "Location parameter has shape (3,), but must have"),
    (vm.normal_lpdf, (vm.var(1.0), 0.0), TypeError, "missing a required argument: 'sigma'"),
    (vm.uniform_lpdf, (0.5, 1.0, 0.0), vm.DomainError, "Upper bound parameter is 0.0, but must be"),
    (vm.poisson_lpmf, (vm.var([1.0]), 2.0), TypeError,
     "Random variable is a variable, but has no derivative"),
])  # fmt: skip
def test_refusals_name_the_function(density, args, error, text):
    with vm.nested() as tape, pytest.raises(error) as caught:
        density.pointwise(*args)
    assert str(caught.value).startswith(f"{density.name}.pointwise: {text}")
    assert not tape


def test_pickling_and_text():
    f = vm.normal_lpdf.pointwise
    assert pickle.loads(pickle.dumps(f)) is f
    assert repr(f) == "<varmat density normal_lpdf.pointwise(y, mu, sigma, *, propto=False)>"
    assert "normal_lpdf" in f.__doc__


def test_a_mixture_of_two():
    """One call of the density computes all components."""
    y = np.array([-1.0, 0.5, 3.0])

    def mixture(theta, mu, sigma):
        parts = vm.normal_lpdf.pointwise(y, mu[:, None], sigma[:, None])
        return np.sum(vm.log_mix(theta, parts[0], parts[1]))

    expect_ad(mixture, 0.3, np.array([-1.0, 2.0]), np.array([0.5, 2.0]))
    one, other = (vm.normal_lpdf.pointwise(y, m, s) for m, s in ((-1.0, 0.5), (2.0, 2.0)))
    expected = np.sum(np.log(0.3 * np.exp(one) + 0.7 * np.exp(other)))
    close(mixture(0.3, np.array([-1.0, 2.0]), np.array([0.5, 2.0])), expected, 1e-14)
    with vm.nested() as tape:
        mixture(0.3, vm.var([-1.0, 2.0]), vm.var([0.5, 2.0]))
        # The tape has the density, the mixture and the sum. The two rows of the density are views,
        # which are not recorded.
        found = [entry[0].name for entry in tape]
        assert found == ["normal_lpdf.pointwise", "log_mix_of_two", "sum"]
