"""Any value of any type stored into a column of any other: an accepted value reads back equal.

The reference is plain Python: a value is a number, a timestamp or a text, and only floats are
rounded. The conversion table (`views.column_conversion`) is compared with what storing does."""

from __future__ import annotations

import datetime
import decimal
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import olapdb
from olapdb.errors import DataError, Error
from olapdb.functions import parse_type, store_column
from olapdb.functions.base import Environment
from olapdb.types import DataType, Float
from olapdb.views.definition.column_conversion import conversion

pytestmark = pytest.mark.feature("insert", "types")

NAMES = (
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Bool",
    "Float32",
    "Float64",
    "Decimal(9, 2)",
    "Decimal(18, 6)",
    "Decimal(38, 0)",
    "Date",
    "Date32",
    "DateTime",
    "DateTime64(0)",
    "DateTime64(3)",
    "DateTime64(6)",
    "String",
)
TYPES = {name: parse_type(name) for name in NAMES}
DAY_ONE = datetime.date(1970, 1, 1)
MOMENT_ONE = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    near = [low, high, 0, 1, 127, 128, 255, 256, 65_535, 65_536, 2**24 + 1, 2**32, 2**53 + 1]
    return st.sampled_from([n for n in near if low <= n <= high]) | st.integers(low, high)


def values(name: str) -> st.SearchStrategy[Any]:
    """Draw values of a type, including those at the ends of other types' ranges."""
    data_type = TYPES[name]
    if name == "Bool":
        return st.booleans()
    if "Int" in name:
        return _integers(data_type.minimum, data_type.maximum)  # type: ignore[attr-defined]
    if name.startswith("Float"):
        width = int(name[5:])
        some = st.sampled_from([0.0, 1.0, 1.5, 0.25, 255.0, 256.0, -1.0, 1e30, float("inf")])
        return some | st.floats(width=width, allow_nan=False)
    if name.startswith("Decimal"):
        precision, scale = data_type.precision, data_type.scale  # type: ignore[attr-defined]
        limit = 10**precision - 1
        return _integers(-limit, limit).map(lambda n: Decimal(n).scaleb(-scale, _WIDE))
    if name == "Date":
        return st.dates(DAY_ONE, datetime.date(2149, 6, 6))
    if name == "Date32":
        return st.dates()
    if name == "DateTime":
        whole = _integers(0, 2**32 - 1)
        return whole.map(lambda n: MOMENT_ONE + datetime.timedelta(seconds=n))
    if name.startswith("DateTime64"):
        tick = 10 ** (6 - int(name[11]))
        return (_integers(-(10**9), 10**10) | _integers(0, 50_000).map(lambda n: n * 86_400)).map(
            lambda n: MOMENT_ONE + datetime.timedelta(microseconds=n * tick)
        )
    written = st.sampled_from(
        [
            "7",
            "300",
            "-1",
            "1.5",
            "1.005",
            "x",
            "",
            "2024-01-05",
            "1e39",
            "2024-01-05 06:07:08.123456",
            "2300-01-01",
            "true",
        ]
    )
    return written | st.integers(-(10**20), 10**20).map(str)


_WIDE = decimal.Context(prec=80)


def meaning(value: Any) -> Any:
    """Return a number as a Decimal, a timestamp as epoch microseconds, a date as its midnight."""
    if isinstance(value, bool):
        return Decimal(int(value))
    if isinstance(value, int | Decimal):
        return Decimal(value)
    if isinstance(value, datetime.datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        return (moment - MOMENT_ONE) // datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return (value - DAY_ONE).days * 86_400_000_000
    return value


def survived(given_value: Any, stored: Any, target: DataType) -> bool:
    if isinstance(given_value, str) or isinstance(stored, str):
        return _as_text(given_value, stored)
    number = isinstance(given_value, bool | int | float | Decimal)
    # one is a number of seconds or days, the other a timestamp or date
    if number != isinstance(stored, bool | int | float | Decimal):
        moment, seconds = (stored, given_value) if number else (given_value, stored)
        per = 86_400 if not isinstance(moment, datetime.datetime) else 1
        exact = Decimal(meaning(moment)) / (1_000_000 * per)
        return (
            _same_number(seconds, exact, target) if number else _same_number(exact, seconds, target)
        )
    if number:
        return _same_number(given_value, stored, target)
    return bool(meaning(given_value) == meaning(stored))


def _same_number(given_value: Any, stored: Any, target: DataType) -> bool:
    if isinstance(target, Float):
        kind = np.float32 if target.bits == 32 else np.float64
        with np.errstate(over="ignore"):
            nearest = float(kind(float(given_value)))
        return nearest == float(stored) or abs(nearest - float(stored)) <= abs(nearest) * 1e-15
    if isinstance(given_value, float):  # a Decimal stores the digits that the float prints
        return float(stored) == given_value or np.float32(float(stored)) == np.float32(given_value)
    return Decimal(given_value) == Decimal(stored)


def _as_text(given_value: Any, stored: Any) -> bool:
    text, other = (given_value, stored) if isinstance(given_value, str) else (stored, given_value)
    match other:
        case str():
            return bool(text == other)
        case bool():
            return text.lower() in (("true", "1") if other else ("false", "0"))
        case float():
            return float(text) == other or np.float32(float(text)) == np.float32(other)
        case int() | Decimal():
            return Decimal(text) == Decimal(other)
        case datetime.datetime():
            shown = other.replace(tzinfo=None).isoformat(" ")
            digits = text.replace(".000000", "")
            return (
                digits == shown
                or datetime.datetime.fromisoformat(text) == other.replace(tzinfo=None)
                or _unix(text) == meaning(other)
            )
        case _:
            return datetime.datetime.fromisoformat(text).date() == other


def _unix(text: str) -> int | None:
    return int(text) * 1_000_000 if text.isdigit() else None


@settings(max_examples=600, deadline=None)
@given(data=st.data())
def test_what_is_stored_is_what_was_given(data: st.DataObject) -> None:
    source, target = (data.draw(st.sampled_from(NAMES), label=one) for one in ("from", "to"))
    some = data.draw(st.lists(values(source), min_size=1, max_size=6), label="values")
    have, want = TYPES[source], TYPES[target]
    array = pa.array(some, have.arrow)
    found = conversion(have, want)
    try:
        stored = store_column(array, have, want, Environment()).to_pylist()
    except DataError as error:
        if error.row is None:
            return  # the types do not convert at all
        assert found.kind in ("checked", "rounded")
        named = pa.array(some[error.row : error.row + 1], have.arrow)
        with pytest.raises(DataError):  # the row that the error names does not fit
            store_column(named, have, want, Environment())
        return
    except Error:
        return
    for value, kept in zip(some, stored, strict=True):
        if found.kind == "rounded":
            assert isinstance(want, Float)
        if source == "Float32":
            value = float(np.float32(value))
        if target == "String" and not isinstance(value, str):
            continue  # texts are checked by parsing them
        assert survived(value, kept, want), (value, kept)


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_keys_stay_apart_and_extremes_in_order(data: st.DataObject) -> None:
    source, target = (data.draw(st.sampled_from(NAMES), label=one) for one in ("from", "to"))
    some = data.draw(st.lists(values(source), min_size=2, max_size=6), label="values")
    have, want = TYPES[source], TYPES[target]
    pairs = []
    for value in some:
        try:
            one = store_column(pa.array([value], have.arrow), have, want, Environment())
        except Error:
            continue
        pairs.append((value, one[0].as_py()))
    if not conversion(have, want, "group").refused:
        assert len({repr(a) for a, _ in pairs}) == len({repr(b) for _, b in pairs})
    if not conversion(have, want, "max").refused and pairs:
        largest = max(a for a, _ in pairs)
        assert {repr(a): b for a, b in pairs}[repr(largest)] == max(b for _, b in pairs)


@pytest.fixture(scope="module")
def connection() -> olapdb.Connection:
    return olapdb.connect()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_ways_in_agree(connection: olapdb.Connection, data: st.DataObject) -> None:
    """Arrow, a list, `?` and INSERT SELECT all store the same values, or all refuse the rows."""
    target = data.draw(st.sampled_from(NAMES), label="to")
    source = data.draw(st.sampled_from(("Int64", "Float64", "Decimal(18, 6)", "Date32")))
    some = data.draw(st.lists(values(source), min_size=1, max_size=4), label="values")
    array = pa.array(some, TYPES[source].arrow)
    connection.execute("DROP TABLE IF EXISTS given")
    connection.execute(f"CREATE TABLE given (n UInt8, v {source}) ENGINE = MergeTree ORDER BY n")
    connection.insert("given", pa.table({"n": range(len(some)), "v": array}))
    outcomes = []
    for way in ("arrow", "list", "many", "select"):
        connection.execute("DROP TABLE IF EXISTS t")
        connection.execute(f"CREATE TABLE t (n UInt8, v {target}) ENGINE = MergeTree ORDER BY n")
        try:
            if way == "arrow":
                connection.insert("t", pa.table({"n": range(len(some)), "v": array}))
            elif way == "list":
                connection.insert("t", {"n": list(range(len(some))), "v": some})
            elif way == "many":
                rows = list(enumerate(some))
                connection.cursor().executemany("INSERT INTO t VALUES (?, ?)", rows)
            else:
                connection.execute("INSERT INTO t SELECT n, v FROM given ORDER BY n")
        except DataError as error:
            is_by_type = error.row is None or error.name == "TYPE_MISMATCH"
            outcomes.append("no conversion" if is_by_type else "refused")
            assert connection.execute("SELECT count() FROM t").fetchone()[0] == 0
            continue
        except Error:
            outcomes.append("no conversion")
            continue
        outcomes.append(repr(connection.execute("SELECT v FROM t ORDER BY n").fetchall()))
    if target != "String":  # Decimal(18, 6) and Python's Decimal print other digits
        assert len(set(outcomes)) == 1, outcomes
