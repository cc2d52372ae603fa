"""Texts that break parsers: they are parsed in the sandbox, and end as an ordinary verdict."""

from __future__ import annotations

from attacking import RIGHT, TESTS

from codea1_env.sandbox import Outcome

# A syntax error in a program and in a test alike.
BROKEN = {
    "null byte": "x = 1\0",
    "null byte at the start": "\0assert f(1) == 2",
    "surrogate": "assert f('\ud800') == 2",
    "unbalanced": "(" * 10,
    "100,000 parentheses": "x = " + "(" * 100_000 + "1" + ")" * 100_000,
    "100,000 brackets": "x = " + "[" * 100_000 + "]" * 100_000,
    "100,000 braces": "x = " + "{" * 100_000,
    "many digits": "x = " + "9" * 100_000,
    "a future that never came": "from __future__ import braces",
    "tabs and spaces": "if 1:\n        x = 1\n\ty = 2",
    "10,000 levels of indentation": "\n".join(" " * i + "if 1:" for i in range(1000)),
    "return outside": "return f(1)",
    "await outside": "await f(1)",
    "nonlocal": "nonlocal f",
    "a form feed and no end": "\f'''",
    "an f-string in an f-string": "f'{f\"{f'{'}\"}'",
    "a byte order mark inside": "x = 1\n\ufeffy = 2",
    "right-to-left": "x = \u202e1",
    "a walrus at top level": "f := 1",
}
# Deep trees: some parsers and compilers give up on them, and none may crash with us.
DEEP = {
    "minus": "x = " + "-" * 50_000 + "1",
    "not": "x = " + "not " * 20_000 + "1",
    "sums": "x = " + "+".join(["1"] * 50_000),
    "attributes": "x = f" + ".a" * 20_000,
    "calls": "x = f" + "()" * 20_000,
    "subscripts": "x = f" + "[0]" * 20_000,
    "lambdas": "x = " + "lambda: " * 5_000 + "1",
    "conditions": "x = " + "1 if 1 else " * 10_000 + "1",
    "comparisons": "x = " + "1 < " * 20_000 + "1",
    "elifs": "if 0: pass\n" + "elif 0: pass\n" * 5_000,
    "strings": "x = " + "'a' " * 50_000,
    "else-ifs": "".join(" " * i + "if 1:\n" for i in range(90)) + " " * 90 + "x = 1",
}
HARMLESS = {
    "a byte order mark": "\ufeff",
    "encoding cookie": "# -*- coding: latin-1 -*-\n",
    "an unknown encoding": "# coding: attack\n",
    "future": "from __future__ import annotations\n",
    "carriage returns": "x = 1\r\ny = 2\r",
    "form feed": "\f\n",
    "a magic line": "#!/bin/rm -rf /\n",
    "an escape that warns": "x = '\\d'\n",
    "normalised names": "\ufb01 = 1\n",  # the ligature fi
    "a docstring": "'''text'''\n",
    "a long line": "x = '" + "a" * 1_000_000 + "'\n",
    "many lines": "x = 1\n" * 20_000,
}


def test_broken_programs(arena):
    found = arena.outcomes(BROKEN)
    assert found == dict.fromkeys(BROKEN, Outcome.SYNTAX_ERROR)


def test_broken_tests(arena):
    results = arena.sandbox.run_tests(
        RIGHT, [*BROKEN.values(), "assert f(1) == 2"], entry_point="f"
    )
    found = {name: result.outcome for name, result in zip(BROKEN, results, strict=False)}
    assert found == dict.fromkeys(BROKEN, Outcome.SYNTAX_ERROR)
    assert results[-1].outcome is Outcome.PASS


def test_deep_trees(arena):
    """No exact outcome: it depends on the interpreter's build. Never a pass of `f`, never our failure."""
    tests = [*DEEP.values()]
    programs = {name: f"{text}\ndef f(x): return 5" for name, text in DEEP.items()}
    found = arena.outcomes(programs, "assert f(1) == 2")
    bad = {Outcome.PASS, Outcome.INFRA_ERROR}
    assert {name: outcome for name, outcome in found.items() if outcome in bad} == {}
    results = arena.sandbox.run_tests(RIGHT, [*tests, "assert f(1) == 2"], entry_point="f")
    assert {result.outcome for result in results} & {Outcome.INFRA_ERROR} == set()
    assert results[-1].outcome is Outcome.PASS


def test_unusual_texts_change_nothing(arena):
    programs = {name: text + RIGHT for name, text in HARMLESS.items()}
    expected = dict.fromkeys(HARMLESS, Outcome.PASS)
    assert arena.outcomes(programs) == expected
    tests = {
        name: arena.outcome(RIGHT, *(text + each for each in TESTS.values()))
        for name, text in HARMLESS.items()
    }
    assert tests == expected


def test_names_that_are_not_what_they_seem(arena):
    """Python normalises names: a test may spell the entry point in other letters, and calls it."""
    results = arena.sandbox.run_tests(RIGHT, ["assert \uff46(1) == 2"], entry_point="f")
    assert results[0].outcome is Outcome.PASS
