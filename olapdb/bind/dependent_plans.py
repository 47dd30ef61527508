"""A correlated subquery's plan for all rows of the enclosing query at once.

`Dependent` rewrites a plan with OuterColumns into one without, which has more columns: for each outer
value the column to join the enclosing rows by. Where the plan filters by `column = outer value`, the
column itself is that value. Elsewhere the plan is computed for each distinct combination of outer
values of the enclosing rows, its *domain* (Neumann and Kemper, Unnesting Arbitrary Queries, 2015):

    (SELECT max(v) FROM u WHERE u.k = OUTER k)       Aggregate by u.k
    (SELECT max(v) FROM u WHERE u.k < OUTER k)       Aggregate by d over Join of u and the domain d
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from olapdb.bind.correlations import outer_columns
from olapdb.bind.names import NameAllocator
from olapdb.errors import Error, NotSupportedError
from olapdb.functions import default_value
from olapdb.plan import nodes as plan
from olapdb.plan.conditions import all_of, conjuncts, scalar_call
from olapdb.plan.expressions import (
    Call,
    Cast,
    ColumnRef,
    Constant,
    CorrelatedSubquery,
    Expression,
    OuterColumn,
    is_repeatable,
    transform,
    walk,
)
from olapdb.plan.join_keys import key_type, with_nulls_of
from olapdb.plan.tree import all_nodes, expressions_of, map_expressions
from olapdb.records import dataclass
from olapdb.types import Decimal, Integer, Nothing, is_nullable, make_nullable, plain


@dataclass(frozen=True)
class Joinable:
    """A plan without OuterColumns. `values` is a column of it for each outer value, by parameter;
    those of `nulls_match` may be NULL, and NULL then equals NULL."""

    node: plan.Node
    values: dict[str, ColumnRef]
    nulls_match: frozenset[str] = frozenset()

    def rewrite(self, expression: Expression) -> Expression:
        """Return the expression with outer values as columns of the plan."""
        return replace_outer(expression, self.values)

    @property
    def columns(self) -> tuple[ColumnRef, ...]:
        """The columns of the outer values, in the order of their parameters."""
        return tuple(self.values.values())


class Dependent:
    """The rewriting of one correlated subquery over the rows of `outer`."""

    def __init__(self, call: CorrelatedSubquery, outer: plan.Node, names: NameAllocator) -> None:
        self.parameters = dict(zip(call.parameters, call.outer, strict=True))
        self.outer, self.names = outer, names

    def joinable(self, node: plan.Node) -> Joinable:
        """Return the plan with the outer values that it reads as columns, so that it can be joined to the enclosing
        rows. Raises NotSupportedError for a plan that cannot be computed for all enclosing rows at once."""
        match node:
            case plan.Filter():
                return self._filter(node)
            case _ if not self._reads(node):
                return self._over_domain(node)
            case plan.Project() | plan.Sort(limit=None) | plan.Distinct():
                return self._passing(node, self.joinable(node.child))
            case plan.Aggregate(sets=()) if node.keys and not node.empty_without_rows:
                return self._passing(node, self.joinable(node.child))
            case plan.Window() | plan.LimitBy() | plan.ArrayJoin():
                return self._passing(node, self.joinable(node.child))
            case plan.Limit(ties=()) if node.count is not None:
                below = self.joinable(node.child)
                limited = plan.LimitBy(below.node, node.count, node.offset, below.columns)
                return replace(below, node=limited)
            case plan.Join():
                return self._join(node)
            case plan.Union():
                return self._union(node)
            case _:
                raise NotSupportedError(
                    f"A correlated subquery with {_clause(node)} is not supported.",
                    hint="Rewrite the subquery as a JOIN.",
                )

    def _reads(self, node: plan.Node) -> bool:
        """Return whether the plan reads outer values."""
        return not outer_columns(node).keys().isdisjoint(self.parameters)

    def _over_domain(self, node: plan.Node) -> Joinable:
        """Return all pairs of the plan's rows and the distinct combinations of outer values. Raise
        NotSupportedError where computing these again would draw other random numbers."""
        read = [
            *self.parameters.values(),
            *(e for below in all_nodes(self.outer) for e in expressions_of(below)),
        ]
        if not all(map(is_repeatable, read)):
            raise NotSupportedError(
                "A correlated subquery over rows of rand() or the like is not supported.",
                hint="Store the rows in a table first.",
            )
        columns = {
            name: ColumnRef(value.type, self.names.unique(name))
            for name, value in self.parameters.items()
        }
        values = tuple((columns[name].name, value) for name, value in self.parameters.items())
        domain = plan.Distinct(plan.Project(self.outer, values))
        schema = (*node.schema, *domain.schema)
        pairs = plan.Join(node, domain, "CROSS", "ALL", (), (), None, schema)
        return Joinable(pairs, columns, frozenset(columns))

    def _filter(self, node: plan.Filter) -> Joinable:
        """Return a Filter's rows; outer values that its columns must equal are these columns."""
        if self._reads(node.child):
            below = self.joinable(node.child)
        else:
            parts = conjuncts(node.predicate)
            equal = equal_columns(parts, self.parameters)
            if len(equal) == len(self.parameters):
                rest = [replace_outer(p, equal) for p in parts if not is_key(p, equal)]
                below_columns = plan.Filter(node.child, all_of(rest)) if rest else node.child
                return self._with_columns(below_columns, equal)
            below = self._over_domain(node.child)
        return replace(below, node=plan.Filter(below.node, below.rewrite(node.predicate)))

    def _with_columns(self, node: plan.Node, equal: dict[str, Expression]) -> Joinable:
        """Return the plan with these expressions over its rows as columns."""
        columns = {
            name: ColumnRef(value.type, self.names.unique(name)) for name, value in equal.items()
        }
        own = tuple((f.name, ColumnRef(f.type, f.name)) for f in node.schema)
        added = tuple((columns[name].name, value) for name, value in equal.items())
        return Joinable(plan.Project(node, (*own, *added)), columns)

    def _passing(self, node: plan.Node, below: Joinable) -> Joinable:
        """Return a node of one input that also passes on the columns of the outer values."""
        changed = map_expressions(node, below.rewrite)
        pairs = tuple((c.name, c) for c in below.columns)
        match changed:
            case plan.Project():
                expressions = (*changed.expressions, *pairs)
                changed = replace(changed, child=below.node, expressions=expressions)
            case plan.Aggregate():
                changed = replace(changed, child=below.node, keys=(*changed.keys, *pairs))
            case plan.Window():
                keys = (*changed.partition_by, *below.columns)
                changed = replace(changed, child=below.node, partition_by=keys)
            case plan.LimitBy():
                changed = replace(changed, child=below.node, keys=(*changed.keys, *below.columns))
            case plan.Distinct():
                keys = (*changed.keys, *below.columns) if changed.keys else ()
                changed = replace(changed, child=below.node, keys=keys)
            case plan.ArrayJoin():
                fields = tuple(plan.Field(c.name, c.type) for c in below.columns)
                changed = replace(changed, child=below.node, kept=(*changed.kept, *fields))
            case plan.Sort():
                changed = replace(changed, child=below.node)
        return replace(below, node=changed)

    def _join(self, node: plan.Join) -> Joinable:
        """Return a join of which one side or both depend on outer values.

        Raises NotSupportedError."""
        if node.kind in ("RIGHT", "FULL") or node.strictness in ("ANY", "ASOF"):
            raise NotSupportedError(
                f"A correlated subquery with a {node.strictness} {node.kind} JOIN is not supported.",
                hint="Write an INNER or LEFT JOIN.",
            )
        inner = node.kind in ("INNER", "CROSS") and node.strictness == "ALL"
        right_depends = self._reads(node.right) or self._any(node.right_keys)
        conditions = () if node.residual is None else (node.residual,)
        left_depends = self._reads(node.left) or self._any((*node.left_keys, *conditions))
        left = self.joinable(node.left) if left_depends or not inner else None
        right = self.joinable(node.right) if right_depends else None
        values = left or right
        assert values is not None
        keys = () if left is None or right is None else same_values(left, right)
        left_node, right_node = (
            side.node if side is not None else own
            for side, own in ((left, node.left), (right, node.right))
        )
        semi = node.strictness in ("SEMI", "ANTI")
        fields = {f.name: f for f in node.fields}
        schema = left_node.schema if semi else (*left_node.schema, *right_node.schema)
        kind = "INNER" if node.kind == "CROSS" and keys else node.kind
        joined = replace(
            node,
            left=left_node,
            right=right_node,
            kind=kind,
            left_keys=(*map(values.rewrite, node.left_keys), *(a for a, _ in keys)),
            right_keys=(*map((right or values).rewrite, node.right_keys), *(b for _, b in keys)),
            residual=None if node.residual is None else values.rewrite(node.residual),
            fields=tuple(fields.get(f.name, f) for f in schema),
        )
        return replace(values, node=joined)

    def _any(self, expressions: Sequence[Expression]) -> bool:
        """Return whether one of the expressions reads an outer value."""
        return any(
            isinstance(e, OuterColumn) and e.name in self.parameters
            for expression in expressions
            for e in walk(expression)
        )

    def _union(self, node: plan.Union) -> Joinable:
        """Return a UNION whose inputs end with one column for each outer value.

        These columns have the first input's types, Nullable where any input's are. NULL equals NULL
        for a value if it does in any input; an input in which it does not loses its NULLs."""
        inputs = [self.joinable(branch) for branch in node.inputs]
        nulls_match = frozenset[str]().union(*(joinable.nulls_match for joinable in inputs))
        types = {}
        for name in inputs[0].values:
            own_types = [joinable.values[name].type for joinable in inputs]
            is_optional = any(map(is_nullable, own_types))
            types[name] = make_nullable(own_types[0]) if is_optional else own_types[0]
        aligned = []
        for own, joinable in zip(node.inputs, inputs, strict=True):
            unmatched = [
                scalar_call("isNotNull", (column,))
                for name, column in joinable.values.items()
                if name in nulls_match - joinable.nulls_match and is_nullable(column.type)
            ]
            rows = plan.Filter(joinable.node, all_of(unmatched)) if unmatched else joinable.node
            given = tuple((f.name, ColumnRef(f.type, f.name)) for f in own.schema)
            values = tuple(
                (c.name, c if c.type == types[name] else Cast(types[name], c))
                for name, c in joinable.values.items()
            )
            aligned.append(plan.Project(rows, (*given, *values)))
        columns = {n: ColumnRef(t, self.names.unique(n)) for n, t in types.items()}
        fields = tuple(plan.Field(c.name, c.type) for c in columns.values())
        union = plan.Union(tuple(aligned), (*node.fields, *fields))
        return Joinable(union, columns, nulls_match)


def replace_outer(
    expression: Expression, values: dict[str, Expression] | dict[str, ColumnRef]
) -> Expression:
    """Return the expression with these OuterColumns replaced by values of the same meaning."""

    def change(e: Expression) -> Expression | None:
        """Return the replacement of an OuterColumn, cast to its type; None for other expressions and columns."""
        if not isinstance(e, OuterColumn) or e.name not in values:
            return None
        value = values[e.name]
        return value if value.type == e.type else Cast(e.type, value)

    return transform(expression, change)


def equal_columns(
    conditions: Sequence[Expression], parameters: dict[str, Expression]
) -> dict[str, Expression]:
    """Return, for each parameter that a condition sets equal to an expression over the subquery's
    rows, that expression. Its type is the parameter's, which may be Nullable."""
    equal: dict[str, Expression] = {}
    for condition in conditions:
        if not isinstance(condition, Call) or condition.name != "equals":
            continue
        for parameter, own_value in (condition.arguments, condition.arguments[::-1]):
            if not isinstance(parameter, OuterColumn) or parameter.name not in parameters:
                continue
            value = _as_key(own_value, parameter)
            if parameter.name not in equal and value is not None and _is_inner(own_value):
                equal[parameter.name] = value
    return {name: equal[name] for name in parameters if name in equal}


def is_key(condition: Expression, equal: dict[str, Expression]) -> bool:
    """Return whether the condition is just the equality of an OuterColumn and its key in `equal`."""
    if not isinstance(condition, Call) or condition.name != "equals":
        return False
    return any(
        isinstance(parameter, OuterColumn)
        and parameter.name in equal
        and _as_key(value, parameter) == equal[parameter.name]
        for parameter, value in (condition.arguments, condition.arguments[::-1])
    )


def _as_key(value: Expression, outer: OuterColumn) -> Expression | None:
    """Return a value as a key to join the outer column by, None where a join compares otherwise."""
    if plain(value.type) == plain(outer.type):
        return value
    if not all(isinstance(plain(t), Integer | Decimal) for t in (value.type, outer.type)):
        return None
    try:
        common = key_type(value.type, outer.type)
    except Error:
        return None
    if plain(common) != plain(outer.type):
        return None
    return Cast(with_nulls_of(value, common), value)


def _is_inner(expression: Expression) -> bool:
    """Return whether an expression reads columns of the subquery, and no outer value."""
    read = list(walk(expression))
    return any(isinstance(e, ColumnRef) for e in read) and not any(
        isinstance(e, OuterColumn) for e in read
    )


def same_values(left: Joinable, right: Joinable) -> tuple[tuple[Expression, Expression], ...]:
    """Return the keys by which the outer values of two plans are the same."""
    return tuple(
        pair
        for name, column in left.values.items()
        for pair in key_pairs(column, right.values[name], name in right.nulls_match)
    )


def key_pairs(
    left: Expression, right: Expression, nulls_match: bool
) -> tuple[tuple[Expression, Expression], ...]:
    """Return the keys of a join on two values; with `nulls_match` NULL equals NULL."""
    if nulls_match and (
        isinstance(plain(left.type), Nothing) or isinstance(plain(right.type), Nothing)
    ):
        return ((scalar_call("isNull", (left,)), scalar_call("isNull", (right,))),)
    if not nulls_match or not (is_nullable(left.type) and is_nullable(right.type)):
        return ((left, right),)
    return tuple(zip(_null_safe(left), _null_safe(right), strict=True))


def _null_safe(value: Expression) -> tuple[Expression, Expression]:
    """Return two expressions that are equal for equal values, NULL included, and never NULL."""
    default = Constant(plain(value.type), default_value(plain(value.type)))
    return scalar_call("isNull", (value,)), scalar_call("ifNull", (value, default))


def _clause(node: plan.Node) -> str:
    """Return the name of the clause that a node of a plan stands for, for messages."""
    match node:
        case plan.Aggregate(sets=()):
            return "an aggregate without GROUP BY inside it"
        case plan.Aggregate():
            return "ROLLUP, CUBE or GROUPING SETS"
        case plan.Limit():
            return "OFFSET or WITH TIES"
        case plan.SetDifference(operator=operator):
            return operator
        case _:
            return f"{type(node).__name__} over outer columns"
