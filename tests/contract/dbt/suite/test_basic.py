"""The basic group, `show` and `ephemeral`: classes that expect PostgreSQL's values or texts."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic.expected_catalog import (
    base_expected_catalog,
    expected_references_catalog,
    no_stats,
)
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.dbt_show.test_dbt_show import BaseShowDoesNotHandleDoubleLimit

pytestmark = pytest.mark.feature("dbt")


class AnyStatistics(dict[str, Any]):
    """A value that equals the statistics of any table with rows."""

    def __eq__(self, other: object) -> bool:
        names = {"has_stats", "row_count", "bytes", "last_modified"}
        if not isinstance(other, dict) or set(other) != names:
            return False
        return other["row_count"]["value"] >= 1 and other["bytes"]["value"] > 0

    __hash__ = None  # type: ignore[assignment]


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
            seed_stats=AnyStatistics(),
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
            model_stats=AnyStatistics(),
            seed_stats=AnyStatistics(),
            view_summary_stats=no_stats(),
        )


class TestShowDoubleLimit(BaseShowDoesNotHandleDoubleLimit):
    DATABASE_ERROR_MESSAGE = "TOP is a LIMIT too. (SYNTAX_ERROR)"  # pytest cuts out the middle
