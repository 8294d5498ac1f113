"""nutpie's compiled sampler, for one chain at a time.

The compiled part of nutpie is loaded without its Python package, because that imports ArviZ, and
with it matplotlib, pandas and scipy.stats, which takes longer than most sampling.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import threading
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.machinery import PathFinder
from typing import Any

import numpy as np

from varmat.core.errors import DomainError
from varmat.functions.checks import check_integer
from varmat.interrupts import uninterrupted
from varmat.models.results import Groups, meant, optional
from varmat.typing import Settings, Shape

_LIBRARY = "nutpie._lib"
_LOCK = threading.Lock()
# Its functions, with their first parameters. They are not public, and differ between versions.
_INTERFACE = {
    "LogpFunc": "ptr, user_data_ptr, keep_alive",
    "ExpandFunc": "dim, expanded_dim, ptr, user_data_ptr, keep_alive",
    "PyModel": "make_logp_func, make_expand_func, variables, ndim, dim_sizes, coords",
    "PyMcModel": "density, expand, variables, dim, dim_sizes, coords, init_func, transform_adapter",
    "PyVariable.new_variables": "$cls, names, item_types, shapes, dim_sizes, dims",
    "PyNutsSettings.Diag": "seed", "PyNutsSettings.LowRank": "seed",
    "PyStorage.arrow": "", "ProgressType.none": "",
    "PySampler.from_pyfunc": "settings, cores, model, progress_type",
    "PySampler.from_pymc": "settings, cores, model, progress_type",
    "PySampler.wait": "$self, timeout_seconds", "PySampler.abort": "$self",
    "PySampler.inspect": "$self", "PySampler.take_results": "$self",
    "PyTrace.get_arrow_trace": "$self",
}  # fmt: skip
# Metrics by name: nutpie's kind of settings, and what is set in it.
METRICS: dict[str, tuple[str, Settings]] = {
    "diag": ("Diag", {}),
    "diag_draws": ("Diag", {"use_grad_based_mass_matrix": False}),
    "low_rank": ("LowRank", {}),
}
# nutpie's names of what has a name of ours, and what `Model.sample` sets by itself.
_RENAMED = {"maxdepth": "max_depth"}
_OURS = {
    "maxdepth", "num_chains", "num_draws", "num_tune", "use_grad_based_mass_matrix",
    "set_target_accept",
}  # fmt: skip
# Statistics that are kept only if they are asked for.
_STORED = {
    "gradient": "store_gradient",
    "unconstrained_draw": "store_unconstrained",
    **dict.fromkeys(
        ("mass_matrix_inv", "mass_matrix_eigvals", "mass_matrix_stds"), "store_mass_matrix"
    ),
    **dict.fromkeys(
        ("divergence_start", "divergence_end", "divergence_momentum", "divergence_start_gradient"),
        "store_divergences",
    ),
    **dict.fromkeys(
        ("transformed_position", "transformed_gradient", "transformation_mu"), "store_transformed"
    ),
}
# The names of settings in other packages.
_ELSEWHERE = {
    theirs: f"did you mean {ours}?"
    for ours, names in {
        "tune": "num_warmup n_warmup warmup iter_warmup num_tune n_tune burn burnin burn_in nburn",
        "draws": "num_samples n_samples samples iter n_iter iter_sampling num_draws n_draws ndraws",
        "seed": "random_seed random_state rng rng_key rng_seed",
        "chains": "num_chains n_chains nchains",
        "cores": "n_jobs njobs parallel_chains num_cores n_cores num_workers",
        "target_accept": "adapt_delta target_accept_prob target_acceptance delta",
        "max_depth": "max_treedepth max_tree_depth treedepth",
        "inits": "initvals initial_values init_params start init",
        "initial_step": "step_size stepsize epsilon",
        "metric": "mass_matrix dense_mass inv_metric init_metric",
        "progress_bar": "progressbar show_progress refresh progress verbose",
        "keep_warmup": "save_warmup discard_tuned_samples",
    }.items()
    for theirs in names.split()
}
# What nutpie raises for a value that it does not take.
_REFUSED = (ArithmeticError, AttributeError, RuntimeError, TypeError, ValueError)
# The settings of nutpie that are named where a setting does not exist. It may have others.
_SETTINGS = {
    "check_turning", "early_window_switch_freq", "initial_step", "mass_matrix_eigval_cutoff",
    "mass_matrix_gamma", "mass_matrix_switch_freq", "max_energy_error", "mindepth",
    "step_size_adam_learning_rate", "step_size_adapt_method", "step_size_jitter",
    "store_divergences", "store_gradient", "store_mass_matrix", "store_unconstrained",
    "train_on_orbit", "window_switch_freq",
}  # fmt: skip


def library() -> Any:
    """Return the compiled part of nutpie; an `ImportError` if it has another interface."""
    loaded = _loaded()
    _check_interface(loaded)
    return loaded


@cache
def _check_interface(loaded: object) -> None:
    for name, parameters in _INTERFACE.items():
        attribute = loaded
        for part in name.split("."):
            attribute = getattr(attribute, part, None)
        signature = getattr(attribute, "__text_signature__", None) or " is missing"
        if not signature.startswith(f"({parameters}"):
            from importlib.metadata import version

            raise ImportError(
                f"Model.sample: the interface of nutpie {version('nutpie')} is not the one that "
                f"varmat calls ({name}{signature}): in a clone of varmat, "
                'pip install -e ".[sample]"',
                name="nutpie",
            )


def _loaded() -> Any:
    with _LOCK, uninterrupted():
        package = importlib.util.find_spec("nutpie")
        locations = None if package is None else package.submodule_search_locations
        spec = None if locations is None else PathFinder.find_spec(_LIBRARY, locations)
        if spec is None or spec.loader is None:
            return optional("nutpie", "Model.sample")._lib
        if _LIBRARY not in sys.modules:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            sys.modules[_LIBRARY] = module
        return sys.modules[_LIBRARY]


def check_settings(values: Iterable[str], settings: Settings) -> None:
    """Raise if a setting is unknown, or its value is refused; `values` are the other keywords."""
    names, result = {*values, *_SETTINGS} - {"self", "settings"}, library().PyNutsSettings.Diag(0)
    for name, value in settings.items():
        if name not in names and not (name not in _OURS and _has_setting(result, name, value)):
            hint = _ELSEWHERE.get(name.lower()) or meant(name, names)
            raise TypeError(f"Model.sample: there is no setting {name}: {hint}")
    metric, target = settings["metric"], settings["target_accept"]
    if metric not in METRICS:
        raise DomainError(
            f"Model.sample: metric is {metric!r}, but must be one of {', '.join(METRICS)}!"
        )
    if not 0.0 < target < 1.0:
        raise DomainError(
            f"Model.sample: target_accept is {target!r}, but must be between 0 and 1!"
        )
    check_integer("Model.sample", "max_depth", settings["max_depth"], 1)
    _nuts_settings(0, settings)


def _has_setting(result: object, name: str, value: object) -> bool:
    try:
        setattr(result, name, value)
    except _REFUSED as error:
        return not isinstance(error, AttributeError)
    return True


def _nuts_settings(seed: int, settings: Settings) -> Any:
    """Make nutpie's settings of one chain."""
    kind, fixed = METRICS[settings["metric"]]
    result = getattr(library().PyNutsSettings, kind)(seed)
    result.num_tune, result.num_chains = settings["tune"], 1
    result.num_draws = settings["draws"] * settings["thin"]
    ours = {"draws", "tune", "thin", "chains", "cores", "metric", "progress_bar", "keep_warmup"}
    renamed = {ours: theirs for theirs, ours in _RENAMED.items()}
    for name, value in {**fixed, **settings}.items():
        if name in ours:
            continue
        try:
            setattr(result, renamed.get(name, name), value)
        except _REFUSED as error:
            reason = str(error).partition("\n")[0]
            raise TypeError(
                f"Model.sample: {name} is {value!r}, which nutpie refuses: {reason}"
            ) from None
    return result


def variables(shapes: Mapping[str, Shape]) -> tuple[Any, dict[str, int]]:
    """Make nutpie's description of named values, and return it with the sizes of their
    dimensions.
    """
    sizes: dict[str, int] = {}
    kinds = ["float64"] * len(shapes)
    result = library().PyVariable.new_variables(
        list(shapes), kinds, list(shapes.values()), sizes, {}
    )
    return result, sizes


class Chain:
    """A chain that nutpie samples in a separate thread.

    Parameters
    ----------
    model : PyModel or PyMcModel
        nutpie's form of the model.
    seed : int
    settings : dict
    """

    def __init__(self, model: object, seed: int, settings: Settings) -> None:
        lib = library()
        start = lib.PySampler.from_pyfunc if type(model) is lib.PyModel else lib.PySampler.from_pymc
        result, store = _nuts_settings(seed, settings), lib.PyStorage.arrow()
        # Newer ones also take a callback, and after how many milliseconds to call it.
        more = (None, 1) if "extra_callback" in (start.__text_signature__ or "") else ()
        self._sampler = start(result, 1, model, lib.ProgressType.none(), *more, store)
        self._settings = settings

    def wait(self, timeout: float) -> Groups:
        """Return the draws when the chain is complete; raise `TimeoutError` if that takes too
        long.
        """
        self._sampler.wait(timeout)
        return self._groups(self._sampler.take_results())

    def abort(self) -> Groups:
        """End the chain, and return the draws so far."""
        self._sampler.abort()
        return self._groups(self._sampler.take_results())

    def cancel(self) -> None:
        """End the chain, and drop its draws."""
        self._sampler.abort()

    def inspect(self) -> Groups:
        """Copy the draws so far, while the chain continues."""
        return self._groups(self._sampler.inspect())

    def _groups(self, trace: Any) -> Groups:
        (draws,), (stats,) = trace.get_arrow_trace()
        count = int(stats.column("tuning").to_numpy().sum())
        left_out = {name for name, setting in _STORED.items() if not self._settings.get(setting)}
        left_out.add("divergence_message")  # a text, not an array of numbers
        groups: Groups = {}
        for title, batch in (("posterior", draws), ("sample_stats", stats)):
            names = [name for name in batch.column_names if name not in left_out]
            arrays = {name: _array(batch.column(name)) for name in names}
            thin = self._settings["thin"]
            saved = {name: x[count + thin - 1 :: thin] for name, x in arrays.items()}
            # A copy, because the view would keep all draws in memory.
            groups[title] = {n: (x.copy() if thin > 1 else x)[np.newaxis] for n, x in saved.items()}
            if self._settings["keep_warmup"]:
                groups[f"warmup_{title}"] = {n: x[np.newaxis, :count] for n, x in arrays.items()}
        order = ("posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats")
        return {title: groups[title] for title in order if title in groups}


def _array(column: Any) -> np.ndarray:
    """Copy a column to an array that is writeable; rows that are missing become nan."""
    metadata = column.field.metadata_str
    shape = tuple(map(int, filter(None, metadata.get("shape", "").split(","))))
    if not column.null_count:
        values = optional("arro3.core", "Model.sample").list_flatten(column) if shape else column
        return np.array(values.to_numpy()).reshape(len(column), *shape)
    there = optional("pyarrow", "Model.sample").array(column)
    valid = there.is_valid().to_numpy(zero_copy_only=False)
    result = np.full((len(column), *shape), math.nan)
    values = there.flatten() if shape else there.drop_null()
    result[valid] = values.to_numpy(zero_copy_only=False).reshape(-1, *shape)
    return result
