"""Kernels: their meaning, NumPy's bound call and the native runner's rows agree for all layouts of
the operands.
"""

from functools import partial

import numpy as np
import pytest
import scipy.special
from comparing import equal
from layouts import Operands, returning, run_all, shape, smaller, with_arguments

from varmat.programs.build.builder import Builder, is_partition
from varmat.programs.ir.kernel import Kernel
from varmat.programs.ir.program import FLOAT, OBJECT, Value
from varmat.programs.kernels import elementwise, guards, matrices, places, python_calls, reductions
from varmat.programs.kernels.elementwise import SELECT, PythonFunction, ufunc_kernel
from varmat.programs.kernels.guards import GUARD
from varmat.programs.kernels.loop import Loop
from varmat.programs.kernels.matrices import MATMUL, Gufunc, SolveTriangular
from varmat.programs.kernels.places import GATHER, Assemble, Write, copy_kernel, kept_kernel
from varmat.programs.kernels.python_calls import PythonCall
from varmat.programs.kernels.reductions import SUM, Accumulate, Reduce


def of_numbers(ufunc, low=-2.0, high=2.0):
    def case(o):
        whole = shape(o.rng)
        values = [o.number(smaller(o.rng, whole), low, high) for _ in range(ufunc.nin)]
        return o.builder.call(ufunc_kernel(ufunc), *values), ufunc(*o.arrays)

    return case


def of_integers(o):
    """A ufunc that also has loops for integers, and warns if such an argument is not an integer."""
    x = o.builder.call(ufunc_kernel(np.absolute), o.number(shape(o.rng), 0.1, 2.0))
    made = o.builder.call(ufunc_kernel(scipy.special.expn), o.builder.constant(2.0), x)
    return made, scipy.special.expn(2, np.abs(o.arrays[0]))


def of_truths(ufunc):
    def case(o):
        whole = shape(o.rng)
        values = [o.truth(smaller(o.rng, whole)) for _ in range(ufunc.nin)]
        return o.builder.call(ufunc_kernel(ufunc), *values), ufunc(*o.arrays)

    return case


def function(o):
    whole = shape(o.rng)
    values = [o.number(smaller(o.rng, whole)) for _ in range(2)]
    made = o.builder.call(PythonFunction("polynomial", lambda x, y: x * y + y), *values)
    return made, o.arrays[0] * o.arrays[1] + o.arrays[1]


def select(o):
    whole = shape(o.rng)
    condition = o.truth(smaller(o.rng, whole))
    values = [o.number(smaller(o.rng, whole)) for _ in range(2)]
    return o.builder.call(SELECT, condition, *values), np.where(*o.arrays)


def reduction(ufunc, least=0):
    def case(o):
        whole = shape(o.rng, 1, lengths=[n for n in (0, 1, 2, 3, 17, 40) if n >= least])
        order, count = o.rng.permutation(len(whole)), o.rng.integers(1, len(whole) + 1)
        axes = tuple(sorted(order[:count].tolist()))
        return o.builder.call(Reduce(ufunc, axes), o.number(whole)), ufunc.reduce(o.arrays[0], axes)

    return case


def running(ufunc):
    def case(o):
        whole = shape(o.rng, 1)
        axis = int(o.rng.integers(len(whole)))
        made = o.builder.call(Accumulate(ufunc, axis), o.number(whole))
        return made, ufunc.accumulate(o.arrays[0], axis)

    return case


def sum_of_several(o):
    """The same value may occur several times."""
    whole, rng = shape(o.rng), o.rng
    values = [o.number(smaller(rng, whole)) for _ in range(rng.integers(2, 5))]
    again = rng.integers(len(values), size=rng.integers(3)).tolist()
    chosen = rng.permutation([*range(len(values)), *again]).tolist()
    return o.builder.call(SUM, *(values[i] for i in chosen)), sum(o.arrays[i] for i in chosen)


def product(o):
    n, rng = int(o.rng.integers(0, 6)), o.rng
    stack = shape(rng, 0, 2, (1, 2, 3))
    left = (n,) if rng.uniform() < 0.3 else (*smaller(rng, stack), int(rng.integers(0, 6)), n)
    right = (n,) if rng.uniform() < 0.3 else (*smaller(rng, stack), n, int(rng.integers(0, 6)))
    values = o.number(left), o.number(right)
    return o.builder.matmul(*values), np.matmul(*o.arrays)


def copy(o):
    whole = shape(o.rng)
    x = (o.truth if o.rng.uniform() < 0.5 else o.number)(smaller(o.rng, whole))
    return o.builder.call(copy_kernel(whole), x), np.broadcast_to(o.arrays[0], whole)


def kept(o):
    whole = shape(o.rng)
    return o.builder.call(kept_kernel(whole), o.number(whole)), o.arrays[0]


def gather(o):
    n = int(o.rng.integers(1, 20))
    places = o.rng.integers(n, size=shape(o.rng, 1))
    made = o.builder.call(GATHER, o.number((n,), contiguous=True), o.builder.constant(places))
    return made, o.arrays[0][places]


def offset_in(part, whole):
    """Return how many bytes after the first element of an array a part of it begins."""
    first, start = (x.__array_interface__["data"][0] for x in (whole, part))
    return start - first if part.size else 0


def random_part(rng, whole):
    """Return an index for a random part of an array, which may be turned."""
    index = tuple(slice(*sorted(rng.integers(n + 1, size=2).tolist())) for n in whole)
    return index, (lambda a: a[..., ::-1]) if rng.uniform() < 0.3 else (lambda a: a)


def assembled(o):
    """Views that overlap, and elements by index, are added to zeros or to an array."""
    rng, whole = o.rng, shape(o.rng, 1, lengths=(1, 2, 3, 7))
    base = o.number(whole, contiguous=True) if rng.uniform() < 0.5 else None
    expected = np.zeros(whole) if base is None else o.arrays[0].copy()
    parts = []
    for _ in range(rng.integers(1, 4)):
        if rng.uniform() < 0.3:
            places = rng.integers(expected.size, size=shape(rng, 1))
            value = o.number(() if rng.uniform() < 0.3 else places.shape)
            added = np.broadcast_to(o.arrays[-1], places.shape)
            np.add.at(expected.reshape(-1), places.reshape(-1), added.reshape(-1))
            parts.append((places, places.shape, value))
        else:
            index, turned = random_part(rng, whole)
            part = turned(expected[index])
            value = o.number(smaller(rng, part.shape))
            part += o.arrays[-1]
            parts.append(((offset_in(part, expected), part.strides), part.shape, value))
    return o.builder.assemble(whole, parts, base), expected


def partition(o):
    rng, rows, columns = o.rng, int(o.rng.integers(1, 5)), int(o.rng.integers(1, 5))
    cut = int(rng.integers(1, columns + 1))
    parts = [
        ((8 * i, (8 * columns, 8)), (rows, j - i), o.number((rows, j - i)))
        for i, j in ((0, cut), (cut, columns)) if j > i
    ]  # fmt: skip
    assert is_partition((rows, columns), [(place, at) for place, at, _ in parts])
    return o.builder.assemble((rows, columns), parts), np.concatenate(o.arrays, axis=1)


def write(o):
    """The new values of a part may be a part of the same array, or broadcast."""
    rng, whole = o.rng, shape(o.rng, 1, lengths=(1, 2, 3, 7))
    before = o.number(whole, contiguous=True)
    expected = o.arrays[0].copy()
    index, turned = random_part(rng, whole)
    part = turned(expected[index])
    if rng.uniform() < 0.3:
        again = tuple(slice(n - i.stop, n - i.start) for n, i in zip(whole, index, strict=True))
        value, array = o.builder.view(before, lambda a: a[again]), o.arrays[0][again]
    else:
        value = o.number(smaller(rng, part.shape))
        array = o.arrays[1]
    part[...] = array
    places = ((offset_in(part, expected), part.strides),)
    kernel = Write(whole, places, (part.shape,), has_base=True, replaces=True)
    return o.builder.call(kernel, before, value), expected


def triangular(transposed):
    def case(o):
        n = int(o.rng.integers(1, 6))
        a = o.number((n, n), 1.0, 2.0, contiguous=True)
        columns = () if o.rng.uniform() < 0.5 else (int(o.rng.integers(0, 4)),)
        b = o.number((n, *columns), contiguous=True)
        lower = np.tril(np.abs(o.arrays[0]))
        # What stands above the diagonal is not read.
        made = o.builder.call(ufunc_kernel(np.absolute), a)
        made = o.builder.call(SolveTriangular(transposed), made, b)
        return made, np.linalg.solve(lower.T if transposed else lower, o.arrays[1])

    return case


def square_matrices(ufunc):
    def case(o):
        n, stack = int(o.rng.integers(0, 19)), shape(o.rng, 0, 2)
        a, order = o.number((*stack, n, n)), [*range(len(stack)), len(stack) + 1, len(stack)]
        square = o.builder.matmul(a, o.builder.transposed(a, order))
        made = o.builder.call(ufunc_kernel(np.add), square, o.builder.constant(np.eye(n)))
        x = o.arrays[0]
        return o.builder.call(Gufunc(ufunc), made), ufunc(x @ np.swapaxes(x, -1, -2) + np.eye(n))

    return case


def python(o):
    """The call has several results, one of which only another call understands."""
    whole = shape(o.rng)
    x, y = o.number(whole), o.number(whole)
    results = [(whole, FLOAT), ((), FLOAT), ((), OBJECT)]
    first = PythonCall("both", lambda x, y: (x + y, x.sum(), {"x": x.copy()}), results, True)
    second = PythonCall("again", lambda token, z: (token["x"] * z,), [(whole, FLOAT)], True)
    added, total, token = o.builder.apply(first, x, y)
    again = o.builder.call(second, token, added)
    a, b = o.arrays
    return [added, total, again], [a + b, a.sum(), a * (a + b)]


CASES = {
    **{f.__name__: of_numbers(f) for f in (
        np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.hypot, np.arctan2,
         np.negative, np.square, np.exp,
        np.tanh, np.absolute, np.floor, np.sign, np.greater, np.less_equal, np.equal, np.isfinite,
         np.signbit, np.positive,
        scipy.special.gammaln, scipy.special.ndtr, scipy.special.xlogy, scipy.special.expit,
    )},
    "betainc": of_numbers(scipy.special.betainc, 0.1, 0.9),
    "a ufunc of integers": of_integers,
    **{f.__name__: of_truths(f) for f in (np.logical_and, np.logical_or, np.logical_xor,
        np.logical_not)},
    "function": function, "select": select, "sum": sum_of_several, "matmul": product, "copy": copy,
     "kept": kept, "gather": gather,
    "assemble": assembled, "write": write, "partition": partition, "python": python,
    **{f"{f.__name__}.reduce": reduction(f) for f in (np.add, np.multiply)},
    **{f"{f.__name__}.reduce": reduction(f, 1) for f in (np.maximum, np.minimum)},
    **{f"{f.__name__}.accumulate": running(f) for f in (np.add, np.multiply, np.maximum)},
    "solve": triangular(False), "solve transposed": triangular(True),
    "cholesky": square_matrices(np.linalg._umath_linalg.cholesky_lo),
     "inverse": square_matrices(np.linalg._umath_linalg.inv),
}  # fmt: skip


# The kernels that share all code but an instruction try other layouts than each other.
ALIKE = {name for name in CASES if isinstance(getattr(np, name, None), np.ufunc)}


# As many cases are one program, because most programs take longer to compile than to run.
TOGETHER = 4


@pytest.mark.parametrize("name", CASES)
def test_everything_that_runs_a_kernel_gives_the_same(name):
    number = list(CASES).index(name)
    for first in range(0, 4 if name in ALIKE else 12, TOGETHER):
        o, values, expected = Operands(np.random.default_rng([number, first])), [], []
        for _ in range(TOGETHER):
            o.arrays = []
            with np.errstate(all="ignore"):
                made, true = CASES[name](o)
            values += made if isinstance(made, list) else [made]
            expected += true if isinstance(true, list) else [true]
        program = returning(o.builder, *values)
        for runner, found in run_all(program, *o.arguments).items():
            for x, true in zip(found, expected, strict=True):
                assert np.shape(x) == np.shape(true), (runner, first, str(program))
                np.testing.assert_allclose(
                    x, true, rtol=1e-12, atol=1e-13, err_msg=f"{runner}, seed {first}: {program}"
                )


def test_every_kernel_has_a_case():
    """Some kernels have a test of their own instead."""
    tested = {type(GUARD), type(MATMUL), Assemble, Loop}
    for seed in range(4):  # some shapes have no elements, and no step
        for case in CASES.values():
            o = Operands(np.random.default_rng(seed))
            case(o)
            tested |= {type(step.kernel) for step in o.builder.steps}
    modules = (elementwise, guards, matrices, places, python_calls, reductions)
    everything = [x for module in modules for x in vars(module).values() if isinstance(x, type)]
    kernels = {x for x in everything if issubclass(x, Kernel)}
    assert kernels - tested == {Kernel, guards.Unless}


def test_shapes_and_types_of_results_are_known_in_advance():
    """The shape and the type are known. Results of comparisons are never nan or infinite."""
    x, y = Value((2, 1)), Value((3,))
    assert ufunc_kernel(np.add).results(x, y) == [((2, 3), np.dtype(float))]
    assert ufunc_kernel(np.less).results(x, y) == [((2, 3), np.dtype(bool))]
    assert ufunc_kernel(np.isnan).results(x) == [((2, 1), np.dtype(bool))]
    assert MATMUL.results(Value((4, 2, 3)), Value((3,))) == [((4, 2), np.dtype(float))]
    assert Reduce(np.add, (0, 2)).results(Value((4, 2, 3))) == [((2,), np.dtype(float))]
    assert GATHER.results(x, Value((5, 6), np.dtype(np.int64))) == [((5, 6), np.dtype(float))]


def test_kernels_with_the_same_settings_are_equal():
    assert ufunc_kernel(np.add) is ufunc_kernel(np.add)
    assert copy_kernel((2, 3)) is copy_kernel((2, 3))
    for make in (partial(Reduce, np.add), partial(Accumulate, np.add), SolveTriangular):
        assert make(1) == make(1)
        assert hash(make(1)) == hash(make(1))
        assert make(1) != make(0)
    assert repr(ufunc_kernel(np.add)) == "<kernel add>"


def test_special_values_go_through_all_runners():
    builder, x = with_arguments((6,))
    zero, ufuncs = builder.constant(0.0), (np.maximum, np.minimum, np.divide, np.multiply, np.add)
    values = [builder.call(ufunc_kernel(f), x, zero) for f in ufuncs]
    values += [
        builder.call(Reduce(f, (0,)), x) for f in (np.maximum, np.minimum, np.add, np.multiply)
    ]
    values += [
        builder.call(ufunc_kernel(f), x, x) for f in (np.equal, np.not_equal, np.greater_equal)
    ]
    given = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0])
    found = run_all(returning(builder, *values), given)
    for made in found.values():
        for a, b in zip(made, found["interpreter"], strict=True):
            equal(a, b)
            equal(np.signbit(a), np.signbit(b))


def test_special_numbers_go_through_all_runners():
    """The arithmetic of numbers is Python's, which raises where NumPy does not."""
    builder = Builder()
    special = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -2.0, 1e308)
    values = [builder.argument(()) for _ in special]
    made = [
        builder.call(ufunc_kernel(f), x, y)
        for f in (np.add, np.subtract, np.multiply, np.divide)
        for x in values
        for y in values
    ]
    found = run_all(returning(builder, *made), *special)
    for runner, numbers in found.items():
        np.testing.assert_array_equal(numbers, found["interpreter"], err_msg=runner)
        known = ~np.isnan(numbers)
        signs, true = np.signbit(numbers), np.signbit(found["interpreter"])
        np.testing.assert_array_equal(signs[known], true[known], err_msg=runner)
