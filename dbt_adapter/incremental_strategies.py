"""The SQL of incremental strategies: which rows of the table leave for those of the run.

Each strategy is one INSERT … REPLACE; see docs/tables.md.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dbt_common.exceptions import CompilationError

from .relation import OlapdbRelation, moment_literal, quote, string_literal
from .storage_clause import key_expression

BUILTIN = ("append", "delete+insert", "merge", "insert_overwrite", "microbatch")
_TARGET_PREFIX = re.compile(r"`?\bDBT_INTERNAL_(?:DEST|TARGET)\b`?\s*\.", re.IGNORECASE)
_SOURCE_PREFIX = re.compile(r"\bDBT_INTERNAL_SOURCE\b", re.IGNORECASE)


def strategy_of(config: Mapping[str, Any]) -> str:
    """Return the model's strategy, "default" without one.

    Raises CompilationError for `unique_key` with a strategy that appends, and for strategies without
    the configs that they need."""
    strategy = str(config.get("incremental_strategy") or "default").replace(
        "delete_insert", "delete+insert"
    )
    keys = keys_of(config.get("unique_key"))
    if strategy == "legacy":
        raise CompilationError(
            "incremental_strategy='legacy' of dbt-clickhouse writes the whole table anew. Say "
            "'delete+insert', which replaces the rows with a key of the run in one commit."
        )
    if strategy == "append" and keys:
        raise CompilationError(
            f"unique_key={', '.join(keys)} means nothing to incremental_strategy='append', which "
            "keeps the rows of a known key. Remove the strategy or say 'delete+insert', which "
            "replaces these rows; or remove unique_key."
        )
    if strategy == "microbatch" and not config.get("event_time"):
        raise CompilationError(
            "incremental_strategy='microbatch' needs event_time, the column that places a row in "
            "its batch."
        )
    return strategy


def keys_of(unique_key: object) -> list[str]:
    """Return the columns or expressions of a `unique_key`; [] without one.

    Raises CompilationError."""
    if not unique_key:
        return []
    if isinstance(unique_key, str):
        return [unique_key]
    if isinstance(unique_key, Sequence) and all(isinstance(key, str) for key in unique_key):
        return list(dict.fromkeys(unique_key))
    raise CompilationError(f"unique_key is an expression or a list of them, not {unique_key!r}.")


def keys_clause(unique_key: object, predicates: object) -> str:
    """Return the REPLACE clause of INSERT that removes the table's rows with a key of the run's
    rows, of these only those that fulfil the predicates; "" without a key."""
    keys = keys_of(unique_key)
    return f"replace using ({', '.join(keys)}){_where(predicates)}" if keys else ""


def partitions_clause(config: Mapping[str, Any], predicates: object) -> str:
    """Return the REPLACE clause of INSERT that removes the rows of the partitions to which the
    run's rows belong; of a table without partitions all rows. Rows that do not fulfil the
    predicates stay."""
    partition_by = key_expression(config.get("partition_by"), "partition_by")
    if partition_by:
        return f"replace using ({partition_by}){_where(predicates)}"
    return f"replace{_where(predicates) or ' where 1'}"


def batch_clause(model: Mapping[str, Any], predicates: object) -> str:
    """Return the REPLACE clause of INSERT that removes the rows of the run's batch that fulfil the
    predicates.

    Raises CompilationError outside of a batch."""
    bounds = _batch_bounds(model)
    if not bounds:
        raise CompilationError(
            "incremental_strategy='microbatch' runs in batches: set begin and batch_size."
        )
    return f"replace{_where([*bounds, *predicates_of(predicates)])}"


def batch_rows(model: Mapping[str, Any], sql: str) -> str:
    """Return the model's query, which fails at a row of another batch if it runs in a batch.

    A batch replaces the rows of its own time, so that a row of another time would be inserted again
    by each run. That happens if no input of the model has an `event_time`."""
    bounds = _batch_bounds(model)
    if not bounds:
        return sql
    event_time = model["config"]["event_time"]
    start, end = (moment.isoformat(" ") for moment in _batch_of(model))
    message = (
        f"The batch from {start} to {end} has rows of another {event_time}. A batch replaces rows of "
        "its own time, so that each run would insert those again. Set event_time in the config of "
        "the sources and models that it reads, so that dbt filters them by the batch, or filter the "
        f"query by {event_time}"
    )
    outside = f"not ifNull({' and '.join(bounds)}, false)"
    return (
        f"select * from (\n{sql}\n) as DBT_INTERNAL_BATCH "
        f"where throwIf({outside}, {string_literal(message)}) = 0"
    )


def _batch_of(model: Mapping[str, Any]) -> tuple[datetime.datetime, ...]:
    """Return start and end of the run's batch; () outside of a batch."""
    batch = model.get("batch") or {}
    start, end = batch.get("event_time_start"), batch.get("event_time_end")
    return () if start is None or end is None else (start, end)


def _batch_bounds(model: Mapping[str, Any]) -> list[str]:
    """Return the conditions for rows of the run's batch; [] outside of a batch."""
    batch = _batch_of(model)
    if not batch:
        return []
    start, end = batch
    event_time = _event_time(model)
    return [f"{event_time} >= {moment_literal(start)}", f"{event_time} < {moment_literal(end)}"]


def _event_time(model: Mapping[str, Any]) -> str:
    """Return SQL for the model's `event_time`: in quotes if the properties of that column say
    `quote: true`, else as it is written. dbt filters the refs of other models in the same way."""
    name = str(model["config"].get("event_time"))
    column = (model.get("columns") or {}).get(name) or {}
    return quote(name) if column.get("quote") else name


def merge_kept(config: Mapping[str, Any], unique_key: object, names: Sequence[str]) -> list[str]:
    """Return the columns that a merge leaves as they are in rows of a known key: those that are not
    in `merge_update_columns`, or those in `merge_exclude_columns`.

    Raises CompilationError if both are set, or a column does not exist."""
    update, exclude = config.get("merge_update_columns"), config.get("merge_exclude_columns")
    if update and exclude:
        raise CompilationError(
            "Set merge_update_columns or merge_exclude_columns, not both: one says what the other "
            "leaves."
        )
    if not keys_of(unique_key):
        return []
    listed = update or exclude or []
    listed = [listed] if isinstance(listed, str) else list(listed)
    by_case = {name.lower(): name for name in names}
    unknown = [name for name in listed if name.lower() not in by_case]
    if unknown:
        raise CompilationError(
            f"The table has no column {', '.join(unknown)}, which merge_update_columns or "
            f"merge_exclude_columns names. It has {', '.join(names)}."
        )
    chosen = {by_case[name.lower()] for name in listed}
    keys = keys_of(unique_key)
    if update:
        return [name for name in names if name not in chosen and name not in keys]
    return [name for name in names if name in chosen]


def merged_rows(
    target: OlapdbRelation,
    rows: str,
    keys: Sequence[str],
    columns: Sequence[str],
    kept: Sequence[str],
    predicates: object,
) -> str:
    """Return the query of a merge: the run's rows, with the `kept` columns of the table's row of
    their key if there is one."""
    key_names = [f"__dbt_key_{at}" for at in range(len(keys))]
    numbered = ", ".join(f"({key}) as {name}" for key, name in zip(keys, key_names, strict=True))
    match = " and ".join(f"new.{name} <=> old.{name}" for name in key_names)
    chosen = ", ".join(
        f"if(old.__dbt_known = 1, old.{quote(name)}, new.{quote(name)}) as {quote(name)}"
        if name in kept
        else f"new.{quote(name)} as {quote(name)}"
        for name in columns
    )
    kept_columns = ", ".join(map(quote, kept))
    return (
        f"select {chosen} from (select *, {numbered} from {rows}) as new left join "
        f"(select {kept_columns}, {numbered}, toUInt8(1) as __dbt_known "
        f"from {target.render()}{_where(predicates)}) as old on {match}"
    )


def _where(predicates: object) -> str:
    """Return the WHERE clause of predicates; "" without any."""
    conditions = " and ".join(f"({predicate})" for predicate in predicates_of(predicates))
    return f" where ({conditions})" if conditions else ""


def predicates_of(predicates: object) -> list[str]:
    """Return the predicates over the table's columns, without dbt's name for the table.

    Raises CompilationError for one about the run's rows."""
    if not predicates:
        return []
    listed = [predicates] if isinstance(predicates, str) else predicates
    if not isinstance(listed, Sequence) or not all(isinstance(column, str) for column in listed):
        raise CompilationError(
            f"incremental_predicates is a list of conditions, not {predicates!r}."
        )
    for predicate in listed:
        if _SOURCE_PREFIX.search(predicate):
            raise CompilationError(
                f"The incremental predicate {predicate!r} reads DBT_INTERNAL_SOURCE. Predicates "
                "choose rows of the table; filter the model's rows in its own SQL."
            )
    return [_TARGET_PREFIX.sub("", predicate) for predicate in listed]
