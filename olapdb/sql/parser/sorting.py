"""ORDER BY, LIMIT, OFFSET and FETCH."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from olapdb.errors import SyntaxError
from olapdb.sql.nodes import Expression, LimitBy, OrderItem
from olapdb.sql.parser.relations import RelationParser


@dataclass
class LimitClauses:
    """What LIMIT, OFFSET and FETCH of one SELECT said."""

    limit_by: LimitBy | None = None
    limit: Expression | None = None
    offset: Expression | None = None
    with_ties: bool = False


class SortingParser(RelationParser):
    """The clauses at the end of a SELECT."""

    def _order_by(self) -> tuple[OrderItem, ...] | Literal["ALL"]:
        if not self.take("ORDER", "BY"):
            return ()
        if self.sees("ALL") and self.key_after(1) not in (".", "(", ",", "+", "-", "*", "/"):
            self.advance()
            if self.take_one_of("DESC", "DESCENDING") or self.sees("NULLS"):
                raise self.refused("A direction of ORDER BY ALL", "Name the columns to sort by.")
            self.take_one_of("ASC", "ASCENDING")
            return "ALL"
        return self.order_items()

    def order_items(self) -> tuple[OrderItem, ...]:
        items = [self.order_item()]
        while self.take(","):
            items.append(self.order_item())
        if self.sees("INTERPOLATE"):
            raise self.refused("INTERPOLATE", "Fill the gaps with a join on numbers().")
        return tuple(items)

    def order_item(self) -> OrderItem:
        position = self.position()
        expression = self.aliased()
        descending = self._direction()
        nulls_first: bool | None = None
        if self.take("NULLS"):
            nulls_first = self.take("FIRST")
            if not nulls_first:
                self.expect("LAST")
        collate = self.string("the name of a collation") if self.take("COLLATE") else None
        if self.sees("WITH", "FILL"):
            raise self.refused("ORDER BY … WITH FILL", "Fill the gaps with a join on numbers().")
        return OrderItem(expression, descending, nulls_first, collate, position=position)

    def _direction(self) -> bool:
        return self.take_one_of("ASC", "ASCENDING", "DESC", "DESCENDING") in ("DESC", "DESCENDING")

    def _limits(self, top: Expression | None = None, with_ties: bool = False) -> LimitClauses:
        """`LIMIT n [OFFSET m] BY …`, then one LIMIT, then OFFSET and FETCH."""
        limits = LimitClauses(limit=top, with_ties=with_ties)
        while self.sees("LIMIT"):
            start = self.token
            self.advance()
            count = self.expression()
            offset = None
            if self.take(","):
                offset, count = count, self.expression()
            elif self.take("OFFSET"):
                offset = self.expression()
                self.take_one_of("ROW", "ROWS")
            if self.take("BY"):
                if limits.limit_by is not None or limits.limit is not None:
                    raise SyntaxError(
                        "LIMIT … BY stands once, before LIMIT.", position=self.position(start)
                    )
                if self.sees("ALL"):
                    raise self.refused("LIMIT BY ALL", "Name the columns.")
                limits.limit_by = LimitBy(
                    count, self.expressions(), offset, position=self.position(start)
                )
                continue
            if limits.limit is not None:
                raise SyntaxError(
                    "A SELECT has one LIMIT.",
                    hint="LIMIT n BY columns may stand before it; TOP is a LIMIT too.",
                    position=self.position(start),
                )
            limits.limit, limits.offset = count, offset
            limits.with_ties = self.take("WITH", "TIES")
        self._offset_and_fetch(limits)
        return limits

    def _offset_and_fetch(self, limits: LimitClauses) -> None:
        if self.sees("OFFSET"):
            start = self.advance()
            if limits.offset is not None:
                raise SyntaxError("A SELECT has one OFFSET.", position=self.position(start))
            limits.offset = self.expression()
            self.take_one_of("ROW", "ROWS")
        if self.sees("FETCH"):
            start = self.advance()
            if not self.take_one_of("FIRST", "NEXT"):
                raise self.expected("FIRST or NEXT")
            if limits.limit is not None:
                raise SyntaxError("A SELECT has one LIMIT or FETCH.", position=self.position(start))
            limits.limit = self.expression()
            if not self.take_one_of("ROW", "ROWS"):
                raise self.expected("ROWS")
            if self.take("WITH", "TIES"):
                limits.with_ties = True
            else:
                self.expect("ONLY")
