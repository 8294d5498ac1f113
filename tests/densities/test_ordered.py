"""Ordered categories: two categories are a logistic regression, and cutpoints may be far apart."""

import math

import numpy as np
from comparing import close
from densities.multivariate import CUTS, ETA

import varmat as vm
from varmat.densities.ordered import ordered_logistic_lpmf


def test_two_ordered_categories_are_logistic():
    for n in (1, 2):
        expected = -np.logaddexp(0.0, (1 if n == 1 else -1) * (ETA - 0.7)).sum()
        close(ordered_logistic_lpmf(n, ETA, [0.7]), expected, 1e-14)
    total = sum(math.exp(ordered_logistic_lpmf(n, 0.4, CUTS)) for n in (1, 2, 3, 4))
    close(total, 1.0, 1e-14)


def test_cutpoints_that_are_far_apart():
    """The upper cutpoint is so far away that only the lower one matters."""
    for eta, expected in (
        (-800.0, np.zeros((3, 3))),
        (0.0, [[-0.25, 0.25, 0.0], [0.25, -0.25, 0.0], [0.0, 0.0, 0.0]]),
    ):
        hessian = vm.hessian(
            lambda x: vm.ordered_logistic_lpmf(2, x[0], x[1:]), np.array([eta, 0.0, 1000.0])
        )
        close(hessian, expected, 1e-7, 1e-300)


def test_one_category_is_certain():
    assert vm.ordered_logistic_lpmf([1, 1], 0.3, np.zeros(0)) == 0.0
    assert vm.ordered_logistic_lpmf([1, 2], 0.3, np.zeros(0)) == -math.inf
