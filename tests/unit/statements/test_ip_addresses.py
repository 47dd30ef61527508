"""IPv4 and IPv6 where the answers of tests/sql/ip_addresses.slt cannot show them: Python's and Arrow's
values, parameters, pruning, deduplication, and parts after a restart."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pyarrow as pa
import pytest

import olapdb
from olapdb.errors import CannotParseIPv4, CannotParseIPv6

pytestmark = pytest.mark.feature("types", "python")

ONE, OTHER, V6 = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2"), IPv6Address("2001:db8::1")
CREATE = "CREATE TABLE t (k UInt32, a IPv4, b Nullable(IPv6)) ENGINE = MergeTree ORDER BY {key}"


def test_values_of_python_and_arrow_survive_a_restart(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path) as connection:
        connection.execute(CREATE.format(key="a"))
        connection.execute("INSERT INTO t VALUES (?, ?, ?)", (1, OTHER, V6))
        connection.execute("INSERT INTO t VALUES (2, '10.0.0.1', NULL)")
    with olapdb.connect(tmp_path) as connection:
        rows = connection.execute("SELECT * FROM t ORDER BY k").fetchall()
        assert rows == [(1, OTHER, V6), (2, ONE, None)]
        found = connection.execute("SELECT k FROM t WHERE a = ? AND b = ?", (OTHER, V6)).fetchall()
        assert found == [(1,)]
        table = connection.execute("SELECT a, b FROM t ORDER BY k").fetch_arrow_table()
        assert table.schema.types == [pa.uint32(), pa.binary(16)]
        assert table.column("a").to_pylist() == [int(OTHER), int(ONE)]
        assert table.column("b").to_pylist() == [V6.packed, None]


def test_nested_values() -> None:
    with olapdb.connect() as connection:
        query = (
            "SELECT [toIPv4('10.0.0.1')], (toIPv6('2001:db8::1'), 1), map('x', toIPv4('10.0.0.2'))"
        )
        assert connection.execute(query).fetchone() == ([ONE], (V6, 1), {"x": OTHER})


def test_parts_and_granules_are_skipped_by_bounds_and_key() -> None:
    with olapdb.connect() as connection:
        connection.execute(CREATE.format(key="a") + " SETTINGS index_granularity = 10")
        for start in (0, 1_000):
            connection.execute(
                f"INSERT INTO t SELECT number, toIPv4(toUInt32(number + {start})), NULL"
                " FROM numbers(100)"
            )
        explained = connection.execute(
            "EXPLAIN indexes = 1 SELECT k FROM t WHERE a = '0.0.3.233'"
        ).fetchall()
        text = "\n".join(str(row[0]) for row in explained)
        assert "Parts: 1/2" in text
        assert "Granules: 1/" in text


def test_a_delivery_is_known_by_its_address() -> None:
    with olapdb.connect() as connection:
        connection.execute(CREATE.format(key="k") + " SETTINGS deduplicate_by = 'a, b'")
        for address in ("10.0.0.1", "10.0.0.1", "10.0.0.2"):
            connection.execute("INSERT INTO t VALUES (1, ?, '::1')", (address,))
        assert connection.execute("SELECT count() FROM t").fetchone() == (2,)


@pytest.mark.parametrize(
    ("values", "error"),
    [("(1, '10.0.0.256', NULL)", CannotParseIPv4), ("(1, '10.0.0.1', ':::')", CannotParseIPv6)],
)
def test_a_text_that_is_no_address_is_refused(values: str, error: type[Exception]) -> None:
    with olapdb.connect() as connection:
        connection.execute(CREATE.format(key="k"))
        with pytest.raises(error):
            connection.execute(f"INSERT INTO t VALUES {values}")
        assert connection.execute("SELECT count() FROM t").fetchone() == (0,)
