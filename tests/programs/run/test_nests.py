"""Broadcasts and reductions over several axes, as nests of loops of native code."""

import numpy as np
import pytest

import varmat as vm
from varmat.programs.build.builder import Builder
from varmat.programs.ir.interpret import interpret
from varmat.programs.kernels.matrices import MATMUL
from varmat.programs.run import has_native
from varmat.programs.run.nests import merged

pytestmark = pytest.mark.skipif(not has_native(), reason="llvmlite is not installed")

# Below and above the length of a vector, and of axes that become loops.
LENGTHS = (1, 2, 3, 7, 8, 13, 17, 24, 37, 101)
UNARY = (np.exp, np.negative, np.square, np.absolute, np.cos)
BINARY = (np.add, np.subtract, np.multiply, np.maximum)
REDUCTIONS = (np.add, np.maximum, np.minimum, np.logaddexp)


def random_program(rng):
    """Steps over one to three axes: they broadcast, transpose, multiply and reduce."""
    builder = Builder()
    lengths = [int(n) for n in rng.choice(LENGTHS, rng.integers(1, 4))]

    def shape():
        return tuple(n if rng.random() < 0.6 else 1 for n in lengths)

    values = [builder.argument(shape()) for _ in range(3)]
    values += [builder.constant(rng.normal(size=shape()) / 2) for _ in range(2)]
    results = []
    for _ in range(int(rng.integers(3, 12))):
        x, y = (values[int(i)] for i in rng.integers(0, len(values), 2))
        kind = rng.choice(["unary", "binary", "binary", "where", "reduce", "reduce", "matmul"])
        if kind == "unary":
            x = builder.ufunc(np.negative, builder.ufunc(np.square, x))
            made = builder.ufunc(UNARY[rng.integers(len(UNARY))], x)
        elif kind == "binary":
            made = builder.ufunc(BINARY[rng.integers(len(BINARY))], x, y)
            made = builder.ufunc(np.multiply, made, builder.constant(np.asarray(0.5)))
        elif kind == "where":
            made = builder.where(builder.compare(np.less, x, y), x, builder.ufunc(np.negative, y))
        elif kind == "matmul":
            x = builder.full(x, tuple(lengths))
            x, y = (x, builder.transposed(x)) if len(lengths) == 2 else (x, x)
            if len(lengths) == 3:
                y = builder.full(values[0], tuple(lengths))
                y = y.view((lengths[0], *lengths[:0:-1]), 0, (y.strides[0], *y.strides[:0:-1]))
            made = builder.call(MATMUL, x, y)
            results.append(made)
            continue
        else:
            axes = [i for i in range(len(lengths)) if rng.random() < 0.5] or [0]
            made = builder.reduce(REDUCTIONS[rng.integers(len(REDUCTIONS))], x, axes)
            results.append(made)
            kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
            made = builder.ufunc(np.cos, builder.reshaped(made, kept))
        values.append(made)
    return builder.program([builder.sum(values[-1]), values[-1], *results])


@pytest.mark.parametrize("seed", range(50))
def test_random_broadcasts_and_reductions_are_those_of_the_interpreter(seed):
    from varmat.programs.run.native import NativeRunner

    rng = np.random.default_rng(seed)
    program = random_program(rng)
    given = [rng.normal(size=v.shape) for v in program.arguments]
    runner = NativeRunner(program)
    assert not runner.calls_python
    for made, true in zip(runner(given), interpret(program, *given), strict=True):
        most = np.max(np.abs(true), initial=1.0)
        np.testing.assert_allclose(made, true, rtol=1e-12, atol=1e-13 * most, err_msg=str(program))


@pytest.mark.parametrize("shape", [(3,), (40,), (40, 30), (40, 3)])
def test_differences_of_equal_products_are_zero(shape):
    """The two products are rounded, although those of a sum of products need not be."""

    def f(x):
        y = np.cos(x)
        return np.sum(np.abs(x * y - y * x))

    x = np.random.default_rng(0).normal(size=shape)
    recorded = vm.recorded(f, runner="native")
    recorded(x)
    assert recorded(1.7 * x)[0] == 0.0


def test_axes_that_are_one_line_are_merged():
    assert merged((2, 3, 4), [(96, 32, 8), (96, 32, 8)]) == ([24], [[8, 8]])
    assert merged((2, 3, 4), [(96, 32, 8), (0, 32, 8)]) == ([2, 12], [[96, 0], [8, 8]])
    assert merged((1, 5, 1), [(7, 8, 9)]) == ([5], [[8]])
    assert merged((), [()]) == ([], [])
