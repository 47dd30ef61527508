"""Random INSERTs into a table with `deduplicate_by`, beside a plain-Python model of its window.

The table is reopened, truncated and deleted from. Its rows come in blocks of any size, with and
without a time limit. Its rows equal the model's, and a view of the table equals them."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import olapdb
from olapdb.maintenance.check import check_database
from tests.unit.views.warehouse import rows

pytestmark = pytest.mark.feature("insert")

KEYS = st.one_of(st.none(), st.integers(0, 12))
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("insert"), st.lists(KEYS, max_size=12), st.sampled_from([1, 2, 5, 1_000])
        ),
        st.tuples(st.just("pass"), st.integers(1, 40)),
        st.tuples(st.sampled_from(["reopen", "truncate", "delete", "optimize"])),
    ),
    min_size=1,
    max_size=14,
)


@dataclass
class Model:
    window_rows: int
    window_seconds: int
    now: int = 1_800_000_000
    accepted: list[tuple[int, int]] = field(default_factory=list)
    """(key, when) of all accepted keys since the last TRUNCATE."""
    stored: list[tuple[int | None, int]] = field(default_factory=list)
    number: int = 0
    dropped: int = 0

    def insert(self, keys: list[int | None]) -> tuple[list[tuple[int | None, int]], int]:
        """Return the rows to send, and how many of them the table must keep."""
        known = {
            key
            for key, when in self.accepted[-self.window_rows :]
            if not self.window_seconds or when > self.now - self.window_seconds
        }
        sent, stay = [], 0
        for key in keys:
            self.number += 1
            sent.append((key, self.number))
            if key in known:
                self.dropped += 1
                continue
            stay += 1
            self.stored.append((key, self.number))
            if key is not None:
                known.add(key)
                self.accepted.append((key, self.now))
        return sent, stay


@given(STEPS, st.sampled_from([1, 3, 8, 1_000]), st.sampled_from([0, 25]))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_the_rows_are_those_of_the_model(
    steps: list[tuple[object, ...]], window_rows: int, window_seconds: int
) -> None:
    model = Model(window_rows, window_seconds)
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch("time.time_ns", side_effect=lambda: model.now * 1_000_000_000),
    ):
        connection = olapdb.connect(folder)
        connection.execute("SYSTEM STOP MERGES")
        connection.execute(
            "CREATE TABLE t (id Nullable(Int64), n Int64) ENGINE = MergeTree ORDER BY n SETTINGS"
            f" deduplicate_by = 'id', deduplicate_window_rows = {window_rows},"
            f" deduplicate_window = {window_seconds}"
        )
        connection.execute(
            "CREATE TABLE u (bucket Int64, n Int64) ENGINE = SummingMergeTree ORDER BY bucket"
        )
        connection.execute(
            "CREATE MATERIALIZED VIEW v TO u AS SELECT t.n % 3 AS bucket, sum(t.n) AS n FROM t"
            " GROUP BY bucket"
        )
        try:
            for step in steps:
                match step:
                    case ("insert", list(keys), int(block_rows)):
                        sent, stay = model.insert(keys)
                        connection.execute(f"SET max_insert_block_size = {block_rows}")
                        data = pa.table(
                            {
                                "id": pa.array([k for k, _ in sent], pa.int64()),
                                "n": pa.array([n for _, n in sent], pa.int64()),
                            }
                        )
                        done = connection.insert("t", data)
                        assert (done, done.duplicates_dropped) == (stay, len(sent) - stay)
                    case ("pass", int(seconds)):
                        model.now += seconds
                    case ("reopen",):
                        connection.close()
                        connection = olapdb.connect(folder)
                        connection.execute("SYSTEM STOP MERGES")
                    case ("truncate",):
                        connection.execute("TRUNCATE TABLE t")
                        connection.execute("TRUNCATE TABLE u")
                        model.accepted, model.stored = [], []
                    case ("delete",):
                        connection.execute("DELETE FROM t WHERE n % 2 = 1")
                        connection.execute("SYSTEM REPLAY VIEW v STALE")
                        model.stored = [one for one in model.stored if one[1] % 2 == 0]
                    case _:
                        connection.execute("OPTIMIZE TABLE t FINAL")
                assert rows(connection, "SELECT id, n FROM t ORDER BY n") == model.stored
            assert rows(connection, "SELECT rows_dropped FROM system.deduplication") == [
                (model.dropped,)
            ]
            sums: Counter[int] = Counter()
            for _, n in model.stored:
                sums[n % 3] += n
            assert rows(
                connection, "SELECT bucket, sum(n) FROM u GROUP BY bucket ORDER BY bucket"
            ) == (sorted(sums.items()))
            services = connection.database.services
            assert check_database(services.catalog, services.store) == []
        finally:
            connection.close()
