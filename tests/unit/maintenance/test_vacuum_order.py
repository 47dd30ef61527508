"""A killed vacuum's files are deleted oldest first, so that no part outlives its replacement."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import olapdb
from olapdb.maintenance.rebuild_catalog import rebuild_catalog
from olapdb.maintenance.vacuum import vacuum

pytestmark = pytest.mark.feature("upkeep")

STATEMENTS = (
    "INSERT INTO t VALUES (1), (2)",
    "INSERT INTO t VALUES (3)",
    "OPTIMIZE TABLE t FINAL",
    "INSERT INTO t VALUES (4)",
    "OPTIMIZE TABLE t FINAL",
)


class _Killed(BaseException):
    pass


def _forgotten(folder: Path) -> None:
    """Return parts that two merges replaced, the second merging the first's result: purged from the
    catalog, their files not yet deleted."""
    with olapdb.connect(folder) as connection:
        connection.execute("SYSTEM STOP MERGES")
        connection.execute(
            "CREATE TABLE t (k Int64) ENGINE = MergeTree ORDER BY k SETTINGS inline_bytes_max = 0"
        )
        dated: set[Path] = set()
        for second, statement in enumerate(STATEMENTS):
            connection.execute(statement)
            for file in set(folder.rglob("*.parquet")) - dated:
                os.utime(file, (second, second))  # file systems count in steps of up to 10 ms
                dated.add(file)
        catalog = connection.database.services.catalog
        assert len(catalog.purge_parts(catalog.dropped_parts(1 << 42, 100))) == 4


@pytest.mark.parametrize("deletions", range(5))
def test_orphans_go_oldest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deletions: int
) -> None:
    folder = tmp_path / "warehouse"
    _forgotten(folder)
    connection = olapdb.connect(folder)
    connection.execute("SYSTEM STOP MERGES")
    services = connection.database.services
    store, left = services.store, iter(range(deletions))
    listed, delete = store.list, store.delete

    def newest_first(prefix: str):  # type: ignore[no-untyped-def]
        return iter(sorted(listed(prefix), key=lambda file: -file.modified_ms))

    def until_killed(path: str) -> None:
        if next(left, None) is None:
            raise _Killed
        delete(path)

    monkeypatch.setattr(store, "list", newest_first)
    monkeypatch.setattr(store, "delete", until_killed)
    if deletions < 4:
        with pytest.raises(_Killed):
            vacuum(services)
    else:
        assert vacuum(services).files == 4
    shutil.copytree(folder / "data", tmp_path / "copy" / "data")
    monkeypatch.undo()
    connection.close()
    assert rebuild_catalog(tmp_path / "copy").rows == 4
