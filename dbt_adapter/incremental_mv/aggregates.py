"""How each aggregate of a model is stored, fired and read.

`sum`, `count`, and (where there is a GROUP BY) `min` and `max` are stored finished, since finished
values can be merged.  Every other aggregate is stored as its state: `avg(x)` fires as
`avgState(x)` and is read by `avgMerge`.
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
    """`fired` is the trigger's call; `read` the function of the read view, of the stored column;
    `merge` the function of a SimpleAggregateFunction column, "" for a state."""

    fired: nodes.Function
    read: str
    parameters: tuple[nodes.Expression, ...]
    merge: str
    meaning: Meaning

    def column_type(self, fired_type: DataType) -> DataType:
        """The target's column, by the type of the trigger's call."""
        if self.merge:
            return SimpleAggregateFunction(self.merge, fired_type)
        if isinstance(fired_type, AggregateFunction):
            return fired_type
        raise refuse(
            f"{to_sql(self.fired)} gives {fired_type}, which is no state,",
            "so that it cannot be merged.",
            "Use an aggregate that has states.",
        )

    def reading(self, column: nodes.Expression) -> nodes.Function:
        """The finished value over the rows of a key."""
        return nodes.Function(self.read, (column,), self.parameters)


def is_call(node: nodes.Node) -> bool:
    """Whether it calls an aggregate (a window function is none)."""
    return isinstance(node, nodes.Function) and node.over is None and is_aggregate(node.name)


def storage_of(call: nodes.Function, *, has_keys: bool) -> Storage:
    """How the aggregate call of a model is stored.

    Without keys the trigger gives a row for a block in which no row passed WHERE, whose finished
    `min` would be a value that no row has; so `min` and `max` are states there.
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
    return Storage(call, merge, (), merge, meaning)


def _state(call: nodes.Function) -> Storage:
    base, suffix = _parted(call.name)
    match suffix:
        case "":
            fired, read = f"{base}State", f"{base}Merge"
        case "Merge":
            fired, read = f"{base}MergeState", f"{base}Merge"
        case _:
            # the model asks for states, and gets states
            fired, read = f"{base}{suffix}", f"{base}MergeState"
    return Storage(replace(call, name=fired), read, call.parameters, "", "state")


def _parted(name: str) -> tuple[str, str]:
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)], suffix
    lowered = name.lower()
    return lowered if is_aggregate(lowered) else name, ""


def _normalised(call: nodes.Function) -> nodes.Function:
    """`count(DISTINCT x)` is uniqExact(x), `f(DISTINCT x)` fDistinct(x), FILTER the suffix -If."""
    if call.distinct:
        name = "uniqExact" if call.name.lower() == "count" else f"{call.name}Distinct"
        call = replace(call, name=name, distinct=False)
    if call.filter is not None:
        arguments = (*call.arguments, call.filter)
        call = replace(call, name=f"{call.name}If", arguments=arguments, filter=None)
    return call
