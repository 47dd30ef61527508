"""A query that must read slowly still ends at its time limit."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.errors import TimeoutExceeded

pytestmark = pytest.mark.feature("select", "settings")


def test_a_wait_for_the_speed_limit_ends_at_the_time_limit() -> None:
    """At one row a second, the wait would take a day."""
    with olapdb.connect() as connection:
        connection.execute("CREATE TABLE t (k UInt64) ENGINE = MergeTree ORDER BY k")
        connection.execute("INSERT INTO t SELECT number FROM numbers(100000)")
        with pytest.raises(TimeoutExceeded, match=r"max_execution_time is 0\.3"):
            connection.execute(
                "SELECT sum(k) FROM t WHERE k % 3 = 0"
                " SETTINGS max_execution_speed = 1, max_execution_time = 0.3"
            ).fetchall()
