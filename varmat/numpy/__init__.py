"""NumPy, with functions that make arrays of variables: ``import varmat.numpy as np``.

While something is differentiated (in a functional, a nested scope, or a thread whose tape has
variables), `array`, `asarray`, `r_` and their like take variables, and `zeros`, `ones`, `full`,
`empty` and theirs make arrays into which variables may be written. At all other times they do what
NumPy's do, and everything else is NumPy's own.

Examples
--------
>>> import varmat as vm, varmat.numpy as np
>>> def path(x):
...     y = np.zeros(4)
...     y[0] = x[0]
...     for i in range(3):
...         y[i + 1] = x[1] * y[i]
...     return np.sum(y)
>>> vm.gradient(path, np.array([1.0, 2.0]))
array([15., 17.])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy

from varmat.numpy.patching import patched

if TYPE_CHECKING:  # a function that makes arrays is typed as NumPy's is
    from numpy import *  # noqa: F403
    from numpy import fft as fft
    from numpy import linalg as linalg
    from numpy import polynomial as polynomial
    from numpy import random as random
else:
    _listed = {name: getattr(numpy, name) for name in numpy.__all__}
    globals().update(
        {name: thing for name, thing in vars(numpy).items() if not name.startswith("_")} | _listed
    )
    from varmat.numpy.making import *  # noqa: F403
    from varmat.numpy.reducing import *  # noqa: F403

    # They make importing NumPy slower, so that NumPy leaves them for later too.
    _later = {"ma": "varmat.numpy.masked", "polynomial": "varmat.numpy.polynomial"}
    for _name in _later:
        globals().pop(_name, None)

    def __getattr__(name: str) -> Any:
        if name in _later:
            return import_module(_later[name])
        # What NumPy imports when it is first asked for.
        if name.startswith("__"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(numpy, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *dir(numpy)})


__all__ = [*numpy.__all__, "patched"]
