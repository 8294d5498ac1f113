"""SciPy, with functions that take variables: ``from varmat.scipy import linalg, special``.

Each module has SciPy's names, with SciPy's arguments and defaults. Called on plain numbers, a
function is SciPy's own. Called on variables, it is the differentiable one if varmat has one, and
otherwise it is refused by name. Nothing of SciPy is imported before a name is looked up.

Examples
--------
>>> import numpy as np, varmat as vm
>>> from varmat.scipy import linalg
>>> covariance = np.array([[4.0, 2.0], [2.0, 5.0]])
>>> linalg.cholesky(covariance)  # upper, as in SciPy
array([[2., 1.],
       [0., 2.]])
>>> vm.gradient(lambda a: linalg.cholesky(a)[1, 1], covariance)
array([[ 0.0625, -0.25  ],
       [ 0.    ,  0.25  ]])
"""

from __future__ import annotations

import sys
from typing import Any

from varmat.scipy.mirrors import ROOT


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(ROOT, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(ROOT)})


ROOT.register(sys.modules)
