"""Dictionaries whose source is a file of user_files_path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import olapdb
from olapdb.errors import FileDoesntExist, IncorrectDictionaryDefinition, PathNotAllowed

pytestmark = pytest.mark.feature("formats", "schema")

_CREATE = """CREATE DICTIONARY d (id UInt64, v String DEFAULT '?', n UInt8) PRIMARY KEY id
    SOURCE(FILE(path '{}' format '{}')) LAYOUT(FLAT()) LIFETIME(0)"""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[olapdb.Connection]:
    """Connect to a warehouse that may read two files of the same rows."""
    (tmp_path / "d.csv").write_text("1,one,11\n2,two,22\n")
    (tmp_path / "named.csv").write_text("n,id,v\n11,1,one\n22,2,two\n")
    with olapdb.connect(settings={"user_files_path": str(tmp_path)}) as opened:
        yield opened


@pytest.mark.parametrize(("path", "form"), [("d.csv", "CSV"), ("named.csv", "CSVWithNames")])
def test_a_dictionary_has_the_rows_of_its_file(
    connection: olapdb.Connection, path: str, form: str
) -> None:
    connection.execute(_CREATE.format(path, form))
    found = "SELECT dictGet('d', ('v', 'n'), 2), dictGet('d', 'v', 9), dictHas('d', 1)"
    assert connection.execute(found).fetchall() == [(("two", 22), "?", 1)]
    assert connection.execute("SELECT * FROM d ORDER BY id").fetchall() == [
        (1, "one", 11),
        (2, "two", 22),
    ]
    shown = "SELECT status, source FROM system.dictionaries WHERE name = 'd'"
    assert connection.execute(shown).fetchall() == [("LOADED", f"File: {path}, {form}")]
    created = str(connection.execute("SHOW CREATE DICTIONARY d").fetchall()[0][0])
    assert f"SOURCE(FILE(PATH '{path}' FORMAT '{form}'))" in created


def test_each_query_reads_the_file(connection: olapdb.Connection, tmp_path: Path) -> None:
    connection.execute(_CREATE.format("d.csv", "CSV"))
    connection.execute("SELECT dictGet('d', 'v', 1)").fetchall()
    (tmp_path / "d.csv").write_text("1,uno,1\n")
    assert connection.execute("SELECT dictGet('d', 'v', 1)").fetchall() == [("uno",)]


def test_no_materialized_view_looks_up_in_a_file(connection: olapdb.Connection) -> None:
    """Nothing would tell the view that the file changed."""
    connection.execute(_CREATE.format("d.csv", "CSV"))
    connection.execute("CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id")
    view = "CREATE MATERIALIZED VIEW m ENGINE = MergeTree ORDER BY id AS SELECT id, dictGet('d', 'v', id) AS v FROM t"
    with pytest.raises(olapdb.Error, match="files"):
        connection.execute(view)


def test_what_is_wrong_with_a_file_is_told(connection: olapdb.Connection) -> None:
    """What the statement lacks is refused at CREATE, the file is looked for where it is read."""
    for source in ("path 'd.csv'", "format 'CSV'"):
        statement = _CREATE.replace("path '{}' format '{}'", source)
        with pytest.raises(IncorrectDictionaryDefinition, match="needs the parameter"):
            connection.execute(statement)
    connection.execute(_CREATE.format("none.csv", "CSV"))
    with pytest.raises(FileDoesntExist):
        connection.execute("SELECT dictGet('d', 'v', 1)")
    connection.execute("DROP DICTIONARY d")
    connection.execute(_CREATE.format("/etc/passwd", "CSV"))
    with pytest.raises(PathNotAllowed):
        connection.execute("SELECT dictGet('d', 'v', 1)")
