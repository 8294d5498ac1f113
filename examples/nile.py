"""The Nile at Aswan
=================

A level that moves: a dynamic linear model whose states are summed out.

The flow of the Nile in each year from 1871 to 1970, in 10^8 cubic metres. A random walk and noise
have the variances 1,469 and 15,099 by maximum likelihood (Durbin and Koopman 2012, Time Series
Analysis by State Space Methods).
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

flow = np.array([1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994,
                 1020, 960, 1180, 799, 958, 1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030,
                 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969, 831, 726,
                 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744,
                 796, 1040, 759, 781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846,
                 812, 742, 801, 1040, 860, 874, 848, 890, 744, 749, 838, 1050, 918, 986, 797,
                 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740.0])  # fmt: skip

# %%
# The model
# ---------
#
# Given the two standard deviations the flows are normal, and a Kalman filter gives their density.

first, spread = np.array([1000.0]), np.array([[1e6]])
one = np.array([[1.0]])
model = vm.Model(
    lambda noise, walk: vm.gaussian_dlm_obs_lpdf(
        flow[np.newaxis], one, one, noise**2 * one, walk**2 * one, first, spread
    ),
    noise=vm.positive(prior=dist.Normal(0, 200)),
    walk=vm.positive(prior=dist.Normal(0, 100)),
)

# %%
# The fit
# -------

mode = model.optimize(seed=1, jacobian=False).values
print(f"mode: variances {mode['walk'] ** 2:.0f} and {mode['noise'] ** 2:.0f}")
fit = model.sample(500, seed=1, progress_bar=False)
print(fit)

# %%
# The picture
# -----------
#
# The level, given all flows and the means of the standard deviations, by one system of equations.

noise, walk = (float(fit.posterior[name].mean()) for name in ("noise", "walk"))
steps = np.diff(np.eye(100), axis=0)
precision = np.eye(100) / noise**2 + steps.T @ steps / walk**2
level, error = (
    np.linalg.solve(precision, flow / noise**2),
    np.sqrt(np.diag(np.linalg.inv(precision))),
)
figure = Figure(figsize=(7, 3.8), layout="constrained")
axes = figure.subplots()
years = np.arange(1871, 1971)
axes.plot(years, flow, "k.", label="flow")
axes.plot(years, level, label="level")
axes.fill_between(years, level - 1.645 * error, level + 1.645 * error, alpha=0.25)
axes.set_ylabel("10^8 cubic metres in a year")
axes.legend()
folder = Path(sys.argv[-1]) if "--output" in sys.argv else Path(sys.argv[0]).parent
figure.savefig(folder / "nile.png", dpi=150)
