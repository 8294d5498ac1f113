"""Results with the interface of CmdStanPy: draws by name, in tables, and a mode."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NoReturn, TypeAlias

import numpy as np

from varmat.models.diagnostics import diagnostics, mean_errors
from varmat.models.results import optional, summarised
from varmat.stan import orders
from varmat.stan.errors import nearest
from varmat.typing import Settings

Table: TypeAlias = Any  # a ``pandas.DataFrame``
Dataset: TypeAlias = Any  # an ``xarray.Dataset``

# The columns that `draws_pd` adds in front.
_PLACES = ("chain__", "iter__", "draw__")
_ABSENT = {
    "save_csvfiles": "draws_pd().to_csv(path) saves the draws",
    "runset": "results are in memory, without files",
    "metric": "the adapted metric is not kept",
    "inv_metric": "the adapted metric is not kept",
}


def _joined(x: np.ndarray) -> np.ndarray:
    """Put chain after chain."""
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


class CmdStanDraws:
    """Draws of a Stan program by name; made by the methods of `CmdStanModel`.

    Parameters
    ----------
    values, stats : mapping of str to ndarray, shape (chains, draws, ...)
        Variables of the program, and statistics of the method, whose names end in ``__``.
    parameters : sequence of str
        The names among `values` that are parameters.
    settings : mapping
        Arguments of the method.
    result : object
        The result of the method of `Model`, before thinning.
    warmup : mapping of str to ndarray, optional
        `values` and `stats` of the warmup.
    """

    def __init__(
        self,
        values: Mapping[str, np.ndarray],
        stats: Mapping[str, np.ndarray],
        parameters: Iterable[str],
        settings: Settings,
        result: Any,
        warmup: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self._values, self._stats, self._parameters = dict(values), dict(stats), [*parameters]
        self.result, self._warmup = result, warmup or {}
        self.metadata = SimpleNamespace(
            cmdstan_config=dict(settings),
            method_vars=[*stats],
            stan_vars={name: x.shape[2:] for name, x in values.items()},
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {', '.join(self._values)}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._values:
            return self.stan_variable(name)
        hint = f": {_ABSENT[name]}!" if name in _ABSENT else f"!{nearest(name, self._known())}"
        raise AttributeError(f"{type(self).__name__} has no {name}{hint}")

    def _known(self) -> list[str]:
        return [*self._values, *(x for x in dir(type(self)) if x[0] != "_")]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Return the names of all columns of draws, as ``lp__`` and ``theta[1]``."""
        return tuple(
            column for name in [*self._stats, *self._values] for column in self._columns(name)
        )

    def _columns(self, name: str) -> list[str]:
        if name in self._stats:
            return [name]
        return [*map(orders.bracketed, orders.elements(name, self._values[name].shape[2:]))]

    def _by_chain(self, inc_warmup: bool) -> np.ndarray:
        """Return all columns, of shape (chains, draws, columns)."""
        arrays = {**self._stats, **self._values}
        parts = [orders.by_columns(arrays.values(), 2)]
        if before := self._before(inc_warmup):
            parts.insert(0, orders.by_columns([before[name] for name in arrays], 2))
        return np.concatenate(parts, axis=1)

    def _before(self, inc_warmup: bool) -> Mapping[str, np.ndarray]:
        """Return the draws of the warmup if they are wanted, and warn if none are saved."""
        if inc_warmup and not self._warmup:
            text = "there are no draws of the warmup: save_warmup=True of sample keeps them"
            warnings.warn(f"{type(self).__name__}: {text}", UserWarning, stacklevel=4)
        return self._warmup if inc_warmup else {}

    def draws(self) -> np.ndarray:
        """Return all columns, of shape (draws, columns)."""
        result: np.ndarray = self._by_chain(False)[0]
        return result

    def draws_pd(self, vars: str | Sequence[str] | None = None, inc_warmup: bool = False) -> Table:
        """Tabulate draws, chain after chain, of all or of some variables."""
        result = self._by_chain(inc_warmup)
        chains, draws, _ = result.shape
        indices = np.indices((chains, draws)).reshape(2, -1) + 1
        table = optional("pandas", "draws_pd").DataFrame(
            result.reshape(chains * draws, -1), columns=self.column_names
        )
        for i, x in enumerate([*indices, np.arange(chains * draws) + 1]):
            table.insert(i, _PLACES[i], x)
        if vars is None:
            return table
        names = [vars] if isinstance(vars, str) else [*dict.fromkeys(vars)]
        return table[[item for name in names for item in self._named("draws_pd", name)]]

    def _named(self, method: str, name: str) -> list[str]:
        if name in _PLACES:
            return [name]
        if name not in self._values and name not in self._stats:
            self._refuse(method, name)
        return self._columns(name)

    def _refuse(self, method: str, name: str) -> NoReturn:
        names = [*self._values, *self._stats]
        raise ValueError(
            f"{type(self).__name__}.{method}: the variable is {name!r}, but must be one of "
            f"{', '.join(names)}!{nearest(name, names)}"
        )

    def stan_variable(self, var: str, inc_warmup: bool = False) -> Any:
        """Return the draws of a variable, of shape (draws of all chains, ...)."""
        if var not in self._values:
            self._refuse("stan_variable", var)
        parts = [self._values[var]]
        if before := self._before(inc_warmup):
            parts.insert(0, before[var])
        return _joined(np.concatenate(parts, axis=1))

    def stan_variables(self) -> dict[str, Any]:
        """Return the draws of all variables by name, as `stan_variable`."""
        return {name: self.stan_variable(name) for name in self._values}

    def method_variables(self) -> dict[str, np.ndarray]:
        """Return the variables of the method by name, of shape (draws,)."""
        return {name: x[0] for name, x in self._stats.items()}

    def parameters(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return draws of parameters, of shape (chains, draws, ...)."""
        for name in names:
            if name not in self._values:
                raise ValueError(
                    f"CmdStanModel.generate_quantities: previous_fit has no {name}, but must have "
                    f"all parameters: {', '.join(names)}!"
                )
        return {name: self._values[name] for name in names}

    def create_inits(self, seed: int | None = None, chains: int = 4) -> Any:
        """Draw starts for chains: a dict of parameters for one, else a list of dicts."""
        flat = {name: _joined(self._values[name]) for name in self._parameters}
        count = len(next(iter(flat.values())))
        rows = np.random.default_rng(seed).choice(count, chains, replace=count < chains)
        result = [{name: x[i] for name, x in flat.items()} for i in rows]
        return result[0] if chains == 1 else result

    def with_values(self, values: Mapping[str, np.ndarray]) -> CmdStanChains:
        """Add draws of other variables."""
        both, config = {**self._values, **values}, self.metadata.cmdstan_config
        return CmdStanChains(both, self._stats, self._parameters, config, self.result)


class CmdStanChains(CmdStanDraws):
    """Draws of several chains."""

    @property
    def chains(self) -> int:
        """Return the number of chains."""
        return int(next(iter(self._values.values())).shape[0])

    @property
    def chain_ids(self) -> list[int]:
        """Return the numbers of the chains, from 1."""
        return [*range(1, self.chains + 1)]

    def draws(self, *, inc_warmup: bool = False, concat_chains: bool = False) -> np.ndarray:
        """Return all columns, of shape (draws, chains, columns) or (draws of all chains,
        columns).
        """
        result = self._by_chain(inc_warmup)
        return result.reshape(-1, result.shape[2]) if concat_chains else result.swapaxes(0, 1)

    def draws_xr(
        self, vars: str | Sequence[str] | None = None, inc_warmup: bool = False
    ) -> Dataset:
        """Return variables as a dataset of xarray, with the dimensions chain and draw."""
        names = [vars] if isinstance(vars, str) else [*(self._values if vars is None else vars)]
        arrays = {}
        for name in names:
            x = self.stan_variable(name, inc_warmup)
            dims = [f"{name}_dim_{i}" for i in range(x.ndim - 1)]
            shape = (self.chains, len(x) // self.chains, *x.shape[1:])
            arrays[name] = (["chain", "draw", *dims], x.reshape(shape))
        result = optional("xarray", "draws_xr").Dataset(arrays, {"chain": self.chain_ids})
        return result.assign_coords(draw=np.arange(result.sizes["draw"]))

    def method_variables(self) -> dict[str, np.ndarray]:
        """Return the variables of the sampler by name, of shape (draws, chains)."""
        return {name: x.T for name, x in self._stats.items()}


class CmdStanMCMC(CmdStanChains):
    """Draws of `CmdStanModel.sample`."""

    @property
    def num_draws_sampling(self) -> int:
        """Return the number of draws of a chain."""
        return int(next(iter(self._values.values())).shape[1])

    @property
    def num_draws_warmup(self) -> int:
        """Return the number of draws of the warmup of a chain, after thinning."""
        config = self.metadata.cmdstan_config
        return int(-(-config["iter_warmup"] // config["thin"]))

    @property
    def thin(self) -> int:
        """Return the period of the draws that are kept."""
        return int(self.metadata.cmdstan_config["thin"])

    @property
    def divergences(self) -> np.ndarray:
        """Return the number of divergences of each chain."""
        return np.asarray(np.sum(self._stats["divergent__"], axis=1))

    @property
    def max_treedepths(self) -> np.ndarray:
        """Return the number of draws of each chain whose tree has the largest depth."""
        deepest = self.metadata.cmdstan_config["max_treedepth"]
        return np.asarray(np.sum(self._stats["treedepth__"] >= deepest, axis=1))

    @property
    def step_size(self) -> np.ndarray:
        """Return the step size of each chain at its end."""
        steps: np.ndarray = self._stats["stepsize__"][:, -1]
        return steps

    def summary(
        self, percentiles: Sequence[int] = (5, 50, 95), sig_figs: int | None = None
    ) -> Table:
        """Tabulate ``lp__`` and all elements, with all digits whatever `sig_figs`.

        Returns
        -------
        pandas.DataFrame
            With the columns of CmdStanPy except ``ESS_bulk/s``, because chains are not timed;
            ``lp__`` only if there are parameters.
        """
        bad = [value for value in percentiles if not 0 < value < 100]
        if bad or [*percentiles] != sorted({*percentiles}) or not len(percentiles):
            raise ValueError(
                f"CmdStanMCMC.summary: percentiles is {percentiles!r}, but must be increasing "
                "numbers between 1 and 99!"
            )
        # As there, the log density is left out if it is of nothing.
        first = {"lp__": self._stats["lp__"]} if self._parameters else {}
        arrays = {**first, **self._values}
        x = orders.by_columns(arrays.values(), 2)
        flat = x.reshape(-1, x.shape[2])
        result = diagnostics(x)
        with np.errstate(all="ignore"):
            middle = np.median(flat, axis=0)
            columns = {"Mean": flat.mean(0), "MCSE": mean_errors(x), "StdDev": flat.std(0, ddof=1)}
            # The factor makes it the standard deviation of a normal distribution.
            columns["MAD"] = 1.4826 * np.median(np.abs(flat - middle), axis=0)
            for item in percentiles:
                columns[f"{item}%"] = np.percentile(flat, item, axis=0)
        columns |= {"ESS_bulk": result["ess_bulk"], "ESS_tail": result["ess_tail"]}
        names = [label for name in arrays for label in self._columns(name)]
        return optional("pandas", "summary").DataFrame(
            {**columns, "R_hat": result["r_hat"]}, index=names
        )

    def diagnose(self) -> str:
        """Describe reasons not to trust the draws, with the arguments of `CmdStanModel.sample`."""
        said = summarised(self.result, self._parameters or None).warnings
        text = "\n".join(said) if said else "No problems detected."
        for ours, theirs in (("target_accept", "adapt_delta"), ("max_depth", "max_treedepth")):
            text = text.replace(ours, theirs)
        return text


class CmdStanGQ(CmdStanChains):
    """Generated quantities of `CmdStanModel.generate_quantities`.

    Attributes
    ----------
    previous_fit : CmdStanDraws
        The draws from which they were made.
    """

    previous_fit: CmdStanDraws

    def draws(
        self, *, inc_warmup: bool = False, concat_chains: bool = False, inc_sample: bool = False
    ) -> np.ndarray:
        """Return all columns, also of the previous fit if `inc_sample`."""
        if inc_sample:
            return self.previous_fit.with_values(self._values).draws(
                inc_warmup=inc_warmup, concat_chains=concat_chains
            )
        return super().draws(inc_warmup=inc_warmup, concat_chains=concat_chains)

    def draws_pd(
        self,
        vars: str | Sequence[str] | None = None,
        inc_warmup: bool = False,
        inc_sample: bool = False,
    ) -> Table:
        """Tabulate draws, also of the previous fit if `inc_sample` or if `vars` names them."""
        if inc_sample or vars is not None:
            return self.previous_fit.with_values(self._values).draws_pd(vars, inc_warmup)
        return super().draws_pd(inc_warmup=inc_warmup)

    def stan_variable(self, var: str, inc_warmup: bool = False) -> Any:
        """Return the draws of a quantity, or of a variable of the previous fit."""
        if var in self._values:
            return super().stan_variable(var, inc_warmup)
        return self.previous_fit.stan_variable(var, inc_warmup)


class CmdStanMLE(CmdStanDraws):
    """A mode, as found by `CmdStanModel.optimize`."""

    @property
    def converged(self) -> bool:
        """Tell whether the optimiser has found a mode."""
        return bool(self.result.success)

    @property
    def optimized_params_np(self) -> np.ndarray:
        """Return the values of all columns."""
        result: np.ndarray = self.draws()[0]
        return result

    @property
    def optimized_params_dict(self) -> dict[str, float]:
        """Return the values of all columns by name, ``lp__`` first."""
        return dict(zip(self.column_names, self.draws()[0].tolist(), strict=True))

    @property
    def optimized_params_pd(self) -> Table:
        """Return the values of all columns as a table with one row."""
        return optional("pandas", "optimized_params_pd").DataFrame([self.optimized_params_dict])

    def stan_variable(self, var: str, inc_warmup: bool = False) -> Any:
        """Return the value of a variable, a float or an array."""
        result = super().stan_variable(var)[0]
        return result if np.ndim(result) else float(result)


class CmdStanLaplace(CmdStanDraws):
    """Draws of `CmdStanModel.laplace_sample`; `mode` is the `CmdStanMLE` around which they are."""

    mode: CmdStanMLE


class CmdStanPathfinder(CmdStanDraws):
    """Draws of `CmdStanModel.pathfinder`."""
