"""Incremental models: types, literals and names of functions are PostgreSQL's."""

from __future__ import annotations

from typing import ClassVar

import pytest
from dbt.tests.adapter.basic.test_incremental import BaseIncrementalNotSchemaChange
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import (
    BaseIncrementalOnSchemaChange,
)
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey
from dbt.tests.adapter.utils.test_dateadd import BaseDateAdd

from tests.contract.dbt.suite.translation import Rules

pytestmark = pytest.mark.feature("dbt")


class TestNotSchemaChange(BaseIncrementalNotSchemaChange):
    rules: ClassVar[Rules] = ((r"\|\| current_timestamp", "|| toString(now64(6))"),)


class TestUniqueKey(BaseIncrementalUniqueKey):
    # In a UNION, a string is no date.
    rules: ClassVar[Rules] = ((r"(select '.*,)('\d{4}-\d\d-\d\d')", r"\1toDate(\2)"),)


class TestOnSchemaChange(BaseIncrementalOnSchemaChange):
    # Older rows have NULL in a new column if its type has NULL.
    rules: ClassVar[Rules] = (
        (r"string_type = dbt.type_string\(\)", "string_type = 'Nullable(String)'"),
    )


class TestMicrobatch(BaseMicrobatch):
    rules: ClassVar[Rules] = ((r"TIMESTAMP '([\d: -]+)-0'", r"toDateTime('\1')"),)


class TestDateAdd(BaseDateAdd):
    # The seed has an empty time.
    rules: ClassVar[Rules] = ((r"(from_time|result): timestamp", r"\1: Nullable(DateTime)"),)
