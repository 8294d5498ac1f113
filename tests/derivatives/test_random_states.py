"""Functions that draw random numbers are not recorded."""

import random
from functools import partial

import numpy as np
import pytest
from comparing import refuses

import varmat as vm
from varmat.derivatives.random_states import RandomStates, _reached

GENERATOR, OWN = np.random.default_rng(1), random.Random(1)


class Noisy:
    def __init__(self):
        self.generator = np.random.RandomState(1)

    def density(self, x):
        return np.sum(x * self.generator.normal(size=2))


def noisy_functions():
    local, inner = np.random.default_rng(2), np.random.default_rng(3)

    def of_inner(x):
        return x * inner.normal()

    return {
        "numpy.random": lambda x: np.sum(x * np.random.normal(size=2)),  # noqa: NPY002
        "random": lambda x: np.sum(x) * random.random(),
        "a Generator": lambda x: np.sum(x * local.normal(size=2)),
        "a Generator, inside": lambda x: np.sum(of_inner(x)),
        "a Generator, in a list": lambda x, more=[local]: np.sum(x) * more[0].normal(),
        "a Generator, global": lambda x: np.sum(x) * GENERATOR.normal(),
        "a Random": lambda x: np.sum(x) * OWN.random(),
        "a RandomState": Noisy().density,
        "a Generator, partial": partial(lambda g, x: np.sum(x) * g.normal(), local),
    }


@pytest.mark.parametrize("name", noisy_functions())
def test_random_numbers_are_refused(name):
    f, source = noisy_functions()[name], name.partition(",")[0]
    message = (
        rf"^recorded: the function draws random numbers from {source}, and a recording "
        r"would always use .*; draw them outside of the function and pass them as an argument$"
    )
    for each in (f, vm.hessian(f), vm.jacobian(f)):
        refuses(vm.TapeError, message, vm.recorded(each), np.ones(2))


def test_random_numbers_as_arguments():
    def f(x, rng, draws):
        return np.sum(x * draws)

    g = vm.recorded(f)
    for draws in (np.ones(2), np.full(2, 2.0)):
        assert g(np.ones(2), GENERATOR, draws)[0] == np.sum(draws)
    with pytest.raises(vm.TapeError, match="from a Generator, and"):
        vm.recorded(lambda x, rng: np.sum(x) * rng.normal())(np.ones(2), GENERATOR)


def test_rows_of_the_library_are_not_searched_and_those_of_users_are():
    """A row refers to the table of all rows, in which the search would end."""
    assert not [*_reached((vm.log1m,))]
    drawn = vm.elementwise("drawn", lambda x: x * OWN.random(), "g")
    states = RandomStates(lambda x: drawn(x))
    drawn(1.0)
    refuses(vm.TapeError, "from a Random, and", lambda: states.refuse_draws())


def test_functions_that_the_library_makes_of_others_are_searched():
    def made(x):
        return x * local.normal()

    local = np.random.default_rng(2)
    made.__module__ = "varmat.solvers"
    states = RandomStates(made)
    states.refuse_draws()
    made(1.0)
    refuses(vm.TapeError, "from a Generator, and", lambda: states.refuse_draws())
