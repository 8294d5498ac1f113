"""The rows of elementwise functions that `import varmat` brings.

More come with tables that are imported when they are first needed, so what `ROWS` holds while tests
are collected depends on their order. `conftest.py` imports this before any of them."""

from __future__ import annotations

import varmat  # noqa: F401 - it makes the rows
from varmat.core.elementwise import ROWS

NAMES = sorted(ROWS)
