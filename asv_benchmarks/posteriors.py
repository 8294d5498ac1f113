"""Real posteriors in plain NumPy against Stan's own log densities and gradients, with what a gradient costs.

    python asv_benchmarks/posteriors.py [--data FOLDER] [--quick]

The data sets and Stan's values are those of the public posteriordb collection, a JSON file each, in a folder that is not part of
this project: ``--data``, or the environment variable VARMAT_POSTERIORS, or ../shared/posteriors beside the repository. Each file
holds "data" and "golden": points ("theta", unconstrained, parameters in the order of the model), with "log_prob" (all constants
and the log-Jacobians included) and "grad". The bounds are 1e-10 (1 + |log density|) and 1e-9 (1 + largest |gradient|).

Statements are those of the Stan program, in transformed parameters and model, each line of a loop counted once. Operations are
what one gradient records on the tape: those of the model as it is written here, and in all, with what `vm.Model` adds: taking the
unknowns apart, constraining them, and the sum with the log-Jacobians; the aim is at most two more in all than there are statements.
One thread; times are medians over turns. It exits with 1 if an error is over its bound.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import environment  # noqa: F401 - before NumPy
import numpy as np
from compare import timings

import varmat as vm
from varmat.core.tape import current_tape

ROOT = Path(__file__).resolve().parents[1]
VALUE_BOUND, GRADIENT_BOUND = 1e-10, 1e-9
HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)


class Posterior(NamedTuple):
    """A model: from the data to its parameters and its log density."""

    build: Callable[[dict[str, Any]], tuple[dict[str, Any], Callable[..., Any]]]
    # Of the Stan program.
    statements: int


POSTERIORS: dict[str, Posterior] = {}


def posterior(name: str, statements: int) -> Callable[[Any], Any]:
    def register(build: Any) -> Any:
        POSTERIORS[name] = Posterior(build, statements)
        return build

    return register


@posterior("eight_schools-eight_schools_noncentered", statements=5)
def eight_schools(data: Any) -> Any:
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


@posterior("wells_data-wells_dist100ars_model", statements=1)
def wells(data: Any) -> Any:
    x = np.column_stack([data["dist"] / 100, data["arsenic"]])

    def log_density(alpha: Any, beta: Any) -> Any:
        return vm.bernoulli_logit_glm_lpmf(data["switched"], x, alpha, beta)

    return {"alpha": vm.real(), "beta": vm.real(2)}, log_density


@posterior("kidiq-kidscore_interaction", statements=2)
def kidiq(data: Any) -> Any:
    hs, iq = data["mom_hs"], data["mom_iq"]
    x = np.column_stack([np.ones_like(iq), hs, iq, hs * iq])

    def log_density(beta: Any, sigma: Any) -> Any:
        return vm.cauchy_lpdf(sigma, 0, 2.5), vm.normal_id_glm_lpdf(data["kid_score"], x, 0.0, beta, sigma)

    return {"beta": vm.real(4), "sigma": vm.positive()}, log_density


@posterior("gp_pois_regr-gp_regr", statements=6)
def gaussian_process(data: Any) -> Any:
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


@posterior("hmm_example-hmm_example", statements=8)
def hidden_markov(data: Any) -> Any:
    y = data["y"]

    def log_density(theta1: Any, theta2: Any, mu: Any) -> Any:
        transitions = np.stack([theta1, theta2])
        emissions = -0.5 * (y - mu[:, None]) ** 2 - HALF_LOG_TWO_PI
        # Here the first state has the weight 1 in each case: twice that of a distribution.
        chain = vm.hmm_marginal(emissions, transitions, np.array([0.5, 0.5]))
        return vm.normal_lpdf(mu, np.array([3.0, 10.0]), 1), chain, np.log(2.0)

    return {"theta1": vm.simplex(2), "theta2": vm.simplex(2), "mu": vm.positive_ordered(2)}, log_density


@posterior("arK-arK", statements=6)
def autoregression(data: Any) -> Any:
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


@posterior("radon_mn-radon_hierarchical_intercept_noncentered", statements=8)
def radon(data: Any) -> Any:
    x = np.column_stack([data["log_uppm"], data["floor_measure"]])
    county = data["county_idx"].astype(int) - 1
    counties = int(data["J"])

    def log_density(alpha_raw: Any, beta: Any, mu_alpha: Any, sigma_alpha: Any, sigma_y: Any) -> Any:
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


@posterior("low_dim_gauss_mix-low_dim_gauss_mix", statements=4)
def mixture(data: Any) -> Any:
    y = data["y"]

    def log_density(mu: Any, sigma: Any, theta: Any) -> Any:
        parts = -0.5 * ((y - mu[:, None]) / sigma[:, None]) ** 2 - np.log(sigma)[:, None] - HALF_LOG_TWO_PI
        return (
            vm.normal_lpdf(sigma, 0, 2),
            vm.normal_lpdf(mu, 0, 2),
            vm.beta_lpdf(theta, 5, 5),
            np.sum(vm.log_mix(theta, parts[0], parts[1])),
        )

    return {"mu": vm.ordered(2), "sigma": vm.positive(2), "theta": vm.lower_upper(0, 1)}, log_density


@posterior("sblrc-blr", statements=3)
def linear_regression(data: Any) -> Any:
    def log_density(beta: Any, sigma: Any) -> Any:
        return (
            vm.normal_lpdf(beta, 0, 10),
            vm.normal_lpdf(sigma, 0, 10),
            vm.normal_id_glm_lpdf(data["y"], data["X"], 0.0, beta, sigma),
        )

    return {"beta": vm.real(5), "sigma": vm.positive()}, log_density


@posterior("irt_2pl-irt_2pl", statements=8)
def item_response(data: Any) -> Any:
    y, items, persons = data["y"], int(data["I"]), int(data["J"])

    def log_density(sigma_theta: Any, theta: Any, sigma_a: Any, a: Any, mu_b: Any, sigma_b: Any, b: Any) -> Any:
        return (
            vm.cauchy_lpdf(sigma_theta, 0, 2),
            vm.normal_lpdf(theta, 0, sigma_theta),
            vm.cauchy_lpdf(sigma_a, 0, 2),
            vm.lognormal_lpdf(a, 0, sigma_a),
            vm.normal_lpdf(mu_b, 0, 5),
            vm.cauchy_lpdf(sigma_b, 0, 2),
            vm.normal_lpdf(b, mu_b, sigma_b),
            vm.bernoulli_logit_lpmf(y, a[:, None] * (theta - b[:, None])),
        )

    parameters = {"sigma_theta": vm.positive(), "theta": vm.real(persons), "sigma_a": vm.positive(), "a": vm.positive(items)}
    return parameters | {"mu_b": vm.real(), "sigma_b": vm.positive(), "b": vm.real(items)}, log_density


@posterior("nes_logit_data-nes_logit_model", statements=1)
def nes(data: Any) -> Any:
    x = data["income"][:, None]

    def log_density(alpha: Any, beta: Any) -> Any:
        return vm.bernoulli_logit_glm_lpmf(data["vote"], x, alpha, beta)

    return {"alpha": vm.real(), "beta": vm.real(1)}, log_density


class Figures(NamedTuple):
    """What is printed of a posterior."""

    # Errors in units of the bounds' scales: 1 + |log density|, 1 + largest |gradient|.
    value_error: float
    gradient_error: float
    own_statements: int
    own_operations: int
    operations: int
    gradient_seconds: float
    plain_seconds: float
    stan_seconds: float


def statements_of(function: Any) -> int:
    """Of a log density: its assignments, and each term that it returns."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    *assignments, last = definition.body  # type: ignore[attr-defined]
    return len(assignments) + (len(last.value.elts) if isinstance(last.value, ast.Tuple) else 1)


def operations_of(model: Any, log_density: Any, q: Any) -> tuple[int, int]:
    """Tape entries of one evaluation: those of the log density as it is written, and in all."""
    counts = []

    def counted(*args: Any, **named: Any) -> Any:
        tape = current_tape()
        before = len(tape)
        result = log_density(*args, **named)
        counts.append(len(tape) - before)
        return result

    parameters = inspect.signature(log_density)
    counted.__signature__ = parameters  # type: ignore[attr-defined]
    whole = vm.Model(counted, model)
    with vm.nested() as tape:
        whole._target(vm.var(q), False, True)
        return counts[0], len(tape)


def measure(each: Posterior, content: dict[str, Any], seconds: float, turns: int) -> Figures:
    data = {name: np.asarray(value, float) for name, value in content["data"].items()}
    parameters, log_density = each.build(data)
    model = vm.Model(log_density, parameters)
    value_error = gradient_error = 0.0
    for golden in content["golden"]:
        value, gradient = model.log_density_gradient(np.array(golden["theta"]))
        value_error = max(value_error, abs(value - golden["log_prob"]) / (1 + abs(golden["log_prob"])))
        worst = np.max(np.abs(gradient - golden["grad"]))
        gradient_error = max(gradient_error, float(worst / (1 + np.max(np.abs(golden["grad"])))))
    q = np.array(content["golden"][0]["theta"])
    times = timings({"gradient": lambda: model.log_density_gradient(q), "plain": lambda: model.log_density(q)}, seconds, turns)
    own, all_of_them = operations_of(parameters, log_density, q)
    stan = 1e-6 * content["stan_us_per_gradient"]["O1"]
    counted = statements_of(log_density)
    return Figures(value_error, gradient_error, counted, own, all_of_them, times["gradient"], times["plain"], stan)


def report(name: str, each: Posterior, figures: Figures) -> list[str]:
    """Print a row; return what is broken."""
    row = (
        f"{name.split('-')[-1]:39}{figures.value_error:9.1e}{figures.gradient_error:9.1e}"
        f"{each.statements:6d}{figures.own_statements:6d}{figures.own_operations:6d}{figures.operations:6d}"
        f"{1e6 * figures.gradient_seconds:9.1f}{1e6 * figures.plain_seconds:9.1f}"
        f"{figures.gradient_seconds / figures.plain_seconds:7.2f}{1e6 * figures.stan_seconds:8.1f}"
    )
    print(row, flush=True)
    checks = (("log density", figures.value_error, VALUE_BOUND), ("gradient", figures.gradient_error, GRADIENT_BOUND))
    broken = [check for check in checks if not check[1] <= check[2]]
    return [f"{name}: the error of the {what} is {error:.1e}, over {bound:g}" for what, error, bound in broken]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("VARMAT_POSTERIORS", ROOT.parent / "shared" / "posteriors")
    parser.add_argument("--data", type=Path, default=Path(default), help="folder of the posteriors' files")
    parser.add_argument("--quick", action="store_true", help="fewer repeats: times are rough")
    options = parser.parse_args()
    if not list(options.data.glob("*-*.json")):
        print(f"There are no posteriors in {options.data}: name their folder by --data or VARMAT_POSTERIORS. Nothing was measured.")
        return 2
    turns, seconds = (5, 0.005) if options.quick else (31, 0.02)
    print(f"{'':39}{'worst error of':>18}{'statements':>12}{'operations':>12}{'microseconds of':>18}{'':7}{'Stan':>8}")
    print(f"{'':39}{'value':>9}{'gradient':>9}{'Stan':>6}{'here':>6}{'here':>6}{'all':>6}{'gradient':>9}{'value':>9}{'ratio':>7}{'us':>8}")
    broken, longer = [], 0
    for name, each in POSTERIORS.items():
        figures = measure(each, json.loads((options.data / f"{name}.json").read_text()), seconds, turns)
        broken += report(name, each, figures)
        longer += figures.operations > max(each.statements, figures.own_statements) + 2
    print(f"\noperations over statements + 2: {longer} of {len(POSTERIORS)}")
    bounds = f"{VALUE_BOUND:g} (1 + |log density|) and {GRADIENT_BOUND:g} (1 + largest |gradient|)"
    print("\n".join(broken) or f"errors: all within {bounds}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
