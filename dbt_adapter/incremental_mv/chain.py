"""Models on models: a SELECT from an `incremental_mv` attaches to that one's target.

The target's rows are partial states of each key, so a chained model may do with them only what
means the same over the finished rows: the sum of a count or a sum, the minimum of a minimum, the
maximum of a maximum, and the -Merge of a state.  Keys are plain values.
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
from .inputs import output_name
from .refusals import leftmost

Fact: TypeAlias = tuple[str, str]
"""What a column is, and the function of a state: ("sum", ""), ("state", "uniq"), ("key", "")."""


@dataclass(frozen=True)
class Upstream:
    """An `incremental_mv` that a model reads: its target, and what its columns are."""

    model: str
    target: nodes.TableName
    facts: Mapping[str, Fact]

    @property
    def aggregated(self) -> bool:
        return any(meaning != "column" for meaning, _ in self.facts.values())


FindUpstream: TypeAlias = Callable[[nodes.TableName], Upstream | None]

_ONE_TO_ONE = {
    "sum": ("count", "sum"),
    "sumif": ("count", "sum"),
    "min": ("min",),
    "minif": ("min",),
    "max": ("max",),
    "maxif": ("max",),
}
# these do not change when a row comes several times
_IDEMPOTENT = frozenset({"min", "max", "any", "uniq", "uniqexact", "groupuniqarray"})


def attach(select: nodes.Select, find: FindUpstream) -> nodes.Select:
    """The SELECT with the upstream in its FROM replaced by the upstream's target.

    CompilationError, naming the column, where the model would not mean the same over states."""
    return _Attaching(find).select(select, {})[0]


class _Attaching:
    def __init__(self, find: FindUpstream) -> None:
        self._find = find

    def select(
        self, select: nodes.Select, outer: Mapping[str, nodes.Query], *, top: bool = True
    ) -> tuple[nodes.Select, _Scope | None]:
        """The rewritten SELECT, and what its source is where that is an upstream's."""
        if select.source is None:
            return select, None
        common = {**outer, **{i.name: i.query for i in select.with_items if i.query is not None}}
        first = leftmost(select.source)
        changed, scope, items = self._source(first, common, select.with_items)
        if scope is None:
            return select, None
        source = rewrite(select.source, lambda n: changed if n is first else None)
        made = without_unused(replace(select, source=source, with_items=items))
        if not scope.upstream.aggregated:
            return made, None
        if top:
            _check(made, scope)
        return made, scope

    def _source(
        self,
        relation: nodes.Relation,
        common: Mapping[str, nodes.Query],
        items: tuple[nodes.WithItem, ...],
    ) -> tuple[nodes.Relation, _Scope | None, tuple[nodes.WithItem, ...]]:
        match relation:
            case nodes.SubqueryRelation(query=nodes.Select() as query):
                inner, scope = self.select(query, common, top=False)
                if scope is None:
                    return replace(relation, query=inner), _row_scope(inner, query), items
                passed = scope.passed(inner, relation.alias)
                return replace(relation, query=inner), passed, items
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
                scope = _Scope(upstream, dict(upstream.facts), alias)
                return replace(relation, table=upstream.target, alias=alias), scope, items
        return relation, None, items

    def _common(
        self,
        relation: nodes.TableReference,
        name: str,
        common: Mapping[str, nodes.Query],
        items: tuple[nodes.WithItem, ...],
    ) -> tuple[nodes.Relation, _Scope | None, tuple[nodes.WithItem, ...]]:
        query = common[name]
        assert isinstance(query, nodes.Select)
        below = {n: q for n, q in common.items() if n != name}
        inner, scope = self.select(query, below, top=False)
        if inner is query:
            return relation, None, items
        # inlined, since the CTE may be read elsewhere as what it says
        made = nodes.SubqueryRelation(inner, alias=relation.alias or name)
        if scope is None:
            return made, _row_scope(inner, query), items
        return made, scope.passed(inner, relation.alias or name), items


def without_unused(select: nodes.Select) -> nodes.Select:
    """Without the CTEs that nothing reads any more: what they read would count as read."""
    while True:
        used = {
            n.table.name
            for n in walk(select)
            if isinstance(n, nodes.TableReference) and n.table.database is None
        }
        used |= {n.parts[0] for n in walk(select) if isinstance(n, nodes.Identifier)}
        kept = tuple(i for i in select.with_items if i.query is None or i.name in used)
        if kept == select.with_items:
            return select
        select = replace(select, with_items=kept)


@dataclass(frozen=True)
class _Scope:
    """Columns of an upstream as a SELECT sees them, under the alias of its source."""

    upstream: Upstream
    facts: Mapping[str, Fact]
    alias: str | None

    def fact(self, node: nodes.Node) -> Fact | None:
        """What the identifier names of the upstream; None where it is another table's."""
        if not isinstance(node, nodes.Identifier):
            return None
        if len(node.parts) > 1 and node.parts[-2] not in (self.alias, self.upstream.model):
            return None
        return self.facts.get(node.parts[-1])

    def passed(self, select: nodes.Select, alias: str | None) -> _Scope:
        """The columns of a subquery over the source, seen from outside."""
        facts: dict[str, Fact] = {}
        for column in select.columns:
            if isinstance(column, nodes.Star):
                facts.update({n: f for n, f in self.facts.items() if n not in column.excluded})
                continue
            plain = column.expression if isinstance(column, nodes.Alias) else column
            fact = self.fact(plain)
            if fact is None:
                _refuse_states(plain, self, f"column {output_name(column)}")
                fact = ("key", "")
            facts[output_name(column)] = fact
        for where in (select.where, select.prewhere):
            if where is not None:
                _refuse_states(where, self, "WHERE")
        return _Scope(self.upstream, facts, alias)


def _row_scope(inner: nodes.Select, query: nodes.Select) -> _Scope | None:
    """A row-wise upstream's columns are plain; the marker says that something was replaced."""
    if inner is query:
        return None
    return _Scope(Upstream("", nodes.TableName(""), {"": ("column", "")}), {}, None)


def _check(select: nodes.Select, scope: _Scope) -> None:
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
    for clause, given in (("WHERE", select.where), ("PREWHERE", select.prewhere)):
        if given is not None:
            _refuse_states(given, scope, clause)
    for element in select.group_by if isinstance(select.group_by, tuple) else ():
        assert isinstance(element, nodes.Expression)
        if not (isinstance(element, nodes.Identifier) and _is_alias(element, select)):
            _refuse_states(element, scope, "GROUP BY")


def _is_alias(element: nodes.Identifier, select: nodes.Select) -> bool:
    return any(isinstance(c, nodes.Alias) and c.name == element.parts[-1] for c in select.columns)


def _partial(scope: _Scope, what: str) -> CompilationError:
    return refuse(
        f"{what} of {scope.upstream.model}",
        "would be rows of partial states, not its answers.",
        "Aggregate them (sum of a sum, min of a min, -Merge of a state), or make a view.",
    )


def _refuse_unknown(call: nodes.Function, column: str, scope: _Scope) -> None:
    """CompilationError where an argument names no column of the upstream, the only source."""
    for node in (n for a in call.arguments for n in walk(a, is_not_query)):
        if isinstance(node, nodes.Lambda):
            return
        if isinstance(node, nodes.Identifier) and not set(node.parts) & set(scope.facts):
            raise refuse(
                f"column {column}: {to_sql(node)} is no column of {scope.upstream.model},",
                f"which has {', '.join(scope.facts)}.",
                "",
            )


def _check_call(call: nodes.Function, column: str, scope: _Scope) -> None:
    """CompilationError where the call over partial states is another than over the answers."""
    arguments = call.arguments
    touched = [f for a in arguments for n in walk(a) if (f := scope.fact(n)) and f[0] != "key"]
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
    meaning, function = scope.fact(arguments[0]) or ("", "")
    others = [n for a in arguments[1:] for n in walk(a) if (scope.fact(n) or ("key",))[0] != "key"]
    plain = not others and call.filter is None and not call.distinct
    if plain and meaning in _ONE_TO_ONE.get(lowered, ()):
        return
    if plain and meaning == "state" and lowered == f"{function}merge".lower():
        return
    raise refuse(
        f"column {column}: {to_sql(call)} over {scope.upstream.model}",
        "is not what it would be over the states of that model.",
        _advice(arguments, scope),
    )


def _advice(arguments: tuple[nodes.Expression, ...], scope: _Scope) -> str:
    named = [n for a in arguments for n in walk(a) if (scope.fact(n) or ("key", ""))[0] != "key"]
    texts = []
    for node in named:
        meaning, function = scope.fact(node) or ("", "")
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
    return rewrite(column, lambda n: nodes.Literal(None) if is_call(n) else None)


def _refuse_states(expression: nodes.Expression, scope: _Scope, where: str) -> None:
    for node in walk(expression, is_not_query):
        fact = scope.fact(node)
        if fact is not None and fact[0] != "key":
            raise refuse(
                f"{where} uses {to_sql(node)} of {scope.upstream.model},",
                "which is a partial value in each of its stored rows.",
                _advice((expression,), scope),
            )
