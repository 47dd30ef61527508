"""Checks the config of a node before it runs: every key is known, or refused with its remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import incremental_checks
from .config_reader import maybe
from .credentials import OlapdbCredentials
from .incremental_mv import config as mv_config
from .incremental_mv.names import ModelNames
from .python_models.rows_table import ROWS_SUFFIX
from .refreshable import config as refreshable_config
from .storage_clause import storage_mistakes

MV_MATERIALIZATIONS = ("incremental_mv", "materialized_view")
_LAYOUT = frozenset(
    [
        "engine",
        "order_by",
        "partition_by",
        "primary_key",
        "settings",
        "table_settings",
        "indexes",
        "projections",
    ]
)
"""Keys of how rows are stored. A view may have them: it may be a table in another environment."""
_STORAGE = _LAYOUT | {"ttl"}
_INCREMENTAL = frozenset(
    ["incremental_predicates", "predicates", "merge_update_columns", "merge_exclude_columns"]
)
_NOTED_OF_PYTHON = frozenset(
    ["config_keys_used", "config_keys_defaults", "meta_keys_used", "meta_keys_defaults"]
)
"""What dbt notes of the keys that a Python model reads."""
_PYTHON = _NOTED_OF_PYTHON | {"submission_method", "arrow_input", "spark", "timeout"}
_HINTS_OF_OTHERS = frozenset(
    ["sort", "sort_type", "dist", "bind", "backup", "transient", "copy_grants", "unlogged"]
)
"""Keys by which packages tune tables of other warehouses: they change no row and are ignored."""
_KNOWN: Mapping[str, frozenset[str]] = {
    "view": _LAYOUT | {"sql_header"},
    "table": _STORAGE | {"query_settings", "sql_header"},
    "incremental": _STORAGE | _INCREMENTAL | {"query_settings", "sql_header"},
    "seed": _STORAGE,
    "snapshot": _STORAGE | {"hard_deletes", "invalidate_hard_deletes", "sql_header"},
    **dict.fromkeys(
        MV_MATERIALIZATIONS,
        frozenset(
            [
                "order_by",
                "partition_by",
                "engine",
                "ttl",
                "retain",
                "settings",
                "table_settings",
                "backfill",
                "catchup",
                "backfill_on",
                "backfill_engine",
                "on_definition_change",
                "dimensions",
                "reconcile",
                "deduplicate_by",
                "target",
            ]
        ),
    ),
}
"""The keys beside dbt's own, by materialization."""

_OF_DBT = (
    *("alias", "database", "enabled", "full_refresh", "group", "materialized", "schema", "tags"),
    *("contract", "docs", "grants", "meta", "persist_docs", "post_hook", "pre_hook", "quoting"),
    *("incremental_strategy", "on_configuration_change", "on_schema_change", "unique_key"),
    *("batch_size", "begin", "concurrent_batches", "event_time", "lookback"),
    *("check_cols", "snapshot_meta_column_names", "strategy", "updated_at"),
    *("column_types", "delimiter", "quote_columns"),
)
"""Keys that dbt has for all adapters, of which a misspelt one may be meant."""

_ALL = refreshable_config.KEYS.union(*_KNOWN.values())

_ANSWERS: Mapping[str, str] = {
    "sharding_key": "a warehouse is not sharded. Remove it.",
    "cluster": "a warehouse is not a cluster. Remove it.",
    "disable_on_cluster": "a warehouse is not a cluster. Remove it.",
    "refresh": "a view that is refreshed on a schedule is materialized='materialized_view'.",
    "refreshable": "a view that is refreshed on a schedule is materialized='materialized_view'.",
    "mv_on_schema_change": "the views over a table are kept or refused when the table is rebuilt. "
    "Set on_schema_change on the incremental_mv.",
    "repopulate_from_mvs_on_full_refresh": "a full refresh of an incremental_mv recomputes it from "
    "its source. Remove it.",
    "sql_security": "the warehouse has one user. Remove it.",
    "definer": "the warehouse has one user. Remove it.",
    "inserts_only": "it is called incremental_strategy='append'.",
    "materialization_target_table": "it is called target, the name of the model that owns it.",
    "external_target": "it is called target, the name of the model that owns it.",
    "target_table": "it is called target, the name of the model that owns it.",
}
"""What to do instead of keys of dbt-clickhouse that no materialization has."""

_ANSWERS_MV: Mapping[str, str] = {
    "unique_key": "the group keys are unique already. For the newest row of each key aggregate "
    "with argMax(column, time).",
    "incremental_strategy": "every INSERT into the source maintains the model. Remove it.",
    "primary_key": "the target is sorted, and indexed, by the group keys; set their order by "
    "order_by.",
    "indexes": "add them to the target in a post_hook: ALTER TABLE <model>__target ADD INDEX IF "
    "NOT EXISTS …",
    "projections": "add them to the target in a post_hook: ALTER TABLE <model>__target ADD PROJECTION "
    "IF NOT EXISTS …, with table_settings={'deduplicate_merge_projection_mode': 'rebuild'}.",
    "query_settings": "the trigger runs in each INSERT, with the settings of that INSERT; backfills "
    "run with the settings of the profile.",
    "sql_header": "the model is part of a trigger, which runs in each INSERT. Put statements into "
    "a pre_hook.",
    "batch_size": "a backfill is cut into chunks by the partitions of the source. Remove it.",
    "begin": "it is called backfill={'from': …}.",
    "concurrent_batches": "it is called backfill={'parallel': n}.",
    "lookback": "rows that arrive late reach the model at their INSERT. Remove it.",
    "column_types": "it is of seeds. Cast in the SELECT.",
}
"""What to do instead of keys that other materializations have, and of dbt's own."""


@dataclass(frozen=True)
class NodeConfig:
    """The config of a model, seed or snapshot as its check needs it.

    `extra` are the keys that dbt does not know, `own` the keys that the node itself sets, as far as
    dbt tells, and `inherited` those that dbt_project.yml sets for its folder. `meant` are those of
    them that it sets together with the node's materialization, so that they are for no other."""

    materialized: str
    language: str
    values: Mapping[str, Any]
    extra: frozenset[str]
    own: frozenset[str]
    inherited: frozenset[str]
    meant: frozenset[str] = frozenset()

    @property
    def addressed(self) -> frozenset[str]:
        """The keys that are for this node, and not only for others of its folder."""
        return self.own | self.meant


def mistakes(node: NodeConfig, credentials: OlapdbCredentials) -> list[str]:
    """Return all mistakes in a node's config; none for a materialization that is not olapdb's."""
    known = _KNOWN.get(node.materialized)
    if known is None:
        return []
    is_refreshed = refreshable_config.is_refreshed(node.values)
    if is_refreshed:
        known = refreshable_config.KEYS
    if node.language == "python":
        known = known | _PYTHON | frozenset(node.values.get("config_keys_used") or ())
    problems = [
        _unknown(node, key, known)
        for key in sorted(node.extra - known - _HINTS_OF_OTHERS)
        # dbt sets keys of its own in the batches of a microbatch model.
        if not key.startswith("__dbt_internal")
        # A folder's keys may be meant for the models of another materialization in it.
        and (key not in _ALL or key in node.addressed or key not in node.inherited)
    ]
    if is_refreshed:
        return problems + refreshable_config.mistakes(node.values)
    if node.materialized in MV_MATERIALIZATIONS:
        problems += [
            f"{key} means nothing to an incremental_mv: {_ANSWERS_MV[key]}"
            for key in sorted(_ANSWERS_MV.keys() - node.extra)
            if key in node.addressed and node.values.get(key) not in (None, {}, [])
        ]
        if node.materialized == "incremental_mv" and "on_configuration_change" in node.addressed:
            problems.append(
                "on_configuration_change means nothing to an incremental_mv: it is called "
                "on_definition_change, with rebuild for apply and ignore for continue."
            )
        return problems + mv_config.mistakes(node.values, credentials)
    if node.materialized == "incremental":
        problems += incremental_checks.mistakes(node.values)
    return problems + (storage_mistakes(node.values) if known >= _STORAGE else [])


def _unknown(node: NodeConfig, key: str, known: Iterable[str]) -> str:
    """Return the mistake of a key that means nothing to the node's materialization."""
    name = node.materialized
    where = " (from dbt_project.yml)" if key in node.inherited and key not in node.own else ""
    if refreshable_config.is_refreshed(node.values):
        hint = maybe(key, sorted(known)) or " Keys of your own belong under meta."
        return f"{key}{where} means nothing to a materialized_view with refresh.{hint}"
    answer = _ANSWERS_MV.get(key) if name in MV_MATERIALIZATIONS else None
    answer = answer or _ANSWERS.get(key)
    if answer is not None:
        return f"{key}{where} means nothing to {_article(name)}: {answer}"
    others = sorted(other for other, keys in _KNOWN.items() if key in keys)
    if others:
        return f"{key}{where} means nothing to {_article(name)}; it is of {', '.join(others)}."
    hint = maybe(key, sorted({*known, *_OF_DBT})) or " Keys of your own belong under meta."
    return f"{key}{where} means nothing to {_article(name)}.{hint}"


def _article(materialized: str) -> str:
    """Return the materialization with its article: `a table`, `an incremental_mv`."""
    return f"{'an' if materialized[0] in 'aeiou' else 'a'} {materialized}"


def inherited_keys(
    tree: Mapping[str, Any], fqn: Iterable[str], materialized: str
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the keys that dbt_project.yml sets for a node; `tree` is its section, as `models`.

    The first are all of them. The second are those that are set where, or below where, the section
    sets `materialized`: they are meant for that materialization and no other. There are none where
    the node is something else than the section says, as its properties file may say."""
    keys: set[str] = set()
    meant: set[str] | None = None
    said: object = materialized
    level: object = tree
    for part in ("", *fqn):
        level = level.get(part) if part and isinstance(level, Mapping) else level
        if not isinstance(level, Mapping):
            break
        here = {
            str(key).removeprefix("+").strip()
            for key, value in level.items()
            if str(key).startswith("+") or not isinstance(value, Mapping)
        }
        if "materialized" in here:
            meant = set()
            said = level.get("+materialized", level.get("materialized"))
        if meant is not None:
            meant |= here
        keys |= here
    return frozenset(keys), frozenset((meant or ()) if said == materialized else ())


# --- names


@dataclass(frozen=True)
class NamedNode:
    """A node that makes a relation: its name and file for messages, and where the relation is."""

    unique_id: str
    name: str
    path: str
    schema: str
    identifier: str
    materialized: str


def reserved_names(nodes: Iterable[NamedNode]) -> dict[str, str]:
    """Return a mistake for each node whose relation has the name of a part of another, by unique id.

    Parts are the trigger and target of an `incremental_mv`, and the relations that a run makes on
    its way (`__dbt_tmp`, `__dbt_backup`)."""
    listed = list(nodes)
    parts = {
        (node.schema, part): node
        for node in listed
        if node.materialized in MV_MATERIALIZATIONS
        for part in _parts(ModelNames(node.schema, node.identifier))
    }
    mistakes: dict[str, str] = {}
    for node in listed:
        owner = parts.get((node.schema, node.identifier))
        if owner is not None and owner.unique_id != node.unique_id:
            mistakes[node.unique_id] = (
                f"{node.name} ({node.path}) would be {node.schema}.{node.identifier}, which is a part "
                f"of the incremental_mv {owner.name} ({owner.path}). Rename one of them, or give it "
                "an alias."
            )
        elif problem := reserved_suffix(node.identifier, node.name):
            mistakes[node.unique_id] = problem
    return mistakes


def reserved_suffix(identifier: str, name: str) -> str:
    """Return why the node `name` cannot have a relation of this name: it ends in a suffix that a run
    gives to relations on its way. "" if it can."""
    if not identifier.endswith(_TEMPORARY):
        return ""
    return (
        f"{identifier} ends in a suffix that dbt gives to relations of its own "
        f"({', '.join(_TEMPORARY)}). Rename {name}, or give it an alias."
    )


_TEMPORARY = (ROWS_SUFFIX, "__dbt_tmp", "__dbt_backup")


def _parts(names: ModelNames) -> tuple[str, ...]:
    """Return the names of the parts of a model, beside its read view."""
    return names.view, names.target, *(f"{names.model}{suffix}" for suffix in _TEMPORARY)
