"""Second names of functions: Stan's, where NumPy and SciPy have one too."""

from __future__ import annotations

from functools import wraps
from typing import Any, TypeVar

from varmat.typing import Operand, Setting

F = TypeVar("F")


def alias(name: str, function: F, module: str = "varmat") -> F:
    """Make another name of a public function, with which the messages of its errors begin."""
    main: Any = function
    own, arity = main.__name__, getattr(main, "arity", None)
    call = getattr(main, "call", main)  # A row's call of variables takes less time than the row's.

    # The attributes are not copied, because reading them all at once makes the row itself slower.
    @wraps(main, updated=())
    def called(*args: Operand, **settings: Setting) -> Operand:
        try:
            result = call(*args) if len(args) == arity and not settings else NotImplemented
            return main(*args, **settings) if result is NotImplemented else result
        except (TypeError, ValueError) as error:
            if (text := str(error)).startswith((f"{own}:", f"{own}()")):
                error.args = (name + text.removeprefix(own).replace(f" {own}(", f" {name}("),)
            raise

    called.__name__ = called.__qualname__ = name
    called.__module__ = module  # where pickle finds it
    called.alias_of = main  # type: ignore[attr-defined]
    return called  # type: ignore[return-value]
