"""Stan programs, run without a compiler."""

import typing as _typing
from importlib import import_module as _import_module

from varmat.stan.errors import StanError as StanError
from varmat.stan.errors import StanSemanticError as StanSemanticError
from varmat.stan.errors import StanSyntaxError as StanSyntaxError
from varmat.stan.program import Program as Program

if _typing.TYPE_CHECKING:
    from varmat.stan.bridgestan import BridgeStanModel as BridgeStanModel
    from varmat.stan.cmdstan import CmdStanModel as CmdStanModel

__all__ = [
    "BridgeStanModel",
    "CmdStanModel",
    "Program",
    "StanError",
    "StanSemanticError",
    "StanSyntaxError",
]

# These modules import the models, which takes longer than reading a program.
_LATER = {"BridgeStanModel": "varmat.stan.bridgestan", "CmdStanModel": "varmat.stan.cmdstan"}


def __getattr__(name: str) -> _typing.Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(_LATER[name]), name)
