"""Programs that do not end cost little, and take nothing from others."""

from __future__ import annotations

from collections.abc import Sequence

from codea1_env.mutation.kills import Part, until_settled


def test_what_others_left_no_time_for_is_run_alone_in_the_end() -> None:
    asked: list[Sequence[Part]] = []

    def run(parts: Sequence[Part]) -> list[list[str]]:
        asked.append(parts)
        # Program 1 gets two of several items done at a time, and none behind item 4, which takes all of it.
        return [
            [
                f"{n}"
                if p == 0 or len(items) == 1 or (i < 2 and 4 not in items[: i + 1])
                else "late"
                for i, n in enumerate(items)
            ]
            for p, items in parts
        ]

    found = until_settled(2, 6, run, late=lambda each: each == "late", settles=lambda _: False)
    assert found == [[*"012345"]] * 2
    assert asked[0][0] == Part(0, (0, 1, 2, 3, 4, 5))
    assert [part.items for parts in asked for part in parts if part.program == 1] == [
        (0, 1, 2, 3, 4, 5),
        (2, 3, 4, 5),
        (4, 5),
        (4,),
        (5,),
    ]


def test_a_program_that_waits_is_given_up_behind_the_item_that_it_waits_in() -> None:
    def run(parts: Sequence[Part]) -> list[list[str]]:
        return [
            ["done" if n < 2 or len(items) == 1 else "waits" for n in items] for _, items in parts
        ]

    found = until_settled(
        1, 5, run, late=lambda each: each == "waits", settles=lambda _: False, waits=lambda _: True
    )
    assert found == [["done", "done", "done", None, None]]
