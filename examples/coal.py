"""Disasters in coal mines
=======================

A rate that changes once, in a year that is summed out.

Explosions in British coal mines that killed ten or more, in each year from 1851 to 1962 (Jarrett
1979, Biometrika 66, 191-193): 191 in all, and far fewer after about 1890.
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

disasters = np.array([4, 5, 4, 1, 0, 4, 3, 4, 0, 6, 3, 3, 4, 0, 2, 6, 3, 3, 5, 4, 5, 3, 1, 4, 4, 1,
                      5, 5, 3, 4, 2, 5, 2, 2, 3, 4, 2, 1, 3, 2, 1, 1, 1, 1, 1, 3, 0, 0, 1, 0, 1, 1,
                      0, 0, 3, 1, 0, 3, 2, 2, 0, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0, 1, 1,
                      0, 2, 2, 3, 1, 1, 2, 1, 1, 1, 1, 2, 4, 2, 0, 0, 0, 1, 4, 0, 0, 0, 1, 0, 0, 0,
                      0, 0, 1, 0, 0, 1, 0, 0])  # fmt: skip
years = np.arange(1851, 1963)

# %%
# The model
# ---------
#
# The year of the change is a discrete parameter. Samplers that follow a gradient cannot move in it,
# so the log density is summed over its values.

model = vm.Model(
    early=vm.positive(prior=dist.Exponential(1.0)),
    late=vm.positive(prior=dist.Exponential(1.0)),
    last=vm.discrete(years),
    disasters=vm.observed(
        disasters,
        lambda early, late, last: dist.Poisson(np.where(years <= last, early, late)),
        dims="year",
    ),
    coords={"year": years},
)

# %%
# The fit
# -------
#
# The last year of the high rate is drawn, given the rates of each draw.

fit = model.sample(1000, seed=1, progress_bar=False)
print(model.summary(fit, ["early", "late", "last"]))

# %%
# The picture
# -----------
#
# The blue bars are the probabilities of the last year of the high rate.

last = fit.posterior["last_probability"].mean(("chain", "draw")).values
chance, rates = 1.0 - np.cumsum(last) + last, fit.posterior.mean()
figure = Figure(figsize=(7, 3.8), layout="constrained")
axes = figure.subplots()
axes.bar(years, disasters, color="0.7", label="disasters")
axes.plot(years, chance * float(rates["early"]) + (1 - chance) * float(rates["late"]), "C3",
          label="rate")  # fmt: skip
axes.set_ylabel("disasters in a year")
axes.legend(loc="upper right")
share = axes.twinx()
share.bar(years, last, color="C0", alpha=0.6)
share.set_yticks([])
folder = Path(sys.argv[-1]) if "--output" in sys.argv else Path(sys.argv[0]).parent
figure.savefig(folder / "coal.png", dpi=150)
