"""A sandbox for Python programs and the tests that judge them. Standard library only.

It knows nothing of games, rewards or models, and can be used alone:

    >>> from codea1_env.sandbox import Sandbox
    >>> with Sandbox(workers=1) as sandbox:
    ...     sandbox.call("def double(x): return 2 * x", "double", [((21,), {})])[0].value
    42
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
from .inside.run.running import DIGEST, RETURNED
from .jobs import Job, Limits
from .levels import LevelReport, examine, strongest_level
from .outcomes import meaning_of
from .pool import Sandbox, default_sandbox
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
from .runs import ALLOWANCE, UNANSWERED
from .tasks import MAX_INPUT
from .test_modules import TestModuleResult

__all__ = [
    "ALLOWANCE", "DIGEST", "MAX_INPUT", "RETURNED", "UNANSWERED", "UNKNOWN", "AnalysisError", "Answers", "CallResult", "Case", "Comparison",
    "EncodedCases", "InfraError", "Job", "JobResult", "LevelReport", "LevelUnavailableError",
    "Limit", "Limits", "Outcome", "Returned", "Rule", "Sandbox", "SandboxError", "ScriptResult",
    "TestModuleResult", "TestResult", "default_sandbox", "encoded_arguments", "encoded_cases", "equal", "examine",
    "expected_frame", "meaning_of", "same", "strongest_level",
]  # fmt: skip
