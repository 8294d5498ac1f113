"""A hidden Markov model of earthquakes
====================================

Quiet and restless decades of the Earth.

The yearly numbers of major earthquakes (magnitude 7 or more) in the world, 1900 to 2006, do not
follow a single Poisson distribution: their variance is 52, their mean is 19, and years with many
earthquakes come together. Zucchini and MacDonald (2009, Hidden Markov Models for Time Series) let
the rate of the Poisson distribution switch between three values, by a Markov chain in its
stationary distribution::

    earthquakes[t] ~ poisson(rate[state[t]]),  state[t] ~ transitions[state[t - 1]]

``hmm_marginal`` sums over the states. The script first maximises the likelihood. The book gives
minus its logarithm to four decimals: 329.4603. Then it samples the posterior, with the probability
of each state in each year.

Run it with::

    python examples/hidden_markov.py [--quick] [--output FOLDER]
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

YEARS = np.arange(1900, 2007)
COUNTS = np.array([
    13, 14, 8, 10, 16, 26, 32, 27, 18, 32, 36, 24, 22, 23, 22, 18, 25, 21, 21, 14, 8, 11, 14, 23,
     18, 17, 19,
    20, 22, 19, 13, 26, 13, 14, 22, 24, 21, 22, 26, 21, 23, 24, 27, 41, 31, 27, 35, 26, 28, 36, 39,
     21, 17, 22,
    17, 19, 15, 34, 10, 15, 22, 18, 15, 20, 15, 22, 19, 16, 30, 27, 29, 23, 20, 16, 21, 21, 25, 16,
     18, 15, 18,
    14, 10, 15, 8, 15, 6, 11, 8, 7, 18, 16, 13, 12, 13, 20, 15, 16, 12, 18, 15, 16, 13, 15, 16, 11,
     11,
], float)  # fmt: skip
STATES = 3
# The published estimates, and minus the log likelihood: Zucchini and MacDonald (2009), section 3.6.
PUBLISHED_RATES, PUBLISHED_LOSS = np.array([13.146, 19.721, 29.714]), 329.4603


# %%
# The model
# ---------
#
# ``vm.hmm_marginal`` takes the log density of each observation in each state, the
# transitions, and the distribution at the start.


def emissions(rates):
    """Return the log mass of each count in each state, with a row for each state."""
    return COUNTS * np.log(rates)[:, None] - rates[:, None] - vm.gammaln(COUNTS + 1.0)


def stationary(transitions):
    """Return the distribution that a step of the chain does not change: ``d = d @ transitions``
    with the sum 1.
    """
    return np.linalg.solve((np.eye(STATES) - transitions + 1.0).T, np.ones(STATES))


def log_likelihood(rates, transitions):
    return vm.hmm_marginal(emissions(rates), transitions, stationary(transitions))


def log_posterior(rates, transitions):
    """The prior says that a state lasts about ten years, and that the rates are about twenty."""
    prior = vm.dirichlet_lpdf(transitions, 0.5 + 4.5 * np.eye(STATES)) + vm.gamma_lpdf(
        rates, 4.0, 0.2
    )
    return log_likelihood(rates, transitions) + prior


def make_model(log_density):
    return vm.Model(
        log_density,
        rates=vm.positive_ordered(STATES),
        transitions=vm.simplex(STATES, STATES),
        recorded=True,
    )


# %%
# The figure
# ----------


def plot(probabilities, rates, path):
    # The import is here so that the model can be imported without matplotlib.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, 5.0), layout="constrained")
    counts, states = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    counts.bar(YEARS, COUNTS, color="0.8", width=0.9)
    counts.step(
        YEARS,
        rates @ probabilities,
        where="mid",
        color="C0",
        label="rate, averaged over states and draws",
    )
    counts.set_ylabel("major earthquakes a year")
    counts.legend(frameon=False, fontsize="small")
    colours = ["#c6dbef", "#6baed6", "#08519c"]
    states.stackplot(
        YEARS, probabilities, colors=colours, labels=[f"rate {rate:.0f}" for rate in rates]
    )
    states.set_ylabel("probability of\neach state")
    states.set_ylim(0, 1)
    states.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3, frameon=False, fontsize="small"
    )
    for axes in (counts, states):
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlim(1899.5, 2006.5)
    counts.set_title("Major earthquakes: a hidden Markov model with three states")
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

    start = {"rates": [10.0, 20.0, 30.0], "transitions": np.full((3, 3), 0.1) + 0.7 * np.eye(3)}
    fit = make_model(log_likelihood).optimize(start)
    rates, transitions = fit.values["rates"], fit.values["transitions"]
    print(
        f"maximum likelihood in {fit.iterations} steps: minus log likelihood {-fit.value:.4f}, "
        f"published {PUBLISHED_LOSS}"
    )
    print(
        f"rates {np.round(rates, 3)}, published {PUBLISHED_RATES}; "
        f"transitions\n{np.round(transitions, 3)}"
    )

    model = make_model(log_posterior)
    try:
        steps = {"draws": 100, "tune": 200} if options.quick else {"draws": 1000, "tune": 1000}
        trace = model.sample(**steps, seed=1, inits=start, init_radius=2.0, progress_bar=False)
    except ImportError as missing:
        print(missing)
        return
    draws = {
        name: trace.posterior[name].values.reshape(-1, *shape)
        for name, shape in model.shapes().items()
    }
    print(f"\n{len(draws['rates'])} draws of the posterior: mean and standard deviation")
    for i in range(STATES):
        stay = draws["transitions"][:, i, i]
        centre, spread = draws["rates"][:, i].mean(), draws["rates"][:, i].std()
        print(
            f"state {i + 1}: rate {centre:6.2f} {spread:5.2f}   probability to stay "
            f"{stay.mean():5.2f} {stay.std():5.2f}"
        )

    some = range(0, len(draws["rates"]), max(1, len(draws["rates"]) // 200))
    points = [(draws["rates"][i], draws["transitions"][i]) for i in some]
    hidden = np.mean(
        [vm.hmm_hidden_state_prob(emissions(r), t, stationary(t)) for r, t in points], axis=0
    )
    restless = YEARS[np.argmax(hidden, axis=0) == 2]
    print(f"years most likely in the third state: {', '.join(map(str, restless))}")
    path = options.output / "hidden_markov.png"
    plot(hidden, draws["rates"].mean(axis=0), path)
    print(f"plot saved to {path}")


if __name__ == "__main__":
    main()
