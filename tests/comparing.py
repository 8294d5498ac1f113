"""Comparisons of results, numbers or arrays, also nested in tuples and lists, and of errors."""

import types

import numpy as np
import pytest

import varmat as vm

DOMAIN, SHAPE = vm.DomainError, vm.ShapeError


def pairs(found, expected, path=""):
    """Yield the leaves of two structures, which must be nested alike, and where they are."""
    if isinstance(found, (tuple, list)) and isinstance(expected, (tuple, list)):
        assert len(found) == len(expected), f"{path}: {len(found)} parts, not {len(expected)}"
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            yield from pairs(a, b, f"{path}[{i}]")
    else:
        assert np.ndim(found) >= np.ndim(expected), path
        yield found, expected, path


def close(found, expected, rtol, atol=0.0):
    """Demand that results are `expected` up to `rtol` times its size and `atol`. A nan is close to
    another one in arrays, but not alone.
    """
    __tracebackhide__ = True
    for a, b, path in pairs(found, expected):
        if not (type(a) is type(b) is float and (a == b or abs(a - b) <= rtol * abs(b) + atol)):
            equal_nan = np.ndim(a) > 0
            np.testing.assert_allclose(a, b, rtol, atol, equal_nan=equal_nan, err_msg=path)


def near(found, expected, tolerance=1e-12):
    """Demand that results are `expected` up to `tolerance` times the largest number of each part:
    sums may be taken in another order.
    """
    __tracebackhide__ = True
    for a, b, path in pairs(found, expected):
        largest = np.max(np.abs(b), initial=0.0, where=np.isfinite(b))
        np.testing.assert_allclose(a, b, tolerance, tolerance * largest, err_msg=path)


def close_slopes(found, expected, rtol, atol=0.0):
    """Demand that a value is `expected` to a tenth of `rtol`, and its derivatives to `rtol` and
    `atol`. Each result is a pair of the two.
    """
    __tracebackhide__ = True
    (value, slopes), (true, exact) = found, expected
    close(value, true, 0.1 * rtol)
    close(slopes, exact, rtol, atol)


def equal(found, expected):
    """Demand that results are `expected`, with nan equal to nan."""
    __tracebackhide__ = True
    for a, b, path in pairs(found, expected):
        np.testing.assert_array_equal(a, b, err_msg=path)


def refuses(error, message, f, /, *args, **settings):
    """Demand that a call raises an error whose text has a match of `message`."""
    __tracebackhide__ = True

    def call():
        f(*args, **settings)
        pytest.fail(f"nothing is raised, but must be with the message {message!r}")

    with pytest.raises(error, match=message):
        call()


def names_in(code):
    """Return the names that a code object uses, those in functions inside it too."""
    inner = [names_in(each) for each in code.co_consts if isinstance(each, types.CodeType)]
    return {*code.co_names}.union(*inner)


def refuses_as(error, text, f, /, *args, **settings):
    """Demand that a call raises an error that says `text`, perhaps after the name of a function and
    a colon; the name must be that of `f` or occur in its code. A text without "!" at its end is the
    beginning of what is said.
    """
    __tracebackhide__ = True
    with pytest.raises(error) as caught:
        f(*args, **settings)
    f, said = getattr(f, "func", f), str(caught.value)
    name, _, rest = said.partition(": ")
    if name == f.__name__ or (hasattr(f, "__code__") and name in names_in(f.__code__)):
        said = said if said.startswith(text) else rest
    assert said == text if text.endswith("!") else said.startswith(text), str(caught.value)
