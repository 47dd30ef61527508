"""Functions of texts never prune by a sorting key: the order of texts is not that of their values."""

from __future__ import annotations

import pytest

import olapdb

pytestmark = pytest.mark.feature("functions", "engines")


@pytest.mark.parametrize(
    ("date", "text"),
    [
        ("2024-01-01", "20240101"),
        ("2024-01-02", "2024-01-02"),
        ("2024-01-03", "20240103"),
        ("2024-01-05", "2024-01-05"),
    ],
)
def test_unix_timestamps_of_a_text_key_are_all_found(date: str, text: str) -> None:
    """Bytewise `2024-01-05` comes before `20240101`."""
    connection = olapdb.connect()
    connection.execute(
        "CREATE TABLE t (s String) ENGINE = MergeTree ORDER BY s SETTINGS index_granularity = 1"
    )
    connection.execute(
        "INSERT INTO t VALUES ('2024-01-02'), ('20240101'), ('2024-01-05'), ('20240103')"
    )
    condition = f"toUnixTimestamp(s) = toUnixTimestamp('{date}')"
    assert connection.execute(f"SELECT s FROM t WHERE {condition}").fetchall() == [(text,)]
    connection.close()
