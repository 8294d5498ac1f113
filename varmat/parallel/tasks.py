"""A function that is sent to workers once and called there: on chains, draws or points of a
model.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

from varmat.parallel.executors import Asking, answers, check, sendable
from varmat.parallel.shares import JobError, forget, keep
from varmat.typing import Function, Operand, Result, Settings


class TaskRequest(NamedTuple):
    """A request to a worker: the function of a task, at an argument.

    Attributes
    ----------
    key : str
        The key of the task.
    jobs : tuple of int
        The number of the block.
    argument : object
    """

    key: str
    jobs: tuple[int, ...]
    argument: Operand


class Task:
    """A function of one argument that is sent to each worker once, with the data that it holds."""

    def __init__(self, function: Function) -> None:
        self.function = function
        # Always empty: the jobs of a task do not have separate data, unlike jobs of a `Work`.
        self.jobs: dict[int, Result] = {}
        # Whether this process waits for the results. It may be unable to send the function again.
        self.is_awaited = True

    def __getstate__(self) -> Settings:
        return {**vars(self), "is_awaited": False}

    def has(self, jobs: Sequence[int]) -> bool:
        return True

    def answered(self, block: TaskRequest) -> Result:
        try:
            return self.function(block.argument)
        except Exception as error:
            raise JobError(block.jobs[0], error) from error


def on_workers(
    name: str,
    function: Function,
    arguments: Sequence[object],
    executor: Executor | str | None,
    noun: str = "block",
    result: Callable[[int, Future[Any]], Any] = lambda _, future: future.result(),
) -> list[Result]:
    """Compute the results of a function, in the order of its arguments.

    Parameters
    ----------
    name : str
        The function that the user called, for messages.
    function : callable
        Sent once to each worker in another process, with the data that it holds.
    arguments : sequence
        Each is sent to the worker that computes its result.
    executor : Executor, str or None
        As in `varmat.map_rect`.
    noun : str
        What messages call an argument; empty if errors are not to name theirs.
    result : callable, optional
        Waits for the future of an argument, and returns the result; takes the number of the
        argument and the future.

    Raises
    ------
    TypeError
        If `executor` is not an executor, or the function cannot be sent to another process.
    Exception
        The error of the first argument that fails, with a note that names it, and the traceback of
        the other process.
    """
    check(name, executor)
    key, task = uuid.uuid4().hex, Task(function)
    content: list[bytes] = []

    def parcel(block: TaskRequest, has_work: bool) -> tuple[bytes | None, bytes]:
        if has_work and not content:
            content.append(sendable(name, task))
        return content[0] if has_work else None, sendable(name, {})

    keep(key, task)
    try:
        requests = [TaskRequest(key, (i,), x) for i, x in enumerate(arguments)]
        return answers(Asking(name, parcel, noun, result), requests, executor)
    finally:
        forget(key)
