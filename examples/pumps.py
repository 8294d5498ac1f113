"""Failures of ten pumps
=====================

Rates that borrow strength from each other.

Ten pumps of a power station failed 1 to 22 times, in 1 to 126 thousand hours (Gaver and
O'Muircheartaigh 1987, Technometrics 29, 1-15). A pump with one failure in a thousand hours tells
little by itself, so its rate moves towards those of the others.
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

hours = np.array([94.3, 15.7, 62.9, 126.0, 5.24, 31.4, 1.05, 1.05, 2.1, 10.5])  # thousands
failures = np.array([5, 1, 5, 14, 3, 19, 1, 1, 4, 22])

# %%
# The model
# ---------

model = vm.Model(
    alpha=vm.positive(prior=dist.Exponential(1.0)),
    beta=vm.positive(prior=dist.Gamma(0.1, 1.0)),
    rate=vm.positive(10, prior=lambda alpha, beta: dist.Gamma(alpha, beta)),
    failures=vm.observed(failures, lambda rate: dist.Poisson(rate * hours)),
)

# %%
# The fit
# -------
#
# With these priors the literature has the means 0.70 of alpha and 0.93 of beta.

fit = model.sample(1000, seed=1, progress_bar=False)
print(fit)

# %%
# The picture
# -----------

rate = fit.posterior["rate"].values.reshape(-1, 10)
low, middle, high = np.quantile(rate, [0.05, 0.5, 0.95], axis=0)
figure = Figure(figsize=(7, 3.8), layout="constrained")
axes = figure.subplots()
pumps = np.arange(1, 11)
axes.errorbar(pumps, middle, [middle - low, high - middle], fmt="o", label="median and 90 %")
axes.plot(pumps, failures / hours, "kx", label="failures / time")
axes.axhline(np.median(fit.posterior["alpha"] / fit.posterior["beta"]), linewidth=1, color="C3",
             label="mean of all pumps")  # fmt: skip
axes.set_xticks(pumps)
axes.set_xlabel("pump")
axes.set_ylabel("failures in a thousand hours")
axes.legend()
folder = Path(sys.argv[-1]) if "--output" in sys.argv else Path(sys.argv[0]).parent
figure.savefig(folder / "pumps.png", dpi=150)
