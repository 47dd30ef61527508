"""Snapshots: tables of sources and of expected versions have PostgreSQL's types and functions."""

from __future__ import annotations

from typing import ClassVar

import pytest
from dbt.tests.adapter.simple_snapshot.new_record_check_mode import BaseSnapshotNewRecordCheckMode
from dbt.tests.adapter.simple_snapshot.new_record_dbt_valid_to_current import (
    BaseSnapshotNewRecordDbtValidToCurrent,
)
from dbt.tests.adapter.simple_snapshot.new_record_timestamp_mode import (
    BaseSnapshotNewRecordTimestampMode,
)
from dbt.tests.adapter.simple_snapshot.test_ephemeral_snapshot_hard_deletes import (
    BaseSnapshotEphemeralHardDeletes,
    BaseSnapshotNewColumnSpecificCheckCols,
    BaseSnapshotNewColumnTimestampStrategy,
    BaseSnapshotNewColumnWithDeletes,
)
from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot, BaseSnapshotCheck
from dbt.tests.adapter.simple_snapshot.test_various_configs import (
    BaseSnapshotColumnNames,
    BaseSnapshotColumnNamesFromDbtProject,
    BaseSnapshotDbtValidToCurrent,
    BaseSnapshotInvalidColumnNames,
    BaseSnapshotMultiUniqueKey,
)

from tests.contract.dbt.suite.translation import Rules

pytestmark = pytest.mark.feature("dbt")

TIME = "Nullable(DateTime64(6))"
SNAPSHOT_SQL: Rules = (
    # Names have two levels.
    (r"\{database\}\.|\bolapdb\.(?=test\d)", ""),
    (r"\{\{ ?target.database ?\}\}\.", ""),
    # Columns without NOT NULL may have NULL there.
    (r"varchar\(\d+\)", "Nullable(String)"),
    (r"(\w+\s+)timestamp( without time zone)?([,)\n])", rf"\1{TIME}\3"),
    (r"null::timestamp", f"cast(null as {TIME})"),
    (r"md5\((.*)\) as", r"lower(hex(MD5(\1))) as"),
    (r"date\('9999-12-31'\)", "toDateTime64('2299-12-31 00:00:00', 6)"),
    (r"date\('2099-12-31'\)", "toDateTime64('2099-12-31 00:00:00', 6)"),
)
# Names of columns are case-sensitive; PostgreSQL folds them.
LOWER_CASE: Rules = (*SNAPSHOT_SQL, (r"TEST_VALID_TO", "test_valid_to"))
# The test takes rows by their number: first versions by id, then second ones, as PostgreSQL has them.
IN_ORDER: Rules = (
    *LOWER_CASE,
    (
        r"(select id, test_scd_id, test_valid_to from \{schema\}.snapshot_actual)",
        r"\1 order by row_number() over (partition by id order by test_valid_from), id",
    ),
)


class Translated:
    rules: ClassVar[Rules] = SNAPSHOT_SQL


class TestSimpleSnapshot(Translated, BaseSimpleSnapshot):
    pass


class TestCheck(Translated, BaseSnapshotCheck):
    pass


class TestNewRecordCheckMode(Translated, BaseSnapshotNewRecordCheckMode):
    pass


class TestNewRecordTimestampMode(Translated, BaseSnapshotNewRecordTimestampMode):
    pass


class TestNewRecordValidToCurrent(Translated, BaseSnapshotNewRecordDbtValidToCurrent):
    pass


class TestEphemeralHardDeletes(Translated, BaseSnapshotEphemeralHardDeletes):
    pass


class TestNewColumnSpecificCheckCols(Translated, BaseSnapshotNewColumnSpecificCheckCols):
    pass


class TestNewColumnTimestampStrategy(Translated, BaseSnapshotNewColumnTimestampStrategy):
    pass


class TestNewColumnWithDeletes(Translated, BaseSnapshotNewColumnWithDeletes):
    pass


class TestColumnNames(Translated, BaseSnapshotColumnNames):
    pass


class TestColumnNamesFromDbtProject(BaseSnapshotColumnNamesFromDbtProject):
    rules: ClassVar[Rules] = LOWER_CASE


class TestInvalidColumnNames(BaseSnapshotInvalidColumnNames):
    rules: ClassVar[Rules] = LOWER_CASE


class TestValidToCurrent(BaseSnapshotDbtValidToCurrent):
    rules: ClassVar[Rules] = IN_ORDER


class TestMultiUniqueKey(Translated, BaseSnapshotMultiUniqueKey):
    pass
