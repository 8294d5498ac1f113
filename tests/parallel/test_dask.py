"""The documented cluster of two workers, and chains of a model. Skipped where Dask is not
installed.
"""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(path):
    """Run a script. It is a file of its own because the workers import it."""
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run(
        [sys.executable, str(path)],
        check=True,
        env={**os.environ, "PYTHONPATH": paths},
        timeout=100,
    )


def test_the_cluster_of_the_documentation(tmp_path):
    pytest.importorskip("distributed", reason="Dask is not installed")
    text = (ROOT / "docs" / "howto_parallel.md").read_text(encoding="utf-8")
    (script,) = (
        each
        for each in re.findall(r"^```py\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
        if "LocalCluster" in each
    )
    path = tmp_path / "cluster.py"
    path.write_text(script, encoding="utf-8")
    run(path)


def test_chains_and_points_of_a_model():
    pytest.importorskip("distributed", reason="Dask is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("nutpie", reason="nutpie is not installed")
    run(Path(__file__).with_name("dask_chains.py"))
