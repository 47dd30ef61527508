"""Queries to plan nodes: SELECT, UNION and the like, subqueries as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from olapdb import errors, functions
from olapdb.bind import constants
from olapdb.bind.names import NameAllocator
from olapdb.bind.scope import BindContext, BindScope, CommonTable
from olapdb.config import Settings, lookup
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import AggregateCall, Cast, ColumnRef, Expression, ScalarSubquery
from olapdb.sql import nodes as sql
from olapdb.types import UINT8, UINT64, DataType, Tuple, make_nullable

_DEPTH_MAX = 100
MEANING = frozenset(
    {
        "join_use_nulls",
        "final",
        "union_default_mode",
        "except_default_mode",
        "intersect_default_mode",
        "enable_positional_arguments",
        "prefer_column_name_to_alias",
        "cast_keep_nullable",
        "single_join_prefer_left_table",
        "count_distinct_implementation",
        "asterisk_include_materialized_columns",
        "asterisk_include_alias_columns",
    }
)
"""The settings that the binder reads: what they change is what a query means."""


@dataclass(frozen=True)
class OutputColumn:
    """A result column: its unique name in the node's schema, the user's name, its type."""

    unique: str
    name: str
    type: DataType

    @property
    def reference(self) -> ColumnRef:
        return ColumnRef(self.type, self.unique)


@dataclass(frozen=True)
class BoundQuery:
    node: plan.Node
    columns: tuple[OutputColumn, ...]


class QueryBinder:
    """Binds one statement; `tables` collects (id, revision) of all that it was made from."""

    def __init__(self, scope: BindScope) -> None:
        self.scope = scope
        self.names = NameAllocator()
        self.tables: dict[str, int] = {}

    def surroundings(self) -> BindContext:
        return BindContext(self.scope.database, self.scope.settings)

    def below(self, surroundings: BindContext, outer: object = None) -> BindContext:
        """One level deeper; `outer` is the ExpressionBinder whose constants are visible there."""
        if surroundings.depth >= _DEPTH_MAX:
            raise errors.TooDeepRecursion(
                f"Queries are nested more than {_DEPTH_MAX} deep.", hint="A view that reads itself?"
            )
        from olapdb.bind.expressions import ExpressionBinder

        assert outer is None or isinstance(outer, ExpressionBinder)
        return replace(
            surroundings, depth=surroundings.depth + 1, outer=outer or surroundings.outer
        )

    # --- queries

    def query(self, query: sql.Query, surroundings: BindContext) -> BoundQuery:
        from olapdb.bind.select import bind_select

        surroundings = _with_settings(query, surroundings)
        match query:
            case sql.Select():
                return bind_select(self, query, surroundings)
            case sql.SetOperation():
                return self._set_operation(query, surroundings)
            case _:
                raise errors.InternalError(f"The binder does not know {type(query).__name__}.")

    def subquery(self, query: sql.Query, surroundings: BindContext) -> BoundQuery:
        return self.query(query, self.below(surroundings))

    def with_tables(
        self, items: Sequence[sql.WithItem], surroundings: BindContext, recursive: bool = False
    ) -> BindContext:
        """The surroundings with `WITH name AS (query)` added; each sees those before it."""
        named: set[str] = set()
        for item in items:
            if item.query is None:
                continue
            if item.name in named:
                raise errors.MultipleExpressionsForAlias(
                    f"WITH names two queries {item.name}.", position=item.position
                )
            named.add(item.name)
            if recursive and _names_table(item.query, item.name):
                raise errors.NotSupportedError(
                    f"WITH RECURSIVE {item.name} is not supported yet.", position=item.position
                )
            table = CommonTable(item, surroundings)
            surroundings = replace(surroundings, tables={**surroundings.tables, item.name: table})
        return surroundings

    # --- set operations

    def _set_operation(self, query: sql.SetOperation, surroundings: BindContext) -> BoundQuery:
        surroundings = self.with_tables(query.with_items, surroundings)
        inner = self.below(surroundings)
        mode = self._mode(query, surroundings)
        if query.operator == "UNION":
            branches = self._union_branches(query, mode, surroundings)
            bound = [self.query(b, inner) for b in branches]
            return self._union(bound, mode, query)
        left, right = self.query(query.left, inner), self.query(query.right, inner)
        types = self._common_types((left, right), query)
        fields = self._fields(left, types)
        node = plan.SetDifference(
            self.converted(left, types),
            self.converted(right, types),
            query.operator,
            mode == "DISTINCT",
            fields,
        )
        return BoundQuery(node, _outputs(left, fields))

    def _mode(self, query: sql.SetOperation, surroundings: BindContext) -> str:
        if query.mode:
            return query.mode
        if query.operator != "UNION":
            return surroundings.text(f"{query.operator.lower()}_default_mode").upper()
        mode = surroundings.text("union_default_mode").upper()
        if mode not in ("ALL", "DISTINCT"):
            raise errors.ExpectedUnionMode(
                "Expected ALL or DISTINCT after UNION.",
                hint="Write UNION ALL to keep duplicates, UNION DISTINCT to remove them, or set "
                "union_default_mode.",
                position=query.position,
            )
        return mode

    def _union_branches(
        self, query: sql.SetOperation, mode: str, surroundings: BindContext
    ) -> list[sql.Query]:
        """Flattened while the mode is the same: a long chain is one node, not a deep tree."""
        branches: list[sql.Query] = [query.right]
        left: sql.Query = query.left
        while (
            isinstance(left, sql.SetOperation)
            and left.operator == "UNION"
            and not left.with_items
            and not left.settings
            and self._mode(left, surroundings) == mode
        ):
            branches.append(left.right)
            left = left.left
        branches.append(left)
        return branches[::-1]

    def _union(
        self, branches: Sequence[BoundQuery], mode: str, query: sql.SetOperation
    ) -> BoundQuery:
        types = self._common_types(branches, query)
        fields = self._fields(branches[0], types)
        node: plan.Node = plan.Union(tuple(self.converted(b, types) for b in branches), fields)
        if mode == "DISTINCT":
            node = plan.Distinct(node)
        return BoundQuery(node, _outputs(branches[0], fields))

    def _common_types(
        self, branches: Sequence[BoundQuery], query: sql.SetOperation
    ) -> list[DataType]:
        counts = [len(b.columns) for b in branches]
        if len(set(counts)) > 1:
            raise errors.UnionStructuresMismatch(
                f"The queries of {query.operator} have different numbers of columns: "
                f"{', '.join(map(str, counts))}.",
                position=query.position,
            )
        types: list[DataType] = []
        for columns in zip(*(b.columns for b in branches), strict=True):
            distinct = list(dict.fromkeys(c.type for c in columns))
            try:
                types.append(distinct[0] if len(distinct) == 1 else functions.common_type(distinct))
            except errors.Error as error:
                error.message = f"Column {columns[0].name!r} of {query.operator}: {error.message}"
                raise error.at(query.position) from None
        return types

    def _fields(self, first: BoundQuery, types: Sequence[DataType]) -> plan.Schema:
        return tuple(
            plan.Field(self.names.unique(c.name), t)
            for c, t in zip(first.columns, types, strict=True)
        )

    def converted(self, query: BoundQuery, types: Sequence[DataType]) -> plan.Node:
        """A node with exactly these columns, in order, of these types."""
        schema = query.node.schema
        wanted = list(zip(query.columns, types, strict=True))
        if [(f.name, f.type) for f in schema] == [(c.unique, t) for c, t in wanted]:
            return query.node
        expressions: list[tuple[str, Expression]] = []
        taken: set[str] = set()
        for column, data_type in wanted:
            reference = column.reference
            same = column.type == data_type
            keeps_name = same and column.unique not in taken
            name = column.unique if keeps_name else self.names.unique(column.name)
            taken.add(name)
            expressions.append((name, reference if same else Cast(data_type, reference)))
        return plan.Project(query.node, tuple(expressions))

    # --- subqueries as values

    def scalar_subquery(self, query: sql.Query, surroundings: BindContext) -> Expression:
        """One column gives Nullable(its type), several a tuple named after them."""
        bound = self.subquery(query, surroundings)
        if len(bound.columns) == 1:
            (column,) = bound.columns
            node = self.converted(bound, [column.type])
            return ScalarSubquery(make_nullable(column.type), node)
        packed = constants.call(
            "tuple", tuple(c.reference for c in bound.columns), self.scope.environment
        )
        names = tuple(c.name for c in bound.columns)
        if isinstance(packed.type, Tuple) and len(set(names)) == len(names):
            packed = Cast(Tuple(packed.type.elements, names), packed)
        name = self.names.unique("tuple")
        return ScalarSubquery(packed.type, plan.Project(bound.node, ((name, packed),)))

    def exists(self, query: sql.Query, surroundings: BindContext) -> Expression:
        """Whether there is a row: a count of at most one."""
        bound = self.subquery(query, surroundings)
        count = functions.resolve_aggregate("count", (), ())
        name = self.names.unique("count()")
        counted = plan.Aggregate(
            plan.Limit(bound.node, 1), (), ((name, AggregateCall(count, "count", ())),)
        )
        flag = constants.call(
            "notEquals",
            (ColumnRef(UINT64, name), constants.unsigned_byte(0)),
            self.scope.environment,
        )
        made = plan.Project(counted, ((self.names.unique("exists"), flag),))
        return ScalarSubquery(UINT8, made)


def _with_settings(query: sql.Query, surroundings: BindContext) -> BindContext:
    """SETTINGS of the query itself. Below the outermost query those alone that decide what a query
    means; limits and the like are of the whole statement."""
    assert isinstance(query, sql.Select | sql.SetOperation)
    if not query.settings:
        return surroundings
    given = Settings({s.name: s.value for s in query.settings}).changed
    Settings.refuse_engine(given)
    for setting in query.settings:
        of_statement = setting.name not in MEANING and not lookup(setting.name).neutral
        if surroundings.depth and of_statement:
            raise errors.NotSupportedError(
                f"The setting {setting.name} is of the whole statement, not of a subquery.",
                hint="Move it to the end of the statement.",
                position=setting.position or query.position,
            )
    return replace(surroundings, settings={**surroundings.settings, **given})


def _outputs(first: BoundQuery, fields: plan.Schema) -> tuple[OutputColumn, ...]:
    return tuple(
        OutputColumn(f.name, c.name, f.type) for f, c in zip(fields, first.columns, strict=True)
    )


def _names_table(query: sql.Query, name: str) -> bool:
    from olapdb.bind.syntax import walk

    return any(
        isinstance(n, sql.TableReference) and n.table.database is None and n.table.name == name
        for n in walk(query)
    )
