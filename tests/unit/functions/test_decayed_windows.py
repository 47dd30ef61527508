"""Windows of values that decay, against a sum over each frame."""

from __future__ import annotations

import math
import random

import pytest

import olapdb

pytestmark = pytest.mark.feature("functions")


def test_every_frame_is_the_sum_of_its_rows() -> None:
    draw = random.Random(3)
    times = sorted(1_700_000_000 + draw.random() * 1000 for _ in range(60))
    values = [draw.uniform(-5, 5) for _ in times]
    for before, after in ((0, 0), (1, 0), (7, 3), (100, -2), (-1, 6)):
        start = f"{before} PRECEDING" if before >= 0 else f"{-before} FOLLOWING"
        end = f"{after} FOLLOWING" if after >= 0 else f"{-after} PRECEDING"
        with olapdb.connect() as connection:
            connection.execute("CREATE TABLE t (x Float64, at Float64) ORDER BY at")
            connection.executemany(
                "INSERT INTO t VALUES (?, ?)", list(zip(values, times, strict=True))
            )
            over = f"OVER (ORDER BY at ROWS BETWEEN {start} AND {end})"
            rows = connection.execute(
                f"SELECT exponentialTimeDecayedSum(40)(x, at) {over}, "
                f"exponentialTimeDecayedMax(40)(x, at) {over} FROM t ORDER BY at"
            ).fetchall()
        for place, (total, most) in enumerate(rows):
            frame = range(max(place - before, 0), min(place + after + 1, len(times)))
            decayed = [values[i] * math.exp((times[i] - times[frame[-1]]) / 40) for i in frame]
            assert total == pytest.approx(sum(decayed), abs=1e-9)
            assert most == pytest.approx(max(decayed, default=math.nan), nan_ok=True)
