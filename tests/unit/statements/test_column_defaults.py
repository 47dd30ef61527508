"""Defaults that CREATE TABLE refuses."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.errors import NotSupportedError

pytestmark = pytest.mark.feature("schema")


@pytest.mark.parametrize("default", ["rowNumberInAllBlocks()", "row_number() OVER ()"])
def test_a_default_with_a_window_function_is_refused_at_create(default: str) -> None:
    with olapdb.connect(":memory:") as connection:
        with pytest.raises(NotSupportedError, match="column b has a window function"):
            connection.execute(
                f"CREATE TABLE numbered (a UInt8, b UInt64 DEFAULT {default})"
                " ENGINE = MergeTree ORDER BY a"
            )
        connection.execute("CREATE TABLE numbered (a UInt8) ENGINE = MergeTree ORDER BY a")
