"""What all densities share: titles and domains of the arguments, constants that may be dropped, and
the unnormalised companion.

    @density(
        y=("Random variable", not_nan),
        mu=("Location parameter", finite),
        Sigma=("Covariance matrix", finite),
    )
    def multi_normal_lpdf(y, mu, Sigma, keep):  # floats and arrays, inside their domains
        "docstring"
        ...
        value = -0.5 * quadratic
        if "Sigma" in keep:  # a term of only data is dropped
            value -= 0.5 * log_determinant
        if "constants" in keep:
            value -= size * HALF_LOG_TWO_PI
        return Saved(value, factor=factor)

    @multi_normal_lpdf.reverse  # as for every structured operation
    def multi_normal_reverse(g, r, y, mu, Sigma, keep, factor): ...

    @multi_normal_lpdf.tangent
    def multi_normal_tangent(r, y, mu, Sigma, keep): ...

    @multi_normal_lpdf.gradient  # or both of these rules as one
    def multi_normal_gradient(r, y, mu, Sigma, factor): ...

A density of one variable is a row of a table instead: see `varmat.densities.univariate`.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial, update_wrapper
from typing import Any, NoReturn

import numpy as np

from varmat.core.domains import Domain
from varmat.core.dual import value_now
from varmat.core.errors import DataError, DomainError
from varmat.core.operation import Operation, as_operand, is_differentiable, operation
from varmat.core.variables import Var, own_tape
from varmat.densities.sources import references
from varmat.functions.checks import check_values, misfit
from varmat.functions.docstrings import indented
from varmat.typing import Adjoint, DensityCall, Function, Operand, Plain, Propto, Result, Setting

# The phrases are Stan's. The tests take floats and arrays.
not_nan = Domain("not nan", lambda x: x == x, lambda x: np.vdot(x, x) >= 0)
# The log density of a possible observation.
possible = Domain("above -inf", lambda x: x != -math.inf)
probability = Domain(
    "in the interval [0, 1]", lambda x: (x >= 0) & (x <= 1), lambda x: x.min() >= 0 and x.max() <= 1
)
nonnegative_finite = Domain(
    "nonnegative finite",
    lambda x: (x >= 0) & (x < math.inf),
    lambda x: x.min() >= 0 and x.max() < math.inf,
)

LARGEST = sys.float_info.max
# exp(LARGEST_EXPONENT) is nearly the largest float.
LARGEST_EXPONENT = 709.78


def is_count(n: Operand, moderate: bool = False) -> Operand:
    """Tell which numbers are finite counts; `moderate` says that all are known to be moderate."""
    is_whole = (n >= 0.0) & (np.floor(n) == n)
    return is_whole if moderate else is_whole & (n <= LARGEST)


# Domains of observations, whatever the parameters are: see `Density.data_domain`.
nonnegative_integer = Domain("a nonnegative integer", is_count)
zero_or_one = Domain("0 or 1", lambda x: (x == 0.0) | (x == 1.0))


def integer_to(last: int, first: int = 1) -> Domain:
    """Make the domain of categories, or of counts of trials."""
    return Domain(
        f"an integer from {first} to {last}",
        lambda x: (x >= first) & (x <= last) & (np.floor(x) == x),
    )


# The derivative for an observation outside the support, and for no observation at all.
ZERO = np.zeros(())
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
LN2 = math.log(2.0)

Domains = dict[str, tuple[str, Domain]]
# The arguments whose terms are kept, and "constants".
KeptTerms = frozenset[str]


def argument_lines(arguments: Domains) -> str:
    """Format the arguments for a docstring."""
    return "\n".join(
        f"    {x} : array_like\n        {words}: {domain.phrase}."
        for x, (words, domain) in arguments.items()
    )


def positional(arguments: Iterable[str]) -> list[inspect.Parameter]:
    """Make the signature parameters for these argument names."""
    return [
        inspect.Parameter(argument, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for argument in arguments
    ]


def ieee(values: Iterable[Plain]) -> list[Result]:
    """Convert floats to NumPy's, which overflow to infinity where Python's raise."""
    return [np.float64(v) if type(v) is float else v for v in values]


def typed(function: Function) -> DensityCall:
    """Tell type checkers what kind of result a density has for which kinds of arguments."""
    return function


class Density:
    """A log density or log mass: a function of observations and parameters, summed over the
    observations.

    Attributes
    ----------
    name : str
        The name of the function.
    arguments : dict
        Name of an argument -> its title in messages and its domain.
    operation : callable
        The differentiable operation behind it, which takes the arguments and ``keep=``.
    discrete : frozenset of str
        The arguments without a derivative, which cannot be variables.
    proportional : Proportional
        The same density without the terms that depend on data only: Stan's ``_lupdf`` or
        ``_lupmf``.
    rng : RandomNumbers or None
        The function that draws from the distribution, where there is one: see
        `varmat.densities.random_numbers`.
    """

    operation: Operation
    rng: Function | None = None
    # The domain of the first argument, the observation, outside which no parameters make it
    # possible, as a function of the values of all arguments. By default the nonnegative integers
    # for a mass; None if what is possible depends on the parameters.
    data_domain: Function | None = None

    def __init__(self, name: str, arguments: Domains, discrete: Iterable[str] = ()) -> None:
        self.__name__ = self.__qualname__ = self.name = name
        self.arguments = arguments
        self.discrete = frozenset(discrete)
        if name.endswith("_lpmf"):
            self.data_domain = lambda *_: nonnegative_integer
        self.all_terms = frozenset({*arguments, "constants"})
        self.takes(positional(arguments))

    def takes(self, parameters: list[inspect.Parameter]) -> None:
        """Set the signature."""
        self.parameters = parameters
        propto = inspect.Parameter("propto", inspect.Parameter.KEYWORD_ONLY, default=False)
        self.__signature__ = inspect.Signature([*parameters, propto])
        self.proportional = Proportional(self)

    def __reduce__(self) -> str:
        # Densities are pickled by name, as functions are.
        return self.name

    def __repr__(self) -> str:
        return f"<varmat density {self.name}{self.__signature__}>"

    def refuse_variable(self, name: str) -> NoReturn:
        """Raise for a discrete argument that is a variable."""
        text = (
            f"{self.name}: {self.arguments[name][0]} is a variable, but has no derivative: it is "
            "discrete!"
        )
        raise TypeError(text)

    def refuse_data(self, values: Sequence[object]) -> None:
        """Refuse an observation that is impossible whatever the parameters are. Call this where the
        log density is -inf, the observation is data, and the parameters are variables.
        """
        if self.data_domain is not None:
            (title, _), *_ = self.arguments.values()
            try:
                self.data_domain(*values).check(self.name, title, values[0])
            except DomainError as error:
                raise DataError(str(error)) from None

    def made_of(
        self, function: Any, domains: Domains | None = None, **settings: Setting
    ) -> Operation:
        """Make the operation of the density from a function of its arguments and of settings with
        defaults.
        """
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        others = [
            inspect.Parameter(name, kind, default=default) for name, default in settings.items()
        ]
        function.__signature__ = inspect.Signature([*self.parameters, *others])
        result: Operation = operation(domains=domains)(function)
        # Messages show this signature: `keep` does not concern the caller.
        result.__signature__ = inspect.Signature(self.parameters)
        return result

    def shape_of(self, args: Operand) -> tuple[int, ...]:
        """Check the domains of the arguments and return the shape to which they broadcast."""
        shape: tuple[int, ...] = ()
        for (title, domain), x in zip(self.arguments.values(), args, strict=True):
            try:
                shape = np.broadcast_shapes(shape, np.shape(x))
            except ValueError:
                raise misfit(
                    self.name, title, np.shape(x), f"have a shape that broadcasts with {shape}"
                ) from None
            check_values(partial(domain.check, self.name, title), x)
        return shape

    @typed
    def __call__(self, *args: Operand, propto: Propto = False, **kwargs: Operand) -> Result:
        if self.discrete:
            for name, x in (*zip(self.arguments, args, strict=False), *kwargs.items()):
                if name in self.discrete and is_differentiable(x):
                    self.refuse_variable(name)
        if kwargs or len(args) != len(self.arguments):
            args, _ = self.operation.bind(args, kwargs)
        keep = self.kept_terms(zip(self.arguments, args, strict=True), propto)
        return self.unless_impossible(args, self.operation(*args, keep=keep))

    @staticmethod
    def kept_terms(operands: Iterable[tuple[str, object]], propto: Propto) -> KeptTerms | None:
        """Return the arguments whose terms are kept: variables, and those in `propto`; None for
        all.
        """
        if not propto:
            return None
        active = frozenset(name for name, x in operands if is_differentiable(x))
        return active if propto is True else active | propto

    def unless_impossible(self, args: Sequence[Operand], result: Result) -> Result:
        """Return the result, unless `refuse_data` refuses the arguments: then remove the entry on
        the tape.
        """
        if self.data_domain is None or value_now(result) != -math.inf:
            return result
        if is_differentiable(result) and not is_differentiable(args[0]):
            try:
                self.refuse_data([value_now(as_operand(x, self.name)) for x in args])
            except DataError:
                if type(result) is Var:
                    own_tape(result).top.pop()
                raise
        return result


class Proportional:
    """A density without the terms that depend on data only."""

    def __init__(self, density: Density) -> None:
        self.density = density
        self.__name__ = self.__qualname__ = self.name = density.name.replace("_lp", "_lup")
        self.__module__ = density.__module__
        self.__signature__ = inspect.Signature(density.parameters)
        self.__doc__ = f"""``{density.name}`` with ``propto=True``: without the terms that depend on
        data only.

    For plain numbers only, all terms are dropped, and the value is zero.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.{self.name}.density is vm.{density.name}
    True
    """

    @typed
    def __call__(self, *args: Operand, **kwargs: Operand) -> Result:
        try:
            return self.density(*args, propto=True, **kwargs)
        except (TypeError, ValueError) as error:
            text, own = str(error), f"{self.density.name}:"
            # The message begins with the name of the density; the caller used this one.
            if text.startswith(own):
                error.args = (f"{self.name}:{text.removeprefix(own)}",)
            raise

    def __reduce__(self) -> str | tuple[object, ...]:
        return getattr, (self.density, "proportional")

    def __repr__(self) -> str:
        return f"<varmat density {self.name}{self.__signature__}>"


class StructuredDensity(Density):
    """A density given as a structured operation; made by `density`."""

    def __init__(self, function: Function, arguments: Domains, discrete: Iterable[str]) -> None:
        super().__init__(function.__name__, arguments, discrete)
        update_wrapper(self, function)

        def value(*values: Operand, keep: KeptTerms | None = None, **workspace: Setting) -> Result:
            # A density of only data has no terms left, but bad arguments are refused anyway.
            result = function(*values, keep=self.all_terms if keep is None else keep, **workspace)
            return 0.0 if keep is not None and not keep else result

        update_wrapper(value, function)
        workspace = (
            {"workspace": np.empty} if "workspace" in inspect.signature(function).parameters else {}
        )
        self.operation = self.made_of(value, arguments, keep=None, **workspace)

    def __getattr__(self, name: str) -> NoReturn:
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name == "pointwise":
            text = (
                f"{self.name} has no pointwise, because its observations are not numbers; "
                "varmat.distributions has one, such as MultiNormal(mu, Sigma).lpdf.pointwise(y)"
            )
        raise AttributeError(text)

    def reverse(self, rule: Operand) -> Result:
        """Register the reverse rule, as a decorator."""
        return self.operation.reverse(rule)

    def tangent(self, rule: Operand) -> Result:
        """Register the tangent rule, as a decorator."""
        return self.operation.tangent(rule)

    def gradient(self, rule: Operand) -> Result:
        """Register the derivatives, from which both rules are made, where one way to compute them
        serves arrays and variables.

        The rule is given the result, the arguments and saved values: all of these in a reverse
        pass, and those without a default in a forward one too. It returns a function of nothing for
        each argument, None for a discrete one; or None, if all derivatives are zero.
        """
        saved = [*inspect.signature(rule).parameters.values()][1 + len(self.arguments) :]
        zero = tuple(None if name in self.discrete else lambda: ZERO for name in self.arguments)

        def reverse(g: Adjoint, r: Operand, *values: Operand, keep: Operand, **known: Any) -> Any:
            parts = rule(r, *values, **known)
            if parts is None:  # zero even if g is nan
                return zero
            return tuple(None if p is None else lambda p=p: g * p() for p in parts)

        def tangent(r: Operand, *values: Operand, keep: Operand, **known: Any) -> Any:
            # A derivative is computed once for all directions.
            parts = [p and cache(p) for p in rule(r, *values, **known) or zero]
            return tuple(None if p is None else lambda t, p=p: np.sum(p() * t) for p in parts)

        self.operation.reverse(reverse)
        self.operation.tangent(tangent)
        self.operation.wanted = frozenset(p.name for p in saved if p.default is p.empty)
        return rule


def density(
    *discrete: str, **arguments: tuple[str, Domain]
) -> Callable[[Function], StructuredDensity]:
    """Make a density of a function on plain arrays.

    Parameters
    ----------
    *discrete : str
        Names of the arguments that cannot be variables. The rules return None for them.
    **arguments : tuple of str and Domain
        For each argument, in order, its title in messages and its domain.

    Returns
    -------
    callable
        Decorator that turns a function into a `Density`, whose ``reverse`` and ``tangent`` are the
        decorators for its rules. The function is called with a float or a float64 array for each
        argument and with ``keep``, a set of names. A term belongs to the sum if it depends on an
        argument in `keep`; a constant belongs to it if "constants" is in `keep`. The function
        returns the summed log density, or `Saved` of it with intermediate values for the reverse
        rule. A parameter ``workspace=np.empty`` means what it means for operations.
    """
    return lambda function: StructuredDensity(function, arguments, discrete)


# Parts of docstrings of families, whose text is indented by four blanks.
_PROPTO = """propto : bool, keyword only
        Drop the terms that depend on data only, as ``{}`` does."""
_RAISES = """Raises
    ------
    DomainError
        If an argument is outside its domain; for a matrix that is not positive definite also a
        `numpy.linalg.LinAlgError`.
    ShapeError
        If the shapes do not fit."""


def member(
    value: Function, name: str, arguments: Domains, words: dict[str, str], **settings: object
) -> StructuredDensity:
    """Make a density of a family: that of this name, by the function of the family with these
    settings, whose docstring has places for the words.
    """

    def function(*values: Operand, keep: KeptTerms) -> Result:
        return value(*values, keep=keep, **settings)

    function.__name__ = function.__qualname__ = name
    function.__module__ = value.__module__
    function.__doc__ = indented(value).format(
        name=name,
        propto=_PROPTO.format(name.replace("_lp", "_lup")),
        raises=_RAISES,
        references=references(name).lstrip(),
        **words,
    )
    return StructuredDensity(function, arguments, ())
