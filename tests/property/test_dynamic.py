"""JSON and Dynamic: what goes in comes out, whatever the objects, and values compare as in Python."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import olapdb
from olapdb.functions import parse_type
from olapdb.functions.base import Environment
from olapdb.functions.dynamic.edges import python_values
from olapdb.functions.dynamic.objects import objects_of_texts
from olapdb.functions.dynamic.order import order_keys
from olapdb.functions.dynamic.render import plain_texts
from olapdb.functions.dynamic.stored import read_texts, stored_texts
from olapdb.functions.dynamic.values import of_type
from olapdb.types import FLOAT64, INT64, STRING, Dynamic, Json

pytestmark = pytest.mark.feature("insert", "types")

_KEYS = st.text(st.sampled_from('abcé "/\\'), min_size=1, max_size=3)
_TEXTS = st.text(st.sampled_from("xyz'\"\\/\t\né,[]{}() "), max_size=6)
_NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_LEAVES = st.booleans() | _NUMBERS | _TEXTS
_OBJECTS = st.recursive(
    st.dictionaries(_KEYS, _LEAVES, max_size=3),
    lambda inner: st.dictionaries(
        _KEYS,
        inner | _LEAVES | st.lists(inner, max_size=3) | st.lists(_TEXTS, max_size=3),
        max_size=3,
    ),
    max_leaves=12,
)


def _bare(value: object) -> object:
    """Return an object as JSON keeps it: without objects and arrays in which there is nothing."""
    if isinstance(value, dict):
        members = {key: _bare(inner) for key, inner in value.items()}
        return {key: inner for key, inner in members.items() if inner not in ({}, None)}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


def _same(left: object, right: object) -> bool:
    """Return whether two objects are equal; a Float64 may have been written as a whole number."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, float) and isinstance(right, float | int):
        return math.isclose(left, right, rel_tol=1e-15)
    return type(left) is type(right) and left == right


@given(st.lists(_OBJECTS, max_size=6))
def test_objects_come_out_as_they_went_in(objects: list[dict[str, object]]) -> None:
    texts = pa.array([json.dumps(item) for item in objects], pa.string())
    column = objects_of_texts(texts, Json(), Environment())
    column.validate(full=True)
    assert all(map(_same, [_bare(item) for item in objects], python_values(column, Json(), None)))
    written = plain_texts(column, "UTC")
    assert all(map(_same, [_bare(item) for item in objects], map(json.loads, written.to_pylist())))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Int64", [-(2**63), 0, 2**63 - 1]),
        ("Float64", [0.1, -0.0, 1e300, 5e-324, math.inf]),
        ("Float32", [0.10000000149011612]),
        ("String", ["", "it's", "a\\b\n", "NULL", "é"]),
        ("Bool", [True, False]),
        ("Decimal(20, 5)", [Decimal("1.50000"), Decimal("-0.00001")]),
        (
            "DateTime('Europe/Berlin')",
            [datetime.datetime(2026, 10, 25, 0, 30, tzinfo=datetime.UTC)],
        ),
        ("DateTime64(9)", [datetime.datetime(1960, 1, 1, tzinfo=datetime.UTC)]),
        ("Array(Nullable(String))", [["NULL", None, "a'b,]"], []]),
        ("Map(String, Array(UInt8))", [[("k'", [1, 2])], []]),
        ("Tuple(a UInt8, b Nullable(Date))", [{"a": 1, "b": None}]),
        ("Enum8('a' = 1, 'b' = 2)", [1, 2]),
        ("Array(DateTime('Asia/Tokyo'))", [[datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)]]),
    ],
)
def test_texts_keep_values(name: str, values: list[object]) -> None:
    data_type = parse_type(name)
    column = pa.array(values, data_type.arrow)
    assert read_texts(stored_texts(column, data_type), data_type).equals(column)


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | _TEXTS, max_size=12)
)
def test_values_are_ordered_by_type_and_value(values: list[object]) -> None:
    kinds = {int: INT64, float: FLOAT64, str: STRING}
    pieces = [
        of_type(pa.array([value], kinds[type(value)].arrow), kinds[type(value)]) for value in values
    ]
    column = pa.concat_arrays(pieces) if pieces else pa.nulls(0, Dynamic().arrow)
    keys = order_keys(column, Dynamic()).cast(pa.binary()).to_pylist()
    by_key = sorted(range(len(values)), key=keys.__getitem__)

    def place(at: int) -> tuple[str, object]:
        """Return the name of a value's type, and the value, texts by their bytes."""
        value = values[at]
        return kinds[type(value)].name, value.encode() if isinstance(value, str) else value

    assert [place(at) for at in by_key] == sorted(map(place, range(len(values))))


def test_rows_are_dicts_and_values_of_their_type() -> None:
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE t (id UInt8, j JSON(n UInt8), d Dynamic) ORDER BY id")
        cursor = connection.cursor()
        cursor.executemany(
            "INSERT INTO t VALUES (?, ?, ?)",
            [(1, {"a": {"b": [1, 2]}, "d": "2026-01-02"}, 5), (2, '{"n": 7}', "x"), (3, {}, None)],
        )
        assert connection.execute("SELECT j, d FROM t ORDER BY id").fetchall() == [
            ({"a": {"b": [1, 2]}, "d": datetime.date(2026, 1, 2), "n": 0}, 5),
            ({"n": 7}, "x"),
            ({"n": 0}, None),
        ]
        table = connection.execute("SELECT j, d FROM t ORDER BY id").fetch_arrow_table()
        assert table.to_pylist()[0] == {"j": '{"a":{"b":[1,2]},"d":"2026-01-02","n":0}', "d": "5"}


def test_a_view_over_paths_is_covered_and_equal() -> None:
    with olapdb.connect() as connection:
        for statement in (
            "CREATE TABLE ev (id UInt64, j JSON(user String)) ORDER BY id",
            "CREATE TABLE sums (user String, n UInt64) ENGINE = SummingMergeTree ORDER BY user",
            'INSERT INTO ev VALUES (1, \'{"user": "a", "n": 5}\')',
            "CREATE MATERIALIZED VIEW v TO sums AS SELECT j.user AS user,"
            " sum(ifNull(j.n.:Int64, 0))::UInt64 AS n FROM ev GROUP BY user",
            'INSERT INTO ev VALUES (2, \'{"user": "a", "n": 7}\'), (3, \'{"user": "b", "n": 3}\')',
            "SYSTEM BACKFILL VIEW v",
        ):
            connection.execute(statement)
        rows = connection.execute("SELECT user, sum(n) FROM sums GROUP BY user ORDER BY user")
        assert rows.fetchall() == [("a", 12), ("b", 3)]
        verdict = connection.execute("SYSTEM RECONCILE VIEW v").fetch_arrow_table().to_pylist()
        assert {row["verdict"] for row in verdict} == {"equal"}


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('[{"b":', "}]")])
def test_arrays_that_nest_too_deep_are_refused_before_they_are_stored(
    opening: str, closing: str
) -> None:
    """What is stored can be read: the escapes of objects in arrays of objects double at each level."""

    def text(levels: int) -> str:
        """Return an object with an array that nests so deep."""
        inside = "" if opening == "[" else "1"
        return '{"a":' + opening * levels + inside + closing * levels + "}"

    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE t (j JSON) ORDER BY tuple()")
        connection.execute("INSERT INTO t VALUES (?)", [text(16)])
        for levels in (17, 40, 400):
            with pytest.raises(olapdb.DataError, match="16 levels"):
                connection.execute("INSERT INTO t VALUES (?)", [text(levels)])
        found = connection.execute("SELECT toString(j) FROM t").fetchall()
        assert [json.loads(str(row[0])) for row in found] == [json.loads(text(16))]
