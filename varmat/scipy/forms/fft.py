"""Forms of `scipy.fft`: transforms between real numbers and spectra with a symmetry."""

from __future__ import annotations

from typing import Any

import numpy as np

from varmat.typing import Operand, Result, Setting

_OPPOSITE: dict[Setting, Any] = {
    None: "forward",
    "backward": "forward",
    "ortho": "ortho",
    "forward": "backward",
}


def hfftn(x: Operand, s: Operand = None, axes: Setting = None, norm: Setting = None) -> Result:
    return np.fft.irfftn(np.conjugate(x), s, axes, _OPPOSITE[norm])


def ihfftn(x: Operand, s: Operand = None, axes: Setting = None, norm: Setting = None) -> Result:
    return np.conjugate(np.fft.rfftn(x, s, axes, _OPPOSITE[norm]))


def hfft2(x: Operand, s: Operand = None, axes: Setting = (-2, -1), norm: Setting = None) -> Result:
    return hfftn(x, s, axes, norm)


def ihfft2(x: Operand, s: Operand = None, axes: Setting = (-2, -1), norm: Setting = None) -> Result:
    return ihfftn(x, s, axes, norm)
