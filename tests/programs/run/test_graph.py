"""Steps as loops of native code, which compute again what would need memory."""

import numpy as np
import pytest
from comparing import close, near
from layouts import native_code, of_one_step, with_arguments

import varmat as vm
from varmat.programs.kernels.reductions import Reduce

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

from varmat.programs.run.native import NativeRunner


def mixture(n, d, k):
    """Normal distributions with whitening matrices."""
    data = np.random.default_rng(n).normal(size=(n, d))

    def f(q):
        means, whitening = q[: k * d].reshape(k, d), q[k * d :].reshape(k, d, d)
        differences = data[:, None, :] - means
        white = np.matmul(whitening, differences[..., None])[..., 0]
        return np.sum(vm.logsumexp(-0.5 * np.sum(white * white, axis=2), axis=1))

    return f, np.sin(1.3 * np.arange(1, k * d * (d + 1) + 1))


@pytest.mark.parametrize(
    ("n", "d", "k"), [(30, 2, 18), (30, 10, 5), (101, 2, 5), (101, 3, 18), (101, 10, 1)]
)
def test_mixtures_with_whitening_matrices(n, d, k):
    f, x = mixture(n, d, k)
    recorded = vm.recorded(f, runner="native")
    recorded(0.9 * x)
    near(recorded(x), vm.value_and_grad(f)(x), 1e-13)


@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.minimum])
def test_reductions_do_not_call_python(ufunc):
    data = np.array([[0.3, -1.0, 2.0], [0.1, 4.0, -0.5]])
    for axes in ((0,), (1,), (0, 1)):
        program = of_one_step(Reduce(ufunc, axes), (2, 3))
        run = NativeRunner(program)
        assert not run.calls_python
        close(run([data])[1], ufunc.reduce(data, axes), 1e-15)
    builder, x = with_arguments((3,))
    positive = builder.compare(np.greater, x, builder.constant(np.zeros(3)))
    some = builder.reduce(np.logical_or, positive, (0,))
    chosen = builder.where(some, builder.sum(x), builder.constant(0.0))
    run = NativeRunner(builder.program([chosen]))
    assert not run.calls_python
    assert run([np.array([-1.0, 3.0, -0.5])]) == [1.5]
    assert run([np.array([-1.0, -3.0, 0.0])]) == [0.0]


def test_equal_numbers_are_computed_once():
    """Broadcasts, views and composed functions share what they have in common."""
    builder, x = with_arguments((2,))
    wide = builder.ufunc(np.exp, builder.broadcast(x, (3, 2)))
    first = builder.ufunc(np.exp, builder.view(x, lambda a: a[::-1]))
    total = builder.add_all([builder.sum(wide), builder.sum(first)])
    program = builder.program([total])
    assert str(native_code(program).function).count("call double") == 2
    point = np.array([0.3, -1.0])
    assert NativeRunner(program)([point]) == [pytest.approx(4.0 * np.sum(np.exp(point)), rel=1e-15)]
