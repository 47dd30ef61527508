"""The first syntax of MergeTree engines, `MergeTree(date, [sampling key,] key, granularity, …)`, as clauses.

ENGINE = MergeTree(d, (d, x), 8192) is ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY (d, x)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from olapdb import errors
from olapdb.model.schema import Column
from olapdb.sql import nodes
from olapdb.sql.trees import elements_of_tuple
from olapdb.types import Date

SETTING = "allow_deprecated_syntax_for_merge_tree"


def with_clauses(
    storage: nodes.StorageClause, columns: Sequence[Column], *, allowed: bool
) -> nodes.StorageClause:
    """Return the clauses that an engine in the first syntax stands for; others unchanged.

    Raises BadArguments unless that syntax is `allowed`, or where its first argument is no name, and
    BadTypeOfField where that is no column of type Date."""
    engine = storage.engine
    if engine is None or storage != nodes.StorageClause(engine):
        return storage
    granularity_at = _granularity_at(engine)
    if granularity_at is None:
        return storage
    if not allowed:
        raise errors.BadArguments(
            "This syntax for MergeTree is deprecated.",
            hint=f"Say ENGINE = MergeTree PARTITION BY … ORDER BY …, or SET {SETTING} = 1.",
            position=engine.position,
        )
    date, *sampling, key, granularity = engine.arguments[: granularity_at + 1]
    _check_date(date, columns, engine)
    assert isinstance(granularity, nodes.Literal)
    rest = engine.arguments[granularity_at + 1 :]
    return replace(
        storage,
        engine=replace(engine, arguments=rest, has_arguments=bool(rest)),
        partition_by=nodes.Function("toYYYYMM", (date,)),
        order_by=tuple(nodes.OrderItem(item) for item in elements_of_tuple(key)),
        sample_by=sampling[0] if sampling else None,
        settings=(nodes.Setting("index_granularity", granularity.value),),
    )


def _granularity_at(engine: nodes.EngineClause) -> int | None:
    """Return the place of the granularity, a number behind two or three other arguments; None for an
    engine that is not written in the first syntax."""
    if not engine.name.endswith("MergeTree"):
        return None
    for place in (2, 3):
        argument = engine.arguments[place] if len(engine.arguments) > place else None
        if isinstance(argument, nodes.Literal) and type(argument.value) is int:
            return place
    return None


def _check_date(
    date: nodes.Expression, columns: Sequence[Column], engine: nodes.EngineClause
) -> None:
    """Raise BadArguments or BadTypeOfField unless the expression is the name of a column of type Date."""
    if not isinstance(date, nodes.Identifier):
        raise errors.BadArguments(
            "The first argument of a MergeTree in the deprecated syntax is the name of a column.",
            hint="Say ENGINE = MergeTree PARTITION BY … ORDER BY ….",
            position=engine.position,
        )
    name = ".".join(date.parts)
    if not any(column.name == name and column.type == Date() for column in columns):
        raise errors.BadTypeOfField(
            f"Could not find Date column: {name} is none.",
            hint="Say ENGINE = MergeTree PARTITION BY … ORDER BY ….",
            position=engine.position,
        )
