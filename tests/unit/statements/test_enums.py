"""What Python and Arrow see of Enum columns; `tests/sql/enums.slt` has their SQL."""

from __future__ import annotations

import pyarrow as pa
import pytest

import olapdb
from olapdb import errors, types
from olapdb.functions import parse_type

pytestmark = pytest.mark.feature("types", "python")

LEVEL = "Enum8('low' = 1, 'high' = 2)"


@pytest.fixture
def cursor() -> olapdb.Cursor:
    """Open a cursor of a warehouse with a table of Enums, also inside arrays, maps and tuples."""
    cursor = olapdb.connect().cursor()
    cursor.execute(
        f"CREATE TABLE e (id UInt8, x {LEVEL}, l Array({LEVEL}), m Map(String, Nullable({LEVEL})),"
        f" t Tuple(k {LEVEL}, v UInt8)) ORDER BY x"
    )
    rows = [
        (1, "high", ["high", "low"], {"k": "low", "z": None}, ("high", 1)),
        (2, "low", [], {}, ("low", 2)),
        (3, 2, ["low"], {"q": "high"}, ("low", 3)),
    ]
    cursor.executemany("INSERT INTO e VALUES (?, ?, ?, ?, ?)", rows)
    return cursor


def test_rows_have_texts(cursor: olapdb.Cursor) -> None:
    rows = cursor.execute("SELECT * FROM e ORDER BY id").fetchall()
    assert rows == [
        (1, "high", ["high", "low"], {"k": "low", "z": None}, ("high", 1)),
        (2, "low", [], {}, ("low", 2)),
        (3, "high", ["low"], {"q": "high"}, ("low", 3)),
    ]
    assert cursor.execute("SELECT x FROM e WHERE x = ?", ("low",)).fetchall() == [("low",)]
    assert cursor.description is not None
    assert cursor.description[0][1] == olapdb.STRING


def test_arrow_has_strings(cursor: olapdb.Cursor) -> None:
    cursor.execute("SELECT id, x, l, m, t FROM e ORDER BY id")
    cursor.fetchone()
    table = cursor.fetch_arrow_table()
    table.validate(full=True)
    assert table.schema.field("x").type == pa.string()
    assert table.schema.field("x").metadata == {b"olapdb.type": LEVEL.encode()}
    assert table.schema.field("l").type == pa.list_(pa.string())
    assert table.to_pylist() == [
        {"id": 2, "x": "low", "l": [], "m": [], "t": {"k": "low", "v": 2}},
        {"id": 3, "x": "high", "l": ["low"], "m": [("q", "high")], "t": {"k": "low", "v": 3}},
    ]


def test_arrow_round_trip(cursor: olapdb.Cursor) -> None:
    table = cursor.execute("SELECT * FROM e").fetch_arrow_table()
    cursor.execute("CREATE TABLE f AS e")
    cursor.connection.insert("f", table)
    as_categories = table.select(["id"]).append_column("x", table["x"].dictionary_encode())
    cursor.connection.insert("f", as_categories)
    counts = cursor.execute("SELECT x, count() FROM f GROUP BY x ORDER BY x").fetchall()
    assert counts == [("low", 2), ("high", 4)]


def test_an_unknown_text_names_its_row(cursor: olapdb.Cursor) -> None:
    with pytest.raises(errors.UnknownElementOfEnum, match=r"x, row 2: Unknown element 'hihg'"):
        cursor.connection.insert("e", {"id": [1, 2], "x": ["low", "hihg"]})
    with pytest.raises(errors.UnknownElementOfEnum, match="Maybe you meant 'high'"):
        cursor.execute("INSERT INTO e (x) VALUES ('hihg')")
    assert cursor.execute("SELECT count() FROM e").fetchone() == (3,)


@pytest.mark.parametrize(
    "text", ["Enum8('a' = -128, 'b' = 127)", "Enum16('it\\'s' = 1, 'b\\\\s' = 2, 'c\\td' = 300)"]
)
def test_names_parse_back(text: str) -> None:
    assert str(parse_type(text)) == text


def test_numbers_are_counted() -> None:
    assert parse_type("Enum('b', 'a')") == types.Enum(8, (("b", 1), ("a", 2)))
    assert str(parse_type("Enum('b' = 127, 'a')")) == "Enum16('b' = 127, 'a' = 128)"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Enum8()", errors.EmptyDataPassed),
        ("Enum8", errors.EmptyDataPassed),
        ("Enum8('a' = 128)", errors.ArgumentOutOfBound),
        ("Enum8('a' = 1, 'a' = 2)", errors.SyntaxError),
        ("Enum8('a' = 1, 'b' = 1)", errors.SyntaxError),
        ("Enum8('a', 'b' = 5)", errors.UnexpectedAstStructure),
        ("Enum8(a = 1)", errors.UnexpectedAstStructure),
        ("Enum8('a = 1)", errors.SyntaxError),
        ("LowCardinality(Enum8('a' = 1))", errors.IllegalTypeOfArgument),
    ],
)
def test_wrong_types(text: str, error: type[errors.Error]) -> None:
    with pytest.raises(error):
        parse_type(text)


def test_an_enum_that_grows_to_sixteen_bits_reads_its_old_values(
    connection: olapdb.Connection,
) -> None:
    connection.execute("CREATE TABLE g (k Int32, f Enum8('a' = 1)) ENGINE = MergeTree ORDER BY k")
    connection.execute("INSERT INTO g VALUES (1, 'a')")
    connection.execute("ALTER TABLE g MODIFY COLUMN f Enum16('a' = 1, 'b' = 1000)")
    connection.execute("INSERT INTO g VALUES (2, 'b')")
    connection.execute("OPTIMIZE TABLE g FINAL")
    assert connection.execute("SELECT f FROM g ORDER BY k").fetchall() == [("a",), ("b",)]


def test_a_new_lowest_element_changes_what_old_rows_have(connection: olapdb.Connection) -> None:
    connection.execute("CREATE TABLE src (k Int32) ENGINE = MergeTree ORDER BY k")
    connection.execute("INSERT INTO src VALUES (1)")
    connection.execute("ALTER TABLE src ADD COLUMN f Enum8('z' = 5)")
    connection.execute("CREATE TABLE dst (f String, n UInt64) ENGINE = SummingMergeTree ORDER BY f")
    connection.execute(
        "CREATE MATERIALIZED VIEW v TO dst AS SELECT toString(f) AS f, count() AS n FROM src GROUP BY f"
    )
    connection.execute("SYSTEM BACKFILL VIEW v")
    connection.execute("SYSTEM RECONCILE VIEW v")
    verdict = "SELECT verdict FROM system.views WHERE name = 'v'"
    assert connection.execute(verdict).fetchall() == [("proven",)]
    connection.execute("ALTER TABLE src MODIFY COLUMN f Enum8('a' = 1, 'z' = 5)")
    assert connection.execute(verdict).fetchall() == [("stale",)]
