"""OVER and WINDOW: what an aggregate is computed over."""

from __future__ import annotations

from olapdb.sql.nodes import Expression, FrameBound, OrderItem, WindowSpec
from olapdb.sql.parser.precedence import COMPARE
from olapdb.sql.parser.stars import StarParser

_FRAME_UNITS = ("ROWS", "RANGE", "GROUPS")


class WindowParser(StarParser):
    """Windows and their frames."""

    def _over(self) -> WindowSpec | str:
        self.expect("OVER")
        if self.sees("("):
            return self.window_spec()
        return self.identifier("a window")

    def window_spec(self) -> WindowSpec:
        """`([base] [PARTITION BY …] [ORDER BY …] [frame])`."""
        position = self.position()
        self.expect("(")
        base = None
        partition_by: tuple[Expression, ...] = ()
        order_by: tuple[OrderItem, ...] = ()
        if self.token.kind == "name" or (
            self.token.kind == "word"
            and self.token.key not in (*_FRAME_UNITS, "PARTITION", "ORDER")
        ):
            base = self.identifier()
        if self.take("PARTITION", "BY"):
            partition_by = self.expressions()
        if self.take("ORDER", "BY"):
            order_by = self.order_items()
        unit = self.take_one_of(*_FRAME_UNITS)
        start = end = None
        if unit:
            start, end = self._frame()
        self.expect(")")
        return WindowSpec(
            partition_by,
            order_by,
            "ROWS"
            if unit == "ROWS"
            else "RANGE"
            if unit == "RANGE"
            else "GROUPS"
            if unit
            else None,
            start,
            end,
            base,
            position=position,
        )

    def order_items(self) -> tuple[OrderItem, ...]:
        raise NotImplementedError

    def _frame(self) -> tuple[FrameBound, FrameBound | None]:
        if not self.take("BETWEEN"):
            return self._frame_bound(), None
        start = self._frame_bound()
        self.expect("AND")
        return start, self._frame_bound()

    def _frame_bound(self) -> FrameBound:
        position = self.position()
        if self.take("CURRENT", "ROW"):
            return FrameBound("CURRENT", position=position)
        offset = None if self.take("UNBOUNDED") else self.expression(COMPARE)
        direction = self.take_one_of("PRECEDING", "FOLLOWING")
        if not direction:
            raise self.expected("PRECEDING or FOLLOWING")
        return FrameBound(
            "PRECEDING" if direction == "PRECEDING" else "FOLLOWING", offset, position=position
        )
