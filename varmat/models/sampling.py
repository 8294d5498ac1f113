"""Sampling with nutpie, chain by chain.

Recorded models are sampled by threads, without Python if llvmlite is installed
(`varmat.models.native_sampling`). Models that Python evaluates at every point are sampled by
processes. `varmat.models.chains` runs the chains on either, or on an executor of the user.
"""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np

from varmat.models.callbacks import Callbacks
from varmat.models.inference_data import check_dims
from varmat.models.native_sampling import prepared
from varmat.models.results import joined_chains
from varmat.programs.run.threads import processors
from varmat.typing import Settings

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from varmat.models.gradients import DensityModel
    from varmat.models.results import Groups
    from varmat.models.starts import Starts


def _warn_of_obstacle(model: DensityModel, how: str = "") -> bool:
    """Warn if a log density could not be recorded, so that Python evaluates it at every point.
    Returns whether it warned.
    """
    obstacle = getattr(model.recorder(), "obstacle", None)
    if obstacle is not None:
        reason = str(obstacle).removeprefix("recorded: ") or type(obstacle).__name__
        text = (
            f"the log density cannot be recorded, so that every point is evaluated in Python{how}: "
            f"{reason}"
        )
        warnings.warn(f"Model.sample: {text}", UserWarning, stacklevel=4)
    return obstacle is not None


def _is_evaluated_in_python(calls: Callbacks) -> bool:
    """Return whether Python evaluates the function at every point. To find out, call the function
    at a start if it was not called before.
    """
    recorder = calls.model.recorder()
    if recorder is None:
        return True
    if recorder.program is None and getattr(recorder, "obstacle", None) is None:
        calls.start()
    return getattr(recorder, "obstacle", None) is not None


def run_nutpie(
    model: DensityModel,
    starts: Starts,
    seed: int | None,
    settings: Settings,
    executor: Executor | str | None = None,
) -> tuple[Groups, list[int]]:
    """Sample a model with nutpie; the draws of all chains, and their numbers."""
    if seed is None:
        seed = int(np.random.default_rng().integers(2**32))
    elif seed >= 2**64:  # nutpie takes 64 bits
        seed = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    calls = Callbacks(model, seed, starts, settings["tune"])
    check_dims(model, calls.shapes)
    with calls.failing_first():
        # Each worker of an executor makes separate functions.
        native = prepared(calls) if executor is None else None
        in_python = native is None and _is_evaluated_in_python(calls)
    from concurrent.futures import ThreadPoolExecutor

    from varmat.models.chains import Job, processes, run_chains  # slow to import

    # Each process would try to record the model again.
    chosen = model.as_written() if in_python else model
    job = Job(chosen, seed, starts, settings, executor is not None, native)
    with ExitStack() as stack:
        how = hindrance = ""
        if executor is None and in_python:
            executor, hindrance = processes(job, stack)
            how = "" if executor == "serial" else ", each chain by a process of its own"
            how = f", one chain after the other ({hindrance})" if hindrance else how
        elif executor is None:
            workers = min(settings["chains"], settings["cores"] or processors())
            executor = stack.enter_context(ThreadPoolExecutor(workers, "varmat-chain"))
        is_told = _warn_of_obstacle(model, how)
        if hindrance and not is_told:
            text = f"Model.sample: chains are sampled one after the other, for {hindrance}"
            warnings.warn(text, UserWarning, stacklevel=3)
        with calls.failing_first():
            result = run_chains(job, executor)
    if not is_told:
        _warn_of_obstacle(model)
    groups, numbers = joined_chains(result, settings["chains"])
    return (native or calls).completed(groups, settings["progress_bar"]), numbers


def check_executor(cores: int | None, executor: Executor | str | None) -> None:
    """Raise if `executor` is not an executor, or is given together with a number of cores."""
    from varmat.parallel.executors import check

    check("Model.sample", executor)
    if cores is not None:
        text = (
            f"cores is {cores} with an executor, but must be left out: the executor says how many "
            "chains run at a time!"
        )
        raise TypeError(f"Model.sample: {text}")
