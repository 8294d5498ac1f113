"""Refusals that differ between the routes are caught, and mistakes in the code do not count as
refusals.
"""

import numpy as np
import pytest
from comparing import refuses
from testing.operations import A, M

import varmat as vm
from varmat.core.domains import positive
from varmat.testing import expect_ad, expect_ad_matvar


def checked(check):
    """Return the square, with `check` applied to the argument."""

    def f(x):
        check(x)
        return x * x

    return f


def refuse(x):
    positive.check("f", "x", vm.value(x))


def refuse_data_only(x):
    if isinstance(x, np.ndarray) and x.dtype == float:
        refuse(x)


def refuse_otherwise(x):
    if isinstance(x, np.ndarray) and x.dtype == float:
        refuse(x)
    raise RuntimeError("otherwise")


def refuse_in_other_words(x):
    positive.check("f" if isinstance(x, np.ndarray) else "g", "x", vm.value(x))


def refuse_too_late(x):
    np.square(x)
    refuse(x)


REFUSALS = [
    (refuse_data_only,
        r"disagree: f\(VarMat \(3,\)\): it gives a result where DomainError must be raised \(f: x"),
    (refuse_otherwise,
        (r"it raises RuntimeError \(otherwise\) and not DomainError \(f: x\[1\] is -1.3, but "
        r"must be positive!\)")),
    (refuse_in_other_words, r"it says 'g: x\[1\] is -1.3, but must be positive!' and not 'f: x"),
    (refuse_too_late, r"the failed call left \['square'\] on the tape"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "message"), REFUSALS, ids=[row[0].__name__ for row in REFUSALS])
def test_wrong_refusal_is_caught(check, message):
    refuses(AssertionError, message, expect_ad, checked(check), A)


@pytest.mark.parametrize("expect", [expect_ad, expect_ad_matvar])
def test_same_refusal_everywhere_passes(expect):
    assert expect(checked(refuse), A).errors == {}
    assert expect(np.add, A, M[:, :2]).errors == {}


@pytest.mark.parametrize("expect", [expect_ad, expect_ad_matvar])
def test_mistakes_in_the_function_are_no_refusals(expect):
    refuses(AttributeError, "sinn", expect, lambda x: np.sinn(x), np.ones(2))
    refuses(NameError, "undefined", expect, lambda x: undefined(x), np.ones(2))  # noqa: F821
    refuses(TypeError, "not callable", expect, 3.0, np.ones(2))
