"""How fast the sandbox is beside a bare fork and fresh Python processes, and whether its verdicts are right.

    python benchmarks/sandbox.py
    python benchmarks/sandbox.py --problems humanevalplus.jsonl.gz --verdict-runs 10 --jobs 100000

The same as `codea1 bench sandbox`; docs/benchmarks.md says what each line of the table means.
"""

from __future__ import annotations

import sys

from codea1_env.cli.app import run

if __name__ == "__main__":
    sys.exit(run(["bench", "sandbox", *sys.argv[1:]]))
