"""A model's definition: the three statements that make it, and the digest that tells a change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.types import DataType, SimpleAggregateFunction, is_nullable

from ..relation import quote, string_literal
from ..storage_clause import key, settings_clause
from .errors import refuse
from .names import Names
from .shape import STATES, Shape

COMMENT_KEY = "olapdb"


@dataclass(frozen=True)
class ModelConfig:
    """`order_by` and `partition_by` are SQL, "" where not given; `order_by_items` the former's
    elements."""

    unique_id: str
    order_by: object = None
    partition_by: object = None
    table_settings: Mapping[str, object] | None = None


@dataclass(frozen=True)
class Definition:
    """What target, trigger and read view are; names are given when the statements are made."""

    unique_id: str
    columns: tuple[tuple[str, str], ...]
    engine: str
    order_by: str
    partition_by: str
    settings: str
    trigger: str
    outputs: str
    group_by: str
    facts: Mapping[str, tuple[str, str]]
    upstream: str = ""

    @property
    def digest(self) -> str:
        """Of all that makes the stored rows what they are, and of how they are read."""
        parts = [
            list(map(list, self.columns)),
            self.engine,
            self.order_by,
            self.partition_by,
            self.settings,
            self.trigger,
            self.outputs,
            self.group_by,
            self.upstream,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def comment(self) -> str:
        """The JSON that the materialized view carries: by it the model is known again."""
        facts = {name: list(fact) for name, fact in self.facts.items()}
        body = {"model": self.unique_id, "definition": self.digest, "columns": facts}
        return json.dumps({COMMENT_KEY: body})

    def create_target(self, names: Names) -> str:
        columns = ", ".join(f"{quote(n)} {t}" for n, t in self.columns)
        clauses = [f"CREATE TABLE {_name(names, names.target)} ({columns}) ENGINE = {self.engine}"]
        if self.partition_by:
            clauses.append(f"PARTITION BY {self.partition_by}")
        clauses.append(f"ORDER BY {self.order_by or 'tuple()'}")
        if self.settings:
            clauses.append(self.settings)
        return " ".join(clauses)

    def create_view(self, names: Names) -> str:
        return (
            f"CREATE MATERIALIZED VIEW {_name(names, names.view)} "
            f"TO {_name(names, names.target)} AS {self.trigger} "
            f"COMMENT {string_literal(self.comment)}"
        )

    def create_read_view(self, names: Names) -> str:
        group_by = f" GROUP BY {self.group_by}" if self.group_by else ""
        return (
            f"CREATE OR REPLACE VIEW {_name(names, names.model)} AS SELECT {self.outputs} "
            f"FROM {_name(names, names.target)} AS {STATES}{group_by}"
        )


def define(
    shape: Shape,
    types: Sequence[tuple[str, DataType]],
    source_partition_key: str,
    config: ModelConfig,
    upstream: str = "",
) -> Definition:
    """The definition of a model of that shape. `types` are those of the trigger's columns;
    `upstream` changes when the model that it is chained on is rebuilt."""
    if not shape.aggregated:
        return _row_wise(shape, types, source_partition_key, config, upstream)
    storages = {s.name: s.storage for s in shape.states}
    columns = tuple(
        (name, str(storages[name].column_type(data_type) if name in storages else data_type))
        for name, data_type in types
    )
    keys = [k.name for k in shape.keys]
    return Definition(
        unique_id=config.unique_id,
        columns=columns,
        engine="AggregatingMergeTree",
        order_by=_sorting(keys, config),
        partition_by=partition_clause(shape, source_partition_key, config),
        settings=_settings(config, [t for n, t in types if n in keys]),
        trigger=to_sql(shape.trigger),
        outputs=", ".join(to_sql(o) for o in shape.outputs),
        group_by=", ".join(f"{STATES}.{quote(k)}" for k in keys),
        facts=shape.meanings(),
        upstream=upstream,
    )


def _row_wise(
    shape: Shape,
    types: Sequence[tuple[str, DataType]],
    source_partition_key: str,
    config: ModelConfig,
    upstream: str,
) -> Definition:
    order_by = key(config.order_by, "order_by")
    if not order_by:
        raise refuse(
            "the model aggregates nothing, so the order of its rows",
            "cannot be derived.",
            "Give config order_by, for example order_by=['origin', 'time'].",
        )
    sorted_by = [
        t for n, t in types if quote(n) in order_by or n in order_by.strip("()").split(", ")
    ]
    stored = [(n, t.inner if isinstance(t, SimpleAggregateFunction) else t) for n, t in types]
    return Definition(
        unique_id=config.unique_id,
        columns=tuple((n, str(t)) for n, t in stored),
        engine="MergeTree",
        order_by=order_by,
        partition_by=partition_clause(shape, source_partition_key, config),
        settings=_settings(config, sorted_by),
        trigger=to_sql(shape.trigger),
        outputs=", ".join(f"{STATES}.{quote(n)} AS {quote(n)}" for n, _ in types),
        group_by="",
        facts={n: ("column", "") for n, _ in types},
        upstream=upstream,
    )


def _sorting(keys: list[str], config: ModelConfig) -> str:
    """The keys, in the order of config order_by where that names them all."""
    if config.order_by:
        given = config.order_by
        listed = [given] if isinstance(given, str) else list(given)  # type: ignore[call-overload]
        if len(listed) == 1:
            listed = [part.strip() for part in listed[0].strip("() ").split(",")]
        bare = [str(one).strip("` ") for one in listed]
        if set(bare) != set(keys):
            raise refuse(
                f"config order_by ({', '.join(bare)}) and GROUP BY ({', '.join(keys)}) differ,",
                "so that merges would join rows of different keys.",
                "Name the same columns.",
            )
        keys = bare
    if not keys:
        return "tuple()"
    return f"({', '.join(quote(k) for k in keys)})"


def _settings(config: ModelConfig, key_types: Sequence[DataType]) -> str:
    given = dict(config.table_settings or {})
    if any(is_nullable(t) for t in key_types):
        given.setdefault("allow_nullable_key", 1)
    return settings_clause(given)


# Functions of a time that keep its month, and those that keep its day
_WITHIN_DAY = frozenset(
    {
        "todate",
        "date",
        "tostartofday",
        "tostartofhour",
        "tostartofminute",
        "tostartofsecond",
        "tostartoffiveminutes",
        "tostartoffiveminute",
        "tostartoftenminutes",
        "tostartoffifteenminutes",
    }
)
_WITHIN_MONTH = _WITHIN_DAY | {"tostartofmonth"}
_OF_MONTH = frozenset({"toyyyymm", "tostartofmonth"})
_OF_DAY = frozenset({"toyyyymmdd", "todate", "tostartofday"})


def partition_clause(shape: Shape, source_partition_key: str, config: ModelConfig) -> str:
    """Config first; else the source's partitioning, where a key determines it: a slice of the
    target is then made from one partition of the source."""
    given = key(config.partition_by, "partition_by")
    if given or not source_partition_key:
        return given
    from olapdb.sql.parser import parse_expression

    expression = parse_expression(source_partition_key)
    candidates = (
        [(k.name, k.expression) for k in shape.keys]
        if shape.aggregated
        else [(_row_name(c), _plain(c)) for c in shape.trigger.columns]
    )
    for name, made_from in candidates:
        if _same(expression, made_from):
            return quote(name)
        if _is_kept(expression, made_from):
            assert isinstance(expression, nodes.Function)
            return f"{expression.name}({quote(name)})"
    return ""


def _is_kept(partitioning: nodes.Expression, made_from: nodes.Expression) -> bool:
    """Whether rows that agree in the second are in one partition of the first."""
    if not isinstance(partitioning, nodes.Function) or len(partitioning.arguments) != 1:
        return False
    return _keeps(partitioning.name.lower(), partitioning.arguments[0], made_from)


def _keeps(partitioning: str, column: nodes.Expression, made_from: nodes.Expression) -> bool:
    if _same(column, made_from):
        return True
    if not isinstance(made_from, nodes.Function) or len(made_from.arguments) != 1:
        return False
    if not _same(column, made_from.arguments[0]):
        return False
    function = made_from.name.lower()
    return (partitioning in _OF_MONTH and function in _WITHIN_MONTH) or (
        partitioning in _OF_DAY and function in _WITHIN_DAY
    )


def _same(one: nodes.Expression, other: nodes.Expression) -> bool:
    """Equal but for qualifiers of columns."""
    if isinstance(one, nodes.Identifier) and isinstance(other, nodes.Identifier):
        return one.parts[-1] == other.parts[-1]
    if isinstance(one, nodes.Function) and isinstance(other, nodes.Function):
        return (
            one.name.lower() == other.name.lower()
            and len(one.arguments) == len(other.arguments)
            and all(map(_same, one.arguments, other.arguments))
        )
    return one == other


def _plain(column: nodes.Expression) -> nodes.Expression:
    return column.expression if isinstance(column, nodes.Alias) else column


def _row_name(column: nodes.Expression) -> str:
    if isinstance(column, nodes.Alias):
        return column.name
    return column.parts[-1] if isinstance(column, nodes.Identifier) else ""


def _name(names: Names, name: str) -> str:
    return f"{quote(names.database)}.{quote(name)}"
