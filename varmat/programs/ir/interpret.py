"""The reference interpreter: what a program means, step by step, each with separate arrays."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.programs.ir.program import Program, Step, Value

if TYPE_CHECKING:
    from varmat.programs.ir.program import Array


def interpret(
    program: Program, *arguments: object, seconds: dict[int, float] | None = None
) -> list[Array]:
    """Run a program by the meaning of its kernels.

    Parameters
    ----------
    program : Program
    *arguments : float or ndarray
        One for each argument of the program.
    seconds : dict, optional
        Takes how long each step took, by the id of the step.

    Returns
    -------
    list of ndarray
        The outputs.

    Raises
    ------
    ElsewhereError
        If a guard does not hold.
    """
    values: dict[int, Any] = {
        id(value): np.array(x, value.dtype, order="C").reshape(value.shape)
        for value, x in zip(program.arguments, arguments, strict=True)
    }

    def array(value: Value) -> Array:
        base = value.base
        base_array = base.data if base.data is not None else values[id(base)]
        return value.array_in(base_array)

    with np.errstate(all="ignore"):
        for step in program.steps:
            start = perf_counter()
            result = step.kernel.evaluate(*map(array, step.operands))
            if seconds is not None:
                seconds[id(step)] = perf_counter() - start
            for value, x in zip(step.results, result, strict=True):
                is_object = value.dtype.hasobject
                values[id(value)] = (
                    x if is_object else np.array(x, value.dtype, order="C").reshape(value.shape)
                )
    return [np.array(array(value)) for value in program.outputs]


def seconds_of(program: Program, steps: Iterable[Step], at: Iterable[object]) -> dict[int, float]:
    """Measure how long steps take at a point, by the id of the step: the least of several runs."""
    runs: list[dict[int, float]] = [{} for _ in range(5)]
    for run in runs:
        interpret(program, *at, seconds=run)
    return {id(step): min(run[id(step)] for run in runs) for step in steps}
