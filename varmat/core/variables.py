"""The variables: `Var`, a scalar; `VarMat`, an array; `View`, a part of an array that owns nothing.

A variable has three slots: its value `_val`, its adjoint `_adj` (None until the first contribution)
and its tape. Reverse rules hand contributions over with one of two methods:

``x._take(c)``
    `c` was made for this call: it may become the adjoint array.
``x._add(c)``
    `c` belongs to something else (the adjoint of a result, or a view): it is copied or only read.

Both sum `c` over the axes along which `x` was broadcast. The operators are in
`varmat.core.operators`, and reading and assigning parts in `varmat.core.indexing`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, MappingView, Sequence, Set
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from varmat.core import dispatch
from varmat.core.arena import LARGE
from varmat.core.array_methods import FLOAT64, ArrayMethods, Container
from varmat.core.data import data as data
from varmat.core.errors import ShapeError, TapeError
from varmat.core.operators import InPlaceOperators, Operators
from varmat.core.tape import Tape, current_tape, join, start_sweep, sweep
from varmat.plain_arrays import (
    address,
    array_length,
    is_scipy_sparse,
    overlaps,
    scalar_item,
    scatter_add,
    unbroadcast,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from varmat.typing import (
        Adjoint,
        Indexing,
        Linear,
        Operand,
        Plain,
        RealArray,
        VarOrVarMat,
        array_operator,
        product,
        reduction,
        scalar_operator,
        shaping,
    )

__all__ = ["Var", "VarMat", "value", "var"]

new = object.__new__


class Variable(Operators, ArrayMethods):
    """A differentiable value on a tape."""

    __slots__ = ()
    _val: Plain
    _adj: Adjoint
    _tape: Tape

    @property
    def _plain(self) -> Operand:
        if self._tape.watch is not None:
            self._tape.watch(self)
        return self._val

    def grad(self, variables: Operand = None) -> Operand:
        """Run the reverse pass from this scalar: afterwards ``x.adj`` is its derivative with
        respect to ``x``.

        Adjoints of an earlier reverse pass are forgotten first.

        Parameters
        ----------
        variables : variable or sequence of variables, optional
            Return copies of their adjoints, in the same order; for a single variable, its adjoint.

        Returns
        -------
        None, list of float and ndarray, or one of these

        Raises
        ------
        ShapeError
            If this is an array.
        TapeError
            If the variable is stale or of another thread, or in a callback of a pass over the same
            tape.
        """
        if self.shape:
            raise ShapeError(
                f"grad: only a scalar has a gradient, this variable has shape {self.shape}; sum "
                "it, or use varmat.jacobian or varmat.vjp"
            )
        backward(self, 1.0)
        if variables is None:
            return None
        # An array alone: its elements would be new variables, which nothing depends on.
        only = isinstance(variables, Variable)
        adjoints = [
            np.copy(x.adj) if x.shape else x.adj for x in ((variables,) if only else variables)
        ]
        return adjoints[0] if only else adjoints


def backward(result: Variable, adjoint: Adjoint) -> None:
    """Run one reverse pass over the tape of `result`, whose adjoint is `adjoint`."""
    tape = result._tape
    _ = tape.top.append, result._plain  # raises if it is stale, or must not be looked at
    if tape.top is not current_tape():
        # Two passes at the same time would add to, and forget, each other's adjoints.
        raise TapeError(
            "grad: the variable belongs to another thread, and only that thread can differentiate "
            "it; pass plain arrays instead"
        )
    if tape.sweeping:
        raise TapeError(
            "grad: a reverse pass over this tape is running; in a callback, open varmat.nested() "
            "to start another"
        )
    forget_outside(tape)
    start_sweep(tape)
    result._adj = adjoint
    sweep(tape)


class Var(Variable):
    """A scalar variable.

    Attributes
    ----------
    val : float
        The value.
    adj : float
        The adjoint: the derivative of what `grad` was called on with respect to this variable.

    Examples
    --------
    >>> import varmat as vm
    >>> x = vm.var(3.0)
    >>> (x * x).grad()
    >>> x, x.adj
    (Var(3.0), 6.0)
    """

    __slots__ = ("_adj", "_tape", "_val")
    shape = ()
    size = 1
    __getitem__ = scalar_item
    __iter__: None = None  # otherwise Python would iterate by __getitem__

    if TYPE_CHECKING:
        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = (
            __rtruediv__
        ) = scalar_operator
        __pow__ = __rpow__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = scalar_operator

        def __neg__(self) -> Var: ...
        def __pos__(self) -> Var: ...
        def __abs__(self) -> Var: ...

    val = Variable._plain

    @property
    def adj(self) -> float:
        return 0.0 if self._adj is None else self._adj

    @adj.setter
    def adj(self, adjoint: float) -> None:
        self._adj = float(adjoint)

    def _take(self, c: Plain) -> None:
        if c.__class__ is not float:
            # Below some 30 elements Python's sum is faster than the set-up of NumPy's.
            c = sum(c.ravel().tolist()) if c.size < 32 else float(np.add.reduce(c, None))
        a = self._adj
        self._adj = c if a is None else a + c

    _add = _take

    def __repr__(self) -> str:
        return f"Var({self._val!r})"


class VarMat(InPlaceOperators, Container, Variable):
    """An array variable: one node that owns an array of values and an array of adjoints.

    It has the operators, attributes and methods of an ndarray.

    Attributes
    ----------
    val : ndarray
        A read-only copy of the values.
    adj : ndarray
        The adjoints. The array itself, so that ``x.adj += ...`` works in callbacks; a later reverse
        pass makes another one.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> x = vm.var([[1.0, 2.0], [3.0, 4.0]])
    >>> np.sum(x[0] * x[1]).grad()
    >>> x.adj
    array([[3., 4.],
           [1., 2.]])
    """

    __slots__ = ("_adj", "_tape", "_val")
    __len__ = array_length

    if TYPE_CHECKING:
        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = (
            __rtruediv__
        ) = array_operator
        __pow__ = __rpow__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = array_operator
        __getitem__: Indexing
        __matmul__ = __rmatmul__ = product
        max = mean = min = prod = ptp = std = sum = var = reduction
        clip = copy = cumprod = cumsum = diagonal = flatten = ravel = repeat = reshape = squeeze = (
            swapaxes
        ) = shaping
        take = transpose = shaping
        T: VarMat
        mT: VarMat  # noqa: N815 - NumPy's name

        def __iter__(self) -> Iterator[VarOrVarMat]: ...
        def __neg__(self) -> VarMat: ...
        def __pos__(self) -> VarMat: ...
        def __abs__(self) -> VarMat: ...

    @property
    def val(self) -> np.ndarray:
        copy = np.array(self._plain)
        copy.flags.writeable = False
        return copy

    @property
    def adj(self) -> np.ndarray:
        return self._writable_adjoint()

    @adj.setter
    def adj(self, adjoint: Adjoint) -> None:
        if adjoint is not self._adj:
            self._adj = np.array(np.broadcast_to(adjoint, self._val.shape), FLOAT64, order="C")

    @property
    def shape(self) -> tuple[int, ...]:
        return self._val.shape  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        return self._val.size  # type: ignore[no-any-return]

    def _take(self, c: Plain) -> None:
        if c.shape != self._val.shape:
            c = unbroadcast(c, self._val.shape)
        a = self._adj
        if a is None:
            # Adjoints are laid out as the values. A read-only broadcast stays one until something
            # is added.
            as_it_is = c.ndim == 1 or c.flags.c_contiguous or not c.flags.writeable
            self._adj = c if as_it_is else np.array(c, order="C")
        else:
            try:
                np.add(a, c, a)
            except ValueError:  # a read-only broadcast, see _add
                self._adj = np.add(a, c, order="C")

    def _add(self, c: Plain) -> None:
        if self._adj is None and c.shape == self._val.shape:
            # The adjoint of a result is final when its rule runs. So a large one is shared,
            # read-only, instead of copied, and so is one number everywhere, for which products have
            # a short cut.
            c = c.view() if c.size > LARGE or 0 in c.strides else np.array(c, order="C")
            if c.base is not None:
                c.flags.writeable = False
        self._take(c)

    def _writable_adjoint(self) -> np.ndarray:
        """Return the adjoint array, to be added to in place."""
        a = self._adj
        if a is None:
            self._adj = np.zeros(self._val.shape)
        elif not a.flags.writeable:
            self._adj = a.copy()
        return self._adj  # type: ignore[no-any-return]

    def _scatter(self, index: object, c: object) -> None:
        """Add a contribution to elements, which may be named several times."""
        scatter_add(self._writable_adjoint(), index, c)

    def __repr__(self) -> str:
        return f"VarMat({np.array2string(self._val, separator=', ', prefix='VarMat(')})"


class Large(VarMat):
    """A large array variable. Its values lie in the arena, or a leaf reads the caller's own array
    until something is assigned into it.
    """

    __slots__ = ()

    def own(self) -> None:
        """Take a copy of the caller's values, for this variable and all views of it."""
        if not self._val.flags.writeable:
            self._val = self._val.copy()
            for view in self._tape.kept:
                if isinstance(view, View) and view.root is self:
                    view._val = view.how(view.parent._val)
                    if type(view) is Spread:
                        view._val.flags.writeable = False


def adjoint_space(x: Variable) -> Operand:
    """Return memory for the first contribution to an array: the arena's for a large one, but only
    once, because the adjoint may be kept.
    """
    space = x._tape.adjoint_buffers.pop(id(x._val), None)
    return np.empty(x.shape) if space is None or space.shape != x.shape else space


class View(VarMat):
    """A basic slice, transpose or reshape of a parent, whose values and adjoints it shares.

    It is not on a tape. `how` takes the part of the parent: of the values now, and of the adjoints
    when they are needed. `root` is the first parent.
    """

    __slots__ = ("how", "parent", "root")
    how: Linear
    parent: VarMat
    root: VarMat

    def _part(self, a: Operand) -> Operand:
        """Take this part of an array that is laid out like the root."""
        part = a
        if self.parent is self.root:
            part = self.how(a)
        else:
            hows, view = [], self
            while view is not self.root:  # a loop over x = x[1:] makes views of views of any depth
                hows.append(view.how)
                view = view.parent  # type: ignore[assignment]
            for how in reversed(hows):
                part = how(part)
        if type(part) is np.ndarray and not part.flags.writeable and a.flags.writeable:
            # NumPy makes some views read-only.
            flat = a.reshape(-1)
            offset = (address(part) - address(a)) // flat.strides[0] if part.size else 0
            part = np.lib.stride_tricks.as_strided(flat[offset:], part.shape, part.strides)
        return part

    @property
    def _adj(self) -> Operand:
        a = self.root._adj
        return None if a is None else self._part(a)

    @_adj.setter
    def _adj(self, adjoint: Adjoint) -> None:
        self._writable_adjoint()[...] = adjoint

    def _take(self, c: Plain) -> None:
        val, root = self._val, self.root
        a = root._adj
        if c.shape != val.shape:
            c = unbroadcast(c, val.shape)
        if a is not None or val.size != root._val.size:
            # A part of an adjoint that the root shares may be a copy, and writes to it would be
            # lost.
            part = self._part(root._writable_adjoint() if a is None or not a.flags.writeable else a)
            np.add(part, c, part)
        elif val.flags.c_contiguous:  # the first contribution, to all elements, in another shape
            root._add(c.reshape(root._val.shape))
        else:
            space = adjoint_space(root)
            self._part(space)[...] = c
            root._take(space)

    _add = _take

    def _writable_adjoint(self) -> np.ndarray:
        return self._part(self.root._writable_adjoint())  # type: ignore[no-any-return]


class LargeView(View):
    """A view with more than `LARGE` elements."""

    __slots__ = ()


class Spread(View):
    """A view that repeats elements: a broadcast, or windows.

    Its adjoints cannot be written into the root's, because a repeated element has only one number
    there: contributions are summed. A user reads that sum for each repetition.
    """

    __slots__ = ()

    @View._adj.setter  # type: ignore[attr-defined, misc, untyped-decorator]
    def _adj(self, adjoint: Adjoint) -> None:
        self.root._adj = None
        self._take(adjoint)

    def _take(self, c: Plain) -> None:
        val = self._val
        if c.shape != val.shape:
            c = unbroadcast(c, val.shape)
        repeated = tuple(i for i, step in enumerate(val.strides) if not step)
        first = tuple(slice(0, 1) if i in repeated else slice(None) for i in range(val.ndim))
        c = np.add.reduce(c, repeated, keepdims=True)
        a = self.root._writable_adjoint()
        part = self._part(a)[first]
        if overlaps(part):
            indices = self._part(np.arange(a.size).reshape(a.shape))[first]
            a += np.bincount(indices.ravel(), c.ravel(), a.size).reshape(a.shape)
        else:
            np.add(part, c, part)

    _add = _take

    def _scatter(self, index: object, c: object) -> None:
        a = np.zeros(self._val.shape)
        scatter_add(a, index, c)
        self._take(a)


VARIABLES = frozenset({Var, VarMat, Large, View, LargeView, Spread})
ARRAYS = VARIABLES - {Var}


def root_of(x: object) -> Operand:
    """Return the variable whose values a view shares; return any other variable itself."""
    return x.root if isinstance(x, View) else x


# The tape that a variable, or a dual over variables, is on.
own_tape = attrgetter("_tape")


def outsiders(tape: Tape) -> list[Variable]:
    """Find the variables of other tapes that entries of this one use."""
    used = [source for assignment in tape.assignments for _, source, _ in assignment]
    used += [part for _, _, x, y in tape for part in (x, y)]
    used += [x for part in used if type(part) is list or type(part) is tuple for x in part]
    return [x for x in used if type(x) in VARIABLES and x._tape is not tape]


def forget_outside(tape: Tape) -> None:
    """Forget the adjoints that an earlier reverse pass left in variables of outer scopes that this
    one uses.

    In a callback of a reverse pass of an outer scope the adjoints belong to it, and are added to.
    """
    others = tape.chain()[1:]
    # Skip the scan if the outer scopes are empty.
    stale = any(outer.swept and (outer or outer.leaves) for outer in others)
    if stale and not any(outer.sweeping for outer in others):
        for x in outsiders(tape):
            root_of(x)._adj = None


def make_view(parent: VarMat, how: Linear, val: np.ndarray) -> View:
    """Make the view of `parent` whose values are ``val = how(parent's values)``."""
    # Among functions that take views, only those made by `partial` repeat elements.
    if (type(how) is partial or type(parent) is Spread) and overlaps(val):
        view: View = new(Spread)
        val.flags.writeable = False
    else:
        view = new(View if val.size <= LARGE else LargeView)
    view.parent, view.how, view._val, view._tape = parent, how, val, parent._tape
    view.root = root = root_of(parent)
    if type(root) is Large and not root._val.flags.writeable:
        # Not in the root: a cycle would hold the adjoint until the collector comes.
        root._tape.kept.append(view)
    return view


def make_leaf(val: Operand, tape: Tape) -> Operand:
    """Make a variable without an operation, from a float or an array nothing else writes to."""
    leaf: Operand = new(Var if type(val) is float else VarMat if val.size <= LARGE else Large)
    leaf._val, leaf._adj, leaf._tape = val, None, tape
    tape.leaves.append(leaf)
    return leaf


def borrow_leaf(x: Operand, tape: Tape) -> Operand:
    """Make a leaf of a float or a float64 array for a functional. A large array is read in place
    instead of being copied.
    """
    if type(x) is float or x.size <= LARGE or not x.flags.c_contiguous:
        return make_leaf(x if type(x) is float else x.copy(), tape)
    values = x.view()
    values.flags.writeable = False
    return make_leaf(values, tape)


if TYPE_CHECKING:

    @overload
    def var(x: float) -> Var: ...
    @overload
    def var(x: RealArray) -> VarMat: ...
    @overload
    def var(x: ArrayLike) -> Operand: ...


def var(x: ArrayLike) -> Operand:
    """Make a variable: a `Var` from a scalar, a `VarMat` from anything array-like, a `ComplexVar`
    from complex numbers.

    Parameters
    ----------
    x : scalar or array_like of real or complex numbers
        The values; they are copied and promoted to float64, or two arrays of it. A sparse array or
        matrix of SciPy makes a `SparseVar`.

    Returns
    -------
    Var or VarMat, ComplexVar for complex numbers, or SparseVar

    Raises
    ------
    TypeError
        For objects, and for what is a variable already.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> x = vm.var([1.0, 2.0, 3.0])
    >>> np.sum(x**2).grad()
    >>> x.adj
    array([2., 4., 6.])
    """
    if isinstance(x, ArrayMethods):
        raise TypeError("var: the argument is a variable already; varmat.value(x) gives its values")
    if is_scipy_sparse(x):
        return dispatch.HOOKS["sparse"]("var", x)
    try:
        val = data(x, "var: the argument")
    except dispatch.ComplexDataError:
        return dispatch.complex_answers()[var](x)
    tape = current_tape()
    if type(val) is float:
        return make_leaf(val, tape)
    if val.size <= LARGE:
        return make_leaf(np.array(val, order="C"), tape)
    own = tape.workspace(val.shape)
    np.copyto(own, val)
    return make_leaf(own, tape)


if TYPE_CHECKING:

    @overload
    def value(x: Var) -> float: ...
    @overload
    def value(x: VarMat) -> np.ndarray: ...
    @overload
    def value(x: float) -> float: ...
    @overload
    def value(x: np.ndarray) -> np.ndarray: ...
    @overload
    def value(x: object) -> Operand: ...


def value(x: object) -> Operand:
    """Return the plain value of a variable, as a copy; return data unchanged.

    Tuples (named ones too), lists and dicts are searched.

    Parameters
    ----------
    x : Var, VarMat, MatVar, Dual, SparseVar or data

    Returns
    -------
    float, ndarray, scipy.sparse.csr_array or the argument

    Raises
    ------
    TypeError
        For classes, and for sets, views of dicts, deques and iterators, in which variables would
        not be found.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.value(vm.var([1.0, 2.0]) * 2.0)
    array([2., 4.])
    """
    if isinstance(x, (tuple, list)):
        items = [value(item) for item in x]
        return items if isinstance(x, list) else like(x, items)
    if isinstance(x, dict):
        return {key: value(item) for key, item in x.items()}
    if isinstance(x, (type, Set, MappingView, deque)) or hasattr(x, "__next__"):
        kind = f"class {x.__name__}" if isinstance(x, type) else type(x).__name__
        raise TypeError(
            f"value: the argument is a {kind}, but must be a variable, or a tuple, list or dict of "
            "them, or data!"
        )
    plain = getattr(x, "_plain", x)
    return plain.copy() if plain is not x and isinstance(plain, np.ndarray) else plain


def make_result(val: Operand, tape: Tape) -> Variable:
    """Make a variable for the value of an operation: `Var` for a scalar, `VarMat` for an array."""
    result: Variable
    if type(val) is np.ndarray and val.ndim:
        result, flags = new(VarMat if val.size <= LARGE else Large), val.flags
        # Row-major, and such that it can be assigned to.
        as_it_is = flags.c_contiguous and flags.writeable and val.dtype is FLOAT64
        result._val = val if as_it_is else np.array(val, FLOAT64, order="C")
    else:
        result = new(Var)
        result._val = float(val)
    result._adj, result._tape = None, tape
    return result


class Outputs(tuple["Variable", ...]):
    """The results of one entry with several, as the reverse pass sees them."""

    __slots__ = ()
    # Makes the tuples of values and adjoints for the reverse rule.
    kind: Any = tuple

    @property
    def _val(self) -> tuple[Plain, ...]:
        return self.kind(item._val for item in self)  # type: ignore[no-any-return]

    @property
    def _adj(self) -> tuple[Adjoint, ...] | None:
        adjoints = self.kind(item._adj for item in self)
        return adjoints if any(a is not None for a in adjoints) else None

    @_adj.setter
    def _adj(self, adjoint: None) -> None:
        for item in self:
            item._adj = adjoint


def like(pattern: tuple[Operand, ...], items: Iterable[Operand]) -> Operand:
    """Make a tuple of the type of `pattern`, a tuple or a named one."""
    return type(pattern)(*items) if hasattr(pattern, "_fields") else tuple(items)


def tape_of(operands: Sequence[Operand]) -> Tape | None:
    """Return the tape that records an operation on `operands`; None if none is a variable."""
    tape: Tape | None = None
    for x in operands:
        if type(x) in VARIABLES:
            tape = x._tape if tape is None or tape is x._tape else join(tape, x._tape)
    return None if tape is None else tape.top
