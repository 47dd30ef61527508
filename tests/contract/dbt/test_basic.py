"""The basic group of dbt-tests-adapter, without the tests that need UPDATE or snapshots."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic.expected_catalog import (
    base_expected_catalog,
    expected_references_catalog,
    no_stats,
)
from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_table_materialization import BaseTableMaterialization
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection
from dbt.tests.adapter.dbt_debug.test_dbt_debug import BaseDebugPostgres
from dbt.tests.adapter.dbt_show.test_dbt_show import (
    BaseShowDoesNotHandleDoubleLimit,
    BaseShowLimit,
    BaseShowSqlHeader,
)
from dbt.tests.adapter.utils.test_validate_sql import BaseValidateSqlMethod

pytestmark = pytest.mark.feature("dbt")


class TestSimpleMaterializations(BaseSimpleMaterializations):
    pass


class TestSingularTests(BaseSingularTests):
    pass


class TestSingularTestsEphemeral(BaseSingularTestsEphemeral):
    pass


class TestEmpty(BaseEmpty):
    pass


class TestEphemeral(BaseEphemeral):
    pass


class TestGenericTests(BaseGenericTests):
    pass


class TestValidateConnection(BaseValidateConnection):
    pass


class TestAdapterMethod(BaseAdapterMethod):
    pass


class TestTableMaterialization(BaseTableMaterialization):
    pass


class TestDebug(BaseDebugPostgres):
    pass


class TestShowLimit(BaseShowLimit):
    pass


class TestShowSqlHeader(BaseShowSqlHeader):
    pass


class TestShowDoubleLimit(BaseShowDoesNotHandleDoubleLimit):
    DATABASE_ERROR_MESSAGE = "A SELECT has one LIMIT."


class TestValidateSql(BaseValidateSqlMethod):
    pass


class TestDocsGenerate(BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any, profile_user: None) -> dict[str, Any]:
        return base_expected_catalog(
            project,
            role=None,
            id_type="Int64",
            text_type="String",
            time_type="DateTime",
            view_type="view",
            table_type="table",
            model_stats=no_stats(),
            seed_stats=table_stats(),
        )


class TestDocsGenReferences(BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any, profile_user: None) -> dict[str, Any]:
        return expected_references_catalog(
            project,
            role=None,
            id_type="Int64",
            text_type="String",
            time_type="DateTime",
            bigint_type="UInt64",
            view_type="view",
            table_type="table",
            model_stats=table_stats(),
            seed_stats=table_stats(),
            view_summary_stats=no_stats(),
        )


class AnyStatistics(dict[str, Any]):
    """A value that equals the statistics of any table."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, dict) or set(other) != {"has_stats", "row_count", "bytes"}:
            return False
        return other["row_count"]["value"] >= 1 and other["bytes"]["value"] > 0

    __hash__ = None  # type: ignore[assignment]


def table_stats() -> AnyStatistics:
    return AnyStatistics()
