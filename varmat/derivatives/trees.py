"""Functions of whole structures of numbers and arrays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dispatch import constant
from varmat.core.errors import ShapeError
from varmat.core.matvar import MatVar
from varmat.derivatives.structure import T, leaves_of, map_leaves, plain_tree, rebuilt, shaped
from varmat.typing import Operand, Result

__all__ = ["ravel_pytree", "stop_gradient"]


def stop_gradient(x: T) -> T:
    """The same numbers without derivatives: what depends on them is not differentiated with respect
    to what they were made from.

    Parameters
    ----------
    x : scalar or array_like, or a structure of them
        Variables, duals or plain numbers.

    Returns
    -------
    the same structure
        Plain numbers, which recordings compute anew at every point.

    See Also
    --------
    value : The plain numbers, at which a recording may not look.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sum(x * vm.stop_gradient(x)), np.array([2.0, 3.0]))
    array([2., 3.])
    """

    def stopped(leaf: Operand, _: str) -> Operand:
        if not isinstance(leaf, (ArrayMethods, MatVar)):
            return leaf
        found = constant(np.positive, (leaf,), {})
        return found if np.ndim(found) or isinstance(found, ArrayMethods) else float(found)

    return map_leaves(stopped, x)


def ravel_pytree(tree: object) -> tuple[Operand, Callable[[Operand], Result]]:
    """All numbers of a structure as one vector, and the function that makes the structure of such a
    vector. Both are differentiable.

    Parameters
    ----------
    tree : scalar or array_like, or a structure of them
        Dicts, lists, tuples, named tuples and dataclasses, to any depth; None has no numbers.

    Returns
    -------
    flat : ndarray or VarMat
        The elements of the leaves, in order.
    unravel : callable
        Takes a vector of this length.

    Raises
    ------
    TypeError
        If a leaf is not a number or an array.
    ShapeError
        From `unravel`, if its argument is not a vector of the right length.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> flat, unravel = vm.ravel_pytree({"a": np.eye(2), "b": 3.0})
    >>> flat
    array([1., 0., 0., 1., 3.])
    >>> unravel(2.0 * flat)
    {'a': array([[2., 0.],
           [0., 2.]]), 'b': 6.0}
    """
    leaves = leaves_of(plain_tree("ravel_pytree", "tree", tree, outer_too=True))
    shapes, template = list(map(np.shape, leaves)), rebuilt(tree, repeat(0.0))
    flat = np.concatenate([np.empty(0), *(np.reshape(x, (-1,)) for x in leaves)])

    def unravel(vector: Operand) -> Result:
        if np.shape(vector) != flat.shape:
            raise ShapeError(
                f"unravel: the argument has shape {np.shape(vector)}, but must have shape "
                f"{flat.shape}!"
            )
        return rebuilt(template, shaped(vector, shapes))

    return flat, unravel
