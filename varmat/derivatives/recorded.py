"""Functions recorded once: a program takes the place of the function in later calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from varmat.core.errors import DomainError
from varmat.derivatives.jacobians import jacobian_at
from varmat.derivatives.recorded_functional import Recorded as Recorded
from varmat.derivatives.recorded_functional import Recording
from varmat.derivatives.recorded_rows import copied, is_same
from varmat.derivatives.reverse import DerivedFunction, gradients_with_aux, named, with_aux
from varmat.derivatives.structure import Argnums
from varmat.interrupts import from_signal
from varmat.locks import held
from varmat.typing import Function, Operand, Result, ValueAndGrad

__all__ = ["recorded", "sparse_jacobian"]

T = TypeVar("T")


if TYPE_CHECKING:

    class RecordedOfPoint(Recorded[tuple[float, Any]]):
        """A function recorded once, to be differentiated with respect to its first argument."""

        __call__: ValueAndGrad


class RecordedWithData(Recorded[tuple[float, Any]]):
    """A function recorded once, and again where arrays that it reads have other values.

    Parameters
    ----------
    function : callable
    argnums : int
    data : sequence of ndarray
        The arrays. Those that are read-only are not compared.
    """

    def __init__(self, function: Function, argnums: Argnums, data: Sequence[np.ndarray]) -> None:
        super().__init__(function, argnums)
        self._data = [(x, copied(x)) for x in data if x.flags.writeable]

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.function, self.argnums, [x for x, _ in self._data])

    def refresh(self) -> bool:
        """Forget the recordings if data have changed, and return whether they have."""
        is_changed = not all(is_same(x, copy) for x, copy in self._data)
        if is_changed:
            with held(self._lock):
                self._data = [(x, copied(x)) for x, _ in self._data]
                self._keep([])
        return is_changed

    def __call__(self, *args: object, **kwargs: Any) -> tuple[float, Result]:
        self.refresh()
        return super().__call__(*args, **kwargs)

    def known(self, x: np.ndarray, *others: object) -> Recording | None:
        self.refresh()
        return super().known(x, *others)


class RecordedIfPossible(Recorded[tuple[float, Any]]):
    """A function recorded once; evaluated each time if it cannot be."""

    # The error raised by the attempt to record. The function may raise it too: while recorded, a
    # comparison is not a truth value.
    obstacle: Exception | None = None

    def __call__(self, *args: object, **kwargs: Any) -> tuple[float, Result]:
        obstacle = self.obstacle
        if obstacle is None:
            try:
                return super().__call__(*args, **kwargs)
            # Evaluated as it is written, the function needs more memory.
            except (DomainError, MemoryError):
                raise
            # Any of the function, which may raise none when it runs eagerly.
            except Exception as error:
                if from_signal(error):
                    raise
                obstacle = error
        result = self._eager(*args, **kwargs)
        self.obstacle = obstacle
        return result


@overload
def recorded(f: DerivedFunction[T], *, runner: str = "auto") -> Recorded[T]: ...  # type: ignore[overload-overlap]
@overload
def recorded(f: Function, *, runner: str = "auto") -> RecordedOfPoint: ...
@overload
def recorded(
    f: Function, argnums: Argnums, *, runner: str = "auto"
) -> Recorded[tuple[float, Result]]: ...
def recorded(
    f: Function, argnums: Argnums | None = None, *, runner: str = "auto"
) -> Recorded[T] | Recorded[tuple[float, Result]]:
    """Record a function, or a functional of one, once, and evaluate the recording afterwards.

    For a scalar function it computes the value and the gradient: the first call runs `f` on
    variables, as `value_and_grad` does at every call, and writes what was recorded, forward and
    reverse, as a program, a list of steps on arrays. Later calls run the program. For small arrays
    this takes a fraction of the time, because most of what `value_and_grad` takes is recording. For
    a functional it computes the same: ``vm.recorded(vm.hessian(f))`` has the results of
    ``vm.hessian(f)``.

    Parameters
    ----------
    f : callable
        Returns a scalar. It must compute the same operations at every call, whatever the values of
        its arguments, or branch in few ways: see Notes. Or what `value_and_grad`, `grad`,
        `hessian`, `hessian_times_vector`, `hessp`, `jacobian`, `jvp` or `vjp` returns for such a
        function alone, without a point; for the last three it need not be scalar.
    argnums : int or tuple of int
        The positional arguments to differentiate with respect to, by default the first. A
        functional brings its own.
    runner : {"auto", "numpy", "native"}
        The runner of programs: calls of NumPy, or machine code, which needs llvmlite and is taken
        where that is installed.

    Returns
    -------
    callable
        Takes the arguments of `f` and returns ``(value, gradient)``, as in `value_and_grad`; for a
        functional it takes the same arguments, and returns the same results. For other shapes or
        structures, and other objects as the other arguments, `f` is recorded again; the last 16
        recordings are kept. The attribute ``program`` is the last of them, and in print the list of
        its steps. The method ``map`` makes many calls at once, with the arguments of ``jax.vmap``.

    Raises
    ------
    TapeError
        If `f` looks at the value of a variable: with more than four ``if``, ``.val``, ``.grad()``,
        a mask as an index, or a function that does so, as `numpy.argsort`; comparisons may select,
        in `numpy.where` and `cond`. And for `reverse_pass_callback` and `MatVar`, which cannot be
        written as a program.
    ValueError
        If `runner` is not one of these.
    ImportError
        If the native runner is required and llvmlite is not installed.
    TypeError
        If `f` is not a function, or is a functional and `argnums` is given.
    DomainError and others
        The errors of `f`.

    Notes
    -----
    An ``if`` on a comparison is followed. Where a later call takes another branch, `f` is recorded
    again, and the program holds for both branches, up to eight; calls that take further branches
    are evaluated as `f` is written. A run computes all recorded branches and selects one, so use
    `cond` where a branch is expensive.

    Anything `f` does apart from operations on its arguments happens at the recording only. Arrays
    among the other arguments are compared at every call, or become arguments of the program where
    they are large or change: then new data of the same shapes, such as minibatches, are not
    recorded again. Arrays that `f` reads from elsewhere are held by reference: a new array in their
    place, another global value, or a random number, is not seen, and new values in the same array
    not everywhere. Recording raises if `f` catches the error of ``float(x)`` or ``np.asarray(x)``,
    because `f` would take another path for plain numbers. Where the program comes to an invalid
    argument, or to a density of zero, `f` itself is evaluated, and so is a functional where a
    derivative is not finite. NumPy's warnings appear at the recording only. Integers made of
    comparisons, such as counts, are floating-point numbers: of these `numpy.reciprocal` and
    divisions by zero have other results, and they keep fractions that are assigned to them.

    Second derivatives are recorded with dual numbers over variables, and so are a `jvp` and a
    `jacobian` of more outputs than inputs; for this one `f` is called twice. The program of a
    Hessian is a loop over the elements of the point, the program of a Jacobian one over the inputs
    or outputs, whichever are fewer. A tangent rule that looks at values is called from Python at
    every run.

    Calls from several threads at once are safe.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def f(x):
    ...     return np.sum(x[1:] * x[:-1]) + np.exp(x[0])
    >>> gradient = vm.recorded(f)
    >>> gradient(np.array([0.0, 1.0, 2.0]))
    (3.0, array([2., 2., 1.]))
    >>> gradient(np.array([0.0, 2.0, 2.0]))
    (5.0, array([3., 2., 2.]))
    >>> g = vm.recorded(lambda x: np.sum(np.exp(-0.5 * x**2)))
    >>> value, gradient = g(np.array([0.0, 1.0]))
    >>> print(g.program)
    program(a0[2])
        v0[2] = square(a0)
        v1[2] = multiply(-0.5, v0)
        v2[2] = exp(v1)
        v3 = add.reduce(v2)
        v4[2] = negative(v2)
        v5[2] = multiply(v4, a0)
        return v3, v5
    >>> hessian = vm.recorded(vm.hessian(f))
    >>> hessian(np.array([0.0, 1.0, 2.0]))
    array([[1., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    if type(f) is DerivedFunction:
        if argnums is not None:
            raise TypeError(
                f"recorded: argnums is given with {f.__name__}, but must be left out: a functional "
                "brings its own!"
            )
        if f.func in (with_aux, gradients_with_aux):
            raise TypeError(
                f"recorded: {f.__name__} has has_aux, but must not, because a recording returns "
                "the numbers of the value and the derivatives only!"
            )
    return Recorded(f, argnums, runner)


class SparseJacobian(Recorded[Any]):
    """The Jacobian of a function as a sparse array; made by `sparse_jacobian`."""

    def map(self, *args: object, **settings: object) -> Result:
        raise TypeError("sparse_jacobian: map is not supported; call it at one point at a time")


def sparse_jacobian(f: Function) -> SparseJacobian:
    """Make the function that computes the Jacobian of `f`, mostly zeros, as a sparse array.

    Parameters
    ----------
    f : callable
        Takes an array `x`, and perhaps further arguments, and returns an array.

    Returns
    -------
    SparseJacobian
        A function of `x` and the further arguments of `f`. It returns a ``scipy.sparse.csr_array``
        with a row for each element of the result and a column for each element of `x`, in C order.
        Its attribute `program` computes the elements.

    Raises
    ------
    TypeError
        If `f` is not a function; when called, as `jacobian`, and if `x` or the result is not one
        number or array.
    TapeError
        When called, as `recorded`.

    Notes
    -----
    At its first call `f` is recorded, as by `recorded`. Which elements can differ from zero follows
    from the steps of the program, for all points at which it holds; some of them may be zero. Rows,
    or columns, without a common element share a direction, so a banded Jacobian takes as many
    products as it has bands, whatever its size. Operations on whole matrices and functions of
    Python count as dense. A second derivative: ``vm.sparse_jacobian(vm.grad(f))``.

    References
    ----------
    A. R. Curtis, M. J. D. Powell and J. K. Reid (1974), On the estimation of sparse Jacobian
    matrices, IMA Journal of Applied Mathematics 13. A. Griewank and A. Walther (2008), Evaluating
    Derivatives, second edition, SIAM, chapters 7 and 8.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> jacobian = vm.sparse_jacobian(lambda x: np.diff(x**2))
    >>> j = jacobian(np.arange(4.0))
    >>> j.nnz
    6
    >>> j.toarray()
    array([[-0.,  2.,  0.,  0.],
           [ 0., -2.,  4.,  0.],
           [ 0.,  0., -4.,  6.]])
    """
    return SparseJacobian(named(DerivedFunction(_sparse_jacobian, f), f, "sparse_jacobian"))


def _sparse_jacobian(f: Function, x: Operand, /, *args: object, **kwargs: object) -> Result:
    from scipy.sparse import csr_array

    result = jacobian_at("sparse_jacobian", f, x, args, kwargs)
    return csr_array(np.reshape(result, (-1, np.size(x))))
