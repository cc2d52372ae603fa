"""How fast the sandbox is, beside what has no isolation, and whether its verdicts are right.

Every comparison is made in the same run, job by job in turn: A B A B. `benchmarks/speed_of_sandbox.py` prints the table.
"""
