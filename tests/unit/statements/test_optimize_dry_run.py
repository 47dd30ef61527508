"""OPTIMIZE … DRY RUN, and MODIFY SETTING of what a table has already."""

from __future__ import annotations

import pytest

import olapdb
from olapdb.errors import BadArguments, ReadonlySetting

pytestmark = pytest.mark.feature("engines", "schema")


def test_a_dry_run_merges_parts_and_keeps_nothing() -> None:
    with olapdb.connect(":memory:") as connection:
        connection.execute(
            "CREATE TABLE t (k Int8, p Int8) ENGINE = MergeTree PARTITION BY p ORDER BY k"
        )
        connection.execute("SYSTEM STOP MERGES")
        for row in ((1, 1), (1, 1), (2, 2)):
            connection.execute(f"INSERT INTO t VALUES {row}")
        before = connection.execute(
            "SELECT name FROM system.parts WHERE active ORDER BY name"
        ).fetchall()
        first, second, other = (name for (name,) in before)
        connection.execute(f"OPTIMIZE TABLE t DRY RUN PARTS '{first}', '{second}'")
        connection.execute(
            f"OPTIMIZE TABLE t DRY RUN PARTS '{first}', '{first}' DEDUPLICATE BY k, p"
        )
        with pytest.raises(BadArguments, match="one partition"):
            connection.execute(f"OPTIMIZE TABLE t DRY RUN PARTS '{first}', '{other}'")
        after = connection.execute(
            "SELECT name FROM system.parts WHERE active ORDER BY name"
        ).fetchall()
    assert after == before


def test_a_fixed_setting_may_be_set_to_what_it_is() -> None:
    with olapdb.connect(":memory:") as connection:
        connection.execute("CREATE TABLE t (k Int8) ORDER BY k SETTINGS index_granularity = 100")
        connection.execute("ALTER TABLE t MODIFY SETTING index_granularity = 100")
        with pytest.raises(ReadonlySetting):
            connection.execute("ALTER TABLE t MODIFY SETTING index_granularity = 200")
