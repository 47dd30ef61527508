"""Contracts and constraints: types, expected statements and messages are PostgreSQL's."""

from __future__ import annotations

from typing import ClassVar

import pytest
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintQuotedColumn,
    BaseConstraintsRollback,
    BaseConstraintsRuntimeDdlEnforcement,
    BaseIncrementalConstraintsColumnsEqual,
    BaseIncrementalConstraintsRollback,
    BaseIncrementalConstraintsRuntimeDdlEnforcement,
    BaseIncrementalContractSqlHeader,
    BaseModelConstraintsRuntimeEnforcement,
    BaseTableConstraintsColumnsEqual,
    BaseTableContractSqlHeader,
    BaseViewConstraintsColumnsEqual,
)

from tests.contract.dbt.suite.translation import Rules

pytestmark = pytest.mark.feature("dbt")

TYPES: Rules = (
    (r"data_type: integer", "data_type: UInt8"),
    (r"data_type: text", "data_type: String"),
)


class ColumnsEqual:
    """Pairs of a SQL value and its type, of our types."""

    rules: ClassVar[Rules] = TYPES

    @pytest.fixture
    def string_type(self) -> str:
        return "String"

    @pytest.fixture
    def int_type(self) -> str:
        return "UInt8"

    @pytest.fixture
    def data_types(self, int_type: str, string_type: str) -> list[list[str]]:
        pairs = [
            ("1", int_type),
            ("'1'", string_type),
            ("true", "Bool"),
            ("toDateTime('2013-11-03 00:00:00', 'UTC')", "DateTime('UTC')"),
            ("toDateTime('2013-11-03 00:00:00')", "DateTime"),
            ("['a','b','c']", "Array(String)"),
            ("[1,2,3]", "Array(UInt8)"),
            ("toDecimal32('1', 2)", "Decimal(9, 2)"),
            ("tuple(7.77, 'baz')", "Tuple(Float64, String)"),
        ]
        return [[value, data_type, data_type] for value, data_type in pairs]


class TestTableColumnsEqual(ColumnsEqual, BaseTableConstraintsColumnsEqual):
    pass


class TestViewColumnsEqual(ColumnsEqual, BaseViewConstraintsColumnsEqual):
    pass


class TestIncrementalColumnsEqual(ColumnsEqual, BaseIncrementalConstraintsColumnsEqual):
    pass


ENFORCED: Rules = (
    *TYPES,
    # The type of a column in the contract and in the model; a literal 1 is a UInt8.
    (r"cast\(null as \{\{ dbt.type_int\(\) \}\}\)", "cast(null as Nullable(UInt8))"),
)
HEADER: Rules = (
    *TYPES,
    (r"set session time zone 'Asia/Kolkata'", "set session_timezone = 'UTC'"),
    (r"current_setting\('timezone'\)", "timezone()"),
)
QUERY = """
    as select `id`, `color`, `date_day` from (
        -- depends_on: <foreign_key_model_identifier>
        select 'blue' as color, 1 as id, '2019-01-01' as date_day
    ) as model_subq
"""


class DdlEnforcement:
    """The statement of a model whose columns have constraints. Without unique and foreign_key,
    which the engine has not; dbt warns of them."""

    rules: ClassVar[Rules] = TYPES

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return (
            """
create or replace table <model_identifier> (
    `id` UInt8, `color` String, `date_day` String,
    constraint `id_check` check ((id > 0)), constraint `id_check2` check (id >= 1)
) engine = MergeTree order by (`id`)"""
            + QUERY
        )


class TestDdlEnforcement(DdlEnforcement, BaseConstraintsRuntimeDdlEnforcement):
    pass


class TestIncrementalDdlEnforcement(
    DdlEnforcement, BaseIncrementalConstraintsRuntimeDdlEnforcement
):
    pass


class TestModelEnforcement(BaseModelConstraintsRuntimeEnforcement):
    rules: ClassVar[Rules] = TYPES

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return (
            """
create or replace table <model_identifier> (
    `id` UInt8, `color` String, `date_day` String,
    constraint `check_1` check ((id > 0)), constraint `check_2` check (id >= 1)
) engine = MergeTree order by (`id`)"""
            + QUERY
        )


class TestQuotedColumn(BaseConstraintQuotedColumn):
    rules: ClassVar[Rules] = TYPES

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return """
create or replace table <model_identifier> (
    `id` UInt8, `from` String, `date_day` String, constraint `check_1` check (("from" = 'blue'))
) engine = MergeTree order by tuple()
    as select `id`, `from`, `date_day` from (
        select 'blue' as `from`, 1 as id, '2019-01-01' as date_day
    ) as model_subq
"""


class Rollback:
    """A NULL in a column that has a not_null constraint."""

    rules: ClassVar[Rules] = ENFORCED

    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["Column id of", "NULL is no value of UInt8"]


class TestRollback(Rollback, BaseConstraintsRollback):
    pass


class TestIncrementalRollback(Rollback, BaseIncrementalConstraintsRollback):
    pass


class TestSqlHeader(BaseTableContractSqlHeader):
    rules: ClassVar[Rules] = HEADER


class TestIncrementalSqlHeader(BaseIncrementalContractSqlHeader):
    rules: ClassVar[Rules] = HEADER
