"""Types that hash functions refuse; tests/oracle/features/hashes.sql has the values of others."""

from __future__ import annotations

import pytest

import olapdb

pytestmark = pytest.mark.feature("functions")


def test_arrays_and_decimals_are_refused() -> None:
    connection = olapdb.connect()
    for argument in ("[1, 2]", "toDecimal32(1, 2)"):
        with pytest.raises(olapdb.errors.IllegalTypeOfArgument, match="cityHash64"):
            connection.execute(f"SELECT cityHash64({argument})")
    connection.close()
