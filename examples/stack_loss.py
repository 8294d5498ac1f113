"""Loss of ammonia
===============

A regression that does not follow its outliers.

A plant oxidised ammonia on 21 days; the loss depends on the flow of air and the temperature of the
water, hardly on the acid (Brownlee 1965, Statistical Theory and Methodology). Least squares give
-39.92 + 0.716 air + 1.295 water - 0.152 acid. The first, third, fourth and last days are outliers.
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

air = [80, 80, 75, 62, 62, 62, 62, 62, 58, 58, 58, 58, 58, 58, 50, 50, 50, 50, 50, 56, 70]
water = [27, 27, 25, 24, 22, 23, 24, 24, 23, 18, 18, 17, 18, 19, 18, 18, 19, 19, 20, 20, 20]
acid = [89, 88, 90, 87, 87, 87, 93, 93, 87, 80, 89, 88, 82, 93, 89, 86, 72, 79, 80, 82, 91]
loss = np.array([42, 37, 37, 28, 18, 18, 19, 20, 15, 14, 14, 13, 11, 12, 8, 7, 8, 8, 9, 15, 15.0])
measured = np.column_stack([air, water, acid]).astype(float)
X = (measured - measured.mean(axis=0)) / measured.std(axis=0)

# %%
# The model
# ---------
#
# They differ in the tails of the errors only.


def model_of(errors):
    return vm.Model(
        alpha=vm.real(prior=dist.Normal(17, 10)),
        beta=vm.real(3, prior=dist.Normal(0, 10)),
        sigma=vm.positive(prior=dist.Exponential(0.3)),
        loss=vm.observed(loss, lambda alpha, beta, sigma: errors(alpha + X @ beta, sigma)),
    )


models = {
    "normal errors": model_of(dist.Normal),
    "Student errors": model_of(lambda mean, sigma: dist.StudentT(2.0, mean, sigma)),
}

# %%
# The fit
# -------

fits = {name: model.sample(1000, seed=1, progress_bar=False) for name, model in models.items()}
for name, fit in fits.items():
    beta = fit.posterior["beta"].values.reshape(-1, 3) / measured.std(axis=0)
    print(f"{name}:", np.round(beta.mean(axis=0), 2))

# %%
# The picture
# -----------
#
# With Student errors most days lie closer to the line, and the outliers farther from it.

figure = Figure(figsize=(7, 3.8), layout="constrained")
axes = figure.subplots()
for (name, fit), marker in zip(fits.items(), "o^", strict=True):
    means = fit.posterior.mean(("chain", "draw"))
    rest = loss - float(means["alpha"]) - X @ means["beta"].values
    axes.plot(np.arange(1, 22), rest, marker, label=name)
axes.axhline(0.0, color="0.6", linewidth=1)
axes.set_xlabel("day")
axes.set_ylabel("loss less prediction")
axes.legend()
folder = Path(sys.argv[-1]) if "--output" in sys.argv else Path(sys.argv[0]).parent
figure.savefig(folder / "stack_loss.png", dpi=150)
