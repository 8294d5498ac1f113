"""Domains: the quick test of whole arrays agrees with the test of single elements."""

import math
import warnings

import numpy as np
import pytest
from comparing import refuses

from varmat.core.domains import Domain, finite, nonnegative, positive, positive_finite
from varmat.core.errors import DomainError
from varmat.densities.density import not_nan, probability

DOMAINS = [positive, nonnegative, finite, positive_finite, not_nan, probability]
VALUES = [
    1.0, 0.5, 0.0, -0.0, -1.0, 2.0, 5e-324, 1e-200, 1e200, -1e200, 1.7e308, math.inf, -math.inf,
    math.nan,
]  # fmt: skip


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain.phrase)
@pytest.mark.parametrize("value", VALUES)
def test_an_array_is_inside_if_all_its_elements_are(domain, value):
    inside = bool(domain.holds(value))
    for shape in ((1,), (3,), (2, 3), (40,)):
        x = np.full(shape, 0.5)
        x[(-1,) * len(shape)] = value
        for array in (x, np.asfortranarray(x), x[::-1], np.broadcast_to(value, shape)):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                if inside:
                    domain.check("f", "Argument", array)
                else:
                    message = r"^f: Argument\[\d+(, \d+)?\] is .*, but must be "
                    refuses(DomainError, message, domain.check, "f", "Argument", array)


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain.phrase)
def test_nothing_is_inside(domain):
    for shape in ((0,), (2, 0)):
        domain.check("f", "Argument", np.empty(shape))


def test_integers_and_truth_values():
    largest = np.full(4, np.iinfo(np.int64).max)  # their squares wrap around
    for domain in (positive, nonnegative, finite, positive_finite, not_nan):
        for x in (largest, np.array([1, 2]), np.array([True])):
            domain.check("f", "Argument", x)
    with pytest.raises(DomainError, match=r"f: Argument\[1\] is -1, but must be positive finite!"):
        positive_finite.check("f", "Argument", np.array([1, -1]))


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain.phrase)
def test_arrays_inside_a_domain_are_checked_as_a_whole(domain):
    def looks(x):
        raise AssertionError("the elements were looked at one by one")

    Domain(domain.phrase, looks, domain.quick).check("f", "Argument", np.array([0.5, 1.0]))
