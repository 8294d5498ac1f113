"""Small models that several test files share."""

from __future__ import annotations

import numpy as np

import varmat as vm

Y = np.array([1.0, 3.0, 2.5, -0.5, 4.0])


def gaussian(mu, sigma, y=Y):
    return np.sum(-0.5 * ((y - mu) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi))


GAUSSIAN = vm.Model(gaussian, mu=vm.real(), sigma=vm.positive())


def broken(x):
    return x * {}["column"]
