from __future__ import annotations

import textwrap

from codea1_env.evaluation.suites.pieces import lines_before_loops_end


def test_functions_without_while_loops_have_none():
    assert lines_before_loops_end("def f(n):\n    for i in range(n):\n        pass\n") == []


def test_each_function_for_itself():
    source = """\
    def helper(n):
        return n

    def f(n):
        step = 1
        while n > 0:
            n -= step
        return helper(n)
    """
    assert lines_before_loops_end(textwrap.dedent(source)) == [4, 5, 6, 7]
