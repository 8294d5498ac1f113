"""Differentiable functions, one module per family.

`varmat` itself imports the modules with public names. These have none, or answer for NumPy's names
alone: importing them fills its dispatch tables.
"""

from varmat.functions import elementwise as elementwise
from varmat.functions import refused as refused
from varmat.functions.arrays import composites as composites
from varmat.functions.arrays import constant as constant
from varmat.functions.arrays import copies as copies
from varmat.functions.arrays import differences as differences
from varmat.functions.arrays import einops as einops
from varmat.functions.arrays import fits as fits
from varmat.functions.arrays import grids as grids
from varmat.functions.arrays import moving as moving
from varmat.functions.arrays import polynomials as polynomials
from varmat.functions.arrays import reduction_names as reduction_names
from varmat.functions.arrays import selecting as selecting
from varmat.functions.arrays import statistics as statistics
from varmat.functions.arrays import writing as writing
from varmat.functions.linalg import einsum as einsum
from varmat.functions.linalg import matmul as matmul
from varmat.functions.signals import convolutions as convolutions
from varmat.functions.sparse import products as products
