"""The time of ``import varmat``, less the time of ``import numpy``."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median


def _seconds(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


class Import:
    def track_beyond_numpy(self) -> float:
        # The two take turns, so that both see the machine in the same state.
        pairs = [(_seconds("import varmat"), _seconds("import numpy")) for _ in range(7)]
        return 1e3 * median(ours - numpy for ours, numpy in pairs)

    track_beyond_numpy.unit = "ms"  # type: ignore[attr-defined]

    def timeraw_varmat(self) -> str:
        return "import varmat"

    def timeraw_after_numpy(self) -> tuple[str, str]:
        return "import varmat", "import numpy"
