"""`materialized_view`, a synonym of `incremental_mv`, and the catalog's names of relation types."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from dbt.adapters.base.relation import BaseRelation
from dbt.tests.adapter.basic.test_get_catalog_for_single_relation import (
    BaseGetCatalogForSingleRelation,
)
from dbt.tests.adapter.catalog.relation_types import CatalogRelationTypes
from dbt.tests.adapter.materialized_view.basic import MaterializedViewBasic
from dbt.tests.adapter.materialized_view.changes import (
    MaterializedViewChanges,
    MaterializedViewChangesApplyMixin,
    MaterializedViewChangesContinueMixin,
    MaterializedViewChangesFailMixin,
)
from dbt.tests.util import get_model_file, set_model_file
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata

from tests.contract.dbt.suite.translation import Rules

pytestmark = pytest.mark.feature("dbt", "views")

# A model that aggregates nothing says how its rows are sorted.
ORDERED: Rules = ((r"materialized='(\w+)',(?! order_by)", r"materialized='\1', order_by='id',"),)
KIND = """select multiIf(t.engine != 'View', 'table', v.name != '', 'materialized_view', 'view')
    from system.tables as t left join system.views as v
    on v.database = t.database and v.name = concat(t.name, '__mv')
    where t.database = '{}' and t.name = '{}'"""


class TestBasic(MaterializedViewBasic):
    rules: ClassVar[Rules] = ORDERED

    @staticmethod
    def insert_record(project: Any, table: BaseRelation, record: tuple[int, int]) -> None:
        project.run_sql(f"insert into {table} (id, value) values {record}")

    @staticmethod
    def refresh_materialized_view(project: Any, materialized_view: BaseRelation) -> None:
        """Do nothing: the INSERT has fired the trigger."""

    @staticmethod
    def query_row_count(project: Any, relation: BaseRelation) -> int:
        return int(project.run_sql(f"select count() from {relation}", fetch="one")[0])

    @staticmethod
    def query_relation_type(project: Any, relation: BaseRelation) -> str | None:
        query = KIND.format(relation.schema, relation.identifier)
        row = project.run_sql(query, fetch="one")
        return str(row[0]) if row else None

    def test_materialized_view_only_updates_after_refresh(
        self, project: Any, my_materialized_view: BaseRelation, my_seed: BaseRelation
    ) -> None:
        """The other way round: the view has the new row at once."""
        with pytest.raises(AssertionError):
            super().test_materialized_view_only_updates_after_refresh(
                project, my_materialized_view, my_seed
            )
        assert self.query_row_count(project, my_materialized_view) == 4


class Changes(MaterializedViewChanges):
    """A change of a setting is an ALTER; one of the sorting key is a rebuild."""

    rules: ClassVar[Rules] = ORDERED
    query_relation_type = staticmethod(TestBasic.query_relation_type)

    @staticmethod
    def definition(project: Any, materialized_view: BaseRelation) -> str:
        """Return the CREATE statement of the target."""
        query = (
            "select create_table_query from system.tables "
            f"where database = '{materialized_view.schema}' "
            f"and name = '{materialized_view.identifier}__target'"
        )
        return str(project.run_sql(query, fetch="one")[0])

    @classmethod
    def check_start_state(cls, project: Any, materialized_view: BaseRelation) -> None:
        definition = cls.definition(project, materialized_view)
        assert "ORDER BY id" in definition
        assert "merge_with_ttl_timeout" not in definition

    @staticmethod
    def change(project: Any, materialized_view: BaseRelation, old: str, new: str) -> None:
        """Replace a text of the model's file."""
        model = get_model_file(project, materialized_view)
        assert old in model
        set_model_file(project, materialized_view, model.replace(old, new))

    @classmethod
    def change_config_via_alter(cls, project: Any, materialized_view: BaseRelation) -> None:
        changed = "order_by='id', settings={'merge_with_ttl_timeout': 60},"
        cls.change(project, materialized_view, "order_by='id',", changed)

    @classmethod
    def check_state_alter_change_is_applied(
        cls, project: Any, materialized_view: BaseRelation
    ) -> None:
        assert "merge_with_ttl_timeout = 60" in cls.definition(project, materialized_view)

    @classmethod
    def change_config_via_replace(cls, project: Any, materialized_view: BaseRelation) -> None:
        cls.change(project, materialized_view, "order_by='id'", "order_by=['value', 'id']")

    @classmethod
    def check_state_replace_change_is_applied(
        cls, project: Any, materialized_view: BaseRelation
    ) -> None:
        assert "ORDER BY (value, id)" in cls.definition(project, materialized_view)


class TestChangesApply(Changes, MaterializedViewChangesApplyMixin):
    pass


class TestChangesContinue(Changes, MaterializedViewChangesContinueMixin):
    pass


class TestChangesFail(Changes, MaterializedViewChangesFailMixin):
    pass


class TestRelationTypes(CatalogRelationTypes):
    rules: ClassVar[Rules] = ORDERED

    @pytest.mark.parametrize(
        ("node_name", "relation_type"),
        [
            ("seed.test.my_seed", "table"),
            ("model.test.my_table", "table"),
            ("model.test.my_view", "view"),
            ("model.test.my_materialized_view", "materialized view"),
        ],
    )
    def test_relation_types_populate_correctly(
        self, docs: Any, node_name: str, relation_type: str
    ) -> None:
        super().test_relation_types_populate_correctly(docs, node_name, relation_type)


class AnyStatistics(dict[str, StatsItem]):
    """Statistics with these names, whatever their values."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and set(other) == set(self)

    __hash__ = None  # type: ignore[assignment]


def expected(project: Any, name: str, kind: str, *statistics: str) -> CatalogTable:
    """Return the catalog's entry of the seed or of the view over it."""
    types = {
        "id": "Int64",
        "first_name": "String",
        "email": "String",
        "ip_address": "String",
        "updated_at": "DateTime",
    }
    columns = {
        column: ColumnMetadata(type=data_type, index=number, name=column)
        for number, (column, data_type) in enumerate(types.items(), start=1)
    }
    metadata = TableMetadata(kind, project.test_schema, name, project.database)
    stats: Any = AnyStatistics.fromkeys((*statistics, "has_stats"))
    return CatalogTable(metadata, columns, stats)


class TestSingleRelation(BaseGetCatalogForSingleRelation):
    @pytest.fixture(scope="class")
    def expected_catalog_my_seed(self, project: Any) -> CatalogTable:
        return expected(project, "my_seed", "table", "row_count", "bytes", "last_modified")

    @pytest.fixture(scope="class")
    def expected_catalog_my_view_model(self, project: Any) -> CatalogTable:
        return expected(project, "my_view_model", "view")
