"""Concatenation, stacking, blocks, insertion, and choosing between arrays."""

import numpy as np
import pytest
from comparing import SHAPE, equal, refuses_as
from functions.movement import expect_moves, gradient

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

# NumPy 2.0, the oldest version that we support, lacks what 2.1 added.
NEW_NUMPY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"

VECTOR = np.array([3.0, -1.0, 2.0])
OTHER = np.array([0.5, 4.0, -2.5])
MATRIX = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
CUBE = np.arange(24.0).reshape(2, 3, 4) - 7.5
MASK = np.array([True, False, True])
EMPTY = np.zeros((0, 3))

# Functions of several arrays: name -> (function, arguments).
JOINS = {
    "concatenate": (lambda *a: np.concatenate(a), (VECTOR, OTHER[:2], np.zeros(0))),
    "concatenate data": (lambda *a: np.concatenate([*a, [7.0, 8.0], np.arange(2)]), (VECTOR,)),
    "concatenate axis": (lambda *a: np.concatenate(a, axis=-2), (MATRIX, MATRIX[:1], EMPTY)),
    "concatenate flat": (lambda *a: np.concatenate(a, axis=None), (MATRIX, 2.0, VECTOR)),
    "concat": (lambda *a: np.concat(a, axis=1), (MATRIX, MATRIX[:, :1])),
    "stack scalars": (lambda *a: np.stack([a[0], 2.0, a[1], a[0]]), (1.5, -2.5)),
    "stack": (lambda *a: np.stack(a), (VECTOR, OTHER)),
    "stack axis": (lambda *a: np.stack(a, axis=-1), (MATRIX, MATRIX + 1)),
    "hstack": (lambda *a: np.hstack(a), (VECTOR, 2.0, OTHER)),
    "vstack": (lambda *a: np.vstack(a), (VECTOR, MATRIX)),
    "dstack": (lambda *a: np.dstack(a), (MATRIX, MATRIX + 1)),
    "column_stack": (lambda *a: np.column_stack(a), (VECTOR, OTHER, MATRIX.T)),
    "append": (np.append, (MATRIX, 2.0)),
    "append_row": (vm.append_row, (MATRIX, VECTOR)),
    "append_row of vectors": (vm.append_row, (2.0, VECTOR)),
    "append_col": (vm.append_col, (MATRIX, OTHER[:2])),
    "append_col of vectors": (vm.append_col, (VECTOR, OTHER)),
    "append_array": (vm.append_array, (MATRIX, MATRIX[:1])),
    "block": (lambda a, b, c: np.block([[a, b], [c, 1.0]]),
              (MATRIX[:, :2], MATRIX[:, 2:], OTHER[:2])),
    "block of scalars": (lambda a, b: np.block([[a, 0.0], [b, a]]), (1.5, 2.5)),
    "block of cubes": (lambda a, b: np.block([[[a, b]], [[b, a]]]), (CUBE, CUBE + 1)),
    "block of one": (np.block, (VECTOR,)),
    "insert": (lambda a, v: np.insert(a, 1, v), (VECTOR, 2.0)),
    "insert several": (lambda a, v: np.insert(a, [0, 2, 2], v), (VECTOR, OTHER)),
    "insert at one place": (lambda a, v: np.insert(a, [1], v), (VECTOR, OTHER)),
    "insert slice": (lambda a, v: np.insert(a, np.s_[::2], v), (VECTOR, OTHER[:2])),
    **({"insert mask": (lambda a, v: np.insert(a, MASK, v), (VECTOR, 2.0))} if NEW_NUMPY else {}),
    "insert column": (lambda a, v: np.insert(a, 1, v, axis=1), (MATRIX, OTHER[:2])),
    "insert columns": (lambda a, v: np.insert(a, [1, 3], v, axis=1), (MATRIX, MATRIX[:, :2])),
    "insert nothing": (lambda a: np.insert(a, [], 0.0), (VECTOR,)),
    "where": (lambda a, b: np.where(MASK, a, b), (VECTOR, OTHER)),
    "where broadcast": (lambda a, b: np.where(MASK, a, b), (2.0, MATRIX)),
    "where broadcast condition": (lambda a, b: np.where(MASK[:, None], a, b), (2.0, VECTOR)),
    "where scalar": (lambda a, b: np.where(True, a, b), (2.0, 3.0)),
    "where scalar condition": (lambda a, b: np.where(False, a, b), (VECTOR, 3.0)),
    "where empty": (lambda a, b: np.where(np.zeros((0, 3), bool), a, b), (EMPTY, 2.0)),
    "select": (lambda a, b: np.select([MASK, ~MASK & (OTHER > 5)], [a, b], 2 * a), (VECTOR, OTHER)),
    "select first wins": (lambda a, b: np.select([MASK, MASK], [a, b]), (VECTOR, OTHER)),
    "choose": (lambda a, b: np.choose([0, 1, 0], [a, b]), (VECTOR, OTHER)),
    "choose of rows": (lambda a: np.choose([1, 0, 1], a), (MATRIX,)),
    "choose wrap": (lambda a, b: np.choose([[2], [-1]], (a, b), mode="wrap"), (VECTOR, 2.0)),
}  # fmt: skip


@pytest.mark.parametrize(("f", "args"), JOINS.values(), ids=JOINS)
def test_moves(f, args):
    for i in range(len(args)):
        expect_moves(lambda x, i=i: f(*args[:i], x, *args[i + 1 :]), args[i])


@pytest.mark.parametrize(("f", "args"), JOINS.values(), ids=JOINS)
def test_all_routes(f, args):
    expect_ad(lambda *a: f(*a) * f(*a), *args)
    expect_ad_matvar(f, *args)


@pytest.mark.parametrize("n", [1, 7, 1000])
def test_stack_of_many_scalars_is_one_entry(n):
    with vm.nested() as tape:
        leaves = [vm.var(float(i)) for i in range(n)]
        y = np.stack(leaves)
        assert len(tape) == 1
        equal(y.val, np.arange(n))
        (np.sum(y * y)).grad()
        assert [x.adj for x in leaves] == [2.0 * i for i in range(n)]


def test_stack_takes_lists_among_variables():
    with vm.nested():
        v, x = vm.var(2.0), vm.var(VECTOR)
        y = np.stack([x, [v, 1.0, v]])
        equal(y.val, [VECTOR, [2.0, 1.0, 2.0]])
        np.sum(y * np.arange(6.0).reshape(2, 3)).grad()
        assert v.adj == 8.0


def test_where_keeps_infinite_and_nan_branches_out():
    """The branch that is not chosen has no influence, even if it is infinite or nan."""
    x = np.array([0.0, 4.0, -1.0])

    def root(x):
        safe = np.where(x > 0, x, 1.0)
        return np.where(x > 0, np.sqrt(safe), 0.0)

    equal(gradient(root, x, np.ones(3)), [0.0, 0.25, 0.0])
    with vm.nested(), np.errstate(all="ignore"):
        a, b = vm.var(x), vm.var(x)
        y = np.where(MASK, a, b / 0.0)
        np.sum(y * np.array([1.0, 0.0, 1.0])).grad()
        equal(a.adj, [1.0, 0.0, 1.0])
    weights = np.array([np.nan, np.inf, 1.0])
    equal(gradient(lambda x: np.where(MASK, x, OTHER), x, weights), [np.nan, 0.0, 1.0])
    equal(gradient(lambda x: np.where(MASK, OTHER, x), x, weights), [0.0, np.inf, 0.0])


def test_where_with_a_variable_condition_and_of_one_argument():
    with vm.nested():
        x = vm.var(MATRIX)
        equal(np.where(x, x, -1.0).val, np.where(MATRIX, MATRIX, -1.0))
        equal(np.where(x > 0), np.where(MATRIX > 0))
        equal(np.where(x), np.where(MATRIX))


def test_kinds():
    """A varmat among the operands makes the result a varmat. Scalars and data do not change its
    kind.
    """
    with vm.nested():
        x, m, v = vm.var(VECTOR), vm.matvar(VECTOR), vm.var(2.0)
        for join in (np.concatenate, np.stack, np.hstack, np.vstack):
            assert type(join([x, m])) is vm.VarMat
            assert type(join([m, VECTOR])) is vm.MatVar
            assert type(join([x, VECTOR])) is vm.VarMat
        assert type(np.append(m, v)) is vm.MatVar
        assert type(np.where(MASK, m, v)) is vm.MatVar
        assert type(np.where(MASK, v, 1.0)) is vm.VarMat
        assert type(np.where(MASK, m, x)) is vm.VarMat
        assert type(np.stack([v, 1.0])) is vm.VarMat


def test_duals_join_data():
    one = vm.Dual(VECTOR, np.stack([VECTOR, OTHER]))
    joined = np.concatenate([one, OTHER])
    equal(joined.tan, np.hstack([[VECTOR, OTHER], np.zeros((2, 3))]))
    with pytest.raises(vm.ShapeError, match=r"^stack: duals with .* directions meet"):
        np.stack([one, vm.Dual(VECTOR, VECTOR)])


REFUSALS = [
    (lambda x: np.concatenate([x, MATRIX]), ValueError,
     "arrays have shapes (3,) and (2, 3), but must go together!"),
    (lambda x: np.stack([x, OTHER[:2]]), ValueError,
     "arrays have shapes (3,) and (2,), but must go together!"),
    (lambda x: np.concatenate([x, OTHER], axis=1), np.exceptions.AxisError,
     "axis 1 is out of bounds"),
    (lambda x: np.stack([vm.var(2.0), 1.0], axis=1), np.exceptions.AxisError,
     "axis 1 is out of bounds"),
    (lambda x: np.hstack([x, x], dtype=int), TypeError, "dtype is int64, but must be float64!"),
    (lambda x: np.concatenate([x, 2.0]), ValueError,
     "arrays have shapes (3,) and (), but must go together!"),
    (lambda x: np.concatenate([x, x], out=np.zeros(6)), TypeError,
     "np.concatenate: a variable cannot be written into a plain array (out=, or an in-place"),
    (lambda x: np.stack([x, x], dtype=np.float32), TypeError,
     "dtype is float32, but must be float64!"),
    (lambda x: np.concatenate([x, np.array(["a"])]), TypeError,
     "operand 2 has dtype <U1, but must be real numbers (float64, or what converts to it)"),
    (lambda x: vm.append_row(x, MATRIX[:, :2]), SHAPE,
     "y has shape (2, 2), but must have the shape of x, (1, 3), except along axis 0!"),
    (lambda x: vm.append_col(x, MATRIX), SHAPE,
     "y has shape (2, 3), but must have the shape of x, (3, 1), except along axis 1!"),
    (lambda x: vm.append_array(MATRIX, x), SHAPE, "y has shape (3,), but must have"),
    (lambda x: vm.append_array(x, 1.0), SHAPE, "y has shape (), but must"),
    (lambda x: vm.append_array(1.0, x), SHAPE, "x is a scalar, but must be an array!"),
    (lambda x: vm.append_row(x, ["a"]), TypeError, "y has dtype"),
    (lambda x: np.block([[x], x]), SHAPE, "arrays holds lists of different depths"),
    (lambda x: np.block([[x], []]), SHAPE, "arrays holds an empty list"),
    (lambda x: np.select([MASK], [x, x]), SHAPE, "condlist has 1 and choicelist 2 items"),
    (lambda x: np.select([np.arange(3)], [x]), TypeError,
     "condlist[0] has dtype int64, but must be boolean!"),
    (lambda x: np.choose([0, 2, 0], [x, x]), ValueError, "invalid entry in choice array"),
    (lambda x: np.insert(x, 4, 1.0), IndexError, "index 4 is out of bounds"),
    (lambda x: np.insert(np.arange(3), 1, x), TypeError,
     "arr has dtype int64, but must be float64 where variables are inserted!"),
    (lambda x: np.insert([True, False], 1, x), TypeError,
     "arr has dtype bool, but must be float64 where variables are inserted!"),
    (lambda x: np.where(MASK, x, OTHER[:2]), SHAPE,
     "operands have shapes (3,) and (3,) and (2,), but must broadcast!"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSALS)
def test_refusals(call, error, text):
    with vm.nested() as tape:
        x = vm.var(VECTOR)
        refuses_as(error, text, call, x)
        assert len(tape) == 0
