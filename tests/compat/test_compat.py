"""Warehouses that earlier releases wrote open in this one, and say what they said then.

`tests/compat/<release>/` holds a warehouse and its answers; `make.py` made it, at the release's time.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

import olapdb
from olapdb.maintenance.check import check_database
from olapdb.maintenance.vacuum import vacuum
from tests.compat.make import ARCHIVE, EXPECTED, answers

pytestmark = pytest.mark.feature("storage")

RELEASES = sorted(path.parent for path in Path(__file__).parent.glob(f"*/{ARCHIVE}"))
BYTES_MAX = 300_000


@pytest.fixture(params=RELEASES, ids=[path.name for path in RELEASES])
def release(request: pytest.FixtureRequest) -> Path:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def warehouse(release: Path, tmp_path: Path) -> Path:
    """Copy the files of the warehouse."""
    with tarfile.open(release / ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "warehouse"


def expected(release: Path) -> Any:
    return json.loads((release / EXPECTED).read_text())


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_there_is_one() -> None:
    assert RELEASES
    for release in RELEASES:
        assert sum(path.stat().st_size for path in release.iterdir()) < BYTES_MAX


def test_it_reads_as_then(release: Path, warehouse: Path) -> None:
    """Without writing a byte."""
    before = digests(warehouse)
    with olapdb.connect(str(warehouse), read_only=True) as connection:
        found = json.loads(json.dumps(answers(connection)))
        for name, one in expected(release).items():
            assert found[name] == one, name
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []
    assert digests(warehouse) == before


def test_it_goes_on(release: Path, warehouse: Path) -> None:
    """Opened to write: the same answers, then new rows, merges, repairs, detached parts.

    Opening judges the views by the rules of today, in one commit."""
    with olapdb.connect(str(warehouse)) as connection:
        connection.execute("SYSTEM STOP MERGES")
        found = json.loads(json.dumps(answers(connection)))
        for name, one in expected(release).items():
            if name == "snapshots":
                ((count, newest),) = one["rows"]
                assert found[name]["rows"] == [[str(int(count) + 1), str(int(newest) + 1)]]
            else:
                assert found[name] == one, name
        for text in (
            "INSERT INTO plain VALUES ('2024-01-07', 'new', 100)",
            "INSERT INTO types SELECT * FROM types",
            "INSERT INTO columns (a, y) VALUES (4, -4)",
            "INSERT INTO keyed VALUES (1, 1), (5, 5)",
            "ALTER TABLE plain ATTACH PARTITION 202403",
            "SYSTEM BACKFILL VIEW daily",
            "SYSTEM BACKFILL VIEW by_month",
            "SYSTEM BACKFILL VIEW late",
            "SYSTEM REPLAY VIEW daily STALE",
            "SYSTEM REPLAY VIEW by_month STALE",
            "SYSTEM REPLAY VIEW late STALE",
            "OPTIMIZE TABLE plain FINAL",
            "OPTIMIZE TABLE types FINAL",
            "OPTIMIZE TABLE columns FINAL",
        ):
            connection.execute(text)
        for view in ("daily", "by_month", "late"):
            connection.execute(f"SYSTEM RECONCILE VIEW {view}")
        verdicts = connection.execute("SELECT DISTINCT verdict FROM system.views").fetchall()
        assert verdicts == [("proven",)]
        rows = len(expected(release)["types"]["rows"])
        assert connection.execute("SELECT count() FROM types").fetchall() == [(2 * rows,)]
        assert connection.execute("SELECT count() FROM keyed").fetchall() == [(5,)]
        vacuum(connection.database.services, lifetime_seconds=0)
        services = connection.database.services
        assert check_database(services.catalog, services.store) == []
