"""Eight schools: a hierarchical model
===================================

Eight schools tried a coaching programme. Each estimated its effect with a standard error (Rubin
1981, Journal of Educational Statistics 6, 377-401). How far should the estimates be drawn together?
This is the model::

    mu ~ normal(0, 5), tau ~ cauchy(0, 5) restricted to tau > 0
    theta ~ normal(mu, tau),  y ~ normal(theta, sigma)

The gradient is checked against finite differences, then nutpie draws from the posterior with it.
The means are compared with those of a long reference run in the posteriordb collection, and the
plot shows how far the schools are drawn together.

Run it with::

    python examples/eight_schools.py [--quick] [--output FOLDER]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import varmat as vm
import varmat.distributions as dist

# %%
# The data
# --------

y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
sigma = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
# Posterior means in posteriordb, eight_schools-eight_schools_noncentered. Their standard errors are
# 0.03 to 0.06.
REFERENCE = {
    "mu": 4.41,
    "tau": 3.60,
    "theta": np.array([6.15, 4.94, 3.91, 4.80, 3.61, 4.05, 6.32, 4.88]),
}


# %%
# The model
# ---------
#
# Each parameter states its prior, and the observations state their distribution. ``centred=False``
# asks for the non-centred form: the sampler moves in ``(theta - mu) / tau``.


def make_model():
    return vm.Model(
        mu=vm.real(prior=dist.Normal(0, 5)),
        tau=vm.positive(prior=dist.Cauchy(0, 5)),
        theta=vm.real(prior=lambda mu, tau: dist.Normal(mu, tau), dims="school", centred=False),
        y=vm.observed(y, lambda theta: dist.Normal(theta, sigma), dims="school"),
        coords={"school": list("ABCDEFGH")},
        recorded=True,
    )


# %%
# The figure
# ----------


def plot(theta, mu, path):
    # The import is here so that the model can be imported without matplotlib.
    from matplotlib.figure import Figure

    rows = np.arange(8)[::-1]
    low, middle, high = np.quantile(theta, [0.025, 0.5, 0.975], axis=0)
    inner = np.quantile(theta, [0.25, 0.75], axis=0)
    figure = Figure(figsize=(7.5, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.axvline(np.mean(mu), color="0.75", linewidth=1, zorder=0, label="mean of the schools, mu")
    axes.errorbar(
        y,
        rows + 0.16,
        xerr=1.96 * sigma,
        fmt="C1s",
        markersize=4,
        linewidth=1,
        label="estimate, 95 % interval",
    )
    axes.hlines(rows - 0.16, low, high, color="C0", linewidth=1.2)
    axes.hlines(rows - 0.16, *inner, color="C0", linewidth=3.5)
    axes.plot(
        middle,
        rows - 0.16,
        "o",
        color="C0",
        markersize=5,
        label="posterior median, 50 % and 95 % intervals",
    )
    axes.set_yticks(rows, [f"school {name}" for name in "ABCDEFGH"])
    axes.set_xlabel("effect of coaching (points of the SAT-V score)")
    axes.set_title("Eight schools: what each found, and what all of them say about it")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize="small")
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
    print(model.check_gradient(seed=1))

    start = time.perf_counter()
    try:
        trace = model.sample(
            draws=200 if options.quick else 2000, seed=1, target_accept=0.95, progress_bar=False
        )
    except ImportError as missing:
        print(missing)
        return
    seconds, divergences = time.perf_counter() - start, int(trace.sample_stats["diverging"].sum())

    draws = {
        name: trace.posterior[name].values.reshape(-1, *np.shape(expected))
        for name, expected in REFERENCE.items()
    }
    count = len(draws["mu"])
    print(
        f"\n{count} draws in 4 chains, tuning included, in {seconds:.1f} s; divergences: "
        f"{divergences}"
    )
    print(f"{'':10}{'estimate':>9} {'error':>6} {'mean':>9} {'sd':>6} {'reference mean':>15}")
    for name in ("mu", "tau"):
        print(
            f"{name:26} {np.mean(draws[name]):9.2f} {np.std(draws[name]):6.2f} "
            f"{REFERENCE[name]:15.2f}"
        )
    centres, spreads = draws["theta"].mean(axis=0), draws["theta"].std(axis=0)
    for i, name in enumerate("ABCDEFGH"):
        print(
            f"school {name}  {y[i]:9.1f} {sigma[i]:6.1f} {centres[i]:9.2f} {spreads[i]:6.2f} "
            f"{REFERENCE['theta'][i]:15.2f}"
        )

    path = options.output / "eight_schools.png"
    plot(draws["theta"], draws["mu"], path)
    print(f"plot saved to {path}")


if __name__ == "__main__":
    main()
