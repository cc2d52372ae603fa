"""How tests stand in a file: alike ones as a table, with names that stay."""

from __future__ import annotations

import ast

from codea1_env.testgen.layout import laid_out


def names_of(parts):
    return [
        node.name
        for part in parts
        for node in ast.walk(ast.parse(part))
        if isinstance(node, ast.FunctionDef)
    ]


def test_alike_tests_are_one_table():
    tests = [
        ("assert f(20, key='b') == 3", "", ""),
        ("assert f(1, key='a') == pytest.approx(0.123456789012345)", "", ""),
        ("assert f(1, key='a') is None", "", ""),
        ("with pytest.raises(OddError):\n    f(0, key='')", "", ""),
        ("with pytest.raises(OddError):\n    f(-1, key='')", "", ""),
        ("with pytest.raises(ValueError):\n    f(-2, key='')", "", ""),
    ]
    table, raising, *others = laid_out(tests, "f", "f", ["n", "key"], "")
    assert table.splitlines() == [
        "@pytest.mark.parametrize(",
        '    ("n", "key", "expected"),',
        "    [",
        "        (20, 'b', 3),",
        "        (1, 'a', pytest.approx(0.123456789012345)),",
        "    ],",
        ")",
        "def test_f(n, key, expected):",
        "    assert f(n, key=key) == expected",
    ]
    assert raising.endswith(
        "def test_f_raises_odd_error(n, key):\n    with pytest.raises(OddError):\n        f(n, key=key)"
    )
    assert names_of(others) == ["test_f_1_key_a", "test_f_minus_2_key_empty"]


def test_names_stay_and_are_distinct():
    tests = [
        ("assert total() == 0", "", ""),
        ("items = [3]\nassert total(items) == 3\nassert items == []", "", ""),
        ("items = [4]\nassert total(items) == 4\nassert items == []", "", ""),
        ("assert total([]) == 1", "an example of the docstring", ""),
        ("total(-1.5)", "", "total(-1.5) does not end in time; {name} is what?"),
    ]
    parts = laid_out(tests, "total", "total", ["items"], "")
    assert names_of(parts) == [
        "test_total_empty",
        "test_total_without_arguments",
        "test_total_items",
        "test_total_items_2",
        "test_total_minus_1_5",
    ]
    assert parts[0].startswith("def test_total_empty():  # an example of the docstring\n")
    assert (
        "@pytest.mark.skip(reason='total(-1.5) does not end in time; {name} is what?')" in parts[-1]
    )
    # Another test changes no other line.
    more = laid_out(
        [*tests, ("assert total('abcdefgh') == 1", "", "")], "total", "total", ["items"], ""
    )
    assert [part for part in more if part not in parts] == [
        "def test_total_abcdefgh():\n    assert total('abcdefgh') == 1"
    ]
    assert [part for part in more if part in parts] == parts


def test_what_is_done_with_an_object_is_in_the_name():
    text = "box = Box()\nbox['a'] = 2\nassert ('a' in box) is True\nassert list(box) == ['a']\nassert repr(box) == ''"
    parts = laid_out([(text, "", ""), ("assert repr(Box(1)) == '1'", "", "")], "Box", "box", [], "")
    assert names_of(parts) == ["test_box_1", "test_box_item_contains_repr"]


def test_what_is_no_single_call_stands_alone():
    for body in (
        "assert f(1) == f(2)",
        "assert f(*[1]) == 2",
        "assert f(1) == 2  # so",
        "assert (lambda: f(1))() == 2",
        "assert 1 < f(1) < 3",
        "x = f(1)\nassert x == 2",
    ):
        other = body.replace("(1)", "(7)")
        parts = laid_out([(body, "", ""), (other, "", "")], "f", "f", ["n"], "")
        assert len(parts) == 2, body
        assert not any("parametrize" in part for part in parts)


def test_strings_over_several_lines_and_local_imports():
    tests = [('assert f("""a\nb""") == 1', "", ""), ("assert f('c', 'd') == 2", "", "")]
    parts = laid_out(tests, "f", "f", ["s"], "    from x import f\n\n")
    assert "'a\\nb'" in "".join(parts)
    assert all(":\n    from x import f\n\n    assert" in part for part in parts)
