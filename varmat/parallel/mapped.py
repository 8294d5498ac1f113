"""Differentiable sums and vectors of many jobs, shared out to the workers of an executor."""

from __future__ import annotations

import os
import uuid
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dispatch import plain
from varmat.core.dual import value_now
from varmat.core.errors import DomainError, ShapeError
from varmat.core.matvar import MatVar
from varmat.core.operation import Saved, is_differentiable, operation
from varmat.core.variables import like
from varmat.parallel.executors import Asking, answers, check, sendable, workers_of
from varmat.parallel.shares import MOST_WORKS, Request, VariablePlace, Work, keep, places_of
from varmat.programs.build.symbol import refuse
from varmat.typing import (
    Adjoint,
    Function,
    Index,
    Linear,
    Operand,
    Plain,
    Result,
    array_valued,
    scalar_valued,
)

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["map_rect", "reduce_sum", "reduce_sum_static"]

# Arrays of at most this many bytes are compared by their contents, larger ones by identity.
SMALL = 4096
# Chunks of jobs for each worker: several, so that a slow or late worker does not delay the others.
CHUNKS = 4


class MappedCall(NamedTuple):
    """A work and how to request it: the settings of the operation.

    Attributes
    ----------
    key : str
    work : Work
        With all its jobs.
    common : frozenset of int
        The operands that each job takes as a whole.
    directions : tuple of int
        Operands along which the work is differentiated.
    executor : Executor, str or None
    """

    key: str
    work: Work
    common: frozenset[int]
    directions: tuple[int, ...]
    executor: Executor | str | None

    def along(self, leaf: int) -> MappedCall:
        """Differentiate along an operand; the direction is a further operand."""
        direction = self.work.leaves + len(self.directions)
        common = self.common | {direction} if leaf in self.common else self.common
        return self._replace(common=common, directions=(*self.directions, leaf))

    def requests(
        self, leaves: Sequence[Operand], has_gradient: bool, cotangents: list[Operand] | None = None
    ) -> list[Request]:
        """Make the requests to the workers, one for each chunk of neighbouring jobs."""
        count = len(self.work.jobs)
        most = count if self.work.is_static else CHUNKS * workers_of(self.executor)
        chunks = np.array_split(np.arange(count), min(count, most)) if count else []
        common = {leaf: leaves[leaf] for leaf in self.common}
        result = []
        for chunk in chunks:
            jobs = tuple(chunk.tolist())
            own = [[_number(x.of(leaves[x.leaf])) for x in self.own_places(job)] for job in jobs]
            chosen = None if cotangents is None else [cotangents[job] for job in jobs]
            what = self.key, jobs, self.directions, has_gradient
            result.append(Request(*what, common, own, chosen))
        return result

    def own_places(self, job: int) -> list[VariablePlace]:
        """List the places of a job whose operands are not common, in the order of its numbers."""
        return [place for place in self.places(job) if place.leaf not in self.common]

    def places(self, job: int) -> list[VariablePlace]:
        """List the places of a job, in the order of its numbers."""
        result: list[VariablePlace] = self.work.share(job, self.directions).places
        return result

    def answers(self, requests: list[Request]) -> list[Result]:
        keep(self.key, self.work)
        return answers(Asking(self.work.name, self._parcel), requests, self.executor)

    def _parcel(self, request: Request, has_work: bool) -> tuple[bytes | None, bytes]:
        """Pickle the work, if `has_work`, and jobs of a request, for another process."""
        jobs = {job: self.work.jobs[job] for job in request.jobs}
        return sendable(self.work.name, self.work) if has_work else None, sendable(
            self.work.name, jobs
        )


def _number(x: Operand) -> Result:
    return np.ascontiguousarray(x) if np.ndim(x) else float(x)


def _values(call: MappedCall, result: list[Result]) -> Result:
    """Return the user's result: the sum or the vector."""
    values = [value for answer in result for value in answer.values]
    if call.work.is_sum:
        return float(sum(float(value[0]) for value in values))
    return np.concatenate(values) if values else np.zeros(0)


def _gradients(
    call: MappedCall, leaves: Sequence[Operand], requests: list[Request], result: list[Result]
) -> list[Plain]:
    """Add up the gradients of the workers, in the order of the jobs."""
    total: list[Plain] = [np.zeros(np.shape(x)) for x in leaves]
    for request, answer in zip(requests, result, strict=True):
        for leaf, c in answer.common.items():
            total[leaf] += c
        for job, own in zip(request.jobs, answer.own, strict=True):
            for place, c in zip(call.own_places(job), own, strict=True):
                total[place.leaf][... if place.index is None else place.index] += c
    return [x if x.shape else float(x) for x in total]


def called(call: MappedCall, leaves: Sequence[object]) -> Result:
    """Compute the result for operands of any kind."""
    if any(map(is_differentiable, leaves)):
        return shared_out(*leaves, call=call)
    return _values(call, call.answers(call.requests(leaves, False)))


@operation(variadic=True)
def shared_out(*leaves: object, call: MappedCall, workspace: object = None) -> Plain:
    if not all(isinstance(x, (float, np.ndarray)) for x in leaves):
        refuse()  # a function of the user is not run on symbols
    requests = call.requests(leaves, workspace is not None)
    result = call.answers(requests)
    # Compute the gradient of the sum at once: it is what the reverse pass usually needs.
    gradients = None if workspace is None else _gradients(call, leaves, requests, result)
    sizes = [value.size for answer in result for value in answer.values]
    return Saved(_values(call, result), gradients=gradients, sizes=sizes)


@shared_out.reverse
def shared_out_reverse(
    g: Adjoint,
    r: Plain,
    *leaves: Plain,
    call: MappedCall,
    gradients: list[Plain] | None,
    sizes: list[int],
) -> tuple[Adjoint, ...]:
    weights = np.ravel(g)
    if call.work.is_sum or not weights.size or (weights == weights[0]).all():
        weight = float(weights[0]) if weights.size else 0.0
        if gradients is None:
            requests = call.requests(leaves, True)
            gradients = _gradients(call, leaves, requests, call.answers(requests))
        return tuple(weight * x for x in gradients)
    requests = call.requests(leaves, True, np.split(weights, np.cumsum(sizes)[:-1]))
    return tuple(_gradients(call, leaves, requests, call.answers(requests)))


@shared_out.tangent
def shared_out_tangent(r: Operand, *leaves: Operand, call: MappedCall) -> tuple[Linear, ...]:
    return tuple([lambda t, i=i: called(call.along(i), [*leaves, t]) for i in range(len(leaves))])


# --- from the arguments of the user to a call ---


class Walk:
    """Takes arguments apart into variables, which become operands, and a template.

    Attributes
    ----------
    leaves : list
        The variables, in order.
    held : list
        Objects that are recognised by their identity: they must not be garbage collected.
    """

    def __init__(self) -> None:
        self.leaves: list[Operand] = []
        self.references: list[object] = []
        self._seen: set[int] = set()

    def __call__(self, tree: Operand) -> tuple[Operand, Operand]:
        """Return the template of an argument, and a mark: equal marks mean arguments that differ
        only in the values of variables.
        """
        if isinstance(tree, (ArrayMethods, MatVar)) or (
            not isinstance(tree, (list, tuple)) and is_differentiable(tree)
        ):
            self.leaves.append(tree)
            return VariablePlace(len(self.leaves) - 1), VariablePlace
        if isinstance(tree, dict):
            parts = {key: self(item) for key, item in tree.items()}
            copy = tree.copy()
            copy.update((key, part[0]) for key, part in parts.items())
            return copy, (type(tree), *((key, part[1]) for key, part in parts.items()))
        if isinstance(tree, (list, tuple)):
            pairs = [self(item) for item in tree]
            items, marks = [item for item, _ in pairs], (mark for _, mark in pairs)
            return items if isinstance(tree, list) else like(tree, items), (type(tree), *marks)
        return self._data(tree)

    def _data(self, x: object) -> tuple[Operand, Operand]:
        if isinstance(x, np.ndarray) and x.nbytes <= SMALL and not x.dtype.hasobject:
            return x.copy(), (type(x), x.dtype.str, x.shape, x.tobytes())
        if isinstance(x, (int, float, complex, str, bytes, bool, type(None), np.generic)):
            return x, (type(x), repr(x))
        return x, (type(x), self._identity(x))

    def _identity(self, x: Operand) -> int:
        self.references.append(x)
        return id(x)

    def function(self, f: Function) -> Result:
        """Return a mark of a function, equal when the same definition is executed again, as in a
        function that is called twice.
        """
        code = getattr(f, "__code__", None)
        if code is None or id(f) in self._seen:
            return self._identity(f)
        self._seen.add(id(f))
        cells = f.__closure__ or ()
        try:
            read = [cell.cell_contents for cell in cells]
        except ValueError:  # a cell that is not assigned yet
            return self._identity(f)
        values = [*read, *(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
        marks = [self.function(x) if hasattr(x, "__code__") else self(x)[1] for x in values]
        return (self._identity(code), self._identity(f.__globals__), *marks)


# The most recent calls, by their marks.
_CALLS: OrderedDict[Hashable, tuple[Result, Result]] = OrderedDict()
_LOCK = Lock()


def _call(
    name: str,
    f: Function,
    is_sum: bool,
    shared: tuple[object, ...],
    own: tuple[object, ...],
    split: Callable[[Operand], list[Operand]],
    executor: Executor | str | None,
    sizes: object,
) -> tuple[MappedCall, list[Operand]]:
    """Return the call for these arguments, and its operands.

    `split` takes the template of the arguments that jobs do not share, and returns the arguments of
    each job. It also depends on `sizes`.
    """
    of_function, walk = Walk(), Walk()
    mark_of_f = of_function.function(f)
    template_of_shared, mark_of_shared = walk(shared)
    template_of_own, mark_of_own = walk(own)
    shapes = tuple(np.shape(value_now(x)) for x in walk.leaves)
    mark = (name, mark_of_f, mark_of_shared, mark_of_own, shapes, sizes, os.getpid())
    with _LOCK:
        entry = _CALLS.get(mark)
        if entry is not None:
            _CALLS.move_to_end(mark)
    if entry is None:
        work = Work(name, f, template_of_shared, is_sum, len(walk.leaves))
        work.jobs = dict(enumerate(split(template_of_own)))
        common = frozenset(place.leaf for place in places_of(template_of_shared))
        call = MappedCall(uuid.uuid4().hex, work, common, (), None)
        entry = call, (of_function.references, walk.references)
        with _LOCK:
            if not of_function.leaves:
                _CALLS[mark] = entry
            while len(_CALLS) > MOST_WORKS:
                _CALLS.popitem(last=False)
    call, _ = entry
    return MappedCall(call.key, call.work, call.common, call.directions, executor), walk.leaves


def _items(name: str, title: str, x: object) -> int:
    """Count the items of a container."""
    if isinstance(x, (list, tuple)):
        return len(x)
    shape = np.shape(value_now(x))
    if not shape:
        raise ShapeError(f"{name}: {title} is a scalar, but must be an array or a list!")
    return int(shape[0])


def _container(x: object) -> Operand:
    """Return a container of items; anything but a list, tuple or variable becomes an array."""
    is_one = isinstance(x, (list, tuple, ArrayMethods, MatVar, np.ndarray))
    return x if is_one else np.asarray(plain(x))


def _item(x: Operand, index: Index) -> Result:
    """Take an item or a slice of a template."""
    return VariablePlace(x.leaf, index) if type(x) is VariablePlace else x[index]


@array_valued
def map_rect(
    f: Function,
    shared: Operand,
    jobs: Operand,
    *data: Operand,
    executor: Executor | str | None = None,
) -> Result:
    """Apply a function to many sets of parameters and data, and join the results in a vector.

    Parameters
    ----------
    f : callable
        ``f(shared, job, *data_of_job)`` returns a number or a vector, whose size may depend on the
        job but not on the parameters. Written in NumPy; what it depends on must be among its
        arguments.
    shared : scalar, array_like or nested structure of them
        Parameters that all jobs have in common.
    jobs : array_like or list, m items along the first axis
        The parameters of each job.
    *data : array_like or list, m items along the first axis
        The data of each job: in Stan an array of reals and one of integers.
    executor : concurrent.futures.Executor, str or None, keyword only
        Runs the jobs: any executor, or ``"threads"`` (the default: one for each processor),
        ``"processes"`` (of loky) or ``"serial"`` (this thread).

    Returns
    -------
    ndarray or VarMat, shape (sum of the sizes,)

    Raises
    ------
    ShapeError
        If `jobs` and `data` differ in the number of items.
    TapeError
        If `f` uses a variable from outside.
    TypeError
        If `executor` is not an executor, or the function cannot be sent to another process.
    Exception
        The error of the first job that fails, with its traceback and a note that names the job.

    Notes
    -----
    Scalars and arrays among the arguments may be variables, to any depth of lists, tuples and
    dicts. Each worker computes the values of its jobs and the gradient of their sum. If the reverse
    pass needs another combination of the results, it asks the workers again. Derivatives along a
    direction, and so Hessian products, are shared out too.

    The function and the data are sent to a worker once, and each job is recorded there after some
    calls (see `varmat.recorded`). A later call uses them again if the function, the structure and
    the small data are equal and arrays of more than 4 kB are the same objects. Large arrays must
    therefore not be overwritten between calls. Calls within `f` are not shared out again.

    References
    ----------
    * Stan Functions Reference, "Higher-order map".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def f(phi, theta, x):
    ...     return phi * theta * x
    >>> vm.map_rect(f, 2.0, np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0]))
    array([ 20.,  80., 180.])
    >>> def total(phi):
    ...     return np.sum(vm.map_rect(f, phi, [1.0, 2.0, 3.0], [10.0, 20.0, 30.0]))
    >>> vm.gradient(total, 2.0)
    140.0
    """
    name = "map_rect"
    _check_function(name, f)
    check(name, executor)
    jobs, data = _container(jobs), tuple(map(_container, data))
    count = _items(name, "jobs", jobs)
    for i, item in enumerate(data):
        result = _items(name, f"data argument {i + 1}", item)
        if result != count:
            raise ShapeError(
                f"{name}: data argument {i + 1} has {result} items, but must have one for each of "
                f"the {count} jobs!"
            )

    def split(own: Operand) -> list[Operand]:
        return [tuple(_item(x, i) for x in own) for i in range(count)]

    call, leaves = _call(name, f, False, (shared,), (jobs, *data), split, executor, None)
    return called(call, leaves)


@scalar_valued
def reduce_sum(
    f: Function,
    x: Operand,
    grainsize: int,
    *shared: Operand,
    executor: Executor | str | None = None,
) -> Result:
    return _reduce_sum("reduce_sum", f, x, grainsize, shared, executor)


@scalar_valued
def reduce_sum_static(
    f: Function,
    x: Operand,
    grainsize: int,
    *shared: Operand,
    executor: Executor | str | None = None,
) -> Result:
    return _reduce_sum("reduce_sum_static", f, x, grainsize, shared, executor)


def _check_function(name: str, f: Function) -> None:
    if not callable(f):
        raise TypeError(f"{name}: the function is a {type(f).__name__}, but must be a function!")


def _reduce_sum(
    name: str,
    f: Function,
    x: Operand,
    grainsize: int,
    shared: tuple[Operand, ...],
    executor: Executor | str | None,
) -> Result:
    """Sum a function of slices, computed by several workers.

    Parameters
    ----------
    f : callable
        ``f(x_slice, start, end, *shared)`` returns the sum over the items of ``x_slice``, which is
        ``x[start:end]``. Written in NumPy; what it depends on must be among its arguments.
    x : array_like or list
        The items to slice, along the first axis.
    grainsize : int
        {grainsize}
    *shared
        Further arguments of `f`; each slice gets all of them.
    executor : concurrent.futures.Executor, str or None, keyword only
        Runs the jobs: any executor, or ``"threads"`` (the default: one for each processor),
        ``"processes"`` (of loky) or ``"serial"`` (this thread).

    Returns
    -------
    float or Var
        The sum; zero if `x` has no items.

    Raises
    ------
    DomainError
        If `grainsize` is not positive.
    ShapeError
        If `f` returns an array, or `x` is a scalar.
    TapeError
        If `f` uses a variable from outside.
    TypeError
        If `executor` is not an executor, or the function cannot be sent to another process.
    Exception
        The error of the first slice that fails, with its traceback and a note that names it.

    Notes
    -----
    Scalars and arrays among `x` and `shared` may be variables, to any depth of lists, tuples and
    dicts. Each worker computes the values and gradients of its slices; their sum is one entry of
    the tape. Derivatives along a direction, and so Hessian products, are shared out too.
    {order}

    The function and the data are sent to a worker once, and each slice is recorded there{when}
    (see `varmat.recorded`). A later call uses them again if the function, the structure and
    the small data are equal and arrays of more than 4 kB are the same objects. Large arrays must
    therefore not be overwritten between calls. Another process is sent its slices of `x`, but all
    of `shared`: data of the items belong in `x`, as columns of one array, or in `map_rect` if they
    are of several kinds. Calls within `f` are not shared out again.

    References
    ----------
    * Stan Functions Reference, "Reduce-sum function".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def part(y, start, end, mu):
    ...     return vm.normal_lpdf(y, mu, 1.0)
    >>> y = np.array([0.5, -1.0, 2.0, 0.0])
    >>> vm.value_and_grad(lambda mu: vm.{name}(part, y, 2, mu))(0.0)
    (-6.30075413281869, 1.5)
    """
    _check_function(name, f)
    check(name, executor)
    if isinstance(grainsize, bool) or not isinstance(grainsize, (int, np.integer)):
        raise TypeError(f"{name}: grainsize is {grainsize!r}, but must be an integer!")
    if grainsize < 1:
        raise DomainError(f"{name}: grainsize is {int(grainsize)}, but must be positive!")
    x = _container(x)
    count = _items(name, "x", x)
    if name == "reduce_sum" and count:
        slices = max(1, min(count // int(grainsize), CHUNKS * workers_of(executor)))
        ends = np.linspace(0, count, slices + 1).astype(int).tolist()
    else:
        ends = [*range(0, count, int(grainsize)), count]

    def split(own: object) -> list[Operand]:
        return [(_item(own, slice(lo, hi)), lo, hi) for lo, hi in pairwise(ends)]

    call, leaves = _call(name, f, True, shared, x, split, executor, tuple(ends))
    return called(call, leaves)


reduce_sum.__doc__ = (_reduce_sum.__doc__ or "").format(
    name="reduce_sum",
    grainsize="The fewest items that a slice should have; positive. There are at most four slices\n"
    "        for each worker.",
    when=" after some calls",
    order="The slices depend on the number of workers, and so do the last digits of the sum; see\n"
    "    `reduce_sum_static`.",
)
reduce_sum_static.__doc__ = (_reduce_sum.__doc__ or "").format(
    name="reduce_sum_static",
    grainsize="How many items each slice has, but for the last one; positive.",
    when="",
    order="The last digits do not depend on the number of workers, nor on how often the sum was\n"
    "    computed: each slice takes a request of its own, and is recorded at the first.",
)
