"""Runge-Kutta steps through a differential equation."""

import numpy as np
from gradbench import wrap

import varmat as vm


def change(x, y):
    return x * np.concatenate([[1.0], y[:-1]])


def runge_kutta(x, steps):
    """Solve from 0 to 2, from zeros."""
    h = 2.0 / steps
    y = np.zeros_like(x)
    for _ in range(steps):
        k1 = change(x, y)
        k2 = change(x, y + h / 2.0 * k1)
        k3 = change(x, y + h / 2.0 * k2)
        k4 = change(x, y + h * k3)
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return y


def last(x, steps):
    return runge_kutta(x, steps)[-1]


last_gradient = vm.recorded(last)


def prepare(input):
    return np.array(input["x"], dtype=np.float64), input["s"]


@wrap.multiple_runs(pre=prepare, post=np.ndarray.tolist)
def primal(input):
    return runge_kutta(*input)


@wrap.multiple_runs(pre=prepare, post=np.ndarray.tolist)
def gradient(input):
    return last_gradient(*input)[1]
