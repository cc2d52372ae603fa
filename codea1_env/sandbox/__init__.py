"""A sandbox for Python programs and the tests that judge them. Standard library only.

It knows nothing of games, rewards or models, and can be used alone:

    >>> from codea1_env.sandbox import Sandbox
    >>> with Sandbox(workers=1) as sandbox:
    ...     sandbox.call("def double(x): return 2 * x", "double", [((21,), {})])[0].value
    42

What is covered:

- Verdicts: with `judged="outside"` the program's process holds no expected value, test or reference. It returns plain data
  of exact types, which another process compares. Nothing is unpickled.
- Files, processes, network: at "kernel" and "namespaces" a program reads Python's own files and computes. It starts no
  process, opens no connection, and writes at most 16 MiB to a folder of its own that is gone afterwards.
- Other runs: each run has a fresh process and fresh pipes. At most `Limits` of CPU time, wall-clock time, memory and output.
- Crashes, hangs and floods: each is an `Outcome` of that program, at the cost of at most three times its limits.
- Our own failures: tried three times, then `UNJUDGED` if a known job still works, else `InfraError`. Never a verdict.
- A busy machine: CPU time decides, and what reached its limit on a slow machine is repeated alone.

What is not covered:

- `judged="inside"`: a test file, or a text that is no data, shares the program's process. A hostile program can forge it.
- Level "process": a program can read files, start processes and use the network. It must be asked for by name.
- Bugs of the kernel, and side channels: timing, caches, load. Put a virtual machine around the sandbox where they matter.
- Names, sizes and times of the machine's files at "kernel".
- Memory of all runs together: there are no control groups, so it is bounded by `workers * Limits.memory`.
- Values that are no plain data, such as instances of own classes: `UNENCODABLE`, though Python would compare them.
"""

from .calls import (
    UNKNOWN,
    Answers,
    Case,
    EncodedCases,
    encoded_arguments,
    encoded_cases,
    expected_frame,
)
from .compare import Comparison, Returned, Rule, equal, same
from .inside.run.running import DIGEST, ITERATED, RETURNED
from .jobs import Job, Limits
from .levels import LevelReport, examine, strongest_level
from .lines import difference
from .outcomes import meaning_of
from .processes import PROGRAM
from .results import (
    AnalysisError,
    CallResult,
    InfraError,
    JobResult,
    LevelUnavailableError,
    Limit,
    Outcome,
    SandboxError,
    ScriptResult,
    TestResult,
)
from .runs import ALLOWANCE, UNANSWERED, RunRules
from .sandbox import Sandbox, default_sandbox
from .scripts import MAX_INPUT
from .test_modules import TestModuleResult

__all__ = [
    "ALLOWANCE", "DIGEST", "ITERATED", "MAX_INPUT", "PROGRAM", "RETURNED", "UNANSWERED", "UNKNOWN", "AnalysisError", "Answers", "CallResult", "Case", "Comparison",
    "EncodedCases", "InfraError", "Job", "JobResult", "LevelReport", "LevelUnavailableError",
    "Limit", "Limits", "Outcome", "Returned", "Rule", "RunRules", "Sandbox", "SandboxError", "ScriptResult",
    "TestModuleResult", "TestResult", "default_sandbox", "difference", "encoded_arguments", "encoded_cases", "equal", "examine",
    "expected_frame", "meaning_of", "same", "strongest_level",
]  # fmt: skip
