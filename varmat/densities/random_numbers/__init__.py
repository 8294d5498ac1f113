"""Random numbers of the distributions: one module for each kind of draw."""

from varmat.densities.random_numbers import continuous as continuous
from varmat.densities.random_numbers import discrete as discrete
from varmat.densities.random_numbers import matrices as matrices
from varmat.densities.random_numbers import processes as processes
from varmat.densities.random_numbers import regressions as regressions
from varmat.densities.random_numbers import vectors as vectors
