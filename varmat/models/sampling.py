"""Sampling with nutpie, chain by chain.

Recorded models are sampled by threads, without Python if llvmlite is installed
(`varmat.models.native_sampling`). Models that Python evaluates at every point are sampled by
processes. `varmat.models.chains` has both, `varmat.models.shared_chains` the chains on an executor.
If a setting concerns all chains, nutpie gets them together.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.derivatives.recorded import Recorded
from varmat.models.callbacks import Callbacks
from varmat.models.inference_data import known_dims
from varmat.models.native_sampling import ELSEWHERE, prepared
from varmat.models.results import optional

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from varmat.models.model import Model
    from varmat.models.native_sampling import NativeModel
    from varmat.models.results import ArvizData, Dims, Labels
    from varmat.typing import Settings


def _labels(labels: Sequence[Any]) -> Any:
    """Labels as nutpie takes them: numbers and dates in an array, strings in a list."""
    # To NumPy the dates of Python and pandas are objects. Those with a time zone stay objects.
    dates = bool(labels) and all(
        isinstance(x, date) and getattr(x, "tzinfo", None) is None for x in labels
    )
    array = np.asarray(labels, "M8[ns]" if dates else None)
    # nutpie takes one type of each kind of numbers, and dates in nanoseconds only.
    known = {"i": "i8", "u": "i8", "f": "f8", "M": "M8[ns]", "m": "m8[ns]", "b": "?"}.get(
        array.dtype.kind
    )
    return list(map(str, labels)) if known is None else array.astype(known)


def _reason(error: BaseException) -> str:
    return str(error).removeprefix("recorded: ") or type(error).__name__


def _warn_of_obstacle(model: Model, how: str = "", level: int = 4) -> bool:
    """Warn if a log density could not be recorded, so that Python evaluates it at every point.
    Returns whether it warned.
    """
    obstacle = getattr(model._value_and_grad, "obstacle", None)
    if obstacle is not None:
        text = (
            f"the log density cannot be recorded, so that every point is evaluated in Python{how}: "
            f"{_reason(obstacle)}"
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


def _by_processes(calls: Callbacks, labels: Labels, dims: Dims, settings: Settings) -> ArvizData:
    """Sample a model that Python evaluates at every point, chain by chain; warn how and why."""
    from varmat.models.chains import Chains  # slow to import

    model = _without_recording(calls.model)
    with closing(Chains(model, calls.seed, calls.centre, labels, dims, settings)) as chains:
        how = ", each chain by a process of its own" if chains.workers else ""
        if chains.hindrance:
            how = f", one chain after the other ({chains.hindrance})"
        if not _warn_of_obstacle(calls.model, how, 5) and chains.hindrance:
            text = f"Model.sample: chains are sampled one after the other, for {chains.hindrance}"
            warnings.warn(text, UserWarning, stacklevel=4)
        return chains.sample()


def _by_threads(
    calls: Callbacks, native: NativeModel | None, labels: Labels, dims: Dims, settings: Settings
) -> ArvizData:
    """Sample a recorded model, each chain in a thread."""
    from varmat.models.chains import ThreadedChains

    chains = ThreadedChains(calls.model, calls.seed, calls.centre, labels, dims, settings)
    return (
        chains.sample()
        if native is None
        else chains.sample(native.compiled(labels, dims), calls.failures)
    )


def _on_executor(
    calls: Callbacks,
    labels: Labels,
    dims: Dims,
    settings: Settings,
    executor: Executor | str | None,
) -> ArvizData:
    """Sample chain by chain on an executor."""
    from varmat.models.shared_chains import SharedChains

    in_python = _evaluated_in_python(calls)
    if calls.failures:
        raise calls.failures[0]
    _warn_of_obstacle(calls.model, level=5)
    model = _without_recording(calls.model) if in_python else calls.model
    return SharedChains(
        model, calls.seed, calls.centre, labels, dims, settings, is_busy=True
    ).sample(executor)


def run_nutpie(
    model: Model,
    init: np.ndarray | None,
    seed: int | None,
    settings: Settings,
    executor: Executor | str | None = None,
) -> ArvizData:
    """Sample a model with nutpie; its result, as ArviZ data."""
    nutpie = optional("nutpie", "Model.sample")
    if seed is None:
        seed = int(np.random.default_rng().integers(2**32))
    calls = Callbacks(model, seed, init, settings["tune"])
    coords, named = known_dims(model, calls.shapes)
    labels, dims = (
        {name: _labels(each) for name, each in coords.items()},
        {name: tuple(each) for name, each in named.items()},
    )
    # These settings concern all chains together.
    whole = [name for name in ELSEWHERE if settings.get(name)] + (
        [] if settings.get("blocking", True) else ["blocking"]
    )
    if executor is not None:
        if whole:
            text = (
                f"{whole[0]} is given with an executor, but must be left out: it is about all "
                "chains together!"
            )
            raise TypeError(f"Model.sample: {text}")
        return _on_executor(calls, labels, dims, settings, executor)
    native, is_whole = prepared(calls, settings), settings["chains"] == 1 or bool(whole)
    in_python = native is None and not is_whole and _evaluated_in_python(calls)
    if calls.failures:
        raise calls.failures[0]
    if in_python:
        return _by_processes(calls, labels, dims, settings)
    is_told = _warn_of_obstacle(model)
    try:
        if is_whole:
            compiled = (
                calls.compiled(labels, dims) if native is None else native.compiled(labels, dims)
            )
            result = nutpie.sample(compiled, init_mean=init, seed=seed, **settings)
        else:
            result = _by_threads(calls, native, labels, dims, settings)
    except BaseException:  # a panic in nutpie is no Exception
        if not calls.failures:
            raise
    if calls.failures:
        raise calls.failures[0]
    if not is_told:
        _warn_of_obstacle(model)
    return (
        result if native is None else native.completed(result, settings.get("progress_bar", False))
    )


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
