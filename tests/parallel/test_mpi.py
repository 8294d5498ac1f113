"""Workers of MPI. Skipped unless mpi4py and a program that starts ranks are installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_sums_and_points_by_two_workers():
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    pytest.importorskip(
        "cloudpickle", reason="cloudpickle, for the functions of the model, is not installed"
    )
    start = shutil.which(
        "mpiexec",
        path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    )
    if start is None:
        pytest.skip("there is no mpiexec")
    # Open MPI refuses to run as root without these settings; other programs ignore them.
    settings = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    settings["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    script = str(Path(__file__).with_name("mpi_sums.py"))
    command = [start, "-n", "3", sys.executable, "-m", "mpi4py.futures", script]
    subprocess.run(
        command, check=True, env={**os.environ, **settings, "PYTHONPATH": paths}, timeout=100
    )
