"""A dimension change looks up the slices it reaches while other statements commit before it.

Whichever statement commits in between, every slice that differs from the view's query is
invalidated afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.model.requirements import Requirement, SeenUpTo
from tests.harness.race import Race
from tests.unit.views.warehouse import rows

pytestmark = pytest.mark.feature("views", "dimensions", "concurrency")

VIEW = (
    "CREATE MATERIALIZED VIEW v TO t AS SELECT e.month AS month, e.kind AS kind, "
    "sum(e.amount * k.weight) AS w FROM events AS e LEFT JOIN {kinds} AS k ON e.kind = k.kind "
    "GROUP BY month, kind"
)
TWICE = "(SELECT kind, max(weight) AS weight FROM kinds GROUP BY kind HAVING count() > 1)"
DIMENSION_CHANGES = (
    "INSERT INTO kinds VALUES ('a', 10)",
    "DELETE FROM kinds WHERE kind = 'a'",
    "TRUNCATE TABLE kinds",
    "ALTER TABLE kinds UPDATE weight = 5 WHERE kind = 'a'",
    "CREATE OR REPLACE TABLE kinds ENGINE = MergeTree ORDER BY kind AS"
    " SELECT 'a' AS kind, toInt64(50) AS weight UNION ALL SELECT 'b', toInt64(2)",
)
MEANWHILE = (
    "INSERT INTO events VALUES (5, 'a', 1)",
    "SYSTEM BACKFILL VIEW v",
    "SYSTEM REPLAY VIEW v",
    "DELETE FROM events WHERE month = 1",
    "OPTIMIZE TABLE events FINAL",
    "OPTIMIZE TABLE kinds FINAL",
    "INSERT INTO kinds VALUES ('a', 100)",
    "INSERT INTO kinds VALUES ('b', 100)",
    "DELETE FROM kinds WHERE kind = 'b'",
    "TRUNCATE TABLE events",
    "TRUNCATE TABLE t",
    "DETACH VIEW v",
)


class DimensionRace(Race):
    """A race whose first connection can omit requirements of type `drop` from its commits."""

    drop: type[Requirement] | None = None

    def succeed(self, statement: str, *meanwhile: str) -> None:
        """Require that the statement succeeds although `meanwhile` commits before it."""
        with self.meddling(*meanwhile, without=self.drop):
            self.first.execute(statement)

    def unnamed(self, kinds: str) -> set[str]:
        """Return the target's months that differ from the query without an invalidation or a
        gap."""
        query = VIEW.format(kinds=kinds).split(" AS ", 1)[1]
        gap = rows(
            self.second,
            "SELECT DISTINCT partition_id FROM system.view_coverage WHERE status = 'gap'",
        )
        expected = dict(self._by_month(f"({query})"))
        actual = dict(self._by_month("t"))
        wrong = {
            str(m) for m in expected.keys() | actual.keys() if expected.get(m) != actual.get(m)
        }
        stale = {
            p for (p,) in rows(self.second, "SELECT partition_id FROM system.view_invalidations")
        }
        return set() if None in stale else wrong - stale - {p for (p,) in gap}

    def _by_month(self, relation: str) -> list[tuple[object, ...]]:
        return [
            (month, sorted(zip(kinds, sums, strict=True)))
            for month, kinds, sums in rows(
                self.second,
                "SELECT month, groupArray(kind), groupArray(w) FROM (SELECT month, kind, sum(w) AS w"
                f" FROM {relation} GROUP BY month, kind HAVING w != 0) GROUP BY month",
            )
        ]


@pytest.fixture
def race(tmp_path: Path) -> Iterator[DimensionRace]:
    with olapdb.connect(str(tmp_path)) as first, olapdb.connect(str(tmp_path)) as second:
        first.execute("SYSTEM STOP MERGES")
        second.execute("SYSTEM STOP MERGES")
        first.execute(
            "CREATE TABLE events (month UInt8, kind String, amount Int64) ENGINE = MergeTree "
            "PARTITION BY month ORDER BY kind"
        )
        first.execute(
            "CREATE TABLE kinds (kind String, weight Int64) ENGINE = MergeTree ORDER BY kind"
        )
        first.execute(
            "CREATE TABLE t (month UInt8, kind String, w Int64) ENGINE = SummingMergeTree "
            "PARTITION BY month ORDER BY (month, kind)"
        )
        first.execute("INSERT INTO kinds VALUES ('a', 1), ('b', 2)")
        first.execute("INSERT INTO events VALUES (1, 'a', 1), (2, 'b', 1), (4, 'a', 3)")
        yield DimensionRace(first, second)


def start(race: DimensionRace, kinds: str) -> None:
    """Create the view, backfill months 1 and 2, and insert rows that it sees."""
    race.first.execute(VIEW.format(kinds=kinds))
    race.first.execute("SYSTEM BACKFILL VIEW v PARTITION 1")
    race.first.execute("SYSTEM BACKFILL VIEW v PARTITION 2")
    race.first.execute("INSERT INTO events VALUES (1, 'b', 7), (3, 'b', 2)")


@pytest.mark.parametrize("kinds", ["kinds", TWICE], ids=["plain", "grouped"])
@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("change", DIMENSION_CHANGES, ids=lambda one: one[:12])
def test_what_differs_is_named(
    race: DimensionRace, change: str, meanwhile: str, kinds: str
) -> None:
    start(race, kinds)
    race.succeed(change, meanwhile)
    assert race.unnamed(kinds) == set()
    race.second.execute("ATTACH VIEW v")
    race.second.execute("SYSTEM REPLAY VIEW v STALE")
    assert race.unnamed(kinds) == set()


@pytest.mark.parametrize("change", DIMENSION_CHANGES, ids=lambda one: one[:12])
@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_the_other_way_round(race: DimensionRace, meanwhile: str, change: str) -> None:
    start(race, "kinds")
    race.succeed(meanwhile, change)
    assert race.unnamed("kinds") == set()


def test_a_view_that_appears_meanwhile(race: DimensionRace) -> None:
    race.succeed(
        "INSERT INTO kinds VALUES ('a', 10)", VIEW.format(kinds="kinds"), "SYSTEM BACKFILL VIEW v"
    )
    assert race.unnamed("kinds") == set()


def test_without_its_guard_a_block_would_slip_through(race: DimensionRace) -> None:
    """The lookup saw no row of month 5. SeenUpTo requires that it covers all that the view has
    seen."""
    start(race, "kinds")
    race.drop = SeenUpTo
    race.succeed("INSERT INTO kinds VALUES ('a', 10)", "INSERT INTO events VALUES (5, 'a', 1)")
    assert race.unnamed("kinds") == {"5"}
