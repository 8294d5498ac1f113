"""An epidemic by a differential equation
======================================

The influenza in a boarding school of 1978: how fast it spread, and how many boys one boy infected.

The data are the numbers of boys in bed each day, of 763 in the school (British Medical Journal, 4
March 1978, p. 587). Susceptible boys meet infected boys, and infected boys recover::

    S' = -beta S I / N,   I' = beta S I / N - gamma I,   R' = gamma I
    in_bed[day] ~ neg_binomial_2(I(day), phi)

Here beta and gamma are the rates of infection and recovery per day, and there is one infected boy
on day zero. phi says how much the counts vary beyond a Poisson distribution. The priors are those
of L. Grinsztajn, E. Semenova, C. Margossian and J. Riou, Bayesian workflow for disease transmission
modeling in Stan, Statistics in Medicine 40, 2021. Their posterior means are 1.73 for beta and 0.54
for gamma.

Run it with::

    python examples/epidemic.py [--quick] [--output FOLDER]
"""

from __future__ import annotations

import argparse
import sys
import timeit
from pathlib import Path

import numpy as np

import varmat as vm

# %%
# The data
# --------

IN_BED = np.array([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4])
BOYS = 763
DAYS = np.arange(1.0, 15.0)
START = np.array([BOYS - 1.0, 1.0, 0.0])


# %%
# The model
# ---------
#
# ``rates`` is the right-hand side of the equation. The solver returns the state on each
# day, with its derivatives in both parameters.


def rates(t, y, beta, gamma):
    infections = beta * y[0] * y[1] / BOYS
    recoveries = gamma * y[1]
    return np.stack([-infections, infections - recoveries, recoveries])


def infected(beta, gamma, days=DAYS):
    return vm.ode_rk45(rates, START, 0.0, days, beta, gamma)[:, 1]


def log_density(beta, gamma, phi_inverse):
    priors = (
        vm.normal_lpdf(beta, 2.0, 1.0)
        + vm.normal_lpdf(gamma, 0.4, 0.5)
        + vm.exponential_lpdf(phi_inverse, 5.0)
    )
    return priors + vm.neg_binomial_2_lpmf(IN_BED, infected(beta, gamma), 1.0 / phi_inverse)


def make_model():
    return vm.Model(log_density, beta=vm.positive(), gamma=vm.positive(), phi_inverse=vm.positive())


def in_bed(beta, gamma, phi_inverse, rng):
    """Draw the counts of another epidemic like this one."""
    return vm.neg_binomial_2_rng(infected(beta, gamma), 1.0 / phi_inverse, rng=rng)


# %%
# The figure
# ----------


def plot(counts, path):
    # The import is here so that the model can be imported without matplotlib.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.2), layout="constrained")
    axes = figure.subplots()
    for low, high, alpha in ((0.025, 0.975, 0.25), (0.25, 0.75, 0.5)):
        band = np.quantile(counts, [low, high], axis=0)
        label = f"predicted, {100 * (high - low):.0f} %"
        axes.fill_between(DAYS, *band, color="C0", alpha=alpha, linewidth=0, label=label)
    axes.plot(DAYS, np.median(counts, axis=0), "C0", label="predicted, median")
    axes.plot(DAYS, IN_BED, "ko", markersize=4, label="boys in bed")
    axes.set_xlabel("day")
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
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    options = parser.parse_args()

    model = make_model()
    start = {"beta": 1.5, "gamma": 0.5, "phi_inverse": 0.1}
    fit = model.laplace(start, draws=50 if options.quick else 500, seed=1)
    draws = [np.ravel(fit.draws[name]) for name in start]
    for name, values in zip(start, draws, strict=True):
        print(f"{name:12}{values.mean():8.3f}, standard deviation {values.std():.3f}")
    print(f"infected by one boy at first: {np.mean(draws[0] / draws[1]):.2f}")

    rng = np.random.default_rng(2)
    counts = np.array([in_bed(*each, rng) for each in zip(*draws, strict=True)])
    repeats = 3 if options.quick else 20
    gradient = vm.recorded(lambda x: log_density(x[0], x[1], x[2]))
    point = np.array([*start.values()])
    gradient(point)
    seconds = min(timeit.repeat(lambda: gradient(point), number=1, repeat=repeats))
    print(f"log density with its gradient, recorded: {1e3 * seconds:.2f} ms")

    path = options.output / "epidemic.png"
    plot(counts, path)
    print(f"plot saved to {path}")


if __name__ == "__main__":
    main()
