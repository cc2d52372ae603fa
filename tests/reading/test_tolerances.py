"""A tolerance is read as the test states it: absolute stays absolute, relative stays relative."""

from __future__ import annotations

import json

import pytest

from codea1_env.reading.suites import read_suites

STATED = {
    "assert abs(f(1) - 1000000) < 0.01": (0.01, None),
    "self.assertAlmostEqual(f(1), 2.5)": (0.5e-7, None),
    "self.assertAlmostEqual(f(1), 250.0, delta=2)": (2.0, None),
    "assert round(f(1), 2) == 0.25": (0.005, None),
    "assert math.isclose(f(1), 2.5)": (None, 1e-9),
    "assert math.isclose(f(1), 2.5, rel_tol=1e-3)": (None, 1e-3),
    "assert np.isclose(f(1), 2.5)": (1e-8, 1e-5),
    "assert np.allclose(f(1), [2.5], atol=1e-4)": (1e-4, 1e-5),
    "np.testing.assert_allclose(f(1), [2.5], rtol=1e-3)": (None, 1e-3),
    "np.testing.assert_allclose(f(1), [2.5], 1e-4, 1e-3)": (1e-3, 1e-4),
    "assert f(1) == pytest.approx(2.5)": (1e-12, 1e-6),
    "assert f(1) == pytest.approx(2.5, abs=1e-3)": (1e-3, None),
    "assert f(1) == pytest.approx(2.5, 1e-3, 1e-4)": (1e-4, 1e-3),
    "assert f(1) == 2.5": (None, None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "stated"), STATED.items(), ids=STATED.keys())
def test_it_is_read_as_it_stands(text: str, stated: tuple[float | None, float | None]) -> None:
    signature = '{"parameters": [["x", "", null, "any"]]}'
    (([test], dropped),) = json.loads(read_suites([("f", signature, [text])]))
    assert tuple(test[5:7]) == pytest.approx(stated)
    assert dropped == []


@pytest.mark.parametrize(
    "text",
    [
        "assert abs(f(1) - 2.5) < 1",
        "assert f(1) == pytest.approx(1000000.0, rel=0.05)",
        "assert math.isclose(f(1), 0.001, abs_tol=0.5)",
        "assert abs(f(1) - 'a') < 0.001",
    ],
)
def test_one_that_says_too_little_is_refused(text: str) -> None:
    ((tests, dropped),) = json.loads(read_suites([("f", '{"parameters": null}', [text])]))
    assert tests == []
    assert [row[3] for row in dropped] == [True]
