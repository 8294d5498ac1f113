"""Stan programs as models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varmat.stan.checks import check
from varmat.stan.parser import parse
from varmat.stan.syntax import distinguish

# The methods import what runs or translates a program, because these imports take ten times as long
# as reading and checking it.
if TYPE_CHECKING:
    from varmat.models.model import Model
    from varmat.stan.representation import Forced, Representation
    from varmat.stan.user_functions import UserFunctions

__all__ = ["Program"]


class Program:
    """A Stan program, read and checked.

    Parameters
    ----------
    source : str or Path
        The path of a file, as a Path or as a text that ends in ``.stan``; or the text of a program.
    include_paths : sequence of paths
        Directories of files that ``#include`` names; then come those of the including files.

    Attributes
    ----------
    tree : varmat.stan.syntax.Program
        The syntax tree, with the types of all expressions.
    notes : list of Note
        What to write today where old syntax was read.
    functions : UserFunctions
        The functions of the program: ``program.functions.name(...)`` calls one from Python.

    Raises
    ------
    StanError
        If the text is not a valid program; the message shows the line.

    Examples
    --------
    >>> import varmat as vm
    >>> program = vm.stan.Program('''
    ...     data { int<lower=0> N; vector[N] y; }
    ...     parameters { real mu; real<lower=0> sigma; }
    ...     model { sigma ~ exponential(1); y ~ normal(mu, sigma); }
    ... ''')
    >>> model = program.model({"N": 3, "y": [1.0, 3.0, 2.0]})
    >>> model.param_names()
    ['mu', 'sigma']
    >>> round(model.optimize(seed=1).values["mu"], 6)
    2.0
    """

    def __init__(self, source: str | Path, include_paths: Sequence[str | Path] = ()) -> None:
        self._source = source, tuple(include_paths)
        self.tree = parse(source, include_paths)
        distinguish(check(self.tree))
        self.notes = self.tree.notes

    @cached_property
    def functions(self) -> UserFunctions:
        from varmat.stan.user_functions import UserFunctions

        return UserFunctions(self.tree)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._source

    def __repr__(self) -> str:
        names = ", ".join(parameter.name for parameter in self.tree.parameters)
        return f"<varmat.stan.Program with the parameters {names or 'none'}>"

    def model(
        self, data: Any = None, *, seed: int | None = 0, representation: Forced = None
    ) -> Model:
        """Make the model of the program with data.

        Parameters
        ----------
        data : mapping, pandas.DataFrame, path or None
            Values by name; a table, whose columns are vectors; or the path of a file in Stan's
            JSON, or in R's dump format. Names that the program does not declare are ignored.
        seed : int, optional
            For random numbers in transformed data.
        representation : {"varmat", "matvar"} or dict of str to these, optional
            The form of all variables, or of some by name, instead of the chosen one.

        Returns
        -------
        Model
            It has the unconstrained parameters of Stan 2.37, in Stan's order.

        Raises
        ------
        TypeError
            If data are missing, or of another type than declared.
        ShapeError
            If data have another shape than declared.
        DomainError
            If data do not satisfy the declared constraints.
        """
        from varmat.stan.data import read_data
        from varmat.stan.stan_model import Blocks, StanModel

        matvars = self.representation(representation).matvars
        blocks = Blocks(self.tree, read_data(data), seed, matvars)
        return StanModel(blocks, representation)

    def representation(self, forced: Forced = None) -> Representation:
        """Show which form each variable has, how loops are run, and why.

        A matvar has a variable for each element, so that loops read and assign elements fast; a
        varmat is one variable, with fast whole-array operations. A variable is a matvar if a loop
        run iteration by iteration takes its elements, and no such loop uses it as a whole, because
        that makes a varmat of it again. Both give the same numbers. A recording keeps all arrays
        whole, so the choice is about programs that cannot be recorded, and about eager evaluation.

        Parameters
        ----------
        forced : {"varmat", "matvar"} or dict of str to these, optional
            As in `model`.

        Returns
        -------
        Representation
            Prints as a table; `variables` has `form` and `reason` of each, `loops` a line each.

        Raises
        ------
        ValueError
            If a name has no choice of forms, or for another form.

        Examples
        --------
        >>> import varmat as vm
        >>> vm.stan.Program('''
        ... data { int T; }
        ... parameters { real a; vector[T] e; }
        ... model {
        ...   vector[T] x;
        ...   x[1] = e[1];
        ...   for (t in 2:T) x[t] = a * x[t - 1] + e[t];
        ...   x ~ normal(0, 1);
        ... }
        ... ''').representation()
        T  data    it is declared as data
        a  scalar  it is a single number
        e  matvar  the loop of line 7 takes its elements; 0 conversions outside of loops
        x  matvar  the loop of line 7 takes its elements; 1 conversions outside of loops
        line 7: for (t in 2:T) x[t] = a * x[t - 1] + e[t];
          iteration by iteration: an iteration reads `x`, to which others assign (line 7)
          recorded: one loop, whose body is written once
        """
        from varmat.stan.representation import representation

        return representation(self.tree, forced)

    def to_python(self) -> str:
        """Write the program as a Python module, with a function ``make_model(data)``.

        Returns
        -------
        str
            Readable NumPy: indices count from 0, and each block is a function. The unconstrained
            coordinates are `Model`'s, not Stan's: elements of a matrix are ordered by rows,
            where Stan has columns, and simplexes have another transform. So an unconstrained point
            stands for other parameters; compare models at the same constrained values.

        Raises
        ------
        StanError
            If a part of the program cannot be written; the message shows the line.

        Examples
        --------
        >>> import varmat as vm
        >>> program = vm.stan.Program('''
        ...     data { int N; vector[N] y; }
        ...     parameters { real mu; }
        ...     model { for (n in 2:N) y[n] ~ normal(mu * y[n - 1], 1); }
        ... ''')
        >>> "vm.normal_lpdf(y[n], mu * y[n - 1], 1)" in program.to_python()
        True
        """
        from varmat.stan.to_python import to_python

        return to_python(self.tree)
