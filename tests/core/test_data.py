"""Data: what is taken as numbers, and what is refused."""

import pickle
from itertools import product

import numpy as np
import pytest
import scipy.sparse
from comparing import close, equal, refuses

import varmat as vm
from varmat.core.data import data


@pytest.mark.parametrize("use", [vm.var, vm.matvar, lambda x: vm.var([1.0, 2.0]) * x, vm.logsumexp])
def test_masks_are_not_dropped(use):
    refuses(TypeError, "masked array", use, np.ma.array([1.0, 2.0], mask=[True, False]))


@pytest.mark.parametrize("use", [
    vm.var, vm.matvar, lambda m: m * vm.var(np.eye(2)), lambda m: vm.var(np.eye(2)) @ m,
     lambda m: vm.gradient(np.sum, m),
])  # fmt: skip
def test_the_products_of_numpys_matrices_are_not_taken_for_those_of_arrays(use):
    message = r"is a numpy.matrix, but must be an array; use np.asarray\(x\)"
    refuses(TypeError, message, use, np.eye(2).view(np.matrix))


def test_operands_that_are_not_numbers_are_named():
    message = r"add: operand 2 has dtype object \(type object\), but must be real numbers"
    refuses(TypeError, message, np.add, vm.var(1.0), object())


@pytest.mark.parametrize(("make", "name"), [(vm.var, "var"), (vm.matvar, "matvar")])
def test_parts_of_different_shapes_are_refused(make, name):
    text = f"^{name}: the argument is a list with parts of different shapes, but must be an array!$"
    refuses(vm.ShapeError, text, make, [[1.0], [1.0, 2.0]])


def unpickled(a):
    """Return the array as it arrives from another process: its dtype is an equal but different
    object.
    """
    a = pickle.loads(pickle.dumps(a))
    assert a.dtype == np.float64
    assert a.dtype is not np.dtype(np.float64)
    return a


MATRIX = np.array([[1.0, 2.0], [3.0, 5.0]])


VECTOR = np.array([0.5, 2.0])


def assigned(x, data):
    y = x * 1.0
    y[:] = data
    return np.sum(y * x)


@pytest.mark.parametrize(("f", "data"), [
    (lambda x, data: vm.normal_lpdf(data, x, 1.5), VECTOR),
    (lambda x, data: vm.normal_lpdf(x, 0.0, data), VECTOR),
    (lambda x, data: np.sum(vm.normal_lpdf.pointwise(data, x, 1.5)), VECTOR),
    (lambda x, data: vm.multi_normal_lpdf(x, VECTOR, data), MATRIX @ MATRIX.T),
    (lambda x, data: vm.normal_id_glm_lpdf(VECTOR, data, 0.5, x, 1.5), MATRIX),
    (lambda x, data: vm.bernoulli_logit_glm_lpmf(np.array([0, 1]), data, 0.5, x), MATRIX),
    (lambda x, data: np.sum(vm.gp_exp_quad_cov(data, x[0], x[1])), VECTOR),
    (lambda x, data: np.sum(data * x + x / data), VECTOR),
    (lambda x, data: np.sum(data @ x), MATRIX),
    (lambda x, data: np.sum(x @ data), MATRIX),
    (lambda x, data: np.sum(np.linalg.solve(data, x)), MATRIX),
    (lambda x, data: np.sum(np.concatenate([x, data]) ** 2), VECTOR),
    (assigned, VECTOR),
])  # fmt: skip
def test_data_that_were_pickled_are_data(f, data):
    x = np.array([1.5, 0.5])
    want = vm.value_and_grad(f)(x, data)
    for gradient in (vm.value_and_grad(f), vm.recorded(f)):
        for point in (x, unpickled(x)):
            value, g = gradient(point, unpickled(data))
            close(value, want[0], 1e-14)
            close(g, want[1], 1e-14)
    equal(vm.hessian(f, unpickled(x), unpickled(data)), vm.hessian(f, x, data))
    close(f(x, unpickled(data)), f(x, data), 1e-14)


REFUSED = ["text", ["a"], None, [None], np.array([object()]), {"a": 1.0}]


# `varmat.var` makes complex variables of complex numbers.
@pytest.mark.parametrize(
    ("make", "value"),
    [*product((vm.var, vm.matvar), REFUSED), (vm.matvar, 1j), (vm.matvar, [1.0, 2j])],
)
def test_data_that_are_not_real_numbers_are_refused(make, value):
    text = (
        rf"^{make.__name__}: (an element of )?the argument has dtype .*, but must be real numbers"
    )
    refuses(TypeError, text, make, value)


def test_what_is_an_array_of_float64_already_is_not_copied():
    x = np.linspace(0.0, 1.0, 3)
    assert data(x) is x
    for other, made in ((2, 2.0), (np.float32(0.5), 0.5), (np.array(2.5), 2.5)):
        assert data(other) == made
        assert type(data(other)) is float
    assert data([True, False]).dtype is np.dtype(np.float64)
    with pytest.raises(TypeError, match=r"^x is a sparse csr_array, but must be dense here: "):
        data(scipy.sparse.csr_array(np.eye(2)), "x")
