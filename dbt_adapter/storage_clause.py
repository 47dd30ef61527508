"""ENGINE … ORDER BY … of a table model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt_common.exceptions import CompilationError

from .relation import string_literal


def storage_clause(config: Mapping[str, Any]) -> str:
    """The clauses of CREATE TABLE that follow the columns. Without config: MergeTree, unsorted."""
    engine = str(config.get("engine") or "MergeTree")
    order_by = key(config.get("order_by"), "order_by")
    partition_by = key(config.get("partition_by"), "partition_by")
    primary_key = key(config.get("primary_key"), "primary_key")
    clauses = [f"ENGINE = {engine}"]
    if not engine.split("(")[0].strip().endswith("MergeTree"):
        _refuse(engine, order_by=order_by, partition_by=partition_by, primary_key=primary_key)
        return clauses[0]
    if partition_by:
        clauses.append(f"PARTITION BY {partition_by}")
    if primary_key:
        clauses.append(f"PRIMARY KEY {primary_key}")
    clauses.append(f"ORDER BY {order_by or 'tuple()'}")
    settings = settings_clause(config.get("table_settings"))
    return " ".join([*clauses, settings]) if settings else " ".join(clauses)


def key(value: object, name: str) -> str:
    """An expression, or several in parentheses; "" where none is given."""
    if value is None or value == "" or value == []:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and all(isinstance(v, str) for v in value):
        return f"({', '.join(value)})"
    raise CompilationError(f"{name} is an expression or a list of expressions, not {value!r}.")


def settings_clause(settings: object) -> str:
    """`SETTINGS a = 1, b = 'x'`, "" where there are none."""
    if not settings:
        return ""
    if not isinstance(settings, Mapping):
        raise CompilationError(f"table_settings is a mapping of names to values, not {settings!r}.")
    return "SETTINGS " + ", ".join(f"{n} = {_value(v)}" for n, v in settings.items())


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return str(value) if isinstance(value, int | float) else string_literal(str(value))


def _refuse(engine: str, **given: str) -> None:
    for name, value in given.items():
        if value:
            raise CompilationError(
                f"{name} means nothing for the engine {engine}; remove it, or use a MergeTree."
            )
