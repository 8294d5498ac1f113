"""Real posteriors, as models of varmat. For the other libraries, the same log densities are
functions of the unconstrained vector.

Data sets, points and Stan's values come from the public posteriordb collection, with a JSON file
for each posterior. The folder is not part of this project. The environment variable
VARMAT_POSTERIORS names it, or it is ../shared/posteriors beside the repository. Posteriors that are
found there become workloads; without the folder there are none. A file holds "data" and "golden".
The latter has points ("theta", unconstrained, parameters in the order of the model), with
"log_prob" (including all constants and the log-Jacobians) and "grad".

The code for the other libraries is what a person who knows them would write: constants and design
matrices are made beforehand, and operations take whole arrays. Transforms, log-Jacobians and all
normalising constants are part of each log density."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import environment  # noqa: F401 - before NumPy
import numpy as np
import peers
from budgets import Budget, on_average
from timing import timings

import varmat as vm
from workloads.workload import FAMILIES, Workload

FAMILY = "posteriors"
# Seconds per turn of each competitor, and the number of turns.
SECONDS, TURNS = 0.01, 21
HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)
Data = dict[str, Any]


@dataclass(eq=False)
class Definition:
    """A posterior without its data.

    Attributes
    ----------
    name : str
        The name of its file.
    program : str
        The Stan program, in ``stan_programs/``.
    statements : int
        The statements of the Stan program with which the values were recorded.
    dispatch : bool
        Whether the data are so few that calls take most of the time.
    build : callable
        Takes the data and returns the parameters and the log density of a `varmat.Model`.
    expression : callable
        Takes a namespace and the data, and returns the log density of the unconstrained vector.
    """

    name: str
    program: str
    statements: int
    dispatch: bool
    build: Callable[[Data], tuple[dict[str, Any], Callable[..., Any]]]
    expression: Callable[[Any, Data], Callable[[Any], Any]] = field(init=False)

    @property
    def title(self) -> str:
        """The name of the model, without the name of the data set."""
        return self.name.partition("-")[2]

    def elsewhere(self, expression: Any) -> Any:
        """Decorator for the expression that the other libraries evaluate."""
        self.expression = expression
        return expression


DEFINITIONS: dict[str, Definition] = {}


def posterior(
    name: str, program: str, statements: int, dispatch: bool = False
) -> Callable[[Any], Definition]:
    """Decorator that makes a posterior from the function that builds its model."""

    def register(build: Any) -> Definition:
        return DEFINITIONS.setdefault(name, Definition(name, program, statements, dispatch, build))

    return register


@dataclass(frozen=True)
class Posterior(Workload):
    """A posterior with its data. For varmat, the gradient of a `varmat.Model` is measured."""

    # These fields have defaults because the fields before them do.
    definition: Any = None
    content: Any = None

    @cached_property
    def data(self) -> Data:
        return {name: np.asarray(value, float) for name, value in self.content["data"].items()}

    @cached_property
    def model(self) -> Any:
        parameters, log_density = self.definition.build(self.data)
        return vm.Model(log_density, parameters)

    @property
    def stan_seconds(self) -> float:
        """The time of a gradient in Stan, recorded with the data on some other machine."""
        return 1e-6 * float(self.content["stan_us_per_gradient"]["O1"])

    def implementation(
        self, library: str, size: int
    ) -> Callable[[Any], tuple[float, tuple[Any, ...]]] | None:
        """Return a ready-made function for value and gradients in a library, or None if
        `expression` is to be differentiated.
        """
        model = self.model
        if library == "plain":
            # Model.log_density works on variables here, so that it drops the same terms as the
            # gradient.
            return lambda q: (float(model._target(q.copy(), True, True)), ())
        if library == "varmat":
            gradient = model.log_density_gradient
        elif library == "recorded" and hasattr(vm, "recorded"):
            gradient = vm.recorded(lambda q: model._target(q, True, True))
        else:
            return None

        def value_and_gradients(q: np.ndarray) -> tuple[float, tuple[Any, ...]]:
            value, g = gradient(q)
            return value, (g,)

        return value_and_gradients

    def errors(
        self, implementation: Callable[[Any], tuple[Any, tuple[Any, ...]]]
    ) -> tuple[float, float]:
        """Return the worst errors of value and gradient, in units of 1 +

        log density

        and 1 + largest

        gradient

        of Stan.
        """
        value_error = gradient_error = 0.0
        for golden in self.content["golden"]:
            value, (gradient,) = implementation(np.array(golden["theta"]))
            true_value, true_gradient = golden["log_prob"], np.array(golden["grad"])
            value_error = max(value_error, abs(float(value) - true_value) / (1 + abs(true_value)))
            worst = float(np.max(np.abs(np.asarray(gradient) - true_gradient)))
            gradient_error = max(gradient_error, worst / (1 + float(np.max(np.abs(true_gradient)))))
        return value_error, gradient_error


def operations_of(each: Posterior, q: np.ndarray) -> tuple[int, int]:
    """Count the tape entries of one evaluation: those of the log density as it is written, and all
    of them.
    """
    parameters, log_density = each.definition.build(each.data)
    counts: list[int] = []

    def counted(*args: Any, **named: Any) -> Any:
        before = len(tape)
        result = log_density(*args, **named)
        counts.append(len(tape) - before)
        return result

    counted.__signature__ = inspect.signature(log_density)  # type: ignore[attr-defined]
    model = vm.Model(counted, parameters)
    # The function that a gradient evaluates, which records no sum. Older revisions have only the
    # other one.
    evaluate = getattr(model, "_terms", model._target)
    with vm.nested() as tape:
        evaluate(vm.var(q), False, True)
        return counts[0], len(tape)


def default_folder() -> Path:
    beside = Path(__file__).resolve().parents[3] / "shared" / "posteriors"
    return Path(os.environ.get("VARMAT_POSTERIORS", beside))


def find(folder: Path) -> list[Posterior]:
    """Make workloads of the posteriors whose files are in a folder. They replace those of another
    folder.
    """
    FAMILIES.pop(FAMILY, None)
    return [
        _workload(each, path)
        for name, each in DEFINITIONS.items()
        if (path := folder / f"{name}.json").exists()
    ]


def _workload(definition: Definition, path: Path) -> Posterior:
    content = json.loads(path.read_text(encoding="utf-8"))
    q = np.array(content["golden"][0]["theta"])

    def expression(xp: Any, size: int) -> Callable[[Any], Any]:
        return definition.expression(xp, found.data)

    found = Posterior(
        family=FAMILY,
        name=definition.title,
        sizes=(len(q),),
        point=lambda size: (q.copy(),),
        expression=expression,
        definition=definition,
        content=content,
        dispatch=definition.dispatch,
        stan=lambda size: (definition.program, content["data"]),
    )
    return found


def budgets() -> list[Budget]:
    """Compare the NumPy runner with the values alone. The native runner takes part in the rows."""
    found = []
    for workload in FAMILIES.get(FAMILY, ()):
        (size,) = workload.sizes
        args = workload.point(size)
        functions = {
            name: partial(peers.gradient_function(name, workload, size), *args)
            for name in ("plain", "numpy runner")
        }
        try:
            functions["numpy runner"]()
        # The model cannot be recorded.
        except vm.TapeError:
            continue
        t = timings(functions, SECONDS, TURNS)
        found.append((workload.name, float(t["numpy runner"].over(t["plain"]))))
    return [
        on_average(
            8,
            "recorded, NumPy runner / value alone at most 1.4, mean of posteriors",
            found,
            1.4,
            most=True,
        )
    ]


# --- transforms, for the libraries that have none ---


def ordered(xp: Any, u: Any) -> tuple[Any, Any]:
    """Return increasing numbers from the first number and the logarithms of the gaps, and the
    log-Jacobian.
    """
    return xp.cumsum(xp.concatenate([u[:1], xp.exp(u[1:])])), xp.sum(u[1:])


def positive_ordered(xp: Any, u: Any) -> tuple[Any, Any]:
    """Return increasing positive numbers from the logarithms of the gaps, and the log-Jacobian."""
    return xp.cumsum(xp.exp(u)), xp.sum(u)


def unit_interval(xp: Any, u: Any) -> tuple[Any, Any, Any]:
    """Return the logarithms of a number between 0 and 1 and of its complement, from its logit, and
    the log-Jacobian.
    """
    log_p, log_not_p = -xp.log1p_exp(-u), -xp.log1p_exp(u)
    return log_p, log_not_p, xp.sum(log_p + log_not_p)


# --- the posteriors ---


@posterior("eight_schools-eight_schools_noncentered", "eight_schools", statements=5, dispatch=True)
def eight_schools(data: Data) -> Any:
    y, errors = data["y"], data["sigma"]

    def log_density(theta_trans: Any, mu: Any, tau: Any) -> Any:
        theta = vm.fma(tau, theta_trans, mu)
        return (
            vm.normal_lpdf(theta_trans, 0, 1),
            vm.normal_lpdf(y, theta, errors),
            vm.normal_lpdf(mu, 0, 5),
            vm.cauchy_lpdf(tau, 0, 5),
        )

    return {"theta_trans": vm.real(8), "mu": vm.real(), "tau": vm.positive()}, log_density


@eight_schools.elsewhere
def eight_schools_elsewhere(xp: Any, data: Data) -> Any:
    y, errors = xp.asarray(data["y"]), xp.asarray(data["sigma"])

    def log_density(q: Any) -> Any:
        theta_trans, mu, log_tau = q[:8], q[8], q[9]
        tau = xp.exp(log_tau)
        return (
            xp.normal_lpdf(theta_trans, 0.0, 1.0)
            + xp.normal_lpdf(y, mu + tau * theta_trans, errors)
            + xp.normal_lpdf(mu, 0.0, 5.0)
            + xp.cauchy_lpdf(tau, 0.0, 5.0)
            + log_tau
        )

    return log_density


@posterior("wells_data-wells_dist100ars_model", "wells", statements=1)
def wells(data: Data) -> Any:
    x = np.column_stack([data["dist"] / 100, data["arsenic"]])

    def log_density(alpha: Any, beta: Any) -> Any:
        return vm.bernoulli_logit_glm_lpmf(data["switched"], x, alpha, beta)

    return {"alpha": vm.real(), "beta": vm.real(2)}, log_density


@wells.elsewhere
def wells_elsewhere(xp: Any, data: Data) -> Any:
    x, switched = (
        xp.asarray(np.column_stack([data["dist"] / 100, data["arsenic"]])),
        xp.asarray(data["switched"]),
    )
    return lambda q: xp.bernoulli_logit_glm_lpmf(switched, x, q[0], q[1:])


@posterior("kidiq-kidscore_interaction", "kidiq", statements=2, dispatch=True)
def kidiq(data: Data) -> Any:
    hs, iq = data["mom_hs"], data["mom_iq"]
    x = np.column_stack([np.ones_like(iq), hs, iq, hs * iq])

    def log_density(beta: Any, sigma: Any) -> Any:
        return vm.cauchy_lpdf(sigma, 0, 2.5), vm.normal_id_glm_lpdf(
            data["kid_score"], x, 0.0, beta, sigma
        )

    return {"beta": vm.real(4), "sigma": vm.positive()}, log_density


@kidiq.elsewhere
def kidiq_elsewhere(xp: Any, data: Data) -> Any:
    hs, iq = data["mom_hs"], data["mom_iq"]
    x, score = (
        xp.asarray(np.column_stack([np.ones_like(iq), hs, iq, hs * iq])),
        xp.asarray(data["kid_score"]),
    )

    def log_density(q: Any) -> Any:
        beta, sigma = q[:4], xp.exp(q[4])
        return xp.cauchy_lpdf(sigma, 0.0, 2.5) + xp.normal_lpdf(score, x @ beta, sigma) + q[4]

    return log_density


@posterior("gp_pois_regr-gp_regr", "gp_regression", statements=6, dispatch=True)
def gaussian_process(data: Data) -> Any:
    x, y = data["x"], data["y"]

    def log_density(rho: Any, alpha: Any, sigma: Any) -> Any:
        cov = vm.add_diag(vm.gp_exp_quad_cov(x, alpha, rho), sigma)
        factor = np.linalg.cholesky(cov)
        return (
            vm.gamma_lpdf(rho, 25, 4),
            vm.normal_lpdf(alpha, 0, 2),
            vm.normal_lpdf(sigma, 0, 1),
            vm.multi_normal_cholesky_lpdf(y, np.zeros(len(y)), factor),
        )

    return {"rho": vm.positive(), "alpha": vm.positive(), "sigma": vm.positive()}, log_density


@gaussian_process.elsewhere
def gaussian_process_elsewhere(xp: Any, data: Data) -> Any:
    x, y, zero, one = (
        data["x"],
        xp.asarray(data["y"]),
        xp.asarray(np.zeros_like(data["y"])),
        xp.asarray(np.eye(len(data["y"]))),
    )
    half_squares = xp.asarray(0.5 * (x[:, None] - x) ** 2)

    def log_density(q: Any) -> Any:
        parameters = xp.exp(q)
        rho, alpha, sigma = parameters[0], parameters[1], parameters[2]
        cov = alpha**2 * xp.exp(-half_squares / rho**2) + sigma * one
        return (
            xp.gamma_lpdf(rho, 25.0, 4.0)
            + xp.normal_lpdf(alpha, 0.0, 2.0)
            + xp.normal_lpdf(sigma, 0.0, 1.0)
            + xp.multi_normal_cholesky_lpdf(y, zero, xp.linalg.cholesky(cov))
            + xp.sum(q)
        )

    return log_density


@posterior("hmm_example-hmm_example", "hmm_example", statements=8, dispatch=True)
def hidden_markov(data: Data) -> Any:
    y = data["y"]

    def log_density(theta1: Any, theta2: Any, mu: Any) -> Any:
        transitions = np.stack([theta1, theta2])
        emissions = vm.normal_lpdf.pointwise(y, mu[:, None], 1)
        # Here each possible first state has the weight 1, which is twice the weight in a
        # distribution.
        chain = vm.hmm_marginal(emissions, transitions, np.array([0.5, 0.5]))
        return vm.normal_lpdf(mu, np.array([3.0, 10.0]), 1), chain, np.log(2.0)

    return {
        "theta1": vm.simplex(2),
        "theta2": vm.simplex(2),
        "mu": vm.positive_ordered(2),
    }, log_density


@hidden_markov.elsewhere
def hidden_markov_elsewhere(xp: Any, data: Data) -> Any:
    y, means = xp.asarray(data["y"]), xp.asarray(np.array([3.0, 10.0]))
    marginal = scanned_chain() if xp.library == "jax" else lambda *args: halved_chain(xp, *args)

    def log_density(q: Any) -> Any:
        log_p, log_not_p, log_jacobian = unit_interval(xp, q[:2])
        mu, log_gaps = positive_ordered(xp, q[2:])
        emissions = -0.5 * (y[:, None] - mu) ** 2 - HALF_LOG_TWO_PI
        chain = marginal(emissions, xp.stack([log_p, log_not_p], 1))
        return xp.normal_lpdf(mu, means, 1.0) + chain + log_jacobian + log_gaps

    return log_density


def scanned_chain() -> Callable[[Any, Any], Any]:
    """Return the log marginal likelihood of a hidden chain step by step, with `jax.lax.scan`."""
    import jax

    logsumexp = jax.scipy.special.logsumexp

    def marginal(emissions: Any, log_transitions: Any) -> Any:
        def step(message: Any, emission: Any) -> Any:
            return logsumexp(message[:, None] + log_transitions, axis=0) + emission, None

        return logsumexp(jax.lax.scan(step, emissions[0], emissions[1:])[0])

    return marginal


def halved_chain(xp: Any, emissions: Any, log_transitions: Any) -> Any:
    """Return the same with few calls, for eager libraries. Neighbours in the product of matrices
    are multiplied until one matrix is left.
    """
    largest = xp.max(emissions, axis=1)
    weights = xp.exp(emissions - largest[:, None])
    steps = xp.exp(log_transitions) * weights[1:, None, :]
    total = xp.sum(largest)
    while len(steps) > 1:
        pairs = steps[:-1:2] @ steps[1::2]
        # The products are scaled, so that long ones do not underflow.
        sums = xp.sum(pairs, axis=(1, 2))
        total = total + xp.sum(xp.log(sums))
        pairs = pairs / sums[:, None, None]
        steps = xp.concatenate([pairs, steps[-1:]]) if len(steps) % 2 else pairs
    return total + xp.log(xp.sum(weights[0] @ steps[0]))


@posterior("arK-arK", "autoregression", statements=6, dispatch=True)
def autoregression(data: Data) -> Any:
    y, order = data["y"], int(data["K"])
    lags = np.lib.stride_tricks.sliding_window_view(y[:-1], order)[:, ::-1].copy()

    def log_density(alpha: Any, beta: Any, sigma: Any) -> Any:
        return (
            vm.normal_lpdf(alpha, 0, 10),
            vm.normal_lpdf(beta, 0, 10),
            vm.cauchy_lpdf(sigma, 0, 2.5),
            vm.normal_id_glm_lpdf(y[order:], lags, alpha, beta, sigma),
        )

    return {"alpha": vm.real(), "beta": vm.real(order), "sigma": vm.positive()}, log_density


@autoregression.elsewhere
def autoregression_elsewhere(xp: Any, data: Data) -> Any:
    order = int(data["K"])
    y = xp.asarray(data["y"][order:])
    lags = xp.asarray(
        np.lib.stride_tricks.sliding_window_view(data["y"][:-1], order)[:, ::-1].copy()
    )

    def log_density(q: Any) -> Any:
        alpha, beta, sigma = q[0], q[1:-1], xp.exp(q[-1])
        return (
            xp.normal_lpdf(q[:-1], 0.0, 10.0)
            + xp.cauchy_lpdf(sigma, 0.0, 2.5)
            + xp.normal_id_glm_lpdf(y, lags, alpha, beta, sigma)
            + q[-1]
        )

    return log_density


@posterior("radon_mn-radon_hierarchical_intercept_noncentered", "radon", statements=8)
def radon(data: Data) -> Any:
    x = np.column_stack([data["log_uppm"], data["floor_measure"]])
    county = data["county_idx"].astype(int) - 1
    counties = int(data["J"])

    def log_density(
        alpha_raw: Any, beta: Any, mu_alpha: Any, sigma_alpha: Any, sigma_y: Any
    ) -> Any:
        alpha = vm.fma(sigma_alpha, alpha_raw, mu_alpha)
        return (
            vm.normal_lpdf(sigma_alpha, 0, 1),
            vm.normal_lpdf(sigma_y, 0, 1),
            vm.normal_lpdf(mu_alpha, 0, 10),
            vm.normal_lpdf(beta, 0, 10),
            vm.normal_lpdf(alpha_raw, 0, 1),
            vm.normal_id_glm_lpdf(data["log_radon"], x, alpha[county], beta, sigma_y),
        )

    parameters = {"alpha_raw": vm.real(counties), "beta": vm.real(2), "mu_alpha": vm.real()}
    return parameters | {"sigma_alpha": vm.positive(), "sigma_y": vm.positive()}, log_density


@radon.elsewhere
def radon_elsewhere(xp: Any, data: Data) -> Any:
    x, y = (
        xp.asarray(np.column_stack([data["log_uppm"], data["floor_measure"]])),
        xp.asarray(data["log_radon"]),
    )
    county, counties = xp.asarray(data["county_idx"].astype(int) - 1), int(data["J"])

    def log_density(q: Any) -> Any:
        alpha_raw, beta, mu_alpha = q[:counties], q[counties : counties + 2], q[counties + 2]
        sigmas = xp.exp(q[-2:])
        alpha = mu_alpha + sigmas[0] * alpha_raw
        return (
            xp.normal_lpdf(sigmas, 0.0, 1.0)
            + xp.normal_lpdf(q[counties : counties + 3], 0.0, 10.0)
            + xp.normal_lpdf(alpha_raw, 0.0, 1.0)
            + xp.normal_lpdf(y, alpha[county] + x @ beta, sigmas[1])
            + xp.sum(q[-2:])
        )

    return log_density


@posterior("low_dim_gauss_mix-low_dim_gauss_mix", "two_normals", statements=4)
def mixture(data: Data) -> Any:
    y = data["y"]

    def log_density(mu: Any, sigma: Any, theta: Any) -> Any:
        parts = vm.normal_lpdf.pointwise(y, mu[:, None], sigma[:, None])
        return (
            vm.normal_lpdf(sigma, 0, 2),
            vm.normal_lpdf(mu, 0, 2),
            vm.beta_lpdf(theta, 5, 5),
            np.sum(vm.log_mix(theta, parts[0], parts[1])),
        )

    return {
        "mu": vm.ordered(2),
        "sigma": vm.positive(2),
        "theta": vm.lower_upper(0, 1),
    }, log_density


@mixture.elsewhere
def mixture_elsewhere(xp: Any, data: Data) -> Any:
    y = xp.asarray(data["y"])

    def log_density(q: Any) -> Any:
        mu, log_gap = ordered(xp, q[:2])
        log_sigma = q[2:4]
        sigma = xp.exp(log_sigma)
        log_theta, log_not_theta, log_jacobian = unit_interval(xp, q[4])
        parts = (
            -0.5 * ((y - mu[:, None]) / sigma[:, None]) ** 2 - log_sigma[:, None] - HALF_LOG_TWO_PI
        )
        return (
            xp.normal_lpdf(sigma, 0.0, 2.0)
            + xp.normal_lpdf(mu, 0.0, 2.0)
            + xp.beta_lpdf(xp.exp(log_theta), 5.0, 5.0)
            + xp.sum(xp.logaddexp(log_theta + parts[0], log_not_theta + parts[1]))
            + log_gap
            + xp.sum(log_sigma)
            + log_jacobian
        )

    return log_density


@posterior("sblrc-blr", "bayesian_regression", statements=3, dispatch=True)
def linear_regression(data: Data) -> Any:
    def log_density(beta: Any, sigma: Any) -> Any:
        return (
            vm.normal_lpdf(beta, 0, 10),
            vm.normal_lpdf(sigma, 0, 10),
            vm.normal_id_glm_lpdf(data["y"], data["X"], 0.0, beta, sigma),
        )

    return {"beta": vm.real(5), "sigma": vm.positive()}, log_density


@linear_regression.elsewhere
def linear_regression_elsewhere(xp: Any, data: Data) -> Any:
    y, x = xp.asarray(data["y"]), xp.asarray(data["X"])

    def log_density(q: Any) -> Any:
        beta, sigma = q[:5], xp.exp(q[5])
        return (
            xp.normal_lpdf(beta, 0.0, 10.0)
            + xp.normal_lpdf(sigma, 0.0, 10.0)
            + xp.normal_lpdf(y, x @ beta, sigma)
            + q[5]
        )

    return log_density


@posterior("irt_2pl-irt_2pl", "irt_2pl", statements=8)
def item_response(data: Data) -> Any:
    y, items, persons = data["y"], int(data["I"]), int(data["J"])

    def log_density(
        sigma_theta: Any, theta: Any, sigma_a: Any, a: Any, mu_b: Any, sigma_b: Any, b: Any
    ) -> Any:
        log_odds = a[:, None] * (theta - b[:, None])
        return (
            vm.cauchy_lpdf(sigma_theta, 0, 2),
            vm.normal_lpdf(theta, 0, sigma_theta),
            vm.cauchy_lpdf(sigma_a, 0, 2),
            vm.lognormal_lpdf(a, 0, sigma_a),
            vm.normal_lpdf(mu_b, 0, 5),
            vm.cauchy_lpdf(sigma_b, 0, 2),
            vm.normal_lpdf(b, mu_b, sigma_b),
            vm.bernoulli_logit_lpmf(y, log_odds),
        )

    parameters = {
        "sigma_theta": vm.positive(),
        "theta": vm.real(persons),
        "sigma_a": vm.positive(),
        "a": vm.positive(items),
    }
    return parameters | {
        "mu_b": vm.real(),
        "sigma_b": vm.positive(),
        "b": vm.real(items),
    }, log_density


@item_response.elsewhere
def item_response_elsewhere(xp: Any, data: Data) -> Any:
    y, items, persons = xp.asarray(data["y"]), int(data["I"]), int(data["J"])
    # The places at which theta, sigma_a, a, mu_b, sigma_b and b begin.
    theta_at, scale_at, a_at, mu_at = 1, persons + 1, persons + 2, persons + items + 2

    def log_density(q: Any) -> Any:
        log_sigma_theta, theta, log_sigma_a = q[0], q[theta_at:scale_at], q[scale_at]
        log_a, mu_b, log_sigma_b, b = q[a_at:mu_at], q[mu_at], q[mu_at + 1], q[mu_at + 2 :]
        sigma_theta, sigma_a, sigma_b = (
            xp.exp(log_sigma_theta),
            xp.exp(log_sigma_a),
            xp.exp(log_sigma_b),
        )
        a = xp.exp(log_a)
        return (
            xp.cauchy_lpdf(sigma_theta, 0.0, 2.0)
            + xp.normal_lpdf(theta, 0.0, sigma_theta)
            + xp.cauchy_lpdf(sigma_a, 0.0, 2.0)
            + xp.lognormal_lpdf(a, 0.0, sigma_a)
            + xp.normal_lpdf(mu_b, 0.0, 5.0)
            + xp.cauchy_lpdf(sigma_b, 0.0, 2.0)
            + xp.normal_lpdf(b, mu_b, sigma_b)
            + xp.bernoulli_logit_lpmf(y, a[:, None] * (theta - b[:, None]))
            + (log_sigma_theta + log_sigma_a + log_sigma_b)
            + xp.sum(log_a)
        )

    return log_density


@posterior("nes_logit_data-nes_logit_model", "nes", statements=1)
def nes(data: Data) -> Any:
    x = data["income"][:, None]

    def log_density(alpha: Any, beta: Any) -> Any:
        return vm.bernoulli_logit_glm_lpmf(data["vote"], x, alpha, beta)

    return {"alpha": vm.real(), "beta": vm.real(1)}, log_density


@nes.elsewhere
def nes_elsewhere(xp: Any, data: Data) -> Any:
    vote, x = xp.asarray(data["vote"]), xp.asarray(data["income"][:, None])
    return lambda q: xp.bernoulli_logit_glm_lpmf(vote, x, q[0], q[1:])


find(default_folder())
