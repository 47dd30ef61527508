"""Rules for queries alone: views keep the plans of their block functions.

Outer joins are narrowed before the order of joins is chosen, which they are part of then. Inner joins become
SEMI joins afterwards, where the sizes of their sides are known, and before common subplans are shared.
"""

from __future__ import annotations

from dataclasses import replace

from olapdb.optimize.cardinality import Estimator
from olapdb.optimize.convert_outer_joins import convert_outer_joins
from olapdb.optimize.join_by_equalities import join_by_equalities
from olapdb.optimize.merge_projects import merge_projects
from olapdb.optimize.prune_columns import prune_columns
from olapdb.optimize.push_aggregates import push_aggregates
from olapdb.optimize.push_predicates import push_predicates
from olapdb.optimize.semi_joins import use_semi_joins
from olapdb.optimize.share_subplans import share_subplans
from olapdb.optimize.transfer_conditions import transfer_conditions
from olapdb.plan.nodes import Plan, Shared
from olapdb.plan.tree import all_nodes

__all__ = ["narrow_outer_joins", "push_aggregates", "shared_semi_joins", "use_semi_joins"]


def narrow_outer_joins(plan: Plan, *, converts: bool, transfers: bool) -> Plan:
    """Return a plan of the same result with narrower outer joins. With `converts` outer joins become narrower kinds
    where conditions drop the rows without a partner; with `transfers` conditions on the keys of one side are put on the
    other side too. Conditions are then pushed down again; the same plan if nothing changed."""
    root = convert_outer_joins(plan.root) if converts else plan.root
    root = transfer_conditions(root) if transfers else root
    if root is plan.root:
        return plan
    for rule in (
        merge_projects,
        join_by_equalities,
        push_predicates,
        prune_columns,
        merge_projects,
    ):
        root = rule(root)
    return replace(plan, root=root)


def shared_semi_joins(plan: Plan, estimator: Estimator) -> Plan:
    """Return the plan with SEMI joins and shared subplans. It keeps its inner joins where fewer subplans would
    be shared otherwise: one place of a subplan may need pairs where another just asks for a partner."""
    rewritten = use_semi_joins(plan, estimator)
    shared = share_subplans(rewritten, estimator)
    if rewritten is plan:
        return shared
    as_written = share_subplans(plan, estimator)
    return shared if _shared_count(shared) >= _shared_count(as_written) else as_written


def _shared_count(plan: Plan) -> int:
    """Return the number of different subplans that a plan shares."""
    return len({node.number for node in all_nodes(plan.root) if isinstance(node, Shared)})
