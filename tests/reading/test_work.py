"""What reading one answer may cost: counted in steps, so that it is the same on every machine."""

from __future__ import annotations

import time

import pytest
from read_texts import read

FIRST = "assert f(1) == 2\n"
LONG = "x = 'a' * 15000 + 'b'\ny = 'a' * 7000 + 'b' + 'a' * 7000\n"
SLOW = {
    "arguments": "for i in range(4900):\n  if z + g(" + "a," * 100 + "): f\n",
    "many arguments": "for i in range(4900):\n  assert g(" + "a," * 25_000 + ")\n  f\n",
    "and": "for i in range(4900):\n  if " + "1 and " * 10_000 + "0: f\n",
    "in, in a loop": LONG + "for i in range(100):\n  if y in x: f\n",
    "in": LONG + "if y in x: pass\n" * 2_000,
    "sorted": "x = ['a' * 9000, 'a' * 9000 + 'b'] * 5000\n" + "if x: y = sorted(x)\n" * 10,
    "keywords": "for i in range(4900):\n  z = float(" + "k=1," * 12_000 + ")\n  f\n",
    "names": "".join(f"a{i} = []\n" for i in range(2_400)) + "".join(f"a{i}.b()\n" for i in range(2_400)),
    "changes": "x = [[]] * 4_000\n" + "x.append(g)\n" * 4_000,
    "helpers": "".join(f"def h{i}(): a.b({i})\n" for i in range(1_000)) + "h1()\n" * 3_000,
    "nested": "\n".join(f"{' ' * i}def h{i}(): g(a{i})" if i == 90 else f"{' ' * i}def h{i}():" for i in range(91)) + "\nh0()\n",
    "kept": "a = [[]] * 900\n" + "b = g(a), a\n" * 4_500,
    "rows": "@pytest.mark.parametrize('a', range(1000))\ndef t(a):\n  assert g(" + "a," * 25_000 + "f)\n",
    "tables of a class": "@pytest.mark.parametrize('a', [" + "1," * 15_000 + "])\nclass T:\n" + "".join(f" def test_{i}(self, a): f\n" for i in range(900)),
    "methods": "class T(B):\n" + "".join(f" def test_{i}(self): f\n" for i in range(1_800)),
    "hooks": "# fixture\n" + "".join(f"def h{i}(): a{i}.b()\n" for i in range(900)) + "".join(f"def test_{i}(): f\n" for i in range(1_500)),
    "parameters": "@pytest.mark.parametrize('a', range(1000))\ndef t(" + ",".join(f"a{i}" for i in range(8_000)) + "):\n  f\n",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW.keys())
def test_work_is_bounded(text: str) -> None:
    text = FIRST + text
    assert len(text) <= 65_536
    started = time.process_time()
    tests, dropped = read(text + FIRST)
    assert time.process_time() - started < 2  # a tenth of it on a quiet machine
    assert tests[0] == "f(1) == 2"
    enough = "it takes too much work to read: the others are left out"
    assert dropped[-1:] == [enough] or len(tests) == 2


@pytest.mark.parametrize(
    "text",
    [
        "x = " + '""""""' * 10_000 + "\n</think>",
        '{"k": [{"assert_statements": []}, ' * 1_900,
        "Prose:\n\n    x\n" * 4_000,
        "So\n" + "    1 +\n" * 8_000,
        "**" * 30_000 + "assert f(1) == 2",
        "a: " * 20_000 + "assert f(1) == 2",
    ],
)
def test_answers_that_nobody_can_read_cost_little(text: str) -> None:
    started = time.process_time()
    read(text)
    assert time.process_time() - started < 2


@pytest.mark.slow
def test_the_rest_is_left_out() -> None:
    text = f"{FIRST}{SLOW['many arguments']}assert f(2) == 3\n"
    reason = "it takes too much work to read: the others are left out"
    tests, dropped = read(text)
    assert (tests, dropped[-1]) == (["f(1) == 2"], reason)


def test_tables_of_real_answers_cost_little() -> None:
    rows = ", ".join(f"([{i}, {i}], {{'a': {i}}}, {i})" for i in range(64))
    text = (
        f"def test():\n    for a, b, c in [{rows}]:\n        if a[0] >= 0:\n"
        "            result = f(a)\n            assert result == c, f'{a} {b}: {result}'\n"
    )
    tests, dropped = read(text)
    assert (len(tests), dropped) == (64, [])
