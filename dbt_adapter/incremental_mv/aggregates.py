"""How the target stores each aggregate of a model, how the trigger computes it, and how the read
view reads it.

`sum` and `count`, and with a GROUP BY `min` and `max`, are stored as finished values, since finished
values can be merged. Every other aggregate is stored as its state: for `avg(x)` the trigger computes
`avgState(x)` and the read view `avgMerge`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from olapdb.functions import is_aggregate
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.types import AggregateFunction, DataType, SimpleAggregateFunction

from .errors import refuse

Meaning = Literal["count", "sum", "min", "max", "state"]
"""What a stored column holds, as a chained model needs to know it."""

_COUNTS = ("count", "countif")
_SUMS = ("sum", "sumif")
_SUFFIXES = ("MergeState", "State", "Merge")


@dataclass(frozen=True)
class Storage:
    """The form in which the target stores an aggregate.

    `trigger_call` is the call in the trigger, `read` the function that the read view applies to the
    stored column. `merge` is the function of a SimpleAggregateFunction column, "" for a state."""

    trigger_call: nodes.Function
    read: str
    parameters: tuple[nodes.Expression, ...]
    merge: str
    meaning: Meaning

    def column_type(self, call_type: DataType) -> DataType:
        """Return the type of the target's column: SimpleAggregateFunction where results merge, else
        the trigger call's own type. Raises the compiler's error if that type is no state."""
        if self.merge:
            return SimpleAggregateFunction(self.merge, call_type)
        if isinstance(call_type, AggregateFunction):
            return call_type
        raise refuse(
            f"{to_sql(self.trigger_call)} gives {call_type}, which is no state,",
            "so that it cannot be merged.",
            "Use an aggregate that has states.",
        )

    def read_call(self, column: nodes.Expression) -> nodes.Function:
        """Return the call that gives the finished value over the stored rows of a key."""
        return nodes.Function(self.read, (column,), self.parameters)


def is_call(node: nodes.Node) -> bool:
    """Return whether the node calls an aggregate, not as a window function."""
    return isinstance(node, nodes.Function) and node.over is None and is_aggregate(node.name)


def storage_of(call: nodes.Function, *, has_keys: bool) -> Storage:
    """Return how an aggregate call of a model is stored.

    Without keys, `min` and `max` are stored as states: the trigger writes a row even for a block of
    which no row passes WHERE, and its finished `min` would be a value that no row has.
    """
    call = _normalised(call)
    lowered = call.name.lower()
    if lowered in _COUNTS:
        return _finished(call, "sum", "count")
    if lowered in _SUMS:
        return _finished(call, "sum", "sum")
    if lowered in ("min", "max") and has_keys:
        return _finished(call, lowered, "min" if lowered == "min" else "max")
    return _state(call)


def _finished(call: nodes.Function, merge: str, meaning: Meaning) -> Storage:
    """Return the storage of a finished value that merges by the function `merge`."""
    return Storage(call, merge, (), merge, meaning)


def _state(call: nodes.Function) -> Storage:
    """Return the storage of an aggregate's state."""
    base, suffix = _split_suffix(call.name)
    match suffix:
        case "":
            trigger, read = f"{base}State", f"{base}Merge"
        case "Merge":
            trigger, read = f"{base}MergeState", f"{base}Merge"
        case _:  # the model itself selects states
            trigger, read = f"{base}{suffix}", f"{base}MergeState"
    return Storage(replace(call, name=trigger), read, call.parameters, "", "state")


def _split_suffix(name: str) -> tuple[str, str]:
    """Return an aggregate's name without a suffix of `_SUFFIXES`, and the suffix or "".

    A name without one is in lower case if that is an aggregate."""
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)], suffix
    lowered = name.lower()
    return lowered if is_aggregate(lowered) else name, ""


def _normalised(call: nodes.Function) -> nodes.Function:
    """Return the call with DISTINCT and FILTER turned into function names.

    count(DISTINCT x) becomes uniqExact(x), f(DISTINCT x) fDistinct(x), and f(x) FILTER (WHERE c)
    fIf(x, c)."""
    if call.distinct:
        name = "uniqExact" if call.name.lower() == "count" else f"{call.name}Distinct"
        call = replace(call, name=name, distinct=False)
    if call.filter is not None:
        arguments = (*call.arguments, call.filter)
        call = replace(call, name=f"{call.name}If", arguments=arguments, filter=None)
    return call
