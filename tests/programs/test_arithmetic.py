"""Arithmetic and sums in their simplest form: how many steps they take."""

import numpy as np
import pytest
from comparing import close
from layouts import laid_out, returning, run_all, shape, smaller, with_arguments

from varmat.programs.build.builder import Builder
from varmat.programs.ir.interpret import interpret
from varmat.programs.passes import without_dead_steps

X = np.array([[0.5, -1.0, 2.0], [0.3, 0.1, -0.7]])
Y = np.array([[1.5, 0.2, -0.4], [2.3, -1.1, 0.9]])


def built(make):
    """Build a function of two matrices and two numbers. Check that everything that runs it agrees,
    and return the steps that the result needs.
    """
    builder = Builder()
    result = make(builder, *(builder.argument(at) for at in ((2, 3), (2, 3), (), ())))
    program = without_dead_steps(returning(builder, result))
    values = (X, Y, 0.8, -1.3)
    expected = interpret(program, *values)[1]
    for found in run_all(program, *values).values():
        close(found[0], expected, 1e-14)
    return [step.kernel.name for step in program.steps]


@pytest.mark.parametrize(("make", "steps"), [
    (lambda b, x, y, s, t: b.ufunc(np.add, x, x), ["multiply"]),
    (lambda b, x, y, s, t: b.ufunc(np.multiply, x, x), ["square"]),
    (lambda b, x, y, s, t: b.ufunc(np.subtract, x, b.constant(0.0)), []),
    (lambda b, x, y, s, t: b.ufunc(np.multiply, x, b.constant(1.0)), []),
    (lambda b, x, y, s, t: b.ufunc(np.positive, x), []),
    (lambda b, x, y, s, t: b.ufunc(np.divide, x, b.constant(1.0)), []),
    (lambda b, x, y, s, t: b.ufunc(np.multiply, b.constant(-1.0), x), ["negative"]),
    (lambda b, x, y, s, t: b.ufunc(np.negative, b.ufunc(np.negative, x)), []),
    (lambda b, x, y, s, t: b.ufunc(np.subtract, x, b.ufunc(np.negative, y)), ["add"]),
    (lambda b, x, y, s, t: b.ufunc(np.add, b.ufunc(np.negative, x), y), ["subtract"]),
    (lambda b, x, y, s, t: b.ufunc(np.square, b.ufunc(np.negative, x)), ["square"]),
    (
        lambda b, x, y, s, t: b.ufunc(
            np.multiply, b.constant(2.0), b.ufunc(np.multiply, x, b.constant(3.0))
        ),
        ["multiply"],
    ),
    (lambda b, x, y, s, t: b.ufunc(np.negative, b.ufunc(np.multiply, x, b.constant(3.0))),
     ["multiply"]),
    (lambda b, x, y, s, t: b.ufunc(np.multiply, x, b.ufunc(np.multiply, s, y)), ["multiply"] * 2),
    # Division by a number becomes a product only if the reciprocal is exact.
    (lambda b, x, y, s, t: b.ufunc(np.divide, x, b.constant(4.0)), ["multiply"]),
    (lambda b, x, y, s, t: b.ufunc(np.divide, x, b.constant(3.0)), ["divide"]),
    (lambda b, x, y, s, t: b.ufunc(np.divide, x, b.constant(0.0)), ["divide"]),
    # A recording writes the disjunction of two conditions as the larger of two numbers.
    (
        lambda b, x, y, s, t: b.where(
            b.ufunc(np.maximum, b.compare(np.less, x, s), b.compare(np.less, y, t)), x, y
        ),
        ["less", "less", "logical_or", "where"],
    ),
    (lambda b, x, y, s, t: b.ufunc(np.maximum, x, y), ["maximum"]),
])  # fmt: skip
def test_arithmetic_in_its_simplest_form(make, steps):
    assert built(make) == steps


def test_arithmetic_keeps_special_values():
    """The signs of zeros are kept too."""
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.0, 5e-324, 1e308])
    x, y = (a.ravel() for a in np.meshgrid(special, special))
    numbers = (0.0, -0.0, 1.0, -1.0, 2.0, 0.25, np.inf, np.nan)
    builder, a, b = with_arguments(x.shape, x.shape)
    made, expected = [], []
    with np.errstate(all="ignore"):
        for f in (np.add, np.subtract, np.multiply, np.divide):
            for number in numbers:
                c = builder.constant(number)
                made += [builder.ufunc(f, a, c), builder.ufunc(f, c, a)]
                expected += [f(x, number), f(number, x)]
            minus_a, minus_b = (builder.ufunc(np.negative, v) for v in (a, b))
            made += [builder.ufunc(f, a, a), builder.ufunc(f, a, b), builder.ufunc(f, a, minus_b)]
            expected += [f(x, x), f(x, y), f(x, -y)]
            made += [builder.ufunc(f, minus_a, b), builder.ufunc(np.negative, made[-2])]
            expected += [f(-x, y), -f(x, y)]
    for found in run_all(returning(builder, *made), x, y).values():
        for i, (u, v) in enumerate(zip(found, expected, strict=True)):
            np.testing.assert_array_equal(u, v, err_msg=str(i))
            known = ~np.isnan(v)
            signs = np.signbit(v[known])
            np.testing.assert_array_equal(np.signbit(u[known]), signs, err_msg=str(i))


# --- sums ---


@pytest.mark.parametrize(("make", "steps"), [
    # An inner product is one call, whatever numbers multiply or divide it.
    (lambda b, x, y, s, t: b.sum(b.ufunc(np.multiply, x, y)), ["matmul"]),
    (lambda b, x, y, s, t: b.sum(b.ufunc(np.square, x)), ["matmul"]),
    (lambda b, x, y, s, t: b.sum(b.ufunc(np.multiply, s, b.ufunc(np.multiply, x, y))),
     ["matmul", "multiply"]),
    (lambda b, x, y, s, t: b.sum(b.ufunc(np.divide, b.ufunc(np.multiply, x, y), s)),
     ["matmul", "divide"]),
    # Numbers are taken out of the sum.
    (lambda b, x, y, s, t: b.sum(b.ufunc(np.multiply, s, x)), ["add.reduce", "multiply"]),
    (lambda b, x, y, s, t: b.sum(b.ufunc(np.negative, x)), ["add.reduce", "negative"]),
    (lambda b, x, y, s, t: b.sum(b.ufunc(np.divide, x, b.constant(3.0))), ["add.reduce", "divide"]),
    (lambda b, x, y, s, t: b.sum(b.ufunc(np.multiply, s, x), [0]), ["add.reduce", "multiply"]),
    (lambda b, x, y, s, t: b.sum(b.broadcast(s, (2, 3))), ["multiply"]),
    (lambda b, x, y, s, t: b.sum(b.broadcast(x, (5, 2, 3)), [0]), ["multiply"]),
    (lambda b, x, y, s, t: b.sum(s), []),
    (lambda b, x, y, s, t: b.sum(x, []), []),
])  # fmt: skip
def test_sums(make, steps):
    assert sorted(built(make)) == sorted(steps)


def test_a_sum_and_a_number_meet_outside():
    steps = built(lambda b, x, y, s, t: b.sum(b.ufunc(np.add, b.ufunc(np.multiply, x, y), s)))
    assert sorted(steps) == ["add", "matmul", "multiply"]


def test_sums_of_nothing():
    builder, x = with_arguments((0, 3))
    values = [builder.sum(x), builder.sum(x, [0]), builder.sum(x, [1]), builder.sum(x, [0, 1])]
    found = interpret(returning(builder, *values), np.empty((0, 3)))[1:]
    assert [a.tolist() for a in found] == [0.0, [0.0] * 3, [], 0.0]


def test_contributions_in_the_shape_of_their_operand():
    """A contribution may have the full shape, a smaller shape that stands for it, or be a
    number.
    """
    for seed in range(40):
        rng = np.random.default_rng(seed)
        whole = shape(rng, 0)
        target, given = smaller(rng, whole), whole
        if rng.uniform() < 0.4:
            given = () if rng.uniform() < 0.5 else smaller(rng, whole)
        builder = Builder()
        base, how = laid_out(rng, given)
        data = rng.normal(size=base)
        x = builder.view(builder.argument(base), how) if base else builder.argument(base)
        made = builder.broadcast(builder.unbroadcast(x, whole, target), target)
        full = np.broadcast_to(how(data), whole)
        extra = len(whole) - len(target)
        axes = tuple(range(extra)) + tuple(
            extra + i for i, n in enumerate(target) if n == 1 != whole[extra + i]
        )
        expected = full.sum(axes).reshape(target)
        for found in run_all(returning(builder, made), data if base else float(data)).values():
            close(found[0], expected, 1e-12, 1e-13)


def test_sums_of_many_terms_are_one_step():
    builder = Builder()
    terms = [builder.argument((3,)) for _ in range(5)]
    zero = builder.constant(0.0)
    assert builder.add_all([]) is zero
    assert builder.add_all([zero, terms[0], zero]) is terms[0]
    assert not builder.steps
    total = builder.add_all(terms)
    assert [step.kernel.name for step in builder.steps] == ["sum"]
    rows = np.arange(15.0).reshape(5, 3)
    for found in run_all(returning(builder, total), *rows).values():
        assert found[0].tolist() == rows.sum(0).tolist()
