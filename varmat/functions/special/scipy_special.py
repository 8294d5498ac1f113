"""`scipy.special`, imported when one of its functions is first called, because that import takes
longer than importing varmat.
"""

from __future__ import annotations

from typing import Any


class _ScipySpecial:
    """The functions of `scipy.special`, as attributes."""

    def __getattr__(self, name: str) -> Any:
        import scipy.special

        function = getattr(scipy.special, name)
        setattr(self, name, function)
        return function


special = _ScipySpecial()
