"""SELECT, its clauses, set operations and WITH."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from olapdb.errors import InternalError
from olapdb.sql import nodes
from olapdb.sql.nodes import Alias as AliasNode
from olapdb.sql.parser.sorting import SortingParser

Mode = Literal["", "ALL", "DISTINCT"]


_AFTER_GROUP_BY = frozenset(
    {
        "",
        ")",
        ";",
        "WITH",
        "HAVING",
        "WINDOW",
        "QUALIFY",
        "ORDER",
        "LIMIT",
        "OFFSET",
        "FETCH",
        "SETTINGS",
        "FORMAT",
        "UNION",
        "EXCEPT",
        "INTERSECT",
        "INTO",
    }
)
"""What may follow `GROUP BY ()`; anything else makes the parentheses a tuple's."""


@dataclass
class _Grouping:
    keys: tuple[nodes.Expression, ...] | Literal["ALL"] | None = None
    kind: Literal["", "ROLLUP", "CUBE", "SETS"] = ""
    with_totals: bool = False


@dataclass
class _Head:
    """What stands between SELECT and FROM."""

    distinct: bool = False
    distinct_on: tuple[nodes.Expression, ...] = ()
    top: nodes.Expression | None = None
    with_ties: bool = False
    columns: tuple[nodes.Expression, ...] = field(default=())


class QueryParser(SortingParser):
    """Queries; the entry is `query`."""

    def query(self) -> nodes.Query:
        """A SELECT or set operation, with WITH before it and SETTINGS and FORMAT behind it."""
        self.enter(2)
        items: tuple[nodes.WithItem, ...] = ()
        recursive = False
        if self.take("WITH"):
            recursive = self.take("RECURSIVE")
            items = self.with_items()
        found, closed = self._unions()
        if isinstance(found, nodes.SetOperation) and not closed:
            found = _lift_output(found)
        found = self._trailing_output(found)
        if items:
            found = add_with(found, items, recursive)
        self.leave(2)
        return found

    # --- WITH

    def with_items(self) -> tuple[nodes.WithItem, ...]:
        items = [self._with_item()]
        while self.take(","):
            items.append(self._with_item())
        return tuple(items)

    def _with_item(self) -> nodes.WithItem:
        position = self.position()
        named = self._named_query()
        if named is not None:
            return named
        expression = self.expression()
        if isinstance(expression, AliasNode) and not self.sees("AS"):
            return nodes.WithItem(expression.name, None, expression.expression, position=position)
        self.expect("AS")
        return nodes.WithItem(self.identifier("an alias"), None, expression, position=position)

    def _named_query(self) -> nodes.WithItem | None:
        """`name [(columns)] AS (query)`; None (and no step) where this is an expression."""
        start = self.at
        position = self.position()
        if self.token.kind not in ("word", "name"):
            return None
        name = self.identifier()
        columns: tuple[str, ...] = ()
        if self.sees("(") and self.kind_after(1) in ("word", "name"):
            step = 1
            while self.kind_after(step) in ("word", "name") and self.key_after(step + 1) == ",":
                step += 2
            if (
                self.kind_after(step) in ("word", "name")
                and self.key_after(step + 1) == ")"
                and self.key_after(step + 2) == "AS"
            ):
                self.advance()
                columns = self.identifiers("a column")
                self.expect(")")
        if self.take("AS"):
            if self.keys[self.at] in ("MATERIALIZED", "NOT") and self.key_after(1) in (
                "(",
                "MATERIALIZED",
            ):
                raise self.refused("WITH … AS MATERIALIZED", "Leave MATERIALIZED out.")
            if self.query_follows():
                self.advance()
                query = self.query()
                self.expect(")")
                return nodes.WithItem(name, query, None, columns, position=position)
        self.at = start
        return None

    # --- set operations

    def _unions(self) -> tuple[nodes.Query, bool]:
        """The query, and whether its last branch stood in parentheses."""
        left, closed = self._intersections()
        while True:
            position = self.position()
            operator = self.take_one_of("UNION", "EXCEPT")
            if not operator:
                return left, closed
            mode = self._mode()
            right, closed = self._intersections()
            left = nodes.SetOperation(
                left, right, "UNION" if operator == "UNION" else "EXCEPT", mode, position=position
            )

    def _intersections(self) -> tuple[nodes.Query, bool]:
        left, closed = self._branch()
        while True:
            position = self.position()
            if not self.take("INTERSECT"):
                return left, closed
            mode = self._mode()
            right, closed = self._branch()
            left = nodes.SetOperation(left, right, "INTERSECT", mode, position=position)

    def _mode(self) -> Mode:
        taken = self.take_one_of("ALL", "DISTINCT")
        return "ALL" if taken == "ALL" else "DISTINCT" if taken else ""

    def _branch(self) -> tuple[nodes.Query, bool]:
        position = self.position()
        if not self.sees("("):
            if self.sees("WITH"):
                self.advance()
                recursive = self.take("RECURSIVE")
                items = self.with_items()
                return add_with(self._select(), items, recursive), False
            return self._select(), False
        self.advance()
        inner = self.query()
        self.expect(")")
        if not self._order_or_limit_follows():
            return inner, True
        # (a UNION ALL b) ORDER BY …: over the parentheses, as standard SQL has it
        order_by = self._order_by()
        limits = self._limits()
        return (
            nodes.Select(
                (nodes.Star(position=position),),
                source=nodes.SubqueryRelation(inner, position=position),
                order_by=order_by,
                limit_by=limits.limit_by,
                limit=limits.limit,
                offset=limits.offset,
                with_ties=limits.with_ties,
                position=position,
            ),
            True,
        )

    def _order_or_limit_follows(self) -> bool:
        return self.sees("ORDER", "BY") or self.keys[self.at] in ("LIMIT", "OFFSET", "FETCH")

    def _trailing_output(self, query: nodes.Query) -> nodes.Query:
        """SETTINGS and FORMAT behind a closing parenthesis belong to the whole."""
        self._refuse_outfile()
        settings = self.settings_clause()
        output = self._format()
        settings += self.settings_clause()
        if not settings and output is None:
            return query
        if not isinstance(query, nodes.Select | nodes.SetOperation):
            raise self.expected("the end of the query")
        return replace(query, settings=query.settings + settings, format=output or query.format)

    # --- SELECT

    def _select(self) -> nodes.Select:
        position = self.position()
        source: nodes.Relation | None = None
        if self.take("FROM"):
            source = self.relation()
        if not self.sees("SELECT"):
            raise self.expected("SELECT")
        self.advance()
        head = self._head()
        if source is None and self.take("FROM"):
            source = self.relation()
        prewhere = self.aliased() if self.take("PREWHERE") else None
        where = self.aliased() if self.take("WHERE") else None
        grouping = self._group_by()
        having = self.aliased() if self.take("HAVING") else None
        windows: tuple[tuple[str, nodes.WindowSpec], ...] = ()
        if self.take("WINDOW"):
            windows = self._windows()
        qualify = self.aliased() if self.take("QUALIFY") else None
        order_by = self._order_by()
        limits = self._limits(head.top, head.with_ties)
        self._refuse_outfile()
        settings = self.settings_clause()
        output = self._format()
        return nodes.Select(
            head.columns,
            distinct=head.distinct,
            distinct_on=head.distinct_on,
            source=source,
            prewhere=prewhere,
            where=where,
            group_by=grouping.keys,
            grouping=grouping.kind,
            with_totals=grouping.with_totals,
            having=having,
            qualify=qualify,
            windows=windows,
            order_by=order_by,
            limit_by=limits.limit_by,
            limit=limits.limit,
            offset=limits.offset,
            with_ties=limits.with_ties,
            settings=settings + (self.settings_clause() if output else ()),
            format=output,
            position=position,
        )

    def _head(self) -> _Head:
        head = _Head()
        if self.take("DISTINCT", "ON"):
            self.expect("(")
            head.distinct_on = self.aliased_list(")")
        elif self.keys[self.at] == "DISTINCT" and self.key_after(1) not in (",", ".", "AS"):
            head.distinct = self.take("DISTINCT")
        elif self.keys[self.at] == "ALL" and self.key_after(1) not in (",", ".", "AS", "FROM", "("):
            self.advance()
        if self.keys[self.at] == "TOP" and self.kind_after(1) in ("number", "parameter"):
            self.advance()
            head.top = self.operand()
            head.with_ties = self.take("WITH", "TIES")
        columns = [self.aliased(implicit=True)]
        while self.take(","):
            if self.keys[self.at] == "FROM" and self.kind_after(1) != "operator":
                break  # a comma may trail
            columns.append(self.aliased(implicit=True))
        head.columns = tuple(columns)
        return head

    def _windows(self) -> tuple[tuple[str, nodes.WindowSpec], ...]:
        found: list[tuple[str, nodes.WindowSpec]] = []
        while True:
            name = self.identifier("the name of a window")
            self.expect("AS")
            found.append((name, self.window_spec()))
            if not self.take(","):
                return tuple(found)

    def _group_by(self) -> _Grouping:
        grouping = _Grouping()
        if not self.take("GROUP", "BY"):
            if self.take("WITH", "TOTALS"):
                grouping.with_totals = True
            return grouping
        if (self.keys[self.at] == "ALL" and self.kind_after(1) != "operator") or (
            self.sees("ALL") and self.key_after(1) in (")", ";")
        ):
            self.advance()
            grouping.keys = "ALL"
        elif self.keys[self.at] in ("ROLLUP", "CUBE") and self.key_after(1) == "(":
            grouping.kind = "ROLLUP" if self.advance().key == "ROLLUP" else "CUBE"
            self.advance()
            grouping.keys = self.aliased_list(")")
        elif self.take("GROUPING", "SETS"):
            grouping.kind = "SETS"
            grouping.keys = self._grouping_sets()
        elif self.sees("(", ")") and self.key_after(2) in _AFTER_GROUP_BY:
            self.at += 2
            grouping.keys = ()
        else:
            grouping.keys = self.expressions()
        while self.sees("WITH"):
            if self.take("WITH", "TOTALS"):
                grouping.with_totals = True
            elif self.take("WITH", "ROLLUP"):
                grouping.kind = "ROLLUP"
            elif self.take("WITH", "CUBE"):
                grouping.kind = "CUBE"
            else:
                break
        return grouping

    def _grouping_sets(self) -> tuple[nodes.Expression, ...]:
        self.expect("(")
        sets: list[nodes.Expression] = []
        while True:
            position = self.position()
            if self.take("("):
                elements = self.aliased_list(")")
            else:
                elements = (self.aliased(),)
            sets.append(nodes.TupleLiteral(elements, position=position))
            if not self.take(","):
                break
        self.expect(")")
        return tuple(sets)

    # --- output

    def _refuse_outfile(self) -> None:
        if self.sees("INTO", "OUTFILE"):
            raise self.refused("INTO OUTFILE", "Fetch the result and write it from Python.")

    def _format(self) -> str | None:
        if self.sees("FORMAT") and self.kind_after(1) in ("word", "name"):
            self.advance()
            return self.identifier("a format")
        return None


def add_with(query: nodes.Query, items: tuple[nodes.WithItem, ...], recursive: bool) -> nodes.Query:
    """The query with these WITH items before its own (of a query in parentheses)."""
    if isinstance(query, nodes.Select | nodes.SetOperation):
        return replace(
            query, with_items=items + query.with_items, recursive=recursive or query.recursive
        )
    raise InternalError(f"A query of an unknown kind: {type(query).__name__}.")


def _lift_output(operation: nodes.SetOperation) -> nodes.SetOperation:
    """SETTINGS and FORMAT read with the last branch are of the whole."""
    bare, settings, output = _without_output(operation)
    if not isinstance(bare, nodes.SetOperation) or (not settings and output is None):
        return operation
    return replace(bare, settings=settings, format=output)


def _without_output(
    query: nodes.Query,
) -> tuple[nodes.Query, tuple[nodes.Setting, ...], str | None]:
    if isinstance(query, nodes.SetOperation):
        right, settings, output = _without_output(query.right)
        return replace(query, right=right), settings, output
    if isinstance(query, nodes.Select):
        return replace(query, settings=(), format=None), query.settings, query.format
    return query, (), None
