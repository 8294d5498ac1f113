"""`apply_where`, with which SciPy computes some elements by one function and others by another."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from varmat.core.operation import is_differentiable
from varmat.numpy.buffers import settled
from varmat.numpy.making import asarray, full, zeros
from varmat.typing import Function, Operand


class Extra:
    """The module `array_api_extra`, with an `apply_where` for variables too."""

    def __init__(self, plain: ModuleType) -> None:
        self._plain = plain

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def apply_where(
        self,
        cond: Operand,
        args: Operand,
        f1: Function,
        f2: Function | None = None,
        /,
        *,
        fill_value: Operand = None,
        **settings: Any,
    ) -> Operand:
        arguments = args if isinstance(args, (list, tuple)) else (args,)
        if not is_differentiable([*map(settled, arguments)]):
            return self._plain.apply_where(cond, args, f1, f2, fill_value=fill_value, **settings)
        flags, *arrays = np.broadcast_arrays(np.asarray(cond), *map(asarray, arguments))
        out = full(flags.shape, fill_value) if f2 is None else zeros(flags.shape)
        for function, chosen in ((f1, flags), (f2, ~flags)):
            if function is not None and chosen.any():
                # A number has no elements to choose from.
                out[chosen if flags.ndim else ()] = function(
                    *(x[chosen] if flags.ndim else x for x in arrays)
                )
        return out if flags.ndim else out[()]
