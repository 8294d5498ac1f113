"""The comparisons that all tests use find what differs."""

import numpy as np
import pytest
from comparing import close, equal, refuses

DIFFERENT = {
    "number": (1.0, 1.0 + 2e-9), "small number": (0.0, 1e-15), "array": (np.ones(2), np.ones(3)),
    "element": (np.ones(2), np.array([1.0, 1.1])), "number for an array": (1.0, np.ones(2)),
    "length": ([1.0], [1.0, 2.0]), "inner": ((1.0, [2.0, 3.0]), (1.0, [2.0, 3.1])),
    "nan": (np.nan, 1.0), "nan among others": (np.array([np.nan, 1.0]), np.ones(2)),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.parametrize("compare", [lambda a, b: close(a, b, 1e-9), equal], ids=["close", "equal"])
def test_differences_are_found(compare, name):
    refuses(AssertionError, None, compare, *DIFFERENT[name])


def test_what_is_the_same():
    close((1.0, [np.array([np.nan, 2.0])]), (1.0 + 1e-12, [np.array([np.nan, 2.0])]), 1e-9)
    close(np.ones(3), 1.0, 0.0)
    close(0.0, 1e-12, 0.0, 1e-11)
    equal([np.nan, np.ones(2)], [np.nan, np.ones(2)])
    refuses(AssertionError, None, close, np.nan, np.nan, 1e-9)


@pytest.mark.parametrize("job", [lambda: None, lambda: int("a")])
def test_errors_that_are_missing_or_others_are_found(job):
    with pytest.raises((pytest.fail.Exception, AssertionError), match=r"message|pattern"):
        refuses(ValueError, "another message", job)
