"""JOIN: keys and residual conditions out of ON or USING, and the columns of the result.

Equalities between the sides become keys. Any other condition on one side filters that side, where
this means the same; the remaining conditions are the join's residual. RIGHT joins that need a
residual, ANY, SEMI or ANTI become LEFT joins with the sides swapped. A join without an equality gets
a constant key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Literal

from olapdb import functions
from olapdb.bind import asof, constants
from olapdb.bind.aggregates import refuse_aggregates
from olapdb.bind.contracts import BindContext, QueryBinder
from olapdb.bind.dependent_plans import key_pairs
from olapdb.bind.expressions import ExpressionBinder, bind_condition
from olapdb.bind.join_tables import check_join, joined_table
from olapdb.bind.relation import Relation, RelationColumn
from olapdb.bind.syntax import walk
from olapdb.bind.windows import refuse_windows
from olapdb.errors import (
    AliasRequired,
    ExpectedAllOrAny,
    IllegalColumn,
    InternalError,
    InvalidJoinOnExpression,
    NotSupportedError,
    UnknownIdentifier,
)
from olapdb.plan import nodes as plan
from olapdb.plan.conditions import all_of, truth
from olapdb.plan.expressions import Call, ColumnRef, Constant, Expression, columns_of
from olapdb.plan.join_keys import key_type, with_nulls_of
from olapdb.records import dataclass
from olapdb.sql import nodes as sql
from olapdb.types import UINT8, DataType, Dynamic, Json, any_part, make_nullable, plain

BindSource = Callable[
    ["QueryBinder", "sql.Relation | None", "BindContext", "Mapping[str, sql.Expression]"], Relation
]
Kind = Literal["INNER", "LEFT", "RIGHT", "FULL", "CROSS"]


def bind_join(
    queries: QueryBinder,
    join: sql.Join,
    context: BindContext,
    bind_source: BindSource,
    aliases: Mapping[str, sql.Expression],
) -> Relation:
    """Return the relation of a join. `aliases` are those of the SELECT, which its ON may use.

    Raises NotSupportedError for FULL with a condition other than equality, AliasRequired."""
    join = _with_strictness(join, context)
    _refuse_unsupported(join)
    left = bind_source(queries, join.left, context, aliases)
    right = bind_source(queries, join.right, context, aliases)
    _require_aliases(join, context)
    if join.natural:
        join = _with_common_columns(join, left, right)
    binder = _JoinBinder(queries, join, context, _Side(left), _Side(right))
    binder.aliases = aliases
    relation = binder.relation()
    stored = joined_table(queries, join.right, context)
    if stored is not None:
        check_join(stored, join, right, binder.right.keys, binder.nulls)
    return relation


def _require_aliases(join: sql.Join, context: BindContext) -> None:
    """Raise AliasRequired if a side is a subquery or a table function without an alias."""
    if join.lacks_alias and context.flag("joined_subquery_requires_alias"):
        raise AliasRequired(
            "A subquery or table function that is joined needs an alias.",
            hint="Write (SELECT …) AS name, or set joined_subquery_requires_alias = 0.",
            position=join.position,
        )


def _with_strictness(join: sql.Join, context: BindContext) -> sql.Join:
    """Return the join with the strictness of join_default_strictness if it has none. Raise
    ExpectedAllOrAny if the setting has none either."""
    if join.strictness or join.natural or join.comma or join.kind in ("CROSS", "PASTE"):
        return join
    default = context.text("join_default_strictness")
    if not default:
        raise ExpectedAllOrAny(
            "Expected ANY or ALL in JOIN section, because setting (join_default_strictness) is empty.",
            position=join.position,
        )
    return replace(join, strictness="ANY") if default == "ANY" else join


def _refuse_unsupported(join: sql.Join) -> None:
    """Raise NotSupportedError if the join is ANY/SEMI/ANTI FULL, INNER ANTI, or ASOF and neither
    INNER nor LEFT."""
    if join.strictness == "ASOF":
        asof.refuse_kind(join)
    if join.kind == "FULL" and join.strictness in ("ANY", "SEMI", "ANTI"):
        raise NotSupportedError(
            f"{join.strictness} FULL JOIN is not supported; ClickHouse has none either.",
            position=join.position,
        )
    if join.kind == "INNER" and join.strictness == "ANTI":
        raise NotSupportedError(
            "ANTI JOIN is LEFT or RIGHT.", hint="Write LEFT ANTI JOIN.", position=join.position
        )


def _with_common_columns(join: sql.Join, left: Relation, right: Relation) -> sql.Join:
    """Return a NATURAL JOIN with USING of the columns that both sides have, in the left one's order.

    Without any it joins every row with every row."""
    on_the_right = {column.name for column in right.starred()}
    common = tuple(c.name for c in left.starred() if c.bare and c.name in on_the_right)
    on = None if common else sql.Literal(1, position=join.position)
    return replace(join, using=common, on=on, natural=False)


@dataclass(eq=False)
class _Side:
    """One side of a join: its relation, its keys, and the filters and columns to add on top."""

    relation: Relation
    keys: list[Expression] = field(default_factory=list)
    filters: list[Expression] = field(default_factory=list)
    computed: list[tuple[str, Expression]] = field(default_factory=list)
    outer: bool = False
    """Whether a row of the result may lack a row of this side: then it has defaults or NULL."""
    derived: list[RelationColumn] = field(default_factory=list)

    @property
    def names(self) -> frozenset[str]:
        """Return the plan columns of this side that any expression has read so far."""
        used = (columns_of(c.use()) for c in self.relation.columns if c.used)
        return frozenset().union(*used)

    def build(self) -> plan.Node:
        """Return the plan of this side with its filters, then its computed columns, on top."""
        node = self.relation.build()
        if self.filters:
            node = plan.Filter(node, all_of(self.filters))
        if self.computed:
            columns = tuple((f.name, ColumnRef(f.type, f.name)) for f in node.schema)
            node = plan.Project(node, (*columns, *self.computed))
        return node


class _JoinBinder:
    """The binding of one JOIN, from its ON or USING to its plan node.

    Building is late: what the query reads of the result decides which columns the node has."""

    def __init__(
        self, queries: QueryBinder, join: sql.Join, context: BindContext, left: _Side, right: _Side
    ) -> None:
        self.queries, self.join, self.context = queries, join, context
        self.left, self.right = left, right
        self.kind: Kind = _kind(join)
        self.strictness = join.strictness or "ALL"
        if self.kind == "INNER" and self.strictness == "SEMI":
            self.kind = "LEFT"
        self.nulls = context.flag("join_use_nulls")
        self.aliases: Mapping[str, sql.Expression] = {}
        """Names that ON may use beside those of columns."""
        self.types_of_using: dict[RelationColumn, DataType] = {}
        """The columns of USING of both sides, with the common type that they have in the result."""
        self.residual: list[Expression] = []
        self.further: list[Expression] = []  # of a FULL JOIN, what is no equality
        self.nearest: tuple[str, Expression, Expression] | None = None
        """The inequality of an ASOF JOIN: its operator, left and right side."""
        self.left.outer = self.kind in ("RIGHT", "FULL")
        self.right.outer = self.kind in ("LEFT", "FULL")

    def relation(self) -> Relation:
        """Return the result: the columns of USING, then those of the left and right side."""
        merged = list(self._bind_using()) if self.join.using else []
        if self.join.on is not None:
            self._bind_on(self.join.on)
        if self.strictness == "ASOF":
            self._add_inequality()
        hidden = set(self.join.using)
        for side in (self.left, self.right):
            side.derived = [
                self._derived(side, c, hidden, self.types_of_using.get(c))
                for c in side.relation.columns
            ]
        joins = self.left.relation.joins + self.right.relation.joins + 1
        columns = [*merged, *self.left.derived, *self.right.derived]
        return Relation(columns, self._build, "the join", joins)

    # --- conditions

    def _bind_using(self) -> Iterator[RelationColumn]:
        """Add the keys of USING, and yield one result column for each name.

        Its value comes from the left side, in a RIGHT join from the right side, in a FULL join from
        the side that has a row."""
        marker = None
        if self.kind == "FULL":
            name = self.queries.names.unique("_matched")
            self.left.computed.append((name, constants.unsigned_byte(1)))
            marker = ColumnRef(make_nullable(UINT8) if self.nulls else UINT8, name)
        for name in self.join.using:
            pair = [self._using_column(side, name) for side in (self.left, self.right)]
            if self.strictness == "ASOF" and name == self.join.using[-1]:
                self.nearest = ("greaterOrEquals", pair[0].use(), pair[1].use())
            else:
                self._add_key(pair[0].use(), pair[1].use())
            common = _common(pair[0].type, pair[1].type)
            left, right = (
                self._derived(side, column, set(), common)
                for side, column in zip((self.left, self.right), pair, strict=True)
            )
            self.types_of_using.update((column, common) for column in pair)
            yield self._merged(name, left, right, marker)

    def _using_column(self, side: _Side, name: str) -> RelationColumn:
        """Return the side's column of USING. Raises UnknownIdentifier if it has none."""
        column = side.relation.find((name,))
        if column is None:
            raise UnknownIdentifier(
                f"USING ({name}): {side.relation.label or 'one side'} has no such column.",
                hint="Join by ON where the names differ.",
                position=self.join.position,
            )
        return column

    def _merged(
        self, name: str, left: RelationColumn, right: RelationColumn, marker: ColumnRef | None
    ) -> RelationColumn:
        """Return the one result column of a name in USING.

        `left` and `right` are its columns of the two sides. `marker` is the flag of a FULL join
        that is 1 where the left side has a row; None in other joins."""
        environment = self.queries.scope.environment
        if marker is None:
            chosen = right if self.kind == "RIGHT" else left
            common = _common(left.type, right.type) if not self.nulls else chosen.type
            return RelationColumn(
                name, common, lambda: constants.cast(chosen.use(), common, environment)
            )
        common = _common(left.type, right.type)

        def make() -> Expression:
            """Return `if(left side has a row, left value, right value)`, at the common type."""
            sides = tuple(constants.cast(c.use(), common, environment) for c in (left, right))
            return constants.call("if", (marker, *sides), environment)

        return RelationColumn(name, common, make)

    def _bind_on(self, on: sql.Expression) -> None:
        """Bind ON over the columns of both sides and place each of its AND terms."""
        both = Relation(
            [*self.left.relation.columns, *self.right.relation.columns],
            _unbuilt,
            "the join",
            self.left.relation.joins + self.right.relation.joins,
        )
        aliases = self._aliases_within(both, on)
        binder = ExpressionBinder(self.queries, both, self.context.nested(), aliases)
        for condition in _conjuncts(on):
            bound = bind_condition(binder, condition, "JOIN ON")
            refuse_windows(bound, "JOIN ON", condition.position)
            refuse_aggregates(bound, "JOIN ON", condition.position)
            self._place(bound, condition)
        if self.further:
            self._place_further(on)

    def _aliases_within(self, both: Relation, on: sql.Expression) -> dict[str, sql.Expression]:
        """Return the aliases of the SELECT that ON may use. An alias comes before a column of its
        name, unless it is of a table that is joined later."""
        usable = dict(self.aliases)
        named = {node.parts[0] for node in walk(on) if isinstance(node, sql.Identifier)}
        for name in named & usable.keys() & {column.name for column in both.columns}:
            binder = ExpressionBinder(self.queries, both, self.context.nested(), self.aliases)
            try:
                binder.bind(self.aliases[name])
            except UnknownIdentifier:
                del usable[name]
        return usable

    def _place_further(self, on: sql.Expression) -> None:
        """Add the conditions of a FULL JOIN that are no equalities. One on a side alone decides
        whether its rows have a partner at all. Raises InvalidJoinOnExpression without an equality."""
        is_equated = bool(self.left.keys) or any(
            isinstance(condition, Call) and condition.name == "or" for condition in self.further
        )
        if not is_equated:
            raise InvalidJoinOnExpression(
                "A FULL JOIN needs an equality between its sides.",
                hint="Write a LEFT JOIN, and a RIGHT ANTI JOIN behind UNION ALL.",
                position=on.position,
            )
        for condition in self.further:
            used = columns_of(condition)
            if used and (used <= self.left.names or used <= self.right.names):
                self._add_condition_of_side(condition, on_left=used <= self.left.names)
            else:
                self.residual.append(condition)

    def _place(self, bound: Expression, node: sql.Expression) -> None:
        """Add a condition of ON as a key, as a filter of a side, or as residual.

        A constant true condition is dropped. Raises InvalidJoinOnExpression for a CROSS join."""
        left, right = self.left.names, self.right.names
        used = columns_of(bound)
        if truth(bound) is True:
            return
        if isinstance(bound, Call) and bound.name in ("equals", "isNotDistinctFrom"):
            first, second = bound.arguments
            if _is_over(first, right) and _is_over(second, left):
                first, second = second, first
            if _is_over(first, left) and _is_over(second, right):
                for pair in key_pairs(first, second, bound.name == "isNotDistinctFrom"):
                    self._add_key(*pair)
                return
        if self.strictness == "ASOF" and self._place_asof(bound, node):
            return
        if self.kind == "FULL":
            if truth(bound) is False:  # no row has a partner
                self._add_condition_of_side(bound, on_left=True)
            else:
                self.further.append(bound)
            return
        if self.kind == "CROSS":
            raise InvalidJoinOnExpression("CROSS JOIN has no ON.", position=node.position)
        if used and used <= left and self._may_filter(self.left):
            self.left.filters.append(bound)
        elif used and used <= right and self._may_filter(self.right):
            self.right.filters.append(bound)
        elif self.strictness == "ANY" and used and (used <= left or used <= right):
            self._add_condition_of_side(bound, on_left=used <= left)
        else:
            self.residual.append(bound)

    def _place_asof(self, bound: Expression, node: sql.Expression) -> bool:
        """Add a condition of ASOF JOIN that is no equality; False for a filter of the right side.

        A condition on the left side decides whether the row has a partner at all: it becomes a pair
        of keys. Raises InvalidJoinOnExpression for a second condition between the sides."""
        nearest = asof.inequality(bound, self.left.names, self.right.names)
        if nearest is not None and self.nearest is None:
            self.nearest = nearest
            return True
        used = columns_of(bound)
        if used and used <= self.right.names:
            return False
        if nearest is not None or not used <= self.left.names:
            raise InvalidJoinOnExpression(
                "ASOF JOIN takes one inequality between its sides, and equalities.",
                hint="Move other conditions to WHERE.",
                position=node.position,
            )
        self._add_condition_of_side(bound, on_left=True)
        return True

    def _add_condition_of_side(self, bound: Expression, *, on_left: bool) -> None:
        """Add a condition on the side whose rows all appear: it decides whether a row has a partner
        at all, so it becomes a pair of keys."""
        one = constants.unsigned_byte(1)
        environment = self.queries.scope.environment
        holds = constants.call("if", (bound, one, constants.unsigned_byte(0)), environment)
        self._add_key(*((holds, one) if on_left else (one, holds)))

    def _add_inequality(self) -> None:
        """Make the inequality of an ASOF JOIN its residual, with both sides of one type. Without an equality, all rows
        have one key."""
        operator, left, right = asof.check(self.join, self.nearest)
        if not self.right.keys:
            self._add_key(constants.unsigned_byte(1), constants.unsigned_byte(1))
        left, right = self._of_one_type(left, right)
        environment = self.queries.scope.environment
        self.residual.append(asof.condition_of(operator, left, right, environment))

    def _may_filter(self, side: _Side) -> bool:
        """Return whether a condition of ON may drop rows of the side before the join.

        It may not on the preserved side of an outer join, whose rows all appear in the result."""
        if self.kind == "INNER":
            return True
        preserved = self.left if self.kind == "LEFT" else self.right
        return side is not preserved or self.strictness == "SEMI"

    def _add_key(self, left: Expression, right: Expression) -> None:
        """Add a pair of key expressions, converted to a common type where they differ."""
        left, right = self._of_one_type(left, right)
        self.left.keys.append(left)
        self.right.keys.append(right)

    def _of_one_type(self, left: Expression, right: Expression) -> tuple[Expression, Expression]:
        """Return two compared expressions, converted to a common type where they differ.

        Raises IllegalColumn for a Dynamic, and for two JSONs whose typed paths differ."""
        for key in (left, right):
            is_json = isinstance(plain(key.type), Json) and plain(left.type) != plain(right.type)
            if is_json or any_part(key.type, (Dynamic,)):
                raise IllegalColumn(
                    f"JOIN on keys of the type {key.type} is not supported.",
                    hint="Join by values of one type: j.path.:Int64, or CAST.",
                )
        if left.type.arrow == right.type.arrow:
            return left, right
        common = key_type(left.type, right.type)
        environment = self.queries.scope.environment
        return (
            constants.cast(left, with_nulls_of(left, common), environment),
            constants.cast(right, with_nulls_of(right, common), environment),
        )

    # --- columns

    def _nullable(self, expression: Expression) -> Expression:
        """Return a column reference as Nullable, any other expression unchanged."""
        if isinstance(expression, ColumnRef):
            return ColumnRef(make_nullable(expression.type), expression.name)
        return expression

    def _derived(
        self, side: _Side, column: RelationColumn, hidden: set[str], common: DataType | None = None
    ) -> RelationColumn:
        """Return a side's column as a column of the join; `hidden` are the names of USING.

        One of these has the type `common` of both sides. The column is nullable where the join fills in
        NULL. A computed column of a side whose rows may be missing is computed below the join, so that
        missing rows get its default."""
        to_null = side.outer and self.nulls
        own_type = common or column.type
        data_type = make_nullable(own_type) if to_null else own_type

        def make() -> Expression:
            """Return the reference to the side's column, made at its first use."""
            expression = column.use()
            if common is not None:
                expression = constants.cast(expression, common, self.queries.scope.environment)
            if side.outer and not isinstance(expression, ColumnRef):
                name = self.queries.names.unique(column.name)
                side.computed.append((name, expression))
                expression = ColumnRef(own_type, name)
            return self._nullable(expression) if to_null else expression

        is_hidden = column.name in hidden and column.bare
        return RelationColumn(
            column.name,
            data_type,
            make,
            column.qualifiers,
            starred=column.starred and not is_hidden,
            bare=column.bare and not is_hidden,
            shown_bare=is_hidden and side is self.left and self.kind != "RIGHT",
        )

    # --- the node

    def _build(self) -> plan.Node:
        """Return the plan, its sides swapped where a RIGHT join must become a LEFT join.

        A join without keys becomes a CROSS join if it is INNER, else gets the constant key 1."""
        kind, strictness = self.kind, self.strictness
        left, right = self.left, self.right
        swap = kind == "RIGHT" and (self.residual or strictness in ("ANY", "SEMI", "ANTI"))
        if swap:
            kind, left, right = "LEFT", right, left
        if kind == "CROSS" or (kind == "INNER" and not left.keys):
            node: plan.Node = self._cross(left, right)
            return plan.Filter(node, all_of(self.residual)) if self.residual else node
        if not left.keys:
            left.keys.append(constants.unsigned_byte(1))
            right.keys.append(constants.unsigned_byte(1))
        match strictness:
            case "SEMI":
                return self._semi(left, right)
            case "ANTI":
                return self._anti(left, right)
            case "ASOF":
                return self._node(kind, strictness, left, right)
            case "ANY" | "ALL":
                self._refuse_residual(strictness == "ANY")
                return self._node(kind, strictness, left, right)
            case _:
                raise InternalError(f"Unknown strictness {strictness}.")

    def _cross(self, left: _Side, right: _Side) -> plan.Node:
        """Return a CROSS or PASTE join of the two sides."""
        first, second = left.build(), right.build()
        if self.join.kind == "PASTE":
            return plan.Paste(first, second)
        schema = (*first.schema, *second.schema)
        return plan.Join(first, second, "CROSS", "ALL", (), (), None, schema)

    def _refuse_residual(self, refuse: bool) -> None:
        """Raise NotSupportedError if `refuse` and a residual condition is left."""
        if refuse and self.residual:
            raise NotSupportedError(
                f"{self.strictness} JOIN takes equalities, and conditions on its inner side, only.",
                hint="Use an ALL join with LIMIT 1 BY.",
                position=self.join.position,
            )

    def _node(self, kind: Kind, strictness: str, left: _Side, right: _Side) -> plan.Join:
        """Return the Join node. A SEMI or ANTI join has the columns of `left` alone."""
        first, second = left.build(), right.build()
        fields = (*self._fields(left, first), *self._fields(right, second))
        if strictness in ("SEMI", "ANTI"):
            fields = first.schema
        return plan.Join(
            first,
            second,
            kind,
            strictness,  # type: ignore[arg-type]
            tuple(left.keys),
            tuple(right.keys),
            all_of(self.residual) if self.residual else None,
            fields,
        )

    def _fields(self, side: _Side, node: plan.Node) -> plan.Schema:
        """Return the columns of a side's plan, nullable where the join fills in NULL."""
        if not (side.outer and self.nulls):
            return node.schema
        return tuple(plan.Field(f.name, make_nullable(f.type)) for f in node.schema)

    def _semi(self, left: _Side, right: _Side) -> plan.Node:
        """Return a SEMI join of the columns of `left`.

        If the query reads columns of `right`, it is an INNER join with one row of `right` for
        each key."""
        if not any(c.used for c in right.derived):
            return self._node("LEFT", "SEMI", left, right)
        self._refuse_residual(True)
        first, second = left.build(), plan.Distinct(right.build(), tuple(right.keys))
        joined = plan.Join(
            first,
            second,
            "INNER",
            "ALL",
            tuple(left.keys),
            tuple(right.keys),
            None,
            (*first.schema, *second.schema),
        )
        fields = (*first.schema, *self._fields(right, second))
        if fields == joined.schema:
            return joined
        environment = self.queries.scope.environment
        retyped = tuple(
            (f.name, constants.cast(ColumnRef(old.type, old.name), f.type, environment))
            for f, old in zip(fields, joined.schema, strict=True)
        )
        return plan.Project(joined, retyped)

    def _anti(self, left: _Side, right: _Side) -> plan.Node:
        """Return an ANTI join; columns of `right`, if the query reads any, are defaults or NULL."""
        node = self._node("LEFT", "ANTI", left, right)
        if not any(c.used for c in right.derived):
            return node
        columns = tuple((f.name, ColumnRef(f.type, f.name)) for f in node.schema)
        missing = [
            (f.name, Constant(f.type, functions.default_value(f.type)))
            for f in self._fields(right, node.right)
        ]
        return plan.Project(node, (*columns, *missing))


def _kind(join: sql.Join) -> Kind:
    """Return the kind of a join. PASTE is CROSS: it has no condition and keeps all columns."""
    return "CROSS" if join.kind == "PASTE" else join.kind


def _unbuilt() -> plan.Node:
    """Raise InternalError: the relation under ON only resolves names, it has no plan node."""
    raise InternalError("A relation for conditions only is not built.")


def _conjuncts(node: sql.Expression) -> Iterator[sql.Expression]:
    """Yield the conditions that AND connects, nested ones too, in their order."""
    if isinstance(node, sql.Function) and node.name.lower() == "and":
        for argument in node.arguments:
            yield from _conjuncts(argument)
    else:
        yield node


def _is_over(expression: Expression, names: frozenset[str]) -> bool:
    """Return whether an expression reads columns, and only of these names."""
    used = columns_of(expression)
    return bool(used) and used <= names


def _common(left: DataType, right: DataType) -> DataType:
    """Return the type at which two keys are compared. Raises NoCommonType if there is none."""
    return left if left == right else functions.comparable_type([left, right])
