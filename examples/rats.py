"""Growth of rats
==============

Thirty lines whose intercepts and slopes are correlated.

Thirty young rats were weighed once a week (Gelfand and others 1990, Journal of the American
Statistical Association 85, 972-985). On average they weigh 106.6 g at birth, and gain 6.19 g a day.
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

days = np.array([8.0, 15.0, 22.0, 29.0, 36.0])
weight = np.array([
    [151, 199, 246, 283, 320], [145, 199, 249, 293, 354], [147, 214, 263, 312, 328],
    [155, 200, 237, 272, 297], [135, 188, 230, 280, 323], [159, 210, 252, 298, 331],
    [141, 189, 231, 275, 305], [159, 201, 248, 297, 338], [177, 236, 285, 350, 376],
    [134, 182, 220, 260, 296], [160, 208, 261, 313, 352], [143, 188, 220, 273, 314],
    [154, 200, 244, 289, 325], [171, 221, 270, 326, 358], [163, 216, 242, 281, 312],
    [160, 207, 248, 288, 324], [142, 187, 234, 280, 316], [156, 203, 243, 283, 317],
    [157, 212, 259, 307, 336], [152, 203, 246, 286, 321], [154, 205, 253, 298, 334],
    [139, 190, 225, 267, 302], [146, 191, 229, 272, 302], [157, 211, 250, 285, 323],
    [132, 185, 237, 286, 331], [160, 207, 257, 303, 345], [169, 216, 261, 295, 333],
    [157, 205, 248, 289, 316], [137, 180, 219, 258, 291], [153, 200, 244, 286, 324.0],
])  # fmt: skip

# %%
# The model
# ---------
#
# The line of each rat is drawn around the mean line; days are counted from the middle.

model = vm.Model(
    mean=vm.real(2, prior=dist.Normal([250.0, 6.0], [50.0, 3.0])),
    scale=vm.positive(2, prior=dist.Normal(0.0, [30.0, 2.0])),
    correlation=vm.cholesky_corr(2, prior=dist.LKJCorrCholesky(2.0)),
    lines=vm.real(
        30, 2,
        prior=lambda mean, scale, correlation: dist.MultiNormalCholesky(
            mean, scale[:, np.newaxis] * correlation
        ),
    ),
    sigma=vm.positive(prior=dist.Normal(0, 20)),
    weight=vm.observed(
        weight, lambda lines, sigma: dist.Normal(lines[:, :1] + lines[:, 1:] * (days - 22), sigma)
    ),
)  # fmt: skip

# %%
# The fit
# -------

fit = model.sample(500, seed=1, progress_bar=False)
middle, slope = fit.posterior["mean"].values.reshape(-1, 2).mean(axis=0)
print(f"weight at birth {middle - 22 * slope:.1f} g, gain {slope:.2f} g a day")
print(fit)

# %%
# The picture
# -----------

lines = fit.posterior["lines"].values.reshape(-1, 30, 2).mean(axis=0)
figure = Figure(figsize=(7, 3.8), layout="constrained")
left, right = figure.subplots(1, 2)
left.plot(days, (lines[:, :1] + lines[:, 1:] * (days - 22)).T, "C0", linewidth=0.7)
left.plot(days, weight.T, "k.", markersize=2)
left.set_xlabel("days")
left.set_ylabel("weight (g)")
right.plot(lines[:, 0], lines[:, 1], "o")
right.set_xlabel("weight after 22 days (g)")
right.set_ylabel("gain (g a day)")
folder = Path(sys.argv[-1]) if "--output" in sys.argv else Path(sys.argv[0]).parent
figure.savefig(folder / "rats.png", dpi=150)
