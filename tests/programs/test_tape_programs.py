"""Programs of tapes: what is computed once or not at all, and how adjoints are put together."""

import numpy as np
import pytest
from comparing import close, equal
from recordings import LARGE, X, Y, agree, vectors

import varmat as vm
from varmat.programs.ir.program import RecordingError


def test_a_factor_that_is_taken_out_of_a_sum_does_not_make_it_overflow():
    """Nor does it make a value finite that is not."""
    for f, x in (
        (lambda x: np.sum(x * 1e-10), [1e308, 1e308]),
        (lambda x: np.sum(np.cosh(x[0]) * x), [-np.inf, 0.3]),
        (lambda x: np.sum(x * 1e10), [1e300, 1e300]),
    ):
        with np.errstate(all="ignore"):
            equal(vm.recorded(f)(np.array(x)), vm.value_and_grad(f)(np.array(x)))


@pytest.mark.parametrize("zero", [
    lambda x: x * 0.0, lambda x: x * -0.0, lambda x: x + 0.0, lambda x: x - 0.0, lambda x: 0.0 - x,
    lambda x: -0.0 - x, lambda x: -x, lambda x: x - x, lambda x: -(x - x), lambda x: -x + x,
    lambda x: 0.0 * x - 0.0, lambda x: x * 1.0 + -0.0,
])  # fmt: skip
def test_zeros_keep_their_signs(zero):
    def f(x):
        return np.sum(np.arctan2(zero(x), -1.0) * np.array([1e3, 1e2, 1e1]))

    for x in (np.array([1.0, 2.0, -3.0]), np.array([0.0, -0.0, 1.0])):
        for value in (vm.recorded(f)(x)[0], vm.value_and_grad(f)(x)[0]):
            assert value == pytest.approx(f(x), rel=1e-15)


def rounding_error(x):
    """Return the rounding error of a sum, computed without a larger type."""
    a, b = x[:2], x[2:4]
    total = a + b
    part = total - a
    return np.sum((a - (total - part)) + (b - part)) * 1e16


def compensated(x):
    total, lost = x[0], 0.0
    for i in range(1, len(x)):
        y = x[i] - lost
        longer = total + y
        lost = (longer - total) - y
        total = longer
    return total - lost + lost * 1e16


@pytest.mark.parametrize("f", [
    rounding_error, compensated,
    lambda x: np.sum((x + 1e20) - 1e20),
    lambda x: np.sum((x * 1e-20 + 1.0) - 1.0) * 1e20,
    lambda x: np.sum((x + 6755399441055744.0) - 6755399441055744.0),
    lambda x: np.sum((1e20 - x) + (x - 1e20)),
    lambda x: (x[0] + 1e17) - x[1] - 1e17,
    lambda x: np.sum(((x + 1e200) - 1e200) * 2.0 + x) - (np.sum(x) + 1e17) + 1e17,
    lambda x: np.sum(x * 3.0 - x - x - x) * 1e16,
    lambda x: np.sum((x / 3.0) * 3.0 - x) * 1e16,
])  # fmt: skip
def test_arithmetic_is_not_rearranged(f):
    """The function means to compute with the rounding errors."""
    points = [1.0, 1e-3, 0.1, 0.7, 1e-9], [0.3, 5.5, 1e7, -0.2, 1.0 / 3.0]
    agree(f, *((np.array(x),) for x in points))


def test_the_outcome_of_a_comparison_is_no_key():
    with pytest.raises(RecordingError, match="looks at the value"):
        vm.recorded(lambda x: {True: x[0], False: x[1]}[x[0] > 0])(np.array([1.0, 2.0]))


def test_views_of_views_of_any_depth():
    """A loop over ``x = x[1:]`` makes such views."""

    def neighbours(x):
        total = 0.0
        while len(x) > 1:
            total = total + x[0] * x[1]
            x = x[1:]
        return total

    def turned(x):
        for _ in range(2001):
            x = x.T
        return np.sum(x * np.array([[1.0], [2.0]]))

    x = np.linspace(0.0, 1.0, 1500)
    expected = np.concatenate([x[1:], [0.0]]) + np.concatenate([[0.0], x[:-1]])
    close(vm.gradient(neighbours, x), expected, 1e-15)
    for gradient in (vm.gradient(turned, np.ones((1, 2))), vm.recorded(turned)(np.ones((1, 2)))[1]):
        assert gradient.tolist() == [[1.0, 2.0]]


def test_common_results_are_computed_once():
    g = agree(lambda x, y: np.sum(np.log1p(x * y * y)), (Y**2, Y), (Y**2, 2.0 * Y), argnums=(0, 1))
    assert g.program.counts()["divide"] == 1
    assert g.program.counts()["log1p"] == 1

    def twice(x):
        y = np.sum(np.exp(x) * np.sin(x)) + np.sum(np.exp(x)[1:] * np.exp(x[1:]))
        return y + np.sum(np.exp(x) * np.sin(x))

    counts = agree(twice, *vectors(5)).program.counts()
    assert (counts["exp"], counts["sin"], counts["cos"]) == (2, 1, 1)


@pytest.mark.parametrize(("f", "calls"), [
    (lambda x: np.sum(x * Y) + x @ x, {"add.reduce"}),
    (lambda x: np.sum(np.outer(x, x) * np.outer(Y, x)), {"copy", "add.reduce"}),
    (lambda x: np.sum(np.exp(x) * 3.0 * x / x[0]), {"copy"}),
])  # fmt: skip
def test_products_are_the_calls_that_suit_them(f, calls):
    """A product that is summed becomes an inner product. There are no copies, and no zeros to add
    to.
    """
    assert not agree(f, *vectors(5)).program.counts().keys() & calls


def test_products_with_matrices_are_products_of_matrices():
    g = agree(lambda x: np.sum(x * Y) + (X @ x[:3]) @ Y + x @ x, *vectors(5))
    assert g.program.counts()["matmul"] == 4


@pytest.mark.parametrize("f", [
    lambda m: np.sum(np.sin(m[None, :1] @ m)), lambda m: np.sum(m[None, :1] @ m),
    lambda m: np.sum(np.cos(m @ m[:, :1][None])),
    lambda m: np.sum(np.sin(m[None, 0] @ m)) + np.sum(np.sin(m[:1] @ m[None])) + np.sum(m @ m[0]),
])  # fmt: skip
def test_stacks_of_one_matrix(f):
    """The stacks stand beside matrices, whose adjoints are sums of products."""
    agree(lambda x: f(np.sin(np.outer(x, x))), *vectors(5))


def test_steps_have_the_names_of_what_they_compute():
    def f(x):
        eigenvalues = np.linalg.eigvalsh(np.outer(x, x) + np.eye(2))
        return np.sum(vm.lgamma(x)) + np.sum(x[[0, 1, 0]]) + np.sum(eigenvalues)

    g = vm.recorded(f)
    g(np.ones(2))
    assert {"gammaln", "psi", "gather", "eigh_lo"} <= g.program.counts().keys()
    unnamed = vm.operation()(lambda x: np.cos(x))
    unnamed.reverse(lambda g, r, x: -np.sin(x) * g)
    assert vm.recorded(lambda x: unnamed(x))(0.0) == (1.0, 0.0)


@pytest.mark.parametrize("before", range(6))
def test_functions_with_the_names_of_values(before):
    """Constants are printed as ``k1`` and so on, and k1 is also a Bessel function."""
    rows = np.arange(1.0, 3.0)[:, None]

    def f(x):
        y = x
        for _ in range(before):
            y = np.sum(np.tanh(y) * rows, axis=0)
        total = np.sum(vm.k1(1.5 * x * Y[:3] ** 2 + 2.0)) + vm.k0(x[1])
        total = total + np.sum(vm.i1(x[np.array([0, 2])]))
        for i in range(1, 12):
            total = total + np.sum(np.sin(i * y))
        return total + np.sum(np.sum(y * rows, axis=1) ** 3)

    agree(f, (np.array([0.3, 0.5, 0.7]),), (np.array([0.6, 0.2, 0.4]),))


def test_parts_are_no_steps():
    def steps(x):
        h = x[0]
        for _ in range(5):
            h = np.tanh(h @ x.T + x[1][2:] @ x.T[2:])
        return np.sum(h)

    rng = np.random.default_rng(5)
    counts = agree(steps, *((rng.normal(size=(4, 4)),) for _ in range(3))).program.counts()
    assert counts["copy"] == 0
    # The product that does not change in the loop is computed once.
    assert counts["tanh"] == 5


@pytest.mark.parametrize("n", [12, LARGE.size])
def test_negative_adjoints_of_parts(n):
    places = np.array([3, 1, 3])

    def f(x):
        steps = x[1:] - x[:-1]
        backwards = 1.0 - x[::-1]
        gathered = -x[places] + 2.0
        bent = np.sum(steps**2) + np.sum(np.sin(backwards)) + np.sum(gathered**3)
        return bent - x[2] - np.sum(x[4:6])

    rng = np.random.default_rng(7)
    agree(f, *((rng.normal(size=n),) for _ in range(3)), rtol=1e-11)
    agree(lambda x: np.sum(np.exp(-x[:6])) + np.sum(-x[6:]), *vectors(12))


def test_adjoints_in_another_shape_are_not_copied():
    weights = np.arange(1.0, 13.0)

    def f(x):
        return np.sum((np.sin(x).reshape(-1) + 1.0) * weights) + np.sum(np.cos(x).ravel())

    rng = np.random.default_rng(6)
    counts = agree(f, *((rng.normal(size=(3, 4)),) for _ in range(3))).program.counts()
    assert not counts.keys() & {"copy", "assemble"}


def test_adjoints_of_equal_elements_are_numbers():
    """They stay numbers until they meet an array."""
    g = agree(lambda x: np.sum(x) * np.sum(x[0] * x) + np.sum(x + 1.0), *vectors(6))
    arrays = [step.kernel.name for step in g.program.steps if step.results[0].shape]
    assert len(arrays) <= 3, g.program


def test_steps_that_do_not_depend_on_the_arguments_are_left_out():
    def f(x):
        inner = vm.var(np.arange(3.0))
        inner[1] = 5.0
        return np.sum(x * np.exp(inner)) + np.sum(np.sin(inner) ** 2)

    counts = agree(f, *vectors(3)).program.counts()
    assert not counts.keys() & {"exp", "sin", "where", "cos"}


def test_unused_results_are_not_computed():
    def f(x):
        np.exp(x) * np.sin(x)
        np.sum(x) ** 2
        return np.sum(x * 2.0)

    assert len(agree(f, *vectors(3)).program) == 2
