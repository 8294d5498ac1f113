"""A module as users of autograd write them: names by import, by attribute, and made at import."""

import functools
from collections import namedtuple

import autograd
import autograd.numpy as np
import autograd.scipy.special as special
import autograd.scipy.stats as stats
import numpy
from autograd import checkpoint, elementwise_grad, grad
from autograd.core import make_vjp as core_make_vjp  # noqa: F401
from autograd.extend import (
    defjvp,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
    register_notrace,
)
from autograd.numpy.numpy_boxes import ArrayBox  # noqa: F401
from autograd.numpy.numpy_vjps import unbroadcast_f
from autograd.tracer import getval, isbox  # noqa: F401

A = numpy.random.default_rng(3).normal(size=(4, 3))
SEEN = []  # kinds of what the functions were called with
Pair = namedtuple("Pair", "a b")


def seen(function):
    @functools.wraps(function)
    def called(*args, **kwargs):
        SEEN.append(type(args[0]).__module__.partition(".")[0])
        return function(*args, **kwargs)

    return called


# --- functions ---


@seen
def scalar(x):
    y = np.dot(A, x)
    return np.sum(np.tanh(y) * y) + np.dot(x, x) ** 2


@seen
def mixing(x):
    """Its Jacobian is not symmetric."""
    return np.array([np.sum(x[1:] * x[0]), np.exp(x[2]), x[0] ** 3 - x[1]]) + np.cumsum(x)


@seen
def rectangular(x):
    return np.sin(np.dot(A, x)) * np.sum(x)


@seen
def of_two(x, y):
    return np.sum(np.sin(np.outer(x, y))) + np.sum(x) * y[0]


def of_containers(p):
    inner = p["pair"]
    return np.sum(p["w"] ** 2) * inner[0] + np.sum(np.stack([inner[1], inner[1] * 2.0])) ** 2


def of_lists(x):
    return np.sum([x[0], x[1] * x[2]]) + np.mean([x[0], x[2]]) + np.max([x[0], 0.0 * x[1]])


def likelihood(p):
    return (
        np.sum(stats.norm.logpdf(p, 0.5, 2.0))
        + np.sum(stats.t.logpdf(p, 4.0, p[0], 1.5))
        + special.logsumexp(p)
        + np.sum(special.gammaln(p**2 + 1.0))
    )


def with_aux(x):
    return np.sum(x**3), x * 2.0


def of_complex(z):
    return np.real(np.sum(z * z * np.exp(z) * np.conj(z)))


def holomorphic(z):
    return np.sum(z**3 * np.exp(z))


# --- derivatives that are made at import ---

at_import = {
    "grad": grad(scalar),
    "attribute": autograd.jacobian(mixing),
    "elementwise": elementwise_grad(mixing),
    "nested": grad(lambda x: np.sum(grad(scalar)(x) ** 2)),
    "hessian": autograd.hessian(scalar),
}


def as_default(x, derivative=autograd.jacobian, name="mixing"):
    return derivative(globals()[name])(x)


class Holder:
    """Functions in a class are no globals of the module."""

    derivative = staticmethod(autograd.grad)
    dot = staticmethod(np.dot)

    def slope(self, x):
        return self.derivative(lambda x: self.dot(self.dot(A, x), np.sin(np.dot(A, x))))(x)


# --- primitives ---


@primitive
def reversal(x):
    return x * 1.0


defvjp(reversal, lambda ans, x: lambda g: -g)


@primitive
def rounded(x):
    return np.round(x)


defvjp(rounded, lambda ans, x: lambda g: g)
defjvp(rounded, lambda g, ans, x: g)


@primitive
def scaled(x, y, power=2):
    return x * y**power


defvjp(
    scaled,
    lambda ans, x, y, power=2: unbroadcast_f(x, lambda g: g * y**power),
    lambda ans, x, y, power=2: unbroadcast_f(y, lambda g: g * x * power * y ** (power - 1)),
)


@primitive
def clipped(x, limit):
    return x * min(1.0, limit / numpy.linalg.norm(x))


defvjp(clipped, lambda ans, x, limit: lambda g: g * 0.5, None)


@primitive
def solved(a, b):
    return np.linalg.solve(a, b)


def solved_rules(argnums, ans, args, kwargs):
    a, _ = args

    def rule(g):
        v = solved(a.T, g)
        given = (-np.outer(v, ans), v)
        return tuple(given[i] for i in argnums)

    return rule


defvjp_argnums(solved, solved_rules)


@primitive
def total(*xs):
    return sum(xs)


defvjp_argnum(total, lambda argnum, ans, args, kwargs: lambda g: g * (argnum + 1.0))


@primitive
def first_of(pair):
    return pair[0] * 2.0


defvjp(first_of, lambda ans, pair: lambda g: type(pair)((3.0 * g, np.zeros(np.shape(pair[1])))))


@primitive
def both(x):
    return np.sin(x), x**2


defvjp(both, lambda ans, x: lambda g: g[0] * np.cos(x) + g[1] * 2.0 * x)


@primitive
def turned(z):
    return z * 1j


defvjp(turned, lambda ans, z: lambda g: g * 1j)


@primitive
def ruleless(x):
    return x * 2.0


@primitive
def count(x):
    return np.sum(x > 0.0)


register_notrace(autograd.core.VJPNode, count)
register_notrace(autograd.core.JVPNode, count)


def with_primitives(x):
    return np.sum(scaled(x, x[0]) + solved(np.outer(x, x) + np.eye(3), np.sin(x))) * count(x)


def with_several(x):
    s, q = both(x)
    return np.sum(s * q) + np.sum(total(x, x * 2.0, x**2)) + np.sum(clipped(x, 0.5))


checked = checkpoint(scalar)
