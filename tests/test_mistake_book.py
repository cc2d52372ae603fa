"""The Mistake Book: the released histories, byte-exact texts, bounds, and the file it is kept in."""

from __future__ import annotations

import copy
import json
import pickle
import signal
import sqlite3
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
from codea1_env.support import book_file
from codea1_env.support.book_file import BookFileError

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


@pytest.fixture(params=["memory", "sqlite"])
def make(request, tmp_path):
    """Makes books of both kinds, so that each test holds for both."""
    if request.param == "memory":
        return MistakeBook
    paths = (tmp_path / f"{n}.sqlite" for n in range(100))
    return lambda *args, **kwargs: MistakeBook(*args, **kwargs, path=next(paths))


@pytest.mark.slow
def test_released_histories(make):
    for history in HISTORIES:
        book = make()
        for step in history:
            task = step["question_id"]
            book.update(task, failed=step["failed"], passed=step["history_passed"])
            found = {test: book.frequency(task, test) for test in book.tests(task)}
            assert found == step["frequencies_after"]
            top = [book.frequency(task, test) for test in book.tests(task, limit=3)]
            assert top == step["top3_frequencies_after"]


def test_per_step_decay_counts_all_programs_once(make):
    for decay, left in (("per-program", 1), ("per-step", 3)):
        book = make(decay=decay)
        book.update("p", failed=["t"] * 4)
        book.update("p", passed=["t"] * 3)
        assert book.frequency("p", "t") == left


def test_order_is_by_frequency_then_by_entry(make):
    book = make()
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


def test_tests_that_nobody_passes_let_the_others_go_first(make):
    """Even if they are written again and again, and counted."""
    book = make(stale_after=3)
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


def test_nobody_is_moved_while_nobody_waits(make):
    book = make(stale_after=1)
    book.update("p", failed=["a", "a", "b"])
    play(book, 9, limit=2)
    book.update("p", failed=["c"])
    assert book.tests("p") == ["a", "b", "c"]
    play(book, 1, limit=2)
    assert book.tests("p") == ["c", "a", "b"]


def test_who_stands_behind_is_kept(make, tmp_path):
    book = make(stale_after=2)
    book.update("p", failed=["a", "a", "a", "b", "c", "c"])
    play(book, 3, limit=1)
    assert book.tests("p") == ["c", "b", "a"]
    book.save(tmp_path / "copy.sqlite")
    other = make(stale_after=2)
    other.load_state_dict(json.loads(json.dumps(book.state_dict())))
    copies = [
        other,
        MistakeBook.load(tmp_path / "copy.sqlite", stale_after=2),
        MistakeBook(path=tmp_path / "copy.sqlite", stale_after=2),
        copy.deepcopy(book),
    ]
    for each in copies:
        assert each.state_dict() == book.state_dict()
        play(each, 1, limit=1)  # the second of "c"
        assert each.tests("p") == ["b", "a", "c"]


def test_a_file_of_an_earlier_version_is_read(tmp_path):
    path = tmp_path / "old.sqlite"
    old = sqlite3.connect(path, isolation_level=None)
    old.execute(f"PRAGMA application_id = {book_file.APPLICATION_ID}")
    old.execute(
        "CREATE TABLE tests (problem BLOB NOT NULL, position INTEGER NOT NULL, test BLOB NOT NULL, "
        "frequency INTEGER NOT NULL, PRIMARY KEY (problem, position)) WITHOUT ROWID"
    )
    old.execute("INSERT INTO tests VALUES (?, 0, ?, 3)", (b"p", b"a"))
    old.close()
    assert MistakeBook.load(path).state_dict() == {"problems": {"p": [["a", 3]]}}
    with MistakeBook(path=path) as book:
        book.update("p", failed=["b"], unpassed=["a"])
    assert MistakeBook.load(path).state_dict() == {"problems": {"p": [["a", 3], ["b", 1]]}}


def test_a_book_is_not_saved_over_its_own_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with MistakeBook(path=tmp_path / "book.sqlite") as book:
        book.update("p", failed=["a"])
        with pytest.raises(ValueError, match=r"another file.* Use commit\(\)"):
            book.save("book.sqlite")
    assert MistakeBook.load("book.sqlite").tests("p") == ["a"]


@pytest.mark.parametrize("name", ["failed", "passed", "unpassed"])
def test_one_test_is_no_list_of_its_letters(name):
    with pytest.raises(
        TypeError, match=rf"Expect {name} to be a sequence .* Write {name}=\[test\]"
    ):
        MistakeBook().update("p", **{name: "assert f() == 1"})


def test_a_full_page_evicts_the_least_frequent_then_the_oldest(make):
    book = make(max_tests_per_problem=3)
    book.update("p", failed=["a", "a", "b", "c"])
    assert book.update("p", failed=["new"]) == BookChange(1, 0, 1)
    assert set(book.tests("p")) == {"a", "c", "new"}
    book.update("p", failed=["c", "newer"])  # c counts before anyone is evicted
    assert book.tests("p") == ["a", "c", "newer"]
    book.update("p", failed=["newest"])  # all others are proven: the newcomers take turns
    assert book.tests("p") == ["a", "c", "newest"]
    assert len(book) == 3


@pytest.mark.parametrize("task", ["ordinary", "\ud800 \x00 ' 🎉"])
def test_texts_come_out_as_they_went_in(make, tmp_path, task):
    book = make()
    book.update(task, failed=AWKWARD)
    assert book.tests(task) == AWKWARD
    book.save(tmp_path / "copy.sqlite")
    assert MistakeBook.load(tmp_path / "copy.sqlite").tests(task) == AWKWARD
    with MistakeBook(path=tmp_path / "copy.sqlite") as on_disk:
        assert on_disk.tests(task) == AWKWARD
        assert on_disk.problems() == [task]
    other = make()
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
        book.save(Path(folder, "book.sqlite"))
        assert MistakeBook.load(Path(folder, "book.sqlite")).tests("p") == texts


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
def test_a_broken_state_is_refused_and_changes_nothing(make, state):
    book = make()
    book.update("p", failed=["kept"])
    with pytest.raises(ValueError, match=r"Expect .* actually"):
        book.load_state_dict(state)
    assert book.tests("p") == ["kept"]


def test_copies_are_independent_books_in_memory(make):
    book = make(max_tests_per_problem=7, decay="per-step")
    book.update("p", failed=["a"])
    for other in (copy.deepcopy(book), pickle.loads(pickle.dumps(book))):
        assert type(other) is MistakeBook
        assert (other.max_tests_per_problem, other.decay) == (7, "per-step")
        other.update("p", failed=["b"])
        assert other.tests("p") == ["a", "b"]
    assert book.tests("p") == ["a"]


def test_equal_books_give_equal_files(make, tmp_path):
    first, second = make(), make()
    first.update("p", failed=["a", "b"])
    first.update("q", failed=["c"])
    second.update("q", failed=["c", "gone"])
    second.update("q", passed=["gone"])
    second.update("p", failed=["a"])
    second.update("p", failed=["b"])
    first.save(tmp_path / "first.sqlite")
    second.save(tmp_path / "second.sqlite")
    assert (tmp_path / "first.sqlite").read_bytes() == (tmp_path / "second.sqlite").read_bytes()


def test_a_book_with_a_file_keeps_what_was_committed_and_only_that(tmp_path):
    path = tmp_path / "book.sqlite"
    book = MistakeBook(path=path)
    book.update("p", failed=["a"])
    book.commit()
    book.commit()  # nothing to do
    book.update("p", failed=["b"])
    assert book.tests("p") == ["a", "b"]
    assert MistakeBook.load(path).tests("p") == ["a"]
    book.close()
    with MistakeBook(path=path) as book:
        assert (book.tests("p"), len(book)) == (["a"], 1)
        book.update("p", failed=["c"])

    def step_that_fails() -> None:
        with MistakeBook(path=path) as book:
            book.clear()
            raise KeyError("the step failed")

    with pytest.raises(KeyError):
        step_that_fails()
    assert MistakeBook.load(path).tests("p") == ["a", "c"]


# Disks that are full


def test_a_disk_without_room_is_no_loss(tmp_path):
    """The same with errors of the machine, where SQLite gives up the transaction by itself."""
    path = tmp_path / "book.sqlite"
    script = textwrap.dedent(
        """
        import resource, sys
        from codea1_env.mistake_book import MistakeBook
        from codea1_env.support.book_file import BookFileError
        book = MistakeBook(path=sys.argv[1])
        book.update("p", failed=["a"])
        book.commit()
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
        book.clear()
        book.update("p", failed=["b"])
        book.update("q", failed=["x" * 9_000 + str(n) for n in range(9)])
        for attempt in range(2):
            try:
                book.commit()
            except BookFileError as error:
                print(len(book), book.tests("p"), len(book.tests("q")), book.problems())
        book.update("r", failed=["c"])
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        book.commit()
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "10 ['b'] 9 ['p', 'q']\n" * 2
    whole = MistakeBook.load(path)
    assert (len(whole), whole.tests("p"), whole.tests("r")) == (11, ["b"], ["c"])


def test_a_second_writer_is_refused_until_the_first_has_committed(tmp_path):
    path = tmp_path / "book.sqlite"
    with MistakeBook(path=path) as first, MistakeBook(path=path) as second:
        second._file._connection.execute("PRAGMA busy_timeout = 10")
        first.update("p", failed=["a"])
        with pytest.raises(BookFileError, match=r"locked.*another process"):
            second.update("p", failed=["b"])
        assert len(second) == 0
        first.commit()
        second.update("p", failed=["b"])
    assert MistakeBook.load(path).tests("p") == ["a", "b"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_killed_at_any_moment_the_file_holds_a_whole_step(tmp_path, kind):
    # Every step makes all ten frequencies equal to its own number: a torn step would show.
    script = textwrap.dedent(
        """
        import sys
        from codea1_env.mistake_book import MistakeBook
        kind, path = sys.argv[1:]
        book = MistakeBook(path=path) if kind == "file" else MistakeBook.load(path)
        while True:
            for task in range(10):
                book.update(str(task), failed=["assert f() == 1"])
            book.commit() if kind == "file" else book.save(path)
            print(book.frequency("0", "assert f() == 1"), flush=True)
        """
    )
    path = tmp_path / "book.sqlite"
    MistakeBook().save(path)
    done = 0
    for round_number in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", script, kind, str(path)], stdout=subprocess.PIPE, text=True
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


def test_files_that_are_no_books_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="actually there is none"):
        MistakeBook.load(tmp_path / "missing.sqlite")
    (tmp_path / "text").write_text("not a database, but long enough to be read as one" * 50)
    other = sqlite3.connect(tmp_path / "other.sqlite")
    other.execute("CREATE TABLE tests (a)")
    other.close()
    for name in ("text", "other.sqlite"):
        for read in (MistakeBook.load, lambda path: MistakeBook(path=path)):
            with pytest.raises(ValueError, match="Expect the file of a Mistake Book"):
                read(tmp_path / name)


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
