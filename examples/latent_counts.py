"""Counts with a smooth rate
=========================

A Gaussian process of five hundred counts, with its 500 latent variables integrated out.

The counts are simulated with a known rate: two bumps on a slope. The log rate is a Gaussian
process::

    counts[i] ~ poisson_log(level + theta[i]),  theta ~ multi_normal(0, K),
    K[i, j] = amplitude**2 exp(-(t[i] - t[j])**2 / (2 length**2))

The posterior of theta given the three parameters is nearly normal. Laplace's approximation
integrates theta out, so that three unknowns are left in place of 503. Afterwards draws of theta
come from the approximate normal distribution.

Run it with::

    python examples/latent_counts.py [--quick] [--output FOLDER]
"""

from __future__ import annotations

import argparse
import sys
import timeit
from pathlib import Path

import numpy as np

import varmat as vm

# %%
# The data are simulated
# ----------------------

POINTS = 500


def true_rate(t):
    return np.exp(
        0.4 + 0.1 * t + 1.4 * np.exp(-((t - 3.0) ** 2)) - 1.2 * np.exp(-2.0 * (t - 7.0) ** 2)
    )


def simulated(points=POINTS, seed=20):
    """Return times, and simulated counts at these times."""
    t = np.linspace(0.0, 10.0, points)
    return t, np.random.default_rng(seed).poisson(true_rate(t))


# %%
# The model
# ---------
#
# The density that is sampled or maximised has three arguments. Laplace's approximation
# integrates out all other unknowns.


def covariance(t, amplitude, length):
    # A small number on the diagonal keeps the matrix from being singular in double precision.
    return vm.add_diag(vm.gp_exp_quad_cov(t, amplitude, length), 1e-8)


def log_likelihood(t, counts, amplitude, length, level):
    return vm.laplace_marginal_poisson_log_lpmf(
        counts, np.arange(len(t)), level, covariance, (t, amplitude, length)
    )


def model_of(t, counts):
    def log_posterior(amplitude, length, level):
        priors = (
            vm.normal_lpdf(amplitude, 0, 2)
            + vm.inv_gamma_lpdf(length, 3, 3)
            + vm.normal_lpdf(level, 1, 2)
        )
        return log_likelihood(t, counts, amplitude, length, level) + priors

    return vm.Model(log_posterior, amplitude=vm.positive(), length=vm.positive(), level=vm.real())


def rates(t, counts, draws, seed):
    """Return draws of the rate, one for each draw of the parameters."""
    rng = np.random.default_rng(seed)
    each = np.arange(len(t))
    theta = [
        vm.laplace_latent_poisson_log_rng(
            counts, each, level, covariance, (t, amplitude, length), rng=rng
        )
        + level
        for amplitude, length, level in zip(*draws, strict=True)
    ]
    return np.exp(np.array(theta))


# %%
# The figure
# ----------


def plot(t, counts, drawn, path):
    # The import is here so that the model can be imported without matplotlib.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    axes.plot(t, counts, "k.", markersize=3, alpha=0.5, label="counts")
    axes.fill_between(t, low, high, color="C0", alpha=0.35, linewidth=0, label="rate, 95 %")
    axes.plot(t, drawn.mean(axis=0), "C0", label="rate, mean")
    axes.plot(t, true_rate(t), "C3--", label="rate of the simulation")
    axes.set_xlabel("time")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


# %%
# All of it
# ---------
#
# The page shows what the script prints with ``--quick``.


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, default=Path(sys.argv[0]).parent, help="folder for the plot"
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer counts and draws, and one repeat of the timing"
    )
    options = parser.parse_args()

    t, counts = simulated(60 if options.quick else POINTS)
    model = model_of(t, counts)
    start = {"amplitude": 1.0, "length": 1.0, "level": 1.0}
    fit = model.laplace(start, draws=20 if options.quick else 200, seed=1)
    errors = np.sqrt(np.diag(fit.covariance))
    # The errors are on the scale of the unknowns, which are logarithms for the first two.
    for (name, value), error in zip(fit.mode.values.items(), errors, strict=True):
        spread = (
            f"within a factor of {np.exp(1.96 * error):.2f}"
            if name != "level"
            else f"plus or minus {1.96 * error:.2f}"
        )
        print(f"{name:10}{value:8.4f}, {spread}")

    drawn = rates(t, counts, [np.ravel(fit.draws[name]) for name in start], seed=2)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    inside = np.mean((low <= true_rate(t)) & (true_rate(t) <= high))
    print(
        f"the rate of the simulation is within the 95 % band at {100 * inside:.0f} % of the points"
    )

    repeats = 1 if options.quick else 10
    values = tuple(fit.mode.values.values())
    plain = min(timeit.repeat(lambda: log_likelihood(t, counts, *values), number=1, repeat=repeats))
    gradient = vm.value_and_grad(lambda *args: log_likelihood(t, counts, *args), (0, 1, 2))
    both = min(timeit.repeat(lambda: gradient(*values), number=1, repeat=repeats))
    print(
        f"log likelihood {1e3 * plain:.0f} ms, with its gradient {1e3 * both:.0f} ms, {len(t)} "
        "latent variables"
    )

    path = options.output / "latent_counts.png"
    plot(t, counts, drawn, path)
    print(f"plot saved to {path}")


if __name__ == "__main__":
    main()
