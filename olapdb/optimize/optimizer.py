"""The optimizer: applies the rules in order to a plan and to the subqueries in its expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from olapdb.errors import InternalError
from olapdb.lazy import lazy_modules
from olapdb.optimize.factor_disjunctions import factor_disjunctions
from olapdb.optimize.fold_conditions import fold_conditions
from olapdb.optimize.group_distinct_texts import group_distinct_texts
from olapdb.optimize.join_by_equalities import join_by_equalities
from olapdb.optimize.merge_projects import merge_projects
from olapdb.optimize.narrow_numbers import narrow_numbers
from olapdb.optimize.narrow_system_scans import narrow_system_scans
from olapdb.optimize.prune_columns import prune_columns
from olapdb.optimize.push_limits import push_limits
from olapdb.optimize.push_predicates import push_predicates
from olapdb.optimize.split_shifted_sums import split_shifted_sums
from olapdb.optimize.unpack_tuples import unpack_tuples
from olapdb.plan.expressions import Call, Cast
from olapdb.plan.nodes import Aggregate, Limit, Node, Plan, Sort
from olapdb.plan.tree import bottom_up, map_subqueries, walk_nodes

if TYPE_CHECKING:
    from olapdb.optimize import after_limits, dependent_keys, injective_keys
else:
    after_limits, dependent_keys, injective_keys = lazy_modules(
        "olapdb.optimize", "after_limits", "dependent_keys", "injective_keys"
    )


def drop_dependent_keys(root: Node) -> Node:
    """Group by the keys that decide all others, and compute these above the groups."""
    has_keys = any(isinstance(n, Aggregate) and len(n.keys) > 1 for n in walk_nodes(root))
    return dependent_keys.drop_dependent_keys(root) if has_keys else root


def group_by_arguments(root: Node) -> Node:
    """Group by the arguments of injective functions, and compute the functions above the groups."""
    keys = (key for n in walk_nodes(root) if isinstance(n, Aggregate) for _, key in n.keys)
    has_calls = any(isinstance(key, Call | Cast) for key in keys)
    return injective_keys.group_by_arguments(root) if has_calls else root


def compute_after_limit(root: Node) -> Node:
    """Compute what ORDER BY does not need behind its LIMIT, for the rows that are left."""
    has_tops = any(isinstance(n, Limit) and isinstance(n.child, Sort) for n in walk_nodes(root))
    return after_limits.compute_after_limit(root) if has_tops else root


RULES: tuple[Callable[[Node], Node], ...] = (
    merge_projects,
    fold_conditions,
    factor_disjunctions,
    join_by_equalities,
    push_predicates,
    narrow_system_scans,
    narrow_numbers,
    unpack_tuples,
    group_by_arguments,
    push_limits,
    compute_after_limit,
    drop_dependent_keys,
    split_shifted_sums,
    group_distinct_texts,
    prune_columns,
    merge_projects,
)


_RULES_OF_ONE_AGGREGATE = tuple(
    rule for rule in RULES if rule not in (group_by_arguments, group_distinct_texts)
)


def optimize(plan: Plan, *, splits_groups: bool = True) -> Plan:
    """Return a plan of the same result: apply `RULES` in their order.

    Without `splits_groups` a GROUP BY stays one Aggregate, by its own keys, over the rows below it. Raises InternalError where a rule
    changed the root's schema."""
    rules = RULES if splits_groups else _RULES_OF_ONE_AGGREGATE
    return replace(plan, root=optimize_node(plan.root, rules))


def optimize_node(root: Node, rules: tuple[Callable[[Node], Node], ...] = RULES) -> Node:
    """Apply the rules to one tree, and to each distinct subquery of its expressions once.

    Raises InternalError if a rule changed the root's schema."""
    done: dict[int, tuple[Node, Node]] = {}

    def subquery(node: Node) -> Node:
        """Return a subquery's plan optimized, the same object for the same plan."""
        # The same plan may stand in several places; it is optimized once.
        if id(node) not in done:
            done[id(node)] = (node, optimize_node(node, rules))
        return done[id(node)][1]

    node = bottom_up(root, lambda n: map_subqueries(n, subquery))
    for rule in rules:
        changed = rule(node)
        if changed.schema != node.schema:
            raise InternalError(
                f"The rule {rule.__name__} changed the schema {node.schema} to {changed.schema}."
            )
        node = changed
    return node
