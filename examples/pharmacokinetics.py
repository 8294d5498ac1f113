"""A drug on its way through the body
==================================

Two compartments, doses taken by mouth, and blood samples of one patient.

A dose is absorbed from the gut into the blood, goes to the tissue and back, and leaves the body::

    gut' = -ka gut
    blood' = ka gut - (CL + Q) blood / V1 + Q tissue / V2
    tissue' = Q blood / V1 - Q tissue / V2
    concentration[i] ~ lognormal(log(blood(t[i]) / V1), sigma)

The clearance CL and the flow Q are in litres per hour, the volumes V1 and V2 in litres, and the
rate ka is per hour. A dose of 80 mg is taken every 12 hours, which is an event that adds it to the
gut. The concentrations are simulated, so the true parameters are known. The equation is linear, so
the solver can be checked against the exponential of a matrix.

Run it with::

    python examples/pharmacokinetics.py [--quick] [--output FOLDER]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy.linalg import expm

import varmat as vm

# %%
# The data
# --------

DOSE, EVERY, DOSES = 80.0, 12.0, 2
# Samples are taken at these hours after each dose.
AFTER = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 12.0])
TRUTH = {"CL": 5.0, "Q": 8.0, "V1": 20.0, "V2": 70.0, "ka": 1.2}
SIGMA = 0.1
HOURS = np.concatenate([EVERY * i + AFTER for i in range(DOSES)])
NAMES = list(TRUTH)


# %%
# The model
# ---------
#
# A sample at the time of a dose is taken before the dose. The concentrations after the second dose
# depend on all parameters through the first interval too.


def amounts(t, y, CL, Q, V1, V2, ka):
    absorbed, out, there, back = ka * y[0], CL / V1 * y[1], Q / V1 * y[1], Q / V2 * y[2]
    return np.stack([-absorbed, absorbed - out - there + back, there - back])


def concentrations(*parameters):
    """Return the concentrations in the blood at `HOURS`, in mg per litre."""
    doses = EVERY * np.arange(DOSES), np.array([DOSE, 0.0, 0.0])
    tolerances = {"rel_tol": 1e-8, "abs_tol": 1e-8}
    states = vm.solve_ode(amounts, np.zeros(3), 0.0, HOURS, *parameters, events=doses, **tolerances)
    return states[:, 1] / parameters[2]


def exact(CL, Q, V1, V2, ka):
    """Return the same concentrations from the exponential of the equation's matrix."""
    matrix = np.array([
        [-ka, 0.0, 0.0],
        [ka, -(CL + Q) / V1, Q / V2],
        [0.0, Q / V1, -Q / V2],
    ])  # fmt: skip
    state, found = np.zeros(3), []
    for _ in range(DOSES):
        state = state + np.array([DOSE, 0.0, 0.0])
        states = [expm(hours * matrix) @ state for hours in AFTER]
        found.extend(each[1] / V1 for each in states)
        state = states[-1]
    return np.array(found)


def simulated(seed=7):
    rng = np.random.default_rng(seed)
    return exact(**TRUTH) * np.exp(SIGMA * rng.normal(size=HOURS.size))


def model_of(samples):
    def log_density(CL, Q, V1, V2, ka, sigma):
        priors = (
            vm.lognormal_lpdf(CL, np.log(6.0), 0.5)
            + vm.lognormal_lpdf(Q, np.log(6.0), 0.5)
            + vm.lognormal_lpdf(V1, np.log(25.0), 0.5)
            + vm.lognormal_lpdf(V2, np.log(60.0), 0.5)
            + vm.lognormal_lpdf(ka, np.log(1.0), 0.5)
            + vm.normal_lpdf(sigma, 0.0, 0.5)
        )
        mean = np.log(concentrations(CL, Q, V1, V2, ka))
        return priors + vm.lognormal_lpdf(samples, mean, sigma)

    return vm.Model(log_density, **{name: vm.positive() for name in NAMES}, sigma=vm.positive())


# %%
# The figure
# ----------


def plot(samples, curves, path):
    # The import is here so that the model can be imported without matplotlib.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.2), layout="constrained")
    axes = figure.subplots()
    low, high = np.quantile(curves, [0.025, 0.975], axis=0)
    axes.fill_between(HOURS, low, high, color="C0", alpha=0.35, linewidth=0, label="model, 95 %")
    axes.plot(HOURS, np.median(curves, axis=0), "C0", label="model, median")
    axes.plot(HOURS, samples, "ko", markersize=4, label="samples")
    axes.set_xlabel("hours")
    axes.set_ylabel("concentration in mg per litre")
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

    worst = np.max(np.abs(concentrations(*TRUTH.values()) / exact(**TRUTH) - 1.0))
    print(f"solver and matrix exponential differ by {worst:.0e} at most")

    samples = simulated()
    fit = model_of(samples).laplace(
        {**TRUTH, "sigma": 0.2}, draws=20 if options.quick else 500, seed=1
    )
    print("            truth   2.5 %  97.5 %")
    for name, truth in {**TRUTH, "sigma": SIGMA}.items():
        low, high = np.quantile(fit.draws[name], [0.025, 0.975])
        print(f"{name:8}{truth:9.2f}{low:8.2f}{high:8.2f}")

    draws = zip(*(np.ravel(fit.draws[name]) for name in NAMES), strict=True)
    path = options.output / "pharmacokinetics.png"
    plot(samples, [exact(*each) for each in draws], path)
    print(f"plot saved to {path}")


if __name__ == "__main__":
    main()
