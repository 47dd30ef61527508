"""OVER, WINDOW and QUALIFY: window functions of one SELECT.

An expression is bound to a WindowExpression first.  When the clauses are put together, those of equal
PARTITION BY and ORDER BY become the columns of one Window node above GROUP BY and HAVING, and below
QUALIFY, DISTINCT and ORDER BY.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from olapdb import functions
from olapdb.bind.names import NameAllocator, located
from olapdb.errors import (
    BadArguments,
    IllegalAggregation,
    NotSupportedError,
    Position,
    UnknownAggregateFunction,
)
from olapdb.functions.base import Aggregate, Argument
from olapdb.functions.windows import (
    WindowFunction,
    casts_of,
    edge_definition,
    find_window,
    resolve_window,
)
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import (
    ColumnRef,
    Constant,
    Expression,
    FrameBound,
    WindowCall,
    WindowExpression,
    WindowFrame,
    transform,
    walk,
)
from olapdb.sql import nodes as sql
from olapdb.types import Date, Date32, DateTime, DateTime64, Decimal, Float, Integer, plain

if TYPE_CHECKING:
    from olapdb.bind.expressions import ExpressionBinder

_OFFSET_MAX = 2**31 - 1

_Bounds = tuple[FrameBound, FrameBound]


def bind_window(
    binder: ExpressionBinder,
    node: sql.Function,
    name: str,
    arguments: tuple[Expression, ...],
    parameters: tuple[Expression, ...],
) -> WindowExpression:
    """The function over the window that the call names or spells out.

    Raises UnknownAggregateFunction for a function that is neither, BadArguments for a frame that
    cannot be, IllegalAggregation for a window function inside another one."""
    for one in arguments:
        if window_expressions(one):
            raise IllegalAggregation(
                f"A window function is found inside another one, {node.name}.",
                hint="Compute the inner one in a subquery.",
            )
    spec = _specification(binder, node.over)
    order = [(binder.bind(item.expression), item) for item in spec.order_by]
    for item in spec.order_by:
        if item.collate is not None:
            raise NotSupportedError("COLLATE is not supported; strings are compared bytewise.")
    order_by = tuple(expression for expression, _ in order)
    partition_by = binder.bind_all(spec.partition_by)
    function = _function(node, name, arguments, parameters)
    if isinstance(function, WindowFunction):
        types = casts_of(function.name, [a.type for a in arguments])
        arguments = tuple(binder.cast(a, t) for a, t in zip(arguments, types, strict=True))
    frame = _frame(binder, spec, function, order_by)
    for one in (*partition_by, *order_by):
        if window_expressions(one):
            raise IllegalAggregation(
                "A window function is found inside the PARTITION BY or ORDER BY of another one.",
                hint="Compute the inner one in a subquery.",
            )
    return WindowExpression(
        function.type if isinstance(function, WindowFunction) else function.result_type,
        _shown(name, parameters),
        arguments,
        partition_by,
        order_by,
        tuple((item.descending, bool(item.nulls_first)) for _, item in order),
        frame,
        function,
    )


def _shown(name: str, parameters: tuple[Expression, ...]) -> str:
    values = [str(p.value.as_py()) for p in parameters if isinstance(p, Constant)]
    return f"{name}({', '.join(values)})" if values else name


def _function(
    node: sql.Function,
    name: str,
    arguments: tuple[Expression, ...],
    parameters: tuple[Expression, ...],
) -> WindowFunction | Aggregate:
    given = [Argument(a.type, a.value if isinstance(a, Constant) else None) for a in arguments]
    edge = edge_definition(name, node.nulls == "RESPECT")
    if edge is not None:
        if len(given) != 1:
            raise BadArguments(f"{name} takes one argument, {len(given)} given.")
        return edge.resolve(name, given)
    if find_window(name) is not None:
        return resolve_window(name, given)
    if node.nulls == "RESPECT":
        raise NotSupportedError(f"{name} with RESPECT NULLS is not supported yet.")
    if not functions.is_aggregate(name):
        raise UnknownAggregateFunction(
            f"{name} is neither an aggregate function nor a window function."
        )
    values: list[object] = []
    for parameter in parameters:
        if not isinstance(parameter, Constant):
            raise BadArguments(f"The parameters of {name} must be constants.")
        values.append(parameter.value.as_py())
    return functions.resolve_aggregate(name, values, [a.type for a in arguments])


def _specification(binder: ExpressionBinder, over: sql.WindowSpec | str | None) -> sql.WindowSpec:
    """The window with what it takes from the windows that it names."""
    if isinstance(over, str):
        return _named(binder, over)
    assert over is not None
    if over.base is None:
        return over
    base = _named(binder, over.base)
    for clause, own, inherited in (
        ("PARTITION BY", over.partition_by, base.partition_by),
        ("ORDER BY", over.order_by, base.order_by),
    ):
        if own and (clause == "PARTITION BY" or inherited):
            raise BadArguments(
                f"A window that extends {over.base} cannot have a {clause} of its own.",
                hint="Write the whole window out.",
            )
    if base.frame_unit is not None:
        raise BadArguments(
            f"The window {over.base} has a frame, so it cannot be extended.",
            hint="Write the whole window out.",
        )
    return replace(
        over, base=None, partition_by=base.partition_by, order_by=over.order_by or base.order_by
    )


def _named(binder: ExpressionBinder, name: str) -> sql.WindowSpec:
    found = binder.windows.get(name)
    if found is None:
        known = ", ".join(binder.windows)
        raise BadArguments(
            f"Window {name!r} does not exist.",
            hint=f"There are: {known}." if known else "Define it: WINDOW … AS (…).",
        )
    others = {n: w for n, w in binder.windows.items() if n != name}
    if found.base is None:
        return found
    kept, binder.windows = binder.windows, others
    try:
        return _specification(binder, found)
    finally:
        binder.windows = kept


# --- frames


_UNBOUNDED_BEFORE = FrameBound("PRECEDING")
_UNBOUNDED_AFTER = FrameBound("FOLLOWING")
_CURRENT = FrameBound("CURRENT")
WHOLE_PARTITION = WindowFrame("ROWS", _UNBOUNDED_BEFORE, _UNBOUNDED_AFTER)


def _frame(
    binder: ExpressionBinder,
    spec: sql.WindowSpec,
    function: WindowFunction | Aggregate,
    order_by: tuple[Expression, ...],
) -> WindowFrame:
    if spec.frame_unit is None:
        if isinstance(function, WindowFunction) and function.whole_partition:
            return WHOLE_PARTITION
        return WindowFrame("RANGE", _UNBOUNDED_BEFORE, _CURRENT)
    assert spec.frame_start is not None
    start = _bound(binder, spec.frame_unit, spec.frame_start, "start")
    end = _CURRENT
    if spec.frame_end is not None:
        end = _bound(binder, spec.frame_unit, spec.frame_end, "end")
    frame = WindowFrame(spec.frame_unit, start, end)
    _check_order(frame)
    _check_distance(frame, order_by)
    if isinstance(function, WindowFunction) and function.whole_partition:
        return WHOLE_PARTITION  # ranks, lag and lead have no frame: any that may be is accepted
    return frame


def _bound(binder: ExpressionBinder, unit: str, node: sql.FrameBound, end: str) -> FrameBound:
    if node.direction == "CURRENT":
        return _CURRENT
    kind = node.direction
    if node.offset is None:
        return FrameBound(kind)
    with located(node.position):
        offset = binder.bind(node.offset)
        wanted = Integer | Float | Decimal if unit == "RANGE" else Integer
        if not isinstance(offset, Constant) or not isinstance(plain(offset.type), wanted):
            raise BadArguments(f"The frame's {end} must be a constant number of a window's {unit}.")
        value = offset.value.as_py()
        if value is None or value < 0 or (unit != "RANGE" and value > _OFFSET_MAX):
            raise BadArguments(
                f"The frame's {end} of {unit} must be a non-negative number, not {value}.",
                hint="PRECEDING and FOLLOWING say the direction.",
            )
    return FrameBound(kind, offset)


def _check_order(frame: WindowFrame) -> None:
    start, end = _signed(frame.start), _signed(frame.end)
    if frame.start == _UNBOUNDED_AFTER:
        raise BadArguments("A frame cannot start at UNBOUNDED FOLLOWING.")
    if frame.end == _UNBOUNDED_BEFORE:
        raise BadArguments("A frame cannot end at UNBOUNDED PRECEDING.")
    if start > end:
        raise BadArguments("The frame's start lies behind its end.")


def _signed(bound: FrameBound) -> float:
    """Return the signed distance of the bound from the current row, infinite where unbounded."""
    if bound.kind == "CURRENT":
        return 0.0
    distance = float("inf") if bound.offset is None else float(bound.offset.value.as_py())
    return distance if bound.kind == "FOLLOWING" else -distance


def _check_distance(frame: WindowFrame, order_by: tuple[Expression, ...]) -> None:
    """A RANGE of a distance needs one order that has distances."""
    offsets = [b for b in (frame.start, frame.end) if b.offset is not None]
    if frame.unit != "RANGE" or not offsets:
        return
    if len(order_by) != 1:
        raise BadArguments(
            f"A RANGE frame of a distance needs one ORDER BY column, {len(order_by)} given."
        )
    kind = plain(order_by[0].type)
    if not isinstance(kind, Integer | Float | Date | Date32 | DateTime | DateTime64):
        raise NotSupportedError(
            f"A RANGE frame of a distance over {order_by[0].type} is not supported.",
            hint="Order by a number, a date or a time.",
        )


# --- putting them together


def window_expressions(expression: Expression) -> list[WindowExpression]:
    return [e for e in walk(expression) if isinstance(e, WindowExpression)]


def refuse_windows(expression: Expression, clause: str, position: Position | None) -> Expression:
    """The expression, if it has no window function; IllegalAggregation otherwise."""
    for found in window_expressions(expression):
        hint = "Use QUALIFY." if clause in ("WHERE", "HAVING", "PREWHERE") else ""
        raise IllegalAggregation(
            f"The window function {found.name} is not allowed in {clause}.",
            hint=hint,
            position=position,
        )
    return expression


@dataclass
class Windowing:
    """The window functions of one SELECT as columns of Window nodes."""

    names: NameAllocator

    def __post_init__(self) -> None:
        self._known: dict[WindowExpression, ColumnRef] = {}

    def below(self, node: plan.Node, expressions: Iterable[Expression]) -> plan.Node:
        """The node with a Window for each partition and order that the expressions have."""
        windows: dict[object, list[WindowExpression]] = {}
        for expression in expressions:
            for one in window_expressions(expression):
                if one not in self._known:
                    unique = self.names.unique(one.name)
                    self._known[one] = ColumnRef(one.type, unique)
                    key = one.partition_by, one.order_by, one.directions
                    windows.setdefault(key, []).append(one)
        for group in windows.values():
            first = group[0]
            keys = tuple(
                plan.SortKey(expression, descending, nulls_first)
                for expression, (descending, nulls_first) in zip(
                    first.order_by, first.directions, strict=True
                )
            )
            calls = tuple(
                (
                    self._known[one].name,
                    WindowCall(one.name, one.arguments, one.frame, one.function),
                )
                for one in group
            )
            node = plan.Window(node, first.partition_by, keys, calls)
        return node

    def over(self, expression: Expression) -> Expression:
        """The expression over such nodes."""
        if not self._known:
            return expression
        known: Mapping[WindowExpression, ColumnRef] = self._known
        return transform(
            expression, lambda e: known.get(e) if isinstance(e, WindowExpression) else None
        )
