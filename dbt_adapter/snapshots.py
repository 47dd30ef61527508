"""The change of a snapshot as one statement, so that one commit ends old versions and adds new ones.

The query is joined with the versions that are current; each pair of rows gives up to two actions:

    only in the query                                insert
    in both, the strategy says that it changed       close, insert
    in both, the version says "deleted"              close, insert
    only in the snapshot, hard_deletes = invalidate  close
    only in the snapshot, hard_deletes = new_record  close, delete: a version that says "deleted"

`close` writes the version again with its end, under the same id, and INSERT … REPLACE USING (id)
removes the one without. A process that is killed has changed all or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .column import OlapdbColumn
from .incremental_strategies import keys_of
from .relation import quote, string_literal

_CLOSE, _INSERT, _DELETE = "'close'", "'insert'", "'delete'"
# Types that Nullable cannot wrap.
_NEVER_NULL = re.compile(
    r"^(Array|Map|Tuple|Nested|AggregateFunction|Nullable|Variant|Dynamic|JSON)\b"
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_LOW_CARDINALITY = re.compile(r"^LowCardinality\((?!Nullable)(.*)\)$", re.DOTALL)


def nullable(data_type: str) -> str:
    """Return the type with NULL among its values, unchanged if it cannot have NULL."""
    inner = _LOW_CARDINALITY.match(data_type)
    if inner is not None:
        return f"LowCardinality({nullable(inner.group(1))})"
    if _NEVER_NULL.match(data_type) or data_type.startswith("LowCardinality("):
        return data_type
    return f"Nullable({data_type})"


def column_changes(
    snapshot: Sequence[OlapdbColumn], query: Sequence[OlapdbColumn], meta: Sequence[str]
) -> list[str]:
    """Return the actions of ALTER TABLE that make room for the query's rows.

    A new column is Nullable, since the versions before it have no value. A column that the query
    lacks, or where it may have NULL, becomes Nullable."""
    existing = {column.name: column for column in snapshot}
    queried = {column.name: column for column in query}
    actions = [
        f"ADD COLUMN {quote(column.name)} {nullable(column.dtype)}"
        for column in query
        if column.name not in existing
    ]
    for column in snapshot:
        source = queried.get(column.name)
        needs_null = source is None or source.is_nullable
        if column.name not in meta and needs_null and nullable(column.dtype) != column.dtype:
            actions.append(f"MODIFY COLUMN {quote(column.name)} {nullable(column.dtype)}")
    return actions


def missing_columns(
    snapshot: str, config: Mapping[str, Any], query: Sequence[OlapdbColumn]
) -> list[str]:
    """Return a mistake for each column of unique_key, updated_at and check_cols that is not in the
    query; expressions are not looked into. A first run uses none of check_cols."""
    names = [column.name for column in query]
    named = [("unique_key", key) for key in keys_of(config.get("unique_key"))]
    named.append(("updated_at", str(config.get("updated_at") or "")))
    if config.get("strategy") == "check" and not isinstance(config.get("check_cols"), str):
        named += [("check_cols", column) for column in config.get("check_cols") or ()]
    mistakes = []
    for key, value in named:
        plain = value.strip().strip('`"')
        if _NAME.fullmatch(plain) and plain not in names:
            mistakes.append(
                f"The {key} {plain} of the snapshot {snapshot} is not a column of its query, "
                f"which has {', '.join(names)}."
            )
    return mistakes


@dataclass(frozen=True)
class SnapshotChange:
    """The change that brings a snapshot up to date with its query, as one statement. Texts are SQL.

    `meta` maps dbt's names of the columns that it adds to those of this snapshot. `current` is the
    end of a version that is current, "" for NULL. `deleted_id` is the id of a version that says
    "deleted"."""

    target: str
    query: str
    columns: Sequence[OlapdbColumn]
    query_columns: Sequence[OlapdbColumn]
    strategy: Mapping[str, Any]
    meta: Mapping[str, str]
    now: str
    current: str
    deleted_id: str

    def statement(self) -> str:
        """Return the one INSERT … REPLACE that applies all changes of the snapshot."""
        scd_id = quote(self.meta["dbt_scd_id"])
        names = ", ".join(quote(column.name) for column in self.columns)
        values = ",\n  ".join(
            f"{self._value(column)} as {quote(column.name)}" for column in self.columns
        )
        unchecked = (
            f"select {values}, dbt_action, dbt_key_rows\nfrom ({self._actions()}) as dbt_changes"
        )
        ids = ", ".join(
            self._checked_id() if quote(column.name) == scd_id else quote(column.name)
            for column in self.columns
        )
        return (
            f"insert into {self.target} ({names}) replace using ({scd_id})\n"
            f"select {ids} from (\n{unchecked}\n) as dbt_versions"
        )

    # --- the join

    def _actions(self) -> str:
        """Return a query with a row for each action. It joins the query's rows with the current
        versions of the same key; the actions of each pair are those of `_decision`."""
        columns = [
            f"{side}.{quote(column.name)} as {quote(prefix + column.name)}"
            for side, prefix, side_columns in (
                ("snapshotted_data", "dbt_old_", self.columns),
                ("source_data", "dbt_new_", self.query_columns),
            )
            for column in side_columns
        ]
        both = [
            *columns,
            "source_data.dbt_version_time as dbt_version_time",
            "source_data.dbt_version_id as dbt_version_id",
            "ifNull(source_data.dbt_in_query, 0) as dbt_in_query",
            "source_data.dbt_key_rows as dbt_key_rows",
            f"{self._decision()} as dbt_actions",
        ]
        selected = ",\n    ".join(both)
        return f"""
  select *, dbt_action from (
    select {selected}
    from ({self._new()}) as source_data
    full outer join ({self._old()}) as snapshotted_data on {self._same_key()}
  ) as dbt_pairs
  array join dbt_actions as dbt_action
"""

    def _new(self) -> str:
        """Return a SELECT of the query's rows with the columns of their key, the number of rows of
        that key, and the time and id of the version that each row would have."""
        keys = ", ".join(self._unique_key())
        return (
            f"select *, {self._keys()}, count() over (partition by {keys}) as dbt_key_rows, "
            f"{self.strategy['updated_at']} as dbt_version_time, "
            f"{self.strategy['scd_id']} as dbt_version_id, 1 as dbt_in_query "
            f"from (\n{self.query}\n) as dbt_query"
        )

    def _old(self) -> str:
        """Return a SELECT of the snapshot's current versions with the columns of their key."""
        valid_to = quote(self.meta["dbt_valid_to"])
        is_current = f"{valid_to} is null"
        if self.current:
            is_current = f"({valid_to} = {self.current} or {is_current})"
        return (
            f"select *, {self._keys()}, 1 as dbt_in_snapshot from {self.target} where {is_current}"
        )

    def _keys(self) -> str:
        """Return the columns for the join: each item of the unique key, and whether it is NULL."""
        return ", ".join(
            f"assumeNotNull({key}) as dbt_key_{n}, isNull({key}) as dbt_key_{n}_is_null"
            for n, key in enumerate(self._unique_key())
        )

    def _same_key(self) -> str:
        """Return the condition of the join: the keys are equal; NULL equals NULL."""
        return " and ".join(
            f"source_data.dbt_key_{n}{part} = snapshotted_data.dbt_key_{n}{part}"
            for n in range(len(self._unique_key()))
            for part in ("", "_is_null")
        )

    def _unique_key(self) -> list[str]:
        """Return the columns or expressions of the unique key."""
        return keys_of(self.strategy["unique_key"])

    def _decision(self) -> str:
        """Return SQL for the actions of a pair, as an array. A new key is inserted, a changed row
        closes its version and inserts one. A key that the query lacks stays, is closed, or is
        closed and gets a version that says "deleted", as `hard_deletes` says."""
        hard_deletes = self.strategy["hard_deletes"]
        changed = f"({self.strategy['row_changed']})"
        gone = "[]"
        if hard_deletes == "invalidate":
            gone = f"[{_CLOSE}]"
        if hard_deletes == "new_record":
            deleted = f"snapshotted_data.{quote(self.meta['dbt_is_deleted'])} = 'True'"
            changed = f"({changed} or {deleted})"
            gone = f"if({deleted}, [], [{_CLOSE}, {_DELETE}])"
        return (
            f"multiIf(ifNull(snapshotted_data.dbt_in_snapshot, 0) = 0, [{_INSERT}], "
            f"ifNull(source_data.dbt_in_query, 0) = 0, {gone}, "
            f"{changed}, [{_CLOSE}, {_INSERT}], [])"
        )

    # --- the versions

    def _value(self, column: OlapdbColumn) -> str:
        """Return SQL for a column of the version that an action writes: the query's value for an
        insert, the former version's otherwise. Columns that dbt adds have those of `_meta_value`.
        """
        old = quote(f"dbt_old_{column.name}")
        for role, name in self.meta.items():
            if name == column.name and (value := self._meta_value(role, old, column.dtype)):
                return value
        source = next((c for c in self.query_columns if c.name == column.name), None)
        if source is None:
            return f"if(dbt_action = {_INSERT}, null, {old})"
        new = quote(f"dbt_new_{column.name}")
        if source.dtype not in (column.dtype, column.plain_type):
            # Unlike CAST it fails if the value does not fit.
            new = f"accurateCast({new}, {string_literal(column.dtype)})"
        return f"if(dbt_action = {_INSERT}, {new}, {old})"

    def _meta_value(self, role: str, old: str, data_type: str) -> str:
        """Return SQL for one of the columns that dbt adds, "" if `role` is none of them. `old` is
        its value in the former version. The time of the run is cast to `data_type`, that of
        `updated_at`, which may be a Date."""
        current = self.current or "null"
        now = f"cast({self.now} as {data_type})"
        ended = f"if(dbt_in_query = 1, dbt_version_time, {now})"
        values = {
            "dbt_scd_id": (old, "dbt_version_id", self.deleted_id),
            "dbt_updated_at": (old, "dbt_version_time", now),
            "dbt_valid_from": (old, "dbt_version_time", now),
            "dbt_valid_to": (ended, current, old),
            "dbt_is_deleted": (old, "'False'", "'True'"),
        }
        if role not in values:
            return ""
        close, insert, delete = values[role]
        return (
            f"multiIf(dbt_action = {_CLOSE}, {close}, dbt_action = {_INSERT}, {insert}, {delete})"
        )

    def _checked_id(self) -> str:
        """Return SQL for a version's id that fails if the key of a changed row is not unique: two
        rows of the query have it, or two current versions."""
        scd_id = quote(self.meta["dbt_scd_id"])
        key = ", ".join(self._unique_key())
        message = f"unique_key ({key}) of the snapshot {self.target} is not unique in its query"
        twice = f"count() over (partition by {scd_id}, dbt_action) > 1"
        repeated = f"ifNull(dbt_key_rows, 0) > 1 or {twice}"
        return f"if(throwIf({repeated}, {string_literal(message)}) = 0, {scd_id}, '')"
