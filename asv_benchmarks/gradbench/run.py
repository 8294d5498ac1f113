"""The process that GradBench starts: it answers messages, a line of JSON each."""

import argparse
import json
import os
import sys
import traceback
from importlib import import_module

parser = argparse.ArgumentParser()
parser.add_argument("--multithreaded", action="store_true")
if not parser.parse_args().multithreaded:
    # The BLAS reads these variables when NumPy is imported.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


def answer(message):
    kind = message["kind"]
    if kind == "start":
        return {"tool": "varmat"}
    if kind not in ("define", "evaluate"):
        return {}
    try:
        module = import_module(message["module"])
        if kind == "define":
            return {"success": True}
        return getattr(module, message["function"]).wrapped(message["input"])
    except Exception as error:
        return {"success": False, "error": "".join(traceback.format_exception(error))}


for line in sys.stdin:
    message = json.loads(line)
    print(json.dumps({"id": message["id"], **answer(message)}), flush=True)
