"""Linear regression on real data
==============================

Gradient, posterior mode, and standard errors from the exact Hessian.

The diabetes data of Efron, Hastie, Johnstone and Tibshirani (2004), which come with scikit-learn,
are the progression of the disease in 442 patients one year after ten measurements. The model is the
function ``log_posterior`` below, in plain NumPy.

Run it with::

    python examples/linear_regression.py [--quick] [--output FOLDER]
"""

from __future__ import annotations

import argparse
import sys
import timeit
from pathlib import Path

import numpy as np
from scipy import optimize
from sklearn.datasets import load_diabetes

import varmat as vm

# %%
# The data
# --------

data = load_diabetes(scaled=False)
NAMES = ["age", "sex", "body mass index", "blood pressure", "total cholesterol", "LDL", "HDL"]
NAMES += ["total cholesterol / HDL", "log triglycerides", "glucose"]
# Every measurement and the progression are in units of their standard deviation.
X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
y = (data.target - data.target.mean()) / data.target.std()
n, k = X.shape


# %%
# The model, and its derivatives by hand
# --------------------------------------
#
# The log density is a NumPy function. Its gradient by hand is here for comparison only.


def normal(x, mean, scale):
    """Return the summed normal log density. It is ordinary NumPy, and works on numbers and on
    variables.
    """
    return np.sum(-0.5 * ((x - mean) / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi))


def log_posterior(unknowns):
    """The priors of the coefficients and of the logarithm of the error's scale are standard
    normal.
    """
    coefficients, log_scale = unknowns[:k], unknowns[k]
    return (
        normal(y, X @ coefficients, np.exp(log_scale))
        + normal(coefficients, 0.0, 1.0)
        + normal(log_scale, 0.0, 1.0)
    )


def gradient_by_hand(unknowns):
    coefficients, log_scale = unknowns[:k], unknowns[k]
    residual, precision = y - X @ coefficients, np.exp(-2 * log_scale)
    return np.append(
        X.T @ residual * precision - coefficients, residual @ residual * precision - n - log_scale
    )


def finite_differences(f, x, step=1e-5):
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))])


def worst(found, expected):
    """Return the largest difference, relative to the largest element."""
    return np.max(np.abs(found - expected)) / np.max(np.abs(expected))


def seconds(function, repeats):
    return min(timeit.repeat(function, number=repeats, repeat=7)) / repeats


# %%
# The figure
# ----------


def plot(mode, errors, ols, ols_errors, path):
    # The import is here so that the model can be imported without matplotlib.
    from matplotlib.figure import Figure

    order = np.argsort(mode[:k])
    rows = np.arange(k)
    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    axes = figure.subplots()
    axes.axvline(0.0, color="0.75", linewidth=1, zorder=0)
    for shift, centre, error, label, style in (
        (0.14, mode[:k], errors[:k], "posterior mode, 95 % Laplace interval", "C0o"),
        (-0.14, ols, ols_errors, "least squares, 95 % confidence interval", "C1s"),
    ):
        axes.errorbar(
            centre[order],
            rows + shift,
            xerr=1.96 * error[order],
            fmt=style,
            label=label,
            capsize=3,
            markersize=5,
        )
    axes.set_yticks(rows, [NAMES[i] for i in order])
    axes.set_xlabel("coefficient (progression against measurement, both in standard deviations)")
    axes.set_title(f"Diabetes progression after one year, {n} patients")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
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
    parser.add_argument("--quick", action="store_true", help="fewer repeats in the timing")
    options = parser.parse_args()

    value_and_grad = vm.value_and_grad(log_posterior)
    start = np.append(np.linspace(-0.2, 0.2, k), -0.3)
    value, gradient = value_and_grad(start)
    print(f"log posterior at the start                       {value:.10f}")
    print(
        f"  the same on plain arrays, difference           {abs(value - log_posterior(start)):.1e}"
    )
    print(
        "  gradient against the one by hand, relative     "
        f"{worst(gradient, gradient_by_hand(start)):.1e}"
    )
    print(
        "  gradient against finite differences, relative  "
        f"{worst(gradient, finite_differences(log_posterior, start)):.1e}"
    )

    def loss(unknowns):
        return -log_posterior(unknowns)

    fit = optimize.minimize(
        vm.value_and_grad(loss),
        start,
        jac=True,
        hessp=vm.hessp(loss),
        method="trust-krylov",
        options={"gtol": 1e-8},
    )
    mode = fit.x
    errors = np.sqrt(np.diag(np.linalg.inv(vm.hessian(loss, mode))))
    precision = np.exp(-2 * mode[k])
    ridge = np.linalg.solve(X.T @ X * precision + np.eye(k), X.T @ y * precision)
    print(
        f"posterior mode in {fit.nit} Newton steps: log posterior {-fit.fun:.10f}, largest "
        f"gradient {np.abs(fit.jac).max():.1e}"
    )
    print(f"  coefficients against the closed form (ridge), relative  {worst(mode[:k], ridge):.1e}")

    ols = np.linalg.solve(X.T @ X, X.T @ y)
    ols_errors = np.sqrt(np.diag(np.linalg.inv(X.T @ X)) * np.sum((y - X @ ols) ** 2) / (n - k - 1))
    print(f"\n{'':24}{'mode':>8} {'error':>7}   {'OLS':>8} {'error':>7}")
    for row in zip(NAMES, mode, errors, ols, ols_errors, strict=False):
        print("{:24}{:8.3f} {:7.3f}   {:8.3f} {:7.3f}".format(*row))
    print(f"{'log error scale':24}{mode[k]:8.3f} {errors[k]:7.3f}")

    repeats = 20 if options.quick else 500
    plain, derivative = (
        seconds(lambda: log_posterior(mode), repeats),
        seconds(lambda: value_and_grad(mode), repeats),
    )
    print(
        f"\nvalue and gradient {1e6 * derivative:.0f} us, {derivative / plain:.2f} times the value "
        f"alone ({1e6 * plain:.0f} us)"
    )
    path = options.output / "linear_regression.png"
    plot(mode, errors, ols, ols_errors, path)
    print(f"plot saved to {path}")


if __name__ == "__main__":
    main()
