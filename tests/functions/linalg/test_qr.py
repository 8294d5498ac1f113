"""The QR decomposition: at deficient rank, and the completing columns."""

import numpy as np
import pytest
from comparing import close
from functions.matrices import TALL, gradients
from recordings import EVERY_RUNNER

import varmat as vm

qr = np.linalg.qr


def test_qr_of_deficient_rank_has_no_finite_derivative():
    for a in (np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]), np.zeros((2, 3, 2))):
        _, (adjoint,) = gradients(lambda a: tuple(qr(a)), [a])
        assert not np.isfinite(adjoint).all()


@pytest.mark.parametrize("a", [
    TALL[:, :2], np.eye(4, 2), np.triu(TALL), np.zeros((4, 2)), TALL[:, :1] * [[1], [0], [0], [0]],
])  # fmt: skip
def test_all_columns_are_those_of_numpy(a):
    # This includes matrices for which LAPACK needs no reflection.
    q, r = qr(vm.var(a), "complete")
    exact = np.linalg.qr(a, "complete")
    close(q.val, exact.Q, 1e-7, 2e-15)
    close(r.val, exact.R, 1e-7, 2e-15)


def test_the_other_columns_where_there_is_nothing_to_reflect():
    # The other columns are orthogonal to [[x], [y], [z]]. At y = z = 0 their first elements are
    # therefore -y / x and -z / x.
    _, (adjoint,) = gradients(
        lambda a: vm.qr_Q(a)[0, 1:], [np.array([[2.0], [0.0], [0.0]])], [np.array([3.0, 5.0])]
    )
    close(adjoint, [[0.0], [-1.5], [-2.5]], 1e-7, 1e-15)


@pytest.mark.parametrize("runner", EVERY_RUNNER)
@pytest.mark.parametrize("function", [vm.qr, vm.qr_thin, lambda a: qr(a, mode="complete")])
def test_recordings_find_the_signs_at_every_point(function, runner):
    def f(x):
        a = np.outer(x, x)[:, :2] + np.eye(3)[:, :2] * np.array([3.0, -2.0])
        return sum(
            np.sum(part * np.arange(1.0, 1.0 + np.size(part)).reshape(np.shape(part)))
            for part in function(a)
        )

    recorded, hessian = vm.recorded(f, runner=runner), vm.recorded(vm.hessian(f), runner=runner)
    for x in map(np.array, ([1.0, 2.0, 3.0], [-3.0, 1.5, 2.2], [2.0, 3.3, -1.0])):
        expected = (*vm.value_and_grad(f)(x), *vm.hessian(f)(x))
        close((*recorded(x), *hessian(x)), expected, 1e-12, 1e-11)
