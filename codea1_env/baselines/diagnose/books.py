"""Mistake Books of the experiment on forgetting: half a book, one that replays uniformly, and one of passing tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from codea1_env.judging.verdicts import Verdict
from codea1_env.mistake_book import BookChange, MistakeBook
from codea1_env.problems import Problem

BookName = Literal["mistakes", "half", "uniform", "quality", "passing", "separating"]


class HalfBook(MistakeBook):
    """A book that replays half as many tests."""

    def tests(self, task_id: str, limit: int | None = None) -> list[str]:
        """Tests of a problem, at most half of the limit."""
        return super().tests(task_id, None if limit is None else limit // 2)


class PassingBook(MistakeBook):
    """Control: a book that replays as many tests, which break nothing.

    A test enters when programs of a step make its call and all pass it. It leaves when it breaks one, or when it is stale.
    """

    def update(
        self,
        task_id: str,
        failed: Iterable[str] = (),
        passed: Iterable[str] = (),
        unpassed: Iterable[str] = (),
    ) -> BookChange:
        """Enter nothing: this book holds no mistakes."""
        return BookChange(0, 0, 0)

    def fill(self, verdicts: Iterable[Verdict]) -> None:
        """Enter those tests of a step that broke nothing."""
        passed: dict[str, list[str]] = {}
        leaving: dict[str, set[str]] = {}
        for verdict in verdicts:
            new = [test for suite in verdict.suites for test in suite.tests if test.attacks]
            passed.setdefault(verdict.task_id, []).extend(test.text for test in new)
            broke = {test.text for test in (*new, *verdict.history) if test.broke}
            leaving.setdefault(verdict.task_id, set()).update(broke, verdict.stale)
        for task_id, texts in passed.items():
            out = leaving[task_id]
            gone = [text for text in out for _ in range(self.frequency(task_id, text))]
            super().update(task_id, [text for text in texts if text not in out], gone)


class SeparatingBook(MistakeBook):
    """A book of tests that separate programs, as EvolveCoder keeps them: one that no program of a step passes leaves."""

    def update(
        self,
        task_id: str,
        failed: Iterable[str] = (),
        passed: Iterable[str] = (),
        unpassed: Iterable[str] = (),
    ) -> BookChange:
        """Enter and remove tests as the book of the game does, and remove those of `unpassed`."""
        gone = [text for text in unpassed for _ in range(self.frequency(task_id, text))]
        return super().update(task_id, failed, [*passed, *gone])


def make_book(name: BookName) -> MistakeBook:
    """Return an empty book: the game's, half of it, one with another way to replay or to forget, or the control."""
    if name == "uniform" or name == "quality":
        return MistakeBook(replay=name)
    books = {"half": HalfBook, "passing": PassingBook, "separating": SeparatingBook}
    return books.get(name, MistakeBook)()


def stale_share(book: MistakeBook, problems: Sequence[Problem]) -> float:
    """Share of the book's tests that the reference contradicts; 0 for an empty book."""
    stale = [text not in problem.tests for problem in problems for text in book.tests(problem.task_id)]  # fmt: skip
    return sum(stale) / max(1, len(stale))
