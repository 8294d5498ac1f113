"""Seeds that germinate
====================

A logistic regression in which plates differ by more than chance.

Seeds of two species of broomrape lay on 21 plates with root extracts of bean or cucumber (Crowder
1978, Applied Statistics 27, 34-37). Each plate has an effect of its own. The literature has the
coefficients -0.55, 0.09, 1.35 and -0.81 for this model, and plates that differ by 0.27.
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

germinated = np.array(
    [10, 23, 23, 26, 17, 5, 53, 55, 32, 46, 10, 8, 10, 8, 23, 0, 3, 22, 15, 32, 3]
)
seeds = np.array([39, 62, 81, 51, 39, 6, 74, 72, 51, 79, 13, 16, 30, 28, 45, 4, 12, 41, 30, 51, 7])
species = np.repeat([0.0, 1.0], [11, 10])
cucumber = np.repeat([0.0, 1.0, 0.0, 1.0], [5, 6, 5, 5])
X = np.column_stack([np.ones(21), species, cucumber, species * cucumber])

# %%
# The model
# ---------

names = ["intercept", "species", "cucumber", "both"]
model = vm.Model(
    beta=vm.real(4, prior=dist.Normal(0, 2), dims="effect"),
    tau=vm.positive(prior=dist.Normal(0, 1)),
    plate=vm.real(21, prior=lambda tau: dist.Normal(0, tau), centred=False),
    germinated=vm.observed(
        germinated, lambda beta, plate: dist.BinomialLogit(seeds, X @ beta + plate)
    ),
    coords={"effect": names},
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
# Each plate lies between its share of germinated seeds and what its species and extract predict.

beta = fit.posterior["beta"].values.reshape(-1, 4)
plate = fit.posterior["plate"].values.reshape(-1, 21)
line = beta @ X.T
low, middle, high = np.quantile(vm.expit(line + plate), [0.05, 0.5, 0.95], axis=0)
figure = Figure(figsize=(7, 3.8), layout="constrained")
axes = figure.subplots()
at = np.arange(1, 22)
axes.errorbar(at, middle, [middle - low, high - middle], fmt="o", label="median and 90 %")
axes.plot(at, germinated / seeds, "kx", label="share of the seeds")
axes.plot(at, np.median(vm.expit(line), axis=0), "C3_", markersize=14, label="species and extract")
axes.set_xlabel("plate")
axes.set_ylabel("probability to germinate")
axes.legend()
folder = Path(sys.argv[-1]) if "--output" in sys.argv else Path(sys.argv[0]).parent
figure.savefig(folder / "seeds.png", dpi=150)
