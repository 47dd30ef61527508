"""The adapter: the methods that dbt and the macros call."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from dbt.adapters.base import AdapterConfig, available
from dbt.adapters.base.impl import (
    GET_CATALOG_RELATIONS_MACRO_NAME,
    ConstraintSupport,
    log_code_execution,
)
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.sql import SQLAdapter
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.contracts.metadata import CatalogTable
from dbt_common.exceptions import CompilationError

import olapdb

from . import (
    config_check,
    cross_database,
    incremental_strategies,
    schema_changes,
    seed_changes,
    seeds,
    snapshots,
)
from .catalog import catalog_table
from .column import OlapdbColumn
from .config_reader import config_error
from .connections import Handle, OlapdbConnectionManager
from .constraints import Contract
from .credentials import MEMORY, check_backfill_engine
from .incremental_mv import clones, generic_tests, reconcile, runner
from .incremental_mv.config import ReconcilePolicy, RunSettings, reconcile_policy, settings_of
from .incremental_mv.names import ModelNames
from .incremental_mv.operations import test_files
from .incremental_mv.source_comparison import tested_relation
from .incremental_mv.warehouse import ViewInfo, Warehouse
from .limited_query import with_limit
from .project import named_node, node_config, project_folder
from .python_models import submission
from .python_models.rows_table import rows_relation
from .relation import OlapdbRelation, quote, string_literal
from .run_lock import WRITING_COMMANDS, RunLock
from .snapshots import SnapshotChange
from .storage_clause import query_settings, storage_clause, with_indexes

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("olapdb")

_CHECKED = ("model", "seed", "snapshot")
"""The resource types whose config is checked before they run."""


@dataclass
class OlapdbConfig(AdapterConfig):
    """The model configs that are specific to olapdb; see docs/dbt.md."""

    engine: str | None = None
    order_by: str | list[str] | None = None
    partition_by: str | list[str] | None = None
    primary_key: str | list[str] | None = None
    ttl: str | list[str] | None = None
    table_settings: dict[str, Any] | None = None
    settings: dict[str, Any] | None = None
    query_settings: dict[str, Any] | None = None
    indexes: list[dict[str, Any]] | None = None
    on_definition_change: str | None = None
    backfill: str | dict[str, Any] | None = None
    backfill_on: str | None = None
    backfill_engine: str | None = None
    retain: str | None = None
    dimensions: list[str] | None = None
    reconcile: str | dict[str, Any] | None = None
    deduplicate_by: str | list[str] | None = None
    submission_method: str | None = None
    arrow_input: str | None = None


class OlapdbAdapter(SQLAdapter):
    """The adapter of olapdb: names of two levels, one commit a statement, models that are triggers."""

    ConnectionManager = OlapdbConnectionManager
    connections: OlapdbConnectionManager
    Column = OlapdbColumn
    Relation = OlapdbRelation
    AdapterSpecificConfigs = OlapdbConfig

    _capabilities: ClassVar[CapabilityDict] = CapabilityDict(
        {
            Capability.SchemaMetadataByRelations: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadata: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadataBatch: CapabilitySupport(support=Support.Full),
            Capability.GetCatalogForSingleRelation: CapabilitySupport(support=Support.Full),
            Capability.MicrobatchConcurrency: CapabilitySupport(support=Support.Full),
        }
    )

    CONSTRAINT_SUPPORT: ClassVar[dict[ConstraintType, ConstraintSupport]] = {
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.primary_key: ConstraintSupport.NOT_ENFORCED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }

    def __init__(self, config: Any, mp_context: Any) -> None:
        """Make the adapter of a project; a relative path of its profile is in the project's folder."""
        super().__init__(config, mp_context)
        config.credentials.project_folder = project_folder(config)
        self._run_lock: RunLock | None = None
        self._grants_noted = False
        self._reserved_names: dict[str, str] | None = None
        self._python_rows: dict[int, OlapdbRelation] = {}

    # --- runs

    def set_relations_cache(
        self, relation_configs: Iterable[Any], clear: bool = False, required_schemas: Any = None
    ) -> None:
        """Take the lock of the run, then read which relations exist."""
        self._lock_run()
        super().set_relations_cache(relation_configs, clear, required_schemas)

    def _lock_run(self) -> None:
        """Take the lock of the target if the command of dbt writes; see `RunLock`."""
        credentials = self.config.credentials
        command = str(getattr(getattr(self.config, "args", None), "which", "") or "")
        if command not in WRITING_COMMANDS or credentials.read_only or self._run_lock is not None:
            return
        if credentials.location == MEMORY:
            return
        self._handle()  # makes the folder of a new warehouse
        lock = RunLock(credentials.location, credentials.schema)
        lock.acquire(f"dbt {command}", credentials.wait_for_run)
        self._run_lock = lock

    def cleanup_connections(self) -> None:
        """Close all connections, and let the next run of the target begin."""
        super().cleanup_connections()
        if self._run_lock is not None:
            self._run_lock.release()
            self._run_lock = None

    def pre_model_hook(self, config: Mapping[str, Any]) -> None:
        """Check a model, seed or snapshot before anything of it runs.

        Raises one CompilationError for all mistakes of its config and its name."""
        node = config.model  # type: ignore[attr-defined]
        if str(node.resource_type) not in _CHECKED:
            return
        self._lock_run()
        problems = config_check.mistakes(node_config(node, self.config), self.config.credentials)
        reserved = self._reserved().get(node.unique_id)
        if reserved is not None:
            problems.append(reserved)
        if problems:
            raise config_error(problems)

    def _reserved(self) -> dict[str, str]:
        """Return the mistakes in the names of the project's relations, by unique id."""
        if self._reserved_names is None:
            manifest = self.get_macro_resolver()
            nodes = getattr(manifest, "nodes", {}).values()
            self._reserved_names = config_check.reserved_names(
                named_node(n) for n in nodes if str(n.resource_type) in _CHECKED
            )
        return self._reserved_names

    # --- names and types

    @classmethod
    def date_function(cls) -> str:
        """Return the SQL of the current time."""
        return "now()"

    @classmethod
    def quote(cls, identifier: str) -> str:
        """Return an identifier in quotes."""
        return quote(identifier)

    @classmethod
    def convert_text_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return String as the type of a seed's column, Nullable if it has NULLs."""
        return seeds.with_nulls("String", agate_table, col_idx)

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return the type of a seed's column of numbers, from its values."""
        return seeds.with_nulls(seeds.number_type(agate_table, col_idx), agate_table, col_idx)

    @classmethod
    def convert_integer_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return the type of a seed's column of integers, from its values."""
        return seeds.with_nulls(seeds.number_type(agate_table, col_idx), agate_table, col_idx)

    @classmethod
    def convert_boolean_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return Bool as the type of a seed's column, Nullable if it has NULLs."""
        return seeds.with_nulls("Bool", agate_table, col_idx)

    @classmethod
    def convert_datetime_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return the type of a seed's column of times, from its values."""
        return seeds.with_nulls(seeds.datetime_type(agate_table, col_idx), agate_table, col_idx)

    @classmethod
    def convert_date_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return the type of a seed's column of dates, from its values."""
        return seeds.with_nulls(seeds.date_type(agate_table, col_idx), agate_table, col_idx)

    @classmethod
    def convert_time_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return String: there is no type for a time of day."""
        return seeds.with_nulls("String", agate_table, col_idx)

    def expand_column_types(self, goal: OlapdbRelation, current: OlapdbRelation) -> None:
        """Do nothing: strings have no length, so no column needs to grow."""

    @available.parse(lambda *a, **k: [])
    def get_column_schema_from_query(self, sql: str) -> list[OlapdbColumn]:
        """Return the names and types of a query's columns without running it."""
        with self.connections.exception_handler(sql):
            described = self._handle().connection.describe(sql)
        return [OlapdbColumn(name, str(data_type)) for name, data_type in described]

    def debug_query(self) -> None:
        """Run `select 1`, for dbt debug."""
        self.execute("select 1 as id")

    # --- incremental models

    @available
    def valid_incremental_strategies(self) -> list[str]:
        """Return the strategies of dbt's materialization `incremental`."""
        return list(incremental_strategies.BUILTIN)

    @available
    def incremental_strategy(self, config: Mapping[str, Any]) -> str:
        """Return the strategy of a model, "default" without one."""
        return incremental_strategies.strategy_of(config)

    @available
    def is_builtin_strategy(self, strategy: str) -> bool:
        """Return whether the strategy is the adapter's, not a macro of the project."""
        return strategy in ("default", *incremental_strategies.BUILTIN)

    @available
    def replace_keys_clause(self, unique_key: object, predicates: object) -> str:
        """Return the clause of INSERT for rows with a key of the run's rows."""
        return incremental_strategies.keys_clause(unique_key, predicates)

    @available
    def replace_partitions_clause(self, config: Mapping[str, Any], predicates: object) -> str:
        """Return the clause of INSERT for the partitions of the run's rows."""
        return incremental_strategies.partitions_clause(config, predicates)

    @available
    def replace_batch_clause(self, model: Mapping[str, Any], predicates: object) -> str:
        """Return the clause of INSERT for the rows of the run's batch."""
        return incremental_strategies.batch_clause(model, predicates)

    @available
    def merge_kept_columns(
        self, config: Mapping[str, Any], unique_key: object, columns: Sequence[OlapdbColumn]
    ) -> list[str]:
        """Return the columns that a merge does not update."""
        return incremental_strategies.merge_kept(config, unique_key, columns)

    @available
    def merged_rows(
        self,
        target: OlapdbRelation,
        rows: str,
        unique_key: object,
        columns: Sequence[OlapdbColumn],
        kept: Sequence[str],
        predicates: object,
    ) -> str:
        """Return the query of a merge that keeps columns of known rows."""
        keys = incremental_strategies.keys_of(unique_key)
        names = [column.name for column in columns]
        return incremental_strategies.merged_rows(target, rows, keys, names, kept, predicates)

    @available
    def schema_change(
        self, present: Sequence[OlapdbColumn], queried: Sequence[OlapdbColumn]
    ) -> dict[str, Any]:
        """Return the differences between a table's columns and a query's."""
        return schema_changes.compare(present, queried)

    @available
    def schema_change_refused(self, relation: OlapdbRelation, change: Mapping[str, Any]) -> str:
        """Return the message for a schema change under on_schema_change='fail'."""
        return schema_changes.refused(relation, change)

    @available.parse(lambda *a, **k: "")
    def column_named(self, relation: OlapdbRelation, name: str) -> str:
        """Return the name of the relation's column: `name`, or the one that differs from it in case
        only, since macros for other warehouses may write it so."""
        names = [column.name for column in self.get_columns_in_relation(relation)]
        alike = [known for known in names if known.lower() == name.lower()]
        return alike[0] if name not in names and len(alike) == 1 else name

    @available
    def ignored_columns(
        self, relation: OlapdbRelation, change: Mapping[str, Any]
    ) -> list[OlapdbColumn]:
        """Return the columns to insert under on_schema_change='ignore'."""
        return schema_changes.ignored(relation, change)

    # --- relations

    def check_schema_exists(self, database: str, schema: str) -> bool:
        """Return whether the schema, a database of olapdb, exists."""
        return schema in self.list_schemas(database)

    def _make_match_kwargs(self, database: str, schema: str, identifier: str) -> dict[str, str]:
        """Return the parts of a name to match, unchanged: names are case-sensitive, quoted or not."""
        parts = {"database": database, "schema": schema, "identifier": identifier}
        return {part: name for part, name in parts.items() if name is not None}

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

    def drop_relation(self, relation: OlapdbRelation) -> None:
        """Drop the relation; for the read view of an `incremental_mv` also its trigger and target."""
        for part in self._parts(relation):
            super().drop_relation(part)

    def rename_relation(self, from_relation: OlapdbRelation, to_relation: OlapdbRelation) -> None:
        """Rename the relation in one statement, with trigger and target of an `incremental_mv`."""
        self._rename([(from_relation, to_relation)])

    @available.parse(lambda *a, **k: None)
    def check_replacement(self, current: OlapdbRelation, new_type: str) -> None:
        """Raise CompilationError if triggers read what a relation of type `new_type` would replace,
        and cannot go on: those of a table that becomes a view, those chained on an `incremental_mv`
        that becomes anything else."""
        parts = self._parts(current)
        if len(parts) == 1 and (current.type != RelationType.Table or new_type != "view"):
            return
        warehouse = self.warehouse()
        triggers: dict[str, ViewInfo] = {}
        for part in parts:
            for kind in ("source", "dimension"):
                triggers |= warehouse.readers(part.schema or "", part.identifier or "", kind=kind)
        own = {f"{part.schema}.{part.identifier}" for part in parts}
        bound = sorted(triggers.keys() - own)
        if bound:
            raise CompilationError(
                f"{current.render()} cannot become a {new_type}: the triggers {', '.join(bound)} "
                "read it, and only a table can be read by triggers. Change or remove their models "
                f"first, then run {'; '.join(f'DROP VIEW {name}' for name in bound)}."
            )

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
        """Log which triggers over the table have stale slices now, and what mends them."""
        triggers = self.warehouse().rows(
            "SELECT database, name, stale_slices, mend FROM system.views "
            f"WHERE source_database = {string_literal(source.schema or '')} "
            f"AND source_table = {string_literal(source.identifier or '')} AND stale_slices > 0"
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

    def _parts(self, relation: OlapdbRelation) -> list[OlapdbRelation]:
        """Return the relation alone, or all parts of an `incremental_mv`.

        The parts are trigger, read view and target, in the order in which they can be dropped."""
        if relation.type not in (RelationType.View, RelationType.MaterializedView):
            return [relation]
        names = ModelNames(relation.schema or "", relation.identifier or "")
        warehouse = self.warehouse()
        warehouse.look_up((names.database, name) for name in (names.view, names.model))
        target = self._sibling(relation, names.target, RelationType.Table)
        if warehouse.owns(names):
            trigger = self._sibling(relation, names.view, RelationType.MaterializedView)
            return [trigger, relation, target]
        return [relation, target] if clones.is_clone(warehouse, names) else [relation]

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

    def _sibling(
        self, relation: OlapdbRelation, identifier: str, kind: RelationType
    ) -> OlapdbRelation:
        """Return a relation of another name and kind in the schema of `relation`."""
        sibling: OlapdbRelation = relation.incorporate(path={"identifier": identifier}, type=kind)
        return sibling

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

    # --- snapshots

    @available.parse(lambda *a, **k: "")
    def snapshot_change(
        self,
        target: OlapdbRelation,
        sql: str,
        strategy: Mapping[str, Any],
        meta: Mapping[str, str],
        *texts: str,
    ) -> str:
        """Return the statement that brings a snapshot up to date; see `SnapshotChange`.

        `texts` are its `now`, `current` and `deleted_id`. Adds columns of the query that the
        snapshot lacks."""
        query_columns = self.get_column_schema_from_query(sql)
        actions = snapshots.column_changes(
            self.get_columns_in_relation(target), query_columns, list(meta.values())
        )
        if actions:
            self.execute(f"ALTER TABLE {target.render()} {', '.join(actions)}", auto_begin=False)
        columns = self.get_columns_in_relation(target)
        return SnapshotChange(
            target.render(), sql, columns, query_columns, strategy, meta, *texts
        ).statement()

    # --- clones

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
            names = [ModelNames(r.schema or "", r.identifier or "") for r in (source, target)]
            return clones.clone_model(self.warehouse(), names[0], names[1])
        relations = {"this_relation": target, "defer_relation": source}
        return [str(self.execute_macro("create_or_replace_clone", kwargs=relations))]

    # --- contracts

    @available.parse(lambda *a, **k: ([], []))
    def compare_contract(
        self, model: Mapping[str, Any], described: Sequence[OlapdbColumn]
    ) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
        """Return the columns that a model promises and those of its query; see `Contract.compare`."""
        return Contract.of(model).compare(described)

    @available.parse(lambda *a, **k: [])
    def contract_elements(self, model: Mapping[str, Any]) -> list[str]:
        """Return the columns and constraints of a CREATE TABLE; dbt warns of those left out."""
        return Contract.of(model).elements(self.process_parsed_constraint)

    @available.parse(lambda *a, **k: {})
    def contract_storage(self, model: Mapping[str, Any]) -> dict[str, Any]:
        """Return the config of a table's storage: a primary key sorts a table without an order."""
        config = dict(model["config"])
        key = Contract.of(model).primary_key()
        if key and not config.get("order_by") and not config.get("primary_key"):
            config["order_by"] = [quote(name) for name in key]
        return config

    # --- cross-database macros

    @available
    def dated(self, expression: str) -> str:
        """Return the expression, or a date or time if it is a string literal of one."""
        return cross_database.dated(expression)

    @available
    def listagg(self, measure: str, delimiter: str, order_by: str | None, limit: int | None) -> str:
        """Return SQL that joins the values of a group; see `cross_database.listagg`."""
        return cross_database.listagg(measure, delimiter, order_by, limit)

    # --- seeds

    @available.parse(lambda *a, **k: "")
    def load_seed(
        self, relation: OlapdbRelation, agate_table: agate.Table, exchange: bool = False
    ) -> str:
        """Insert the seed's rows in one commit. Returns the equivalent statement.

        With `exchange` the table has no other rows afterwards: rows that the file lacks leave,
        equal rows stay, and the others are inserted."""
        types = {c.name: c.dtype for c in self.get_columns_in_relation(relation)}
        data = seeds.to_arrow(agate_table, types)
        clause = "REPLACE WHERE 1" if exchange else ""
        statement = f"INSERT INTO {relation.render()} {clause} FORMAT Arrow"
        with self.connections.exception_handler(statement):
            self._handle().connection.insert(relation.render(), data, replace=clause)
        return statement

    @available.parse(lambda *a, **k: True)
    def seed_fits(
        self, relation: OlapdbRelation, agate_table: agate.Table, overrides: Mapping[str, str]
    ) -> bool:
        """Return whether the table has the columns of the seed, of types that hold its values.

        `overrides` are the configured types; other columns may be Nullable without need."""
        old_types = {c.name: c.dtype for c in self.get_columns_in_relation(relation)}
        new_types = {
            str(name): overrides.get(name) or str(self.convert_type(agate_table, index))
            for index, name in enumerate(agate_table.column_names)
        }
        return seed_changes.fits(old_types, new_types, overrides)

    # --- Python models

    @property
    def default_python_submission_method(self) -> str:
        """The submission method of Python models that name none."""
        return submission.default_method(self.config.credentials)

    @available.parse(lambda *a, **k: a[0])
    def python_model_rows(
        self, relation: OlapdbRelation, model: dict[str, Any], compiled_code: str
    ) -> OlapdbRelation:
        """Run a Python model and return the table that holds its rows, written in one commit.

        The caller drops the table; if the model fails before, `post_model_hook` does."""
        rows = rows_relation(relation, model)
        self._python_rows[threading.get_ident()] = rows
        self.submit_python_job(model, compiled_code)
        return rows

    def post_model_hook(self, config: Mapping[str, Any], context: None) -> None:
        """Drop the rows of a Python model that failed after it had written them."""
        rows = self._python_rows.pop(threading.get_ident(), None)
        if rows is None:
            return
        try:
            self._handle().connection.execute(f"DROP TABLE IF EXISTS {rows.render()}")
        except olapdb.Error as error:
            logger.warning(f"{rows.render()} is left until the model runs again: {error}")

    @log_code_execution
    def submit_python_job(
        self, parsed_model: dict[str, Any], compiled_code: str
    ) -> AdapterResponse:
        """Run a Python model and write its rows into the rows' table of the model's relation."""
        relation = self.Relation.create(
            database=parsed_model["database"],
            schema=parsed_model["schema"],
            identifier=parsed_model["alias"],
        )
        with self.connections.exception_handler(f"the Python model {parsed_model['name']}"):
            rows = submission.write_rows(
                self._handle().connection,
                parsed_model,
                compiled_code,
                relation,
                self.config.credentials,
            )
        return AdapterResponse(_message=f"OK {rows}", rows_affected=rows)

    # --- incremental_mv

    def warehouse(self) -> Warehouse:
        """Return the engine as `incremental_mv` uses it, over this thread's connection."""
        return Warehouse(self.connections, self._handle, self._prepare_engine)

    def _prepare_engine(self, engine: str) -> None:
        """Start a Spark session with the profile's options if `engine` is "spark".

        An active session is reused."""
        if engine != "spark":
            return
        from olapdb.spark.session import spark_session  # PySpark is optional and slow to import

        options = dict(self.config.credentials.spark)
        with self.connections.exception_handler("start of Spark"):
            spark_session(options.pop("app_name", "olapdb dbt"), **options)

    @available.parse(lambda *a, **k: {})
    def run_incremental_mv(
        self,
        relation: OlapdbRelation,
        sql: str,
        config: Mapping[str, Any],
        model: Mapping[str, Any],
        flags: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Bring target, trigger and read view up to date with the model; see `runner.run`.

        Returns `message`, `rows_affected` and `code`, the SQL that was run."""
        credentials = self.config.credentials
        if config["contract"]["enforced"]:
            self.contract_elements(model)  # dbt warns of constraints that are left out
        outcome = runner.run(
            self.warehouse(),
            ModelNames(relation.schema or "", relation.identifier or ""),
            sql,
            settings_of(config, model, credentials, flags),
        )
        for identifier, kind in outcome.relations:
            self.cache_added(self._sibling(relation, identifier, RelationType(kind)))
        return outcome.as_dict()

    @available.parse(lambda *a, **k: "select 1 where 1 = 0")
    def incremental_mv_test(
        self, test: str, model: OlapdbRelation | str, arguments: Mapping[str, Any], running: bool
    ) -> str:
        """Return a query with one row for each finding of a generic test of `incremental_mv`.

        If `running`, the test is run now, and its findings are logged. Otherwise (dbt compile, docs)
        the query reads the recorded verdicts."""
        given = {name: value for name, value in arguments.items() if value is not None}
        given.setdefault("engine", self.config.credentials.backfill_engine)
        policy = self._reconcile_policy(model)
        findings = generic_tests.run_test(
            self.warehouse(), test, model, given, policy, running=running
        )
        if isinstance(findings, str):
            return findings
        for finding in reconcile.bounded(findings):
            logger.info(finding.line())
        return reconcile.findings_sql(findings)

    def _reconcile_policy(self, model: OlapdbRelation | str) -> ReconcilePolicy:
        """Return the policy that the config of a tested model has for the test `reconciled`."""
        names, _ = tested_relation(model)
        nodes: Mapping[str, Any] = getattr(self.get_macro_resolver(), "nodes", {})
        for node in nodes.values():
            if (node.schema, node.alias) == (names.database, names.model):
                return reconcile_policy({"reconcile": node.config.get("reconcile")})
        return ReconcilePolicy()

    @available
    def note_grants(self, relation: OlapdbRelation) -> str:
        """Log, once a run, that grants do nothing. Returns "", for Jinja."""
        if not self._grants_noted:
            self._grants_noted = True
            logger.info(f"olapdb has no users: grants, as those of {relation}, do nothing.")
        return ""

    @available.parse(lambda sql, limit: sql)
    def with_limit(self, sql: str, limit: int) -> str:
        """Return a query with a LIMIT, for dbt show: before its SETTINGS, if it ends in some."""
        return with_limit(sql, limit)

    @available.parse(lambda *a, **k: None)
    def incremental_mv_operation(self, operation: str, options: Mapping[str, Any]) -> None:
        """Run an operation of `dbt run-operation` on the chosen models, and log its table.

        Raises DbtRuntimeError if it failed for any of them, after the others."""
        # dbt-core's selection and compiler load only with operations.
        from .incremental_mv.operations import actions, dispatch, plan, project

        credentials = self.config.credentials
        manifest_project = project.Project(self.get_macro_resolver(), self.config)
        engine = options.get("engine") or credentials.backfill_engine
        flags = {"full_refresh": bool(options.get("full_refresh"))}

        def next_settings(node: Mapping[str, Any]) -> RunSettings:
            """Return the settings of the next run of a model."""
            return settings_of(node["config"], node, credentials, flags)

        schemas = {schema for schema, _ in manifest_project.relations()} | {credentials.schema}
        dispatch.run(
            operation,
            actions.Request(
                self.warehouse(), check_backfill_engine(engine, operation), dict(options)
            ),
            manifest_project,
            plan.Planner(manifest_project, next_settings),
            frozenset(schemas),
        )

    @available.parse(lambda *a, **k: [])
    def untested_models(self, nodes: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return the unique ids of the `incremental_mv` models that no test reconciles."""
        return [n["unique_id"] for n in test_files.untested(nodes)]

    @available.parse(lambda *a, **k: [])
    def write_reconciliation_tests(
        self, nodes: Iterable[Mapping[str, Any]], folder: str | None
    ) -> list[str]:
        """Bring the generated tests up to date, one for each model without a test; return lines."""
        root = getattr(self.config, "project_root", ".")
        paths = getattr(self.config, "test_paths", None) or ["tests"]
        project = getattr(self.config, "project_name", "")
        return test_files.write_tests(nodes, root, folder or f"{paths[0]}/reconciled", project)

    # --- helpers

    def _handle(self) -> Handle:
        """Return the connection handle of the calling thread."""
        handle: Handle = self.connections.get_thread_connection().handle
        return handle
