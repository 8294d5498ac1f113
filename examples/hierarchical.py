"""Growth curves of thirty rats
============================

A hierarchical model: a straight line for each rat, and a population that draws the lines together.

The data are the weights of 30 young rats, weekly for five weeks (Gelfand, Hills, Racine-Poon and
Smith 1990, Journal of the American Statistical Association 85, 972-985). For rat i at an age of x
days the model is::

    weight ~ normal(alpha[i] + beta[i] * (x - 22), sigma)
    alpha[i] ~ normal(mu_alpha, sigma_alpha),  beta[i] ~ normal(mu_beta, sigma_beta)

The gather ``alpha[rat]`` gives each observation the parameter of its group. The design is balanced,
so the population's line should be the mean of the lines of least squares, and each rat's line
should lie between its own and the population's.

Run it with::

    python examples/hierarchical.py [--quick] [--output FOLDER]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import varmat as vm
import varmat.distributions as dist

# %%
# The data
# --------

AGES = np.array([8.0, 15.0, 22.0, 29.0, 36.0])
WEIGHTS = np.array([
    151, 199, 246, 283, 320, 145, 199, 249, 293, 354, 147, 214, 263, 312, 328, 155, 200, 237, 272,
     297, 135, 188, 230, 280, 323,
    159, 210, 252, 298, 331, 141, 189, 231, 275, 305, 159, 201, 248, 297, 338, 177, 236, 285, 350,
     376, 134, 182, 220, 260, 296,
    160, 208, 261, 313, 352, 143, 188, 220, 273, 314, 154, 200, 244, 289, 325, 171, 221, 270, 326,
     358, 163, 216, 242, 281, 312,
    160, 207, 248, 288, 324, 142, 187, 234, 280, 316, 156, 203, 243, 283, 317, 157, 212, 259, 307,
     336, 152, 203, 246, 286, 321,
    154, 205, 253, 298, 334, 139, 190, 225, 267, 302, 146, 191, 229, 272, 302, 157, 211, 250, 285,
     323, 132, 185, 237, 286, 331,
    160, 207, 257, 303, 345, 169, 216, 261, 295, 333, 157, 205, 248, 289, 316, 137, 180, 219, 258,
     291, 153, 200, 244, 286, 324,
], float)  # fmt: skip
RATS = len(WEIGHTS) // len(AGES)
# The rat and the age of each observation. Ages are counted from the middle of the study.
rat = np.repeat(np.arange(RATS), len(AGES))
age = np.tile(AGES - 22.0, RATS)


# %%
# The model
# ---------
#
# Each parameter states its prior, and the weights state their distribution. The parameters of the
# rats are vectors of thirty elements, and each observation has the index of its rat.


def make_model():
    return vm.Model(
        mu_alpha=vm.real(prior=dist.Normal(250, 100)),
        mu_beta=vm.real(prior=dist.Normal(0, 10)),
        sigma_alpha=vm.positive(prior=dist.Normal(0, 50)),
        sigma_beta=vm.positive(prior=dist.Normal(0, 5)),
        sigma=vm.positive(prior=dist.Normal(0, 50)),
        alpha=vm.real(RATS, prior=lambda mu_alpha, sigma_alpha: dist.Normal(mu_alpha, sigma_alpha)),
        beta=vm.real(RATS, prior=lambda mu_beta, sigma_beta: dist.Normal(mu_beta, sigma_beta)),
        weight=vm.observed(
            WEIGHTS, lambda alpha, beta, sigma: dist.Normal(alpha[rat] + beta[rat] * age, sigma)
        ),
        recorded=True,
    )


def least_squares():
    """Fit a line to each rat alone. Return the intercepts at 22 days, the slopes, and the standard
    deviation of the residuals.
    """
    y, x = WEIGHTS.reshape(RATS, -1), AGES - 22.0
    intercepts, slopes = y.mean(axis=1), y @ x / (x @ x)
    rest = y - intercepts[:, None] - slopes[:, None] * x
    return intercepts, slopes, np.sqrt(np.sum(rest**2) / (RATS * (len(AGES) - 2)))


# %%
# The figure
# ----------


def plot(draws, path):
    # The import is here so that the model can be imported without matplotlib.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.4), layout="constrained")
    growth, slopes = figure.subplots(1, 2)
    for weights in WEIGHTS.reshape(RATS, -1):
        growth.plot(AGES, weights, color="0.75", linewidth=0.8)
    days = np.linspace(8, 36, 50)
    lines = draws["mu_alpha"][:, None] + draws["mu_beta"][:, None] * (days - 22)
    growth.fill_between(
        days, *np.quantile(lines, [0.025, 0.975], axis=0), color="C0", alpha=0.35, linewidth=0
    )
    growth.plot(days, lines.mean(axis=0), color="C0", label="the population, 95 % interval")
    growth.set_xlabel("age (days)")
    growth.set_ylabel("weight (g)")
    growth.legend(frameon=False, fontsize="small", loc="upper left")

    own = least_squares()[1]
    order = np.argsort(own)
    low, middle, high = np.quantile(draws["beta"], [0.025, 0.5, 0.975], axis=0)[:, order]
    rows = np.arange(RATS)
    slopes.axvline(draws["mu_beta"].mean(), color="0.75", linewidth=1, zorder=0)
    slopes.plot(own[order], rows, "C1s", markersize=3.5, label="least squares, each rat alone")
    slopes.errorbar(
        middle,
        rows,
        xerr=[middle - low, high - middle],
        fmt="C0o",
        markersize=3.5,
        label="posterior, 95 % interval",
    )
    slopes.set_yticks([])
    slopes.set_ylabel("rats")
    slopes.set_xlabel("growth (g a day)")
    slopes.legend(frameon=False, fontsize="small", loc="lower right")
    for axes in (growth, slopes):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle("Growth of thirty rats: lines drawn together by the population")
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
    intercepts, slopes, residual = least_squares()
    start = {
        "alpha": intercepts,
        "beta": slopes,
        "mu_alpha": intercepts.mean(),
        "mu_beta": slopes.mean(),
    }
    start |= {"sigma_alpha": intercepts.std(), "sigma_beta": slopes.std(), "sigma": residual}
    print(
        f"gradient of {model.param_unc_num()} unknowns against finite differences: "
        f"{bool(model.check_gradient(start))}"
    )
    try:
        steps = {"draws": 200, "tune": 300} if options.quick else {"draws": 1000, "tune": 1000}
        trace = model.sample(**steps, seed=1, inits=start, init_radius=2.0, progress_bar=False)
    except ImportError as missing:
        print(missing)
        return

    draws = {
        name: trace.posterior[name].values.reshape(-1, *shape)
        for name, shape in model.shapes().items()
    }
    # In a balanced design the simple estimates for the population are exact. Their standard errors
    # are those of a mean of thirty.
    simple = {
        "mu_alpha": (intercepts.mean(), intercepts.std(ddof=1) / np.sqrt(RATS)),
        "mu_beta": (slopes.mean(), slopes.std(ddof=1) / np.sqrt(RATS)),
        "sigma_alpha": (np.sqrt(intercepts.var(ddof=1) - residual**2 / len(AGES)), np.nan),
        "sigma_beta": (
            np.sqrt(slopes.var(ddof=1) - residual**2 / np.sum((AGES - 22) ** 2)),
            np.nan,
        ),
        "sigma": (residual, residual / np.sqrt(2 * RATS * (len(AGES) - 2))),
    }
    print(
        f"\n{len(draws['sigma'])} draws{'':10}{'mean':>9} {'sd':>7} {'least squares':>15} "
        f"{'error':>7}"
    )
    for name, (estimate, error) in simple.items():
        print(
            (
                f"{name:20} {draws[name].mean():9.3f} {draws[name].std():7.3f} {estimate:15.3f} "
                f"{error:7.3f}"
            ).replace("nan", "   ")
        )
    birth = draws["mu_alpha"] - 22 * draws["mu_beta"]
    print(
        f"{'weight at birth':20} {birth.mean():9.3f} {birth.std():7.3f} "
        f"{intercepts.mean() - 22 * slopes.mean():15.3f}"
    )
    path = options.output / "hierarchical.png"
    plot(draws, path)
    print(f"plot saved to {path}")


if __name__ == "__main__":
    main()
