"""Functions with SciPy's names and defaults where those of varmat and NumPy have others, in a
module for each of SciPy's. A parameter that is missing here is refused with variables."""

from __future__ import annotations
