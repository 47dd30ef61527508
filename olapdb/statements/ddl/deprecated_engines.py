"""Engines in ClickHouse's old syntax, `MergeTree(date, key, 8192)`, as the clauses that say the same."""

from __future__ import annotations

from dataclasses import replace

from olapdb import errors
from olapdb.sql import nodes

SETTING = "allow_deprecated_syntax_for_merge_tree"


def with_clauses(storage: nodes.StorageClause, *, allowed: bool) -> nodes.StorageClause:
    """Return the storage with PARTITION BY, ORDER BY, SAMPLE BY and index_granularity in place of the arguments
    `(date, [sampling,] key, granularity)`, which stand before those that the engine has today. Other storages stay.

    Raises BadArguments for this syntax unless it is `allowed`, for a date that is no column, and beside such
    clauses."""
    engine = storage.engine
    if engine is None or not engine.name.endswith("MergeTree"):
        return storage
    arguments = list(engine.arguments)
    if engine.name.startswith("Replicated"):  # its path and replica are ignored
        while arguments and isinstance(arguments[0], nodes.Literal):
            arguments.pop(0)
    at = next((n for n in (2, 3) if n < len(arguments) and _is_count(arguments[n])), None)
    if at is None:
        return storage
    if not allowed:
        raise errors.BadArguments(
            "This syntax for MergeTree is deprecated.",
            hint=f"Say ENGINE = {engine.name} PARTITION BY … ORDER BY …, or SET {SETTING} = 1.",
            position=engine.position,
        )
    date, key, granularity = arguments[0], arguments[at - 1], arguments[at]
    if not isinstance(date, nodes.Identifier) or storage.order_by or storage.partition_by:
        raise errors.BadArguments(
            f"The old syntax is {engine.name}(date, key, 8192): a column, and no further clause.",
            position=engine.position,
        )
    assert isinstance(granularity, nodes.Literal)
    setting = nodes.Setting("index_granularity", granularity.value, position=engine.position)
    rest = tuple(arguments[at + 1 :])
    return replace(
        storage,
        engine=replace(engine, arguments=rest, has_arguments=bool(rest)),
        partition_by=nodes.Function("toYYYYMM", (date,), position=date.position),
        order_by=tuple(nodes.OrderItem(part, position=part.position) for part in _parts(key)),
        sample_by=arguments[1] if at == 3 else None,
        settings=(*storage.settings, setting),
    )


def _is_count(argument: nodes.Expression) -> bool:
    """Return whether an argument is a whole number."""
    return isinstance(argument, nodes.Literal) and type(argument.value) is int


def _parts(key: nodes.Expression) -> tuple[nodes.Expression, ...]:
    """Return the expressions of a key: those of a tuple, or the one that it is."""
    match key:
        case nodes.TupleLiteral(elements=elements):
            return elements
        case nodes.Function(name="tuple", arguments=arguments):
            return arguments
        case _:
            return (key,)
