"""Growth of dugongs
=================

A curve that levels off: nonlinear regression.

The ages of 27 dugongs and their lengths (Ratkowsky 1983, Nonlinear Regression Modeling). The length
comes closer to its limit by the same factor in each year. By least squares the limit is 2.66 m, and
the factor 0.87.
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

age = np.array([1.0, 1.5, 1.5, 1.5, 2.5, 4.0, 5.0, 5.0, 7.0, 8.0, 8.5, 9.0, 9.5, 9.5, 10.0, 12.0,
                12.0, 13.0, 13.0, 14.5, 15.5, 15.5, 16.5, 17.0, 22.5, 29.0, 31.5])  # fmt: skip
length = np.array([1.80, 1.85, 1.87, 1.77, 2.02, 2.27, 2.15, 2.26, 2.47, 2.19, 2.26, 2.40, 2.39,
                   2.41, 2.50, 2.32, 2.32, 2.43, 2.47, 2.56, 2.65, 2.47, 2.64, 2.56, 2.70, 2.72,
                   2.57])  # fmt: skip

# %%
# The model
# ---------

model = vm.Model(
    limit=vm.positive(prior=dist.Normal(2.5, 1.0)),
    missing=vm.positive(prior=dist.Normal(1.0, 1.0)),
    factor=vm.interval(0.0, 1.0, prior=dist.Beta(2.0, 2.0)),
    sigma=vm.positive(prior=dist.Exponential(5.0)),
    length=vm.observed(
        length,
        lambda limit, missing, factor, sigma: dist.Normal(limit - missing * factor**age, sigma),
    ),
)

# %%
# The fit
# -------

fit = model.sample(1000, seed=1, progress_bar=False)
print(fit)

# %%
# The picture
# -----------
#
# The outer band is where a new animal is expected.

grid = np.linspace(0.0, 40.0, 81)
limit, missing, factor, sigma = (
    fit.posterior[name].values.reshape(-1, 1) for name in ("limit", "missing", "factor", "sigma")
)
curve = limit - missing * factor**grid
animals = vm.normal_rng(curve, sigma, rng=1)
figure = Figure(figsize=(7, 3.8), layout="constrained")
axes = figure.subplots()
axes.fill_between(
    grid, *np.quantile(animals, [0.05, 0.95], axis=0), alpha=0.15, label="animals, 90 %"
)
axes.fill_between(grid, *np.quantile(curve, [0.05, 0.95], axis=0), alpha=0.3, label="mean, 90 %")
axes.plot(grid, np.median(curve, axis=0))
axes.plot(age, length, "k.", label="dugongs")
axes.set_xlabel("age (years)")
axes.set_ylabel("length (m)")
axes.legend()
folder = Path(sys.argv[-1]) if "--output" in sys.argv else Path(sys.argv[0]).parent
figure.savefig(folder / "dugongs.png", dpi=150)
