"""Classes whose literals, types and expected values are PostgreSQL's."""

from __future__ import annotations

from typing import ClassVar

import pytest
from dbt.tests.adapter.store_test_failures_tests.test_store_test_failures import (
    BaseStoreTestFailures,
)
from dbt.tests.adapter.unit_testing.test_types import BaseUnitTestingTypes
from dbt.tests.adapter.utils.data_types.test_type_bigint import BaseTypeBigInt
from dbt.tests.adapter.utils.data_types.test_type_timestamp import BaseTypeTimestamp
from dbt.tests.adapter.utils.test_date_spine import BaseDateSpine
from dbt.tests.adapter.utils.test_dateadd import BaseDateAdd
from dbt.tests.adapter.utils.test_get_intervals_between import BaseGetIntervalsBetween
from dbt.tests.adapter.utils.test_timestamps import BaseCurrentTimestamps

from tests.contract.dbt.suite.translation import Rules

pytestmark = pytest.mark.feature("dbt")


class TestStoreTestFailures(BaseStoreTestFailures):
    rules: ClassVar[Rules] = (
        (r"n_records: bigint", "n_records: UInt64"),
        # An alias of the SELECT hides the column in ClickHouse's WHERE.
        (r"(select null as id.*?\n)where id in", r"\1where people.id in"),
    )


class TestUnitTestingTypes(BaseUnitTestingTypes):
    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [
            ["1", "1"],
            ["'1'", "1"],
            ["true", "true"],
            ["toDate('2020-01-02')", "2020-01-02"],
            ["toDateTime('2013-11-03 00:00:00')", "2013-11-03 00:00:00"],
            ["toDateTime64('2013-11-03 00:00:00.5', 6, 'UTC')", "2013-11-03 00:00:00.5"],
            ["toDecimal64('1', 4)", "1"],
            ["""'{"bar": "baz", "balance": 7.77}'""", """'{"bar": "baz", "balance": 7.77}'"""],
        ]


class TestTypeBigInt(BaseTypeBigInt):
    rules: ClassVar[Rules] = ((r"select (9223372036854775800)", r"select toInt64(\1)"),)


class TestTypeTimestamp(BaseTypeTimestamp):
    rules: ClassVar[Rules] = ((r"timestamp_col: timestamp", "timestamp_col: DateTime64(6)"),)


class TestDateAdd(BaseDateAdd):
    # The seed has an empty time.
    rules: ClassVar[Rules] = ((r"(from_time|result): timestamp", r"\1: Nullable(DateTime)"),)


class TestDateSpine(BaseDateSpine):
    rules: ClassVar[Rules] = (
        (r"select ('2023-09-\d\d') as expected", r"select toDate(\1) as expected"),
    )


class TestGetIntervalsBetween(BaseGetIntervalsBetween):
    rules: ClassVar[Rules] = ((r"'(\d\d)/(\d\d)/(\d{4})'", r"'\3-\1-\2'"),)


class TestCurrentTimestamps(BaseCurrentTimestamps):
    @pytest.fixture(scope="class")
    def expected_schema(self) -> dict[str, str]:
        return dict.fromkeys(
            (
                "current_timestamp",
                "current_timestamp_in_utc_backcompat",
                "current_timestamp_backcompat",
            ),
            "DateTime",
        )

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return """
            select now() as current_timestamp,
                current_timestamp::timestamp as current_timestamp_in_utc_backcompat,
                current_timestamp::timestamp as current_timestamp_backcompat
        """
