"""A model that writes into the target of another: several triggers, one table, one answer.

    {{ config(materialized='incremental_mv', target='events_per_day') }}
    -- depends_on: {{ ref('events_per_day') }}

The model that the config names owns the target: its keys, partitions, TTL and settings hold. The
others have a trigger and a read view each, and make rows of the same columns. Every read view answers
for the rows of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dbt_common.exceptions import CompilationError

from olapdb.functions import parse_type
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_one
from olapdb.types import AggregateFunction, SimpleAggregateFunction
from olapdb.views.definition.column_conversion import conversion

from ..refreshable.config import is_refreshed
from ..relation import string_literal
from .config import ModelConfig
from .differences import target_difference
from .errors import refuse
from .model_definition import ModelDefinition
from .names import ModelNames
from .warehouse import TableInfo, Warehouse


def owner_of(manifest_nodes: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    """Return the relation name of the model whose target this one writes, "" for one of its own.

    Raises CompilationError if config target names no `incremental_mv` of the same schema that the
    model depends on, or one that writes the target of another itself."""
    name = (model.get("config") or {}).get("target")
    if not name:
        return ""
    below = (model.get("depends_on") or {}).get("nodes") or []
    named = [manifest_nodes[i] for i in below if i in manifest_nodes]
    owner = next((n for n in named if n.name == name), None)
    if owner is None:
        raise refuse(
            f"config target is '{name}',",
            "a model that this one does not depend on, so that dbt may run it first.",
            f"Add the line -- depends_on: {{{{ ref('{name}') }}}}",
        )
    maintained = ("incremental_mv", "materialized_view")
    if owner.config.get("materialized") not in maintained or is_refreshed(owner.config):
        raise refuse(
            f"config target is '{name}',",
            f"which is materialized as {owner.config.get('materialized')}.",
            "Name an incremental_mv.",
        )
    if owner.config.get("target"):
        raise refuse(
            f"config target is '{name}',",
            f"which writes the target of {owner.config.get('target')} itself.",
            f"Set target='{owner.config.get('target')}'.",
        )
    if owner.schema != model.get("schema"):
        raise refuse(
            f"config target is '{name}' in {owner.schema},",
            "and a model and its target are in one schema.",
            f"Give both the same schema; this model is in {model.get('schema')}.",
        )
    return str(owner.alias or owner.name)


def config_of_owner(warehouse: Warehouse, names: ModelNames, config: ModelConfig) -> ModelConfig:
    """Return the config with the keys of the shared target.

    Raises CompilationError if the target is not there."""
    target = warehouse.table(names.table(names.target), names.database)
    if target is None:
        raise refuse(
            f"the target of {names.shares} ({names.target})",
            "does not exist.",
            f"Run {names.shares} first.",
        )
    live = parse_one(f"CREATE TABLE t (x UInt8) ENGINE = {target.engine_full}")
    assert isinstance(live, nodes.CreateTable)
    partition_by = live.storage.partition_by
    return replace(
        config,
        order_by=[to_sql(item.expression) for item in live.storage.order_by or ()] or None,
        partition_by=None if partition_by is None else to_sql(partition_by),
    )


def into_shared_target(
    warehouse: Warehouse, names: ModelNames, definition: ModelDefinition
) -> ModelDefinition:
    """Return the definition of a model that writes the target of another.

    Raises CompilationError if its columns mean something else than those of the owner."""
    owner = warehouse.view(ModelNames(names.database, names.shares))
    target = warehouse.table(names.table(names.target), names.database)
    if owner is None or not owner.model or target is None:
        raise refuse(
            f"{names.shares} has no trigger,", "so its target is not to be shared.", "Run it first."
        )
    if definition.checks:
        raise refuse(
            "the model's contract has constraints,",
            f"which are of the target, and that belongs to {names.shares}.",
            "Put them into the contract of that model.",
        )
    # A target without partitions has none for this model, however its own source is partitioned.
    partition_by = definition.partition_by if target.partition_key else ""
    shared = replace(
        definition, shares=names.shares, settings="", ttl="", partition_by=partition_by
    )
    shared = replace(shared, columns=_stored_columns(shared, target))
    difference, _ = target_difference(names, shared, target)
    if not difference and dict(owner.column_kinds) != dict(definition.column_kinds):
        difference = "Columns are finished by other functions there."
    if difference:
        raise refuse(
            f"the rows do not fit the target of {names.shares}:",
            difference,
            "Select the same columns, of the same types and aggregates, in the same order; "
            "CAST(x AS T) AS x gives a column x the type T.",
        )
    return shared


def _stored_columns(definition: ModelDefinition, target: TableInfo) -> tuple[tuple[str, str], ...]:
    """Return the columns of the model, with the types of the target where these hold every value:
    a LowCardinality(String) is stored as String, a UInt8 as UInt64."""
    live = parse_one(target.create_table_query)
    assert isinstance(live, nodes.CreateTable)
    live_types = {column.name: str(column.type) for column in live.columns}
    keys_only = bool(definition.group_by)
    return tuple(
        (name, live_types[name])
        if _is_held(data_type, live_types.get(name, data_type), keys_only=keys_only)
        else (name, data_type)
        for name, data_type in definition.columns
    )


def _is_held(own: str, stored: str, *, keys_only: bool) -> bool:
    """Return whether a column of type `own` may be stored as `stored` without another answer.

    With `keys_only` columns that do not merge are keys of GROUP BY."""
    if own == stored:
        return False
    source, target = parse_type(own), parse_type(stored)
    if isinstance(source, SimpleAggregateFunction) and isinstance(target, SimpleAggregateFunction):
        if source.function != target.function:
            return False
        held = conversion(source.inner, target.inner, source.function, summed=True)
        return held.kind == "exact"
    states = (AggregateFunction, SimpleAggregateFunction)
    if isinstance(source, states) or isinstance(target, states):
        return False
    return conversion(source, target, "group" if keys_only else "row").kind == "exact"


def refuse_other_target(names: ModelNames, live_target: str, shares: str) -> CompilationError:
    """Return the error for a trigger that writes another target than the model says."""
    relation = f"{names.database}.{names.model}"
    trigger = f"{names.database}.{names.view}"
    if shares == names.shares:
        return CompilationError(
            f"The trigger {names.view} writes {names.database}.{live_target}: the target "
            f"of {names} was renamed. RENAME TABLE it back to {names.target}."
        )
    if shares:
        remedy = (
            f"DROP TABLE {trigger}, {relation}; then SYSTEM REPLAY VIEW {names.database}."
            f"{ModelNames('', shares).view} DISCARD BYPASS, which removes its rows there"
        )
    else:
        remedy = f"DROP TABLE {trigger}, {relation}, {names.database}.{live_target}"
    return CompilationError(
        f"The trigger of {names} writes {live_target}, and by its config target it would write "
        f"{names.target}. Rows are not moved from one target to another: {remedy}; then run it again."
    )


def rows_left_by_a_trigger(warehouse: Warehouse, names: ModelNames) -> str:
    """Return why a model without a trigger cannot simply be filled: the target that it shares has
    rows that no trigger made, among them those of its own dropped one. "" if it has none."""
    rows = warehouse.rows(
        "SELECT database, name, bypass_rows FROM system.views WHERE standing = '' "
        f"AND target_database = {string_literal(names.database)} "
        f"AND target_table = {string_literal(names.target)} AND bypass_rows > 0 "
        "ORDER BY database, name LIMIT 1"
    )
    if not rows:
        return ""
    trigger = f"{rows[0]['database']}.{rows[0]['name']}"
    return (
        f"{names} has no trigger, and {names.database}.{names.target} has {rows[0]['bypass_rows']} "
        f"rows that no trigger made: a dropped trigger of {names} left them, or they were written "
        "by hand. A backfill would count the former twice. Run SYSTEM REPLAY VIEW "
        f"{trigger} DISCARD BYPASS, which removes them, then dbt again; or run dbt with "
        "--full-refresh, which does both."
    )
