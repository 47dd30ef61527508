"""A model's definition: the statements that create it, and the digest that detects a change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_expression, parse_query
from olapdb.types import DataType, SimpleAggregateFunction, is_nullable

from ..relation import quote, string_literal
from ..storage_clause import key_expression, settings_clause
from .config import ModelConfig
from .errors import refuse
from .names import ModelNames
from .query_split import STATES, SplitQuery
from .target_storage import target_engine, target_ttl

COMMENT_KEY = "olapdb"


@dataclass(frozen=True)
class ModelDefinition:
    """The target, trigger and read view of a model, without their names."""

    unique_id: str
    columns: tuple[tuple[str, str], ...]
    engine: str
    order_by: str
    partition_by: str
    settings: str
    trigger: str
    outputs: str
    group_by: str
    column_kinds: Mapping[str, tuple[str, str]]
    ttl: str = ""
    checks: tuple[str, ...] = ()
    chained: bool = False
    """Whether the trigger reads the target of another model, whose types it follows."""
    shares: str = ""
    """The relation name of the model whose target this one writes, "" for one of its own."""

    @property
    def digest(self) -> str:
        """A hash of all that determines the stored rows and how they are read."""
        parts = [
            list(map(list, self.columns)),
            self.engine,
            self.order_by,
            self.partition_by,
            self.settings,
            self.trigger,
            self.outputs,
            self.group_by,
            # Absent, so that the digests of models without them stay.
            *([self.ttl] if self.ttl else []),
            *([list(self.checks)] if self.checks else []),
            *([{"shares": self.shares}] if self.shares else []),
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def options(self) -> str:
        """Return what neither the live trigger's text nor the live target's keys show: the
        target's TTL, settings and constraints, and the SETTINGS of the query."""
        query = parse_query(self.trigger)
        named = [(s.name, s.value) for s in getattr(query, "settings", ())]
        return json.dumps([self.ttl, self.settings, named, *self.checks])

    @property
    def comment(self) -> str:
        """The comment of the materialized view: JSON by which later runs recognise the model."""
        column_kinds = {name: list(column_kind) for name, column_kind in self.column_kinds.items()}
        body = {
            "model": self.unique_id,
            "definition": self.digest,
            "columns": column_kinds,
            "options": self.options,
            "read": [self.outputs, self.group_by],
            "trigger": self.trigger,
            **({"shares": self.shares} if self.shares else {}),
        }
        return json.dumps({COMMENT_KEY: body})

    @property
    def comment_literal(self) -> str:
        """The comment as an SQL string."""
        return string_literal(self.comment)

    @property
    def target_clauses(self) -> str:
        """The columns of the target, its engine, keys, TTL and settings, as in CREATE TABLE."""
        elements = [f"{quote(name)} {data_type}" for name, data_type in self.columns]
        columns = ", ".join((*elements, *self.checks))
        clauses = [f"({columns}) ENGINE = {self.engine}"]
        if self.partition_by:
            clauses.append(f"PARTITION BY {self.partition_by}")
        clauses.append(f"ORDER BY {self.order_by or 'tuple()'}")
        if self.ttl:
            clauses.append(f"TTL {self.ttl}")
        if self.settings:
            clauses.append(self.settings)
        return " ".join(clauses)

    def create_target(self, names: ModelNames) -> str:
        """Return the CREATE TABLE statement of the target."""
        return f"CREATE TABLE {_name(names, names.target)} {self.target_clauses}"

    def create_model(self, names: ModelNames, *, new_target: bool, filled: bool) -> str:
        """Return the CREATE MATERIALIZED VIEW statement of the trigger, and of the target with it if that is
        new. `filled` also backfills, and the last commit of that creates the read view."""
        target = _name(names, names.target)
        clauses = [f"CREATE MATERIALIZED VIEW {_name(names, names.view)} TO {target}"]
        if new_target:
            clauses.append(self.target_clauses)
        clauses.append(f"COMMENT {self.comment_literal}")
        if filled:
            read_view = _name(names, names.model)
            clauses.append(f"READ VIEW {read_view} AS ({self.read_query(names)}) POPULATE")
        return " ".join((*clauses, f"AS {self.trigger}"))

    def read_query(self, names: ModelNames) -> str:
        """Return the SELECT of the read view."""
        return read_view_select(names, self.outputs, self.group_by)

    def create_read_view(self, names: ModelNames) -> str:
        """Return the CREATE OR REPLACE VIEW statement of the read view."""
        return f"CREATE OR REPLACE VIEW {_name(names, names.model)} AS {self.read_query(names)}"

    def rebuild(self, names: ModelNames, *, with_read_view: bool) -> str:
        """Return the clauses of SYSTEM REBUILD VIEW that lead to this definition.

        With `with_read_view` the read view, which must exist, changes in the commit of the swap."""
        clauses = [self.target_clauses, f"COMMENT {self.comment_literal}"]
        if with_read_view:
            read_view = _name(names, names.model)
            clauses.append(f"REPLACE VIEW {read_view} AS ({self.read_query(names)})")
        return " ".join((*clauses, f"AS {self.trigger}"))


def read_view_select(names: ModelNames, outputs: str, group_by: str, source: str = "") -> str:
    """Return the SELECT of a read view, over the model's target or another `source` of states."""
    groups = f" GROUP BY {group_by}" if group_by else ""
    return f"SELECT {outputs} FROM {source or _name(names, names.target)} AS {STATES}{groups}"


def define_model(
    split: SplitQuery,
    types: Sequence[tuple[str, DataType]],
    source_partition_key: str,
    config: ModelConfig,
) -> ModelDefinition:
    """Return the definition of a model whose query is split into `split`.

    `types` are the (name, type) of the trigger's columns, in order. `source_partition_key` is the
    SQL of the source's partition key, "" without one. The target takes it over if config
    partition_by is not set and a key of the model determines it. Raises CompilationError for a
    config order_by that does not fit the query."""
    if not split.aggregated:
        return _row_wise(split, types, source_partition_key, config)
    storages = {s.name: s.storage for s in split.states}
    columns = tuple(
        (name, str(storages[name].column_type(data_type) if name in storages else data_type))
        for name, data_type in types
    )
    keys = [k.name for k in split.keys]
    return ModelDefinition(
        unique_id=config.unique_id,
        columns=columns,
        engine=target_engine(config, aggregated=True),
        order_by=_sorting(keys, config),
        partition_by=partition_clause(split, source_partition_key, config),
        settings=_settings(config, [t for n, t in types if n in keys]),
        trigger=to_sql(split.trigger),
        outputs=", ".join(to_sql(o) for o in split.outputs),
        group_by=", ".join(f"{STATES}.{quote(k)}" for k in keys),
        column_kinds=split.column_kinds(),
        ttl=target_ttl(config, [(n, t) for n, t in types if n in keys]),
    )


def _row_wise(
    split: SplitQuery,
    types: Sequence[tuple[str, DataType]],
    source_partition_key: str,
    config: ModelConfig,
) -> ModelDefinition:
    """Return the definition of a model without aggregates.

    Raises CompilationError without config order_by."""
    order_by = key_expression(config.order_by, "order_by")
    if not order_by:
        raise refuse(
            "the model aggregates nothing, so the order of its rows",
            "cannot be derived.",
            "Give config order_by, for example order_by=['origin', 'time'].",
        )
    sorted_by = [
        (n, t) for n, t in types if quote(n) in order_by or n in order_by.strip("()").split(", ")
    ]
    stored = [(n, t.inner if isinstance(t, SimpleAggregateFunction) else t) for n, t in types]
    return ModelDefinition(
        unique_id=config.unique_id,
        columns=tuple((n, str(t)) for n, t in stored),
        engine=target_engine(config, aggregated=False),
        order_by=order_by,
        partition_by=partition_clause(split, source_partition_key, config),
        settings=_settings(config, [t for _, t in sorted_by]),
        trigger=to_sql(split.trigger),
        outputs=", ".join(f"{STATES}.{quote(n)} AS {quote(n)}" for n, _ in types),
        group_by="",
        column_kinds={n: ("column", "") for n, _ in types},
        ttl=target_ttl(config, sorted_by),
    )


def _sorting(keys: list[str], config: ModelConfig) -> str:
    """Return the sorting key of the target: the keys, in the order of config order_by if it is set.

    Raises CompilationError if order_by does not name exactly the keys."""
    if config.order_by:
        order_by = config.order_by
        listed = [order_by] if isinstance(order_by, str) else list(order_by)  # type: ignore[call-overload]
        if len(listed) == 1:
            listed = [part.strip() for part in listed[0].strip("() ").split(",")]
        bare = [str(name).strip("` ") for name in listed]
        if set(bare) != set(keys) and config.target:
            raise refuse(
                f"the target of {config.target} is sorted by ({', '.join(bare)}),",
                f"and this model groups by ({', '.join(keys)}).",
                "Group by the same columns, under the same names.",
            )
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
    """Return the SETTINGS clause; Nullable keys need allow_nullable_key."""
    settings = dict(config.table_settings or {})
    if any(is_nullable(t) for t in key_types):
        settings.setdefault("allow_nullable_key", 1)
    return settings_clause(settings)


# Functions of a time whose result lies in the same day, or in the same month.
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


def partition_clause(split: SplitQuery, source_partition_key: str, config: ModelConfig) -> str:
    """Return the target's PARTITION BY expression, "" for none.

    It is config partition_by if set. Otherwise it is the source's partitioning if a key of the model
    determines it: each partition of the target is then made from one partition of the source."""
    configured = key_expression(config.partition_by, "partition_by")
    if configured or not source_partition_key:
        return configured
    expression = parse_expression(source_partition_key)
    candidates = (
        [(k.name, k.expression) for k in split.keys]
        if split.aggregated
        else [(column_name(c), _plain(c)) for c in split.trigger.columns]
    )
    for name, key in candidates:
        if _same(expression, key):
            return quote(name)
        if _determines(key, expression):
            assert isinstance(expression, nodes.Function)
            return f"{expression.name}({quote(name)})"
    return ""


def _determines(key: nodes.Expression, partitioning: nodes.Expression) -> bool:
    """Return whether rows of equal `key` always lie in one partition of `partitioning`."""
    if not isinstance(partitioning, nodes.Function) or len(partitioning.arguments) != 1:
        return False
    column = partitioning.arguments[0]
    if _same(column, key):
        return True
    if not isinstance(key, nodes.Function) or len(key.arguments) != 1:
        return False
    if not _same(column, key.arguments[0]):
        return False
    period, function = partitioning.name.lower(), key.name.lower()
    return (period in _OF_MONTH and function in _WITHIN_MONTH) or (
        period in _OF_DAY and function in _WITHIN_DAY
    )


def _same(left: nodes.Expression, right: nodes.Expression) -> bool:
    """Return whether two expressions are equal, qualifiers of columns ignored."""
    if isinstance(left, nodes.Identifier) and isinstance(right, nodes.Identifier):
        return left.parts[-1] == right.parts[-1]
    if isinstance(left, nodes.Function) and isinstance(right, nodes.Function):
        return (
            left.name.lower() == right.name.lower()
            and len(left.arguments) == len(right.arguments)
            and all(map(_same, left.arguments, right.arguments))
        )
    return left == right


def _plain(column: nodes.Expression) -> nodes.Expression:
    """Return a column without its alias."""
    return column.expression if isinstance(column, nodes.Alias) else column


def column_name(column: nodes.Expression) -> str:
    """Return the result name of a column, "" if it has neither an alias nor a name."""
    if isinstance(column, nodes.Alias):
        return column.name
    return column.parts[-1] if isinstance(column, nodes.Identifier) else ""


def _name(names: ModelNames, name: str) -> str:
    """Return the quoted `database.name` of an object in the model's database."""
    return f"{quote(names.database)}.{quote(name)}"
