"""Variables of all kinds, and the dispatch tables that have a function, for the tests of NumPy's
protocols.
"""

import numpy as np
from numpy.testing.overrides import get_overridable_numpy_array_functions

import varmat as vm
from varmat.core import dispatch

PLAIN = np.array([[1.5, -0.5, 2.0], [0.0, 3.0, 1.0]])
KINDS = {
    "Var": lambda x: vm.var(float(np.ravel(x)[0])),
    "VarMat": vm.var,
    "View": lambda x: vm.var(x[::-1])[::-1],
    "MatVar": vm.matvar,
    "Dual": lambda x: vm.Dual(x, np.ones_like(x)),
    "scalar Dual": lambda x: vm.Dual(float(np.ravel(x)[0]), 1.0),
}


def public_functions():
    """Return the functions that NumPy dispatches. The private twins of functions with ``like=`` are
    left out, because they never arrive at `__array_function__`, and so are the copies of NumPy's
    functions in `varmat.numpy.polynomial`.
    """
    functions = {
        f for f in get_overridable_numpy_array_functions() if not f.__module__.startswith("varmat.")
    }
    twins = {f.__name__ for f in functions if f.__module__ == "numpy"}
    return sorted((f for f in functions if not (is_twin(f) and f.__name__ in twins)), key=full_name)


def is_twin(function):
    return function.__module__ == "numpy" and getattr(np, function.__name__, None) is not function


def full_name(function):
    return f"{getattr(function, '__module__', 'numpy')}.{function.__name__}"


def tables(function):
    """Return the tables that have a function. Whole modules may be refused by their name."""
    refused = (
        function in dispatch.REFUSED or getattr(function, "__module__", None) in dispatch.REFUSED
    )
    supported = function in dispatch.SUPPORTED or full_name(function) in dispatch.SUPPORTED
    where = {"supported": supported, "constant": function in dispatch.CONSTANT, "refused": refused}
    return [name for name, there in where.items() if there]


def call(x, function):
    """Dispatch a function through its protocol, with `x` as the only argument."""
    if isinstance(function, np.ufunc):
        return x.__array_ufunc__(function, "__call__", x)
    return x.__array_function__(function, (type(x),), (x,), {})


BASE = np.array([[1.5, 0.7, 2.2], [0.4, 3.1, 1.9]])
VECTOR = BASE[0]

# Kind -> a function that returns a variable of this kind and its plain values.
VARIABLES = {
    "Var": lambda: (vm.var(1.3), 1.3),
    "VarMat": lambda: (vm.var(BASE), BASE),
    "vector": lambda: (vm.var(VECTOR), VECTOR),
    "View": lambda: (vm.var(BASE.T).T, BASE),
    "reversed View": lambda: (vm.var(VECTOR)[::-1], VECTOR[::-1]),
    "element": lambda: (vm.var(VECTOR)[1], 0.7),
    "MatVar": lambda: (vm.matvar(BASE), BASE),
    "Dual": lambda: (vm.Dual(BASE, np.ones_like(BASE)), BASE),
    "scalar Dual": lambda: (vm.Dual(1.3, 1.0), 1.3),
    "Dual of VarMat": lambda: (vm.Dual(vm.var(VECTOR), np.ones(3)), VECTOR),
}


def expected_type(a, b, shape):
    """Return the type of a result: duals win over varmats, and varmats over matvars; data changes
    nothing.
    """
    kinds = (type(a), type(b))
    if vm.Dual in kinds:
        return vm.Dual
    if not shape:
        return vm.Var
    return (
        vm.MatVar
        if vm.MatVar in kinds and not any(isinstance(x, vm.VarMat) for x in (a, b))
        else vm.VarMat
    )


def summed(c, shape):
    """Sum a contribution over the axes along which its operand was broadcast."""
    extra = np.ndim(c) - len(shape)
    c = np.sum(c, axis=tuple(range(extra)))
    return np.sum(
        c, axis=tuple(i for i, n in enumerate(shape) if n == 1 != np.shape(c)[i]), keepdims=True
    )
