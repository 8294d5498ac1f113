"""Benchmarks for asv. The measured workloads are in ``workloads`` one folder up, shared with
``compare.py``.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
