"""How variables behave in Python and NumPy: attributes, methods, copies, and the conversions that
they refuse.
"""

import copy
import math
import pickle
import re

import numpy as np
import pytest
from comparing import close, equal, refuses
from kinds import BASE, VARIABLES, VECTOR
from recordings import agree

import varmat as vm
from varmat.programs.ir.program import RecordingError
from varmat.testing import expect_ad

PLAIN_ARRAY = (
    r"cannot become a plain array, its derivative would be lost: use np.stack\(\[...\]\) .*, or "
    r"`import varmat.numpy as np`.*; varmat.value\(x\) for the plain numbers$"
)
PLAIN_NUMBER = (
    r"cannot become a plain number, its derivative would be lost: use NumPy's function "
    r"instead of math's"
)
REFUSALS = [
    (np.asarray, PLAIN_ARRAY),
    (np.array, PLAIN_ARRAY),
    (lambda x: np.array(x, dtype=float), PLAIN_ARRAY),
    (lambda x: np.array(x, dtype=object), PLAIN_ARRAY),
    (lambda x: np.asarray([x, x]), PLAIN_ARRAY),
    (lambda x: np.array([x, 1.0], dtype=float), PLAIN_ARRAY),
    (lambda x: np.full(3, x), r"plain"),
    (float, PLAIN_NUMBER),
    (int, PLAIN_NUMBER),
    (complex, PLAIN_NUMBER),
    (math.exp, PLAIN_NUMBER),
    (math.floor, PLAIN_NUMBER),
    (math.trunc, PLAIN_NUMBER),
    (hash, (r"cannot be hashed, because it can equal plain numbers; use varmat.value\(x\), or "
    r"id\(x\)")),
    (lambda x: {1.0: 2.0}.get(x), "cannot be hashed"),
    (lambda x: [1, 2, 3][x], PLAIN_NUMBER),
    (lambda x: range(x), PLAIN_NUMBER),
    (lambda x: VECTOR.copy().__setitem__(0, x), r"plain (array|number)"),
    (lambda x: VECTOR.copy().__setitem__(Ellipsis, x), r"plain (array|number)"),
    (lambda x: VECTOR.copy().fill(x), r"plain (array|number)"),
    (pickle.dumps, r"belongs to its tape and cannot be pickled; pickle varmat.value\(x\)"),
    (lambda x: x.astype(np.float32), r"astype: variables are float64 only, not float32"),
    (lambda x: np.maximum(x, 1 + 2j), r"complex128, but must be real numbers"),
    (lambda x: np.hypot(1 + 2j, x), r"complex128, but must be real numbers"),
    (lambda x: np.arctan2(np.array([1j, 2j, 3j]), x), r"complex128, but must be real numbers"),
    (lambda x: x + "a", r"must be real numbers|unsupported operand"),
    (lambda x: x + np.array(["a", "b", "c"]), r"<U1, but must be real numbers"),
    (lambda x: x - None, r"must be real numbers|unsupported operand"),
    (lambda x: x + np.array(["2020-01-01"], "M8[D]"), r"datetime64\[D\], but must be real numbers"),
    (lambda x: vm.var(x),
     r"var: the argument is a variable already; varmat.value\(x\) gives its values"),
    (lambda x: vm.matvar(x),
     r"matvar: the argument is a variable already; varmat.to_matvar\(x\) converts it"),
]  # fmt: skip


@pytest.mark.parametrize(
    "kind", ["Var", "vector", "reversed View", "element", "Dual", "scalar Dual"]
)
@pytest.mark.parametrize("case", range(len(REFUSALS)))
def test_refusals_say_what_to_write(case, kind):
    f, match = REFUSALS[case]
    x, _ = VARIABLES[kind]()
    with pytest.raises((TypeError, ValueError)) as raised:
        f(x)
    # NumPy wraps the error that an element raises when NumPy asks it for a number.
    reason = raised.value if isinstance(raised.value, TypeError) else raised.value.__cause__
    assert isinstance(reason, TypeError)
    assert re.search(match, str(reason))


ATTRIBUTES = ("shape", "ndim", "size", "dtype", "nbytes", "itemsize")


@pytest.mark.parametrize("kind", [name for name in VARIABLES if name != "MatVar"])
def test_duck_array_attributes(kind):
    a, x = VARIABLES[kind]()
    x = np.asarray(x)
    for name in ATTRIBUTES:
        assert getattr(a, name) == getattr(x, name), name
    for name in ("T", "real"):
        np.testing.assert_array_equal(vm.value(getattr(a, name)), getattr(x, name), err_msg=name)
    assert type(a.real) is type(a)
    np.testing.assert_array_equal(a.imag, np.zeros(x.shape)[()], strict=True)
    for name in ("conj", "conjugate", "copy", "ravel", "flatten", "squeeze", "transpose"):
        np.testing.assert_array_equal(
            vm.value(getattr(a, name)()), getattr(x, name)(), err_msg=name
        )
    equal(vm.value(a.astype(float)), x)
    assert a.astype(float, copy=False) is a
    if x.size == 1:
        assert vm.value(a.item()) == x.item()
    else:
        refuses(ValueError, "size", a.item)
    if x.ndim:
        assert vm.value(a.ravel()[:1].item()) == x.item(0)
        assert vm.value(a.item(1)) == x.item(1)
        assert vm.value(a.tolist()) == x.tolist()
    if x.ndim == 2:
        equal(vm.value(a.mT), x.mT)
        assert vm.value(a.item(1, 2)) == vm.value(a.item((1, 2))) == x[1, 2]


# Method -> arguments. Each method is the NumPy function of the same name.
METHODS = {
    "sum": [(), (0,), (-1,)],                       "prod": [(), (0,)],     "mean": [(), (1,)],
    "var": [(), (0,)],      "std": [(), (0,)],      "min": [(), (0,)],      "max": [(), (1,)],
    "cumsum": [(), (1,)],   "cumprod": [(), (0,)],  "argmax": [(), (0,)],   "argmin": [(), (1,)],
    "argsort": [(), (0,)],  "any": [(), (0,)],      "all": [(), (1,)],      "clip": [(1.0, 2.0)],
    "round": [(), (1,)],    "reshape": [((3, 2),), (3, 2), (-1,)],
    "transpose": [(), (1, 0), ((1, 0),)],           "swapaxes": [(0, 1)],   "ravel": [(), ("F",)],
    "flatten": [(), ("F",)],                        "repeat": [(2,), (2, 0)],
    "take": [([0, 2],), ([1], 0)],                  "compress": [([True, False, True], 1)],
    "diagonal": [(), (1,)], "trace": [(), (1,)],    "squeeze": [()],        "dot": [(VECTOR,)],
    "nonzero": [()],
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", ["VarMat", "View", "MatVar", "Dual"])
def test_methods_are_functions(name, kind):
    for args in METHODS[name]:
        a, x = VARIABLES[kind]()
        result, expected = getattr(a, name)(*args), getattr(x, name)(*args)
        close(vm.value(result), expected, 1e-14)


def test_methods_that_change_the_array():
    x = vm.var([3.0, 1.0, 2.0])
    y = x * 1.0
    y.sort(kind="stable")
    assert (y[0] * 10 + y[1] * 100).grad(x).tolist() == [0.0, 10.0, 100.0]
    y.fill(2.5)
    np.sum(y).grad()
    assert vm.value(y).tolist() == [2.5] * 3
    assert x.adj.tolist() == [0.0] * 3
    assert vm.var([1.0, 3.0]).searchsorted(2.0) == 1
    assert vm.var([3.0, 1.0, 2.0]).argpartition(1)[1] == 2
    y = vm.var([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
    y.sort(axis=0, stable=True)
    assert vm.value(y).tolist() == [[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]]
    y.partition(1)
    assert vm.value(y[:, 1]).tolist() == [2.0, 5.0]
    message = r"^sort: order is 'x', but must be None: variables have no fields!"
    refuses(vm.DomainError, message, y.sort, order="x")


@pytest.mark.parametrize("kind", ["Var", "element", "scalar Dual", "ComplexVar"])
def test_scalars_take_the_indices_that_numpys_scalars_take(kind):
    a, x = VARIABLES[kind]() if kind in VARIABLES else (vm.var(1.0 + 2.0j), 1.0 + 2.0j)
    x = np.asarray(x)[()]
    for index in (
        (), Ellipsis, None, (None, None), (Ellipsis, None), (None, Ellipsis), True, False,
    ):  # fmt: skip
        result, expected = a[index], x[index]
        np.testing.assert_array_equal(vm.value(result), expected, err_msg=str(index))
        assert type(result) is type(a) or expected.shape, index
    for index in (0, -1, slice(None), [0], (0, 0), 1.5):
        with pytest.raises(
            IndexError,
            match=rf"^a scalar {type(a).__name__} has no elements; its index must consist of",
        ):
            a[index]
    refuses(TypeError, None, list, a)
    assert not np.iterable(a)


def test_new_axes_of_a_scalar_keep_the_derivative():
    x = np.array([0.3, 0.7, 1.9])

    def f(x):
        total = np.sum(x)
        return np.sum(total[None] * x) + np.sum(total[..., None, None] * np.outer(x, x)) * total[()]

    expect_ad(f, x)
    agree(f, (x,), (x + 1.0,), rtol=1e-14)


@pytest.mark.parametrize(
    "kind", ["Var", "VarMat", "View", "MatVar", "Dual", "scalar Dual", "element"]
)
def test_flat(kind):
    a, x = VARIABLES[kind]()
    x = np.asarray(x)
    flat, expected = a.flat, list(x.flat)
    assert len(flat) == x.size
    assert [vm.value(item) for item in flat] == expected
    assert list(flat) == []  # the iterator is exhausted
    assert vm.value(next(a.flat)) == expected[0]
    assert vm.value(a.flat[0]) == expected[0]
    assert vm.value(a.flat[-1]) == expected[-1]
    equal(vm.value(a.flat[:2]), x.flat[:2])
    equal(vm.value(a.flat[[0, -1]]), x.flat[[0, -1]])
    equal(vm.value(a.flat.copy()), x.ravel())
    assert a.flat.base is a


@pytest.mark.parametrize(
    "make", [vm.var, vm.matvar, lambda x: vm.var(x.T).T, lambda x: vm.Dual(x, np.ones_like(x))]
)
def test_assignments_by_flat(make):
    def f(x, kind):
        y = kind(x)
        y.flat[1:3] = 3.0 * y[0, :2]
        y.flat[[-1]] = y.flat[0]
        y.flat[3] = 7.0
        return y

    a = f(BASE, make)
    expected = f(BASE, np.array)
    equal(vm.value(a), expected)
    a.flat = 2.5
    assert np.all(vm.value(a) == 2.5)
    expect_ad(lambda x: np.sum(f(x, np.copy) ** 2), BASE)


@pytest.mark.parametrize("kind", list(VARIABLES))
def test_flags_are_those_of_the_values(kind):
    a, x = VARIABLES[kind]()
    flags = np.asarray(x)[()].flags
    # This View is a transpose, which lies in memory column by column.
    if kind != "View":
        assert a.flags.c_contiguous == flags.c_contiguous
        assert a.flags["F_CONTIGUOUS"] == flags["F_CONTIGUOUS"]
    assert a.flags.writeable == bool(np.ndim(x))
    if np.ndim(x) and kind != "MatVar":
        a.flags.writeable = False
        a[0] = a[0] * 2.0  # the flag does not prevent assignment


@pytest.mark.parametrize("kind", list(VARIABLES))
def test_lengths(kind):
    a, x = VARIABLES[kind]()
    assert hasattr(a, "__len__") == bool(np.ndim(x))
    if np.ndim(x):
        assert len(a) == a.__len__() == type(a).__len__(a) == len(x)
    else:
        refuses(TypeError, None, len, a)
        refuses(AttributeError, None, getattr, a, "__len__")


@pytest.mark.parametrize("kind", list(VARIABLES))
def test_integers_of_variables_are_constants(kind):
    a, x = VARIABLES[kind]()
    x = np.asarray(x)[()]
    for dtype in (int, np.int8, np.uint16, "i4", bool):
        for result in (a.astype(dtype), np.astype(a, dtype)):
            np.testing.assert_array_equal(result, x.astype(dtype), strict=True)
            assert type(result) is type(x.astype(dtype))
    assert type(a.astype(float)) in (type(a), vm.VarMat)


def test_integers_in_recordings():
    def f(x):
        whole = np.where(np.floor(x).astype(bool), x**2, 5.0 * x)
        return np.sum(x * (3.0 * x).astype(int)) + np.sum(whole)

    x = np.array([0.3, -0.7, 1.9])
    expect_ad(f, x)
    agree(f, (x,), (x + 1.0,), (np.array([-2.5, 0.3, 0.3]),), rtol=1e-14)
    message = r"recorded: the function looks"
    refuses(RecordingError, message, vm.recorded(lambda x: np.sum(x[x.astype(np.uint8)])), x)


def test_scalars_in_python():
    v = vm.var(1.5)
    assert v > 0
    assert bool(v)
    assert not vm.var(0.0)
    assert [repr(v), str(v), f"{v:.3f}", f"{v}"] == ["Var(1.5)", "Var(1.5)", "1.500", "Var(1.5)"]
    assert max(v, vm.var(2.0)).val == 2.0
    assert min(v, 1.0) == 1.0
    assert [x.val for x in sorted([vm.var(2.0), v, vm.var(-1.0)])] == [-1.0, 1.5, 2.0]
    assert round(v).val == round(v, 0).val == 2.0
    assert round(vm.var(1.26), 1).val == 1.3
    assert vm.var([1.5, 2.5, 3.5])[1] in [vm.var(2.5)]
    for use in (len, iter):
        refuses(TypeError, None, use, v)
        refuses(TypeError, None, use, vm.Dual(1.0, 1.0))


def test_arrays_in_python():
    x = vm.var([[1.0, 2.0], [3.0, 4.0]])
    first, second = x
    assert sum(x).shape == round(x, 1)[0].shape == (2,)
    assert (sum(first * second) + max(x[0]) * 10).grad(x).tolist() == [[3.0, 14.0], [1.0, 2.0]]
    assert repr(x) == "VarMat([[1., 2.],\n        [3., 4.]])"
    assert f"{x[0]}" == "VarMat([1., 2.])"
    assert [item.val for item in sorted(vm.var([3.0, 1.0]))] == [1.0, 3.0]
    assert bool(vm.var([2.0]))
    refuses(ValueError, "ambiguous", bool, x)
    refuses(TypeError, None, format, x, ".3f")


@pytest.mark.parametrize("kind", ["VarMat", "View", "Dual"])
def test_containers_iterate(kind):
    a, x = VARIABLES[kind]()
    assert len(a) == 2
    assert [vm.value(row).tolist() for row in a] == x.tolist()
    assert 0.7 in a
    assert 7.0 not in a
    first, second = a
    equal(vm.value(first * second), x[0] * x[1])


@pytest.mark.parametrize("kind", ["Var", "VarMat", "View", "Dual"])
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, np.copy])
def test_copies_keep_the_derivative(kind, duplicate):
    a, x = VARIABLES[kind]()
    b = duplicate(a)
    assert b is not a
    equal(vm.value(b), x)
    if kind == "Dual":
        equal(b.tan, a.tan)
    else:
        np.sum(b * b).grad()
        np.testing.assert_allclose(a.adj, 2 * np.asarray(x))


def test_divmod_agrees_with_its_parts():
    x = vm.var(VECTOR)
    quotient, remainder = divmod(x, 0.6)
    close([vm.value(quotient), vm.value(remainder)], list(divmod(VECTOR, 0.6)), 1e-7)
    assert np.sum(remainder).grad(x).tolist() == [1.0, 1.0, 1.0]
    for dividend in (vm.var(7.5), 7.5):
        q, r = divmod(dividend, vm.var(2.0))
        assert (q.val, r.val) == (3.0, 1.5)


def test_xarray_holds_variables():
    import xarray as xr

    x = vm.var(BASE)
    array = xr.DataArray(x, dims=("row", "column"), coords={"row": [10, 20]})
    assert array.data is x
    assert array.dtype == np.float64
    total = (array * 2.0 + array.T).sum("column")
    assert isinstance(total.data, vm.VarMat)
    weights = xr.DataArray([0.5, 0.25, 0.25], dims="column")
    mixed = (weights * array).isel(column=slice(1, 3)).mean("column")
    result = np.exp(0.1 * total) * mixed
    np.sum(result.data).grad()
    scale, means = np.exp(0.3 * BASE.sum(1)), BASE[:, 1:].mean(1) / 4
    close(vm.value(result.data), scale * means, 1e-14)
    expected = (0.3 * scale * means)[:, None] + (scale / 8)[:, None] * [0.0, 1.0, 1.0]
    close(x.adj, expected, 1e-13)
    equal(vm.value(array.sel(row=20).data), BASE[1])
    assert "VarMat" in repr(array)
