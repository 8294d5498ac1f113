"""Callbacks: reverse-pass steps that a user writes."""

import numpy as np
import pytest
from comparing import refuses

import varmat as vm
from core.tapes import fresh_tape  # noqa: F401 - a fixture


def test_a_scope_in_a_callback_adds_to_the_adjoints_of_the_pass_around_it():
    a = vm.var(2.0)
    (a * a).grad()
    y = vm.var(a.val**3)

    def cube_adjoint():
        with vm.nested():
            (a * a * a * y.adj).grad()

    vm.reverse_pass_callback(cube_adjoint)
    z = y * 5.0 + a * 7.0
    assert z.grad(a) == 5.0 * 12.0 + 7.0


@pytest.mark.parametrize("again", [lambda y: y.grad(), vm.grad, lambda y: vm.recover_memory()])
def test_a_callback_does_not_undo_the_pass_it_is_called_by(again):
    a = vm.var(2.0)
    b = a * a
    before = a * 5.0

    def cube_adjoint(y):
        refuses(vm.TapeError, "is running", again, b)
        a.adj += 3.0 * a.val**2 * y.adj

    z = vm.make_callback_var(a.val**3, cube_adjoint) + before
    for _ in range(2):
        z.grad()
        assert (a.adj, b.adj) == (12.0 + 5.0, 0.0)


def test_callbacks():
    x, y = vm.var([1.0, 2.0]), vm.var(3.0)

    def product_adjoint(z):
        x.adj += y.val * z.adj
        y.adj += x.val @ z.adj

    values = x.val * y.val
    z = vm.make_callback_var(values, product_adjoint)
    values[:] = 0.0
    assert np.sum(z * z).grad(x).tolist() == [18.0, 36.0]
    assert y.adj == 30.0
    ran = []
    vm.reverse_pass_callback(lambda: ran.append(1))
    np.sum(x).grad()
    assert ran == [1]
    assert x.adj.tolist() == [1.0, 1.0]
    assert type(vm.make_callback_var(2, product_adjoint).val) is float


def test_an_exception_in_a_callback_leaves_assigned_values_in_place():
    x = vm.var([1.0, 2.0])
    y = x * 1.0

    def fail():
        raise RuntimeError("in the reverse pass")

    vm.reverse_pass_callback(fail)
    y[0] = 5.0
    refuses(RuntimeError, "in the reverse pass", np.sum(y).grad)
    assert y.val.tolist() == [5.0, 2.0]
