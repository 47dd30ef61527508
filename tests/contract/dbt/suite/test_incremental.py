"""Incremental models: PostgreSQL's strings where a date is meant, its types, its functions."""

from __future__ import annotations

from typing import ClassVar

import pytest
from dbt.tests.adapter.basic.test_incremental import BaseIncrementalNotSchemaChange
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import (
    BaseMergeExcludeColumns,
)
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import (
    BaseIncrementalOnSchemaChange,
)
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey

from tests.contract.dbt.suite.translation import Rules

pytestmark = pytest.mark.feature("dbt")


class TestNotSchemaChange(BaseIncrementalNotSchemaChange):
    rules: ClassVar[Rules] = ((r"current_timestamp", "now()"),)


class TestUniqueKey(BaseIncrementalUniqueKey):
    rules: ClassVar[Rules] = ((r",'(\d{4}-\d\d-\d\d)'", r",toDate('\1')"),)


class TestOnSchemaChange(BaseIncrementalOnSchemaChange):
    # NULL in a column is cast to it.
    rules: ClassVar[Rules] = ((r"dbt\.type_string\(\)", "'Nullable(String)'"),)


class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    pass
