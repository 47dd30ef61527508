"""The ENGINE, PARTITION BY, PRIMARY KEY, ORDER BY and SETTINGS clauses of a table model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt_common.exceptions import CompilationError

from .relation import string_literal


def storage_clause(config: Mapping[str, Any]) -> str:
    """Return the clauses of CREATE TABLE that follow the columns, from a model's config.

    The default is an unsorted MergeTree. Raises CompilationError for values of a wrong type, and for
    keys of an engine that has none."""
    engine = str(config.get("engine") or "MergeTree")
    order_by = key_expression(config.get("order_by"), "order_by")
    partition_by = key_expression(config.get("partition_by"), "partition_by")
    primary_key = key_expression(config.get("primary_key"), "primary_key")
    clauses = [f"ENGINE = {engine}"]
    if not engine.split("(")[0].strip().endswith("MergeTree"):
        _refuse_keys(engine, order_by=order_by, partition_by=partition_by, primary_key=primary_key)
        return clauses[0]
    if partition_by:
        clauses.append(f"PARTITION BY {partition_by}")
    if primary_key:
        clauses.append(f"PRIMARY KEY {primary_key}")
    clauses.append(f"ORDER BY {order_by or 'tuple()'}")
    settings = settings_clause(config.get("table_settings"))
    return " ".join([*clauses, settings]) if settings else " ".join(clauses)


def key_expression(value: object, name: str) -> str:
    """Return the config `name` as one SQL expression, "" if it is not set.

    `value` is an expression or a list of them."""
    if value is None or value == "" or value == []:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and all(isinstance(v, str) for v in value):
        return f"({', '.join(value)})"
    raise CompilationError(f"{name} is an expression or a list of expressions, not {value!r}.")


def settings_clause(settings: object) -> str:
    """Return the clause `SETTINGS a = 1, b = 'x'`, or "" without settings."""
    if not settings:
        return ""
    if not isinstance(settings, Mapping):
        raise CompilationError(f"table_settings is a mapping of names to values, not {settings!r}.")
    return "SETTINGS " + ", ".join(f"{n} = {_value(v)}" for n, v in settings.items())


def _value(value: object) -> str:
    """Return a setting's value as SQL: a bool as 0 or 1, a number bare, any other as a string."""
    if isinstance(value, bool):
        return str(int(value))
    return str(value) if isinstance(value, int | float) else string_literal(str(value))


def _refuse_keys(engine: str, **keys: str) -> None:
    """Raise CompilationError if any key is set for an engine that has none.

    `keys` maps the names of the model's configs to their SQL."""
    for name, value in keys.items():
        if value:
            raise CompilationError(
                f"{name} means nothing for the engine {engine}; remove it, or use a MergeTree."
            )
