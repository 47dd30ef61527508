"""A cursor that another thread fetches from says so, and loses no row of that thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

import olapdb
from olapdb.dbapi.cursor import Cursor, Row
from olapdb.errors import BadArguments, ProgrammingError

pytestmark = pytest.mark.feature("python", "concurrency")

ROWS = 1_000
FETCHES: dict[str, Callable[[Cursor], object]] = {
    "fetchone": Cursor.fetchone,
    "fetchmany": lambda cursor: cursor.fetchmany(10),
    "fetchall": Cursor.fetchall,
    "next": next,
    "for": list,
    "arrow": Cursor.fetch_arrow_table,
    "text": Cursor.fetch_text,
}


@pytest.fixture
def fetching() -> Iterator[tuple[Cursor, threading.Event, Future[list[Row]]]]:
    """A cursor whose later rows another thread waits for, until the event is set."""
    entered, go_on = threading.Event(), threading.Event()

    def waiting(number: int) -> int:
        if number == ROWS - 1:
            entered.set()
            assert go_on.wait(60)
        return number

    settings = {"max_threads": 1, "max_block_size": 10}
    with olapdb.connect(settings=settings) as connection, ThreadPoolExecutor() as pool:
        connection.create_function(
            "waiting", waiting, {"number": "UInt64"}, "UInt64", vectorized=False
        )
        cursor = connection.execute(f"SELECT waiting(number) FROM numbers({ROWS})")
        other = pool.submit(cursor.fetchall)
        try:
            assert entered.wait(60)
            yield cursor, go_on, other
        finally:
            go_on.set()


@pytest.mark.parametrize("fetch", FETCHES)
def test_a_fetch_beside_another_threads_says_what_to_do(
    fetching: tuple[Cursor, threading.Event, Future[list[Row]]], fetch: str
) -> None:
    cursor, go_on, other = fetching
    with pytest.raises(ProgrammingError, match="Another thread fetches") as refused:
        FETCHES[fetch](cursor)
    assert "connection.cursor()" in str(refused.value.hint)
    go_on.set()
    assert other.result() == [(number,) for number in range(ROWS)]
    assert cursor.fetchall() == []


def test_rows_stay_behind_a_loop_that_ends_early() -> None:
    with olapdb.connect() as connection:
        cursor = connection.execute("SELECT number FROM numbers(10)")
        for (number,) in cursor:
            if number == 3:
                break
        assert cursor.fetchone() == (4,)
        assert next(cursor) == (5,)
        assert [number for (number,) in cursor] == [6, 7, 8, 9]


def test_a_failing_value_is_not_taken_for_a_shared_cursor() -> None:
    def fails(number: int) -> int:
        raise ValueError("mine")

    with olapdb.connect() as connection:
        connection.create_function("fails", fails, {"number": "UInt64"}, "UInt64", vectorized=False)
        with pytest.raises(olapdb.Error, match="mine"):
            connection.execute("SELECT fails(number) FROM numbers(3)").fetchall()


@pytest.mark.parametrize("size", [-1, 1.5, "2"])
def test_fetchmany_takes_a_number_of_rows(size: int) -> None:
    with olapdb.connect() as connection:
        cursor = connection.execute("SELECT number FROM numbers(3)")
        with pytest.raises(BadArguments, match="number of rows"):
            cursor.fetchmany(size)
        assert cursor.fetchmany(np.int64(1)) == [(0,)]
        assert cursor.fetchmany(2**80) == [(1,), (2,)]
