"""O-rings of the space shuttle
============================

A logistic regression with 23 observations, and a prediction outside their range.

On 7 of 23 flights at least one O-ring of the boosters was damaged (Dalal, Fowlkes and Hoadley 1989,
Journal of the American Statistical Association 84, 945-957). The Challenger was launched at 31
degrees Fahrenheit, colder than any flight before. Maximum likelihood puts the log odds of damage at
15.04 - 0.232 temperature.
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

temperature = np.array([53, 57, 58, 63, 66, 67, 67, 67, 68, 69, 70, 70, 70, 70, 72, 73, 75, 75,
                        76, 76, 78, 79, 81.0])  # fmt: skip
damaged = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0])

# %%
# The model
# ---------
#
# Temperatures are counted from 70 degrees, so that the two coefficients are hardly correlated.

model = vm.Model(
    alpha=vm.real(prior=dist.Normal(0, 5)),
    beta=vm.real(prior=dist.Normal(0, 1)),
    y=vm.observed(
        damaged, lambda alpha, beta: dist.BernoulliLogit(alpha + beta * (temperature - 70))
    ),
)

# %%
# The fit
# -------
#
# Without priors the mode is the published estimate.

likelihood = vm.Model(
    lambda alpha, beta: vm.bernoulli_logit_lpmf(damaged, alpha + beta * temperature),
    alpha=vm.real(),
    beta=vm.real(),
)
mode = likelihood.optimize(seed=1).values
print(f"maximum likelihood: {mode['alpha']:.2f} {mode['beta']:+.3f} temperature")
fit = model.sample(500, seed=1, progress_bar=False)
print(fit)

# %%
# The picture
# -----------

grid = np.linspace(30.0, 85.0, 56)
alpha, beta = (fit.posterior[name].values.reshape(-1, 1) for name in ("alpha", "beta"))
low, middle, high = np.quantile(vm.expit(alpha + beta * (grid - 70)), [0.05, 0.5, 0.95], axis=0)
print(f"probability of damage at 31 degrees: {middle[1]:.3f}, from {low[1]:.2f} to {high[1]:.3f}")
figure = Figure(figsize=(7, 3.8), layout="constrained")
axes = figure.subplots()
axes.fill_between(grid, low, high, alpha=0.25, label="90 % interval")
axes.plot(grid, middle, label="median")
axes.plot(temperature, damaged, "k|", markersize=12, label="flights")
axes.axvline(31, color="C3", linewidth=1, label="Challenger")
axes.set_xlabel("temperature (degrees Fahrenheit)")
axes.set_ylabel("probability of damage")
axes.legend()
folder = Path(sys.argv[-1]) if "--output" in sys.argv else Path(sys.argv[0]).parent
figure.savefig(folder / "challenger.png", dpi=150)
