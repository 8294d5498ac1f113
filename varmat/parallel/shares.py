"""The state of workers: functions, the data of jobs, their values and derivatives.

A worker is a thread or another process, maybe on another machine. It is sent `run` with numbers and
the key of a work. A worker without this work reports that, and is then sent the work, once. A
thread of the process that made the work has it from the start.
"""

from __future__ import annotations

import os
import pickle
import threading
import traceback
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from copy import copy
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from varmat.core.dual import value_now
from varmat.core.errors import ShapeError
from varmat.core.operation import is_differentiable
from varmat.core.variables import like
from varmat.derivatives.inputs_and_outputs import lost
from varmat.derivatives.recorded import RecordedIfPossible
from varmat.derivatives.reverse import value_and_grad
from varmat.solvers.inner import Inner
from varmat.typing import Function, Index, Operand, Plain, Result, Settings

# How many works a process keeps, those used last; how often a gradient is evaluated before it is
# recorded.
MOST_WORKS = 16
EAGER = 2


class VariablePlace(NamedTuple):
    """The place of a variable among the arguments: an operand, or an item or slice of it."""

    leaf: int
    index: Index = None

    def of(self, x: Operand) -> Result:
        return x if self.index is None else x[self.index]


class Here:
    """Whether this thread is working on a share.

    If so, its calls are not shared out again: all workers may be waiting. Threads are known by
    their numbers, because thread-local data of a thread that Python did not start are lost after
    each call.
    """

    def __init__(self) -> None:
        self._busy: set[int] = set()

    @property
    def is_busy(self) -> bool:
        return threading.get_ident() in self._busy

    @is_busy.setter
    def is_busy(self, is_so: bool) -> None:
        (self._busy.add if is_so else self._busy.discard)(threading.get_ident())

    def release(self, thread: int) -> None:
        """Forget a thread that has ended: a new one may get its number."""
        self._busy.discard(thread)

    def forget(self) -> None:
        """Forget the other threads: a forked child has only the thread that forked it."""
        self._busy &= {threading.get_ident()}


here = Here()


def places_of(tree: object) -> list[VariablePlace]:
    """List the places in a template, in order."""
    if type(tree) is VariablePlace:
        return [tree]
    if isinstance(tree, dict):
        return [place for item in tree.values() for place in places_of(item)]
    if isinstance(tree, (list, tuple)):
        return [place for item in tree for place in places_of(item)]
    return []


def filled(tree: object, numbers: Iterator[object]) -> Result:
    """Replace each place of a template by the next number."""
    if type(tree) is VariablePlace:
        return next(numbers)
    if isinstance(tree, dict):
        result = copy(tree)
        result.update((key, filled(item, numbers)) for key, item in tree.items())
        return result
    if isinstance(tree, (list, tuple)):
        items = [filled(item, numbers) for item in tree]
        return items if isinstance(tree, list) else like(tree, items)
    return tree


class Work:
    """A function with the arguments that all jobs have in common, and its jobs.

    Attributes
    ----------
    name : str
        The function that the user called.
    function : callable
    shared : tuple
        The common arguments, with a `VariablePlace` for each variable.
    is_sum : bool
        If True, ``f(*own, *shared)`` returns numbers, which are added; else ``f(*shared, *own)``
        returns vectors.
    is_static : bool
        Whether the last digits of a sum are the same in all calls: jobs are evaluated in one way
        from the first call on, and added one by one. Else a worker adds all jobs of a request.
    leaves : int
        How many operands there are.
    jobs : dict
        Number of a job -> its own arguments, with a `VariablePlace` for each variable. Another
        process has the jobs that it was sent.
    """

    is_awaited = False

    def __init__(
        self, name: str, function: Function, shared: tuple[object, ...], is_sum: bool, leaves: int
    ) -> None:
        self.name, self.function, self.shared = name, function, shared
        self.is_sum, self.leaves = is_sum, leaves
        self.is_static = name == "reduce_sum_static"
        self.jobs: dict[int, tuple[object, ...]] = {}
        self._shares: dict[Hashable, Result] = {}

    def __getstate__(self) -> Settings:
        return {**vars(self), "jobs": {}, "_shares": {}}

    def has(self, jobs: Sequence[int]) -> bool:
        """Tell whether the work has these jobs; another process is sent only those that it works
        on.
        """
        return all(job in self.jobs for job in jobs)

    def answered(self, request: Request) -> ShareResult:
        """Compute the answer of a worker that has the jobs."""
        values: list[np.ndarray] = []
        common: dict[int, Plain] = {}
        all_own: list[list[Plain]] = []
        for i, job in enumerate(request.jobs):
            try:
                share = self.share(job, request.directions)
                following = iter(request.own[i])
                numbers = [
                    request.common[x.leaf] if x.leaf in request.common else next(following)
                    for x in share.places
                ]
                if not request.has_gradient:
                    values.append(share.values(numbers))
                    continue
                value, gradient = share.gradient(
                    numbers, None if request.cotangents is None else request.cotangents[i]
                )
            except Exception as error:
                raise JobError(job, error) from error
            values.append(value)
            own: list[Plain] = []
            for place, c in zip(share.places, gradient, strict=True):
                if place.leaf in request.common:
                    common[place.leaf] = common[place.leaf] + c if place.leaf in common else c
                else:
                    own.append(c)
            all_own.append(own)
        return ShareResult(values, common, all_own)

    def share(self, job: int, directions: tuple[int, ...]) -> EvaluatedShare:
        """Return a job as a function of its numbers, differentiated along some of the operands."""
        result = self._shares.get((job, directions))
        if result is None:
            share: Share | Along = Share(self, self.jobs[job])
            for i, leaf in enumerate(directions):
                share = Along(share, leaf, self.leaves + i)
            result = self._shares[job, directions] = EvaluatedShare(share)
        return result


class Share:
    """A job as a function of the numbers at its places."""

    def __init__(self, work: Work, own: tuple[object, ...]) -> None:
        self.work = work
        self.arguments = (*own, *work.shared) if work.is_sum else (*work.shared, *own)
        self.places = places_of(self.arguments)

    def __call__(self, *numbers: Operand) -> Result:
        y = self.work.function(*filled(self.arguments, iter(numbers)))
        if not self.work.is_sum:
            return np.stack(y) if isinstance(y, (list, tuple)) else y
        if np.shape(value_now(y)):
            shape = np.shape(value_now(y))
            raise ShapeError(
                f"{self.work.name}: f returns an array of shape {shape}, but must return a number!"
            )
        return y


class Along:
    """The derivative of a share along an operand: a function of the share's numbers and the
    direction.
    """

    def __init__(self, share: Share | Along, leaf: int, direction: int) -> None:
        self.share = share
        self.work: Work = share.work
        self.which = next((i for i, place in enumerate(share.places) if place.leaf == leaf), None)
        own = (
            [] if self.which is None else [VariablePlace(direction, share.places[self.which].index)]
        )
        self.places: list[VariablePlace] = [*share.places, *own]

    def __call__(self, *numbers: Operand) -> Result:
        count = len(self.share.places)
        tangents: list[Operand] = [None] * count
        if self.which is None:
            value, rate = self.share(*numbers), None
        else:
            tangents[self.which] = numbers[count]
            value, rate = Inner(self.work.name, self.share, ()).along(numbers[:count], tangents, ())
        if rate is not None:
            return rate
        shape = np.shape(value_now(value))
        return np.zeros(shape) if shape else 0.0


class EvaluatedShare:
    """The values and gradients of a share, which is recorded after some calls, if it can be."""

    def __init__(self, share: Share | Along) -> None:
        self.share, self.places = share, share.places
        self._inner = Inner(share.work.name, share, ())
        # How often the gradient is evaluated before it is recorded.
        self._left = 0 if share.work.is_static else EAGER
        # Whether the share returns one number, whose gradient is best recorded. If it may return a
        # vector, this is known after the first call.
        self._is_number = share.work.is_sum
        positions = tuple(range(len(self.places)))
        number = share if self._is_number else _Number(share)
        self._eager: Function = value_and_grad(number, positions)
        self._recorded = RecordedIfPossible(number, positions)

    def values(self, numbers: Sequence[object]) -> np.ndarray:
        if self.share.work.is_static and numbers:
            return self.gradient(numbers, None)[0]
        return self._inner.values(numbers, ())

    def gradient(
        self, numbers: Sequence[object], cotangent: np.ndarray | None
    ) -> tuple[np.ndarray, Sequence[Plain]]:
        """Compute the values, and the cotangent (by default all ones) times their derivatives."""
        if not numbers:
            return self.values(numbers), ()
        if self._is_number and (cotangent is None or cotangent.size == 1):
            self._left -= 1
            value, gradient = (self._eager if self._left >= 0 else self._recorded)(*numbers)
            weight = 1.0 if cotangent is None else float(cotangent[0])
            return np.array([self._plain(value)]), gradient if weight == 1.0 else [
                weight * c for c in gradient
            ]
        value, pullback = self._inner.pullback(numbers, ())
        shape, size = np.shape(self._plain(value)), np.size(value)
        if cotangent is not None and cotangent.size != size:
            raise ShapeError(
                f"{self.share.work.name}: f returns {size} elements, but "
                f"{cotangent.size} before; the number must be the same for all parameters!"
            )
        self._is_number = size == 1
        weights = np.ones(shape) if cotangent is None else cotangent.reshape(shape)
        return np.ravel(value), pullback(weights if shape else float(weights))

    def _plain(self, value: object) -> Result:
        """Return the value; raise for a variable, which comes from outside the function."""
        if is_differentiable(value):
            raise lost(self.share.work.name, value)
        return value


class _Number:
    """A share that returns a vector with one element, as a function that returns the number."""

    def __init__(self, share: Share | Along) -> None:
        self.share = share

    def __call__(self, *numbers: Operand) -> Result:
        y = self.share(*numbers)
        shape = np.shape(value_now(y))
        if np.prod(shape, dtype=int) != 1:
            raise ShapeError(
                f"{self.share.work.name}: f returns an array of shape {shape}, but one element "
                "before; the number must be the same for all parameters!"
            )
        return np.sum(y) if shape else y


class Request(NamedTuple):
    """A request to a worker: jobs of a work, at given numbers.

    Attributes
    ----------
    key : str
        The key of the work.
    jobs : tuple of int
    directions : tuple of int
        Operands along which the work is differentiated, in sequence.
    has_gradient : bool
    common : dict
        Operand -> its number or array, for operands that each job takes as a whole.
    own : list
        For each job, the other numbers at its places, in order.
    cotangents : list or None
        The cotangent of each job; None for all ones.
    """

    key: str
    jobs: tuple[int, ...]
    directions: tuple[int, ...]
    has_gradient: bool
    common: dict[int, Plain]
    own: list[list[Plain]]
    cotangents: list[Operand] | None


class ShareResult(NamedTuple):
    """The values of jobs, the sums of their gradients in the common operands, and the gradients in
    their own.
    """

    values: list[np.ndarray]
    common: dict[int, Plain]
    own: list[list[Plain]]


class Unknown(NamedTuple):
    """A worker lacks the work, or only some of the jobs."""

    lacks_work: bool


class Failure(NamedTuple):
    """An error from another process."""

    job: int
    error: bytes | None
    text: str
    trace: str


class JobError(Exception):
    """An error of a job, on its way to the caller in the same process."""

    def __init__(self, job: int, error: Exception) -> None:
        super().__init__(job, error)
        self.job, self.error = job, error


# The works of this process, by key. A forked child has its parent's.
_CACHE: OrderedDict[str, Any] = OrderedDict()
_LOCK = threading.Lock()


def _unlock() -> None:
    """Replace the lock in a forked child, because another thread of the parent may hold it."""
    global _LOCK
    _LOCK = threading.Lock()
    here.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


def keep(key: str, work: object) -> None:
    """Remember a `Work` or a `Task`, and forget those least recently used, unless they wait here
    for their results.
    """
    with _LOCK:
        _CACHE[key] = work
        _CACHE.move_to_end(key)
        if len(_CACHE) > MOST_WORKS:
            free = [item for item, state in _CACHE.items() if not state.is_awaited]
            for x in free[:-MOST_WORKS]:
                del _CACHE[x]


def forget(key: str) -> None:
    """Forget a work that will not be asked for again."""
    with _LOCK:
        _CACHE.pop(key, None)


def run(
    process: tuple[str, int], request: object, parcel: tuple[bytes | None, bytes] | None = None
) -> Result:
    """Answer a request, as a worker; `parcel` brings the work and its jobs.

    `process` is the process that asks. An error of a job is raised there; another process returns
    it as a `Failure`.
    """
    try:
        return _answer(request, parcel)
    except JobError as error:
        if process == identity():
            raise
        return _failure(error)


def identity() -> tuple[str, int]:
    """Return the name of the machine and the number of this process."""
    return _machine(), os.getpid()


@cache
def _machine() -> str:
    """Return the name of this machine; asking the system for it takes ten microseconds."""
    return os.uname().nodename if hasattr(os, "uname") else ""


def _answer(request: Any, parcel: tuple[bytes | None, bytes] | None) -> Any:
    work = _CACHE.get(request.key)
    if parcel is not None:
        if work is None and parcel[0] is not None:
            work = pickle.loads(parcel[0])
        if work is not None:
            for job, arguments in pickle.loads(parcel[1]).items():
                work.jobs.setdefault(job, arguments)
            keep(request.key, work)
    if work is None or not work.has(request.jobs):
        return Unknown(work is None)
    was, here.is_busy = here.is_busy, True
    try:
        return work.answered(request)
    finally:
        here.is_busy = was


def dumps(thing: object) -> bytes:
    """Pickle an object; by cloudpickle, which takes closures, if it is installed."""
    try:
        function: Function = import_module("cloudpickle").dumps
    except ImportError:
        function = pickle.dumps
    result: bytes = function(thing)
    return result


def _failure(wrapped: JobError) -> Failure:
    """Convert an error to a form that any other process can receive."""
    error = wrapped.error
    text = f"{type(error).__name__}: {error}"
    trace = "".join(traceback.format_exception(error))
    try:
        sent = dumps(error)
        there = pickle.loads(sent)
        travels = type(there) is type(error) and str(there) == str(error)
    except Exception:
        travels = False
    return Failure(wrapped.job, sent if travels else None, text, trace)
