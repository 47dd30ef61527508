"""States behind finished columns: `uniqMerge(users)` over a view whose `users` is itself a uniqMerge.

A read view gives answers, `uniqMerge(states.users) AS users`. A query over it that merges further
needs the states, which the view's Aggregate has at hand. So for

    SELECT uniqMerge(users) FROM daily          -- daily: SELECT day, uniqMerge(states.users) AS users …

the view's plan gets a hidden column uniqMergeState(states.users), which the outer call reads. The
column is carried through the subqueries, WITH queries and filters in between; a column that is
computed otherwise, or of a join, has no states, and the call is refused as over any value.
"""

from __future__ import annotations

from dataclasses import replace

from olapdb import functions
from olapdb.bind.contracts import BoundQuery
from olapdb.bind.names import NameAllocator
from olapdb.plan import nodes as plan
from olapdb.plan.expressions import AggregateCall, ColumnRef, Expression

_MERGES = ("Merge", "MergeState", "MergeIf", "MergeStateIf")


def takes_states(function: str) -> bool:
    """Return whether an aggregate of this name merges states, its first argument: uniqMerge, uniqMergeIf."""
    return function.endswith(_MERGES)


class FinishedStates:
    """The plan of a query in FROM, to which columns of states are added as calls need them."""

    def __init__(self, bound: BoundQuery, names: NameAllocator) -> None:
        self.node = bound.node
        """The plan with the columns of states that were asked for so far."""
        self._names = names
        self._carried: dict[str, ColumnRef] = {}

    def of(self, reference: Expression) -> ColumnRef | None:
        """Return a column with the states of which `reference` holds the finished values.

        None unless the query itself computes it by a -Merge."""
        if not isinstance(reference, ColumnRef):
            return None
        if reference.name not in self._carried:
            carried = _carry(self.node, reference.name, self._names)
            if carried is None:
                return None
            self.node, self._carried[reference.name] = carried
        return self._carried[reference.name]


def _carry(node: plan.Node, name: str, names: NameAllocator) -> tuple[plan.Node, ColumnRef] | None:
    """Return the plan with one more column, the unfinished states of column `name`, and a reference to it; None if the
    column is not computed by a -Merge seen through filters and projections."""
    match node:
        case plan.Filter(child=child):
            below = _carry(child, name, names)
            return None if below is None else (replace(node, child=below[0]), below[1])
        case plan.Project(child=child, expressions=expressions):
            source = dict(expressions).get(name)
            if not isinstance(source, ColumnRef):
                return None
            below = _carry(child, source.name, names)
            if below is None:
                return None
            state = below[1]
            carried = replace(node, child=below[0], expressions=(*expressions, (state.name, state)))
            return carried, state
        case plan.Aggregate(aggregates=aggregates, sets=()):
            call = dict(aggregates).get(name)
            if call is None or not call.name.split("(")[0].endswith("Merge"):
                return None
            unfinished = _unfinished(call)
            state = ColumnRef(unfinished.type, names.unique(f"{name}_state"))
            return replace(node, aggregates=(*aggregates, (state.name, unfinished))), state
    return None


def _unfinished(call: AggregateCall) -> AggregateCall:
    """Return the aggregate -MergeState in place of -Merge, over the same arguments: it merges the same states and
    returns the state."""
    name = f"{call.aggregate.name}MergeState"
    types = [argument.type for argument in call.arguments]
    aggregate = functions.resolve_aggregate(name, call.aggregate.parameters, types)
    return AggregateCall(aggregate, call.name.replace("Merge", "MergeState", 1), call.arguments)
