"""Beetles and carbon disulphide
=============================

A dose and its response, with two links of which one fits.

Eight groups of beetles breathed carbon disulphide for five hours, and some of each died (Bliss
1935, Annals of Applied Biology 22, 134-167). By maximum likelihood a logit leaves a deviance of
11.2, and a complementary log-log link one of 3.4, with as many parameters.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import varmat as vm
import varmat.distributions as dist

# %%
# The data
# --------

log_dose = np.array([1.6907, 1.7242, 1.7552, 1.7842, 1.8113, 1.8369, 1.8610, 1.8839])
beetles = np.array([59, 60, 62, 56, 63, 59, 62, 60])
killed = np.array([6, 13, 18, 28, 52, 53, 61, 60])
dose = (log_dose - 1.8) / 0.06

# %%
# The model
# ---------
#
# A link turns a line in the logarithm of the dose into the probability that a beetle dies.

links = {"logit": vm.expit, "complementary log-log": lambda line: -np.expm1(-np.exp(line))}


def model_with(link):
    return vm.Model(
        alpha=vm.real(prior=dist.Normal(0, 2)),
        beta=vm.real(prior=dist.Normal(0, 2)),
        killed=vm.observed(
            killed, lambda alpha, beta: dist.Binomial(beetles, link(alpha + beta * dose))
        ),
    )


# %%
# The fit
# -------
#
# The probabilities of the observations tell which link to take.

fits = {
    name: model_with(link).sample(500, seed=1, progress_bar=False) for name, link in links.items()
}
for name, fit in fits.items():
    log_likelihood = fit.log_likelihood["killed"].values.sum(axis=-1)
    print(f"{name}: mean log likelihood {log_likelihood.mean():.1f}")
print(fits["complementary log-log"])

# %%
# The picture
# -----------

grid = np.linspace(1.66, 1.91, 80)
figure = Figure(figsize=(7, 3.8), layout="constrained")
axes = figure.subplots()
for name, fit in fits.items():
    alpha, beta = (fit.posterior[each].values.reshape(-1, 1) for each in ("alpha", "beta"))
    chance = links[name](alpha + beta * (grid - 1.8) / 0.06)
    low, middle, high = np.quantile(chance, [0.05, 0.5, 0.95], axis=0)
    axes.plot(grid, middle, label=name)
    axes.fill_between(grid, low, high, alpha=0.25)
axes.plot(log_dose, killed / beetles, "ko", label="groups of beetles")
axes.set_xlabel("logarithm (base 10) of the dose in mg/l")
axes.set_ylabel("share killed")
axes.legend()
folder = Path(sys.argv[-1]) if "--output" in sys.argv else Path(sys.argv[0]).parent
figure.savefig(folder / "beetles.png", dpi=150)
