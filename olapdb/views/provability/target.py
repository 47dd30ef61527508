"""Merges of the target: how they treat what the view gives, by groups or row by row.

GROUP BY     a merging target joins the groups of blocks: its ORDER BY must be the GROUP BY, and
             each other column must merge as its aggregate does
row by row   a plain target holds each row as it came; a merging one must merge each column
"""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.engine.combine import summed_columns
from olapdb.engine.summing_maps import nested_maps
from olapdb.functions.aggregates.array_combinators import ArrayElements
from olapdb.functions.aggregates.combinators import Combinator, If, Merge
from olapdb.functions.base import Aggregate
from olapdb.model.schema import Column
from olapdb.plan import nodes
from olapdb.plan.expressions import AggregateCall
from olapdb.types import (
    UUID,
    AggregateFunction,
    Boolean,
    DataType,
    Date,
    DateTime,
    FixedString,
    Integer,
    SimpleAggregateFunction,
    String,
    WideNumber,
    is_nullable,
    is_number,
    plain,
)
from olapdb.views.definition.column_conversion import conversion
from olapdb.views.definition.query_shape import QueryShape, TargetColumn, constants_of
from olapdb.views.provability.judgement import (
    JudgedItem,
    allowed,
    provable_item,
    refused,
    unproven_item,
)
from olapdb.views.provability.merging import is_ordered
from olapdb.views.provability.own_columns import decided_added_keys, undecided_added_key
from olapdb.views.provability.parts import BoundDefinition

_ENGINES = (
    "MergeTree",
    "Memory",
    "Log",
    "TinyLog",
    "StripeLog",
    "Set",
    "Null",
    "SummingMergeTree",
    "AggregatingMergeTree",
    "ReplacingMergeTree",
    "CoalescingMergeTree",
    "CollapsingMergeTree",
    "VersionedCollapsingMergeTree",
)
_NEUTRAL_ON_EMPTY = ("sum", "sumMap", "minMap", "maxMap", "groupUniqArrayArray")
"""Merging functions to which an aggregate of no rows (0, {}, []) adds nothing."""
_NEUTRAL_BY_VALUE = ("sumWithOverflow", "groupBitAnd", "groupBitOr", "groupBitXor")
"""More such functions, of which an aggregate of no rows is 0 or, of groupBitAnd, all bits."""
_MAY_SEE_NO_ROW = (If, ArrayElements, Merge)
"""Combinators whose group may have rows and yet nothing to aggregate: none fulfils the condition, all arrays
are empty, or each state is that of no rows."""


def target_items(
    parts: BoundDefinition, branch: nodes.Plan, shape: QueryShape
) -> Iterator[JudgedItem]:
    """Yield items about the target and the columns that one branch of the query gives it."""
    engine = parts.target.engine
    if engine.name not in _ENGINES:
        yield unproven_item(
            f"target {parts.target_name}", f"{engine.name} is not known to merge rows."
        )
    elif shape.aggregate is None:
        items = _row_items(parts, shape)
        yield from map(allowed, items) if engine.keeps_last_values else items
    elif not parts.merges:
        yield unproven_item(
            f"target {parts.target_name}",
            f"{parts.target_name} is a {engine.name}: each block adds its own groups, which nothing"
            " joins.",
            "Use a SummingMergeTree or an AggregatingMergeTree ordered by the GROUP BY.",
        )
    elif engine.keeps_last_values:
        # That the last block's value is kept is what this engine is for, so it is not refused.
        yield from map(allowed, _grouped_items(parts, branch, shape))
    else:
        yield from _grouped_items(parts, branch, shape)


def merge_function(parts: BoundDefinition, column: Column) -> str:
    """Return the function by which the target merges the column; "" if merges keep one value."""
    if not parts.target.engine.merges_states:
        return ""
    if isinstance(column.type, SimpleAggregateFunction):
        return column.type.function
    summed = parts.target.engine.arguments
    if parts.target.engine.name == "SummingMergeTree":
        numeric = is_number(column.type) and not isinstance(plain(column.type), Boolean)
        if column.name in summed or (not summed and numeric):
            return "sum"
    return ""


def _merges_column(parts: BoundDefinition, column: Column) -> bool:
    """Return whether merges of the target join values of the column: not where they keep the value, or all of the row,
    of one of several rows."""
    is_merged_type = isinstance(column.type, AggregateFunction | SimpleAggregateFunction)
    engine = parts.target.engine
    return engine.merges_values or (engine.merges_states and is_merged_type)


# --- row by row -----------------------------------------------------------------------------------


def _row_items(parts: BoundDefinition, shape: QueryShape) -> Iterator[JudgedItem]:
    """Yield items about the columns of a query without GROUP BY."""
    name = f"target {parts.target_name}"
    if not parts.merges:
        yield provable_item(name, "It holds each row that the view makes, as it was made.")
        return
    order = set(parts.order)
    for output in shape.outputs:
        column = parts.target.column(output.name)
        if column is None or not column.stored or column.name in order:
            continue
        if not _merges_column(parts, column):
            kept = "value" if parts.target.engine.keeps_last_values else "row"
            yield unproven_item(
                name,
                f"{parts.target.engine.name} keeps one {kept} of several by the order of rows.",
                "Use a MergeTree target and read the newest row in the query that reads.",
            )
            return
        label = f"column {column.name}"
        if is_ordered(column):
            yield _order_refusal(label, column.type.name, column)
        elif isinstance(column.type, AggregateFunction):
            yield provable_item(label, "States of equal ORDER BY are merged.")
        elif (
            refusal := _conversion_refusal(parts, column, merge_function(parts, column))
        ) is not None:
            yield refusal
        elif merge_function(parts, column):
            yield provable_item(
                label,
                f"Values of equal ORDER BY are joined by its own function, {merge_function(parts, column)}.",
            )
        else:
            yield refused(
                label,
                f"of rows with equal ORDER BY {parts.target_name} keeps an arbitrary {column.name}.",
                f"Add {column.name} to ORDER BY, make it SimpleAggregateFunction(max, …), or use a"
                " MergeTree target.",
            )
    yield from _dropped_columns(parts, {output.name for output in shape.outputs})


# --- groups ---------------------------------------------------------------------------------------


def _grouped_items(
    parts: BoundDefinition, branch: nodes.Plan, shape: QueryShape
) -> Iterator[JudgedItem]:
    """Yield items about the columns of a query with GROUP BY, whose target merges rows."""
    # What is the same in every row is one more column of each group, grouped by or not.
    constants = {name for name, _ in constants_of(branch) if name in parts.order}
    constants |= decided_added_keys(parts)
    yield _keys(parts, shape, constants)
    for output in shape.outputs:
        column = parts.target.column(output.name)
        if column is None or not column.stored:
            continue
        if output.key is not None:
            if (refusal := _conversion_refusal(parts, column, "group")) is not None:
                yield refusal
        elif output.name not in constants:  # one value cannot join two groups
            yield _aggregate_item(parts, column, output, shape)
    yield from _dropped_columns(parts, {output.name for output in shape.outputs})


def _keys(parts: BoundDefinition, shape: QueryShape, constants: set[str]) -> JudgedItem:
    """Return the item of the GROUP BY, whose keys must be exactly the target's ORDER BY. The columns `constants` of
    ORDER BY are the same in every row of the view."""
    assert shape.aggregate is not None
    order = parts.order
    keys = {output.name for output in shape.outputs if output.key is not None} | constants
    output_keys = {output.key for output in shape.outputs if output.key is not None}
    missing_keys = [name for name, _ in shape.aggregate.keys if name not in output_keys]
    by_order = ", ".join(order) or "tuple()"
    if not missing_keys and keys == set(order):
        return provable_item(
            "GROUP BY", f"Merges join the groups of blocks by ORDER BY ({by_order})."
        )
    added = undecided_added_key(parts)
    if added is not None:
        given = ", ".join(name for name in parts.order if name in keys) or "tuple()"
        return refused(
            "GROUP BY",
            f"{added.name} is a key of {parts.target_name} that it does not give, and rows of one group may"
            f" get several values by its {added.default_kind}, {added.default}.",
            f"Give it a constant DEFAULT, or one that is computed from ({given}).",
        )
    by_group = ", ".join(sorted(keys)) + (" and more" if missing_keys else "")
    return refused(
        "GROUP BY",
        f"it groups by ({by_group}), but {parts.target_name} joins rows by its ORDER BY"
        f" ({by_order}); rows of different groups would merge, or those of one would not.",
        f"Group by just the columns of ORDER BY ({by_order}), under their names, or create"
        f" a target with ORDER BY ({', '.join(sorted(keys))}).",
    )


def _aggregate_item(
    parts: BoundDefinition, column: Column, output: TargetColumn, shape: QueryShape
) -> JudgedItem:
    """Return the item of a column that is no key: merges must join it as its aggregate does."""
    call, name = output.aggregate, f"column {column.name}"
    if call is None:
        return refused(
            name,
            f"column {column.name} is computed from aggregates, and such values do not merge.",
            "Store the aggregates themselves and compute when reading.",
        )
    ordered = call.aggregate.merge_class == "ordered"
    if isinstance(column.type, AggregateFunction) and parts.target.engine.merges_states:
        if ordered:
            return _order_refusal(name, call.name, column)
        return provable_item(name, f"States of {call.name} merge to the state of all rows.")
    merged_by = merge_function(parts, column)
    function = call.aggregate
    finished = f"{call.name}(…)"
    if not function.additive or function.merge_function != merged_by:
        kept = "the last block's" if parts.target.engine.keeps_last_values else "an arbitrary row's"
        treatment = f"merges it by {merged_by}" if merged_by else f"keeps {kept} value"
        return refused(
            name,
            f"column {column.name} is a finished {finished}, but {parts.target_name} {treatment}.",
            _column_advice(call),
        )
    if ordered:
        return _order_refusal(name, call.name, column)
    refusal = _conversion_refusal(parts, column, merged_by, summed=not _counts(call))
    if refusal is not None:
        return refusal
    assert shape.aggregate is not None
    if not shape.aggregate.keys and merged_by not in _NEUTRAL_ON_EMPTY and shape.selective:
        return refused(
            name,
            f"without GROUP BY a block of which no row qualifies writes {finished} of nothing,"
            f" which {merged_by} would take for a value.",
            f"Store {call.name.partition('(')[0]}State in an AggregateFunction column, or group by"
            " a key.",
        )
    if _may_see_no_row(function) and not _is_neutral(merged_by, function.result_type):
        return refused(
            name,
            f"a block that has rows of a group, but nothing for {finished} to aggregate, writes its"
            f" default, which {merged_by} would take for a value.",
            f"{_state_advice(call)} Or aggregate Nullable values into a Nullable column: NULL is no"
            " value.",
        )
    return provable_item(name, f"{finished} of blocks are joined by {merged_by}.")


def _may_see_no_row(function: Aggregate) -> bool:
    """Return whether the aggregate may have nothing to aggregate in a group that has rows."""
    while isinstance(function, Combinator):
        if isinstance(function, _MAY_SEE_NO_ROW):
            return True
        function = function.inner
    return False


def _is_neutral(merged_by: str, result: DataType) -> bool:
    """Return whether the result of no rows changes no value with which `merged_by` merges it."""
    if isinstance(result, SimpleAggregateFunction):
        result = result.inner
    if is_nullable(result) or merged_by in (*_NEUTRAL_ON_EMPTY, *_NEUTRAL_BY_VALUE):
        return True
    return merged_by == "max" and _begins_with_default(plain(result))


def _begins_with_default(data_type: DataType) -> bool:
    """Return whether no value of the type is less than its default."""
    match data_type:
        case Integer(signed=signed):
            return not signed
        case WideNumber(signed=signed):
            return not signed
        case Boolean() | String() | FixedString() | UUID() | Date() | DateTime():
            return True
        case _:
            return False


def _counts(call: AggregateCall) -> bool:
    """Return whether the aggregate counts rows: its sums never reach the end of their type."""
    return call.name.lower().startswith(("count", "regr_count"))


def _conversion_refusal(
    parts: BoundDefinition, column: Column, use: str, *, summed: bool = False
) -> JudgedItem | None:
    """Return the refusal of a column whose type cannot hold what the query gives, or None.

    `use` is "group" or the function that merges the column, `summed` says that the query adds up
    its values too; see `column_conversion`.
    """
    if not use:
        return None
    given_type = dict(zip(parts.plan.names, parts.plan.types, strict=True)).get(column.name)
    stored_conversion = (
        None if given_type is None else conversion(given_type, column.type, use, summed=summed)
    )
    if stored_conversion is None or not stored_conversion.refused:
        return None
    return refused(
        f"column {column.name}",
        f"column {column.name} is {column.type} in {parts.target_name}: {stored_conversion.reason}",
        stored_conversion.fix,
    )


def _order_refusal(name: str, what: str, column: Column) -> JudgedItem:
    """Return the refusal of a value that depends on the order of blocks."""
    return refused(
        name,
        f"{what} in column {column.name} depends on the order in which blocks come.",
        "Use argMin or argMax over a column that orders the rows, groupUniqArray for a set,"
        " or a plain MergeTree target.",
    )


def _dropped_columns(parts: BoundDefinition, given: set[str]) -> Iterator[JudgedItem]:
    """Refuse columns that a SummingMergeTree drops with a row whose named sums are zero."""
    layout, engine = parts.layout, parts.target.engine
    if engine.name != "SummingMergeTree" or not engine.arguments or nested_maps(layout):
        return
    summed = {column.name for column in summed_columns(layout)}
    for column in parts.target.stored_columns:
        merges = isinstance(column.type, AggregateFunction | SimpleAggregateFunction)
        if column.name in given and merges and column.name not in summed:
            yield refused(
                f"column {column.name}",
                f"a merge drops a row whose {', '.join(sorted(summed))} add up to zero, and with it"
                f" its {column.name}.",
                "Use an AggregatingMergeTree with SimpleAggregateFunction(sum, …) columns.",
            )


def _column_advice(call: AggregateCall) -> str:
    """Return the advice which column merges the aggregate: one of finished values if there is one."""
    function = call.aggregate
    may_finish = not _may_see_no_row(function) or _is_neutral(
        function.merge_function, function.result_type
    )
    if function.additive and function.merge_function and may_finish:
        inner = function.result_type.name
        return (
            f"Make it SimpleAggregateFunction({function.merge_function}, {inner}) in an"
            " AggregatingMergeTree."
        )
    return _state_advice(call)


def _state_advice(call: AggregateCall) -> str:
    """Return the advice how to store the aggregate's state, which merges."""
    function = call.aggregate
    # The call's name has its parameters behind it: quantile(0.9), but quantileState(0.9).
    name, bracket, parameters = call.name.partition("(")
    arguments = ", ".join(argument_type.name for argument_type in function.argument_types)
    signature = call.name + (f", {arguments}" if arguments else "")
    state, reader = f"AggregateFunction({signature})", f"{name}Merge"
    if isinstance(function, Merge):  # what merges states gives such states itself
        state, reader = arguments, name
    return (
        f"Store {name}State{bracket}{parameters} in a column {state} of an"
        f" AggregatingMergeTree, and read it with {reader}{bracket}{parameters}."
    )
