"""Data of other libraries in operations with variables: pandas, xarray, and sparse matrices of
SciPy.
"""

import operator

import numpy as np
import pytest
import scipy.sparse
from comparing import close, equal, refuses
from kinds import VARIABLES

import varmat as vm
from varmat.testing import expect_ad

OPERATORS = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.floordiv,
    operator.mod,
)  # fmt: skip
KINDS = {
    "Var": lambda: vm.var(1.3),                     "VarMat": lambda: vm.var([1.5, 0.7, 2.2]),
    "View": lambda: vm.var([2.2, 0.7, 1.5])[::-1],  "MatVar": lambda: vm.matvar([1.5, 0.7, 2.2]),
    "Dual": lambda: vm.Dual([1.5, 0.7, 2.2], [1.0, 0.0, 2.0]),
    "scalar Dual": lambda: vm.Dual(1.3, 1.0),
}  # fmt: skip
DATA = np.array([0.5, 1.25, 3.0])


def pandas_data():
    pd = pytest.importorskip("pandas")
    # The labels are not sorted, so aligning by label would reorder them. In the next one the index
    # differs from the positions.
    yield pd.Series(DATA, index=["c", "a", "b"]), DATA
    yield pd.Series([1, 2, 3]), np.array([1.0, 2.0, 3.0])
    yield pd.DataFrame([DATA, DATA + 1.0], columns=["z", "y", "x"]), np.array([DATA, DATA + 1.0])
    yield pd.Index(DATA), DATA


@pytest.mark.parametrize("kind", ["Var", "VarMat", "View", "Dual", "scalar Dual"])
def test_functions_of_numpy_beside_series_and_frames(kind):
    *data, _ = pandas_data()  # an Index does not defer functions to other types
    x = vm.value(KINDS[kind]())
    for series, plain in data:
        for f in (np.arctan2, np.logaddexp, np.multiply):
            equal(vm.value(f(series, KINDS[kind]())), f(plain, x))
            equal(vm.value(f(KINDS[kind](), series)), f(x, plain))


@pytest.mark.parametrize("kind", KINDS)
def test_data_of_pandas_is_taken_by_its_places(kind):
    for data, plain in pandas_data():
        for op in OPERATORS:
            for f in (lambda a, b, op=op: op(a, b), lambda a, b, op=op: op(b, a)):
                result, expected = f(data, KINDS[kind]()), f(plain, KINDS[kind]())
                assert type(result) is type(expected)
                np.testing.assert_array_equal(vm.value(result), vm.value(expected), strict=True)
        for op in (operator.lt, operator.ge, operator.eq, operator.ne):
            x = KINDS[kind]()
            equal(np.asarray(op(data, x)), op(plain, vm.value(x)))
            equal(np.asarray(op(x, data)), op(vm.value(x), plain))


def test_derivatives_beside_data_of_pandas():
    pd = pytest.importorskip("pandas")
    s, df = pd.Series(DATA, index=[30, 10, 20]), pd.DataFrame(np.arange(6.0).reshape(2, 3))

    def f(x):
        y = s * x - x / s + s**x
        y *= s
        return np.sum(y) + np.sum(np.sum(df * x, axis=0)) + np.sum(x @ df.T) + np.dot(df, x)[1] ** 2

    expect_ad(f, np.array([0.3, 0.7, 1.9]))


def test_data_of_pandas_that_is_no_numbers_is_refused():
    pd = pytest.importorskip("pandas")
    x = vm.var([1.0, 2.0])
    message = r"^multiply: operand \d has dtype .*, but must be real numbers"
    refuses(TypeError, message, operator.mul, x, pd.Series(["a", "b"]))
    message = r"^multiply: operands have shapes \(3,\) and \(2,\), but must broadcast!"
    refuses(vm.ShapeError, message, operator.mul, pd.Series(DATA), x)


@pytest.mark.parametrize("kind", ["VarMat", "Dual"])
def test_products_with_frames_are_refused_with_an_alternative(kind):
    pd = pytest.importorskip("pandas")
    df, s, x = pd.DataFrame(np.eye(3)), pd.Series(DATA), KINDS[kind]()
    message = r"write df.to_numpy\(\) @ x or np.dot\(df, x\), not df @ x or df.dot\(x\)"
    for data in (df, s):
        refuses(TypeError, message, operator.matmul, data, x)
        refuses(TypeError, message, data.dot, x)
    for result in (df.to_numpy() @ x, np.dot(df, x), x @ df):
        equal(vm.value(result), vm.value(x))


REDUCTIONS = ("sum", "mean", "max", "min", "prod", "std", "var", "median")


@pytest.mark.parametrize("kind", ["VarMat", "Dual"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_xarray_reduces_to_a_scalar(name, kind):
    xr = pytest.importorskip("xarray")
    x = KINDS[kind]()
    result = getattr(xr.DataArray(x, dims="i"), name)()
    assert type(result.data) in (vm.Var, vm.Dual)
    expected = getattr(np, name)(x)
    assert vm.value(result.data) == pytest.approx(vm.value(expected), rel=1e-15)
    assert result.dims == ()
    assert kind != "Dual" or result.data.tan == pytest.approx(expected.tan, rel=1e-15)


def test_derivatives_of_reductions_of_xarray():
    xr = pytest.importorskip("xarray")

    def f(x):
        a = xr.DataArray(x, dims=("i", "j"))
        total = a.sum() * (a * a.mean()).max("j").sum()
        return (total + (a - a.sum()).prod()).data + np.sum(a).item()

    expect_ad(f, np.array([[0.3, 0.7, 1.9], [1.1, 0.2, 0.4]]))


FORMATS = [
    f"{name}_{kind}"
    for name in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
    for kind in ("array", "matrix")
]
DENSE = np.array([[1.0, 0.0, 2.0], [0.0, -3.0, 0.0]])


@pytest.mark.parametrize("name", FORMATS)
def test_sparse_products_in_both_orders(name):
    a = getattr(scipy.sparse, name)(DENSE)
    kinds = vm.var, lambda x: vm.Dual(x, np.ones_like(x)), lambda x: vm.Dual(vm.var(x), 1.0 + 0 * x)
    for x in (np.array([0.3, 0.7, 1.9]), np.arange(6.0).reshape(3, 2)):
        for v in (make(x) for make in kinds):
            results = a @ v, v.T @ a.T, np.matmul(a, v)
            for result, expected in zip(
                results, (DENSE @ x, x.T @ DENSE.T, DENSE @ x), strict=True
            ):
                assert isinstance(result, (vm.VarMat, vm.Dual))
                close(vm.value(result), expected, 1e-15)
    x = vm.var([0.3, 0.7, 1.9])
    close(np.sum(a @ x * [1.0, 10.0]).grad(x), DENSE.T @ [1.0, 10.0], 1e-15)


def test_sparse_products_with_matvars():
    """SciPy defers to no subclass of ndarray, so the sparse matrix must not be the left operand."""
    a = scipy.sparse.csr_array(DENSE)
    v = vm.matvar([0.3, 0.7, 1.9])
    for result in (v @ a.T, np.matmul(a, v), vm.to_matvar(a @ vm.to_varmat(v))):
        assert type(result) is vm.MatVar
        close(vm.value(result), DENSE @ v.val, 1e-15)
    refuses(TypeError, "no supported conversion", lambda: a @ v)


def test_kinds_are_those_of_the_other_tests():
    assert set(KINDS) <= set(VARIABLES)
