"""Values and derivatives of everything that the library writes as expressions, to be compared with
those of a process in which a user's rows have all the names.

Run as a script, it takes the names first, and writes what it computes to standard output.
"""

import pickle
import sys
from pathlib import Path

import numpy as np

import varmat as vm
from varmat.core.elementwise import ROWS
from varmat.core.operation import OPERATIONS
from varmat.densities.univariate import LONG, Univariate

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

UNIVARIATE = {
    name: f for name in vm.__all__ if isinstance(f := getattr(vm, name, None), Univariate)
}
# Numbers, so that true ufuncs of one and of two operands take names too.
UFUNCS = {1: (np.tanh, "g * (1.0 - r * r)"), 2: (np.hypot, "g * x / r", "g * y / r")}


def names():
    """All names in expressions of the library."""
    found = {*ROWS, "where"}
    for row in ROWS.values():
        found |= row.mentions
    return found | OPERATIONS.keys()


def take_names():
    """Make two rows of each name, of one and of two operands in an order that varies."""
    hostile = np.frompyfunc(lambda x, y: 1000.0 + x, 2, 1)
    for i, name in enumerate(sorted(names())):
        vm.elementwise(name, hostile, "1000.0 * g", "7.0 * g", scalar=lambda x, y: 1000.0)
        vm.elementwise(name, *UFUNCS[1 + i % 2])

        def taken(x):
            return x

        taken.__name__ = name
        vm.operation()(taken)


def routes(f, args, active, runner="numpy"):
    """A function at arguments: its value, and values with gradients, not recorded and recorded."""
    return [
        f(*args),
        vm.value_and_grad(f, active)(*args),
        vm.recorded(f, active, runner=runner)(*args),
    ]


def second(f, args, active):
    def of_point(point):
        given = list(args)
        for i, x in zip(active, point, strict=True):
            given[i] = x
        return f(*given)

    return vm.hessian(of_point, np.array([args[i] for i in active], float))


def computed():
    """All values by what they are."""
    from densities.multivariate import FREE

    found = {}
    for k, (name, f) in enumerate(UNIVARIATE.items()):
        active = tuple(i for i, each in enumerate(f.arguments) if each not in f.discrete)
        point = f.points[0]
        found[name, "numbers"] = vm.value_and_grad(f, active)(*point), second(f, point, active)
        if name.endswith(("_lpdf", "_lpmf")):
            rows, long = ([np.full(n, x) for x in point] for n in (3, LONG))
            found[name, "rows"] = routes(f, rows, active, "numpy" if k % 16 else "native")
            found[name, "long"] = vm.value_and_grad(f, active)(*long)
            total = vm.value_and_grad(lambda *x, f=f: np.sum(f.pointwise(*x)), active)
            found[name, "pointwise"] = f.pointwise(*rows), total(*rows)
            if f.cdf is not None:
                found[name, "cdf"] = vm.value_and_grad(f.cdf, active)(*point)
    for name, (f, args) in FREE.items():
        if "," not in name:
            active = tuple(i for i, x in enumerate(args) if np.asarray(x).dtype.kind == "f")
            found[name, "vectors"] = routes(f, args, active)
    for row in [row for row in ROWS.values() if row.points]:
        # Expressions of partials, with functions of numbers and of variables.
        linear = row.push(row.call(*row.points[0]), row.points[0], {})
        found[row.name, "row"] = [push(1.0) for push in linear]
    found["complex"] = vm.value_and_grad(complexes)(np.array([0.5, 2.0]))
    found["joined"] = vm.jacobian(
        lambda x: np.stack([x, np.concatenate([x[1:], x[:1]])]), np.ones(2)
    )
    return found


def complexes(x):
    z = np.concatenate([x * (1.0 + 2.0j), x])
    return np.real(
        np.sum(np.einsum("i,j->", z, z) + np.convolve(z, z) + np.prod(z) + np.vdot(z, z))
    )


if __name__ == "__main__":
    take_names()
    pickle.dump(computed(), sys.stdout.buffer)
