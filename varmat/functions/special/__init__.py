from __future__ import annotations

import sys

import numpy as np

from varmat.core.dispatch import HOOKS, SPECIAL
from varmat.typing import Function


def _answer_of_scipy(ufunc: Function) -> Function | None:
    """Return the handler of a ufunc of SciPy. Most are rare, so their tables are imported only when
    one of them is met.
    """
    name = ufunc.__name__
    if name in SPECIAL and getattr(sys.modules["scipy.special"], name, None) is ufunc:
        return SPECIAL[name]
    if getattr(np, name, None) is ufunc:
        return None
    from varmat.functions.rarer.special import further_names

    return further_names.answer(ufunc)


HOOKS["special"] = _answer_of_scipy
