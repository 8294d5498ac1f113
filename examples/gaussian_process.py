"""A Gaussian process whose noise changes
======================================

The head of a motorcyclist in a crash: a smooth curve, and noise that is not the same at all times.

The data are accelerations of the head in simulated motorcycle accidents, used to test helmets
(Silverman 1985, Journal of the Royal Statistical Society B 47, 1-52). The curve is a Gaussian
process, which is integrated out of the likelihood::

    acceleration ~ multi_normal(0, K + diag(noise ** 2)),
    K[i, j] = amplitude**2 exp(-(t[i] - t[j])**2 / (2 length**2))

With the same noise at all times, scikit-learn finds the same maximum of the likelihood. But right
after the impact there is hardly any noise. So in the second model the logarithm of the noise is a
curve itself, piecewise linear with knots four milliseconds apart.

Run it with::

    python examples/gaussian_process.py [--quick] [--output FOLDER]
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

# The times are in milliseconds after the impact, and the accelerations in g.
TIMES = np.array([
    2.4, 2.6, 3.2, 3.6, 4, 6.2, 6.6, 6.8, 7.8, 8.2, 8.8, 8.8, 9.6, 10, 10.2, 10.6, 11, 11.4, 13.2,
     13.6, 13.8, 14.6, 14.6, 14.6,
    14.6, 14.6, 14.6, 14.8, 15.4, 15.4, 15.4, 15.4, 15.6, 15.6, 15.8, 15.8, 16, 16, 16.2, 16.2,
     16.2, 16.4, 16.4, 16.6, 16.8,
    16.8, 16.8, 17.6, 17.6, 17.6, 17.6, 17.8, 17.8, 18.6, 18.6, 19.2, 19.4, 19.4, 19.6, 20.2, 20.4,
     21.2, 21.4, 21.8, 22, 23.2,
    23.4, 24, 24.2, 24.2, 24.6, 25, 25, 25.4, 25.4, 25.6, 26, 26.2, 26.2, 26.4, 27, 27.2, 27.2,
     27.2, 27.6, 28.2, 28.4, 28.4,
    28.6, 29.4, 30.2, 31, 31.2, 32, 32, 32.8, 33.4, 33.8, 34.4, 34.8, 35.2, 35.2, 35.4, 35.6, 35.6,
     36.2, 36.2, 38, 38, 39.2,
    39.4, 40, 40.4, 41.6, 41.6, 42.4, 42.8, 42.8, 43, 44, 44.4, 45, 46.6, 47.8, 47.8, 48.8, 50.6,
     52, 53.2, 55, 55, 55.4, 57.6,
])  # fmt: skip
ACCELERATIONS = np.array([
    0, -1.3, -2.7, 0, -2.7, -2.7, -2.7, -1.3, -2.7, -2.7, -1.3, -2.7, -2.7, -2.7, -5.4, -2.7, -5.4,
     0, -2.7, -2.7, 0, -13.3, -5.4,
    -5.4, -9.3, -16, -22.8, -2.7, -22.8, -32.1, -53.5, -54.9, -40.2, -21.5, -21.5, -50.8, -42.9,
     -26.8, -21.5, -50.8, -61.7, -5.4,
    -80.4, -59, -71, -91.1, -77.7, -37.5, -85.6, -123.1, -101.9, -99.1, -104.4, -112.5, -50.8,
     -123.1, -85.6, -72.3, -127.2,
    -123.1, -117.9, -134, -101.9, -108.4, -123.1, -123.1, -128.5, -112.5, -95.1, -81.8, -53.5,
     -64.4, -57.6, -72.3, -44.3, -26.8,
    -5.4, -107.1, -21.5, -65.6, -16, -45.6, -24.2, 9.5, 4, 12, -21.5, 37.5, 46.9, -17.4, 36.2, 75,
     8.1, 54.9, 48.2, 46.9, 16,
    45.6, 1.3, 75, -16, -54.9, 69.6, 34.8, 32.1, -37.5, 22.8, 46.9, 10.7, 5.4, -1.3, -21.5, -13.3,
     30.8, -10.7, 29.4, 0, -10.7,
    14.7, -1.3, 0, 10.7, 10.7, -26.8, -14.7, -13.3, 0, 10.7, -14.7, -2.7, 10.7, -2.7, 10.7,
])  # fmt: skip
KNOTS = np.arange(0.0, 61.0, 4.0)


# %%
# Two models
# ----------
#
# Both have one covariance matrix, so one Cholesky factorisation, in each evaluation.


def between_knots(t):
    """Return the matrix of linear interpolation, from values at the knots to values at the times
    `t`.
    """
    return np.maximum(0.0, 1.0 - np.abs(t[:, None] - KNOTS) / (KNOTS[1] - KNOTS[0]))


def covariance(amplitude, length, noise):
    return vm.add_diag(vm.gp_exp_quad_cov(TIMES, amplitude, length), noise**2)


def log_likelihood(amplitude, length, noise):
    return vm.multi_normal_lpdf(ACCELERATIONS, 0.0, covariance(amplitude, length, noise))


def log_posterior(amplitude, length, log_noise):
    """The prior lets neighbouring knots differ by a factor of about two. The amplitude and the
    length scale have wide priors.
    """
    noise = np.exp(between_knots(TIMES) @ log_noise)
    smooth = vm.normal_lpdf(np.diff(log_noise), 0, 0.7) + vm.normal_lpdf(log_noise[0], 1, 1)
    scales = vm.lognormal_lpdf(amplitude, 4, 1) + vm.lognormal_lpdf(length, 2, 1)
    return log_likelihood(amplitude, length, noise) + smooth + scales


def constant_model():
    return vm.Model(
        log_likelihood, amplitude=vm.positive(), length=vm.positive(), noise=vm.positive()
    )


def changing_model():
    return vm.Model(
        log_posterior, amplitude=vm.positive(), length=vm.positive(), log_noise=vm.real(len(KNOTS))
    )


def predict(t, amplitude, length, noise):
    """Return the mean and the standard deviation of the curve at times `t`, given the data."""
    across = vm.gp_exp_quad_cov(TIMES, t, amplitude, length)
    weights = np.linalg.solve(covariance(amplitude, length, noise), across)
    return weights.T @ ACCELERATIONS, np.sqrt(
        np.maximum(amplitude**2 - np.sum(weights * across, axis=0), 0.0)
    )


def in_sklearn(amplitude, length, noise):
    """Return the maximum of the likelihood in scikit-learn, from the same start: amplitude, length,
    noise, and log likelihood.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel(amplitude**2, (1e-2, 1e6)) * RBF(length, (1e-2, 1e3)) + WhiteKernel(
        noise**2, (1e-2, 1e5)
    )
    fit = GaussianProcessRegressor(kernel).fit(TIMES[:, None], ACCELERATIONS)
    variance, length, noise = np.exp(fit.kernel_.theta)
    return variance**0.5, length, noise**0.5, fit.log_marginal_likelihood_value_


# %%
# The figure
# ----------


def plot(fits, path):
    # The import is here so that the model can be imported without matplotlib.
    from matplotlib.figure import Figure

    t = np.linspace(0, 60, 400)
    figure = Figure(figsize=(9.5, 4.2), layout="constrained")
    for axes, (title, (amplitude, length, noise, noise_at)) in zip(
        figure.subplots(1, 2, sharey=True), fits.items(), strict=True
    ):
        mean, spread = predict(t, amplitude, length, noise)
        for width, alpha, label in (
            (np.hypot(spread, noise_at(t)), 0.15, "observations, 95 %"),
            (spread, 0.4, "curve, 95 %"),
        ):
            axes.fill_between(
                t,
                mean - 1.96 * width,
                mean + 1.96 * width,
                color="C0",
                alpha=alpha,
                linewidth=0,
                label=label,
            )
        axes.plot(t, mean, "C0")
        axes.plot(TIMES, ACCELERATIONS, "k.", markersize=3.5)
        axes.set_title(title)
        axes.set_xlabel("milliseconds after the impact")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("acceleration of the head (g)")
    figure.axes[0].legend(frameon=False, fontsize="small", loc="lower right")
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

    start = {"amplitude": 50.0, "length": 5.0, "noise": 20.0}
    constant = constant_model().optimize(start)
    found = (*constant.values.values(), constant.value)
    print(
        f"{'the same noise everywhere':28}{'amplitude':>11} {'length':>9} {'noise':>9} "
        f"{'log likelihood':>16}"
    )
    for name, row in (("varmat", found), ("scikit-learn", in_sklearn(**start))):
        print(f"{name:28}" + "{:11.4f} {:9.4f} {:9.4f} {:16.6f}".format(*row))

    model = changing_model()
    start = {"amplitude": 50.0, "length": 5.0, "log_noise": np.full(len(KNOTS), 2.0)}
    print(
        f"gradient of {model.param_unc_num()} unknowns against finite differences: "
        f"{bool(model.check_gradient(start))}"
    )
    changing = model.laplace(start, draws=0, seed=1)
    amplitude, length, log_noise = changing.mode.values.values()
    noise = np.exp(between_knots(TIMES) @ log_noise)
    print(
        f"{'noise that changes':28}{amplitude:11.4f} {length:9.4f} {'':9} "
        f"{log_likelihood(amplitude, length, noise):16.6f}"
    )
    errors = np.sqrt(np.diag(changing.covariance))[2:]
    for i in range(0, len(KNOTS), 2):
        print(
            f"  noise at {KNOTS[i]:2.0f} ms: {np.exp(log_noise[i]):6.2f} g, within a factor of "
            f"{np.exp(1.96 * errors[i]):.1f}"
        )

    q, repeats = changing.mode.q, 5 if options.quick else 100
    plain = min(timeit.repeat(lambda: model.log_density(q), number=repeats, repeat=5)) / repeats
    gradient = (
        min(timeit.repeat(lambda: model.log_density_gradient(q), number=repeats, repeat=5))
        / repeats
    )
    print(
        f"value and gradient {1e3 * gradient:.2f} ms, {gradient / plain:.2f} times the value "
        f"alone, {len(TIMES)} observations"
    )

    path = options.output / "gaussian_process.png"
    same = (*found[:3], lambda t: np.full(t.shape, found[2]))
    changes = (amplitude, length, noise, lambda t: np.exp(between_knots(t) @ log_noise))
    plot({"the same noise everywhere": same, "noise that changes": changes}, path)
    print(f"plot saved to {path}")


if __name__ == "__main__":
    main()
