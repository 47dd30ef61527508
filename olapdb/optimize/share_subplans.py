"""Common subplans run once: a CTE or a subquery that a query uses several times.

    WITH r AS (SELECT supplier, sum(price) AS total FROM lines GROUP BY supplier)
    SELECT supplier FROM r WHERE total = (SELECT max(total) FROM r)

The grouping becomes one `Shared` node in both places; the executor runs it for the first that reads it
and keeps the rows for the others. Only what costs more than reading is shared: a join, a grouping, a
sort and the like, with all above that is common too. Views keep the plans of their block functions, so
this is no rule of `optimize`: only queries use it, after the order of their joins is chosen.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import field, replace

from olapdb.optimize.align_columns import align_columns
from olapdb.optimize.cardinality import Estimator
from olapdb.plan import nodes
from olapdb.plan.fingerprint import fingerprint
from olapdb.plan.tree import all_nodes, map_subqueries, subqueries_of, with_inputs
from olapdb.records import dataclass

_COSTLY = (
    nodes.Aggregate,
    nodes.Join,
    nodes.Distinct,
    nodes.Sort,
    nodes.Window,
    nodes.LimitBy,
    nodes.SetDifference,
)


def share_subplans(plan: nodes.Plan, estimator: Estimator | None = None) -> nodes.Plan:
    """Return the plan with a `Shared` node wherever the same costly subplan occurs again. With estimates joins that
    differ in their columns alone are the same (`align_columns`)."""
    if not _may_repeat(plan.root):
        return plan
    root = plan.root if estimator is None else align_columns(plan.root, estimator)
    occurrences = _Occurrences(root)
    if not occurrences.choose():
        return plan
    return replace(plan, root=occurrences.rebuilt(root))


def _may_repeat(root: nodes.Node) -> bool:
    """Return whether some kind of costly node occurs twice."""
    kinds = [type(node) for node in all_nodes(root) if isinstance(node, _COSTLY)]
    return len(kinds) > len(set(kinds))


@dataclass(eq=False)
class _Occurrence:
    """A node at its place in the plan. `number` is not 0 where it is shared."""

    node: nodes.Node
    size: int
    below: list[_Occurrence]
    is_costly: bool
    number: int = 0
    within_copy: bool = False

    def descendants(self) -> Iterator[_Occurrence]:
        """Yield the occurrences of all nodes below this one."""
        for place in self.below:
            yield place
            yield from place.descendants()


@dataclass
class _Occurrences:
    """All nodes of a plan, those of subqueries too, and which of them are the same."""

    root: nodes.Node
    _by_id: dict[int, _Occurrence] = field(default_factory=dict)
    _rebuilt: dict[int, nodes.Node] = field(default_factory=dict)
    _first: dict[int, _Occurrence] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._add(self.root)

    def _add(self, node: nodes.Node) -> _Occurrence:
        """Return the occurrence of a node, with those of its inputs and subqueries. A node object that stands in
        several places is one occurrence."""
        if id(node) not in self._by_id:
            below = [self._add(child) for child in (*node.children(), *subqueries_of(node))]
            size = 1 + sum(place.size for place in below)
            is_costly = isinstance(node, _COSTLY) or any(place.is_costly for place in below)
            self._by_id[id(node)] = _Occurrence(node, size, below, is_costly)
        return self._by_id[id(node)]

    def choose(self) -> bool:
        """Choose the subplans that are shared, larger ones first, and number their occurrences; return whether there
        are any."""
        groups: dict[Hashable, list[_Occurrence]] = {}
        for place in self._by_id.values():
            if place.is_costly and (key := fingerprint(place.node)) is not None:
                groups.setdefault(key, []).append(place)
        repeated = [group for group in groups.values() if len(group) > 1]
        for group in sorted(repeated, key=lambda group: -group[0].size):
            # What is below a copy of a larger subplan does not run there.
            places = [place for place in group if not place.within_copy]
            if len(places) < 2:
                continue
            number = len(self._first) + 1
            self._first[number] = places[0]
            for place in places:
                place.number = number
            for copy in places[1:]:
                for inner in copy.descendants():
                    inner.within_copy = True
        return bool(self._first)

    def rebuilt(self, node: nodes.Node) -> nodes.Node:
        """Return the node with a `Shared` node in place of each chosen subplan at it and below."""
        place = self._by_id[id(node)]
        if not place.number:
            return self._inside(node)
        first = self._first[place.number].node
        return nodes.Shared(self._inside(first), place.number, node.schema)

    def _inside(self, node: nodes.Node) -> nodes.Node:
        """Return a node over its rebuilt inputs and subqueries, the same object for the same node."""
        if id(node) not in self._rebuilt:
            inner = map_subqueries(node, self.rebuilt)
            inputs = tuple(map(self.rebuilt, node.children()))
            self._rebuilt[id(node)] = with_inputs(inner, inputs)
        return self._rebuilt[id(node)]
