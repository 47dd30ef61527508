"""ALTER TABLE … FREEZE and UNFREEZE: the files that they write and delete."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import parquet

import olapdb

pytestmark = pytest.mark.feature("changes")

_TABLE = """CREATE TABLE visits (id UInt64, month UInt8, v String) ENGINE = MergeTree
    PARTITION BY month ORDER BY id SETTINGS inline_bytes_max = {}"""
_ROWS = "INSERT INTO visits VALUES (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'z')"


def _files(folder: Path, name: str) -> list[Path]:
    """Return the files of one FREEZE."""
    return sorted((folder / "shadow" / name).rglob("*.parquet"))


def _ids(files: list[Path]) -> list[int]:
    """Return the ids of the rows of the files."""
    return sorted(value for path in files for value in parquet.read_table(path)["id"].to_pylist())


@pytest.mark.parametrize("inline_bytes_max", [0, 1 << 20], ids=["files", "inline"])
def test_files_of_a_freeze_have_the_rows(tmp_path: Path, inline_bytes_max: int) -> None:
    """Parts in files and parts in the catalog are both copied; a later DROP leaves the copies alone."""
    with olapdb.connect(tmp_path) as connection:
        connection.execute(_TABLE.format(inline_bytes_max))
        connection.execute(_ROWS)
        connection.execute("ALTER TABLE visits FREEZE WITH NAME 'all'")
        connection.execute("ALTER TABLE visits FREEZE PARTITION 2 WITH NAME 'second'")
        connection.execute("ALTER TABLE visits DELETE WHERE 1")
        connection.execute("OPTIMIZE TABLE visits FINAL")
        connection.execute("DROP TABLE visits SYNC")
        assert _ids(_files(tmp_path, "all")) == [1, 2, 3]
        assert _ids(_files(tmp_path, "second")) == [3]


def test_freeze_without_a_name_counts(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path) as connection:
        connection.execute(_TABLE.format(0))
        connection.execute(_ROWS)
        connection.execute("ALTER TABLE visits FREEZE PARTITION 1")
        connection.execute("ALTER TABLE visits FREEZE")
    assert _ids(_files(tmp_path, "1")) == [1, 2]
    assert _ids(_files(tmp_path, "2")) == [1, 2, 3]


def test_unfreeze_deletes_a_partition_or_all(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path) as connection:
        connection.execute(_TABLE.format(0))
        connection.execute(_ROWS)
        connection.execute("CREATE TABLE other AS visits")
        connection.execute("INSERT INTO other VALUES (9, 1, 'q')")
        for table in ("visits", "other"):
            connection.execute(f"ALTER TABLE {table} FREEZE WITH NAME 'a'")
        connection.execute("ALTER TABLE visits UNFREEZE PARTITION 1 WITH NAME 'a'")
        assert _ids(_files(tmp_path, "a")) == [3, 9]
        connection.execute("ALTER TABLE visits UNFREEZE WITH NAME 'a'")
        assert _ids(_files(tmp_path, "a")) == [9]
        assert connection.execute("SELECT count() FROM visits").fetchall() == [(3,)]


def test_a_name_leads_to_no_other_folder(tmp_path: Path) -> None:
    """The name of a FREEZE is quoted."""
    with olapdb.connect(tmp_path / "warehouse") as connection:
        connection.execute(_TABLE.format(0))
        connection.execute(_ROWS)
        connection.execute("ALTER TABLE visits FREEZE WITH NAME '../../outside'")
    assert _files(tmp_path / "warehouse", "%2E%2E%2F%2E%2E%2Foutside")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["warehouse"]
