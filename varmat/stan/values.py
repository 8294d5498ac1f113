"""Values of Stan programs: promotion, indexing and assignment.

The checker gives each expression its type, so a value needs no tag. An `int` is a Python int, a
`real` a float or a variable. A vector and a row vector are arrays of one axis, a matrix has two,
and an array of those has its dimensions in front. A tuple is a tuple, an array of tuples a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from varmat.core.errors import ShapeError
from varmat.core.matvar import MatVar, to_matvar, to_varmat
from varmat.core.operation import is_differentiable
from varmat.core.variables import Var, VarMat
from varmat.functions.checks import is_watched
from varmat.functions.missing import without_missing
from varmat.stan import types
from varmat.stan.types import ArrayType, Tuple, Type
from varmat.typing import Shape

StanValue = Any

# The value of an integer before it is assigned, as in Stan.
UNSET = -(2**31)

SCALARS = frozenset({types.INT, types.REAL, types.COMPLEX})
ROWS = frozenset({types.ROW_VECTOR, types.COMPLEX_ROW_VECTOR})
VECTORS = frozenset({types.VECTOR, types.COMPLEX_VECTOR})
MATRICES = frozenset({types.MATRIX, types.COMPLEX_MATRIX})
_COMPLEX = frozenset(
    {types.COMPLEX, types.COMPLEX_VECTOR, types.COMPLEX_ROW_VECTOR, types.COMPLEX_MATRIX}
)


def innermost(kind: Type) -> Type:
    """Return the type of the elements of an array, however nested, or any other type itself."""
    while isinstance(kind, ArrayType):
        kind = kind.element
    return kind


def axes(kind: Type) -> int:
    """Count the axes of a value that is not a tuple."""
    count = 0
    while isinstance(kind, ArrayType):
        kind, count = kind.element, count + 1
    return count + (0 if kind in SCALARS else 2 if kind in MATRICES else 1)


def dtype_of(kind: Type) -> type:
    """Return the NumPy type of the elements of an array."""
    kind = innermost(kind)
    return np.int64 if kind == types.INT else complex if kind in _COMPLEX else float


def unset(kind: Type, shape: Shape) -> StanValue:
    """Make the value of a declared variable before it is assigned."""
    element = innermost(kind)
    if isinstance(element, Tuple):
        raise TypeError("arrays of tuples are made element by element")
    fill = UNSET if element == types.INT else complex("nan+nanj") if element in _COMPLEX else np.nan
    return np.full(shape, fill, dtype_of(kind)) if axes(kind) else fill


def promotion(source: Type, target: Type) -> Callable[[StanValue], StanValue] | None:
    """Return a function that converts values from type `source` to `target`; None if not needed."""
    if source == target:
        return None
    if isinstance(source, Tuple) and isinstance(target, Tuple):
        parts = [*map(promotion, source.elements, target.elements)]
        if not any(parts):
            return None
        return lambda x: tuple(
            item if part is None else part(item) for part, item in zip(parts, x, strict=True)
        )
    if isinstance(innermost(source), Tuple) and isinstance(source, ArrayType):
        assert isinstance(target, ArrayType)
        part = promotion(source.element, target.element)
        return part and (lambda x: [part(item) for item in x])
    before, after = dtype_of(source), dtype_of(target)
    if before is after:
        return None

    def promoted(x: object) -> StanValue:
        if type(x) is np.ndarray:
            return x.astype(after)
        return after(x) if type(x) in (int, float) else x

    return promoted


# --- sizes ---


def shape_of(x: StanValue) -> Shape:
    """Return the sizes of an array, also one of tuples."""
    return (len(x),) if type(x) is list else np.shape(x)


def check_same(function: str, left: StanValue, right: StanValue) -> None:
    """Refuse two containers of different sizes, which NumPy might broadcast."""
    if left.shape != right.shape:
        sizes = " and ".join(str(x.shape) for x in (left, right))
        raise ShapeError(f"{function}: the operands have shapes {sizes}, which must be equal!")


def out_of_range(position: int, index: int, size: int) -> IndexError:
    """Return the error for an index that does not exist."""
    return IndexError(
        f"index {index} of axis {position} is out of range, but must be between 1 and {size}!"
    )


# --- reading ---


def place(index: object, size: int, position: int) -> StanValue:
    """Convert an index of Stan to one of NumPy: an integer, or an array of integers, from 0."""
    if type(index) is int:
        if not 1 <= index <= size:
            raise out_of_range(position, index, size)
        return index - 1
    if type(index) is slice:
        return _range(index, size, position)
    indices = np.asarray(index, np.int64)
    if indices.size and not (indices.min() >= 1 and indices.max() <= size):
        wrong = indices[(indices < 1) | (indices > size)]
        raise out_of_range(position, int(wrong[0]), size)
    return indices - 1


def _range(index: slice, size: int, position: int) -> slice:
    """Convert a range `lower:upper` of Stan, with both ends from 1, to a slice."""
    lower, upper = index.start, index.stop
    lower = 1 if lower is None else lower
    upper = size if upper is None else upper
    if upper < lower:
        return slice(0, 0)
    for end in (lower, upper):
        if not 1 <= end <= size:
            raise out_of_range(position, end, size)
    return slice(lower - 1, upper)


def _places(x: StanValue, indices: Sequence[StanValue]) -> tuple[StanValue, ...]:
    shape = x.shape
    return tuple([place(index, shape[i], i + 1) for i, index in enumerate(indices)])


def _mesh(indices: Sequence[StanValue], shape: Shape) -> tuple[tuple[StanValue, ...], Shape]:
    """Make an open mesh of indices with several arrays, and find the shape that they select."""
    axes_, saved = [], []
    for at, size in zip(indices, shape, strict=False):
        if type(at) is int:
            axes_.append(np.array([at]))
            continue
        axes_.append(np.arange(size)[at] if type(at) is slice else at)
        saved.append(len(axes_[-1]))
    return np.ix_(*axes_), (*saved, *shape[len(indices) :])


def _is_mixed(indices: Sequence[object]) -> bool:
    """Tell whether NumPy would pair arrays of indices, or move their axis to the front."""
    arrays = sum(type(at) is np.ndarray for at in indices)
    return arrays > 1 or (arrays == 1 and any(type(at) is int for at in indices))


def scalar(x: object) -> StanValue:
    """Convert an element of a plain array to a Python number."""
    return x.item() if isinstance(x, np.generic) else x


def read(x: StanValue, indices: Sequence[object]) -> StanValue:
    """Read `x[indices]`, with integers, slices of Stan's ranges, and arrays of integers."""
    if type(x) is list or type(x) is tuple:
        first, remainder = place(indices[0], len(x), 1), indices[1:]
        if type(first) is int:
            return read(x[first], remainder) if remainder else x[first]
        chosen = x[first] if type(first) is slice else [x[i] for i in first.tolist()]
        return [read(item, remainder) for item in chosen] if remainder else list(chosen)
    positions = _places(x, indices)
    if _is_mixed(positions):
        mesh, shape = _mesh(positions, x.shape)
        return np.reshape(x[mesh], shape)
    return scalar(x[positions if len(positions) > 1 else positions[0]])


# --- writing ---


def owned(x: StanValue) -> StanValue:
    """Copy a value, so that elements may be assigned."""
    kind = type(x)
    if kind is list or kind is tuple:
        return kind(map(owned, x))
    return np.copy(x) if kind is np.ndarray else x.copy() if np.ndim(x) else x


def by_element(x: object) -> StanValue:
    """Copy a value as one variable for each element; a recording keeps arrays whole."""
    return owned(x if is_watched(x) else to_matvar(x))


def receiving(x: object, source: object, matvar: bool) -> StanValue:
    """Return a writeable array: a copy of one that is read elsewhere, or a variable."""
    if type(x) is not np.ndarray:
        return x
    if not is_differentiable(source):
        return x if x.flags.writeable else x.copy()
    if matvar and type(source) in (Var, VarMat) and not is_watched(source):
        return x.astype(object).view(MatVar)
    # `zeros_like` makes a variable of the kind of the source.
    result = np.zeros_like(source, shape=x.shape)
    result[...] = x
    return result


def put(x: StanValue, indices: StanValue, source: StanValue) -> None:
    """Assign `x[places] = source`, with an index of NumPy."""
    x[indices] = to_matvar(source) if type(x) is MatVar else source


def write(
    x: StanValue, indices: Sequence[object], source: StanValue, matvar: bool = False
) -> StanValue:
    """Assign `x[indices] = source` in place; return `x`, or the variable that replaces it."""
    if type(x) is list or type(x) is tuple:
        return _write_tuples(x, indices, source)
    x = receiving(x, source, matvar)
    positions = _places(x, indices)
    if not _is_mixed(positions):
        selected = positions if len(positions) > 1 else positions[0]
        if type(source) not in (float, int):
            _check_fits(np.shape(source), _selected_shape(positions, x.shape))
        put(x, selected, source)
        return x
    mesh, shape = _mesh(positions, x.shape)
    _check_fits(np.shape(source), shape)
    put(x, mesh, np.reshape(source, (*map(len_of, mesh), *x.shape[len(positions) :])))
    return x


def len_of(x: np.ndarray) -> int:
    """Return the number of elements of an axis of an open mesh."""
    return x.size


def _selected_shape(indices: Sequence[StanValue], shape: Shape) -> Shape:
    saved = [
        len(range(*at.indices(size))) if type(at) is slice else len(at)
        for at, size in zip(indices, shape, strict=False)
        if type(at) is not int
    ]
    return (*saved, *shape[len(indices) :])


def _check_fits(shape: Shape, needed: Shape) -> None:
    if shape != needed:
        raise ShapeError(
            f"assignment: the value has shape {shape}, but the part assigned to has shape {needed}!"
        )


def _write_tuples(x: StanValue, indices: Sequence[StanValue], source: StanValue) -> StanValue:
    first, remainder = place(indices[0], len(x), 1), indices[1:]
    if type(first) is int:
        x[first] = write(x[first], remainder, source) if remainder else owned(source)
        return x
    chosen = range(len(x))[first] if type(first) is slice else first.tolist()
    for i, item in zip(chosen, source, strict=True):
        x[i] = write(x[i], remainder, item) if remainder else owned(item)
    return x


def stacked(parts: Sequence[StanValue], kind: Type) -> StanValue:
    """Stack elements into an array, row vector or matrix; `kind` is the type of the whole."""
    if isinstance(innermost(kind), Tuple):
        return list(parts)
    if any(map(is_differentiable, parts)):
        return np.stack([*parts])
    return np.array(parts, dtype_of(kind))


def from_python(x: StanValue, kind: Type) -> StanValue:
    """Convert a value given by Python to the type; a differentiable one stays so."""
    if isinstance(kind, Tuple):
        if not isinstance(x, tuple) or len(x) != len(kind.elements):
            raise TypeError(f"a value is {x!r}, but must be a {kind}!")
        return tuple(map(from_python, x, kind.elements))
    if isinstance(innermost(kind), Tuple):
        assert isinstance(kind, ArrayType)
        return [from_python(item, kind.element) for item in x]
    if is_differentiable(x):
        array = x
    else:
        array = without_missing(x, "a value")
        if array.size == 0 and array.ndim < axes(kind):
            array = array.reshape(array.shape + (0,) * (axes(kind) - array.ndim))
        requested = dtype_of(kind)
        is_valid = requested is not np.int64 or array.dtype.kind in "iub" or not array.size
        if array.dtype.kind not in "iubfc" or not (
            is_valid or (array.dtype.kind == "f" and np.all(array == np.floor(array)))
        ):
            raise TypeError(f"a value is {x!r}, but must be of type {kind}!")
        array = array.astype(requested)
    if np.ndim(array) != axes(kind):
        raise ShapeError(
            f"a value has shape {np.shape(array)}, but must have {axes(kind)} axes, as a {kind}!"
        )
    return array.item() if isinstance(array, np.ndarray) and not array.ndim else array


def leaves(name: str, value: object) -> Iterator[tuple[str, StanValue]]:
    """Yield a value by name; elements of tuples have separate names."""
    if isinstance(value, list):
        for i, x in enumerate(value, 1):
            yield from leaves(f"{name}.{i}", x)
    elif isinstance(value, tuple):
        for i, x in enumerate(value, 1):
            yield from leaves(f"{name}:{i}", x)
    else:
        yield name, to_varmat(value)
