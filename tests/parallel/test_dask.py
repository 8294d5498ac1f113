"""The cluster of two workers in the documentation, where Dask is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_cluster_of_the_documentation(tmp_path):
    pytest.importorskip("distributed", reason="Dask is not installed")
    (script,) = re.findall(
        r"^```py\n(.*?)^```$",
        (ROOT / "docs" / "howto_parallel.md").read_text(),
        flags=re.MULTILINE | re.DOTALL,
    )
    path = tmp_path / "cluster.py"  # in a file of its own, because the workers import it
    path.write_text(script)
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run(
        [sys.executable, str(path)],
        check=True,
        env={**os.environ, "PYTHONPATH": paths},
        timeout=100,
    )
