"""Arrays made of buffers equal those of `pa.array`, errors included."""

import datetime
import subprocess
import sys
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import olapdb
from olapdb.errors import CannotConvertType
from olapdb.types import Date32, DateTime64
from olapdb.types.arrow_values import (
    VALUES_MAX_WITHOUT_PANDAS,
    array_of,
    from_numpy,
    packed,
    scalar_of,
    to_numpy,
)
from olapdb.types.python_values import python_values

pytestmark = pytest.mark.feature("functions")

TYPES = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
    *(pa.uint64(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary(), pa.date32()),
    *(pa.large_string(), pa.large_binary(), pa.timestamp("s"), pa.binary(2), pa.list_(pa.int8())),
    *(
        pa.timestamp("s", "UTC"),
        pa.timestamp("us", "Europe/Berlin"),
        pa.timestamp("ns"),
        pa.date64(),
    ),
    *(pa.duration("ms"), pa.time32("s"), pa.time64("us"), pa.decimal128(9, 2)),
    *(pa.decimal32(4, 1), pa.decimal64(18, 18), pa.decimal256(60, 3), pa.list_(pa.string())),
    *(pa.list_(pa.list_(pa.uint8())), pa.list_(pa.decimal128(4, 2))),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.integers(-130, 300),
    st.floats(),
    st.text(),
    st.just("\ud800"),
    st.binary(max_size=3),
    st.dates(),
    st.datetimes(),
    st.datetimes().map(lambda moment: moment.replace(microsecond=0)),
    st.datetimes(timezones=st.just(datetime.UTC)),
    st.decimals(-(10**6), 10**6, places=1),
    st.decimals(),
)
VALUES = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=3), st.lists(st.text(), max_size=3).map(tuple)
)


def outcome(make: object, values: list[object], arrow: pa.DataType) -> object:
    """Return the array, or the class of the error, that a function makes of the values."""
    try:
        array = make(values, arrow)  # type: ignore[operator]
        array.validate(full=True)
        return repr(array.to_pylist()), array.type, array.null_count
    except (pa.ArrowException, UnicodeError, TypeError, ValueError, OverflowError) as error:
        return type(error)


@given(st.lists(VALUES, max_size=4), st.sampled_from(TYPES))
def test_any_values(values: list[object], arrow: pa.DataType) -> None:
    """What is packed is what Arrow makes; what is not packed goes to Arrow."""
    array = packed(values, arrow)
    if array is not None:
        assert outcome(lambda *_: array, values, arrow) == outcome(pa.array, values, arrow)
    assert outcome(array_of, values, arrow) == outcome(pa.array, values, arrow)


@pytest.mark.parametrize(
    ("values", "arrow"),
    [
        ([1, None, -128], pa.int8()),
        ([True, None, False] * 5, pa.bool_()),
        (["a", None, "", "äß"], pa.string()),
        ([b"a", None, b"\xff"], pa.large_binary()),
        ([b"ab", None, b"\xff\0"], pa.binary(2)),
        ([1.5, None, float("-inf")], pa.float64()),
        ([3, None, -(2**53)], pa.float64()),
        ([3, None, 2**24], pa.float32()),
        ([datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)], pa.date32()),
        ([-719162, None, 2932896], pa.date32()),
        ([-1, None, 2**40], pa.timestamp("s", "UTC")),
        ([datetime.datetime(1969, 12, 31, 23, 59, 59), None], pa.timestamp("s")),
        ([datetime.datetime(2020, 1, 1, 0, 0, 0, 1, datetime.UTC)], pa.timestamp("us", "UTC")),
        ([Decimal("1.5"), None, Decimal("-0.25"), Decimal("1E2")], pa.decimal128(9, 2)),
        ([Decimal("-99.99"), None], pa.decimal64(4, 2)),
        ([["a", None], None, [], ["b"]], pa.list_(pa.string())),
        ([[[1], []], [], None], pa.list_(pa.list_(pa.uint8()))),
    ],
)
def test_values_of_one_class(values: list[object], arrow: pa.DataType) -> None:
    array = packed(values, arrow)
    assert array is not None
    array.validate(full=True)
    assert array.equals(pa.array(values, arrow))
    assert scalar_of(values[0], arrow).equals(pa.array(values[:1], arrow)[0])


@pytest.mark.parametrize(
    ("values", "arrow"), [([2**53 + 1], pa.float64()), ([2**24 + 1, 1], pa.float32())]
)
def test_integers_that_no_float_is_go_to_arrow(values: list[object], arrow: pa.DataType) -> None:
    assert packed(values, arrow) is None


def test_many_values() -> None:
    values = list(range(VALUES_MAX_WITHOUT_PANDAS + 1))
    assert array_of(values, pa.int32()).equals(pa.array(values, pa.int32()))


def test_pandas_is_not_imported() -> None:
    script = (
        "import pyarrow as pa, sys\n"
        "from olapdb.types.arrow_values import array_of\n"
        "for values, arrow in ([1, None], pa.int8()), (['a'], pa.string()), ([2.0], pa.float64()), ([2], pa.float64()):\n"
        "    array_of(values, arrow)\n"
        "for arrow in pa.date32(), pa.timestamp('s', 'UTC'):\n"
        "    array_of([1, None], arrow)\n"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


NUMBERS = st.sampled_from(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "?"])


@given(st.lists(st.integers(0, 100), max_size=20), NUMBERS, st.integers(0, 20), st.booleans())
def test_numpy_to_arrow_and_back(numbers: list[int], dtype: str, start: int, masked: bool) -> None:
    values = np.array(numbers).astype(dtype)[start:]
    null = values > 50 if masked else None
    array = from_numpy(values, null)
    array.validate(full=True)
    assert array.equals(pa.array(values, mask=null))
    for part in (array, array[1:], array[3:5]):
        expected = part.to_numpy(zero_copy_only=False)
        found = to_numpy(part)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    chunks = pa.chunked_array([array, array])
    np.testing.assert_array_equal(to_numpy(chunks), chunks.to_numpy())
    reversed_values = values[::-1]  # not contiguous
    assert from_numpy(reversed_values).equals(pa.array(reversed_values))


def test_aware_datetimes_are_those_of_arrow() -> None:
    """They are made without `to_pylist` of a type with a zone, which imports pandas."""
    for zone in ("UTC", "Europe/Berlin", "America/New_York", "+05:30", "-01:00"):
        for unit, ticks in (("s", 1), ("ms", 1_000), ("us", 1_000_000)):
            autumn = [1698534000 * ticks + step * 600 * ticks for step in range(30)]
            moments = pa.array([None, -1, *autumn], pa.int64()).cast(pa.timestamp(unit, zone))
            values = python_values(moments, DateTime64(0, zone))
            assert values == moments.to_pylist()
            assert [getattr(v, "fold", None) for v in values] == [
                getattr(v, "fold", None) for v in moments.to_pylist()
            ]


ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "+05:30", "Etc/GMT+12")


@given(
    st.lists(
        st.none() | st.integers(-62_135_596_800, 253_402_300_799) | st.integers(0, 2_200_000_000),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from(["s", "ms", "us"]),
    st.sampled_from(ZONES),
)
def test_datetimes_are_those_of_python(seconds: list[int | None], unit: str, name: str) -> None:
    precision = {"s": 0, "ms": 3, "us": 6}[unit]
    ticks = [None if s is None else s * 10**precision + precision for s in seconds]
    column = pa.array(ticks, pa.int64()).cast(pa.timestamp(unit, name))
    zone = datetime.datetime.strptime(name, "%z").tzinfo if name[0] == "+" else ZoneInfo(name)
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    fraction = datetime.timedelta(microseconds=precision * 10 ** (6 - precision))
    try:
        expected = [
            None
            if s is None
            else (start + datetime.timedelta(seconds=s)).astimezone(zone) + fraction
            for s in seconds
        ]
    except OverflowError:
        with pytest.raises(CannotConvertType):
            python_values(column, DateTime64(precision, name))
        return
    aware = python_values(column, DateTime64(precision, name))
    assert aware == expected
    assert [m and m.utcoffset() for m in aware] == [m and m.utcoffset() for m in expected]
    naive = python_values(column, DateTime64(precision))
    assert naive == [m and m.replace(tzinfo=None) for m in aware]
    assert [m and m.fold for m in naive] == [m and m.fold for m in aware]


@given(st.lists(st.none() | st.dates()))
def test_dates_are_those_of_python(days: list[datetime.date | None]) -> None:
    assert python_values(pa.array(days, pa.date32()), Date32()) == days


@pytest.mark.parametrize("day", [-719_163, 2_932_897])
def test_a_date_that_python_lacks_is_an_error(day: int) -> None:
    column = pa.array([0, day], pa.int32()).cast(pa.date32())
    with pytest.raises(CannotConvertType, match="toString"):
        python_values(column, Date32())


def test_keys_of_maps_can_be_keys_of_a_dict() -> None:
    with olapdb.connect() as connection:
        query = "SELECT map([1, 2], 3), map((1, [2]), 3), map(map(1, 2), 3)"
        assert connection.execute(query).fetchall() == [
            ({(1, 2): 3}, {(1, (2,)): 3}, {((1, 2),): 3})
        ]
