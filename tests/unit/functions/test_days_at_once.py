"""Rounding of days once for each day of a span, compared with each row by itself."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest

from olapdb.config import tuning
from olapdb.functions.datetime import rounding
from olapdb.functions.kernels import calendar

pytestmark = pytest.mark.feature("functions")


@pytest.mark.parametrize(
    "move",
    [rounding.month_start, rounding.month_end, rounding.monday, rounding.sunday],
    ids=lambda move: move.__name__,
)
@pytest.mark.parametrize("first", [-700_000, -400, 19_000])
def test_days_of_a_span_are_moved_once(
    monkeypatch: pytest.MonkeyPatch, move: rounding.Days, first: int
) -> None:
    monkeypatch.setattr(tuning, "CALENDAR_ROWS_MIN", 0)
    days = np.random.default_rng(3).integers(first, first + 800, 2_000)
    sizes: list[int] = []

    def counted(distinct: np.ndarray) -> np.ndarray:
        sizes.append(distinct.size)
        return move(distinct)

    assert calendar.moved_days(counted, days).tolist() == move(days).tolist()
    assert sizes
    assert sizes[0] <= 800
    wide = np.array([first, 2_900_000, 7])
    assert calendar.moved_days(counted, wide).tolist() == move(wide).tolist()
    assert sizes[-1] == wide.size
    assert calendar.moved_days(counted, days[:0]).size == 0


def test_starts_of_months_are_those_of_python() -> None:
    days = np.arange(-1_000, 20_000)
    epoch = date(1970, 1, 1)
    starts = [(epoch + timedelta(int(day))).replace(day=1) - epoch for day in days]
    assert calendar.moved_days(rounding.month_start, days).tolist() == [s.days for s in starts]
