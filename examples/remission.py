"""Remission of leukaemia
======================

Survival with censored times: a Weibull model of two groups.

Of 42 children with leukaemia in remission, half got 6-mercaptopurine and half a placebo; times to
relapse are in weeks (Freireich and others 1963, Blood 21, 699-716). At the end 12 of the treated
children were still in remission, so their times are censored. Relapses per week, 9 in 359 weeks of
treatment and 21 in 182 weeks of placebo, differ by a factor of 4.6.
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

treated = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
censored = [3, 5, 7, 8, 11, 12, 13, 16, 17, 18, 19, 20]  # their places among the treated
placebo = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]
weeks = np.array(treated + placebo, float)
is_treated = np.repeat([1.0, 0.0], 21)
end = np.full(42, np.inf)
end[censored] = weeks[censored]
for group, name in ((is_treated == 1.0, "treated"), (is_treated == 0.0, "placebo")):
    print(f"{name}: {np.sum(weeks[group] < end[group])} relapses in {weeks[group].sum():.0f} weeks")

# %%
# The model
# ---------
#
# The treatment multiplies the time to relapse by ``exp(effect)``. An observation at its end counts
# as the probability of any longer time.

model = vm.Model(
    shape=vm.positive(prior=dist.Lognormal(0, 0.5)),
    log_scale=vm.real(prior=dist.Normal(2, 1)),
    effect=vm.real(prior=dist.Normal(0, 1)),
    weeks=vm.observed(
        weeks,
        lambda shape, log_scale, effect: dist.Weibull(
            shape, np.exp(log_scale + effect * is_treated)
        ).censored(upper=end),
    ),
)

# %%
# The fit
# -------

fit = model.sample(500, seed=1, progress_bar=False)
print(fit)

# %%
# The picture
# -----------

time = np.linspace(0.0, 36.0, 100)
shape, scale, effect = (
    fit.posterior[name].values.reshape(-1, 1) for name in ("shape", "log_scale", "effect")
)
figure = Figure(figsize=(7, 3.8), layout="constrained")
axes = figure.subplots()
for each, name in ((1.0, "6-mercaptopurine"), (0.0, "placebo")):
    remaining = np.exp(-((time / np.exp(scale + each * effect)) ** shape))
    low, middle, high = np.quantile(remaining, [0.05, 0.5, 0.95], axis=0)
    axes.plot(time, middle, label=name)
    axes.fill_between(time, low, high, alpha=0.25)
axes.set_xlabel("weeks")
axes.set_ylabel("share still in remission")
axes.legend()
folder = Path(sys.argv[-1]) if "--output" in sys.argv else Path(sys.argv[0]).parent
figure.savefig(folder / "remission.png", dpi=150)
