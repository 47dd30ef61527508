"""Checks of an incremental model's config: its values before the run, its SQL against the query.

A first run uses neither keys nor predicates, so without these checks a wrong one would be met by the
second run only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dbt_common.exceptions import CompilationError

from olapdb.errors import Error

from .config_reader import ON_SCHEMA_CHANGE, ConfigReader
from .incremental_strategies import BUILTIN, keys_of, merge_kept, predicates_of, strategy_of

Describe = Callable[[str], Sequence[tuple[str, object]]]
"""Returns the names and types of a query's columns without running it. Raises olapdb.Error."""

_PREDICATES = ("predicates", "incremental_predicates")
_OWN_STRATEGIES = frozenset((*BUILTIN, "default", "delete_insert"))
"""The names of the adapter's own strategies; others are macros of the project."""


def mistakes(config: Mapping[str, Any]) -> list[str]:
    """Return the mistakes in the values of an incremental model's config."""
    reader = ConfigReader(config)
    for check in (
        lambda: keys_of(config.get("unique_key")),
        lambda: strategy_of({**config, "unique_key": _readable_key(config)}),
        lambda: predicates_of(reader.value(*_PREDICATES)),
    ):
        try:
            check()
        except CompilationError as error:
            reader.refuse(str(error.msg))
    merged = [reader.names(name) for name in ("merge_update_columns", "merge_exclude_columns")]
    if all(merged):
        reader.refuse(
            "Set merge_update_columns or merge_exclude_columns, not both: one says what the other "
            "leaves."
        )
    reader.choice("on_schema_change", ON_SCHEMA_CHANGE, "ignore")
    strategy = str(config.get("incremental_strategy") or "default")
    if any(merged) and strategy in (_OWN_STRATEGIES - {"merge"}):
        reader.refuse(
            "merge_update_columns and merge_exclude_columns are of incremental_strategy='merge', "
            f"not of {strategy!r}, which replaces whole rows."
        )
    appends = strategy == "append" or (strategy == "default" and not config.get("unique_key"))
    if appends and any(config.get(name) for name in _PREDICATES):
        reader.refuse(
            "incremental_predicates choose the rows that may leave the table, and an incremental "
            "model that appends removes none. Set unique_key or another incremental_strategy, or "
            "remove them."
        )
    return reader.problems


def _readable_key(config: Mapping[str, Any]) -> object:
    """Return the model's `unique_key`; None if it cannot be read, which is a mistake of its own."""
    try:
        keys_of(config.get("unique_key"))
    except CompilationError:
        return None
    return config.get("unique_key")


def query_mistakes(
    config: Mapping[str, Any], query: str, describe: Describe
) -> tuple[list[str], list[str]]:
    """Return two lists of mistakes: of predicates and merged columns that name what the query
    lacks, and of keys. Those of keys are only to be warned of: a first run, which uses no key, has
    to pass in dbt.

    A query that cannot be described has none: its own statement tells what is wrong with it."""
    try:
        names = [name for name, _ in describe(query)]
    except Error:
        return [], []

    def unfit(name: str, expressions: Sequence[str]) -> list[str]:
        """Return a mistake for each of the expressions of config `name` that does not bind over the
        query's columns."""
        problems = []
        for expression in expressions:
            try:
                describe(f"select ({expression}) as dbt_checked from (\n{query}\n) as dbt_rows")
            except Error as error:
                problems.append(
                    f"{name} {expression!r} does not fit the model's query, which has the columns "
                    f"{', '.join(names)}: {error.message}"
                )
        return problems

    predicates = config.get("predicates") or config.get("incremental_predicates")
    problems = unfit("incremental_predicates", predicates_of(predicates))
    try:
        merge_kept(config, config.get("unique_key"), names)
    except CompilationError as error:
        problems.append(str(error.msg))
    return problems, unfit("unique_key", keys_of(config.get("unique_key")))
