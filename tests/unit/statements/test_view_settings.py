"""A plain view keeps `cast_keep_nullable` of the session that creates it."""

from __future__ import annotations

from pathlib import Path

import pytest

import olapdb

pytestmark = pytest.mark.feature("settings", "schema")


def test_another_session_reads_the_columns_that_the_view_stores(tmp_path: Path) -> None:
    with (
        olapdb.connect(tmp_path / "w", settings={"cast_keep_nullable": 1}) as creator,
        olapdb.connect(tmp_path / "w") as reader,
    ):
        creator.execute("CREATE TABLE s (k Nullable(Int64)) ENGINE = MergeTree ORDER BY tuple()")
        creator.execute("INSERT INTO s VALUES (NULL), (2)")
        creator.execute("CREATE VIEW texts AS SELECT CAST(k AS String) AS t FROM s")
        creator.execute("CREATE VIEW none AS SELECT CAST(NULL AS String) AS t")
        creator.execute("CREATE VIEW plain AS SELECT k FROM s")
        assert sorted(map(repr, reader.execute("SELECT * FROM texts").fetchall())) == [
            "('2',)",
            "(None,)",
        ]
        assert reader.execute("SELECT t FROM none").fetchall() == [(None,)]
        ((shown,),) = reader.execute("SHOW CREATE TABLE texts").fetchall()
        assert shown.endswith("SETTINGS cast_keep_nullable = 1")
        ((shown,),) = reader.execute("SHOW CREATE TABLE plain").fetchall()
        assert "SETTINGS" not in shown
        creator.execute("CREATE OR REPLACE VIEW texts AS SELECT CAST(k AS String) AS t FROM s")
        creator.execute(
            "CREATE VIEW own AS SELECT CAST(k AS String) AS t FROM s WHERE k > 0 "
            "SETTINGS cast_keep_nullable = 0"
        )
        assert reader.execute("SELECT t FROM own").fetchall() == [("2",)]
