"""Operators count the memory that they need against max_memory_usage, and fail beyond it where they
may not spill to disk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import olapdb
from olapdb.errors import MemoryLimitExceeded
from tests.unit.execute.memory_peaks import QUERIES, TABLE

pytestmark = pytest.mark.feature("select", "settings")

UNCOUNTED_BYTES = 40_000_000
"""Batches on their way, and what operators need for a batch: it does not grow with the rows."""
NO_SPILLING = {
    f"max_bytes_ratio_before_external_{operation}": 0
    for operation in ("group_by", "sort", "join", "distinct")
}
STATES_ON_DISK = {"top texts on disk", "few groups on disk"}
COUNTED = sorted(
    set(QUERIES)
    - {"cross join", "join on disk", "many partners", "right any join"}
    - STATES_ON_DISK
)
"""The queries that hold many rows."""


@pytest.fixture(scope="module")
def peaks() -> dict[str, tuple[int, int]]:
    """Return bytes needed and bytes counted by each query, from a process of its own."""
    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", "tests.unit.execute.memory_peaks"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    made: dict[str, tuple[int, int]] = json.loads(done.stdout)
    return made


@pytest.mark.parametrize("name", sorted(set(QUERIES) - {"join on disk"}))
def test_what_is_needed_is_counted(name: str, peaks: dict[str, tuple[int, int]]) -> None:
    needed, counted = peaks[name]
    assert needed <= counted + UNCOUNTED_BYTES


@pytest.mark.parametrize("name", sorted(STATES_ON_DISK))
def test_states_on_disk_fit_the_memory(name: str, peaks: dict[str, tuple[int, int]]) -> None:
    """Two threads make the states of a batch beside what is counted."""
    needed, counted = peaks[name]
    assert counted <= 40_000_000
    assert needed <= 100_000_000


def test_pairs_of_a_join_on_disk_that_wait_are_counted(peaks: dict[str, tuple[int, int]]) -> None:
    """Those of one batch with all its partners are not: 38 MB of the query. With what waits it is 76 MB."""
    needed, counted = peaks["join on disk"]
    assert needed <= counted + 57_000_000


@pytest.mark.parametrize("name", COUNTED)
def test_what_is_counted_is_needed(name: str, peaks: dict[str, tuple[int, int]]) -> None:
    """Within a factor: a query that fits is not refused. The held side of a join is counted before it is
    known whether its keys are all different, and near each other: these need less."""
    needed, counted = peaks[name]
    assert 8_000_000 < counted < (3 if name == "join near" else 2.5) * needed


@pytest.mark.parametrize("name", COUNTED)
def test_too_much_is_refused_by_the_limits_name(name: str) -> None:
    with olapdb.connect(settings=NO_SPILLING) as connection, connection.cursor() as cursor:
        if name == "final":
            for statement in TABLE:
                cursor.execute(statement)
        with pytest.raises(MemoryLimitExceeded, match=r"max_memory_usage is 6,000,000") as refused:
            cursor.execute(QUERIES[name] + " SETTINGS max_memory_usage = 6000000")
        assert "SETTINGS max_memory_usage" in str(refused.value)
        cursor.execute("SELECT count() FROM numbers(10) SETTINGS max_memory_usage = 6000000")
        assert cursor.fetchall() == [(10,)]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 FROM numbers(3) a JOIN ({endless}) b ON a.number = b.k",
        "SELECT 1 FROM numbers(3) a FULL JOIN ({endless}) b ON a.number = b.k",
        "SELECT 1 FROM numbers(3) a CROSS JOIN ({endless}) b",
        "SELECT number FROM numbers(3) WHERE number IN ({endless})",
        "SELECT number FROM numbers(3) EXCEPT {endless}",
        "SELECT number AS k FROM numbers(3) INTERSECT {endless}",
        "SELECT count() FROM (SELECT DISTINCT k FROM ({endless}))",
        "SELECT count() FROM (SELECT k FROM ({endless}) LIMIT 1 BY k)",
        "SELECT k FROM ({endless}) ORDER BY k % 3",
        "SELECT k FROM ({endless}) ORDER BY k DESC LIMIT 10000000",
        "SELECT k, count() FROM ({endless}) GROUP BY k",
    ],
)
def test_what_does_not_end_is_refused_as_it_comes(query: str) -> None:
    endless = "SELECT number AS k FROM numbers(1000000000000)"
    with (
        olapdb.connect(settings={"max_memory_usage": 30_000_000, **NO_SPILLING}) as connection,
        pytest.raises(MemoryLimitExceeded, match="max_memory_usage"),
    ):
        connection.execute(query.format(endless=endless))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.number FROM numbers(100000) a CROSS JOIN numbers(100000) b LIMIT 3",
        "SELECT a.number FROM numbers(100000) a JOIN numbers(200000) b"
        " ON a.number % 2 = b.number % 2 LIMIT 3",
        "SELECT a.number FROM numbers(100000) a LEFT JOIN numbers(200000) b"
        " ON a.number % 2 = b.number % 2 AND a.number < b.number LIMIT 3",
    ],
)
@pytest.mark.timeout(120)
def test_pairs_are_made_as_they_are_asked_for(query: str) -> None:
    with olapdb.connect(settings={"max_memory_usage": 100_000_000}) as connection:
        assert len(connection.execute(query).fetchall()) == 3
