"""Models on models: the trigger of a model that selects from an `incremental_mv` reads its target.

The target's rows are partial states of each key. So a chained model may only use functions that give
the same over partial and over finished rows: the sum of a count or a sum, the minimum of a minimum,
the maximum of a maximum, and the -Merge or -MergeState of a state. Keys are plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from dbt_common.exceptions import CompilationError

from olapdb.bind.syntax import is_not_query, rewrite, walk
from olapdb.sql import nodes
from olapdb.sql.format import to_sql

from .aggregates import is_call
from .errors import refuse
from .model_sql import output_name
from .refusals import leftmost

ColumnKind: TypeAlias = tuple[str, str]
"""The kind of a column, and the function of a state: ("sum", ""), ("state", "uniq"), ("key", "")."""


@dataclass(frozen=True)
class Upstream:
    """An `incremental_mv` that a model reads: its name, its target, and the kinds of its columns."""

    model: str
    target: nodes.TableName
    column_kinds: Mapping[str, ColumnKind]

    @property
    def aggregated(self) -> bool:
        """Return whether the upstream stores states of keys; a row-wise one stores plain rows."""
        return any(meaning != "column" for meaning, _ in self.column_kinds.values())


FindUpstream: TypeAlias = Callable[[nodes.TableName], Upstream | None]

_ONE_TO_ONE = {
    "sum": ("count", "sum"),
    "sumif": ("count", "sum"),
    "min": ("min",),
    "minif": ("min",),
    "max": ("max",),
    "maxif": ("max",),
}
# Repeated rows do not change the results of these.
_IDEMPOTENT = frozenset({"min", "max", "any", "uniq", "uniqexact", "groupuniqarray"})


def attach_to_target(select: nodes.Select, find: FindUpstream) -> nodes.Select:
    """Return the SELECT with the upstream in its FROM replaced by the upstream's target.

    Returns the same object if it reads no upstream. Raises CompilationError, which names the column,
    if the model would give another answer over partial states."""
    return _TargetAttacher(find).select(select, {})[0]


class _TargetAttacher:
    """A rewriter of queries that replaces upstream models by their target tables."""

    def __init__(self, find: FindUpstream) -> None:
        self._find = find

    def select(
        self, select: nodes.Select, outer: Mapping[str, nodes.Query], *, top: bool = True
    ) -> tuple[nodes.Select, _Scope | None]:
        """Return the rewritten SELECT, and the scope of its source if that is an upstream.

        The scope is None if the source is no upstream, or an upstream without aggregates. `outer`
        holds the CTEs in sight; `top` is False for subqueries, which are checked outside."""
        if select.source is None:
            return select, None
        common = {**outer, **{i.name: i.query for i in select.with_items if i.query is not None}}
        first = leftmost(select.source)
        changed, scope, items = self._source(first, common, select.with_items)
        if scope is None:
            return select, None
        source = rewrite(select.source, lambda n: changed if n is first else None)
        rewritten = without_unused_ctes(replace(select, source=source, with_items=items))
        if not scope.upstream.aggregated:
            return rewritten, None
        if top:
            _check(rewritten, scope)
        return rewritten, scope

    def _source(
        self,
        relation: nodes.Relation,
        common: Mapping[str, nodes.Query],
        items: tuple[nodes.WithItem, ...],
    ) -> tuple[nodes.Relation, _Scope | None, tuple[nodes.WithItem, ...]]:
        """Return the leftmost relation with the upstream replaced, its scope, the WITH items.

        The scope is None if nothing was replaced; that of a row-wise upstream in a subquery has no
        columns. Raises CompilationError."""
        match relation:
            case nodes.SubqueryRelation(query=nodes.Select() as query):
                inner, scope = self.select(query, common, top=False)
                if scope is None:
                    return replace(relation, query=inner), _row_scope(inner, query), items
                return replace(relation, query=inner), scope.outside(inner, relation.alias), items
            case nodes.TableReference(table=nodes.TableName(name=name, database=None)) if (
                isinstance(common.get(name), nodes.Select)
            ):
                return self._common(relation, name, common, items)
            case nodes.TableReference():
                upstream = self._find(relation.table)
                if upstream is None:
                    return relation, None, items
                if relation.final:
                    raise refuse(
                        f"FINAL on the model {relation.table}", "has no meaning.", "Remove it."
                    )
                alias = relation.alias or relation.table.name
                scope = _Scope(upstream, dict(upstream.column_kinds), alias)
                return replace(relation, table=upstream.target, alias=alias), scope, items
        return relation, None, items

    def _common(
        self,
        relation: nodes.TableReference,
        name: str,
        common: Mapping[str, nodes.Query],
        items: tuple[nodes.WithItem, ...],
    ) -> tuple[nodes.Relation, _Scope | None, tuple[nodes.WithItem, ...]]:
        """Return the CTE `name` with its upstream replaced, inlined as a subquery.

        The result is that of `_source`. If the CTE reads no upstream it is `relation` unchanged,
        with the scope None."""
        query = common[name]
        assert isinstance(query, nodes.Select)
        below = {n: q for n, q in common.items() if n != name}
        inner, scope = self.select(query, below, top=False)
        if inner is query:
            return relation, None, items
        # The CTE is inlined: other places may read it unchanged.
        subquery = nodes.SubqueryRelation(inner, alias=relation.alias or name)
        if scope is None:
            return subquery, _row_scope(inner, query), items
        return subquery, scope.outside(inner, relation.alias or name), items


def without_unused_ctes(select: nodes.Select) -> nodes.Select:
    """Return the SELECT without CTEs that nothing reads; their tables would count as dependencies."""
    while True:
        used = {
            n.table.name
            for n in walk(select)
            if isinstance(n, nodes.TableReference) and n.table.database is None
        }
        used |= {n.parts[0] for n in walk(select) if isinstance(n, nodes.Identifier)}
        used_items = tuple(i for i in select.with_items if i.query is None or i.name in used)
        if used_items == select.with_items:
            return select
        select = replace(select, with_items=used_items)


@dataclass(frozen=True)
class _Scope:
    """The columns of an upstream as a SELECT sees them, under the alias of its source."""

    upstream: Upstream
    column_kinds: Mapping[str, ColumnKind]
    alias: str | None

    def column_kind(self, node: nodes.Node) -> ColumnKind | None:
        """Return the kind of the upstream's column that the identifier names; None if it names none."""
        if not isinstance(node, nodes.Identifier):
            return None
        if len(node.parts) > 1 and node.parts[-2] not in (self.alias, self.upstream.model):
            return None
        return self.column_kinds.get(node.parts[-1])

    def outside(self, select: nodes.Select, alias: str | None) -> _Scope:
        """Return the scope of a subquery over the source, as the enclosing SELECT sees it."""
        column_kinds: dict[str, ColumnKind] = {}
        for column in select.columns:
            if isinstance(column, nodes.Star):
                column_kinds.update(
                    {n: f for n, f in self.column_kinds.items() if n not in column.excluded}
                )
                continue
            expression = column.expression if isinstance(column, nodes.Alias) else column
            column_kind = self.column_kind(expression)
            if column_kind is None:
                _refuse_states(expression, self, f"column {output_name(column)}")
                column_kind = ("key", "")
            column_kinds[output_name(column)] = column_kind
        for where in (select.where, select.prewhere):
            if where is not None:
                _refuse_states(where, self, "WHERE")
        return _Scope(self.upstream, column_kinds, alias)


def _row_scope(inner: nodes.Select, query: nodes.Select) -> _Scope | None:
    """Return a scope without columns if a row-wise upstream was attached inside the query, else None.

    Columns of a row-wise upstream are plain; the scope only marks that the source changed."""
    if inner is query:
        return None
    return _Scope(Upstream("", nodes.TableName(""), {"": ("column", "")}), {}, None)


def _check(select: nodes.Select, scope: _Scope) -> None:
    """Raise CompilationError unless the SELECT gives the same over partial as over finished rows."""
    aggregated = select.group_by is not None
    for column in select.columns:
        name = output_name(column)
        if isinstance(column, nodes.Star):
            raise _partial(scope, "*")
        calls = [n for n in walk(column, is_not_query) if is_call(n)]
        aggregated = aggregated or bool(calls)
        for call in calls:
            assert isinstance(call, nodes.Function)
            if not isinstance(select.source, nodes.Join):
                _refuse_unknown(call, name, scope)
            _check_call(call, name, scope)
        _refuse_states(_without_calls(column), scope, f"column {name}")
    if not aggregated:
        raise _partial(scope, ", ".join(output_name(c) for c in select.columns))
    for clause, condition in (("WHERE", select.where), ("PREWHERE", select.prewhere)):
        if condition is not None:
            _refuse_states(condition, scope, clause)
    for element in select.group_by if isinstance(select.group_by, tuple) else ():
        assert isinstance(element, nodes.Expression)
        if not (isinstance(element, nodes.Identifier) and _is_alias(element, select)):
            _refuse_states(element, scope, "GROUP BY")


def _is_alias(element: nodes.Identifier, select: nodes.Select) -> bool:
    """Return whether the last part of the name is an alias of the SELECT."""
    return any(isinstance(c, nodes.Alias) and c.name == element.parts[-1] for c in select.columns)


def _partial(scope: _Scope, what: str) -> CompilationError:
    """Return the error for rows of partial states that would be selected."""
    return refuse(
        f"{what} of {scope.upstream.model}",
        "would be rows of partial states, not its answers.",
        "Aggregate them (sum of a sum, min of a min, -Merge of a state), or make a view.",
    )


def _refuse_unknown(call: nodes.Function, column: str, scope: _Scope) -> None:
    """Raise CompilationError if an argument names no column of the upstream, the only source."""
    for node in (n for a in call.arguments for n in walk(a, is_not_query)):
        if isinstance(node, nodes.Lambda):
            return
        if isinstance(node, nodes.Identifier) and not set(node.parts) & set(scope.column_kinds):
            raise refuse(
                f"column {column}: {to_sql(node)} is no column of {scope.upstream.model},",
                f"which has {', '.join(scope.column_kinds)}.",
                "",
            )


def _check_call(call: nodes.Function, column: str, scope: _Scope) -> None:
    """Raise CompilationError unless the call gives the same over partial states as over answers."""
    arguments = call.arguments
    touched = [
        f for a in arguments for n in walk(a) if (f := scope.column_kind(n)) and f[0] != "key"
    ]
    lowered = call.name.lower()
    if not touched:
        if lowered in _IDEMPOTENT or (call.distinct and lowered == "count"):
            return
        raise refuse(
            f"column {column}: {to_sql(call)} would count the partial rows of "
            f"{scope.upstream.model},",
            "which are more than its rows.",
            "Use the sum of one of its counts or sums.",
        )
    meaning, function = scope.column_kind(arguments[0]) or ("", "")
    others = [
        n for a in arguments[1:] for n in walk(a) if (scope.column_kind(n) or ("key",))[0] != "key"
    ]
    plain = not others and call.filter is None and not call.distinct
    if plain and meaning in _ONE_TO_ONE.get(lowered, ()):
        return
    merges = (f"{function}merge".lower(), f"{function}mergestate".lower())
    if plain and meaning == "state" and lowered in merges:
        return
    raise refuse(
        f"column {column}: {to_sql(call)} over {scope.upstream.model}",
        "is not what it would be over the states of that model.",
        _advice(arguments, scope),
    )


def _advice(arguments: tuple[nodes.Expression, ...], scope: _Scope) -> str:
    """Return, for each partial column in the arguments, the call to use instead."""
    named = [
        n for a in arguments for n in walk(a) if (scope.column_kind(n) or ("key", ""))[0] != "key"
    ]
    texts = []
    for node in named:
        meaning, function = scope.column_kind(node) or ("", "")
        assert isinstance(node, nodes.Identifier)
        name = node.parts[-1]
        match meaning:
            case "count" | "sum":
                texts.append(f"{name} is a {meaning}: use sum({name}).")
            case "min" | "max":
                texts.append(f"{name} is a {meaning}: use {meaning}({name}).")
            case "state":
                texts.append(f"{name} is a state of {function}: use {function}Merge({name}).")
            case _:
                texts.append(
                    f"{name} is computed from states: select what it is made from instead."
                )
    return " ".join(texts)


def _without_calls(column: nodes.Expression) -> nodes.Expression:
    """Return a column with each aggregate call replaced by NULL."""
    return rewrite(column, lambda n: nodes.Literal(None) if is_call(n) else None)


def _refuse_states(expression: nodes.Expression, scope: _Scope, where: str) -> None:
    """Raise CompilationError if the expression uses a partial column; `where` says where it stands."""
    for node in walk(expression, is_not_query):
        column_kind = scope.column_kind(node)
        if column_kind is not None and column_kind[0] != "key":
            raise refuse(
                f"{where} uses {to_sql(node)} of {scope.upstream.model},",
                "which is a partial value in each of its stored rows.",
                _advice((expression,), scope),
            )
