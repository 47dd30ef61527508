"""What hash functions refuse; tests/sql/value_hashes.slt has the values of others."""

from __future__ import annotations

import pytest

import olapdb

pytestmark = pytest.mark.feature("functions")


def test_states_of_aggregates_are_refused() -> None:
    connection = olapdb.connect()
    for argument in ("sumState(1)", "[sumState(1)]", "tuple(1, sumState(1))"):
        with pytest.raises(olapdb.errors.IllegalTypeOfArgument, match="cityHash64"):
            connection.execute(f"SELECT cityHash64({argument})")
    connection.close()


def test_farm_hash_refuses_texts_whose_hash_depends_on_the_processor() -> None:
    connection = olapdb.connect()
    connection.execute("SELECT farmHash64(repeat('a', 511))").fetchall()
    with pytest.raises(olapdb.errors.UnsupportedMethod, match="512"):
        connection.execute("SELECT farmHash64(repeat('a', 512))").fetchall()
    connection.close()
