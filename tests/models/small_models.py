"""Small models that several test files share."""

import sys
from contextlib import contextmanager

import numpy as np
import pytest

import varmat as vm

Y = np.array([1.0, 3.0, 2.5, -0.5, 4.0])


def groups(result):
    """The groups by name as data sets: of an ``InferenceData``, or of a ``DataTree``."""
    if hasattr(result, "children"):
        return {name: group.to_dataset() for name, group in result.children.items()}
    return {name: result[name] for name in result.groups()}


@contextmanager
def told(text, kind=UserWarning):
    """Demand one warning, of the line that calls the library."""
    file = sys._getframe(2).f_code.co_filename
    with pytest.warns(kind, match=text) as said:
        yield said
    assert [each.filename for each in said] == [file]


def gaussian(mu, sigma, y=Y):
    return np.sum(-0.5 * ((y - mu) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi))


GAUSSIAN = vm.Model(gaussian, mu=vm.real(), sigma=vm.positive())


def broken(x):
    return x * {}["column"]
