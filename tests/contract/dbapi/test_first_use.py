"""What a new user meets: handles that say what they are, and errors that say what to do next."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.dbapi.cursor import without_frames

pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE t (id Int32, name String, v Float64) ENGINE = MergeTree ORDER BY id"
    ),
    pytest.mark.feature("python"),
]


def test_the_views_of_a_connection_are_shown(connection: Connection) -> None:
    assert repr(connection.views) == "<olapdb.Views: >"
    connection.execute("CREATE TABLE u AS t ENGINE = MergeTree ORDER BY id")
    connection.execute("CREATE MATERIALIZED VIEW mv TO u AS SELECT id, name, v FROM t")
    assert repr(connection.views) == "<olapdb.Views: default.mv>"


def test_handles_say_what_they_are(tmp_path: Path) -> None:
    with olapdb.connect() as connection:
        assert repr(connection) == "<olapdb.Connection: :memory:, database default>"
        cursor = connection.execute("SELECT 1 AS a, 'x' AS b")
        assert repr(cursor).startswith("<olapdb.Cursor: a UInt8, b String; fetchall(), ")
        assert cursor.fetchall() == [(1, "x")]  # the repr took no row
        assert (
            repr(connection.execute("SET max_threads = 1")) == "<olapdb.Cursor: no rows to fetch>"
        )
        cursor.close()
        assert repr(cursor) == "<olapdb.Cursor: closed>"
    assert repr(connection) == "<olapdb.Connection: closed>"
    with olapdb.connect(tmp_path / "w"):
        pass
    with olapdb.connect(tmp_path / "w", read_only=True) as connection:
        assert repr(connection).endswith("/w, database default, read_only>")


@pytest.mark.parametrize(
    "url", ["olapdb:///warehouse", "postgresql://host/name", "s3://bucket/w", Path("s3://bucket/w")]
)
def test_a_url_is_no_folder(
    url: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(olapdb.errors.CannotOpenWarehouse, match="is a URL"):
        olapdb.connect(url)
    assert not list(tmp_path.iterdir())


def test_a_folder_may_have_a_url_in_its_name(tmp_path: Path) -> None:
    with olapdb.connect(f"{tmp_path}/copies/https://host/w"):
        assert (tmp_path / "copies" / "https:" / "host" / "w").is_dir()


def test_the_views_of_a_closed_connection_are_shown() -> None:
    with olapdb.connect() as connection:
        views = connection.views
    assert repr(views) == "<olapdb.Views: closed>"


@pytest.mark.parametrize("rows", [None, 5, [np.array(1)], [{1, 2}], [5]])
def test_what_is_no_list_of_rows_is_refused(connection: Connection, rows: Any) -> None:
    with pytest.raises(olapdb.errors.BadArguments, match="takes a list of rows"):
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)


def test_settings_are_a_mapping() -> None:
    wrong: Any = "max_threads = 4"
    with pytest.raises(olapdb.errors.BadArguments, match="settings are a mapping"):
        olapdb.connect(settings=wrong)


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (
            [1, 2],
            "Set 1 of the parameters is of the class int: 1. executemany.. takes a list of rows",
        ),
        (["a"], "Set 1 of the parameters is of the class str"),
        (np.array([1, 2]), "Set 1 of the parameters is of the class int64"),
        ([(1, "a"), (2,)], "takes 2 parameters, 1 were given in set 2"),
        ([(1, "a"), (2, "b", 3)], "takes 2 parameters, 3 were given in set 2"),
        (pd.DataFrame({"id": [1]}), "takes rows, not a DataFrame. Use connection.insert"),
        (pa.table({"id": [1]}), "takes rows, not a Table. Use connection.insert"),
    ],
)
def test_executemany_takes_rows(connection: Connection, sets: Any, said: str) -> None:
    with pytest.raises(olapdb.ProgrammingError, match=said):
        connection.executemany("INSERT INTO t (id, name) VALUES (?, ?)", sets)
    assert connection.execute("SELECT count() FROM t").fetchone() == (0,)


def test_executemany_takes_rows_of_an_array(connection: Connection) -> None:
    rows: Any = np.array([[1], [2]])
    assert connection.executemany("INSERT INTO t (id) VALUES (?)", rows).rowcount == 2


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (pd.DataFrame({"v": [1.0, float("nan")]}), "row 2: NULL is no value.*NaN, NaT and None"),
        (pd.Series([1, 2], name="id"), "columns with names, not one Series"),
        (pa.array([1, 2]), "columns with names, not one Int64Array"),
        (({"id": 1} for _ in range(2)), "for batches, pyarrow.RecordBatchReader"),
        ([{"id": 1}], "for dicts, pyarrow.Table.from_pylist"),
        (pd.DataFrame({"name": [1, "a"]}), "read as Arrow: Could not convert 'a' with type str"),
    ],
)
def test_insert_says_what_it_takes(connection: Connection, data: Any, said: str) -> None:
    with pytest.raises(olapdb.Error, match=said):
        connection.insert("t", data)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELCT 1", "Maybe you meant SELECT"),
        ("CRATE TABLE x (a Int8) ENGINE = Memory", "Maybe you meant CREATE"),
        ("SELECT %s", "A parameter is ., or :name"),
        ("SELECT * FROM read_parquet('a.parquet')", "Write file"),
        ("CREATE TABLE x (a Strng) ENGINE = Memory", "Unknown data type 'Strng'. .*meant: String"),
        (
            "CREATE TABLE x (a Array(Xyzzy)) ENGINE = Memory",
            "in 'Array.Xyzzy.'.*data_type_families",
        ),
    ],
)
def test_errors_name_what_was_meant(connection: Connection, text: str, said: str) -> None:
    with pytest.raises(olapdb.ProgrammingError, match=said):
        connection.execute(text)


def test_a_list_is_a_parameter_of_in(connection: Connection) -> None:
    """As in ClickHouse, brackets around an array are the array."""

    def found(condition: str, value: object) -> list[int]:
        """Return the numbers below 5 that satisfy a condition on one parameter."""
        rows = connection.execute(
            f"SELECT number FROM numbers(5) WHERE {condition}", {"a": value}
        ).fetchall()
        return [number for (number,) in rows]

    for brackets in (":a", "(:a)"):
        assert found(f"number IN {brackets}", [1, 2]) == [1, 2]
        assert found(f"number IN {brackets}", (1, 2)) == [1, 2]
        assert found(f"number NOT IN {brackets}", [1, 2]) == [0, 3, 4]
        assert found(f"toString(number) IN {brackets}", ["1", "3"]) == [1, 3]
    assert found("[number] IN (:a)", [[1], [2]]) == [1, 2]
    assert found("(number, 1) IN (:a)", (2, 1)) == [2]
    assert found("number IN (:a)", 3) == [3]
    assert found("number IN ({a:Array(UInt8)})", [4]) == [4]


def test_a_file_outside_says_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with (
        olapdb.connect(settings={"user_files_path": "."}) as connection,
        pytest.raises(olapdb.errors.PathNotAllowed, match=f"not inside of '{tmp_path.resolve()}'"),
    ):
        connection.execute("SELECT * FROM file('/etc/passwd', CSV)")


def test_a_file_is_no_warehouse(tmp_path: Path) -> None:
    (tmp_path / "w.db").touch()
    with pytest.raises(olapdb.errors.CannotOpenWarehouse, match="is a file; a warehouse is a fold"):
        olapdb.connect(tmp_path / "w.db")


def test_an_unknown_column_lists_those_of_the_table(connection: Connection) -> None:
    with pytest.raises(olapdb.errors.UnknownIdentifier) as raised:
        connection.execute("SELECT xyzzy FROM t")
    assert raised.value.hint == "There are: id, name, v."


@pytest.mark.parametrize(
    ("call", "frames"),
    [
        (lambda c: c.execute("SELECT nme FROM system.one"), 4),
        (lambda c: c.cursor().execute("SELEC 1"), 3),
        (lambda c: c.executemany("INSERT INTO nothing VALUES (?)", [(1,)]), 4),
        (lambda c: c.execute("SELECT throwIf(number = 3) FROM numbers(5)").fetchall(), 4),
        (lambda c: c.insert("nothing", {"a": [1]}), 3),
        (lambda c: c.describe("SELECT nme"), 3),
    ],
)
def test_a_traceback_shows_the_callers_line_and_no_frame_of_the_engine(
    call: Callable[[Connection], object], frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with olapdb.connect() as connection:
        monkeypatch.delenv("OLAPDB_TRACEBACK")
        with pytest.raises(olapdb.Error) as short:
            call(connection)
        monkeypatch.setenv("OLAPDB_TRACEBACK", "full")
        with pytest.raises(olapdb.Error) as full:
            call(connection)
    assert len(traceback.extract_tb(short.value.__traceback__)) <= frames
    assert len(traceback.extract_tb(full.value.__traceback__)) > frames


def test_an_internal_error_keeps_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise olapdb.InternalError("a bug")

    monkeypatch.delenv("OLAPDB_TRACEBACK")
    with pytest.raises(olapdb.InternalError) as caught:
        without_frames(fail)()
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][-1] == "fail"
