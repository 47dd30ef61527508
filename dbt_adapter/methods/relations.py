"""Relations: their parts, replacements, comments and clones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.base.impl import GET_CATALOG_RELATIONS_MACRO_NAME
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.contracts.metadata import CatalogTable
from dbt_common.exceptions import CompilationError

from ..catalog import catalog_table
from ..incremental_mv import clones
from ..incremental_mv.model_sql import limits_refs
from ..incremental_mv.names import ModelNames
from ..incremental_mv.warehouse import ViewInfo
from ..refreshable.runner import live_view
from ..relation import OlapdbRelation, quote, string_literal
from ..storage_clause import query_settings, storage_clause, with_indexes
from .base import AdapterBase

logger = AdapterLogger("olapdb")


class RelationMethods(AdapterBase):
    """Methods that look at relations, or drop, rename, replace and clone them."""

    def check_schema_exists(self, database: str, schema: str) -> bool:
        """Return whether the schema, a database of olapdb, exists."""
        return schema in self.list_schemas(database)

    def _make_match_kwargs(self, database: str, schema: str, identifier: str) -> dict[str, str]:
        """Return the parts of a name to match, unchanged: names are case-sensitive, quoted or not."""
        parts = {"database": database, "schema": schema, "identifier": identifier}
        return {part: name for part, name in parts.items() if name is not None}

    def drop_relation(self, relation: OlapdbRelation) -> None:
        """Drop the relation; for the read view of an `incremental_mv` also its trigger and target, in
        one commit: if one of them cannot be dropped, all stay."""
        parts = self._parts(relation)
        if len(parts) == 1:
            super().drop_relation(relation)
            return
        names = ", ".join(part.render() for part in parts)
        self.execute(f"drop table if exists {names}", auto_begin=False)
        for part in parts:
            self.cache_dropped(part)

    def rename_relation(self, from_relation: OlapdbRelation, to_relation: OlapdbRelation) -> None:
        """Rename the relation in one statement, with trigger and target of an `incremental_mv`."""
        self._rename([(from_relation, to_relation)])

    @available.parse(lambda *a, **k: None)
    def check_replacement(self, current: OlapdbRelation, new_type: str) -> None:
        """Raise CompilationError if triggers read what a relation of type `new_type` would replace,
        and cannot go on: those that a table fires which becomes a view, those chained on an
        `incremental_mv` that becomes anything else. Drop a view that is refreshed on a schedule,
        since no statement replaces it by another relation."""
        if current.type == RelationType.MaterializedView:
            names = ModelNames(current.schema or "", current.identifier or "")
            if live_view(self.warehouse(), names) is not None:
                super().drop_relation(current)
                return
        parts = self._parts(current)
        if len(parts) == 1 and (current.type != RelationType.Table or new_type != "view"):
            return
        warehouse = self.warehouse()
        triggers: dict[str, ViewInfo] = {}
        # Triggers that only join a plain table are defined anew over the view.
        kinds = ("source", "target") if len(parts) == 1 else ("source", "dimension", "target")
        for part in parts:
            for kind in kinds:
                triggers |= warehouse.readers(part.schema or "", part.identifier or "", kind=kind)
        own = {f"{part.schema}.{part.identifier}" for part in parts}
        bound = sorted(triggers.keys() - own)
        if bound:
            raise CompilationError(
                f"{current.render()} cannot become a {new_type}: the triggers {', '.join(bound)} "
                "read it or write its target, and only INSERTs into a table fire triggers. Change or "
                f"remove their models first, then run {'; '.join(f'DROP VIEW {name}' for name in bound)}."
            )

    @available.parse(lambda *a, **k: False)
    def keeps_for_triggers(self, current: OlapdbRelation | None, sql: str) -> bool:
        """Return whether the relation stays as it is, and log why: a live trigger reads it, and refs
        of the model's SQL are limited (--empty, --sample), so that the answer of the trigger's model
        would change."""
        if current is None or not self._is_limited(sql):
            return False
        triggers = self._triggers_over(current)
        if triggers:
            logger.warning(
                f"{current.render()} is left as it is, since refs are limited (--empty or --sample) "
                f"and the triggers {', '.join(sorted(triggers))} read it."
            )
        return bool(triggers)

    def _triggers_over(self, relation: OlapdbRelation) -> set[str]:
        """Return the live triggers that read the relation: as source, in a join, or through views."""
        warehouse = self.warehouse()
        triggers: set[str] = set()
        for kind in ("source", "dimension", "view"):
            triggers |= warehouse.readers(
                relation.schema or "", relation.identifier or "", kind=kind
            ).keys()
        return triggers

    def _is_limited(self, sql: str) -> bool:
        """Return whether --empty or --sample limits refs of the model's SQL.

        The SQL alone does not tell: dbt filters the refs of a microbatch as it filters a sample."""
        arguments = getattr(self.config, "args", None)
        given = getattr(arguments, "empty", True) or getattr(arguments, "sample", True)
        return bool(given) and limits_refs(sql)

    @available.parse(lambda *a, **k: False)
    def keeps_snapshot(
        self, current: OlapdbRelation, sql: str, strategy: Mapping[str, Any]
    ) -> bool:
        """Return whether a snapshot stays as it is, and log why: refs are limited (--empty,
        --sample), and triggers read it, or it records the rows that its query lacks as deleted."""
        if strategy["hard_deletes"] != "ignore" and self._is_limited(sql):
            logger.warning(
                f"{current.render()} is left as it is, since refs are limited (--empty or --sample) "
                f"and hard_deletes={strategy['hard_deletes']} would end the versions of the others."
            )
            return True
        return bool(self.keeps_for_triggers(current, sql))

    @available.parse(lambda *a, **k: None)
    def after_replacement(self, former: OlapdbRelation | None, new: OlapdbRelation) -> None:
        """Drop what a replaced relation leaves: trigger and target of an `incremental_mv`, also of
        one that an interrupted run replaced. Put the relation's new type into dbt's cache, and log
        the triggers with stale slices."""
        names = ModelNames(new.schema or "", new.identifier or "")
        siblings = [
            self._sibling(new, names.view, RelationType.MaterializedView),
            self._sibling(new, names.target, RelationType.Table),
        ]
        cached = [self._cached(sibling) for sibling in siblings]
        if any(cached) and self.warehouse().owns(names):
            for sibling in siblings:
                super().drop_relation(sibling)
        if former is not None and former.type != new.type:
            self.cache_dropped(former)
        if former is not None and former.type == RelationType.Table:
            self._tell_stale(new)

    def _tell_stale(self, source: OlapdbRelation) -> None:
        """Log which triggers of models over the table have stale slices now, and what mends them.

        Versions that a rebuild replaced are not named: no run replays them."""
        triggers = self.warehouse().rows(
            "SELECT database, name, stale_slices, mend FROM system.views "
            f"WHERE source_database = {string_literal(source.schema or '')} "
            f"AND source_table = {string_literal(source.identifier or '')} AND stale_slices > 0 "
            "AND standing = ''"
        )
        for trigger in triggers:
            logger.info(
                f"Rows of {source.render()} changed that {trigger['database']}.{trigger['name']} "
                f"had read: {trigger['stale_slices']} of its slices are stale. The next run of its "
                f"model replays them; elsewhere say {trigger['mend']}."
            )

    def _cached(self, relation: OlapdbRelation) -> bool:
        """Return whether dbt's cache has a relation of this name."""
        return (
            self.get_relation(
                relation.database or "", relation.schema or "", relation.identifier or ""
            )
            is not None
        )

    def _rename(self, pairs: Sequence[tuple[OlapdbRelation, OlapdbRelation]]) -> None:
        """Rename relations with their parts in one statement, and in dbt's cache."""
        clauses = []
        for old, new in pairs:
            parts = self._parts(old)
            renamed = self._parts_named(parts, old, new)
            for part, target in zip(parts, renamed, strict=True):
                self.cache_renamed(part, target)
                clauses.append(f"{part.render()} TO {target.render()}")
        self.execute(f"RENAME TABLE {', '.join(clauses)}", auto_begin=False)

    def _parts_named(
        self, parts: Sequence[OlapdbRelation], old: OlapdbRelation, new: OlapdbRelation
    ) -> list[OlapdbRelation]:
        """Return the parts of `old` under the names that they get when it becomes `new`."""
        prefix = old.identifier or ""
        return [
            new.incorporate(
                path={"identifier": f"{new.identifier}{(p.identifier or '')[len(prefix) :]}"},
                type=p.type,
            )
            for p in parts
        ]

    @available.parse(lambda *a, **k: None)
    def persist_comments(
        self, relation: OlapdbRelation, description: str | None, columns: Mapping[str, Any] | None
    ) -> None:
        """Write descriptions as comments of the relation and its columns, where they differ."""
        where = (
            f"WHERE database = {string_literal(relation.schema or '')} AND "
            "{} = " + string_literal(relation.identifier or "")
        )
        warehouse = self.warehouse()
        if description is not None:
            tables = warehouse.rows(f"SELECT comment FROM system.tables {where.format('name')}")
            if tables and tables[0]["comment"] != description:
                warehouse.run(
                    f"ALTER TABLE {relation.render()} MODIFY COMMENT {string_literal(description)}"
                )
        if not columns:
            return
        comments = {
            r["name"]: r["comment"]
            for r in warehouse.rows(
                f"SELECT name, comment FROM system.columns {where.format('table')}"
            )
        }
        missing = [name for name in columns if name not in comments]
        if missing:
            logger.warning(
                "The following columns are specified in the schema but are not present in the "
                f"database: {', '.join(missing)}"
            )
        for name, column in columns.items():
            comment = column["description"]
            if name in comments and comment and comments[name] != comment:
                warehouse.run(
                    f"ALTER TABLE {relation.render()} COMMENT COLUMN {quote(name)} "
                    f"{string_literal(comment)}"
                )

    @available.parse(lambda *a, **k: "")
    def storage_clause(self, config: Mapping[str, Any]) -> str:
        """Return ENGINE, PARTITION BY, PRIMARY KEY, ORDER BY and SETTINGS from a model's config."""
        return storage_clause(config)

    @available.parse(lambda columns, config: columns)
    def with_indexes(self, columns: str, config: Mapping[str, Any]) -> str:
        """Return a column list of CREATE TABLE with the skip indexes of a model's config added."""
        return with_indexes(columns, config)

    @available.parse(lambda *a, **k: "")
    def query_settings(self, config: Mapping[str, Any]) -> str:
        """Return the SETTINGS clause that ends the statement which fills a table."""
        return query_settings(config)

    @available.parse(lambda *a, **k: "''")
    def string_literal(self, value: str) -> str:
        """Return a value as a quoted SQL string."""
        return string_literal(value)

    def get_catalog_for_single_relation(self, relation: BaseRelation) -> CatalogTable | None:
        """Return the catalog's entry of one relation, None if it does not exist."""
        kwargs = {"information_schema": None, "relations": [relation]}
        table = self.execute_macro(GET_CATALOG_RELATIONS_MACRO_NAME, kwargs=kwargs)
        return catalog_table([row.dict() for row in table])

    @available.parse(lambda *a, **k: False)
    def is_incremental_mv(self, relation: OlapdbRelation) -> bool:
        """Return whether the relation is the read view of an `incremental_mv` or of its clone."""
        return len(self._parts(relation)) > 1

    @available.parse(lambda *a, **k: [])
    def clone_statements(
        self, source: OlapdbRelation, target: OlapdbRelation, is_model: bool
    ) -> list[str]:
        """Return the statements that clone a table, or an `incremental_mv` if `is_model`."""
        if is_model:
            warehouse = self.warehouse()
            cloned = warehouse.named(source.schema or "", source.identifier or "")
            clone = ModelNames(target.schema or "", target.identifier or "")
            return clones.clone_model(warehouse, cloned, clone)
        relations = {"this_relation": target, "defer_relation": source}
        return [str(self.execute_macro("create_or_replace_clone", kwargs=relations))]
