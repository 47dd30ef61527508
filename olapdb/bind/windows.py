"""OVER, WINDOW and QUALIFY: window functions of one SELECT.

A call is first bound to a WindowExpression.  When the SELECT is put together, calls with equal
PARTITION BY and ORDER BY become the columns of one Window node above GROUP BY and HAVING, and below
QUALIFY, DISTINCT and ORDER BY.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from olapdb import functions
from olapdb.bind.aggregates import null_for_empty_form
from olapdb.bind.collations import collated
from olapdb.bind.contracts import Binder
from olapdb.bind.names import NameAllocator, located
from olapdb.bind.variants import order_key, refuse_variant_key
from olapdb.errors import (
    BadArguments,
    IllegalAggregation,
    NotSupportedError,
    Position,
    UnknownAggregateFunction,
)
from olapdb.functions.base import Aggregate, Argument
from olapdb.functions.window_definitions import WindowFunction
from olapdb.functions.windows import (
    casts_of,
    edge_definition,
    find_window,
    may_find_no_row,
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
from olapdb.records import dataclass
from olapdb.sql import nodes as sql
from olapdb.types import (
    Date,
    Date32,
    DateTime,
    DateTime64,
    Float,
    Integer,
    make_nullable,
    plain,
    without_low_cardinality,
)

_OFFSET_MAX = 2**31 - 1

_Bounds = tuple[FrameBound, FrameBound]


def bind_window(
    binder: Binder,
    node: sql.Function,
    name: str,
    arguments: tuple[Expression, ...],
    parameters: tuple[Expression, ...],
) -> WindowExpression:
    """Bind a function over the window that its call names or spells out.

    Raises UnknownAggregateFunction for a function that is neither a window function nor an aggregate,
    BadArguments for an invalid frame, IllegalAggregation for a window function inside another one,
    and as `collated` for COLLATE."""
    _refuse_inner(arguments, f"A window function is found inside another one, {node.name}.")
    spec = _specification(binder, node.over)
    partition_by = binder.bind_all(spec.partition_by)
    order_by = tuple(collated(binder.bind(item.expression), item.collate) for item in spec.order_by)
    or_null = binder.context.flag("aggregate_functions_null_for_empty")
    if binder.context.flag("window_use_nulls") and may_find_no_row(name, len(arguments)):
        value = arguments[0]
        arguments = (binder.cast(value, make_nullable(value.type)), *arguments[1:])
    function = _function(node, name, arguments, parameters, or_null)
    if isinstance(function, WindowFunction):
        types = casts_of(function.name, [a.type for a in arguments])
        arguments = tuple(binder.cast(a, t) for a, t in zip(arguments, types, strict=True))
    frame = _frame(binder, spec, function, order_by)
    if (
        spec.frame_unit == "ROWS"
        and name.lower() in _RANKS
        and isinstance(function, WindowFunction)
    ):
        function = resolve_window("row_number", ())
    for keys, clause in ((partition_by, "GROUP BY"), (order_by, "ORDER BY")):
        for key in keys:
            refuse_variant_key(key, clause, binder.context)
    order_by = tuple(map(order_key, order_by))
    _refuse_inner(
        (*partition_by, *order_by),
        "A window function is found inside the PARTITION BY or ORDER BY of another one.",
    )
    return WindowExpression(
        function.type if isinstance(function, WindowFunction) else function.result_type,
        _display_name(name, parameters),
        arguments,
        partition_by,
        order_by,
        tuple((item.descending, bool(item.nulls_first)) for item in spec.order_by),
        frame,
        function,
    )


def _refuse_inner(expressions: Iterable[Expression], message: str) -> None:
    """Raise IllegalAggregation with the message if one of the expressions has a window function."""
    if any(window_expressions(expression) for expression in expressions):
        raise IllegalAggregation(message, hint="Compute the inner one in a subquery.")


def _display_name(name: str, parameters: tuple[Expression, ...]) -> str:
    """Return the name of a parametric function with its constants: `quantile(0.5)`."""
    values = [str(p.value.as_py()) for p in parameters if isinstance(p, Constant)]
    return f"{name}({', '.join(values)})" if values else name


def _function(
    node: sql.Function,
    name: str,
    arguments: tuple[Expression, ...],
    parameters: tuple[Expression, ...],
    or_null: bool,
) -> WindowFunction | Aggregate:
    """Resolve the function of an OVER call; an aggregate to its -OrNull if `or_null`.

    Raises UnknownAggregateFunction if the name is neither a window nor an aggregate function,
    NotSupportedError for RESPECT NULLS on an aggregate other than first and last value.
    Also raises BadArguments."""
    typed = [
        Argument(without_low_cardinality(a.type), a.value if isinstance(a, Constant) else None)
        for a in arguments
    ]
    edge = edge_definition(name, node.nulls == "RESPECT")
    if edge is not None:
        if len(typed) != 1:
            raise BadArguments(f"{name} takes one argument, {len(typed)} given.")
        return edge.resolve(name, typed)
    if find_window(name) is not None:
        constants = [
            Argument(p.type, p.value if isinstance(p, Constant) else None) for p in parameters
        ]
        return resolve_window(name, typed, constants)
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
    aggregate = functions.resolve_aggregate(name, values, [a.type for a in arguments])
    return null_for_empty_form(name, aggregate, values, arguments)[1] if or_null else aggregate


def _specification(binder: Binder, over: sql.WindowSpec | str | None) -> sql.WindowSpec:
    """Return a call's window, completed by the named window that it is or extends.

    Raises BadArguments if it extends a window that has a frame, or repeats a clause of it."""
    if isinstance(over, str):
        return _named_window(binder, over)
    assert over is not None
    if over.base is None:
        return over
    base = _named_window(binder, over.base)
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


def _named_window(binder: Binder, name: str) -> sql.WindowSpec:
    """Return the specification of a WINDOW name, merged with the window it extends.

    Raises BadArguments if the name does not exist or a window extends itself."""
    window = binder.windows.get(name)
    if window is None:
        names = ", ".join(binder.windows)
        raise BadArguments(
            f"Window {name!r} does not exist.",
            hint=f"There are: {names}." if names else "Define it: WINDOW … AS (…).",
        )
    if window.base is None:
        return window
    # A window extends one that is defined before it, and so never itself.
    all_windows = binder.windows
    before = list(all_windows)[: list(all_windows).index(name)]
    binder.windows = {n: all_windows[n] for n in before}
    try:
        return _specification(binder, window)
    finally:
        binder.windows = all_windows


# --- frames


_UNBOUNDED_BEFORE = FrameBound("PRECEDING")
_UNBOUNDED_AFTER = FrameBound("FOLLOWING")
_CURRENT = FrameBound("CURRENT")
WHOLE_PARTITION = WindowFrame("ROWS", _UNBOUNDED_BEFORE, _UNBOUNDED_AFTER)


def _frame(
    binder: Binder,
    spec: sql.WindowSpec,
    function: WindowFunction | Aggregate,
    order_by: tuple[Expression, ...],
) -> WindowFrame:
    """Return the frame of a window; the whole partition for functions that ignore frames.

    Without a frame it is RANGE from the partition's start to the current row. A frame that is
    written is checked, even where it is ignored."""
    if isinstance(function, WindowFunction) and function.name == "ntile" and not order_by:
        raise BadArguments("ntile needs the rows in an order.", hint="Add ORDER BY to its window.")
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
        _refuse_frame(function.name, frame)
        return WHOLE_PARTITION
    return frame


_FRAMELESS = frozenset({"lag", "lead"})
_WHOLE = frozenset({"ntile", "percent_rank", "cume_dist"})
_RANKS = frozenset({"rank", "dense_rank", "denserank"})
"""Ranks of peers: in a ROWS frame each row is its only peer, so that they number the rows."""


def _refuse_frame(name: str, frame: WindowFrame) -> None:
    """Raise BadArguments for a frame that a function does not have; ranks ignore any frame."""
    whole = (frame.start, frame.end) == (_UNBOUNDED_BEFORE, _UNBOUNDED_AFTER)
    whole = whole and (name == "ntile" or frame.unit == "RANGE")
    if name in _FRAMELESS or (name in _WHOLE and not whole):
        raise BadArguments(
            f"Window function {name} looks at the whole partition, not at a frame.",
            hint=f"Leave the frame out, or use {name}InFrame." if name in _FRAMELESS else "",
        )


def _bound(binder: Binder, unit: str, node: sql.FrameBound, end: str) -> FrameBound:
    """Bind one end of a frame; `end` is "start" or "end", for the message.

    Raises BadArguments if the distance is not a constant number of at least 0."""
    if node.direction == "CURRENT":
        return _CURRENT
    kind = node.direction
    if node.offset is None:
        return FrameBound(kind)
    with located(node.position):
        offset = binder.bind(node.offset)
        if not isinstance(offset, Constant) or not isinstance(plain(offset.type), Integer):
            raise BadArguments(f"The frame's {end} of {unit} must be a constant integer.")
        value = offset.value.as_py()
        if value is None or value < 0 or (unit != "RANGE" and value > _OFFSET_MAX):
            raise BadArguments(
                f"The frame's {end} of {unit} must be a non-negative number, not {value}.",
                hint="PRECEDING and FOLLOWING say the direction.",
            )
    return FrameBound(kind, offset)


def _check_order(frame: WindowFrame) -> None:
    """Raise BadArguments if the frame's start lies after its end."""
    start, end = _signed(frame.start), _signed(frame.end)
    if frame.start == _UNBOUNDED_AFTER:
        raise BadArguments("A frame cannot start at UNBOUNDED FOLLOWING.")
    if frame.end == _UNBOUNDED_BEFORE:
        raise BadArguments("A frame cannot end at UNBOUNDED PRECEDING.")
    if start > end:
        raise BadArguments("The frame's start lies behind its end.")


def _signed(bound: FrameBound) -> float:
    """Return the signed distance of a frame's bound from the current row: 0.0 for CURRENT ROW, negative for PRECEDING,
    infinite where unbounded."""
    if bound.kind == "CURRENT":
        return 0.0
    distance = float("inf") if bound.offset is None else float(bound.offset.value.as_py())
    return distance if bound.kind == "FOLLOWING" else -distance


def _check_distance(frame: WindowFrame, order_by: tuple[Expression, ...]) -> None:
    """Raise an error if a RANGE frame has a distance but ORDER BY is not one number or time.

    BadArguments for another count of ORDER BY columns, NotSupportedError for their type."""
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
    """Return the window functions in an expression, outermost first."""
    return [e for e in walk(expression) if isinstance(e, WindowExpression)]


def refuse_windows(expression: Expression, clause: str, position: Position | None) -> Expression:
    """Return the expression; raise IllegalAggregation if it contains a window function."""
    for window in window_expressions(expression):
        hint = "Use QUALIFY." if clause in ("WHERE", "HAVING", "PREWHERE") else ""
        raise IllegalAggregation(
            f"The window function {window.name} is not allowed in {clause}.",
            hint=hint,
            position=position,
        )
    return expression


@dataclass
class Windowing:
    """The window functions of one SELECT as columns of Window nodes."""

    names: NameAllocator

    def __post_init__(self) -> None:
        self._columns: dict[WindowExpression, ColumnRef] = {}

    def add_windows(self, node: plan.Node, expressions: Iterable[Expression]) -> plan.Node:
        """Return the node with a Window on top for each partition and order of the expressions."""
        windows: dict[object, list[WindowExpression]] = {}
        for expression in expressions:
            for window in window_expressions(expression):
                if window not in self._columns:
                    unique = self.names.unique(window.name)
                    self._columns[window] = ColumnRef(window.type, unique)
                    key = window.partition_by, window.order_by, window.directions
                    windows.setdefault(key, []).append(window)
        for group in windows.values():
            first = group[0]
            keys = tuple(
                plan.SortKey(expression, descending, nulls_first)
                for expression, (descending, nulls_first) in zip(
                    first.order_by, first.directions, strict=True
                )
            )
            calls = tuple(
                (self._columns[w].name, WindowCall(w.name, w.arguments, w.frame, w.function))
                for w in group
            )
            node = plan.Window(node, first.partition_by, keys, calls)
        return node

    def rewrite(self, expression: Expression) -> Expression:
        """Return the expression with window functions replaced by the columns of their nodes."""
        if not self._columns:
            return expression
        columns = self._columns
        return transform(
            expression, lambda e: columns.get(e) if isinstance(e, WindowExpression) else None
        )
