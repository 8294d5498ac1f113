"""All special functions that are imported with varmat."""

from varmat.functions.rows import ROOT_HALF as ROOT_HALF
from varmat.functions.rows import ROOT_TWO_OVER_PI as ROOT_TWO_OVER_PI
from varmat.functions.special.bessel_functions import *
from varmat.functions.special.entropies_and_losses import *
from varmat.functions.special.error_functions import *
from varmat.functions.special.exponential_integrals import *
from varmat.functions.special.gamma_functions import *
from varmat.functions.special.hypergeometric_functions import *
from varmat.functions.special.incomplete_functions import *
from varmat.functions.special.logistic_functions import *
from varmat.functions.special.powers_and_arithmetic import *
from varmat.functions.special.zeta_functions import *
