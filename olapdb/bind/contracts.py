"""What the binder's modules share: the context of a query, and the interfaces of both binders.

A statement is bound by one `QueryBinder`, and each of its SELECTs by a `Binder` of expressions. The
modules that bind one kind of clause or expression know only these interfaces, so none of them needs
to import the modules that implement them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, replace
from typing import Protocol

from olapdb import errors
from olapdb.bind.names import NameAllocator, name_of_set
from olapdb.bind.relation import Relation
from olapdb.bind.scope import BindScope, LambdaScopes
from olapdb.bind.syntax import children, walk
from olapdb.config import Settings, SettingValue
from olapdb.functions.base import Environment
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import ColumnRef, Expression, OuterColumn
from olapdb.records import dataclass
from olapdb.sql import nodes as sql
from olapdb.types import DataType

_DEPTH_MAX = 100


@dataclass(frozen=True)
class OutputColumn:
    """A result column: its unique name in the node's schema, the user's name, its type."""

    unique: str
    name: str
    type: DataType

    @property
    def reference(self) -> ColumnRef:
        """The expression that reads the column."""
        return ColumnRef(self.type, self.unique)


@dataclass(frozen=True)
class BoundQuery:
    """The plan node of a query and its result columns, in their order."""

    node: plan.Node
    columns: tuple[OutputColumn, ...]


@dataclass(frozen=True)
class WorkingRows:
    """The rows of the last step of WITH RECURSIVE: its key in the plan, its columns, their types."""

    key: str
    names: tuple[str, ...]
    types: tuple[DataType, ...]


@dataclass(frozen=True)
class CommonTable:
    """A common table expression, `WITH name AS (query)`, and the context of its definition.

    The binder binds the query again at each use, in that context. `recursive`: the query reads the
    table itself; within its repeated branches, `working` are the rows that it reads."""

    item: sql.WithItem
    context: BindContext
    recursive: bool = False
    working: WorkingRows | None = None


@dataclass(eq=False)
class Correlation:
    """The values that a subquery reads of the rows of the SELECT that encloses it, by name."""

    binder: Binder
    values: dict[str, Expression] = field(default_factory=dict)

    def parameter(self, value: Expression, names: NameAllocator) -> OuterColumn:
        """Return the OuterColumn by which the subquery reads a value of the enclosing SELECT's rows. An equal value
        that was read before keeps its column; a new one is recorded in `values`."""
        for name, known in self.values.items():
            if known == value:
                return OuterColumn(value.type, name)
        name = names.unique("outer")
        self.values[name] = value
        return OuterColumn(value.type, name)


@dataclass(frozen=True)
class BindContext:
    """The names and settings that a query sees: database, settings, common table expressions.

    `outer` is the binder of the enclosing SELECT: a subquery may use its constants (WITH 5 AS n),
    and its columns where `correlation` collects them. `depth` counts the enclosing queries."""

    database: str
    settings: Mapping[str, SettingValue]
    tables: Mapping[str, CommonTable] = field(default_factory=dict)
    outer: Binder | None = None
    depth: int = 0
    correlation: Correlation | None = None
    arguments: Mapping[str, Expression] | None = None
    """The values of the call `v(p = 5)` by parameter, within the query of a view that has any."""
    refuses_columns: bool = False
    """Whether a column in place of a constant argument is refused; not within the query of a view."""

    def flag(self, name: str) -> bool:
        """Return a setting as a truth value, its default where it was not changed."""
        return Settings.of(self.settings).boolean(name)

    def setting(self, name: str) -> SettingValue:
        """Return a setting, its default where it was not changed."""
        return Settings.of(self.settings)[name]

    def text(self, name: str) -> str:
        """Return a setting as text, its default where it was not changed."""
        return Settings.of(self.settings).text(name)

    def nested(self, outer: Binder | None = None) -> BindContext:
        """Return the context of a query one level deeper, with `outer` as its enclosing binder.

        Raises TooDeepRecursion beyond 100 levels."""
        if self.depth >= _DEPTH_MAX:
            raise errors.TooDeepRecursion(
                f"Queries are nested more than {_DEPTH_MAX} deep.", hint="A view that reads itself?"
            )
        return replace(self, depth=self.depth + 1, outer=outer or self.outer)

    def correlated(self, outer: Binder) -> BindContext:
        """Return the context of a subquery that may read columns of the SELECT of `outer`."""
        return replace(self.nested(outer), correlation=Correlation(outer))

    def with_tables(self, items: Sequence[sql.WithItem], *, recursive: bool = False) -> BindContext:
        """Return the context with each `WITH name AS (query)` added; each sees the others, unless they read it.

        Under WITH RECURSIVE a query may read itself. Raises MultipleExpressionsForAlias for a
        repeated name."""
        context = self
        names: set[str] = set()
        for item in in_reading_order(items):
            if item.query is None:
                continue
            if item.name in names:
                raise errors.MultipleExpressionsForAlias(
                    f"WITH names two queries {item.name}.", position=item.position
                )
            names.add(item.name)
            reads_itself = recursive and reads_table(item.query, item.name)
            table = CommonTable(item, context, reads_itself)
            context = replace(context, tables={**context.tables, item.name: table})
        return context


class QueryBinder(ABC):
    """The binder of one statement's queries.

    `names` makes the unique column names of the plan. `tables` collects (id, revision) of each
    table and view that the plan depends on."""

    def __init__(self, scope: BindScope) -> None:
        self.scope = scope
        self.names = NameAllocator()
        self.tables: dict[str, int] = {}
        self.dictionaries: dict[object, object] = {}
        """What the statement's calls of dictGet and joinGet look up, see `bind.dictionaries`."""
        self.momentary = ""
        """What the queries read by the state of this snapshot, see `Plan.momentary`."""
        self.keeps_nulls = False
        """See `Plan.keeps_nulls`."""
        self.correlated = False
        """True once a subquery has read a column of an enclosing query."""

    def root_context(self) -> BindContext:
        """Return the context of the outermost query."""
        scope = self.scope
        return BindContext(scope.database, scope.settings, refuses_columns=scope.refuses_columns)

    @abstractmethod
    def query(self, query: sql.Query, context: BindContext) -> BoundQuery:
        """Bind a SELECT or a set operation."""

    def subquery(self, query: sql.Query, context: BindContext) -> BoundQuery:
        """Bind a query that is nested in one of this context."""
        return self.query(query, context.nested())


class Binder(Protocol):
    """The binder of one SELECT's expressions over the relation of its FROM clause."""

    queries: QueryBinder
    relation: Relation
    context: BindContext
    aliases: Mapping[str, sql.Expression]
    environment: Environment
    lambdas: LambdaScopes
    windows: Mapping[str, sql.WindowSpec]
    may_unnest: bool

    def bind(self, node: sql.Expression) -> Expression:
        """Bind one expression."""

    def over_groups(self, bound: Expression) -> Expression:
        """Return the nullable form of a key of grouping sets, other expressions unchanged."""

    def bind_all(self, items: Sequence[sql.Expression]) -> tuple[Expression, ...]:
        """Bind the expressions in order, a star as the columns that it selects."""

    def call(self, name: str, arguments: tuple[Expression, ...]) -> Expression:
        """Return a call of a scalar function, folded where all arguments are constant."""

    def cast(self, expression: Expression, target: DataType) -> Expression:
        """Return the expression as `target`."""

    def lookup(self, parts: tuple[str, ...], node: sql.Identifier | None) -> Expression | None:
        """Return the lambda parameter, alias, column or tuple element of this name, else None."""

    def subquery_context(self) -> BindContext:
        """Return the context of a subquery in an expression of this SELECT."""

    def without_unnesting(self) -> AbstractContextManager[None]:
        """Refuse arrayJoin() while the returned manager is active."""


def in_reading_order(items: Sequence[sql.WithItem]) -> list[sql.WithItem]:
    """Return the items of a WITH so that each follows the queries that it reads, as one may read a query that is
    written behind it. Otherwise they keep the order written, as do those that read each other."""
    if len(items) < 2:
        return list(items)
    read = {id(item): _names_read(item) - {item.name} for item in items}
    ordered: list[sql.WithItem] = []
    remaining = list(items)
    while remaining:
        names = {item.name for item in remaining if item.query is not None}
        free = (item for item in remaining if not read[id(item)] & names)
        following = next(free, remaining[0])
        remaining.remove(following)
        ordered.append(following)
    return ordered


def _names_read(node: sql.Node) -> set[str]:
    """Return the names without a database that FROM and IN of a node read, without those of its own WITH clauses."""
    names: set[str] = set()
    own: set[str] = set()
    match node:
        case sql.TableReference(table=sql.TableName(name=name, database=None)):
            names.add(name)
        case sql.In() | sql.Function() if (right := name_of_set(node)) is not None and len(
            right.parts
        ) == 1:
            names.update(right.parts)
        case sql.Select() | sql.SetOperation():
            own = {item.name for item in node.with_items if item.query is not None}
    for child in children(node):
        itself = {child.name} if isinstance(child, sql.WithItem) else set()
        names |= _names_read(child) - (own - itself)
    return names


def reads_table(query: sql.Query, name: str) -> bool:
    """Return whether the query reads a table by this name without a database."""
    return any(
        isinstance(n, sql.TableReference) and n.table.database is None and n.table.name == name
        for n in walk(query)
    )
