"""The rows of elementwise functions that `import varmat` brings.

More rows come with tables that are imported when they are first needed. So the content of `ROWS`
during collection depends on the order of the tests. `conftest.py` imports this module before any of
them.
"""

import varmat  # noqa: F401 - it makes the rows
from varmat.core.elementwise import ROWS

NAMES = sorted(ROWS)
