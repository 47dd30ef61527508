"""Functions of the block that a query computes at once: its rows, its time, and waiting for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import ArgumentOutOfBound, BadArguments, IllegalTypeOfArgument, TooSlow
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import calendar, columns
from olapdb.functions.scalar import ScalarDefinition, constant_integer, constant_zone, custom
from olapdb.types import (
    UINT8,
    UINT64,
    DateTime,
    DateTime64,
    Float,
    Integer,
    is_nullable,
    make_nullable,
    plain,
)

SLEEP_SECONDS_MAX = 3
"""The longest wait for one block, as ClickHouse's function_sleep_max_microseconds_per_block."""


def _row_number(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve rowNumberInBlock(): the position of each row in its block, from 0."""

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return 0, 1, 2, … for the rows of the block."""
        return columns.from_values(np.arange(rows), pa.uint64())

    return ScalarCall(name, UINT64, kernel, "row")


def _block_number(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve blockNumber(): the number, from 0, of the block among those that this call has computed."""
    lock = threading.Lock()
    last: list[tuple[str, int]] = [("", 0)]  # the query that called last, and its next number

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the block's number for all rows; the first block of a query has 0."""
        with lock:
            query_id, following = last[0]
            number = following if query_id == environment.query_id else 0
            last[0] = (environment.query_id, number + 1)
        return columns.from_values(np.full(rows, number), pa.uint64())

    return ScalarCall(name, UINT64, kernel, "row")


def _now64_in_block(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve nowInBlock64([precision[, zone]]): the time at which each block is computed.

    Raises ArgumentOutOfBound."""
    precision = constant_integer(name, arguments, 0, "the precision") if arguments else 3
    if not 0 <= precision <= 9:
        raise ArgumentOutOfBound(f"The precision of {name} is 0 to 9, not {precision}.")
    zone = constant_zone(name, arguments, 1) if len(arguments) > 1 else None
    result = DateTime64(precision, zone)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the present time for all rows."""
        ticks = time.time_ns() * calendar.ticks_per_second(result) // 1_000_000_000
        now = calendar.cut_precision(np.full(rows, ticks), result)
        return columns.from_values(now, result.arrow)

    return ScalarCall(name, result, kernel, "row")


def _now_in_block(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve nowInBlock([zone]): the time at which each block is computed."""
    result = DateTime(constant_zone(name, arguments, 0) if arguments else None)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the present second for all rows."""
        return columns.from_values(np.full(rows, int(time.time())), result.arrow)

    return ScalarCall(name, result, kernel, "row")


def _sleep(*, each_row: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of sleep(seconds), or with `each_row` of sleepEachRow(seconds)."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; the seconds are a constant of at most `SLEEP_SECONDS_MAX` a block.

        Raises IllegalTypeOfArgument."""
        constant = arguments[0].constant
        number = None if constant is None else constant.as_py()
        if not isinstance(plain(arguments[0].type), Integer | Float) or number is None:
            raise IllegalTypeOfArgument(f"{name} takes a constant number of seconds.")
        if number < 0:
            wrong = IllegalTypeOfArgument if isinstance(number, int) else BadArguments
            raise wrong(f"{name} cannot wait {number} seconds: give a number from 0 on.")

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Wait once, or with `each_row` once for each row, then return 0 for all rows; a block without rows does
            not wait. Raises TooSlow."""
            seconds = number * (rows if each_row else 1) if rows else 0
            given = environment.setting("function_sleep_max_microseconds_per_block", "")
            most = int(given) / 1_000_000 if given else SLEEP_SECONDS_MAX
            if seconds < 0 or (most and seconds > most):
                raise TooSlow(
                    f"{name} waits at most {most:g} seconds a block, not {seconds}.",
                    hint="Read fewer rows, or wait less.",
                )
            time.sleep(seconds)
            return columns.from_values(np.zeros(rows), pa.uint8())

        nullable = is_nullable(arguments[0].type)
        return ScalarCall(name, make_nullable(UINT8) if nullable else UINT8, kernel, "row")

    return resolve


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("rowNumberInBlock", _row_number, count=0),
    custom("blockNumber", _block_number, count=0),
    custom("nowInBlock64", _now64_in_block, count=(0, 2)),
    custom("nowInBlock", _now_in_block, count=(0, 1)),
    custom("sleep", _sleep(each_row=False)),
    custom("sleepEachRow", _sleep(each_row=True)),
)
