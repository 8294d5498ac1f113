"""A seasonal moving average, with a forecast
==========================================

The airline passengers of Box and Jenkins: a model of three numbers, and the next two years.

The data are passengers of international airlines, monthly, 1949 to 1960, in thousands (Box and
Jenkins 1976, Time Series Analysis, series G). Let w be the series of decimal logarithms after
differences over a month and over a year. The "airline model" is ::

    w[t] = e[t] - theta e[t-1] - Theta (e[t-12] - theta e[t-13]),  e[t] ~ normal(0, sigma)

A linear recurrence computes the shocks e from the series: ``lfilter``, which takes variables as
coefficients. The recurrence needs thirteen values from before the start. They are unknowns too, so
that the likelihood is exact. R's ``arima`` gives the maximum likelihood estimates theta = 0.4018
(0.0896), Theta = 0.5569 (0.0731), sigma = 0.01595.

Run it with::

    python examples/arma.py [--quick] [--output FOLDER]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import varmat as vm

# %%
# The data
# --------

PASSENGERS = np.array([
    112, 118, 132, 129, 121, 135, 148, 148, 136, 119, 104, 118, 115, 126, 141, 135, 125, 149, 170,
     170, 158, 133, 114, 140,
    145, 150, 178, 163, 172, 178, 199, 199, 184, 162, 146, 166, 171, 180, 193, 181, 183, 218, 230,
     242, 209, 191, 172, 194,
    196, 196, 236, 235, 229, 243, 264, 272, 237, 211, 180, 201, 204, 188, 235, 227, 234, 264, 302,
     293, 259, 229, 203, 229,
    242, 233, 267, 269, 270, 315, 364, 347, 312, 274, 237, 278, 284, 277, 317, 313, 318, 374, 413,
     405, 355, 306, 271, 306,
    315, 301, 356, 348, 355, 422, 465, 467, 404, 347, 305, 336, 340, 318, 362, 348, 363, 435, 491,
     505, 404, 359, 310, 337,
    360, 342, 406, 396, 420, 472, 548, 559, 463, 407, 362, 405, 417, 391, 419, 461, 472, 535, 622,
     606, 508, 461, 390, 432,
], float)  # fmt: skip
ESTIMATES = {
    "theta": (0.4018, 0.0896),
    "Theta": (0.5569, 0.0731),
    "sigma": (0.01595, 0.01595 / 262**0.5),
}
SERIES = np.log10(PASSENGERS)
# The number of shocks from before the start, and of months to forecast.
BEFORE, MONTHS = 13, 24


# %%
# The model
# ---------
#
# The shocks are a linear filter of the series, run backwards: ``vm.lfilter`` is one
# operation, whatever the length of the series.


def differences(y):
    return np.diff(y[12:] - y[:-12])


def coefficients(theta, Theta):
    """Return the coefficients of the product (1 - theta B)(1 - Theta B^12), by the power of the
    backward shift B.
    """
    return np.concatenate(
        [np.stack([1.0, -theta]), np.zeros(10), np.stack([-Theta, theta * Theta])]
    )


def shocks(theta, Theta, before):
    """Return the shocks of the thirteen months before the start and of the series. The first are
    an invertible linear function of `before`, so either may be the unknowns.
    """
    return vm.lfilter(
        1.0, coefficients(theta, Theta), np.concatenate([before, differences(SERIES)])
    )


def log_density(theta, Theta, sigma, before):
    """The prior is flat in the moving average and in the logarithm of the scale. The map from
    `before` to shocks has the determinant one.
    """
    return vm.normal_lpdf(shocks(theta, Theta, before), 0, sigma) - np.log(sigma)


def make_model():
    unit = vm.lower_upper(-1, 1)
    parameters = {"theta": unit, "Theta": unit, "sigma": vm.positive(), "before": vm.real(BEFORE)}
    return vm.Model(log_density, parameters, generated_quantities=forecast, recorded=True)


def forecast(theta, Theta, sigma, before, rng):
    """Draw the passengers of the next two years. New shocks are added, and the differences are
    undone month by month.
    """
    past = shocks(theta, Theta, before)
    later = np.concatenate([past, rng.normal(0.0, sigma, MONTHS)])
    w = np.convolve(later, coefficients(theta, Theta))[len(past) : len(later)]
    y = np.append(SERIES, np.empty(MONTHS))
    for t, change in enumerate(w, len(SERIES)):
        y[t] = y[t - 1] + y[t - 12] - y[t - 13] + change
    return {"forecast": 10.0 ** y[len(SERIES) :]}


# %%
# The figure
# ----------


def plot(future, path):
    # The import is here so that the model can be imported without matplotlib.
    from matplotlib.figure import Figure

    years = 1949 + np.arange(len(SERIES) + MONTHS) / 12
    ahead = years[len(SERIES) :]
    figure = Figure(figsize=(8.0, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.plot(years[: len(SERIES)], PASSENGERS, "C0", label="passengers of international airlines")
    axes.fill_between(
        ahead,
        *np.quantile(future, [0.025, 0.975], axis=0),
        color="C1",
        alpha=0.25,
        linewidth=0,
        label="95 %",
    )
    axes.fill_between(
        ahead,
        *np.quantile(future, [0.25, 0.75], axis=0),
        color="C1",
        alpha=0.5,
        linewidth=0,
        label="50 %",
    )
    axes.plot(ahead, np.median(future, axis=0), "C1", label="forecast, median")
    axes.set_yscale("log")
    axes.set_yticks(
        [100, 200, 300, 400, 500, 600, 800], [100, 200, 300, 400, 500, 600, 800], minor=False
    )
    axes.minorticks_off()
    axes.set_ylabel("thousands a month")
    axes.set_title("Airline passengers: seasonal moving average, and two years ahead")
    axes.legend(frameon=False, fontsize="small")
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
    start = {"theta": 0.3, "Theta": 0.3, "sigma": 0.02, "before": np.zeros(BEFORE)}
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

    draws = {name: trace.posterior[name].values.ravel() for name in ESTIMATES}
    print(
        f"\n{len(draws['theta'])} draws{'':8}{'mean':>9} {'sd':>8} {'R: estimate':>13} {'error':>8}"
    )
    for name, (estimate, error) in ESTIMATES.items():
        print(
            f"{name:18}{draws[name].mean():9.4f} {draws[name].std():8.4f} {estimate:13.4f} "
            f"{error:8.4f}"
        )
    future = trace.posterior["forecast"].values.reshape(-1, MONTHS)
    low, middle, high = np.quantile(future, [0.025, 0.5, 0.975], axis=0)
    for month in (6, 18):
        text = (
            f"{middle[month]:.0f} thousand passengers, with probability 0.95 between "
            f"{low[month]:.0f} and {high[month]:.0f}"
        )
        print(f"forecast for July {1961 + month // 12}: {text}")
    path = options.output / "arma.png"
    plot(future, path)
    print(f"plot saved to {path}")


if __name__ == "__main__":
    main()
