"""Rows of users may have any name: the library's expressions refer to the library's rows."""

import os
import pickle
import subprocess
import sys

import numpy as np
from densities import names_taken


def numbers(x):
    if isinstance(x, (list, tuple)):
        return [each for item in x for each in numbers(item)]
    return [np.asarray(x, float)]


def test_the_library_refers_to_its_own_rows():
    """All values and derivatives are those of a process in which nobody has taken the names."""
    assert {"gammaln", "where", "fmin", "copysign", "log1m_less_line"} <= names_taken.names()
    command = [sys.executable, names_taken.__file__]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as process:
        expected = names_taken.computed()
        found = pickle.loads(process.communicate(timeout=300)[0])
    assert process.returncode == 0
    # Tests that ran before may have made further rows.
    assert found.keys() <= expected.keys()
    different = [
        what
        for what in found
        if any(
            a.shape != b.shape or not np.array_equal(a, b, equal_nan=True)
            for a, b in zip(numbers(found[what]), numbers(expected[what]), strict=True)
        )
    ]
    assert not different
