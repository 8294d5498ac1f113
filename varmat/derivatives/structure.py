"""Trees: scalars and arrays in dicts, lists, tuples, named tuples and dataclasses, to any depth.

An item of them may be None, which has no numbers.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import is_dataclass
from itertools import repeat
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dispatch import Standing, constant, is_complex
from varmat.core.errors import ShapeError
from varmat.core.matvar import MatVar
from varmat.core.variables import data, like
from varmat.typing import Operand, Result, Shape

__all__ = ["ravel_pytree", "stop_gradient"]

# A tree with the structure of the tree that it is made of, with other leaves.
T = TypeVar("T")
# NumPy's functions take leaves of any kind; its annotations do not know that.
_numpy: ModuleType = np
ArgumentTree: TypeAlias = object  # a scalar or an array, or a dict, list or tuple of trees
Arguments: TypeAlias = tuple[Any, ...]  # of a user's function, of any kind
Argnums: TypeAlias = int | tuple[int, ...]  # positions of arguments


def map_leaves(function: Callable[[Operand, str], object], tree: T) -> T:
    """Apply ``function(leaf, path)`` to every scalar and array of `tree`; the result has the
    structure of `tree`.
    """
    mapped: T = _mapped(function, tree, "")
    return mapped


def _mapped(function: Callable[[Operand, str], object], tree: object, path: str) -> Result:
    if type(tree) is np.ndarray or type(tree) is float:
        return function(tree, path)
    if isinstance(tree, dict):
        result = copy.copy(tree)
        for key, item in tree.items():
            result[key] = _mapped(function, item, f"{path}[{key!r}]")
        return result
    if isinstance(tree, (list, tuple)):
        items = [_mapped(function, item, f"{path}[{i}]") for i, item in enumerate(tree)]
        return items if isinstance(tree, list) else like(tree, items)
    if _is_dataclass(tree):
        recompute = copy.copy(tree)
        for name, item in _fields_of(tree).items():  # a dataclass may be frozen
            object.__setattr__(recompute, name, _mapped(function, item, f"{path}.{name}"))
        return recompute
    if tree is None and path:
        return None
    return function(tree._settled if isinstance(tree, Standing) else tree, path)


def is_container(tree: object) -> bool:
    """Return whether an object has items or fields that are trees."""
    return isinstance(tree, (dict, list, tuple)) or _is_dataclass(tree)


def structure_of(tree: object) -> object:
    """Return the types, keys and shapes of `tree`: equal for trees that have the same structure."""
    if isinstance(tree, dict):
        return (type(tree), *((key, structure_of(item)) for key, item in tree.items()))
    if isinstance(tree, (list, tuple)):
        return (type(tree), *map(structure_of, tree))
    if _is_dataclass(tree):
        return (type(tree), *map(structure_of, _fields_of(tree).values()))
    return None if tree is None else _numpy.shape(tree)


def _is_dataclass(tree: object) -> bool:
    return is_dataclass(tree) and not isinstance(tree, type)


def _fields_of(tree: object) -> dict[str, object]:
    return {name: getattr(tree, name) for name in getattr(tree, "__dataclass_fields__", ())}


def leaves_of(tree: object) -> list[Operand]:
    """List the scalars and arrays of `tree`, in order."""
    result: list[Operand] = []
    map_leaves(lambda leaf, _: result.append(leaf), tree)
    return result


def rebuilt(tree: T, leaves: Iterable[object]) -> T:
    """Rebuild the structure of `tree` with other leaves, given in order."""
    following = iter(leaves)
    return map_leaves(lambda *_: next(following), tree)


def plain_tree(
    function: str, title: str, tree: T, complex_too: bool = False, outer_too: bool = False
) -> T:
    """Convert the leaves of a tree to floats and float64 arrays; raise for anything else.

    With `complex_too` leaves may be complex. With `outer_too` a variable or dual is unchanged.
    """

    def plain(leaf: object, path: str) -> Operand:
        if isinstance(leaf, (ArrayMethods, MatVar)):
            if outer_too:
                return leaf
            raise TypeError(
                f"{function}: {title}{path} is a {type(leaf).__name__}, but must be plain numbers, "
                "because the result is plain numbers and a derivative through it would be lost. "
                "varmat.value(x) gives plain numbers; for second derivatives there are "
                "varmat.hessian and varmat.hessian_times_vector"
            )
        if callable(leaf):
            raise TypeError(f"{function}: {title}{path} is a function, but must be plain numbers!")
        if complex_too and is_complex(leaf):
            return np.array(leaf, np.complex128)[()]
        return data(leaf, f"{function}: {title}{path}")

    return map_leaves(plain, tree)


def matching_leaves(
    function: str, title: str, other: object, tree: object, outer_too: bool = False
) -> list[Operand]:
    """Return the leaves of `other`, floats and arrays, which must have the structure and the shapes
    of the plain structure `tree`.
    """
    return list(_matching(function, title, other, tree, outer_too))


def _matching(
    function: str, title: str, other: object, tree: object, outer_too: bool
) -> Iterator[Operand]:
    if isinstance(tree, (dict, list, tuple)):
        if _described(other) != _described(tree):
            raise ShapeError(
                f"{function}: {title} is {_described(other)}, but must be {_described(tree)}!"
            )
        items: Any = other
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            yield from _matching(function, f"{title}[{key!r}]", items[key], tree[key], outer_too)
        return
    if tree is None or _is_dataclass(tree):
        if type(other) is not type(tree):
            raise ShapeError(
                f"{function}: {title} is {_described(other)}, but must be {_described(tree)}!"
            )
        for name, item in {} if tree is None else _fields_of(tree).items():
            yield from _matching(function, f"{title}.{name}", getattr(other, name), item, outer_too)
        return
    leaf = plain_tree(function, title, other, outer_too=outer_too)
    if _numpy.shape(leaf) != _numpy.shape(tree):
        raise ShapeError(
            f"{function}: {title} has shape {_numpy.shape(leaf)}, but must have shape "
            f"{_numpy.shape(tree)}!"
        )
    yield leaf


def _described(tree: object) -> str:
    if isinstance(tree, dict):
        return f"a dict with the keys {sorted(map(repr, tree))}"
    if isinstance(tree, (list, tuple)):
        return f"a sequence of length {len(tree)}"
    if tree is None:
        return "None"
    return f"a {type(tree).__name__}"


def template_of(tree: T, before: Shape = ()) -> T:
    """Rebuild the structure with zeros, which take no memory, in place of the numbers; their shapes
    begin with `before`.
    """

    def zeros(x: object, _: str) -> Operand:
        shape = before + _numpy.shape(x)
        return np.broadcast_to(0.0, shape) if shape else 0.0

    return map_leaves(zeros, tree)


def size_of(leaf: Operand) -> int:
    """Return the number of elements of a float or an array."""
    return int(np.size(leaf))


def unit_directions(leaves: Sequence[Operand]) -> Iterator[list[Operand]]:
    """Yield for each element of the leaves a direction that is one there and zero elsewhere."""
    for i, leaf in enumerate(leaves):
        for k in range(size_of(leaf)):
            direction = [np.zeros(np.shape(x)) for x in leaves]
            direction[i].flat[k] = 1.0
            yield [x if x.ndim else float(x) for x in direction]


def unit_rows(leaves: Sequence[Operand], before: int = 0) -> list[np.ndarray]:
    """Return the same directions along a first axis, an array for each leaf; the `before` first
    ones are zero in all leaves.
    """
    ends = np.cumsum([before, *map(size_of, leaves)]).tolist()
    units = np.eye(ends[-1])
    return [
        units[:, i:j].reshape(len(units), *np.shape(x))
        for i, j, x in zip(ends, ends[1:], leaves, strict=False)
    ]


def split(vector: Operand, shapes: Iterable[Shape]) -> Iterator[Operand]:
    """Yield the parts of a vector of any kind that have these shapes, in sequence."""
    start = 0
    for shape in shapes:
        end = start + math.prod(shape)
        yield np.reshape(vector[start:end], shape) if shape else vector[start]
        start = end


def shaped(vector: object, shapes: Iterable[Shape]) -> list[Operand]:
    """List the same parts, with floats as numbers if the vector is plain."""
    return [float(x) if isinstance(x, np.floating) else x for x in split(vector, shapes)]


def derivative_block(rows: Operand, shape: Shape, leaf: Operand) -> Operand:
    """Return the derivative of an output of a given shape with respect to `leaf`: `rows` has a row
    for each element of the output.
    """
    if isinstance(rows, ArrayMethods) or (
        isinstance(rows, list) and any(isinstance(row, ArrayMethods) for row in rows)
    ):
        full = rows if isinstance(rows, ArrayMethods) else np.stack(rows)
        return np.reshape(full, shape + np.shape(leaf))
    block = np.empty(shape + np.shape(leaf))
    block.reshape(-1)[...] = np.ravel(rows)
    return block if block.ndim else float(block)


def derivative_tree(
    y: object, results: Iterable[Operand], rows: Iterable[Sequence[Operand]], point: object
) -> Result:
    """Return the derivatives of a structure, which has these leaves, with respect to another;
    `rows` has for each element of the leaves its derivatives with respect to the leaves of `point`.
    """
    following, blocks = iter(rows), []
    for result in results:
        mine = [next(following) for _ in range(size_of(result))]
        parts = (
            derivative_block([row[i] for row in mine], np.shape(result), x)
            for i, x in enumerate(leaves_of(point))
        )
        blocks.append(rebuilt(point, parts))
    return rebuilt(y, blocks)


# --- for users ---


def stop_gradient(x: T) -> T:
    """Return the same numbers without derivatives: results that depend on them are not
    differentiated with respect to what they were made from.

    Parameters
    ----------
    x : scalar or array_like, or a structure of them
        Variables, duals or plain numbers.

    Returns
    -------
    the same structure
        Plain numbers, which recordings compute again at every point.

    See Also
    --------
    value : The plain numbers, at which a recording may not look.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sum(x * vm.stop_gradient(x)), np.array([2.0, 3.0]))
    array([2., 3.])
    """

    def stopped(leaf: object, _: str) -> Operand:
        if not isinstance(leaf, (ArrayMethods, MatVar)):
            return leaf
        result = constant(np.positive, (leaf,), {})
        return result if np.ndim(result) or isinstance(result, ArrayMethods) else float(result)

    return map_leaves(stopped, x)


def ravel_pytree(tree: object) -> tuple[Operand, Callable[[Operand], Result]]:
    """Return all numbers of a structure as one vector, and the function that makes the structure
    from such a vector. Both are differentiable.

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
