"""A model: named, constrained parameters, and a log density of them written in NumPy."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from varmat.core.errors import DomainError
from varmat.derivatives.recorded import Recorded
from varmat.functions.checks import check_integer
from varmat.interrupts import Attempt
from varmat.models.callbacks import Callbacks
from varmat.models.checking import GradientCheck, compare_gradient
from varmat.models.diagnostics import SamplingWarning
from varmat.models.fitting import (
    LaplaceApproximation,
    Optimum,
    approximate,
    maximise,
    named_draws,
    recorded_if_slow,
)
from varmat.models.functions import generator, recoverable
from varmat.models.gradients import DensityModel
from varmat.models.inference_data import approximated, completed, from_draws, term_shapes
from varmat.models.metrics import with_metric
from varmat.models.nuts import check_settings
from varmat.models.pathfinder import approximate_by_paths
from varmat.models.predictive import Predictive, Predictor, posterior_predictive, prior_predictive
from varmat.models.results import Summary, described, report, summarised, tell_lost
from varmat.models.sampling import check_executor, run_nutpie
from varmat.models.starts import Starts, random_start, starts_of
from varmat.typing import Function, Operand, Setting

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from varmat.models.results import ArvizData, Labels

__all__ = ["Model"]

# Methods, and the names that they or their like have in other libraries.
_THEIRS = {
    "sample or optimize": "fit run mcmc train",
    "sample": "nuts hmc sampling",
    "optimize": "find_map find_MAP map mle optimizing maximum_a_posteriori",
    "pathfinder": "variational vb advi",
    "log_density": "logp log_prob logprob lp logpdf target",
    "log_density_gradient": "dlogp log_prob_grad grad_log_prob log_density_and_gradient",
    "sample_prior_predictive": "prior_predictive simulate prior",
    "sample_posterior_predictive": "predictive posterior_predictive",
    "graph": "to_graphviz model_to_graphviz plot render_model",
    "param_names": "parameters params named_vars free_RVs variables",
    "log_density_hessian": "hessian d2logp",
    "check_gradient": "diagnose gradient_check check_grad",
}
_OURS = {theirs: ours for ours, names in _THEIRS.items() for theirs in names.split()}


class Model(DensityModel):
    """Named, constrained parameters and a log density of them, ready for optimisers and samplers.

    Parameters
    ----------
    log_density : callable, optional
        Terms to be added to the distributions that parameters and observations state: a function
        in NumPy that returns a scalar, up to a constant, or a tuple, list or dict of terms. Terms
        of a dict that have names of data are the log-likelihood of these observations, if they have
        an element for each. It is called with keyword arguments: the parameters, named values and
        data that its own parameters name. If it takes one positional parameter of another name, it
        is called with a dict of all of them. If it takes a keyword ``propto``, that is passed on
        too.
    parameters : dict of str to Transform, optional
        As keyword arguments, for parameters whose names are taken here.
    data : dict, optional
        Passed to the functions unchanged, but columns of strings and categorical columns of pandas
        as the numbers of their labels, as `groups` has them: an index of parameters whose `dims`
        has the name of the data, and which get these labels. Masked values, None and `NA` among
        numbers are refused, as are numbers below 0 that are an index of parameters.
    transformed_parameters : callable, optional
        Called in the same way, before the log density; returns a dict of named values.
    generated_quantities : callable, optional
        Called in the same way with plain values, also with ``rng``, a `numpy.random.Generator`, if
        it names it; returns a dict.
    log_likelihood : callable, str or False, optional
        By default that of what is `observed`; False leaves it out of results. The name of a
        dimension gives the sum for each of its labels, over all that is observed: to leave out
        groups, also of several observed variables jointly. A function is called
        in the same way as the log density, and returns the log-likelihood of each observation
        (or group of them), an array that is not summed or a dict of such arrays, for ``arviz.loo``
        and similar functions: see Notes.
    observed : str or sequence of str, optional
        The names of the data that are observations. By default those that terms of the
        log-likelihood are called after.
    coords : dict of str to sequence, optional
        Names of dimensions with their labels, for the results.
    dims : dict of str to sequence of str, optional
        Names of the dimensions of the parameters, quantities and data. No dimension may be called
        like one of them, or ``chain`` or ``draw``.
    recorded : bool, optional
        Record the log density once and run the recording for every further gradient, natively if
        llvmlite is installed: many times as fast if arrays are small, and possible if the same
        operations are computed at every point. See `varmat.recorded` for what that excludes. By
        default only `sample` and `log_density_gradient.map` do so, for themselves, and evaluate the
        function again each time if it cannot be recorded.
    **kwargs : Transform, Observed or callable
        What the model states under a name. The observations: `observed`. Values that follow from
        others: a function that is called in the same way. The parameters: `real`, `positive`,
        `lower`, `upper`, `interval`, `offset_multiplier`, `ordered`, `positive_ordered`, `simplex`,
        `sum_to_zero`, `unit_vector`, `corr_matrix`, `cov_matrix`, `cholesky_corr`, `cholesky_cov`,
        each with a shape and a prior; and `discrete` ones, which are summed out.

    Raises
    ------
    TypeError
        If a name is both a parameter and data, a parameter is not one of these, or a function takes
        what the model does not have.

    Notes
    -----
    All parameters together are a vector of any real numbers, `q`, in the order in which they were
    declared: the methods have the names, the meaning and the defaults of BridgeStan's methods.
    ``jacobian=True`` adds the log-Jacobian of the transforms. ``propto=True`` has an effect only if
    `log_density` takes ``propto`` and hands it to densities, which then drop what depends on data
    alone. Elements of arrays are counted from one and in NumPy's order, the last index fastest
    (Stan's is the other one).

    The log-likelihood is evaluated at the draws of the posterior, and belongs to the log density
    only if that asks for it: a log density with a parameter called ``log_likelihood`` is given what
    the function returned, to be added to the prior. So nothing is written twice, and nothing is
    counted twice.

    References
    ----------
    E. A. Roualdes and others (2023), "BridgeStan: Efficient in-memory access to the methods of a
    Stan model", Journal of Open Source Software 8(87), 5236.

    Examples
    --------
    >>> import varmat as vm, varmat.distributions as dist
    >>> model = vm.Model(
    ...     mu=vm.real(prior=dist.Normal(0.0, 5.0)),
    ...     sigma=vm.positive(prior=dist.Exponential(1.0)),
    ...     y=vm.observed([1.0, 3.0, 2.0], lambda mu, sigma: dist.Normal(mu, sigma)),
    ... )
    >>> model.param_names()
    ['mu', 'sigma']
    >>> model.sample_prior_predictive(seed=1)["prior_predictive"]["y"].shape
    (1, 500, 3)

    The same density as a function:

    >>> def log_density(mu, sigma):
    ...     prior = vm.normal_lpdf(mu, 0.0, 5.0) + vm.exponential_lpdf(sigma, 1.0)
    ...     return prior + vm.normal_lpdf([1.0, 3.0, 2.0], mu, sigma)
    >>> vm.Model(log_density, mu=vm.real(), sigma=vm.positive()).log_density_gradient([2.0, 0.0])[1]
    array([-0.08, -1.  ])
    """

    def __getattr__(self, name: str) -> Any:
        if name in _OURS:
            raise AttributeError(f"Model: there is no {name}: did you mean {_OURS[name]}?")
        methods = [x for x in dir(Model) if not x.startswith("_")]
        near = [] if name.startswith("_") else get_close_matches(name, methods, 1, 0.8)
        if near and not hasattr(type(self), name):
            raise AttributeError(f"Model: there is no {name}: did you mean {near[0]}?")
        return object.__getattribute__(self, name)  # which raises again, in a property too

    def __enter__(self) -> NoReturn:
        raise TypeError(
            "Model: a model is not a context manager, but must be made of arguments, as in "
            "Model(mu=varmat.real(), y=varmat.observed(...))!"
        )

    def __exit__(self, *args: object) -> None: ...

    def initial_point(
        self, init: Operand = None, seed: int | None = None, jacobian: bool = True
    ) -> np.ndarray:
        """Find an unconstrained point to start from.

        Parameters
        ----------
        init : dict, array_like of shape (N,) or Optimum, optional
            Parameters by name, the point itself, or a mode that was found; by default random,
            uniform between -2 and 2, with a finite log density. So are parameters that a dict
            leaves out.
        seed : int, optional
            Seed for the random point.
        jacobian : bool
            As in `log_density`.

        Returns
        -------
        ndarray, shape (N,)

        Raises
        ------
        DomainError
            If parameters lie on the border of what is allowed, where the unconstrained point is
            infinitely far out.
        """
        centre: np.ndarray | None = None
        radius: float | np.ndarray = 2.0
        if isinstance(init, Mapping):
            q, is_given = self.layout.pack_some("initial_point", init)
            if not np.all(np.isfinite(q)):
                names = self.unconstrained_names_at(~np.isfinite(q))
                raise DomainError(
                    f"initial_point: init puts {names} on the border, but must be inside the "
                    "bounds!"
                )
            if is_given.all():
                return q
            init, centre, radius = None, q, np.where(is_given, 0.0, 2.0)
        if isinstance(init, Optimum):
            init = init.q
        if init is not None:
            return self.point("initial_point", init).copy()

        def accepts(q: np.ndarray) -> bool:
            value, gradient = self.log_density_gradient(q, jacobian=jacobian)
            return bool(np.isfinite(value) and np.all(np.isfinite(gradient)))

        with np.errstate(all="ignore"):
            rng, where = generator("Model.initial_point", seed), (centre, recoverable, self.blame)
            return random_start(rng, self.layout.size, accepts, *where, radius)

    def _starts(
        self, inits: Operand, radius: float | None, chains: int, name: str, seed: Operand
    ) -> Starts:
        parameters = self.layout.parameters
        return starts_of(self.initial_point, parameters, inits, radius, chains, name, seed)

    def _need_parameters(self, name: str) -> None:
        if not self.layout.parameters:
            raise TypeError(
                f"Model.{name}: the model has no parameters, but must have some, such as "
                "mu=varmat.real()!"
            )

    def optimize(
        self,
        init: Operand = None,
        *,
        jacobian: bool = False,
        method: str = "L-BFGS-B",
        seed: int | None = None,
        **options: Setting,
    ) -> Optimum:
        """Find a mode with `scipy.optimize.minimize` and the exact gradient.

        Parameters
        ----------
        init : dict, array_like of shape (N,) or Optimum, optional
            Where to start; by default a random point, see `initial_point`.
        jacobian : bool
            By default the mode is one of the density of the *parameters*: the maximum a posteriori,
            or the maximum likelihood if there are no priors. With True it is the mode of the
            density of the unconstrained vector, as in `laplace`.
        method : str
            One of SciPy's that take a gradient. Those of Newton's type ("trust-ncg",
            "trust-krylov", "trust-exact", ...) get exact second derivatives.
        seed : int, optional
            Seed for the random start.
        **options
            Options of the method, for SciPy.

        Returns
        -------
        Optimum
            With the named values of the parameters in ``values``.

        Notes
        -----
        If a gradient takes more than 10 ms the log density is recorded for the time of the call,
        unless the model has ``recorded=False``.
        """
        start = self.initial_point(init, seed, jacobian)
        return maximise(recorded_if_slow(self, start), start, jacobian, method, options)

    def laplace(
        self,
        init: Operand = None,
        *,
        draws: int = 1000,
        jacobian: bool = True,
        seed: int | None = None,
        **options: Setting,
    ) -> LaplaceApproximation:
        """Make the normal approximation on the unconstrained scale: the mode, the inverse of the
        exact negative Hessian, and draws.

        Parameters
        ----------
        init : dict, array_like of shape (N,) or Optimum, optional
            Where to start, see `optimize`; the mode is found to rounding error with Newton's
            method.
        draws : int
        jacobian : bool
            By default the approximation is to the density of the unconstrained vector.
        seed : int, optional
            Seed for the random start and the draws.
        **options
            As in `optimize`, also ``method``.

        Returns
        -------
        LaplaceApproximation

        Raises
        ------
        DomainError
            If the Hessian is not negative definite.
        """
        check_integer("Model.laplace", "draws", draws, 0)
        self._need_parameters("laplace")
        start = self.initial_point(init, seed, jacobian)
        model = recorded_if_slow(self, start)
        mode = model.optimize(start, jacobian=jacobian, **options)
        return approximated(self, approximate(model, mode, draws, seed))

    def pathfinder(
        self,
        draws: int = 1000,
        *,
        paths: int = 4,
        inits: Operand = None,
        init_radius: float | None = None,
        trials: int = 25,
        seed: int | None = None,
    ) -> ArvizData:
        """Approximate the posterior by normal distributions along paths of L-BFGS.

        Each path has the distribution of its step that is closest to the posterior. Draws of all
        paths are weighted by importance, the largest weights smoothed. Far quicker than `sample`,
        less exact, and a good start for it: ``model.sample(inits=model.pathfinder())``.

        Parameters
        ----------
        draws : int
        paths : int
        inits, init_radius
            Where paths start, as chains in `sample`.
        trials : int
            Draws by which the steps of a path are compared.
        seed : int, optional

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            As that of `sample`, with one chain. Its ``sample_stats`` have the number of the path of
            each draw, and ``pareto_k``, the same for all.

        Warns
        -----
        SamplingWarning
            If ``pareto_k`` is above 0.7: the approximation is too far from the posterior.

        Raises
        ------
        DomainError
            If no path leads to a normal distribution.

        References
        ----------
        L. Zhang, B. Carpenter, A. Gelman and A. Vehtari (2022), "Pathfinder: parallel quasi-Newton
        variational inference", Journal of Machine Learning Research 23(306), 1-49.

        Examples
        --------
        >>> import numpy as np, varmat as vm
        >>> model = vm.Model(lambda x: vm.normal_lpdf(x, 3.0, 0.1), x=vm.real())
        >>> found = model.pathfinder(seed=1)
        >>> float(round(model.summary(found).table["mean"][0], 1))
        3.0
        """
        for name, count in (("draws", draws), ("paths", paths), ("trials", trials)):
            check_integer("Model.pathfinder", name, count, 1)
        self._need_parameters("pathfinder")
        rng = generator("Model.pathfinder", seed)
        model = self.for_many_calls()
        calls = Callbacks(
            model, 0, self._starts(inits, init_radius, paths, "Model.pathfinder", seed)
        )
        starts = [calls.initial_point(int(rng.integers(2**63)), path) for path in range(paths)]
        q, stats = approximate_by_paths(model, starts, draws, trials, rng)
        k = stats["pareto_k"][0]
        if not k <= 0.7:
            text = (
                f"pareto_k is {k:.2f}, above 0.7, so the approximation is too far from the "
                "posterior: use the draws only as inits of sample"
            )
            warnings.warn(SamplingWarning({"pareto_k": text}, "Model.pathfinder"), stacklevel=2)
        by_name = named_draws("pathfinder", model, q, rng)
        groups = {"posterior": by_name, "sample_stats": stats}
        one = {title: {n: x[np.newaxis] for n, x in g.items()} for title, g in groups.items()}
        return completed(self, one, [0])

    def sample(
        self,
        draws: int = 1000,
        chains: int = 4,
        seed: int | np.random.Generator | None = None,
        *,
        tune: int = 1000,
        thin: int = 1,
        target_accept: float = 0.8,
        max_depth: int = 10,
        metric: Operand = "diag",
        inits: Operand = None,
        init_radius: float | None = None,
        keep_warmup: bool = True,
        cores: int | None = None,
        executor: Executor | str | None = None,
        progress_bar: bool = True,
        **settings: Setting,
    ) -> ArvizData:
        """Draw from the posterior with nutpie's NUTS; needs the extra ``[sample]``.

        Parameters
        ----------
        draws, tune : int
            For each chain: draws kept, and before them draws for adaptation, at least 1.
        thin : int
            One draw in `thin` is kept; ``draws * thin`` are made. This saves memory; all draws
            are better if there is room for them.
        chains, cores : int
            Chains, and how many of them run at a time.
        seed : int or numpy.random.Generator, optional
            The draws of a chain depend on it and on the number of the chain alone, not on `cores`
            or `executor`.
        target_accept : float
            The mean acceptance probability to which the step is adapted. Closer to 1 means smaller
            steps: slower, with fewer divergences.
        max_depth : int
            A draw takes at most ``2**max_depth - 1`` steps.
        metric : {"diag", "diag_draws", "low_rank"}, array_like, LaplaceApproximation or draws
            The scale of each parameter from draws and gradients, or from draws only, as in Stan; or
            also the strongest correlations. Or a known scale: variances of the unconstrained
            vector, of shape (N,), its covariance, of shape (N, N), or what `sample`, `laplace` or
            `pathfinder` returned, whose covariance is used and, without `inits`, whose last draws.
            A `tune` of 50 is then enough.
        inits : dict, array_like, Optimum, list of these, earlier draws or float, optional
            Where chains start: one point for all, parameters by name or the unconstrained vector; a
            list or an array of shape (chains, N) with one for each; or what `sample`, `laplace` or
            `pathfinder` returned, whose last draws are taken. Parameters that a dict leaves out
            start at random. A number is a radius around 0, as in Stan: with 0 chains start there.
            By default chains start near 0.
        init_radius : float, optional
            How far starts may be from there at random, for each element of the unconstrained
            vector; less if need be. By default 2 without `inits`, and 0 with them.
        keep_warmup : bool
            Return the draws of the adaptation too.
        executor : concurrent.futures.Executor, str or None
            Who samples the chains, in place of `cores`: threads, processes, or the workers of other
            machines by Dask or MPI; or ``"threads"``, ``"processes"`` (those of loky) or
            ``"serial"`` (this thread).
        progress_bar : bool
            Show the progress. Warnings do not depend on it.
        **settings
            Others of nutpie, such as ``store_divergences`` or ``initial_step``.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            As ArviZ has it before 1 and since; with transformed parameters and generated
            quantities, and if the model has them with the groups ``log_likelihood``,
            ``observed_data`` and ``constant_data``. Printed, it is the `summary`. ArviZ is imported
            when something else of it is used.

        Warns
        -----
        SamplingWarning
            If something speaks against the draws of the parameters: divergences, trees that reached
            `max_depth`, R-hat, few effective draws, E-BFMI, inf or nan; with what to do.
        UserWarning
            If the log density cannot be recorded, and why: each point is then evaluated in Python.
            If there are no processes for that, and why: chains are then sampled in
            sequence. If an interrupt leaves out generated quantities, or the log-likelihood; if a
            function raises an error after sampling, or the log-likelihood would take more than 4
            GiB, which then is left out: the warning says how to compute it later.

        Raises
        ------
        ImportError
            If nutpie is not installed.
        Exception
            Errors of the model's functions, with the line. A `DomainError` is not raised: it only
            rejects the point. Nor are errors in generated quantities at draws that are kept, or a
            `ValueError` or an `ArithmeticError` there during adaptation, where parameters may be
            extreme: the quantities are nan. If it was raised in another process, the traceback from
            there is its cause.
        RuntimeError
            If a process that samples a chain is killed or crashes, without an `executor`.
        TypeError
            If there are both `cores` and an `executor`, or a setting does not exist.

        Notes
        -----
        Threads run a recording, one for each chain, without Python where llvmlite is installed. A
        log density that cannot be recorded, or is not to be, is evaluated in Python, which only one
        thread of a process runs at a time. So each chain is sampled by a separate process, as
        many at a time as `cores` says, unless there is one core or one chain. The processes are
        those of loky: new ones, which get a copy of the model by cloudpickle, also from a notebook.
        They do not see what happens here later, and what the model changes in them, as a counter,
        does not come back. Each needs 2 to 4 seconds of processor time to start, most of it to
        import nutpie; all start at the same time. If all the sampling takes less, ``cores=1`` is
        faster. BLAS has as many threads in each process as here: if the arrays are large, the
        environment variable ``OMP_NUM_THREADS=1`` may make sampling faster.

        On an `executor` each chain is a task, and the log-likelihood is shared out in blocks of
        draws. A worker of another process is sent the model once, samples its chains natively where
        it can, makes their generated quantities, and sends draws back. The chains of a worker that
        is lost are sampled again, as `varmat.map_rect` says. Workers of this machine report
        progress; chains of other machines are shown when they are done, and an interrupt leaves
        them out. Work that the model shares out, as by `varmat.reduce_sum`, is computed by the
        worker of the chain.

        An interrupt (Ctrl-C, or the button of a notebook) ends the sampling and returns the draws
        that were made; a second one gives them up. Chains of unequal length are cut to the
        shortest, and chains without draws are left out, with a warning. Where Python evaluates the
        model, generated quantities come with the draws; otherwise they are evaluated afterwards. An
        interrupt then leaves nan for those that are missing, with a warning."""
        # nutpie panics without adaptation, hangs without cores, and gives no result without chains.
        counts = ("draws", draws, 0), ("tune", tune, 1), ("thin", thin, 1), ("chains", chains, 1)
        for name, count, least in counts:
            check_integer("Model.sample", name, count, least)
        seed = int(seed.integers(2**63)) if isinstance(seed, np.random.Generator) else seed
        for name, choice, least in (("cores", cores, 1), ("seed", seed, 0)):
            if choice is not None:
                check_integer("Model.sample", name, choice, least)
        if executor is not None:
            check_executor(cores, executor)
        parameters = inspect.signature(Model.sample).parameters
        settings.update(target_accept=target_accept, max_depth=max_depth, metric=metric)
        model = self
        if not isinstance(metric, str):
            model, inits = with_metric(self, metric, inits, settings)
        settings.update(draws=draws, chains=chains, tune=tune, thin=thin, cores=cores)
        settings.update(progress_bar=progress_bar, keep_warmup=keep_warmup)
        check_settings(parameters, settings)
        if self.generated is None:
            self._need_parameters("sample")
        starts = self._starts(inits, init_radius, chains, "Model.sample", seed)
        model = model.for_many_calls()
        if self.likelihood is not None:
            term_shapes(self, self.likelihood)  # raises errors now, before draws would be lost
        groups, numbers = run_nutpie(model, starts, seed, settings, executor)
        tell_lost(groups, 2)
        result = completed(self, groups, numbers, executor)
        with Attempt(lambda error: not isinstance(error, Warning)) as reporting:
            of_parameters = [*self.layout.parameters], progress_bar, 2, self.stated.centred
            report(result, *of_parameters, self.sampler_words)
        if reporting.error is not None:
            text = f"the draws could not be diagnosed: {described(reporting.error)}"
            warnings.warn(f"Model.sample: {text}", UserWarning, stacklevel=2)
        return result

    def to_jax(self, propto: bool = True, jacobian: bool = True) -> Function:
        """Return the log density as a function of JAX of the unconstrained vector, for samplers and
        devices of JAX.

        Parameters
        ----------
        propto, jacobian : bool
            See `log_density`.

        Returns
        -------
        callable
            May be compiled (`jax.jit`), mapped over points (`jax.vmap`), and differentiated once:
            its gradient comes from the program, not from JAX. It has JAX's precision, which is
            single unless ``jax_enable_x64`` is set. Where the log density would be refused, or a
            choice that was recorded goes the other way, it is nan.

        Raises
        ------
        ImportError
            If JAX is not installed.
        TapeError
            If the log density cannot be recorded.
        TypeError
            If it has steps that JAX cannot run; the message names them.

        Examples
        --------
        >>> import numpy as np, varmat as vm
        >>> model = vm.Model(lambda mu: vm.normal_lpdf(mu, 0.0, 1.0), mu=vm.real())
        >>> import jax  # doctest: +SKIP
        >>> jax.grad(model.to_jax())(np.array([2.0]))  # doctest: +SKIP
        Array([-2.], dtype=float32)
        """
        from varmat.programs.run.jax import scalar_to_jax

        recorded: Recorded[object] = Recorded(self._target, 0)
        recorded(self.initial_point(seed=0, jacobian=jacobian), propto, jacobian)
        assert recorded.program is not None  # it was just called
        return scalar_to_jax(recorded.program)

    def to_arviz(
        self,
        draws: Operand,
        *predictive: Predictive,
        seed: int | np.random.Generator | None = None,
        executor: Executor | str | None = None,
        log_prior: bool = False,
    ) -> ArvizData:
        """Convert draws, also by another sampler, to ArviZ data with the log-likelihood, the data,
        and predictive draws.

        Parameters
        ----------
        draws : array_like, dict, LaplaceApproximation, arviz.InferenceData or xarray.DataTree
            Unconstrained vectors of shape (chains, draws, N), as samplers of any package return;
            arrays by name of shape (chains, draws, ...); or what `sample` or `laplace` returned.
        *predictive : Predictive
            What `sample_posterior_predictive` and `sample_prior_predictive` returned.
        seed : int or numpy.random.Generator, optional
            Seed for the generated quantities.
        executor : concurrent.futures.Executor, str or None
            Who computes quantities and the log-likelihood, as in `log_density_gradient.map`; by
            default this thread.
        log_prior : bool
            Add the group ``log_prior`` with the log prior of each element of the parameters that
            state one, for ``arviz.psens`` and similar functions.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            With the groups ``posterior``, ``sample_stats``, ``log_likelihood``,
            ``posterior_predictive``, ``prior``, ``prior_predictive``, ``observed_data`` and
            ``constant_data``, as far as there is something in them.

        Raises
        ------
        ImportError
            If ArviZ is not installed.
        ShapeError
            If draws have another shape.
        TypeError
            If `draws` is something else, or has no draws of a parameter; or if `log_prior` is asked
            for, and no parameter states a prior.
        """
        return from_draws(self, draws, predictive, seed, executor, log_prior)

    def summary(
        self, result: ArvizData, var_names: str | Sequence[str] | None = None, rows: int | None = 10
    ) -> Summary:
        """Tabulate draws, with what speaks against them: divergences, chains that do not agree, few
        effective draws.

        Parameters
        ----------
        result : arviz.InferenceData, xarray.DataTree, LaplaceApproximation or dict
            What `sample`, `laplace` or `to_arviz` returned, or arrays by name of shape (chains,
            draws, ...).
        var_names : str or sequence of str, optional
            Parameters and quantities to show; by default all.
        rows : int or None
            How many rows are printed; None for all. The table has all.

        Returns
        -------
        Summary
            Printed, or shown by a notebook, a table with a row for each element.

        Raises
        ------
        TypeError, DomainError
            If `result` is something else, or has no draws.
        """
        return summarised(result, var_names, rows, self.stated.centred)

    def sample_posterior_predictive(
        self,
        result: ArvizData,
        simulate: Function | None = None,
        *,
        seed: int | np.random.Generator | None = None,
        coords: Labels | None = None,
        dims: Mapping[str, Sequence[str]] | None = None,
        executor: Executor | str | None = None,
    ) -> Predictive:
        """Simulate data at each draw from the posterior.

        Parameters
        ----------
        result : arviz.InferenceData, xarray.DataTree, LaplaceApproximation or dict
            What `sample` or `laplace` returned, or arrays by name of shape (chains, draws, ...).
        simulate : callable, optional
            By default observations are drawn from the distributions that they state. A function is
            called as generated quantities are, with the parameters, transformed parameters and data
            that it names, and ``rng``, a `numpy.random.Generator`; returns a dict of named values.
            They may share names with the data that they replicate.
        seed : int or numpy.random.Generator, optional
        coords, dims : dict, optional
            As in `Model`, for what is simulated.
        executor : concurrent.futures.Executor, str or None
            Who simulates: any executor, ``"threads"``, ``"processes"`` or ``"serial"``; by default
            this thread. The draws are the same: each hundred has separate random numbers.

        Returns
        -------
        Predictive
            With the group "posterior_predictive"; its method ``to_arviz`` makes ArviZ data of it.

        Raises
        ------
        TypeError
            If `result` has no draws of a parameter, or `simulate` takes an unknown name.
        Exception
            What `simulate` raises, with a note that tells at which draw.

        Examples
        --------
        >>> import varmat as vm, varmat.distributions as dist
        >>> model = vm.Model(
        ...     rate=vm.positive(prior=dist.Gamma(2.0, 1.0)),
        ...     y=vm.observed([2, 3, 0, 1, 4], lambda rate: dist.Poisson(rate)),
        ... )
        >>> approximation = model.laplace(seed=1, draws=200)
        >>> found = model.sample_posterior_predictive(approximation, seed=2)
        >>> replicates = found["posterior_predictive"]["y"]
        >>> replicates.shape, bool(0.01 < (replicates.max(axis=-1) >= 4).mean() < 0.99)
        ((1, 200, 5), True)
        """
        predictor = Predictor(self, "sample_posterior_predictive", seed, coords, dims)
        return posterior_predictive(predictor, result, simulate, executor)

    def predict(
        self,
        result: ArvizData,
        /,
        *,
        seed: int | np.random.Generator | None = None,
        executor: Executor | str | None = None,
        **data: Operand,
    ) -> Predictive:
        """Draw observations for other data, such as new rows of a table, whose observations are not
        known.

        Parameters
        ----------
        result : arviz.InferenceData, xarray.DataTree, LaplaceApproximation or dict
            As in `sample_posterior_predictive`.
        seed, executor
            As in `sample_posterior_predictive`.
        **data
            Data of the model by name, such as covariates and codes of groups; the others stay. The
            observations have the shape to which their distribution broadcasts with these data.

        Returns
        -------
        Predictive
            With the group "posterior_predictive".

        Raises
        ------
        TypeError
            If the model has no data of a name, or no `varmat.observed`.

        Examples
        --------
        >>> import numpy as np, varmat as vm, varmat.distributions as dist
        >>> line = vm.Model(
        ...     slope=vm.real(prior=dist.Normal(0, 5)),
        ...     y=vm.observed([1.1, 1.9, 3.2], lambda slope, x: dist.Normal(slope * x, 0.1)),
        ...     data={"x": np.array([1.0, 2.0, 3.0])},
        ... )
        >>> found = line.predict(line.laplace(seed=1), x=np.array([10.0, 20.0]), seed=1)
        >>> found["posterior_predictive"]["y"].mean((0, 1)).round()
        array([10., 21.])
        """
        model = self._with_data("Model.predict", data)
        predictor = Predictor(model, "Model.predict", seed, None, None)
        simulate = model.stated.predict if model.stated.parts else None
        return posterior_predictive(predictor, result, simulate, executor)

    def sample_prior_predictive(
        self,
        prior: Function | None = None,
        simulate: Function | None = None,
        *,
        draws: int = 500,
        seed: int | np.random.Generator | None = None,
        coords: Labels | None = None,
        dims: Mapping[str, Sequence[str]] | None = None,
        executor: Executor | str | None = None,
    ) -> Predictive:
        """Draw parameters from the prior, and simulate data from each draw.

        Parameters
        ----------
        prior : callable, optional
            By default parameters are drawn from the priors that they state. A function is called
            with ``rng``, a `numpy.random.Generator`, and the data that it names, and returns a dict
            of all parameters: the model does not look at what of a log density is the prior.
        simulate : callable, optional
            As in `sample_posterior_predictive`.
        draws : int
        seed, coords, dims, executor
            As in `sample_posterior_predictive`; the prior is drawn from in this thread.

        Returns
        -------
        Predictive
            With the groups "prior", which has transformed parameters too, and "prior_predictive".

        Raises
        ------
        DomainError, ShapeError
            If the prior gives a parameter a value that the model does not allow.
        TypeError
            If a parameter is missing or has no prior, or there is one too many.

        Examples
        --------
        >>> import varmat as vm, varmat.distributions as dist
        >>> model = vm.Model(rate=vm.positive(prior=dist.Gamma(2.0, 1.0)))
        >>> drawn = model.sample_prior_predictive(
        ...     simulate=lambda rate, rng: {"y": vm.poisson_rng(rate, rng=rng, size=5)}, seed=1
        ... )
        >>> drawn["prior"]["rate"].shape, drawn["prior_predictive"]["y"].shape
        ((1, 500), (1, 500, 5))
        """
        check_integer("sample_prior_predictive", "draws", draws, 0)
        self._need_parameters("sample_prior_predictive")
        predictor = Predictor(self, "sample_prior_predictive", seed, coords, dims)
        return prior_predictive(predictor, prior, simulate, draws, executor)

    def check_gradient(
        self,
        q: Operand = None,
        *,
        seed: int | None = 0,
        tolerance: float = 1e-6,
        eps: float = 1e-3,
        jacobian: bool = True,
    ) -> GradientCheck:
        """Compare the gradient with finite differences of the log density.

        Parameters
        ----------
        q : dict, array_like of shape (N,) or Optimum, optional
            The point; by default a random one, see `initial_point`.
        seed : int, optional
            Seed for the random point.
        tolerance : float
            Tolerance of the differences, relative to the derivative or to one, whichever is larger.
        eps : float
            The step, see `finite_diff_gradient`.
        jacobian : bool
            As in `log_density`.

        Returns
        -------
        GradientCheck
            True if all agree; printed, a table that names the parameters.
        """
        point = self.initial_point(q, seed, jacobian)
        return compare_gradient(self, point, tolerance, eps, jacobian)
