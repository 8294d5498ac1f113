"""Groups: codes, labels and what is refused."""

import numpy as np
import pandas as pd
import pytest

import varmat as vm
import varmat.distributions as dist


@pytest.mark.parametrize(("column", "codes", "labels"), [
    (["b", "a", "b"], [1, 0, 1], ["a", "b"]),
    (np.array([30, 10, 30]), [1, 0, 1], [10, 30]),
    (pd.Series(["b", "a", "b"], index=[7, 8, 9]), [1, 0, 1], ["a", "b"]),
    (pd.Series(["b", "a", "b"], dtype="string"), [1, 0, 1], ["a", "b"]),
    (pd.Series(["b", "a"], dtype=pd.CategoricalDtype(["c", "b", "a"])), [1, 2], ["c", "b", "a"]),
    (pd.Categorical(["b", "a", "b"]), [1, 0, 1], ["a", "b"]),
    (pd.Series([True, False]), [1, 0], [False, True]),
    ([], [], []),
])  # fmt: skip
def test_codes_and_labels(column, codes, labels):
    found = vm.groups(column)
    assert found.codes.tolist() == codes
    assert found.codes.dtype.kind == "i"
    assert found.labels == labels
    assert found.count == len(labels)


def test_dates_and_several_columns():
    days = pd.Series(pd.to_datetime(["2020-01-02", "2020-01-01", "2020-01-02"]))
    assert vm.groups(days).codes.tolist() == [1, 0, 1]
    found = vm.groups(["x", "y", "x", "x"], [2, 1, 2, 1])
    assert found.codes.tolist() == [1, 2, 1, 0]
    assert found.labels == [("x", 1), ("x", 2), ("y", 1)]


@pytest.mark.parametrize(("columns", "error", "text"), [
    ((), TypeError, "no column is given"),
    ((["a", None],), ValueError, "column 1 is missing in row 1"),
    ((["a", "b"], [1.0, np.nan]), ValueError, "column 2 is missing in row 1"),
    ((pd.Series([pd.NA, "a"], dtype="string"),), ValueError, "column 1 is missing in row 0"),
    ((pd.Categorical(["a", None]),), ValueError, "column 1 is missing in row 1"),
    ((pd.to_datetime(["2020-01-01", None]),), ValueError, "column 1 is missing in row 1"),
    ((np.zeros((2, 2)),), vm.ShapeError, r"has shape \(2, 2\), but must have one axis"),
    ((["a", "b"], ["a"]), vm.ShapeError, "column 2 has 1 rows, but must have 2"),
])  # fmt: skip
def test_refusals(columns, error, text):
    with pytest.raises(error, match=text):
        vm.groups(*columns)


def by_school(column, **settings):
    return vm.Model(
        mu=vm.real(dims="school", prior=dist.Normal(0.0, 1.0)),
        y=vm.observed([0.5, 1.0, 2.0, 3.0], lambda mu, school: dist.Normal(mu[school], 1.0)),
        data={"school": column},
        **settings,
    )


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pd.Categorical])
def test_names_in_data_become_an_index(kind):
    model = by_school(kind(["b", "a", "b", "c"]))
    assert model.coords["school"] == ["a", "b", "c"]
    q = np.array([1.0, 2.0, 3.0])
    expected = by_school(np.array([1, 0, 1, 2]), coords={"school": ["a", "b", "c"]}).log_density(q)
    assert model.log_density(q) == expected
    found = model.predict(model.laplace(seed=1, draws=3000), school=["c", "c"], seed=1)
    np.testing.assert_allclose(found["posterior_predictive"]["y"].mean((0, 1)), 1.5, atol=0.15)


def test_labels_that_are_given_say_which_number_is_which():
    model = by_school(["b", "a", "b", "c"], coords={"school": ["d", "c", "b", "a"]})
    assert model.param_num() == 4
    np.testing.assert_array_equal(model.layout.given["school"], [2, 3, 2, 1])
    with pytest.raises(
        vm.DataError, match=r"school\[1\] is 'a', but must be one of the labels 'c'"
    ):
        by_school(["b", "a", "b", "c"], coords={"school": ["c", "b"]})
    with pytest.raises(vm.DataError, match=r"school\[0\] is 'z', but must be one of the labels"):
        model.with_data(school=["z", "a", "b", "c"])
    assert model.with_data(school=[0, 0, 1, 1]).log_density(np.zeros(4)) < 0.0


def test_a_table_with_one_column_is_a_vector():
    table = pd.DataFrame({"y": [0.5, 1.0]})
    model = vm.Model(mu=vm.real(2), y=vm.observed(table, lambda mu: dist.Normal(mu, 1.0)))
    assert model.log_density([0.5, 1.0], propto=False) == dist.Normal(0.0, 1.0).lpdf([0.0, 0.0])
