"""The script that a helper process runs: finds this folder once, then forgets where it is.

Usage: start.py run.zygote|analysis.analyst ARGUMENT...
"""

from __future__ import annotations

import importlib
import os
import sys

if __name__ == "__main__":
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(0, folder)
    with importlib.import_module("inside.run.forking").no_hooks():
        module = importlib.import_module(f"inside.{sys.argv[1]}")
    sys.path.remove(folder)
    module.main(sys.argv[2:])
