"""Recorded functions for callers that call millions of times: bound to arrays, and from C."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from varmat.core.array_methods import FLOAT64
from varmat.core.errors import ShapeError
from varmat.typing import Shape


class BoundCalls(ABC):
    """The calls of a recorded function that do not look at their arguments; abstract."""

    __name__: str

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Record the function, if it was not yet."""

    @abstractmethod
    def runner_of(self, shape: Shape) -> Any:
        """Return the runner of the value and gradient for a single vector, if it was recorded."""

    def bind(self, x: np.ndarray, out: np.ndarray) -> Callable[[], float]:
        """Bind a recorded value and gradient to an array that is read and one that is written.

        Parameters
        ----------
        x : ndarray of float64, shape (n,), C-contiguous
            The point. Assign to its elements (``x[:] = ...``) between calls.
        out : ndarray of float64, shape (n,), C-contiguous
            Where each call leaves the gradient.

        Returns
        -------
        callable
            Without arguments; returns the value. It is nan where the recorded program does not
            hold, as at a point where the function raises: call the recorded function there.

        Raises
        ------
        TypeError
            If the function is not the value and gradient for a single vector, does not run
            natively, or an argument is not such an array.
        ShapeError
            If the shapes are different.
        Exception
            What the function raises at `x`, where it is recorded.

        Notes
        -----
        A call takes about 0.1 us in addition to the program, a call of the recorded function 1 us:
        it does not check its arguments, and makes no array.

        Examples
        --------
        >>> import numpy as np, varmat as vm
        >>> f = vm.recorded(lambda x: -0.5 * np.sum(x * x))
        >>> x, gradient = np.array([1.0, 2.0]), np.empty(2)
        >>> call = f.bind(x, gradient)
        >>> call(), gradient
        (-2.5, array([-1., -2.]))
        >>> x[0] = 3.0
        >>> call(), gradient
        (-6.5, array([-3., -2.]))
        """
        for title, item in (("x", x), ("out", out)):
            is_vector = type(item) is np.ndarray and item.dtype is FLOAT64 and item.ndim == 1
            if not (
                is_vector and item.flags.c_contiguous and (title == "x" or item.flags.writeable)
            ):
                raise TypeError(
                    f"recorded.bind: {title} must be a vector of float64 in one piece"
                    f"{', which can be written' * (title == 'out')}!"
                )
        if x.shape != out.shape:
            raise ShapeError(
                f"recorded.bind: out has shape {out.shape}, but must have shape {x.shape}, as x!"
            )
        self(x)
        return partial(self._native("bind", x.shape).single, x, out)

    def address(self, n: int) -> int:
        """Return the address of a C function for a vector of `n` elements, with which the recorded
        function was called before.

        Parameters
        ----------
        n : int

        Returns
        -------
        int
            Of ``double f(const double *x, double *gradient)``, which returns the value and writes
            the gradient. The value is nan where the recorded program does not hold. It may be
            called from several threads at once, as long as the recorded function lives.

        Raises
        ------
        TypeError
            If the function was not called with such a vector, is not its value and gradient, or
            does not run natively.

        Examples
        --------
        >>> import ctypes, numpy as np, varmat as vm
        >>> f = vm.recorded(lambda x: -0.5 * np.sum(x * x))
        >>> x, gradient = np.array([1.0, 2.0]), np.empty(2)
        >>> value, _ = f(x)
        >>> kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p)
        >>> kind(f.address(2))(x.ctypes.data, gradient.ctypes.data), gradient
        (-2.5, array([-1., -2.]))
        """
        result: int = self._native("address", (n,)).c_function.address("call")
        return result

    def _native(self, name: str, shape: Shape) -> Any:
        """Return the native runner for a vector."""
        run = self.runner_of(shape)
        if run is None or getattr(run, "single", None) is None:
            raise TypeError(
                f"recorded.{name}: {self.__name__} must run natively for a single vector of shape "
                f"{shape}, and give its value and gradient without calls of Python!"
            )
        return run
