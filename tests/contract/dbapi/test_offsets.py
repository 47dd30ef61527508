"""Source offsets: a table's positions in the streams that feed it, in the same commit as its
rows."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.errors import BadArguments, Error, OffsetHole
from olapdb.result import InsertedRows

pytestmark = [
    pytest.mark.warehouse(
        "CREATE TABLE orders (id Int64, amount Int64) ENGINE = MergeTree ORDER BY id",
        "CREATE TABLE total (amount Int64) ENGINE = SummingMergeTree ORDER BY tuple()",
        "CREATE MATERIALIZED VIEW total_mv TO total AS SELECT sum(orders.amount) AS amount FROM orders",
    ),
    pytest.mark.feature("python"),
]


def send(connection: Connection, first: int, after: int, **more: Any) -> InsertedRows:
    ids = list(range(first, after))
    more.setdefault("offsets", {"orders-0": (first, after)})
    return connection.insert("orders", {"id": ids, "amount": ids}, **more)


def ask(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.execute(query).fetchall()]


def positions(connection: Connection) -> dict[str, int]:
    return dict(ask(connection, "SELECT stream, position FROM system.source_offsets"))


def check(connection: Connection, ids: range) -> None:
    assert ask(connection, "SELECT count(), sum(id) FROM orders") == [(len(ids), sum(ids))]
    assert ask(connection, "SELECT sum(amount) FROM total") == [(sum(ids),)]


def test_a_stream_begins_anywhere_and_goes_on_where_it_ended(connection: Connection) -> None:
    done = send(connection, 4711, 4731, token="batch-17")
    assert (done, done.duplicate) == (20, False)
    assert done.commit is not None
    assert send(connection, 4731, 4740) == 9
    assert positions(connection) == {"orders-0": 4740}
    check(connection, range(4711, 4740))


def test_what_was_there_before_changes_nothing(connection: Connection) -> None:
    send(connection, 0, 5)
    send(connection, 5, 9)
    commits = ask(connection, "SELECT count() FROM system.snapshots")
    for first, after in ((5, 9), (0, 5), (2, 4), (8, 9)):
        done = send(connection, first, after)
        assert (done, done.duplicate, done.commit) == (0, True, None)
    assert ask(connection, "SELECT count() FROM system.snapshots") == commits
    check(connection, range(9))


def test_a_hole_names_the_stream_and_what_is_missing(connection: Connection) -> None:
    send(connection, 0, 5)
    with pytest.raises(
        OffsetHole,
        match=r"Stream orders-0 of default.orders stands at 5, the INSERT"
        r" begins at 8: 3 are missing.*send from 5 on.*OFFSET_HOLE",
    ):
        send(connection, 8, 10)
    with pytest.raises(OffsetHole, match="from 3 to 7: a part of it is there"):
        send(connection, 3, 7)
    check(connection, range(5))
    assert positions(connection) == {"orders-0": 5}


def test_streams_are_judged_together(connection: Connection) -> None:
    send(connection, 0, 4, offsets={"a": (0, 2), "b": (10, 12)})
    assert send(connection, 0, 4, offsets={"b": (10, 12), "a": (0, 2)}).duplicate
    with pytest.raises(OffsetHole, match="what the INSERT brings of a, but not of b, c"):
        send(connection, 4, 8, offsets={"a": (0, 2), "b": (12, 13), "c": (0, 1)})
    assert send(connection, 4, 8, offsets={"a": (2, 4), "c": (7, 9)}) == 4
    assert positions(connection) == {"a": 4, "b": 12, "c": 9}
    check(connection, range(8))


def test_the_system_table_says_who_brought_it_there(connection: Connection) -> None:
    done = send(connection, 0, 3, token="batch-1")
    found = ask(
        connection,
        "SELECT database, table, stream, position, commit, token, time > now() - 60"
        " FROM system.source_offsets",
    )
    assert found == [("default", "orders", "orders-0", 3, done.commit, "batch-1", True)]


def test_positions_are_as_old_as_the_rows_that_a_query_reads(connection: Connection) -> None:
    first = send(connection, 0, 3)
    send(connection, 3, 9)
    past = f"SETTINGS snapshot = {first.commit}"
    assert ask(connection, f"SELECT count() FROM orders {past}") == [(3,)]
    assert ask(connection, f"SELECT position FROM system.source_offsets {past}") == [(3,)]


def test_in_sql(connection: Connection) -> None:
    def insert(first: int, after: int) -> Any:
        offsets = json.dumps({"orders-0": [first, after]})
        return connection.execute(
            f"INSERT INTO orders SELECT number, number FROM numbers({first}, {after - first})"
            f" SETTINGS source_offsets = '{offsets}'"
        )

    assert insert(0, 4).rowcount == 4
    again = insert(0, 4)
    assert (again.rowcount, again.statistics.duplicate_inserts) == (0, 1)
    with pytest.raises(OffsetHole):
        insert(9, 10)
    connection.execute(
        "INSERT INTO orders SETTINGS source_offsets = '{\"orders-0\": [4, 5]}' VALUES (4, 4)"
    )
    check(connection, range(5))


def test_a_stream_that_brought_no_rows_moves_too(connection: Connection) -> None:
    """All events were filtered out before the INSERT."""
    done = connection.insert("orders", {"id": [], "amount": []}, offsets={"orders-0": (0, 50)})
    assert (done, done.duplicate) == (0, False)
    assert positions(connection) == {"orders-0": 50}
    assert ask(connection, "SELECT verdict FROM system.views") == [("covered",)]


def test_a_failed_insert_moves_nothing(connection: Connection) -> None:
    connection.execute("CREATE TABLE picky (n Int64) ENGINE = MergeTree ORDER BY n")
    connection.execute(
        "CREATE MATERIALIZED VIEW picky_mv TO picky AS"
        " SELECT throwIf(orders.amount > 3) + 1 AS n FROM orders"
    )
    with pytest.raises(Error):
        send(connection, 0, 10)
    assert positions(connection) == {}
    assert send(connection, 0, 3) == 3


@pytest.mark.parametrize("block_rows", [1, 3, 1_000])
def test_a_retry_that_is_cut_differently_is_one_duplicate(
    connection: Connection, block_rows: int
) -> None:
    """A retry is recognized by its token, by its offsets or by both, and the view counts it
    once."""
    connection.execute("SET max_insert_block_size = 4")
    send(connection, 0, 10, offsets=None, token="t")
    send(connection, 10, 20)
    send(connection, 20, 30, token="u")
    connection.execute(f"SET max_insert_block_size = {block_rows}")
    assert send(connection, 0, 10, offsets=None, token="t").duplicate
    assert send(connection, 10, 20).duplicate
    assert send(connection, 20, 30, token="u").duplicate
    assert send(connection, 20, 30).duplicate
    check(connection, range(30))


def test_a_known_token_moves_no_stream(connection: Connection) -> None:
    send(connection, 0, 5, token="t")
    assert send(connection, 5, 9, token="t").duplicate
    assert positions(connection) == {"orders-0": 5}


def test_offsets_go_with_the_table(connection: Connection) -> None:
    send(connection, 0, 5)
    connection.execute("DROP VIEW total_mv")
    connection.execute("RENAME TABLE orders TO moved")
    connection.execute(
        "CREATE TABLE orders (id Int64, amount Int64) ENGINE = MergeTree ORDER BY id"
    )
    send(connection, 70, 75)
    connection.execute("EXCHANGE TABLES orders AND moved")
    assert ask(connection, "SELECT table, position FROM system.source_offsets ORDER BY table") == [
        ("moved", 75),
        ("orders", 5),
    ]
    assert send(connection, 0, 5).duplicate
    connection.execute("DROP TABLE orders")
    connection.execute(
        "CREATE TABLE orders (id Int64, amount Int64) ENGINE = MergeTree ORDER BY id"
    )
    assert send(connection, 0, 5) == 5


def test_truncate_forgets_what_was_delivered(connection: Connection) -> None:
    send(connection, 0, 5, token="t")
    connection.execute("TRUNCATE TABLE orders")
    assert positions(connection) == {}
    done = send(connection, 0, 5, token="t")
    assert (done, done.duplicate) == (5, False)


def test_offsets_survive_a_restart(tmp_path: Path) -> None:
    with olapdb.connect(tmp_path) as connection:
        connection.execute(
            "CREATE TABLE orders (id Int64, amount Int64) ENGINE = MergeTree ORDER BY id"
        )
        send(connection, 0, 5)
    with olapdb.connect(tmp_path) as connection:
        assert send(connection, 0, 5).duplicate
        assert send(connection, 5, 6) == 1
    with olapdb.connect(tmp_path, read_only=True) as connection:
        assert positions(connection) == {"orders-0": 6}


@pytest.mark.parametrize(
    "offsets",
    [
        {"": (0, 1)},
        {1: (0, 1)},
        {"s": (1, 1)},
        {"s": (2, 1)},
        {"s": (-1, 1)},
        {"s": 5},
        {"s": (1, 2, 3)},
        {"s": "12"},
        {"s": (0.0, 1)},
        {"s": (False, True)},
        {"s": (0, 1 << 63)},
        [("s", (0, 1))],
        {"s" * 1_001: (0, 1)},
    ],
)
def test_offsets_that_say_nothing_are_refused(connection: Connection, offsets: Any) -> None:
    with pytest.raises(BadArguments):
        send(connection, 0, 5, offsets=offsets)
    assert ask(connection, "SELECT count() FROM orders") == [(0,)]


@pytest.mark.parametrize(
    "text", ["{", "[1]", '{"s": [0, 1], "s": [1, 2]}', '{"s": 1}', '{"s": ["a", 1]}']
)
def test_the_setting_is_json(connection: Connection, text: str) -> None:
    with pytest.raises(BadArguments, match="orders-0"):
        connection.execute(f"INSERT INTO orders SETTINGS source_offsets = '{text}' VALUES (1, 1)")


def test_what_an_insert_answers_is_a_number() -> None:
    done = InsertedRows(3, duplicates_dropped=2, commit=7)
    copy = pickle.loads(pickle.dumps(done))
    assert (copy, copy.duplicates_dropped, copy.commit, copy.duplicate) == (3, 2, 7, False)
    assert f"{done}" == "3"
    assert done + 1 == 4
