"""The interface of CmdStanPy's model, over `varmat.stan.Program`."""

from __future__ import annotations

import inspect
import os
from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any, NoReturn

import numpy as np

from varmat.functions.checks import check_choice, check_integer, outside
from varmat.models.functions import generator
from varmat.models.model import Model
from varmat.models.results import groups_of, optional
from varmat.stan import orders
from varmat.stan.cmdstan_fits import (
    CmdStanDraws,
    CmdStanGQ,
    CmdStanLaplace,
    CmdStanMCMC,
    CmdStanMLE,
    CmdStanPathfinder,
    Table,
)
from varmat.stan.data import read_data
from varmat.stan.errors import nearest
from varmat.stan.program import Program
from varmat.typing import Operand, Settings

__all__ = ["CmdStanModel"]

# Arguments of CmdStanPy that are not parameters here. Those that are not refused below have no
# effect, because they concern compilation, processes, text, or how a mode is searched for.
_ALL = "sig_figs show_console refresh time_fmt output_dir save_profile timeout"
_SEARCH = "init_alpha tol_obj tol_rel_obj tol_grad tol_rel_grad tol_param history_size"
_OTHERS = {
    "CmdStanModel": "force_compile compile cpp_options exe_file user_header",
    "sample": f"{_ALL} threads_per_chain force_one_process_per_chain chain_ids adapt_engaged "
    "adapt_init_phase adapt_metric_window adapt_step_size save_latent_dynamics",
    "optimize": f"{_ALL} {_SEARCH} save_iterations",
    "laplace_sample": _ALL,
    "pathfinder": f"{_ALL} {_SEARCH} num_threads num_single_draws max_lbfgs_iters "
    "save_single_paths psis_resample calculate_lp",
    "generate_quantities": f"{_ALL} parallel_chains gq_output_dir",
    "log_prob": _ALL,
}
# Arguments that are refused unless they have the default of CmdStanPy, with what to do.
_IN_MEMORY = (None, "results are in memory: draws_pd().to_csv(path) saves them")
_NO_WINDOWS = (None, "the adaptation has no windows: iter_warmup sets its length")
_PATHS = (None, "each path has as many draws as draws says, and up to 1000 steps")
_REFUSED: Mapping[str, tuple[Any, str]] = {
    "exe_file": (None, "nothing is compiled: give stan_file"),
    "user_header": (None, "nothing is compiled: write the function in Stan"),
    "output_dir": _IN_MEMORY,
    "gq_output_dir": _IN_MEMORY,
    "save_profile": (False, "profile blocks are not timed"),
    "timeout": (None, "an interrupt ends a call and keeps the draws"),
    "chain_ids": (None, "chains are numbered from 1: give each run a seed of its own"),
    "adapt_engaged": (True, "chains always adapt"),
    "adapt_init_phase": _NO_WINDOWS,
    "adapt_metric_window": _NO_WINDOWS,
    "adapt_step_size": _NO_WINDOWS,
    "save_latent_dynamics": (False, "Model.sample has store_unconstrained and store_gradient"),
    "save_iterations": (False, "only the mode is kept"),
    "num_single_draws": _PATHS,
    "max_lbfgs_iters": _PATHS,
    "save_single_paths": (False, "only the draws of all paths are kept"),
    "psis_resample": (True, "draws are always resampled by importance"),
    "calculate_lp": (True, "log densities are needed to resample draws"),
}
# SciPy's methods by CmdStan's names, with limits so small that a mode is exact.
_ALGORITHMS: Mapping[str, tuple[str, Settings]] = {
    "lbfgs": ("L-BFGS-B", {}),
    "bfgs": ("BFGS", {"gtol": 1e-9}),
    "newton": ("trust-exact", {"gtol": 1e-9}),
}
# With "diag_draws" the metric is adapted from draws only, as in Stan.
# The names of settings in warnings.
_SAMPLER_WORDS = {
    "Model.sample": "CmdStanModel.sample", "target_accept": "adapt_delta",
    "max_depth": "max_treedepth", ', or try metric="low_rank"': "",
    "draw longer": "raise iter_sampling",
}  # fmt: skip
_METRICS = {None: "diag", "diag": "diag_draws", "diag_e": "diag_draws"}
# Stan's names of the statistics of nutpie and of `Model.pathfinder`.
_STATS = {
    "log_approximation": "lp_approx__",
    "lp": "lp__",
    "path": "path__",
    "logp": "lp__",
    "mean_tree_accept": "accept_stat__",
    "step_size": "stepsize__",
    "depth": "treedepth__",
    "n_steps": "n_leapfrog__",
    "diverging": "divergent__",
    "energy": "energy__",
}


class CmdStanModel:
    """A Stan program, with the methods of ``CmdStanModel`` of CmdStanPy, without a compiler.

    Names, defaults and results are the same as in CmdStanPy. `Model.sample` and similar methods do
    the work, so a seed gives other draws than in CmdStan.

    Parameters
    ----------
    model_name : str, optional
        By default the name of the file.
    stan_file : str or Path
        The path of a Stan program.
    stanc_options : dict, optional
        ``include-paths`` is used; options for warnings and optimisations have no effect.
    **others
        Without effect: ``force_compile``, ``compile``, ``cpp_options``. Refused: ``exe_file``,
        ``user_header``.

    Raises
    ------
    StanError
        If the program has a mistake.
    TypeError
        If an argument is refused or unknown.

    Notes
    -----
    Arguments of methods that have no effect: ``sig_figs``, ``show_console``, ``refresh``,
    ``time_fmt``; of `sample` ``threads_per_chain`` and ``force_one_process_per_chain``; of
    `generate_quantities` ``parallel_chains``; of `optimize` and `pathfinder` tolerances,
    ``init_alpha``, ``history_size`` and ``num_threads``, because searches go on until nothing can
    be gained.

    Arguments for files, time limits, windows of the adaptation, or paths of other sizes are
    refused; the message says what to write instead.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from varmat.stan import CmdStanModel
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "bernoulli.stan"
    ...     _ = path.write_text('''
    ...         data { int N; array[N] int<lower=0, upper=1> y; }
    ...         parameters { real<lower=0, upper=1> theta; }
    ...         model { y ~ bernoulli(theta); }
    ...     ''')
    ...     model = CmdStanModel(stan_file=path)
    >>> mode = model.optimize(data={"N": 4, "y": [0, 1, 0, 0]}, seed=1)
    >>> round(mode.optimized_params_dict["theta"], 6)
    0.25
    """

    def __init__(
        self,
        model_name: str | None = None,
        stan_file: str | Path | None = None,
        *,
        stanc_options: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> None:
        _check("CmdStanModel", others)
        if stan_file is None:
            raise TypeError("CmdStanModel: stan_file is missing, but must be a path!")
        options = stanc_options or {}
        paths = options.get("include-paths", options.get("include_paths", []))
        self._program = Program(
            Path(stan_file), paths.split(",") if isinstance(paths, str) else paths
        )
        self.stan_file, self.name = os.fspath(stan_file), model_name or Path(stan_file).stem

    def __repr__(self) -> str:
        return f"CmdStanModel({self.name!r}, stan_file={self.stan_file!r})"

    def code(self) -> str:
        """Return the text of the program."""
        return Path(self.stan_file).read_text(encoding="utf-8")

    def compile(self, **_: Any) -> None:
        """Do nothing, because nothing is compiled."""

    def sample(
        self,
        data: Any = None,
        chains: int | None = None,
        parallel_chains: int | None = None,
        *,
        seed: int | None = None,
        inits: Any = None,
        iter_warmup: int | None = None,
        iter_sampling: int | None = None,
        save_warmup: bool = False,
        thin: int | None = None,
        max_treedepth: int | None = None,
        metric: str | None = None,
        step_size: float | None = None,
        adapt_delta: float | None = None,
        fixed_param: bool = False,
        show_progress: bool = True,
        **others: Any,
    ) -> CmdStanMCMC:
        """Sample chains by NUTS; see `Model.sample` for settings, errors and warnings.

        ``inits`` are a dict, a path, a number, a list of these for the chains, or a fit. A
        parameter that a dict leaves out starts at random. ``metric`` is "diag_e"; by default
        gradients adapt the diagonal too. Use ``fixed_param=True`` for programs without parameters.
        """
        _check("sample", others)
        config = _counts(
            "sample",
            chains=(chains, 1 if fixed_param else 4, 1),
            parallel_chains=(parallel_chains, None, 1),
            seed=(seed, None, 0),
            iter_warmup=(iter_warmup, 1000, 1),
            iter_sampling=(iter_sampling, 1000, 0),
            thin=(thin, 1, 1),
            max_treedepth=(max_treedepth, 10, 1),
        )
        model = self._program.model(data, seed=seed)
        model.sampler_words = _SAMPLER_WORDS
        adaptation = _adaptation(adapt_delta, metric, step_size)
        if fixed_param and model.param_unc_num():
            rule = "be False: generate_quantities takes draws of a program with parameters"
            raise outside("CmdStanModel.sample", "fixed_param", True, rule)
        chains = config["chains"]
        result = model.sample(
            config["iter_sampling"],
            chains,
            seed,
            tune=config["iter_warmup"],
            max_depth=config["max_treedepth"],
            keep_warmup=save_warmup,
            cores=parallel_chains,
            progress_bar=show_progress,
            **_starts("sample", model, inits, chains, seed),
            **adaptation,
        )
        config |= {"adapt_delta": adaptation["target_accept"], "method": "sample"}
        values, stats = _draws(result, "", config["thin"])
        before = _draws(result, "warmup_", config["thin"]) if save_warmup else ()
        warmup = dict(ChainMap(*before))
        return CmdStanMCMC(values, stats, model.layout.parameters, config, result, warmup)

    def optimize(
        self,
        data: Any = None,
        seed: int | None = None,
        inits: Any = None,
        *,
        algorithm: str | None = None,
        iter: int | None = None,
        jacobian: bool = False,
        require_converged: bool = True,
        **others: Any,
    ) -> CmdStanMLE:
        """Find a mode; see `Model.optimize`. ``algorithm`` is "lbfgs", "bfgs" or "newton".

        Raises
        ------
        RuntimeError
            If no mode was found and `require_converged`.
        """
        _check("optimize", others)
        config = _counts("optimize", seed=(seed, None, 0), iter=(iter, None, 1))
        kind = "lbfgs" if algorithm is None else str(algorithm).lower()
        check_choice("CmdStanModel.optimize", "algorithm", kind, *_ALGORITHMS)
        method, options = _ALGORITHMS[kind]
        model = self._program.model(data, seed=seed)
        options = options if iter is None else {**options, "maxiter": iter}
        optimum = model.optimize(
            _start(model, inits, seed), jacobian=jacobian, method=method, seed=seed, **options
        )
        if require_converged and not optimum.success:
            raise RuntimeError(
                "CmdStanModel.optimize: the optimizer did not converge to a mode, which "
                f"require_converged=False would accept: {optimum.message}!"
            )
        result = model.constrain(optimum.q, True, True, np.random.default_rng(seed))
        values = {name: np.asarray(x)[np.newaxis, np.newaxis] for name, x in result.items()}
        config |= {"algorithm": kind, "jacobian": jacobian, "method": "optimize"}
        stats = {"lp__": np.full((1, 1), optimum.value)}
        return CmdStanMLE(values, stats, model.layout.parameters, config, optimum)

    def laplace_sample(
        self,
        data: Any = None,
        mode: CmdStanMLE | None = None,
        draws: int | None = None,
        *,
        jacobian: bool = True,
        seed: int | None = None,
        opt_args: Settings | None = None,
        **others: Any,
    ) -> CmdStanLaplace:
        """Draw from the normal approximation around a mode; see `Model.laplace`. Without ``mode``,
        `optimize` finds it with ``opt_args``.
        """
        _check("laplace_sample", others)
        config = _counts("laplace_sample", draws=(draws, 1000, 1), seed=(seed, None, 0))
        if mode is None:
            mode = self.optimize(data, **{"seed": seed, "jacobian": jacobian, **(opt_args or {})})
        if not isinstance(mode, CmdStanMLE) or mode.result.jacobian != jacobian:
            rule = f"be what optimize(jacobian={jacobian}) returned"
            raise outside("CmdStanModel.laplace_sample", "mode", mode, rule)
        model = self._program.model(data, seed=seed)
        result = model.laplace(mode.result, draws=config["draws"], jacobian=jacobian, seed=seed)
        values = {name: x[np.newaxis] for name, x in result.draws.items()}
        densities = {"log_p__": result.log_density, "log_q__": result.log_approximation}
        stats = {name: x[np.newaxis] for name, x in densities.items()}
        config |= {"jacobian": jacobian, "method": "laplace"}
        fit = CmdStanLaplace(values, stats, model.layout.parameters, config, result)
        fit.mode = mode
        return fit

    def pathfinder(
        self,
        data: Any = None,
        *,
        draws: int | None = None,
        num_paths: int | None = None,
        num_elbo_draws: int | None = None,
        inits: Any = None,
        seed: int | None = None,
        **others: Any,
    ) -> CmdStanPathfinder:
        """Approximate the posterior along paths to modes; see `Model.pathfinder`."""
        _check("pathfinder", others)
        config = _counts(
            "pathfinder",
            draws=(draws, 1000, 1),
            num_paths=(num_paths, 4, 1),
            num_elbo_draws=(num_elbo_draws, 25, 1),
            seed=(seed, None, 0),
        )
        model, paths = self._program.model(data, seed=seed), config["num_paths"]
        result = model.pathfinder(
            config["draws"],
            paths=paths,
            trials=config["num_elbo_draws"],
            seed=seed,
            **_starts("pathfinder", model, inits, paths, seed),
        )
        values, stats = _draws(result, "")
        stats["path__"] = stats["path__"] + 1  # paths count from 1
        config |= {"method": "pathfinder"}
        return CmdStanPathfinder(values, stats, model.layout.parameters, config, result)

    def variational(self, *_: Any, **__: Any) -> NoReturn:
        """Raise, because ADVI is not supported: call `pathfinder`."""
        raise NotImplementedError(
            "CmdStanModel.variational: ADVI is not supported: call pathfinder, which approximates "
            "the posterior faster!"
        )

    def generate_quantities(
        self,
        data: Any = None,
        previous_fit: CmdStanDraws | None = None,
        seed: int | None = None,
        **others: Any,
    ) -> CmdStanGQ:
        """Compute generated quantities at the draws of a fit of a program with these parameters."""
        _check("generate_quantities", others)
        config = _counts("generate_quantities", seed=(seed, None, 0))
        if not isinstance(previous_fit, CmdStanDraws):
            rule = "be a fit, such as sample returned"
            raise outside("CmdStanModel.generate_quantities", "previous_fit", previous_fit, rule)
        model = self._program.model(data, seed=seed)
        if model.generated is None:
            raise TypeError(
                "CmdStanModel.generate_quantities: the program has no generated quantities, but "
                "must have some!"
            )
        draws, simulate = previous_fit.parameters(model.layout.parameters), model.generated.function
        result = model.sample_posterior_predictive(draws, simulate, seed=seed)
        config |= {"method": "generate_quantities"}
        fit = CmdStanGQ(result["posterior_predictive"], {}, (), config, result)
        fit.previous_fit = previous_fit
        return fit

    def log_prob(
        self,
        params: Mapping[str, Operand] | str | Path,
        data: Any = None,
        *,
        jacobian: bool = True,
        **others: Any,
    ) -> Table:
        """Tabulate the log density and its gradient by the unconstrained parameters, in a row."""
        _check("log_prob", others)
        model = self._program.model(data)
        q = model.param_unconstrain(_values("log_prob", "params", params, model))
        value, gradient = model.log_density_gradient(q, jacobian=jacobian)
        names = [
            f"g_{name}" for name in orders.unconstrained_names(self._program.tree, model.layout)
        ]
        table = optional("pandas", "log_prob").DataFrame
        return table([[value, *gradient]], columns=["lp__", *names])


def _check(method: str, arguments: Settings) -> None:
    """Raise for arguments of CmdStanPy that have no meaning here, and for unknown ones."""
    title = method if method == "CmdStanModel" else f"CmdStanModel.{method}"
    cached = _OTHERS[method].split()
    for name, value in arguments.items():
        if name not in cached:
            function = CmdStanModel if method == "CmdStanModel" else getattr(CmdStanModel, method)
            names = {*cached, *inspect.signature(function).parameters} - {"self", "others"}
            raise TypeError(f"{title}: {name} is not an argument!{nearest(name, names)}")
        default, remedy = _REFUSED.get(name, (value, ""))
        if value is not None and value != default:
            raise TypeError(
                f"{title}: {name} is {value!r}, but must be {default}, because {remedy}!"
            )


def _counts(method: str, **given: tuple[Any, int | None, int]) -> dict[str, Any]:
    """Check integers, each with its default and the least that is allowed."""
    result = {}
    for name, (value, default, least) in given.items():
        if value is not None:
            check_integer(f"CmdStanModel.{method}", name, value, least)
        result[name] = default if value is None else value
    return result


def _adaptation(
    adapt_delta: float | None, metric: str | None, step_size: float | None
) -> dict[str, Any]:
    """Return the settings of `Model.sample` for the adaptation."""
    delta = 0.8 if adapt_delta is None else adapt_delta
    if not 0.0 < delta < 1.0:
        raise outside("CmdStanModel.sample", "adapt_delta", delta, "be between 0 and 1")
    if not isinstance(metric, (str, NoneType)) or metric not in _METRICS:
        rule = "be 'diag_e': for correlations, Model.sample has metric='low_rank'"
        raise outside("CmdStanModel.sample", "metric", metric, rule)
    settings = {"target_accept": delta, "metric": _METRICS[metric]}
    return settings if step_size is None else {**settings, "initial_step": step_size}


def _draws(result: Any, prefix: str, thin: int = 1) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return every `thin`-th draw: variables, and statistics by Stan's names."""
    groups, _, _ = groups_of(result) or ({}, {}, {})
    values, arguments = groups[f"{prefix}posterior"], groups[f"{prefix}sample_stats"]
    stats = {name: arguments[x][:, ::thin] for x, name in _STATS.items() if x in arguments}
    return {name: x[:, ::thin] for name, x in values.items()}, stats


def _starts(method: str, model: Model, inits: Any, chains: int, seed: int | None) -> dict[str, Any]:
    """Return the settings of `Model.sample` for starts as CmdStanPy takes them."""
    title = f"CmdStanModel.{method}"
    if inits is None:
        return {}
    if isinstance(inits, CmdStanDraws):
        starts = inits.create_inits(seed, chains)
        inits = [starts] if chains == 1 else starts
    if isinstance(inits, (int, float)):
        if not 0.0 <= inits < np.inf:
            raise outside(title, "inits", inits, "be nonnegative finite")
        return {"init_radius": float(inits)}
    x = inits if isinstance(inits, list) else [inits] * chains
    if len(x) != chains:
        raise outside(title, "inits", x, f"have {chains} elements, one for each chain")
    seeds = generator(title, seed).integers(2**32, size=chains)
    return {
        "inits": [
            _values(method, "inits", start, model, int(number))
            for start, number in zip(x, seeds, strict=True)
        ]
    }


def _start(model: Model, inits: Any, seed: int | None) -> Any:
    """Return the start of an optimiser as `Model.optimize` takes it."""
    result = _starts("optimize", model, inits, 1, seed)
    if "init_radius" not in result:
        return result["inits"][0] if result else None
    radius, rng = result["init_radius"], np.random.default_rng(seed)
    return rng.uniform(-radius, radius, model.param_unc_num())


def _values(
    method: str, title: str, arguments: Any, model: Model, seed: int | None = None
) -> dict[str, Any]:
    """Read parameters by name or from a file; with a seed, missing ones are drawn."""
    parameters = model.layout.parameters
    if not isinstance(arguments, (Mapping, str, Path)):
        raise TypeError(
            f"CmdStanModel.{method}: {title} is {arguments!r}, but must be a dict of parameters "
            "or the path of a JSON file!"
        )
    result = dict(
        pair for name, x in read_data(arguments).items() for pair in orders.leaves(name, x)
    )
    surplus = [name for name in result if name not in parameters]
    if surplus and not {*surplus} <= model.shapes(True, True).keys():
        raise TypeError(
            f"CmdStanModel.{method}: {title} has {surplus[0]}, but must have parameters: "
            f"{', '.join(parameters)}!{nearest(surplus[0], parameters)}"
        )
    result = {name: x for name, x in result.items() if name in parameters}
    if seed is not None and len(result) < len(parameters):
        result = {**model.constrain(model.initial_point(seed=seed)), **result}
    model.layout.pack(f"CmdStanModel.{method}: {title}", result)  # raises for bad values
    return result
