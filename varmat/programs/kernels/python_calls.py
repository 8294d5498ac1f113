"""Calls of Python: everything that has no kernel of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from varmat.programs.kernels.kernel import Arrays, Kernel
from varmat.programs.program import OBJECT, Shape, Value


class PythonCall(Kernel):
    """A call of a Python function of arrays: everything that has no kernel of its own."""

    is_native = False

    def __init__(
        self,
        name: str,
        function: Callable[..., tuple[Any, ...]],
        makes: Sequence[tuple[Shape, Any]],
        pure: bool,
    ) -> None:
        self.name, self.function, self.makes, self.is_pure = name, function, list(makes), pure

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        return self.makes

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        return self.function(*operands)

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
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
            made = function(*[x[0] if type(x) is list else x for x in operands])
            for i, place, is_object in pairs:
                if is_object:
                    place[0] = made[i]
                else:
                    place[...] = made[i]

        return run
