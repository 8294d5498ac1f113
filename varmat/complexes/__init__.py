"""Complex variables, as pairs of real ones, and their functions. Importing this package fills the
table of complex answers.
"""

from varmat.complexes import arrays as arrays
from varmat.complexes import elementwise as elementwise
from varmat.complexes import fourier as fourier
from varmat.complexes import linear_algebra as linear_algebra
from varmat.complexes import names as names
from varmat.complexes import operation as operation
from varmat.complexes import schur as schur
from varmat.complexes import variable as variable
