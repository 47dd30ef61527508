"""Fixtures that any test may ask for.

connection     to a warehouse of the test's own, as its `warehouse` marker says
oracle         ClickHouse, one for the whole run

pytestmark = pytest.mark.warehouse(
    "CREATE TABLE t (k UInt8) ENGINE = MergeTree ORDER BY k",
    merges=False,                          # SYSTEM STOP MERGES, so that parts stay as they are
    on_disk=True,                          # in tmp_path / "warehouse", else in memory
    settings={"inline_bytes_max": 0},      # of the connection
    checked=True,                          # check_database finds nothing wrong at the end
    beside_oracle=True,                    # the statements run in ClickHouse too
)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import olapdb
from olapdb.maintenance.check import check_database
from tests.harness.oracle import Oracle


@pytest.fixture
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[olapdb.Connection]:
    """Open the warehouse that the test's `warehouse` marker describes, by default an empty one in
    memory."""
    marker = request.node.get_closest_marker("warehouse")
    statements: tuple[str, ...] = marker.args if marker else ()
    options: Mapping[str, object] = marker.kwargs if marker else {}
    unknown = set(options) - {"merges", "on_disk", "settings", "checked", "beside_oracle"}
    assert not unknown, f"The warehouse marker has no option {unknown}."
    where = tmp_path / "warehouse" if options.get("on_disk") else ":memory:"
    with olapdb.connect(where, settings=options.get("settings")) as opened:  # type: ignore[arg-type]
        if not options.get("merges", True):
            opened.execute("SYSTEM STOP MERGES")
        for statement in statements:
            opened.execute(statement)
            if options.get("beside_oracle"):
                request.getfixturevalue("oracle").execute(statement)
        yield opened
        if options.get("checked"):
            services = opened.database.services
            assert check_database(services.catalog, services.store) == []


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """Start one ClickHouse for the whole run, at the first query."""
    with Oracle() as running:
        yield running
