"""Small models that several test files share."""

import numpy as np

import varmat as vm

Y = np.array([1.0, 3.0, 2.5, -0.5, 4.0])


def groups(result):
    """The groups by name as data sets: of an ``InferenceData``, or of a ``DataTree``."""
    if hasattr(result, "children"):
        return {name: group.to_dataset() for name, group in result.children.items()}
    return {name: result[name] for name in result.groups()}


def gaussian(mu, sigma, y=Y):
    return np.sum(-0.5 * ((y - mu) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi))


GAUSSIAN = vm.Model(gaussian, mu=vm.real(), sigma=vm.positive())


def broken(x):
    return x * {}["column"]
