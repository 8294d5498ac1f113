"""Benchmarks for asv. What they measure stands in ``workloads`` one folder up, shared with
``compare.py``.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
