"""Views: values and adjoints are the parent's, and nothing is recorded."""

import numpy as np
import pytest
import stan
from comparing import close, equal, refuses
from functions.movement import expect_moves, gradient

import varmat as vm
from varmat.core.arena import LARGE
from varmat.stan import containers
from varmat.testing import expect_ad_matvar

# NumPy 2.0, the oldest version that we support, lacks what 2.1 added.
NEW_NUMPY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"

VECTOR = np.array([3.0, -1.0, 2.0, 5.0])
MATRIX = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
CUBE = np.arange(24.0).reshape(2, 3, 4) - 7.5

# Views: name -> (function, arguments at which it is tried).
VIEWS = {
    "reshape": (lambda x: np.reshape(x, (2, -1)), [VECTOR, MATRIX, CUBE]),
    "ravel": (np.ravel, [VECTOR, CUBE]),
    "without an order": (lambda x: np.ravel(np.reshape(x, (3, -1), order=None), order=None),
                         [MATRIX]),
    "ravel transposed F": (lambda x: np.ravel(np.transpose(x), order="F"), [MATRIX, CUBE]),
    "transpose": (np.transpose, [MATRIX, CUBE]),
    "transpose axes": (lambda x: np.transpose(x, (1, 2, 0)), [CUBE]),
    "transpose method": (lambda x: x.transpose(2, 0, 1), [CUBE]),
    "permute_dims": (lambda x: np.permute_dims(x, (2, 0, 1)), [CUBE]),
    "T": (lambda x: x.T, [MATRIX]), "mT": (lambda x: x.mT, [CUBE]),
    "matrix_transpose": (np.matrix_transpose, [MATRIX, CUBE]),
    "swapaxes": (lambda x: np.swapaxes(x, 0, -1), [MATRIX, CUBE]),
    "moveaxis": (lambda x: np.moveaxis(x, [0, 1], [-1, 0]), [MATRIX, CUBE]),
    "rollaxis": (lambda x: np.rollaxis(x, 2), [CUBE]),
    "squeeze": (lambda x: np.squeeze(np.expand_dims(x, (0, -1))), [VECTOR, MATRIX]),
    "expand_dims": (lambda x: np.expand_dims(x, 1), [VECTOR, MATRIX]),
    "flip": (np.flip, [VECTOR, MATRIX, CUBE]),
    "flip axis": (lambda x: np.flip(x, (0, 2)), [CUBE]),
    "fliplr": (np.fliplr, [MATRIX]),
    "flipud": (np.flipud, [VECTOR, MATRIX]),
    "rot90": (np.rot90, [MATRIX, CUBE]),
    "rot90 three": (lambda x: np.rot90(x, 3, axes=(2, 1)), [CUBE]),
    "atleast_1d": (np.atleast_1d, [VECTOR]),
    "atleast_2d": (np.atleast_2d, [VECTOR, MATRIX]),
    "atleast_3d": (np.atleast_3d, [VECTOR, MATRIX, CUBE]),
    "diagonal": (np.diagonal, [MATRIX, CUBE]),
    "diagonal offset": (lambda x: np.diagonal(x, -1, 1, 2), [CUBE]),
    "diag": (lambda x: np.diag(x, 1), [MATRIX]),
    "einsum": (lambda x: np.einsum("i...j->...ji", x), [MATRIX, CUBE]),
    **(
        {"reshape without a copy": (lambda x: np.reshape(x.T, -1, "F", copy=False), [MATRIX])}
        if NEW_NUMPY
        else {}
    ),
    "views of views": (lambda x: np.flip(np.diagonal(np.flip(x.T, 0).swapaxes(0, 1), 1)), [MATRIX]),
    "real": (np.real, [VECTOR]),
    "reverse": (vm.reverse, [VECTOR, CUBE]),
    "to_vector": (vm.to_vector, [VECTOR]),
    "to_matrix of a vector": (vm.to_matrix, [VECTOR, MATRIX]),
    "to_matrix by rows": (lambda x: vm.to_matrix(x, 3, 2, col_major=False), [MATRIX]),
}  # fmt: skip
# Calls that copy in NumPy, or whose result is an array or a scalar. Each one records one entry.
COPIES = {
    "reshape transposed": (lambda x: np.reshape(x.T, -1), [MATRIX]),
    "reshape F": (lambda x: np.reshape(x, (3, -1), order="F"), [MATRIX, CUBE]),
    "ravel reversed": (lambda x: np.ravel(x[::-1]), [VECTOR]),
    "ravel strided F": (lambda x: np.ravel(x[::2], order="F"), [VECTOR]),
    **({"reshape copy": (lambda x: np.reshape(x, -1, copy=True), [VECTOR])} if NEW_NUMPY else {}),
    "reshape to scalar": (lambda x: np.reshape(x, ()), [VECTOR[:1], MATRIX[:1, :1]]),
    "squeeze to scalar": (np.squeeze, [VECTOR[:1]]),
    "reshape scalar": (lambda x: np.reshape(x, (1, 1)), [2.0]),
    "expand_dims scalar": (lambda x: np.expand_dims(x, (0, 1)), [2.0]),
    **{f.__name__: (f, [2.0]) for f in (np.ravel, np.atleast_1d, np.atleast_2d, np.atleast_3d)},
    "to_vector": (vm.to_vector, [MATRIX]),
    "to_matrix": (lambda x: vm.to_matrix(x, 3, 2), [MATRIX]),
    "flatten": (lambda x: x.flatten(), [MATRIX]),
}  # fmt: skip
EMPTY = {
    "reshape": (lambda x: np.reshape(x.T, (2, 0)), [np.zeros((0, 2))]),
    "flip": (np.flip, [np.zeros(0)]),
}
SCALARS = {
    "transpose": np.transpose, "T": lambda x: x.T, "squeeze": np.squeeze,
    "reshape": lambda x: np.reshape(x, ()), "flip": np.flip, "real": np.real,
}  # fmt: skip


def cases(table):
    return [
        pytest.param(f, x, id=f"{name}-{i}")
        for name, (f, points) in table.items()
        for i, x in enumerate(points)
    ]


@pytest.mark.parametrize(("f", "x"), cases(VIEWS) + cases(COPIES) + cases(EMPTY))
def test_moves(f, x):
    expect_moves(f, x)
    expect_ad_matvar(f, x)


@pytest.mark.parametrize(("f", "x"), cases(VIEWS))
def test_views_record_nothing_and_share(f, x):
    with vm.nested() as tape:
        parent = vm.var(x)
        part = f(parent)
        assert len(tape) == 0
        assert np.shares_memory(part._val, parent._val)
        with np.errstate(all="ignore"):
            np.sum(part * part).grad()
        equal(part.adj, 2 * part.val)
        expected = np.array(x)
        equal(part.adj, f(2 * expected) if part.shape != expected.shape else part.adj)
        if not f(expected).flags.writeable:
            with pytest.raises(ValueError, match="assignment destination is read-only"):
                part[...] = 10.0
            return
        # Assigning to the view is assigning to the parent.
        part[...] = 10.0
        touched = np.zeros(x.shape)
        f(touched)[...] = 10.0
        equal(parent.val, np.where(touched == 10.0, 10.0, x))
        np.sum(parent * parent).grad()
        equal(parent.adj, np.where(touched == 10.0, 0.0, 2 * x))


@pytest.mark.parametrize(("f", "x"), cases(COPIES))
def test_copies_record_one_entry(f, x):
    with vm.nested() as tape:
        f(vm.var(x))
        assert len(tape) == 1


@pytest.mark.parametrize("f", SCALARS.values(), ids=SCALARS)
def test_scalars_stay_what_they_are(f):
    with vm.nested() as tape:
        v = vm.var(2.0)
        assert f(v) is v
        assert len(tape) == 0


@pytest.mark.parametrize(("f", "x"), cases(VIEWS))
def test_several_directions_share_too(f, x):
    """Assigning to a view of a dual changes the dual, with its tangents in all directions."""
    tangents = np.stack([x + 1.0, -x])
    dual = vm.Dual(x, tangents)
    part = f(dual)
    assert np.shares_memory(part.val, dual.val)
    assert np.shares_memory(part.tan, dual.tan)
    with vm.nested() as tape:
        part = f(vm.Dual(vm.var(x), vm.var(tangents)))
        assert len(tape) == 0
        equal(part.tan.val, np.stack([f(t) for t in tangents]))


SPLITS = {
    "split": (lambda x: np.split(x, 2), VECTOR),
    "split places": (lambda x: np.split(x, [1, 3], axis=-1), CUBE),
    "array_split": (lambda x: np.array_split(x, 3), VECTOR),
    "hsplit": (lambda x: np.hsplit(x, 3), MATRIX),
    "hsplit vector": (lambda x: np.hsplit(x, 2), VECTOR),
    "vsplit": (lambda x: np.vsplit(x, 2), MATRIX), "dsplit": (lambda x: np.dsplit(x, [1]), CUBE),
    **({"unstack": (lambda x: np.unstack(x, axis=1), CUBE)} if NEW_NUMPY else {}),
    "iteration": (list, MATRIX),
}  # fmt: skip


@pytest.mark.parametrize(("f", "x"), SPLITS.values(), ids=SPLITS)
def test_splits_are_views(f, x):
    with vm.nested() as tape:
        parent = vm.var(x)
        parts, expected = f(parent), f(x)
        assert len(tape) == 0
        assert len(parts) == len(expected)
        for part, e in zip(parts, expected, strict=True):
            np.testing.assert_array_equal(part.val, e, strict=True)
        np.sum(np.concatenate([np.ravel(part) * i for i, part in enumerate(parts)])).grad()
        weights = np.zeros(x.shape)
        for i, part in enumerate(f(weights)):
            part += i
        equal(parent.adj, weights)
    expect_ad_matvar(lambda x: tuple(f(x)), x)


def test_atleast_of_several_is_a_tuple():
    with vm.nested():
        a, b = np.atleast_2d(vm.var(1.0), vm.var(VECTOR))
        assert (a.shape, b.shape) == ((1, 1), (1, 4))


@pytest.mark.parametrize("shape", [(200, 200), (400, 100)])
def test_large_views(shape):
    """The adjoint of a large variable may be shared with the adjoint of a result, even in another
    layout, until it is written to.
    """
    assert np.prod(shape) > LARGE
    rng = np.random.default_rng(1)
    a, w = rng.normal(size=shape), rng.normal(size=shape)

    def f(x):
        # These adjoints are transposed and read-only.
        y = np.copy(np.transpose(np.copy(np.transpose(x))))
        return np.reshape(y, -1) * w.ravel() + np.reshape(x, -1) + np.reshape(y.T, -1)

    close(gradient(f, a, np.ones(a.size)), w + 2.0, 1e-14)


def test_transposed_large_adjoints_meet_a_view():
    """The contributions are two read-only transposed ones, and then one through a reshape."""
    a = np.arange(40_000.0).reshape(200, 200)
    with vm.nested():
        x = vm.var(a)
        y = x + 0.0
        view = np.reshape(y, -1)
        last = np.sum(view * 3.0)
        total = np.sum(np.copy(y.T) * a) + np.sum(np.copy(y.T) * a) + last
        total.grad()
        equal(x.adj, 2 * a.T + 3.0)


def function_of(name):
    return getattr(containers if name in containers.__all__ else vm, name)


@pytest.mark.parametrize("entry", stan.entries("shaping"))
def test_against_stan_math(entry):
    """These are all of Stan's functions that move elements, including those of the gathering and
    joining modules.
    """
    stan.check(function_of(entry["function"]), entry, rtol=1e-14)


@pytest.mark.parametrize("entry", stan.entries("shaping", throws=True))
def test_what_stan_refuses(entry):
    refuses(ValueError, None, function_of(entry["function"]), *stan.arguments(entry))


REFUSALS = {
    "order": (lambda x: np.ravel(x, order="K"), TypeError,
        r"^reshape: order is 'K', but must be 'C' or 'F'"),
    "reshape": (lambda x: np.reshape(x, (5, -1)), ValueError, "cannot reshape array of size 6"),
    **({"reshape copy": (lambda x: np.reshape(x.T, 6, copy=False), vm.DomainError,
        "^reshape: copy is False"), "reshape copy F": (lambda x: np.reshape(x, 6, "F", copy=False),
        vm.DomainError, "^reshape: copy is False")} if NEW_NUMPY else {}),
    "transpose": (lambda x: np.transpose(x, (0, 0)), ValueError, "repeated axis"),
    "swapaxes": (lambda x: np.swapaxes(x, 0, 2), np.exceptions.AxisError, "out of bounds"),
    "squeeze": (lambda x: np.squeeze(x, axis=0), ValueError, "not equal to one"),
    "split": (lambda x: np.split(x, 4), ValueError, "equal division"),
    "dsplit": (lambda x: np.dsplit(x, 2), ValueError, "3 or more dimensions"),
    "to_matrix of a stack": (lambda x: vm.to_matrix(x[None]), vm.ShapeError,
        r"^to_matrix: x has shape \(1, 2, 3\), but must be a"),
    "to_matrix": (lambda x: vm.to_matrix(x, 2, 2), vm.ShapeError,
        r"^to_matrix: x has 6 elements, but must have 2 \* 2!"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("make", [vm.var, lambda x: vm.Dual(x, np.stack([x, x]))])
def test_refusals(call, error, text, make):
    with vm.nested() as tape:
        x = make(MATRIX)
        refuses(error, text, call, x)
        assert len(tape) == 0


MADE = {
    "transposed": lambda x: x.T + x.T,
    "cumulated": lambda x: np.cumsum(x, axis=0),
    "gathered": lambda x: x[:, [1, 0, 0]],
    "joined": lambda x: np.concatenate([x.T, x.T]),
    "broadcast": lambda x: np.broadcast_to(x, (2, 2, 3)) * 1.0,
    "squeezed": lambda x: np.squeeze(x[:1, :1]),
    "strided": lambda x: x[0, ::-1],
}


@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("variable", [False, True])
@pytest.mark.parametrize("name", MADE)
def test_value_and_tangent_of_a_dual_are_views_or_copies_together(name, variable, k):
    def f(x):
        y = MADE[name](x)
        flat = np.ravel(y)
        flat *= 2.0  # changes value and tangent in place if they are views, else copies of both
        return np.sum(y * y) if np.ndim(y) else y * y

    tangent = MATRIX - 1.0 if k is None else np.stack([MATRIX - 1.0, MATRIX**2])
    expected = [np.sum(vm.gradient(f, MATRIX) * t) for t in (tangent if k else [tangent])]
    with vm.nested():
        found = f(vm.Dual(vm.var(MATRIX) if variable else MATRIX.T.copy().T, tangent))
        close(vm.value(found.tan), expected if k else expected[0], 1e-14)


@pytest.mark.parametrize(
    "where", [[4, 2], [4, -1], [3, 0], [-2], [2, 9], [], np.array([1, 1]), [2, None]]
)
def test_parts_leave_out_elements_or_overlap_as_given_indices_do(where):
    x = np.arange(6.0)
    for part, expected in zip(np.split(vm.var(x), where), np.split(x, where), strict=True):
        equal(vm.value(part), expected)


def test_numbers_of_rows_and_columns_may_be_small_integers():
    assert vm.to_matrix(vm.var(np.ones(400)), np.uint8(20), np.uint8(20)).shape == (20, 20)


@pytest.mark.parametrize("function", [vm.reverse, vm.to_vector, vm.to_matrix])
def test_only_real_numbers_are_put_into_other_shapes(function):
    for wrong in (["a", "b"], np.array([1j]), {1.0}, np.ma.masked_array([1.0], [True])):
        refuses(TypeError, f"{function.__name__}: x .* must be real numbers", function, wrong)


def test_a_reshape_without_a_copy_is_a_view_or_refused():
    x = vm.var(MATRIX)
    settings = {"copy": False} if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else {}
    assert np.shares_memory(np.reshape(x, (-1,), **settings), x)
    if settings:
        assert np.reshape(x[:0], (-1,), copy=False).shape == (0,)
        with vm.nested() as tape:
            y = vm.var(MATRIX)
            message = r"^reshape: copy is False, but must be None or True where the result"
            refuses(vm.DomainError, message, np.reshape, y.T, (-1,), copy=False)
            assert not tape
