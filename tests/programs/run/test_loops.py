"""The inner loops of ufuncs: they are verified before they are trusted."""

import numpy as np
import pytest
import scipy.special
from comparing import close, equal, refuses
from layouts import of_one_step

from varmat.programs.build.builder import Builder
from varmat.programs.kernels.elementwise import ufunc_kernel

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

from varmat.programs.run import loops, runner_for
from varmat.programs.run.loops import NoLoopError, loop_of
from varmat.programs.run.native import CODES, NativeRunner


def test_loops_of_ufuncs_are_found():
    for ufunc, signature in (
        (np.exp, "d->d"), (scipy.special.gammaln, "d->d"), (np.add, "dd->d"), (np.matmul, "dd->d"),
        (np.less, "dd->?"),
    ):  # fmt: skip
        address, _ = loop_of(ufunc, signature)
        assert address
        assert loop_of(ufunc, signature) == (address, _)


def test_a_ufunc_without_a_loop_of_doubles_is_refused():
    refuses(NoLoopError, "add has no loop for dd->i", loop_of, np.add, "dd->i")
    refuses(NoLoopError, "no loop for d->d", loop_of, np.frompyfunc(lambda x: x, 1, 1), "d->d")
    refuses(NoLoopError, "expn is one of integers", loop_of, scipy.special.expn, "dd->d")


def test_a_loop_with_other_results_is_not_trusted(monkeypatch):
    """This stands for a version of NumPy with another order of fields, where the loop of another
    ufunc would be read.
    """

    class Other:
        """A ufunc whose result differs from that of its loop."""

        def __call__(self, *operands):
            return np.add(*operands) + 1e-9

        nin, nout, signature, types, __name__ = 2, 1, None, np.add.types, "other"

    with pytest.raises(NoLoopError, match="a loop of other gives"):
        loops._verify(Other(), "dd->d", *loop_of(np.add, "dd->d"))
    loops._verify(np.add, "dd->d", *loop_of(np.add, "dd->d"))
    verified = []
    monkeypatch.setattr(loops, "_verify", lambda *given: verified.append(given))
    loop_of.cache_clear()
    try:
        loop_of(np.exp, "d->d")
        loop_of(np.exp, "d->d")
        assert [ufunc for ufunc, *_ in verified] == [np.exp]
    finally:
        loop_of.cache_clear()


def test_a_step_without_a_loop_calls_python(monkeypatch):
    """The native runner has no code of its own for gammaln, and calls SciPy's loop."""
    program = of_one_step(ufunc_kernel(scipy.special.gammaln), (4,))
    x = np.linspace(0.5, 3.0, 4)
    assert not NativeRunner(program).calls_python

    def refuse(*_):
        raise NoLoopError

    loop_of.cache_clear()
    CODES.clear()
    monkeypatch.setattr(loops, "_verify", refuse)
    try:
        run = NativeRunner(program)
    finally:
        loop_of.cache_clear()
        CODES.clear()
    assert run.calls_python
    value, made = run([x])
    equal(made, scipy.special.gammaln(x))
    assert value == pytest.approx(np.sum(made), rel=1e-15)


@pytest.mark.parametrize(
    "function", [np.negative, np.isfinite, np.signbit, np.positive, np.square, np.absolute, np.exp]
)
def test_columns_of_rows_of_eight(function):
    """Some of NumPy's own loops are wrong for some strides; that of `negative` is wrong at 64
    bytes.
    """
    x = np.random.default_rng(1).normal(size=(34, 8))
    for columns in (slice(0, 2), slice(1, 8), slice(5, 2, -1)):
        builder = Builder()
        part = builder.view(builder.argument(x.shape), lambda a, columns=columns: a[:, columns])
        made = builder.number(builder.call(ufunc_kernel(function), part))
        run = runner_for(builder.program([builder.sum(made), made]), "native")
        close(run([x])[1], function(x[:, columns].copy()), 4e-16)
