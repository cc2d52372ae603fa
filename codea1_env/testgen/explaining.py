"""Why there are no tests, in words."""

from __future__ import annotations

from codea1_env.rendering.display import clean
from codea1_env.testgen.function import FunctionSuite
from codea1_env.testgen.invent import can_be_called


def why_nothing(suite: FunctionSuite) -> str:
    """Say why a suite has no tests, and what to do."""
    target = suite.target
    start = "Expect a function that can be tested, actually: "
    if suite.unstable:
        return (
            f"{start}all {len(suite.unstable)} calls of {target.name} gave different results in two runs, such as "
            f"{clean(suite.unstable[0])}. Pass in what it draws or reads (a random.Random, a time), and keep "
            "nothing between calls"
        )
    if suite.outside:
        return (
            f"{start}{target.name} asks for what the sandbox has not, files, the network or standard input: "
            f"{clean(suite.outside[0])}. Move the part that computes into a function of its own"
        )
    why = can_be_called(target.parameters)
    if why:
        return (
            f"{start}{why}. Write an example into the docstring (>>> {target.name}(...) and below it the result), "
            "or name an agent with --agent"
        )
    if "SystemExit" in target.raises and not suite.dropped:
        return (
            f"{start}no call of {target.name} can be tested, and its code ends the process. Move the part that "
            "computes into a function of its own"
        )
    reasons = [reason for _, reason in suite.dropped]
    return f"{start}no test of {target.name} passes" + (
        f"; the first: {clean(reasons[0])}" if reasons else ""
    )
