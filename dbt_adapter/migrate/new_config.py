"""The new config of a model: the keys that stay, and those that mean nothing here with the reason."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .project import ModelFile

_DROPPED = {
    "catchup": "",
    "mv_on_schema_change": "a changed definition is told by on_definition_change",
    "repopulate_from_mvs_on_full_refresh": "a full refresh always fills the target again",
    "refreshable": "",
    "external_target": "materialization_target_table names the table",
    "sharding_key": "there are no shards",
    "cluster": "there is no cluster",
    "on_cluster": "there is no cluster",
    "inserts_only": "",
    "sql_security": "the warehouse has one user",
    "definer": "the warehouse has one user",
    "query_settings": "a trigger runs with the settings of each INSERT. Give one that changes the "
    "result, such as join_use_nulls, in the profile",
}
_OF_FILLED = ("query_settings",)
"""Keys that a model which a statement of each run fills keeps."""
_OF_TABLES = {
    name: f"a table has them. Add them to the target by a post_hook, ALTER TABLE <model>__target ADD {what} "
    "IF NOT EXISTS …, over the columns that the target has"
    for name, what in (("projections", "PROJECTION"), ("indexes", "INDEX"))
}
"""Keys that a view here has not."""


def new_config(model: ModelFile, materialized: str, drop: tuple[str, ...]) -> dict[str, str]:
    """Return the arguments of the new config call, by name, as texts.

    A dropped config that YAML gives the model is set to none, since the call cannot unset it."""
    config = {"materialized": repr(materialized)}
    for name, text in model.call.texts.items():
        if name == "materialized" or name in drop or name in dropped_keys(materialized):
            continue
        config["table_settings" if name == "settings" else name] = text
    engine = model.call.values.get("engine")
    if "engine" in config and isinstance(engine, str):
        plain = re.sub(r"^(Replicated|Shared)(\w+)(\(.*)?$", r"\2", engine.strip())
        if plain.startswith("Distributed"):
            del config["engine"]
        elif plain != engine.strip():
            config["engine"] = repr(plain)
    for name in (*drop, *dropped_keys(materialized)):
        if model.inherited.get(name) is not None:
            config[name] = "none"
    return config


_OF_MERGETREE = ("order_by", "partition_by", "primary_key", "ttl")


def keys_without_meaning(model: ModelFile) -> tuple[str, ...]:
    """Return the keys that the model's engine, Log or Memory for example, does not have. dbt-clickhouse
    leaves them out of the statement, and a run here refuses them."""
    engine = str(model.config.get("engine") or "MergeTree")
    if "MergeTree" in engine or engine.startswith("Distributed"):
        return ()
    return tuple(name for name in _OF_MERGETREE if model.config.get(name) is not None)


def dropped_keys(materialized: str) -> Mapping[str, str]:
    """Return the keys that mean nothing to a materialization, each with the reason."""
    kept = _OF_FILLED if materialized in ("table", "incremental") else ()
    of_tables = _OF_TABLES if materialized in ("incremental_mv", "materialized_view") else {}
    return {name: why for name, why in {**_DROPPED, **of_tables}.items() if name not in kept}


def dropped_notes(model: ModelFile, becomes: str) -> tuple[str, ...]:
    """Return a note for each config that means nothing here and that a user may look for."""
    return tuple(
        f"{name} is dropped: {why}."
        for name, why in dropped_keys(becomes).items()
        if why and model.config.get(name) is not None
    )
