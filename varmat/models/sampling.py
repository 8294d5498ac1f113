"""Sampling with nutpie, chain by chain.

Recorded models are called without Python where numba is installed, see
`varmat.models.native_sampling`; their chains have threads, also those of recordings that NumPy
runs. Models that Python evaluates at every point are sampled by processes. For both see
`varmat.models.chains`, and `varmat.models.shared_chains` where there is an executor. All chains go
to nutpie together where a setting is about all of them."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from typing import Any

import numpy as np

from varmat.derivatives.recorded import Recorded
from varmat.models.callbacks import Callbacks
from varmat.models.inference_data import known_dims
from varmat.models.native_sampling import ELSEWHERE, prepared
from varmat.models.results import optional


def _labels(labels: Sequence[Any]) -> Any:
    """Labels as nutpie takes them: numbers and dates in an array, strings in a list."""
    # The dates of pandas, and Python's, are objects to NumPy; those with a time zone remain what
    # they are.
    dates = bool(labels) and all(
        isinstance(x, date) and getattr(x, "tzinfo", None) is None for x in labels
    )
    array = np.asarray(labels, "M8[ns]" if dates else None)
    # nutpie knows one kind of numbers each, and no days.
    known = {"i": "i8", "u": "i8", "f": "f8", "M": "M8[ns]", "m": "m8[ns]", "b": "?"}.get(
        array.dtype.kind
    )
    return list(map(str, labels)) if known is None else array.astype(known)


def _reason(error: BaseException) -> str:
    return str(error).removeprefix("recorded: ") or type(error).__name__


def _warn_of_obstacle(model: Any, how: str = "", level: int = 4) -> bool:
    """Warn that a log density is evaluated in Python at every point if it could not be recorded;
    whether it is so.
    """
    obstacle = getattr(model._value_and_grad, "obstacle", None)
    if obstacle is not None:
        text = (
            "the log density cannot be recorded, so that every point is evaluated in "
            f"Python{how}: {_reason(obstacle)}"
        )
        warnings.warn(f"Model.sample: {text}", UserWarning, stacklevel=level)
    return obstacle is not None


def _evaluated_in_python(calls: Callbacks) -> bool:
    """Whether the function of the user is evaluated at every point: tried at a start, if it was not
    yet.
    """
    recorder = calls.model._value_and_grad
    if not isinstance(recorder, Recorded):
        return True
    if recorder.program is None and getattr(recorder, "obstacle", None) is None:
        calls.start()
    return getattr(recorder, "obstacle", None) is not None


def _without_recording(model: Any) -> Any:
    """The model if it cannot be recorded: every process would try it again."""
    recorder = model._value_and_grad
    if not isinstance(recorder, Recorded):
        return model
    model = copy.copy(model)
    model._value_and_grad = recorder._eager
    return model


def _by_processes(
    calls: Callbacks, labels: dict[str, Any], dims: dict[str, Any], settings: dict[str, Any]
) -> Any:
    """Sample chain by chain a model that Python evaluates at every point, and say how and why."""
    from varmat.models.chains import Chains  # needs a sixth of the time that varmat takes to import

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
    calls: Callbacks,
    native: Any,
    labels: dict[str, Any],
    dims: dict[str, Any],
    settings: dict[str, Any],
) -> Any:
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
    labels: dict[str, Any],
    dims: dict[str, Any],
    settings: dict[str, Any],
    executor: Any,
) -> Any:
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
    model: Any,
    init: np.ndarray | None,
    seed: int | None,
    settings: dict[str, Any],
    executor: Any = None,
) -> Any:
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
    # These settings are about all chains together.
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
    except BaseException:  # what panics in nutpie is no Exception
        if not calls.failures:
            raise
    if calls.failures:
        raise calls.failures[0]
    if not is_told:
        _warn_of_obstacle(model)
    return (
        result if native is None else native.completed(result, settings.get("progress_bar", False))
    )


def check_executor(cores: Any, executor: Any) -> None:
    """Refuse what is no executor, and one beside a number of cores."""
    from varmat.parallel.executors import check

    check("Model.sample", executor)
    if cores is not None:
        text = (
            f"cores is {cores} with an executor, but must be left out: the executor says how "
            "many chains run at a time!"
        )
        raise TypeError(f"Model.sample: {text}")
