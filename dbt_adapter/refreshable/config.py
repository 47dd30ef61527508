"""The config `refresh` of a `materialized_view`, which makes it a view that is refreshed on a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from olapdb.errors import Error
from olapdb.sql.parser import parse_refresh
from olapdb.views.refresh.schedule import checked

from ..config_reader import ConfigReader, config_error, maybe
from ..relation import quote
from ..storage_clause import settings_clause, storage_mistakes

NAMES = ("refresh", "refreshable")
"""The spellings of the key; `refreshable` is dbt-clickhouse's."""

KEYS = frozenset(
    ["engine", "order_by", "partition_by", "primary_key", "ttl", "settings", "table_settings"]
) | {"query_settings", "catchup", *NAMES}
"""The keys of such a model beside dbt's own."""

_PARTS = (
    "interval",
    "offset",
    "randomize",
    "depends_on",
    "depends_on_validation",
    "append",
    "settings",
)
_EXAMPLE = "{interval: 'EVERY 5 MINUTE'}"


@dataclass(frozen=True)
class Refresh:
    """The schedule of a model. `clause` is the REFRESH clause as SQL text.

    `depends_on` are the views that must refresh before, as (database, name). If
    `validates_dependencies`, the run fails before anything else if one is missing. Without `filled`
    CREATE does not refresh the view."""

    clause: str
    depends_on: tuple[tuple[str, str], ...] = ()
    validates_dependencies: bool = False
    filled: bool = True


def is_refreshed(config: Mapping[str, Any]) -> bool:
    """Return whether a model's config makes it a view that is refreshed on a schedule."""
    return config.get("materialized") == "materialized_view" and any(
        config.get(name) is not None for name in NAMES
    )


def refresh_of(config: Mapping[str, Any], schema: str) -> Refresh:
    """Return the schedule of a model; raise one CompilationError for all mistakes in it. `schema` is
    that of names in `depends_on` that have none."""
    reader = ConfigReader(config)
    refresh = _read(reader, schema)
    if reader.problems:
        raise config_error(reader.problems)
    return refresh


def mistakes(config: Mapping[str, Any]) -> list[str]:
    """Return the mistakes in the values of a refreshed model's config."""
    reader = ConfigReader(config)
    _read(reader, "schema")
    engine = str(config.get("engine") or "MergeTree").split("(")[0].strip()
    if not engine.endswith("MergeTree"):
        reader.refuse(
            f"engine is one of the MergeTree family, not {engine}: a refresh exchanges rows."
        )
    return reader.problems + storage_mistakes(config)


def _read(reader: ConfigReader, schema: str) -> Refresh:
    """Return the schedule, and add its mistakes to the reader's."""
    value = reader.value(*NAMES)
    parts = {"interval": value} if isinstance(value, str) else value
    filled = reader.value("catchup")
    if filled not in (None, True, False):
        reader.refuse(f"catchup is true or false, not {filled!r}.")
    if not isinstance(parts, Mapping):
        reader.refuse(
            f"refresh is a schedule, such as 'EVERY 5 MINUTE' or {_EXAMPLE}, not {value!r}."
        )
        return Refresh("")
    for key in parts:
        if key not in _PARTS:
            reader.refuse(f"refresh has {', '.join(_PARTS)}, not {key}.{maybe(key, _PARTS)}")
    interval = _text(reader, parts, "interval")
    if not interval:
        reader.refuse(f"refresh has no interval, such as {_EXAMPLE}.")
        return Refresh("")
    depends_on = _dependencies(reader, parts.get("depends_on"), schema)
    clause = f"REFRESH {_after_keyword(interval, 'REFRESH')}"
    for key, keywords in (("offset", "OFFSET"), ("randomize", "RANDOMIZE FOR")):
        if text := _text(reader, parts, key):
            clause += f" {keywords} {_after_keyword(text, keywords)}"
    if depends_on:
        clause += " DEPENDS ON " + ", ".join(f"{quote(d)}.{quote(n)}" for d, n in depends_on)
    settings = parts.get("settings")
    if isinstance(settings, Mapping):
        clause += f" {settings_clause(settings)}" if settings else ""
    elif settings is not None:
        reader.refuse(f"refresh.settings is a mapping of names to values, not {settings!r}.")
    if _flag(reader, parts, "append"):
        clause += " APPEND"
    _check(reader, clause)
    return Refresh(
        clause, depends_on, _flag(reader, parts, "depends_on_validation"), filled is not False
    )


def _check(reader: ConfigReader, clause: str) -> None:
    """Add a mistake if the clause is no schedule."""
    try:
        checked(parse_refresh(clause))
    except Error as error:
        reader.refuse(f"refresh is no schedule, {clause}: {error}")


def _after_keyword(text: str, keywords: str) -> str:
    """Return the text without the keywords, if it begins with them."""
    stripped = text.strip()
    words = stripped.split(None, keywords.count(" ") + 1)
    named = " ".join(words[:-1]).upper() == keywords
    return words[-1] if named else stripped


def _text(reader: ConfigReader, parts: Mapping[str, object], key: str) -> str:
    """Return a part of the schedule as text, "" if it is not set."""
    value = parts.get(key)
    if value is None or isinstance(value, str):
        return value or ""
    reader.refuse(f"refresh.{key} is a length of time, such as '5 MINUTE', not {value!r}.")
    return ""


def _flag(reader: ConfigReader, parts: Mapping[str, object], key: str) -> bool:
    """Return the boolean under `key`, False if it is not set; have `reader` refuse other values."""
    value = parts.get(key)
    if value is None or isinstance(value, bool):
        return bool(value)
    reader.refuse(f"refresh.{key} is true or false, not {value!r}.")
    return False


def _dependencies(reader: ConfigReader, value: object, schema: str) -> tuple[tuple[str, str], ...]:
    """Return the views of `depends_on`, a name or a list of names, as (database, name)."""
    names = [value] if isinstance(value, str) else value
    if names is None:
        return ()
    if not isinstance(names, list | tuple) or not all(isinstance(n, str) and n for n in names):
        reader.refuse(f"refresh.depends_on is a list of names, not {value!r}.")
        return ()
    plain = [str(name).replace("`", "") for name in names]
    split = [name.rpartition(".") for name in plain]
    return tuple((database or schema, name) for database, _, name in split)
