"""ARRAY JOIN and arrayJoin(): a row for each element of an array.

The clause joins its arrays side by side, as columns of FROM.  The function is part of an
expression: it is bound to an `Unnested`, and the SELECT puts an ArrayJoin below the first clause that
uses one.  Equal calls are one column, different ones multiply each other's rows:

    SELECT arrayJoin([1, 2]) AS a, arrayJoin([3, 4]) AS b     (1, 3), (1, 4), (2, 3), (2, 4)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from olapdb.bind.aggregates import refuse_aggregates
from olapdb.bind.expressions import ExpressionBinder
from olapdb.bind.names import NameAllocator
from olapdb.bind.relation import Relation, RelationColumn
from olapdb.errors import IllegalPrewhere, NotSupportedError, TypeMismatch
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import (
    AggregateCall,
    ColumnRef,
    Expression,
    Unnested,
    columns_of,
    element_type,
    transform,
    walk,
)
from olapdb.sql import nodes as sql

if TYPE_CHECKING:
    from olapdb.bind.query import QueryBinder
    from olapdb.bind.scope import BindContext


def bind_array_join(
    queries: QueryBinder,
    join: sql.ArrayJoin,
    source: Relation,
    surroundings: BindContext,
    aliases: Mapping[str, sql.Expression],
) -> Relation:
    """The relation of an ARRAY JOIN over that of what stands before it.

    `ARRAY JOIN a` puts the element in the place of column a; `ARRAY JOIN a AS x` adds x beside it,
    which no star shows.  `ARRAY JOIN n` joins the columns `n.a`, `n.b`, …  Aliases of the SELECT may
    be used, but columns come before them.  TypeMismatch for what is neither Array nor Map.
    """
    columns_first = {**surroundings.settings, "prefer_column_name_to_alias": 1}
    binder = ExpressionBinder(
        queries, source, replace(surroundings, settings=columns_first), aliases
    )
    binding = _ArrayJoinBinding(queries, binder, source)
    for item in join.arrays:
        binding.add(item)
    return binding.relation(join.left)


class _ArrayJoinBinding:
    def __init__(self, queries: QueryBinder, binder: ExpressionBinder, source: Relation) -> None:
        self.names, self.binder, self.source = queries.names, binder, source
        self.arrays: list[tuple[str, Expression]] = []
        self.added: list[RelationColumn] = []
        self.replaced: dict[RelationColumn, RelationColumn] = {}

    def add(self, item: sql.Expression) -> None:
        alias = item.name if isinstance(item, sql.Alias) else None
        array = item.expression if isinstance(item, sql.Alias) else item
        column = self.source.find(array.parts) if isinstance(array, sql.Identifier) else None
        if column is None and isinstance(array, sql.Identifier) and (inner := self._nested(array)):
            for one in inner:
                name = None if alias is None else alias + one.name[len(".".join(array.parts)) :]
                self._join(one.use(), name, one, array)
            return
        bound = self.binder.bind(array)
        refuse_aggregates(bound, "ARRAY JOIN", array.position)
        self._join(bound, alias, column, array)

    def _nested(self, name: sql.Identifier) -> list[RelationColumn]:
        """The columns `n.a`, `n.b` of a nested table n."""
        *qualifier, last = name.parts
        return [
            c
            for c in self.source.columns
            if c.name.startswith(f"{last}.")
            and element_type(c.type) is not None
            and (not qualifier or tuple(qualifier) in c.qualifiers)
        ]

    def _join(
        self,
        array: Expression,
        alias: str | None,
        column: RelationColumn | None,
        node: sql.Expression,
    ) -> None:
        data_type = element_type(array.type)
        if data_type is None:
            raise TypeMismatch(
                f"ARRAY JOIN needs an Array or a Map, not {array.type}.", position=node.position
            )
        wanted = alias or (column.name if column is not None else "element")
        unique = self.names.unique(wanted)
        self.arrays.append((unique, array))
        element = _always(ColumnRef(data_type, unique))
        if alias is not None:
            self.added.append(RelationColumn(alias, data_type, element, starred=False))
        elif column is not None:
            self.replaced[column] = RelationColumn(
                column.name,
                data_type,
                element,
                column.qualifiers,
                column.starred,
                column.bare,
                column.shown_bare,
            )

    def relation(self, left: bool) -> Relation:
        kept = [self.replaced.get(c, c) for c in self.source.columns]

        def build() -> plan.Node:
            node = self.source.build()
            return plan.ArrayJoin(node, node.schema, tuple(self.arrays), left)

        return Relation([*self.added, *kept], build, self.source.label, self.source.joins)


def _always(expression: Expression) -> Callable[[], Expression]:
    return lambda: expression


def with_prewhere(node: plan.Node, prewhere: Expression) -> plan.Node:
    """PREWHERE is about the table's own rows, below any ARRAY JOIN: of a FINAL table those before
    they are combined, else it filters. IllegalPrewhere where it uses an element."""
    if isinstance(node, plan.Scan) and node.final:
        fields = zip(node.columns, node.types, strict=True)
        needed = tuple((unique, name, t) for (unique, name), t in fields)
        return replace(node, prewhere=prewhere, predicate_columns=needed)
    if not isinstance(node, plan.ArrayJoin):
        return plan.Filter(node, prewhere)
    if columns_of(prewhere) & {name for name, _ in node.arrays}:
        raise IllegalPrewhere(
            "PREWHERE is applied before ARRAY JOIN, so it cannot use the elements.",
            hint="Use WHERE.",
        )
    return replace(node, child=with_prewhere(node.child, prewhere))


# --- the function


@dataclass
class Unnesting:
    """The arrayJoin() calls of one level of a SELECT (its rows, or its groups) as columns."""

    names: NameAllocator

    def __post_init__(self) -> None:
        self.known: dict[Unnested, ColumnRef] = {}

    def below(self, node: plan.Node, expressions: Iterable[Expression]) -> plan.Node:
        """The node with an ArrayJoin for each call in the expressions that has none yet, those
        inside of others first."""
        for expression in expressions:
            for call in _calls(expression):
                if call in self.known:
                    continue
                unique = self.names.unique("arrayJoin")
                arrays = ((unique, self.over(call.argument)),)
                node = plan.ArrayJoin(node, node.schema, arrays, False)
                self.known[call] = ColumnRef(call.type, unique)
        return node

    def over(self, expression: Expression) -> Expression:
        """The expression over such a node."""
        if not self.known:
            return expression
        return transform(
            expression, lambda e: self.known.get(e) if isinstance(e, Unnested) else None
        )

    def over_call(self, call: AggregateCall) -> AggregateCall:
        return replace(call, arguments=tuple(self.over(a) for a in call.arguments))


def _calls(expression: Expression) -> Iterator[Unnested]:
    for child in expression.children():
        yield from _calls(child)
    if isinstance(expression, Unnested):
        yield expression


def refuse_unnested(expression: Expression, where: str) -> None:
    """NotSupportedError where arrayJoin() would change how many rows there are, and may not."""
    if any(isinstance(e, Unnested) for e in walk(expression)):
        raise NotSupportedError(
            f"arrayJoin() makes several rows of one, which has no meaning in {where}.",
            hint="Use the clause ARRAY JOIN, or a subquery.",
        )
