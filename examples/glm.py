"""Logistic regression of real data
================================

Which measurements of cell nuclei tell a malignant tumour from a benign one?

The Wisconsin breast cancer data, which come with scikit-learn, are 30 measurements of the nuclei in
569 tissue samples (Street, Wolberg and Mangasarian 1993). The model is a logistic regression on
standardised measurements, with standard normal priors for the coefficients::

    malignant ~ bernoulli_logit(alpha + X @ beta),  beta ~ normal(0, 1)

The fused density reads X once for value and gradient. The posterior mode is ridge regression, so
scikit-learn finds it too. The exact Hessian gives standard errors, and sampling shows how far these
can be trusted.

Run it with::

    python examples/glm.py [--quick] [--output FOLDER]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

import varmat as vm

# %%
# The data
# --------

data = load_breast_cancer()
NAMES = [str(name) for name in data.feature_names]
X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
malignant = 1 - data.target


# %%
# The model
# ---------
#
# The fused density takes the matrix itself, in place of the product ``X @ beta``.


def log_density(alpha, beta):
    return vm.bernoulli_logit_glm_lpmf(malignant, X, alpha, beta) + vm.normal_lpdf(beta, 0, 1)


def make_model():
    return vm.Model(log_density, alpha=vm.real(), beta=vm.real(X.shape[1]), recorded=True)


def in_sklearn():
    """Return the coefficients at the posterior mode from scikit-learn, where the prior is a
    penalty.
    """
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, malignant).coef_[0]


# %%
# The figure
# ----------


def plot(mode, errors, draws, path):
    # The import is here so that the model can be imported without matplotlib.
    from matplotlib.figure import Figure

    order = np.argsort(mode.values["beta"])
    rows = np.arange(len(order))
    figure = Figure(figsize=(9.0, 6.2), layout="constrained")
    axes, fitted = figure.subplots(1, 2, width_ratios=[1.7, 1])
    axes.axvline(0.0, color="0.75", linewidth=1, zorder=0)
    label = "mode, 95 % Laplace interval"
    axes.errorbar(
        mode.values["beta"][order],
        rows + 0.16,
        xerr=1.96 * errors[1:][order],
        fmt="C1s",
        markersize=3.5,
        label=label,
    )
    if draws is not None:
        low, middle, high = np.quantile(draws["beta"], [0.025, 0.5, 0.975], axis=0)[:, order]
        label, sides = "posterior median, 95 % interval", [middle - low, high - middle]
        axes.errorbar(middle, rows - 0.16, xerr=sides, fmt="C0o", markersize=3.5, label=label)
    axes.set_yticks(rows, [NAMES[i] for i in order], fontsize="small")
    axes.set_xlabel("log odds of malignancy per standard deviation")
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.35, -0.07), ncols=2, frameon=False, fontsize="small"
    )
    scores = mode.values["alpha"] + X @ mode.values["beta"]
    bins = np.arange(np.floor(scores.min()), scores.max() + 2, 2) // 2 * 2
    groups = [scores[malignant == 0], scores[malignant == 1]]
    fitted.hist(groups, bins, stacked=True, color=["C2", "C3"], label=["benign", "malignant"])
    fitted.axvline(0.0, color="0.4", linewidth=1)
    fitted.set_xlabel("log odds of malignancy of a sample")
    fitted.legend(frameon=False, fontsize="small")
    for each in (axes, fitted):
        each.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"Breast cancer: logistic regression, {len(X)} samples")
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
    laplace = model.laplace(seed=1, draws=0)
    mode, errors = laplace.mode, np.sqrt(np.diag(laplace.covariance))
    print(
        f"posterior mode: log density {mode.value:.8f}, largest gradient "
        f"{np.max(np.abs(mode.gradient)):.1e}"
    )
    print(
        "largest difference from scikit-learn's coefficients: "
        f"{np.max(np.abs(in_sklearn() - mode.values['beta'])):.1e}"
    )
    wrong = np.sum((mode.values["alpha"] + X @ mode.values["beta"] > 0) != malignant)
    print(f"on the wrong side of even odds: {wrong} of {len(X)} samples")

    draws = None
    try:
        trace = model.sample(
            draws=200 if options.quick else 1000,
            tune=200 if options.quick else 1000,
            seed=1,
            progress_bar=False,
        )
        draws = {
            name: trace.posterior[name].values.reshape(-1, *shape)
            for name, shape in model.shapes().items()
        }
    except ImportError as missing:
        print(missing)

    print(
        f"\nthe largest coefficients:{'mode':>14} {'error':>7}"
        + (f" {'mean':>8} {'sd':>7}" if draws else "")
    )
    for i in np.argsort(-np.abs(mode.values["beta"]))[:10]:
        row = f"{NAMES[i]:30} {mode.values['beta'][i]:8.3f} {errors[1 + i]:7.3f}"
        print(
            row
            + (
                f" {draws['beta'][:, i].mean():8.3f} {draws['beta'][:, i].std():7.3f}"
                if draws
                else ""
            )
        )
    path = options.output / "glm.png"
    plot(mode, errors, draws, path)
    print(f"plot saved to {path}")


if __name__ == "__main__":
    main()
