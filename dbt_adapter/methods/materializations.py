"""Incremental models, snapshots and seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import available
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError

from .. import (
    incremental_checks,
    incremental_strategies,
    schema_changes,
    seed_changes,
    seeds,
    snapshots,
)
from ..column import OlapdbColumn
from ..config_reader import config_error, maybe
from ..relation import OlapdbRelation
from ..snapshots import SnapshotChange
from .types import TypeMethods

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("olapdb")


class MaterializationMethods(TypeMethods):
    """Methods of the materializations incremental, snapshot and seed."""

    @available
    def valid_incremental_strategies(self) -> list[str]:
        """Return the strategies of dbt's materialization `incremental`."""
        return list(incremental_strategies.BUILTIN)

    @available
    def incremental_strategy(self, config: Mapping[str, Any]) -> str:
        """Return the strategy of a model, "default" without one."""
        return incremental_strategies.strategy_of(config)

    @available.parse_none
    def get_incremental_strategy_macro(
        self, model_context: Mapping[str, Any], strategy: str
    ) -> Any:
        """Return the macro of a strategy. Raise CompilationError for a name that is neither the adapter's nor that of
        a macro of the project."""
        name = f"get_incremental_{strategy.replace('+', '_')}_sql"
        if not self.is_builtin_strategy(strategy) and name not in model_context:
            known = incremental_strategies.BUILTIN
            raise CompilationError(
                f"There is no incremental_strategy '{strategy}'.{maybe(strategy, known)} There are "
                f"{', '.join(known)}; dbt could not find an incremental strategy macro with the name "
                f'"{name}", which would be one of the project\'s own.'
            )
        return super().get_incremental_strategy_macro(model_context, strategy)

    @available
    def is_builtin_strategy(self, strategy: str) -> bool:
        """Return whether the strategy is the adapter's, not a macro of the project."""
        return strategy in ("default", *incremental_strategies.BUILTIN)

    @available.parse(lambda *a, **k: None)
    def check_incremental(self, this: object, config: Mapping[str, Any], sql: str) -> None:
        """Raise CompilationError for predicates and merged columns of the incremental model `this` that do
        not fit its query, and warn of such keys: a first run does not use them."""
        problems, of_keys = incremental_checks.query_mistakes(
            config, sql, self._handle().connection.describe
        )
        if problems:
            raise config_error([*problems, *of_keys])
        for problem in of_keys:
            logger.warning(f"The next run of {this} will fail: {problem}")

    @available
    def replace_keys_clause(self, unique_key: object, predicates: object) -> str:
        """Return the REPLACE clause of INSERT that removes rows with a key of the run's rows; see
        `incremental_strategies.keys_clause`."""
        return incremental_strategies.keys_clause(unique_key, predicates)

    @available
    def replace_partitions_clause(self, config: Mapping[str, Any], predicates: object) -> str:
        """Return the REPLACE clause of INSERT that removes the rows of the partitions to which the
        run's rows belong."""
        return incremental_strategies.partitions_clause(config, predicates)

    @available
    def replace_batch_clause(self, model: Mapping[str, Any], predicates: object) -> str:
        """Return the REPLACE clause of INSERT that removes the rows of the run's batch."""
        return incremental_strategies.batch_clause(model, predicates)

    @available.parse(lambda model, sql: sql)
    def batch_rows(self, model: Mapping[str, Any], sql: str) -> str:
        """Return the model's query; in a batch, one that fails at rows of another batch."""
        return incremental_strategies.batch_rows(model, sql)

    @available
    def merge_kept_columns(
        self, config: Mapping[str, Any], unique_key: object, columns: Sequence[OlapdbColumn]
    ) -> list[str]:
        """Return the columns that a merge does not update."""
        names = [column.name for column in columns]
        return incremental_strategies.merge_kept(config, unique_key, names)

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
        """Return the query of a merge: the run's rows, with the `kept` columns of known rows; see
        `incremental_strategies.merged_rows`."""
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
    def schema_change_sql(
        self, on_schema_change: str, relation: OlapdbRelation, change: Mapping[str, Any]
    ) -> str:
        """Return the ALTER that brings an incremental table to its query's columns, "" for none."""
        return schema_changes.alter_actions(on_schema_change, relation, change)

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

    @available.parse(lambda *a, **k: None)
    def check_snapshot(self, target: OlapdbRelation, sql: str, config: Mapping[str, Any]) -> None:
        """Raise CompilationError for columns of a snapshot's config that its query lacks."""
        columns = self.get_column_schema_from_query(sql)
        problems = snapshots.missing_columns(target.render(), config, columns)
        if problems:
            raise config_error(problems)

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

    @available.parse(lambda *a, **k: "")
    def load_seed(
        self, relation: OlapdbRelation, agate_table: agate.Table, exchange: bool = False
    ) -> dict[str, Any]:
        """Insert the seed's rows in one commit. Return the equivalent `statement`, and whether it has
        `changed` the table.

        With `exchange` the table has no other rows afterwards: rows that the file lacks leave,
        equal rows stay, and the others are inserted."""
        types = {c.name: c.dtype for c in self.get_columns_in_relation(relation)}
        data = seeds.to_arrow(agate_table, types)
        clause = "REPLACE WHERE 1" if exchange else ""
        statement = f"INSERT INTO {relation.render()} {clause} FORMAT Arrow"
        with self.connections.exception_handler(statement):
            inserted = self._handle().connection.insert(relation.render(), data, replace=clause)
        return {"statement": statement, "changed": inserted.commit is not None}

    @available.parse(lambda *a, **k: "String")
    def seed_column_type(
        self, agate_table: agate.Table, column: int, overrides: Mapping[str, str]
    ) -> str:
        """Return the type of a seed's column: the configured one, or that of its values."""
        configured = overrides.get(agate_table.column_names[column])
        if configured:
            return seeds.configured_type(configured, agate_table, column)
        return str(self.convert_type(agate_table, column))

    @available.parse_none
    def check_seed_types(
        self, this: object, agate_table: agate.Table, overrides: Mapping[str, str]
    ) -> None:
        """Warn of types for columns that the seed `this` lacks: config column_types of a folder may be meant for
        another seed of it."""
        names = [str(name) for name in agate_table.column_names]
        for name in overrides:
            if name not in names:
                logger.warning(
                    f"column_types of {this} names {name}.{maybe(name, names)} The file has the columns "
                    f"{', '.join(names)}."
                )

    @available.parse(lambda *a, **k: True)
    def seed_fits(
        self, relation: OlapdbRelation, agate_table: agate.Table, overrides: Mapping[str, str]
    ) -> bool:
        """Return whether the table has the columns of the seed, of types that hold its values.

        `overrides` are the configured types; other columns may be Nullable without need."""
        old_types = {c.name: c.dtype for c in self.get_columns_in_relation(relation)}
        new_types = {
            str(name): self.seed_column_type(agate_table, index, overrides)
            for index, name in enumerate(agate_table.column_names)
        }
        return seed_changes.fits(old_types, new_types, overrides)
