"""A backend of einops for variables, made when einops is imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from varmat.core.array_methods import ArrayMethods
from varmat.core.dispatch import Answering

MODULE = "einops._backends"


def register(backends: Any) -> None:
    """Make the backend, which einops finds among the subclasses of its backend class."""

    class Backend(backends.NumpyBackend):  # type: ignore[misc]
        framework_name = "varmat"

        def is_appropriate_type(self, tensor: object) -> bool:
            return isinstance(tensor, (ArrayMethods, Answering))

        def is_float_type(self, x: object) -> bool:
            return True

    # Einops holds its subclasses weakly.
    backends._varmat = Backend


class Finder:
    """Registers the backend after the import of einops, because einops has no hook for others."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != MODULE:
            return None
        spec: Any = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            register(module)

        spec.loader.exec_module = exec_module
        return spec  # type: ignore[no-any-return]


if MODULE in sys.modules:
    register(sys.modules[MODULE])
else:
    sys.meta_path.insert(0, Finder)
