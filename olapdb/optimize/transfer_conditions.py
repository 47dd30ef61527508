"""Conditions on the keys of one side of a join, for the other side too.

    a LEFT JOIN (SELECT year, sum(x) … GROUP BY year) AS b ON a.year = b.year WHERE a.year = 2000

No other row of b has a partner, and a row without a partner is in no pair: so b is read with year = 2000 as well.
Inner joins have this from their graph; here it is done for the side of a LEFT, RIGHT, SEMI or ANTI join whose
rows only come with a partner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from olapdb.optimize.conditions import is_total
from olapdb.plan.conditions import all_of, conjuncts
from olapdb.plan.expressions import ColumnRef, Expression, columns_of, substitute
from olapdb.plan.nodes import Aggregate, Distinct, Filter, Join, Node, Project, Scan, Sort, Window
from olapdb.plan.tree import bottom_up, map_subqueries, with_inputs
from olapdb.types import Float, plain


def transfer_conditions(root: Node) -> Node:
    """Return the plan in which, above each side of an outer, SEMI or ANTI join, a Filter repeats the conditions that
    the other side's keys are known to meet. `push_predicates` then moves these Filters down."""
    inner = bottom_up(root, lambda node: map_subqueries(node, transfer_conditions))
    return bottom_up(inner, _transferred)


def _transferred(node: Node) -> Node:
    """Return a join with the conditions of one side on the other; any other node as it is."""
    if not isinstance(node, Join) or node.strictness not in ("ALL", "ANY", "SEMI", "ANTI"):
        return node
    if node.kind == "LEFT" or node.strictness in ("SEMI", "ANTI"):
        right = _with_conditions(node.right, node.left, node.left_keys, node.right_keys)
        return with_inputs(node, (node.left, right))
    if node.kind == "RIGHT" and node.strictness == "ALL":
        left = _with_conditions(node.left, node.right, node.right_keys, node.left_keys)
        return with_inputs(node, (left, node.right))
    return node


def _with_conditions(
    side: Node, other: Node, other_keys: Sequence[Expression], keys: Sequence[Expression]
) -> Node:
    """Return a side of a join with a Filter of those conditions on the other side's keys that its own keys must meet
    too; unchanged if there are no new ones. Float keys are left out."""
    pairs = {
        theirs.name: ours
        for theirs, ours in zip(other_keys, keys, strict=True)
        if isinstance(theirs, ColumnRef)
        and isinstance(ours, ColumnRef)
        and theirs.type == ours.type
        and not isinstance(plain(ours.type), Float)
    }
    if not pairs:
        return side
    known = set(_known(side, frozenset(key.name for key in pairs.values())))
    implied = dict.fromkeys(substitute(c, pairs) for c in _known(other, frozenset(pairs)))
    new = [condition for condition in implied if condition not in known]
    return Filter(side, all_of(new)) if new else side


def _known(node: Node, names: frozenset[str]) -> Iterator[Expression]:
    """Yield the conditions on these columns alone that hold in every row of a node."""
    match node:
        case Filter():
            yield from _own(conjuncts(node.predicate), names)
            yield from _known(node.child, names)
        case Scan():
            yield from _own([*conjuncts(node.prewhere), *conjuncts(node.predicate)], names)
        case Project():
            yield from _renamed(node.child, node.expressions, names)
        case Aggregate(sets=(), totals=None):
            yield from _renamed(node.child, node.keys, names)
        case Sort() | Distinct() | Window():
            yield from _known(node.child, names & frozenset(f.name for f in node.child.schema))
        case Join():
            for side, kinds in ((node.left, ("LEFT",)), (node.right, ("RIGHT",))):
                if node.kind in ("INNER", "CROSS", *kinds):
                    yield from _known(side, names & frozenset(f.name for f in side.schema))


def _own(conditions: Sequence[Expression], names: frozenset[str]) -> Iterator[Expression]:
    """Return the conditions that read some of these columns and no others, are cheap and cannot fail."""
    return (c for c in conditions if columns_of(c) and columns_of(c) <= names and is_total(c))


def _renamed(
    child: Node, columns: Sequence[tuple[str, Expression]], names: frozenset[str]
) -> Iterator[Expression]:
    """Return the conditions that hold in every row of a child, over the new names that `columns` gives to its columns;
    only conditions on the new names in `names`."""
    above = {
        e.name: ColumnRef(e.type, name)
        for name, e in columns
        if name in names and isinstance(e, ColumnRef)
    }
    return (substitute(c, above) for c in _known(child, frozenset(above)))
