"""Transforms as objects: shapes, flat arguments, arrays of vectors and matrices, bounds, and what
they refuse.
"""

import inspect

import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, close, equal, refuses, refuses_as

import varmat as vm
from varmat import transforms as tr
from varmat.testing import expect_ad

inf = np.inf
BOUNDS = np.array([[1.0], [-inf]])

# Transform, shape, unconstrained shape.
OBJECTS = [
    (tr.Real(), (), ()), (tr.Real((2, 3)), (2, 3), (2, 3)), (tr.Positive(), (), ()),
    (tr.Positive(3), (3,), (3,)), (tr.Lower(1.0), (), ()), (tr.Lower(-inf, 2), (2,), (2,)),
    (tr.Lower(BOUNDS, (2, 2)), (2, 2), (2, 2)),
    (tr.Upper(1.0, 3), (3,), (3,)),
    (tr.Upper(-BOUNDS, (2, 1)), (2, 1), (2, 1)),
    (tr.LowerUpper(-1.0, 2.0), (), ()),
    (tr.LowerUpper(BOUNDS, 4.0, (2, 3)), (2, 3), (2, 3)),
    (tr.Probability(2), (2,), (2,)),
    (tr.OffsetMultiplier(1.0, [2.0, 3.0], 2), (2,), (2,)),
    (tr.Ordered(3), (3,), (3,)), (tr.Ordered(0), (0,), (0,)),
    (tr.PositiveOrdered(3, 2), (2, 3), (2, 3)),
    (tr.Simplex(3), (3,), (2,)), (tr.Simplex(1), (1,), (0,)),
    (tr.Simplex(3, (2, 4)), (2, 4, 3), (2, 4, 2)),
    (tr.SumToZero(4, 2), (2, 4), (2, 3)),
    (tr.UnitVector(3), (3,), (3,)), (tr.CorrMatrix(3), (3, 3), (3,)),
    (tr.CorrMatrix(1), (1, 1), (0,)),
    (tr.CovMatrix(2, 3), (3, 2, 2), (3, 3)),
    (tr.CholeskyFactorCorr(4, 2), (2, 4, 4), (2, 6)),
    (tr.CholeskyFactorCov(3), (3, 3), (6,)),
    (tr.CholeskyFactorCov(4, 2, (2,)), (2, 4, 2), (2, 7)),
]  # fmt: skip


def names(table):
    return [f"{item[0]!r}-{i}" for i, item in enumerate(table)]


@pytest.mark.parametrize(("transform", "shape", "unconstrained"), OBJECTS, ids=names(OBJECTS))
def test_there_and_back(transform, shape, unconstrained):
    assert (transform.shape, transform.unconstrained_shape) == (shape, unconstrained)
    size = transform.unconstrained_size
    assert size == np.prod(unconstrained, dtype=int)
    flat = np.cos(2.0 * np.arange(size))
    x = flat.reshape(unconstrained)
    y, log_jacobian = transform.constrain_with_log_jacobian(flat)
    assert np.shape(y) == shape
    assert type(log_jacobian) is float
    for each in (x, flat, x.tolist()):
        equal(transform.constrain(each), y)
    again = transform.unconstrain(y)
    assert np.shape(again) == unconstrained
    if not isinstance(transform, tr.UnitVector):
        close(again, x, 1e-12, 1e-13)
    close(transform.constrain(again), y, 1e-12, 1e-13)
    # Results are new arrays.
    assert not np.shares_memory(again, y) or not size


@pytest.mark.parametrize("make", [
    lambda bound: tr.Lower(bound, 2), lambda bound: tr.Upper(bound, 2),
    lambda bound: tr.LowerUpper(-3.0, bound, 2),
    lambda bound: tr.LowerUpper(bound, 3.0, 2),
    lambda bound: tr.OffsetMultiplier(bound, bound, 2),
    lambda bound: tr.LowerUpper(bound, inf, 2),
])  # fmt: skip
def test_bounds_may_be_variables(make):
    expect_ad(
        lambda x, bound: make(bound).constrain_with_log_jacobian(x), np.array([0.3, -0.4]), 0.7
    )
    bound = vm.var(0.7)
    transform = make(bound)
    x = transform.unconstrain(vm.value(transform.constrain(np.array([0.3, -0.4]))))
    assert type(x) is np.ndarray
    close(x, [0.3, -0.4], 1e-13)
    vm.recover_memory()


def test_infinite_bounds_are_none():
    x = np.array([0.3, -0.4])
    for transform in (tr.Lower(-inf, 2), tr.Upper(inf, 2), tr.LowerUpper(-inf, inf, 2), tr.Real(2)):
        y, log_jacobian = transform.constrain_with_log_jacobian(x)
        equal(y, x)
        assert log_jacobian == 0.0


def test_few_entries_on_the_tape():
    x = vm.var(np.ones(6))
    tape = x._tape.top
    expected = {
        tr.Real(6): 0,                 tr.Positive(6): 2,             tr.Lower(1.0, 6): 3,
        tr.LowerUpper(0.0, 2.0, 6): 1, tr.Simplex(7): 1,              tr.Ordered(6): 1,
        tr.CholeskyFactorCorr(4): 1,   tr.CorrMatrix(4): 2,           tr.CovMatrix(3): 2,
        tr.SumToZero(7): 1,            tr.UnitVector(6): 1,
    }  # fmt: skip
    for transform, entries in expected.items():
        before = len(tape)
        transform.constrain_with_log_jacobian(x)
        assert len(tape) - before == entries, transform
    vm.recover_memory()


REFUSED = [
    (lambda: tr.LowerUpper(2.0, 1.0), DOMAIN,
     "lub_constrain: lb is 2.0, but must be less than ub, which is 1.0!"),
    (lambda: tr.OffsetMultiplier(0.0, -1.0, 2), DOMAIN,
     "offset_multiplier_constrain: multiplier is -1.0, but must be positive finite!"),
    (lambda: tr.Lower("a"), TypeError, "bound 1 has dtype"),
    (lambda: tr.Simplex(0), DOMAIN, "size is 0, but must be an integer of at least 1!"),
    (lambda: tr.CovMatrix(1.5), TypeError,
     "size is a float, but must be an integer of at least 0!"),
    (lambda: tr.Ordered(True), TypeError, "size is a bool, but must be an integer of at least 0!"),
    (lambda: tr.CholeskyFactorCov(3, (2,)), TypeError,
     "columns is a tuple, but must be an integer of at least 0!"),
    (lambda: tr.CholeskyFactorCov((3, 2)), TypeError,
     "rows is a tuple, but must be an integer of at least 0!"),
    (lambda: tr.CholeskyFactorCov(2, 3), DOMAIN,
     "rows is 2, but must be an integer of at least 3!"),
    (lambda: tr.Simplex(3).constrain(np.zeros(3)), SHAPE,
     "x has shape (3,), but must have shape (2,), or be flat with 2 elements!"),
    (lambda: tr.Simplex(3, 2).constrain(np.zeros(3)), SHAPE,
     "x has shape (3,), but must have shape (2, 2), or be flat with 4 elements!"),
    (lambda: tr.Simplex(3).unconstrain(np.ones(2)), SHAPE,
     "y has shape (2,), but must have shape (3,)!"),
    (lambda: tr.Simplex(2).unconstrain([0.5, 0.25]), DOMAIN,
     "simplex_free: sum(Simplex variable) is 0.75, but must be 1 to within 1e-08!"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "text"), REFUSED, ids=[str(i) for i in range(len(REFUSED))]
)
def test_refusals(call, error, text):
    refuses_as(error, text, call)


def test_unconstrain_wants_plain_values():
    refuses(TypeError, None, lambda: tr.Positive().unconstrain(vm.var(1.0)))
    vm.recover_memory()


def test_every_class_is_abstract_or_final():
    classes = [tr.Transform]
    for each in classes:
        classes += [c for c in each.__subclasses__() if c.__module__.startswith("varmat.")]
        if inspect.isabstract(each) or each.__subclasses__():
            assert not getattr(each, "__final__", False)
        else:
            assert each.__final__, each
    own = {
        c.__name__
        for c in classes
        if getattr(c, "__final__", False) and c.__module__.startswith("varmat.transforms")
    }
    assert own == set(tr.classes.__all__)


def test_a_transform_of_ones_own():
    class Angle(tr.Transform):
        def __init__(self):
            super().__init__((), ())

        def _constrain(self, x, jacobian):
            y = 2.0 * np.arctan(x)
            return (y, np.log(2.0) - np.log1p(x * x)) if jacobian else y

        def _unconstrain(self, y):
            return np.tan(0.5 * y)

    angle = Angle()
    close(angle.unconstrain(angle.constrain(0.7)), 0.7, 1e-15)
    slope = vm.gradient(angle.constrain, 0.7)
    close(angle.constrain_with_log_jacobian(0.7)[1], np.log(slope), 1e-14)
    assert repr(angle) == "Angle()"


def test_texts_show_bounds_and_shapes():
    assert [repr(t) for t in (tr.Positive(), tr.LowerUpper(0.0, 1.0, 4), tr.Lower(-1.0),
        tr.Simplex(3))] == [
        "Positive()", "LowerUpper(0.0, 1.0, shape=(4,))", "Lower(-1.0)", "Simplex(3,)",
    ]  # fmt: skip


def test_a_unit_vector_of_one_element_is_a_sign():
    equal(tr.UnitVector(1).constrain([-3.0]), [-1.0])
    message = "UnitVector: size is 0, but must be an integer of at least 1!"
    refuses(vm.DomainError, message, tr.UnitVector, 0)
