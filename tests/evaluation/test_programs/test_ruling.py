"""Every test that does not count has a fault of a closed list."""

from __future__ import annotations

import pytest

from codea1_env.evaluation.test_programs.ruling import Reference, Ruling, Subject
from codea1_env.faults import Fault, missing_package
from codea1_env.problems import Problem
from codea1_env.sandbox import Limits, Sandbox

INC = Problem(
    "inc",
    "def inc(n):",
    "inc",
    "def inc(n):\n    if n == 'luck':\n        return hash(n)\n"
    "    return (i for i in range(n)) if n < 0 else n + 1\n",
)

TESTS = {
    "assert inc(": Fault.UNPARSABLE,
    "assert inc('\ud800') == 1": Fault.UNPARSABLE,
    "assert 1 + 1 == 2": Fault.NEVER_CALLS,
    "for n in []:\n    assert inc(n) == 2": Fault.NEVER_CALLS,
    "assert inc(1) == inc(1)": Fault.TESTS_NOTHING,
    "try:\n    inc(1)\nexcept Exception:\n    pass": Fault.TESTS_NOTHING,
    "inc = abs\nassert inc(1) == 1": Fault.TAMPERS,
    "assert inc.__code__.co_argcount == 1\ninc(1)": Fault.TAMPERS,
    "assert inc(1) == 1": Fault.WRONG_VALUE,
    "assert inc(1) > 2": Fault.WRONG_VALUE,
    "assert inc([]) == 1": Fault.RAISES,
    "inc([])": Fault.RAISES,
    "import nothing.at_all\nassert inc(1) == 2": Fault.NOT_INSTALLED,
    "inc(1)\nwhile True:\n    pass": Fault.TIMEOUT,
    "inc(1)\nimport os\nos._exit(0)": Fault.LIMIT,
    "inc(1)\nx = [0] * 10**10": Fault.LIMIT,
    "assert inc(-1) == [0]": Fault.UNENCODABLE,
    "assert inc('luck') == 0": Fault.NON_DETERMINISTIC,
}


@pytest.fixture(scope="module")
def rulings(sandbox: Sandbox) -> dict[str, Ruling]:
    limits = Limits(call_cpu_time=1.0, call_wall_time=5.0)
    subject = Subject.of(INC)
    return Reference(sandbox, "correct", limits, 0.25).rule({subject: TESTS})[subject]


@pytest.mark.parametrize("test", TESTS)
def test_the_fault_of_a_test(rulings, test):
    assert rulings[test].fault is TESTS[test], rulings[test].reason
    assert rulings[test].reason


def test_a_test_that_counts_has_none(sandbox):
    subject = Subject.of(INC)
    ruled = Reference(sandbox, "drop", None, 0.25).rule({subject: ["assert inc(1) == 2"]})
    [ruling] = ruled[subject].values()
    assert (ruling.status, ruling.reason, ruling.fault) == ("kept", "", None)


def test_a_package_that_is_missing_is_named(rulings):
    reason = rulings["import nothing.at_all\nassert inc(1) == 2"].reason
    assert missing_package(reason) == "nothing"
    assert missing_package(rulings["assert inc([]) == 1"].reason) is None
