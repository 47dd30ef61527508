"""Coverage, provenance and health of views after vacuum joined old blocks into spans."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.catalog.sqlite import compaction
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from tests.unit.views.warehouse import dicts

pytestmark = pytest.mark.feature("views")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "BLOCKS_KEPT_MAX", 2)


def test_lag_gap_and_provenance_of_joined_blocks() -> None:
    with olapdb.connect() as connection:
        for text in (
            "SYSTEM STOP MERGES",
            "CREATE TABLE s (k UInt8, n Int64) ENGINE = MergeTree ORDER BY k",
            "CREATE TABLE t (k UInt8, n Int64) ENGINE = SummingMergeTree ORDER BY k",
            "CREATE MATERIALIZED VIEW v TO t AS SELECT k, sum(n) AS n FROM s GROUP BY k",
            *(f"INSERT INTO s VALUES (1, {n})" for n in range(6)),
            "DETACH VIEW v",
            *(f"INSERT INTO s VALUES (1, {n})" for n in range(6, 10)),
            "ATTACH VIEW v",
            "INSERT INTO s VALUES (1, 10)",
        ):
            connection.execute(text)
        before = dicts(connection, "SELECT lag_blocks, gap_rows, verdict FROM system.views")
        vacuum(connection.database.services, lifetime_seconds=0)
        snapshot = connection.database.services.catalog.snapshot()
        source = snapshot.find("default", "s")
        assert source is not None
        assert [b.range.last for b in snapshot.blocks(source.id)] == [10, 11]
        assert dicts(connection, "SELECT lag_blocks, gap_rows, verdict FROM system.views") == before
        assert before[0]["lag_blocks"] == 4
        connection.execute("OPTIMIZE TABLE t FINAL")
        told = dicts(connection, "EXPLAIN PROVENANCE SELECT * FROM t WHERE k = 1")
        assert any(row["kind"] == "older" for row in told)
        assert any(row["first_block"] == 11 for row in told)
        connection.execute("SYSTEM BACKFILL VIEW v")
        rows = connection.execute("SELECT sum(n) FROM t").fetchall()
        assert rows == connection.execute("SELECT sum(n) FROM s").fetchall()
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []
