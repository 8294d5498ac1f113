"""Cumulative distribution functions and their logarithms, one module per family of distributions as
for the densities.
"""

from varmat.densities.cumulative import bounded as bounded
from varmat.densities.cumulative import circular as circular
from varmat.densities.cumulative import counts as counts
from varmat.densities.cumulative import extreme_value as extreme_value
from varmat.densities.cumulative import heavy_tails as heavy_tails
from varmat.densities.cumulative import incomplete_beta as incomplete_beta
from varmat.densities.cumulative import incomplete_gamma as incomplete_gamma
from varmat.densities.cumulative import location_scale as location_scale
from varmat.densities.cumulative import positive as positive
from varmat.densities.cumulative import skewed as skewed
from varmat.densities.cumulative import sums as sums
