"""Calls of Python: everything without a separate kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from varmat.programs.ir.kernel import Arrays, Kernel, Results, Run
from varmat.programs.ir.program import OBJECT, ArrayLayout, Value


class PythonCall(Kernel):
    """A call of a Python function of arrays: everything without a separate kernel."""

    is_native = is_foldable = False

    def __init__(
        self, name: str, function: Callable[..., Results], makes: Sequence[ArrayLayout], pure: bool
    ) -> None:
        self.name, self.function, self.makes, self.is_pure = name, function, list(makes), pure

    def results(self, *operands: Value) -> list[ArrayLayout]:
        return self.makes

    def evaluate(self, *operands: np.ndarray) -> Results:
        return self.function(*operands)

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        function = self.function
        pairs = list(
            zip(
                range(len(results)),
                results,
                [dtype is OBJECT for _, dtype in self.makes],
                strict=True,
            )
        )

        def run() -> None:
            result = function(*[x[0] if type(x) is list else x for x in operands])
            for i, place, is_object in pairs:
                if is_object:
                    place[0] = result[i]
                else:
                    place[...] = result[i]

        return run
