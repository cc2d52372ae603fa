"""From a tester's code to independent tests: what goes together, what is dropped, nothing is rewritten."""

from __future__ import annotations

import ast
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codea1_env.evaluation.test_programs import splitting, syntax
from codea1_env.evaluation.test_programs.splitting import Splitter, Statement
from codea1_env.sandbox import Sandbox


def split(code: str, entry_point: str = "f") -> tuple[list[str], list[tuple[str, str, bool]]]:
    rows, [(places, dropped)] = syntax.describe([code])
    splitter = Splitter([Statement(**rows[place]) for place in places], entry_point)
    tests = splitter.tests()
    return tests, dropped + splitter.dropped


def test_messages_and_lines_are_kept_as_written():
    code = "assert f(1) == 2, 'no \\'quote\\''\nassert f(\n    1,  # one\n\t2) == 3\n"
    tests, dropped = split(code)
    assert tests == ["assert f(1) == 2, 'no \\'quote\\''", "assert f(\n    1,  # one\n\t2) == 3"]
    assert dropped == []


def test_a_test_carries_the_variables_it_uses_and_no_others():
    tests, _ = split(
        "x = [1, 2]\nunused = 7\ny = 3\nassert f(x) == y\nx = [4]\nassert f(x) == 1\nassert f([]) == 0"
    )
    assert tests == [
        "x = [1, 2]\ny = 3\nassert f(x) == y",
        "x = [4]\nassert f(x) == 1",
        "assert f([]) == 0",
    ]


def test_each_result_is_a_test_of_its_own():
    tests, _ = split("r = f(1)\nassert r == 2\nr = f(2)\nassert r == 3\nassert len(r) == 1")
    assert tests == [
        "r = f(1)\nassert r == 2",
        "r = f(2)\nassert r == 3",
        "r = f(2)\nassert len(r) == 1",
    ]


def test_assertions_that_change_a_shared_object_stay_in_order():
    code = "s = f()\ns.push(1)\nassert s.pop() == 1\ns.push(2)\nassert s.pop() == 2"
    tests, _ = split(code + "\nassert f().size == 0")
    assert tests == [code, "assert f().size == 0"]


def test_an_alias_shares_the_object():
    code = "s = f()\nt = s\nassert t.pop() == 1\nassert s.pop() == 2"
    assert split(code)[0] == [code]


def test_a_generator_is_consumed_in_order():
    code = "g = f(3)\nassert next(g) == 1\nassert next(g) == 2"
    assert split(code)[0] == [code]


def test_in_place_changes_of_a_list_are_seen():
    tests, _ = split(
        "xs = [3, 1]\nassert f(xs) is None\nassert xs == [1, 3]\nys = [2, 1]\nf(ys)\nassert ys == [1, 2]"
    )
    assert tests == [
        "xs = [3, 1]\nassert f(xs) is None",
        "xs = [3, 1]\nassert f(xs) is None\nassert xs == [1, 3]",
        "ys = [2, 1]\nf(ys)\nassert ys == [1, 2]",
    ]


def test_a_list_that_is_filled_before_it_is_used():
    code = "xs = []\nfor i in range(3):\n    xs.append(i)\nxs[0] = 7\nassert f(xs) == 1"
    assert split(code)[0] == [code]


def test_loops_are_tests_and_do_not_depend_on_each_other():
    loops = [f"for a, b in [({n}, 2), (3, 4)]:\n    r = f(a)\n    assert r == b" for n in range(3)]
    assert split("\n".join(loops))[0] == loops


def test_helpers_classes_and_imports_come_along():
    tests, _ = split(
        "import math\nfrom os import path\nimport re\n"
        "class Node:\n    def __init__(self, v):\n        self.v = math.floor(v)\n"
        "def build(v):\n    return Node(v)\n"
        "assert f(build(1.5)) == 1\nassert f(2) == 2"
    )
    assert tests[0].startswith("import math\nclass Node:")
    assert "import re" not in tests[0]
    assert "os" not in tests[0]
    assert tests[1] == "assert f(2) == 2"


def test_a_function_sees_the_last_assignment():
    code = "x = 1\ndef g():\n    return f(x)\nx = 2\nassert g() == 3"
    assert split(code)[0] == [code]


def test_what_sets_the_scene_comes_along():
    tests, _ = split(
        "import random, sys\nrandom.seed(1)\nsys.setrecursionlimit(9999)\nassert f(1) == 2"
    )
    assert tests == [
        "import random, sys\nrandom.seed(1)\nsys.setrecursionlimit(9999)\nassert f(1) == 2"
    ]
    tests, _ = split("from __future__ import annotations\nfrom math import *\nassert f(pi) == 3")
    assert tests == ["from __future__ import annotations\nfrom math import *\nassert f(pi) == 3"]


def test_test_functions_are_called():
    a, b = "def test_a():\n    assert f(1) == 1", "def test_b(x=2):\n    assert f(x) == 2"
    tests, dropped = split(
        f"{a}\n\n\n{b}\nif __name__ == '__main__':\n    test_a()\n    test_b()\n"
    )
    assert tests == [f"{a}\ntest_a()", f"{b}\ntest_b()"]
    assert {(reason, counts) for reason, _, counts in dropped} == {
        ("runs tests that are judged one by one", False)
    }


@pytest.mark.parametrize(
    "runner",
    [
        "test_a()",
        "def main():\n    test_a()\nmain()",
        "tests = [test_a]\nfor test in tests:\n    test()",
        "import pytest\npytest.main([__file__])",
        "if __name__ == '__main__':\n    import unittest\n    unittest.main()",
    ],
)
def test_runners_are_no_tests(runner):
    test = "def test_a():\n    assert f(1) == 1"
    tests, dropped = split(f"{test}\n{runner}")
    assert tests == [f"{test}\ntest_a()"]
    assert not any(counts for _, _, counts in dropped)


@pytest.mark.parametrize("call", ["\ncheck(f)", ""])
def test_check_functions_are_called_once(call):
    check = "def check(candidate):\n    assert candidate(1) == 2"
    assert split(check + call)[0] == [f"{check}\ncheck(f)"]


def test_unittest_methods_are_tests():
    code = (
        "import unittest\nclass TestF(unittest.TestCase):\n"
        "    def setUp(self):\n        self.x = 1\n"
        "    def test_one(self):\n        self.assertEqual(f(self.x), 1)\n"
        "    def test_two(self):\n        with self.assertRaises(ValueError):\n            f(-1)"
    )
    tests, _ = split(code + "\nif __name__ == '__main__':\n    unittest.main()")
    assert tests == [f"{code}\nTestF('test_one').debug()", f"{code}\nTestF('test_two').debug()"]


def test_methods_of_a_plain_test_class_are_tests():
    code = "class TestF:\n    def setup_method(self):\n        self.x = 1\n    def test_a(self):\n        assert f(self.x) == 1"
    assert split(code)[0] == [f"{code}\n_tests = TestF()\n_tests.setup_method()\n_tests.test_a()"]


def test_parameter_tables_become_loops():
    code = (
        "import pytest\n@pytest.mark.parametrize('a, b', [(1, 2),\n    (2, 3)])\n"
        "def test_p(a, b):\n    assert f(a) == b"
    )
    [test] = split(code)[0]
    assert test == f"{code}\nfor _case in [(1, 2),\n    (2, 3)]:\n    test_p(*_case)"


def test_expected_exceptions():
    code = "try:\n    f(-1)\n    assert False\nexcept ValueError:\n    pass"
    assert split(code)[0] == [code]
    code = "import contextlib\nwith contextlib.suppress(ValueError):\n    f(-2)\n    raise AssertionError"
    assert split(code)[0] == [code]


def test_bare_calls_are_tests_and_prints_are_not():
    tests, dropped = split(
        "f(1)\nprint(f(2))\nx = f(3)\nprint(x)\nprint('done')\n'a comment'\ny = 4"
    )
    assert tests == ["f(1)", "print(f(2))", "x = f(3)\nprint(x)"]
    assert [(text, counts) for _, text, counts in dropped] == [
        ("print('done')", False),
        ("y = 4", False),
    ]


@pytest.mark.parametrize(
    "definition",
    ["def f(x):\n    return x", "from solution import f", "f = lambda x: x", "class f:\n    pass"],
)
def test_the_program_is_tested_and_not_a_copy_of_it(definition):
    tests, dropped = split(f"{definition}\nassert f(1) == 1")
    assert tests == ["assert f(1) == 1"]
    assert dropped == [("defines f itself; the tests get the program's", definition, False)]


def test_statements_on_one_line_and_wide_characters():
    tests, _ = split("a = 'é'; assert f(a) == '🎉'; assert f('ü') == 4\nassert f('漢') == 1")
    assert tests == ["a = 'é'\nassert f(a) == '🎉'", "assert f('ü') == 4", "assert f('漢') == 1"]


def test_a_guarded_block_is_taken_apart():
    tests, _ = split(
        "if __name__ == '__main__':\n    assert f(1) == 1\n    for i in [1]:\n        assert f(i) == i\n"
        "    else:\n        pass\n    s = '''\n  x'''\n    assert f(s) == 1"
    )
    assert tests[0] == "assert f(1) == 1"
    assert (
        tests[1] == "if True:\n    for i in [1]:\n        assert f(i) == i\n    else:\n        pass"
    )
    assert tests[2] == "s = '''\n  x'''\nassert f(s) == 1"
    for test in tests:
        compile(test, "test", "exec")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_ends(newline):
    code = newline.join(["x = 1", "assert f(x) == 1", "", "assert f('''a", "b''') == 2", ""])
    tests, dropped = split(code)
    assert tests == ["x = 1\nassert f(x) == 1", f"assert f('''a{newline}b''') == 2"]
    assert dropped == []


def test_a_truncated_end_harms_nobody_else():
    tests, dropped = split(
        "x = [1]\nassert f(x) == 1\nfor i in [1]:\n    assert f(i) == i\nassert f("
    )
    assert tests == ["x = [1]\nassert f(x) == 1", "for i in [1]:\n    assert f(i) == i"]
    assert dropped == [("cannot be parsed: '(' was never closed", "assert f(", True)]


def test_code_between_prose():
    tests, dropped = split(
        "Here are the tests:\n\nassert f(1) == 1\n- the next one\nassert f('a\nassert f(3) == 3\nThat's all!"
    )
    assert tests == ["assert f(1) == 1", "assert f(3) == 3"]
    assert [(text, counts) for _, text, counts in dropped] == [
        ("Here are the tests:", False),
        ("- the next one", False),
        ("assert f('a", True),
        ("That's all!", False),
    ]


def test_a_broken_function_is_dropped_with_its_body():
    tests, dropped = split(
        "def test_a(:\n    assert f(1) == 1\n\n    assert f(2) == 2\nassert f(3) == 3"
    )
    assert tests == ["assert f(3) == 3"]
    assert len(dropped) == 1


def test_salvage_does_not_cut_statements():
    code = 'x = """\nassert nothing\n"""\nif x:\n    y = 1\nelse:\n    y = 2\n@len\ndef g(): pass\nassert f(x, y, g) == 1'
    tests, dropped = split(code + "\n)")
    assert tests == [code]
    assert len(dropped) == 1


@pytest.mark.parametrize("bad", ["'\0'", "'\ud800'", "(" * 1000 + ")" * 1000, "-" * 50_000 + "1"])
def test_what_python_cannot_read_harms_nobody_else(bad):
    tests, dropped = split(f"assert f(1) == 1\nassert f({bad}) == 1\nassert f(2) == 2")
    assert tests == ["assert f(1) == 1", "assert f(2) == 2"]
    assert [counts for _, _, counts in dropped] == [True]


def test_a_bracket_that_closes_a_statement_belongs_to_it():
    tests, dropped = split("assert f(\n    [1,\n]) == 2\n]\nassert f(\n1\n) == 3\nassert f(")
    assert tests == ["assert f(\n    [1,\n]) == 2", "assert f(\n1\n) == 3"]
    assert [text for _, text, _ in dropped] == ["]", "assert f("]


def test_indented_text_without_a_head():
    assert split("    assert f(1) == 1\n    assert f(2) == 2\n") == (
        [],
        [
            (
                "cannot be parsed: unexpected indent",
                "    assert f(1) == 1\n    assert f(2) == 2",
                True,
            )
        ],
    )


def test_functions_that_cannot_be_called():
    tests, dropped = split(
        "async def test_a():\n    assert f(1) == 1\ndef test_b(tmp):\n    assert f(tmp)"
    )
    assert tests == []
    assert [counts for _, _, counts in dropped] == [True, True]


def test_who_uses_exec_may_depend_on_anything():
    code = "x = 1\nassert f(eval('x')) == 1"
    assert split(code)[0] == [code]


def test_the_number_and_length_of_tests_is_bounded():
    tests, dropped = split("\n".join(f"assert f({n}) == {n}" for n in range(300)))
    assert len(tests) == splitting.MAX_TESTS
    assert len(dropped) == 300 - splitting.MAX_TESTS
    assert all(counts for _, _, counts in dropped)
    long = "x = '" + "a" * 50_000 + "'\n"
    tests, dropped = split(long + "\n".join(f"assert f(x) == {n}" for n in range(100)))
    assert sum(map(len, tests)) < 2 * splitting.MAX_TEST_CHARS
    assert len(tests) + len(dropped) == 100
    tests, dropped = split("x = 1\n" * (syntax.MAX_STATEMENTS + 5) + "assert f(x) == 1")
    assert ("too many statements", "x = 1", True) in dropped


def test_statements_that_come_again_are_described_once():
    guarded = 'if __name__ == "__main__":\n    for x in [1]:\n        assert f(x)\n'
    texts = [
        "x = 1\nx = 1\nassert f(x)",
        "assert f(x)\nx = 1",
        guarded,
        "for x in [1]:\n    assert f(x)\n",
    ]
    rows, found = syntax.describe(texts)
    assert [row["text"] for row in rows] == [
        "x = 1", "assert f(x)", "if True:\n    for x in [1]:\n        assert f(x)", "for x in [1]:\n    assert f(x)",
    ]  # fmt: skip
    assert found == [([0, 0, 1], []), ([1, 0], []), ([2], []), ([3], [])]
    for text, (places, _) in zip(texts, found, strict=True):
        alone, [(order, _)] = syntax.describe([text])
        assert [rows[place] for place in places] == [alone[place] for place in order]


HOSTILE = [
    "(\n" * 30_000, "@\n" * 30_000, "\\\n" * 30_000, '"""\n' * 16_000, "if x:\n" * 10_000,
    "def f(:\n" * 8_000, "assert f(" * 7_000, "a=f()\n" * 10_000, "x=f()\nassert x.a()\n" * 3_000,
    "x" * 65_000, "\x0c" * 65_000, "\r" * 65_000, "f(x)\n" * 13_000, "x=x+f\n" * 900 + "assert x\n" * 5_000,
]  # fmt: skip


@pytest.mark.parametrize("code", HOSTILE, ids=[repr(code[:12]) for code in HOSTILE])
def test_hostile_texts_cost_little(sandbox: Sandbox, code):
    started = time.process_time()
    rows, [(places, _)] = sandbox.analyse(syntax.describe, [code])
    Splitter([Statement(**rows[place]) for place in places], "f").tests()
    assert time.process_time() - started < 3


FRAGMENTS = [
    "x = [1]", "y = f(2)", "x.append(3)", "assert f(x) == 1", "assert y == x", "assert y.pop()", "def g():\n    return f(x)",
    "assert g()", "for x in [1]:\n    assert f(x)", "import math", "print(x)", "del x", "x += [4]", "with g() as y:\n    f(y)",
    "def test_a():\n    assert f(1)", "test_a()", "assert f(", "prose, here", "try:\n    import z\nexcept ImportError:\n    z = 1",
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12))
def test_every_statement_is_used_or_named(fragments):
    tests, dropped = split("\n".join(fragments))
    for test in tests:
        ast.parse(test)
    everything = "\n".join(tests) + "\n".join(text for _, text, _ in dropped)
    for fragment in fragments:
        assert fragment in everything


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("asert f(1)=:x\n\"'#\\\t[]\0\ud800é"), max_size=200))
def test_no_text_breaks_it(code):
    for test in split(code)[0]:
        ast.parse(test)
