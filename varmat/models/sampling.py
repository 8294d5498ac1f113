"""Sampling with nutpie, chain by chain.

Recorded models are sampled by threads, without Python if llvmlite is installed
(`varmat.models.native_sampling`). Models that Python evaluates at every point are sampled by
processes. `varmat.models.chains` has both, `varmat.models.shared_chains` the chains on an executor.
"""

from __future__ import annotations

import copy
import warnings
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from varmat.derivatives.recorded import Recorded
from varmat.models.callbacks import Callbacks
from varmat.models.inference_data import check_dims
from varmat.models.native_sampling import prepared
from varmat.models.results import LOST, joined_chains, lost_values
from varmat.typing import Settings

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from varmat.models.model import Model
    from varmat.models.results import Groups
    from varmat.models.starts import Starts


def _warn_of_obstacle(model: Model, how: str = "", level: int = 4) -> bool:
    """Warn if a log density could not be recorded, so that Python evaluates it at every point.
    Returns whether it warned.
    """
    obstacle = getattr(model._value_and_grad, "obstacle", None)
    if obstacle is not None:
        reason = str(obstacle).removeprefix("recorded: ") or type(obstacle).__name__
        text = (
            f"the log density cannot be recorded, so that every point is evaluated in Python{how}: "
            f"{reason}"
        )
        warnings.warn(f"Model.sample: {text}", UserWarning, stacklevel=level)
    return obstacle is not None


def _evaluated_in_python(calls: Callbacks) -> bool:
    """Whether Python evaluates the function at every point. It is called at a start to find out, if
    it was not called before.
    """
    recorder = calls.model._value_and_grad
    if not isinstance(recorder, Recorded):
        return True
    if recorder.program is None and getattr(recorder, "obstacle", None) is None:
        calls.start()
    return getattr(recorder, "obstacle", None) is not None


def _without_recording(model: Model) -> Model:
    """The model with recording switched off, because each process would try it again."""
    recorder = model._value_and_grad
    if not isinstance(recorder, Recorded):
        return model
    model = copy.copy(model)
    model._value_and_grad = recorder._eager
    return model


def _by_processes(calls: Callbacks, settings: Settings) -> dict[int, Groups]:
    """Sample a model that Python evaluates at every point, chain by chain; warn how and why."""
    from varmat.models.chains import Chains  # slow to import

    model = _without_recording(calls.model)
    with closing(Chains(model, calls.seed, calls.starts, settings)) as chains:
        how = ", each chain by a process of its own" if chains.workers else ""
        if chains.hindrance:
            how = f", one chain after the other ({chains.hindrance})"
        if not _warn_of_obstacle(calls.model, how, 5) and chains.hindrance:
            text = f"Model.sample: chains are sampled one after the other, for {chains.hindrance}"
            warnings.warn(text, UserWarning, stacklevel=4)
        return chains.sample()


def _on_executor(
    calls: Callbacks, settings: Settings, executor: Executor | str | None
) -> dict[int, Groups]:
    """Sample chain by chain on an executor."""
    from varmat.models.shared_chains import SharedChains

    with calls.failing_first():
        in_python = _evaluated_in_python(calls)
    _warn_of_obstacle(calls.model, level=5)
    model = _without_recording(calls.model) if in_python else calls.model
    return SharedChains(model, calls.seed, calls.starts, settings, is_busy=True).sample(executor)


def run_nutpie(
    model: Model,
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
    count = settings["chains"]
    if executor is not None:
        return joined_chains(_on_executor(calls, settings, executor), count)
    with calls.failing_first():
        native = prepared(calls)
        in_python = native is None and _evaluated_in_python(calls)
    if in_python:
        return joined_chains(_by_processes(calls, settings), count)
    from varmat.models.chains import ThreadedChains  # slow to import

    is_told = _warn_of_obstacle(model)
    with calls.failing_first():
        found = ThreadedChains(model, seed, starts, settings).sample(calls, native)
    if not is_told:
        _warn_of_obstacle(model)
    groups, numbers = joined_chains(found, count)
    if native is not None:
        groups = native.completed(groups, settings["progress_bar"])
    if calls.lost:
        groups[LOST] = lost_values(calls.lost)
    return groups, numbers


def check_executor(cores: int | None, executor: Executor | str | None) -> None:
    """Raise if `executor` is none, or is given together with a number of cores."""
    from varmat.parallel.executors import check

    check("Model.sample", executor)
    if cores is not None:
        text = (
            f"cores is {cores} with an executor, but must be left out: the executor says how many "
            "chains run at a time!"
        )
        raise TypeError(f"Model.sample: {text}")
