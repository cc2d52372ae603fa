"""The Mistake Book: the released histories, byte-exact texts, bounds, and the file it is kept in."""

from __future__ import annotations

import copy
import json
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codea1_env.mistake_book import BookChange, MistakeBook

HISTORIES: list[list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "data" / "paper_cases.json").read_text()
)["mistake_book"]

AWKWARD = [
    'assert f(\'it\\\'s\') == "a \\"b\\""',
    "assert f('\\\\n') == '''\n\\'''",
    "assert f(r'\\d+\\') == 1",
    "line one\nline two\r\nline three\rline four",
    "assert f('🎉 é ü 漢字') == '\u2028'",
    "lone \ud800 and \udfff, side by side \ud83d\ude00",
    "null \x00 byte",
    "",
    " \t ",
    "'; DROP TABLE tests; --",
]


def test_released_histories():
    for history in HISTORIES:
        book = MistakeBook()
        for step in history:
            task = step["question_id"]
            book.update(task, failed=step["failed"], passed=step["history_passed"])
            found = {test: book.frequency(task, test) for test in book.tests(task)}
            assert found == step["frequencies_after"]
            top = [book.frequency(task, test) for test in book.tests(task, limit=3)]
            assert top == step["top3_frequencies_after"]


def test_per_step_decay_counts_all_programs_once():
    for decay, left in (("per-program", 1), ("per-step", 3)):
        book = MistakeBook(decay=decay)
        book.update("p", failed=["t"] * 4)
        book.update("p", passed=["t"] * 3)
        assert book.frequency("p", "t") == left


def test_order_is_by_frequency_then_by_entry():
    book = MistakeBook()
    book.update("p", failed=["a", "b", "c", "c", "b", "d"])
    assert book.tests("p") == ["b", "c", "a", "d"]
    assert book.tests("p", limit=2) == ["b", "c"]
    assert book.tests("p", limit=0) == []
    book.update("p", failed=["a"], passed=["b"])
    assert book.tests("p") == ["a", "c", "b", "d"]
    # A test that some pass and some fail stays.
    assert book.update("p", failed=["d"], passed=["d"]) == BookChange(1, 1, 0)
    assert book.frequency("p", "d") == 1


def play(book: MistakeBook, steps: int, passing: tuple[str, ...] = (), limit: int = 8) -> None:
    """Replay tests in steps in which all fail but some."""
    for _ in range(steps):
        shown = book.tests("p", limit)
        book.update(
            "p",
            passed=[test for test in shown if test in passing],
            unpassed=[test for test in shown if test not in passing],
        )


def test_tests_that_nobody_passes_let_the_others_go_first():
    """Even if they are written again and again, and counted."""
    book = MistakeBook(stale_after=3)
    quirks = [f"quirk {n}" for n in range(8)]
    book.update("p", failed=quirks * 5 + ["a", "a", "b"])
    play(book, 2)
    assert book.tests("p", limit=8) == quirks
    play(book, 1)
    book.update("p", failed=quirks * 9)
    assert book.tests("p") == ["a", "b", *quirks]
    assert book.frequency("p", "quirk 0") == 14
    play(book, 3, passing=("a",))  # which leaves with the second pass
    assert book.tests("p") == ["quirk 6", "quirk 7", "b", *quirks[:6]]
    play(book, 1, passing=("quirk 3",), limit=9)  # one that is passed is like any other
    assert book.tests("p")[0] == "quirk 3"


def test_nobody_is_moved_while_nobody_waits():
    book = MistakeBook(stale_after=1)
    book.update("p", failed=["a", "a", "b"])
    play(book, 9, limit=2)
    book.update("p", failed=["c"])
    assert book.tests("p") == ["a", "b", "c"]
    play(book, 1, limit=2)
    assert book.tests("p") == ["c", "a", "b"]


def test_who_stands_behind_is_kept(tmp_path):
    book = MistakeBook(stale_after=2)
    book.update("p", failed=["a", "a", "a", "b", "c", "c"])
    play(book, 3, limit=1)
    assert book.tests("p") == ["c", "b", "a"]
    book.save(tmp_path / "copy.jsonl")
    other = MistakeBook(stale_after=2)
    other.load_state_dict(json.loads(json.dumps(book.state_dict())))
    copies = [other, MistakeBook.load(tmp_path / "copy.jsonl", stale_after=2), copy.deepcopy(book)]
    for each in copies:
        assert each.state_dict() == book.state_dict()
        play(each, 1, limit=1)  # the second of "c"
        assert each.tests("p") == ["b", "a", "c"]


@pytest.mark.parametrize("name", ["failed", "passed", "unpassed"])
def test_one_test_is_no_list_of_its_letters(name):
    with pytest.raises(
        TypeError, match=rf"Expect {name} to be a sequence .* Write {name}=\[test\]"
    ):
        MistakeBook().update("p", **{name: "assert f() == 1"})


def test_a_full_page_evicts_the_least_frequent_then_the_oldest():
    book = MistakeBook(max_tests_per_problem=3)
    book.update("p", failed=["a", "a", "b", "c"])
    assert book.update("p", failed=["new"]) == BookChange(1, 0, 1)
    assert set(book.tests("p")) == {"a", "c", "new"}
    book.update("p", failed=["c", "newer"])  # c counts before anyone is evicted
    assert book.tests("p") == ["a", "c", "newer"]
    book.update("p", failed=["newest"])  # all others are proven: the newcomers take turns
    assert book.tests("p") == ["a", "c", "newest"]
    assert len(book) == 3


def test_a_page_without_a_bound(tmp_path):
    tests = [f"assert f({n}) == {n}" for n in range(512)]
    book = MistakeBook(None)
    assert book.update("p", failed=tests) == BookChange(512, 0, 0)
    book.save(tmp_path / "book.jsonl")
    again = MistakeBook.load(tmp_path / "book.jsonl", None)
    assert (
        book.tests("p") == again.tests("p") == pickle.loads(pickle.dumps(book)).tests("p") == tests
    )
    assert len(MistakeBook.load(tmp_path / "book.jsonl").tests("p")) == 64


@pytest.mark.parametrize("task", ["ordinary", "\ud800 \x00 ' 🎉"])
def test_texts_come_out_as_they_went_in(tmp_path, task):
    book = MistakeBook()
    book.update(task, failed=AWKWARD)
    assert book.tests(task) == AWKWARD
    book.save(tmp_path / "copy.jsonl")
    assert MistakeBook.load(tmp_path / "copy.jsonl").tests(task) == AWKWARD
    other = MistakeBook()
    other.load_state_dict(book.state_dict())
    assert other.tests(task) == AWKWARD
    assert pickle.loads(pickle.dumps(book)).tests(task) == AWKWARD


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=[])), unique=True, max_size=20))
def test_any_text_survives_the_file(texts):
    book = MistakeBook()
    book.update("p", failed=texts)
    with tempfile.TemporaryDirectory() as folder:
        book.save(Path(folder, "book.jsonl"))
        assert MistakeBook.load(Path(folder, "book.jsonl")).tests("p") == texts


@pytest.mark.parametrize(
    "state",
    [
        None,
        {"problems": {"p": [["a"]]}},
        {"problems": {"p": [["a", 0]]}},
        {"problems": {"p": [["a", 1], ["a", 2]]}},
        {"problems": {1: [["a", 1]]}},
    ],
)
def test_a_broken_state_is_refused_and_changes_nothing(state):
    book = MistakeBook()
    book.update("p", failed=["kept"])
    with pytest.raises(ValueError, match=r"Expect .* actually"):
        book.load_state_dict(state)
    assert book.tests("p") == ["kept"]


def test_copies_are_independent_books():
    book = MistakeBook(max_tests_per_problem=7, decay="per-step")
    book.update("p", failed=["a"])
    for other in (copy.deepcopy(book), pickle.loads(pickle.dumps(book))):
        assert type(other) is MistakeBook
        assert (other.max_tests_per_problem, other.decay) == (7, "per-step")
        other.update("p", failed=["b"])
        assert other.tests("p") == ["a", "b"]
    assert book.tests("p") == ["a"]


def test_equal_books_give_equal_files(tmp_path):
    first, second = MistakeBook(), MistakeBook()
    first.update("p", failed=["a", "b"])
    first.update("q", failed=["c"])
    second.update("q", failed=["c", "gone"])
    second.update("q", passed=["gone"])
    second.update("p", failed=["a"])
    second.update("p", failed=["b"])
    first.save(tmp_path / "first.jsonl")
    second.save(tmp_path / "second.jsonl")
    assert (tmp_path / "first.jsonl").read_bytes() == (tmp_path / "second.jsonl").read_bytes()


def test_a_disk_without_room_is_no_loss(tmp_path):
    script = textwrap.dedent(
        """
        import resource, sys
        from codea1_env.mistake_book import MistakeBook
        book = MistakeBook()
        book.update("p", failed=["a"])
        book.save(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        book.update("q", failed=["x" * 9_000 + str(n) for n in range(9)])
        try:
            book.save(sys.argv[1])
        except OSError as error:
            print(type(error).__name__)
        """
    )
    path = tmp_path / "book.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "OSError\n"
    assert MistakeBook.load(path).state_dict() == {"problems": {"p": [["a", 1]]}}


@pytest.mark.slow
def test_killed_at_any_moment_the_file_holds_a_whole_step(tmp_path):
    # Every step makes all ten frequencies equal to its own number: a torn step would show.
    script = textwrap.dedent(
        """
        import sys
        from codea1_env.mistake_book import MistakeBook
        book = MistakeBook.load(sys.argv[1])
        while True:
            for task in range(10):
                book.update(str(task), failed=["assert f() == 1"])
            book.save(sys.argv[1])
            print(book.frequency("0", "assert f() == 1"), flush=True)
        """
    )
    path = tmp_path / "book.jsonl"
    MistakeBook().save(path)
    done = 0
    for round_number in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for _ in range(5 + 14 * round_number):
            done = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        reported = process.stdout.read().split("\n")[:-1]
        process.stdout.close()
        process.wait()
        done = int(reported[-1]) if reported else done
        book = MistakeBook.load(path)
        steps = {book.frequency(str(task), "assert f() == 1") for task in range(10)}
        assert len(steps) == 1
        assert done <= steps.pop() <= done + 1


@pytest.mark.parametrize("text", ["no JSON", "3", '{"p": 1}', '["p", [["a", 0]]]', '["p"]'])
def test_files_that_are_no_books_are_refused(tmp_path, text):
    with pytest.raises(FileNotFoundError):
        MistakeBook.load(tmp_path / "missing.jsonl")
    path = tmp_path / "other.jsonl"
    path.write_text(f"{text}\n")
    with pytest.raises(ValueError, match=r"Expect the file of a Mistake Book .*other\.jsonl"):
        MistakeBook.load(path)


@pytest.mark.parametrize("replay", ["quality", "uniform"])
def test_tests_are_drawn_by_their_quality_or_alike(replay) -> None:
    first = Counter()
    for number in range(400):
        book = MistakeBook(replay=replay)
        book.update(f"task {number}", failed=["often"] * 9 + ["rare"])
        order = book.tests(f"task {number}")
        assert order == book.tests(f"task {number}")  # a page that has not changed gives the same
        assert sorted(order) == ["often", "rare"]
        first[order[0]] += 1
    # 9 to 1, or 1 to 1; four standard deviations.
    expected = 360 if replay == "quality" else 200
    assert abs(first["often"] - expected) < 4 * (400 * 0.25) ** 0.5
