"""`FROM a, b, c WHERE a.k = b.k AND b.j = c.j` is INNER JOINs of any number of relations."""

from __future__ import annotations

from olapdb.optimize.join_graph import JoinGraph, build, graph_of, written_order
from olapdb.plan.nodes import Node
from olapdb.plan.tree import with_columns, with_inputs


def join_by_equalities(root: Node) -> Node:
    """Make joins with keys of CROSS and INNER joins and the conditions above them.

    The order is the one written, except that relations without an equality to those before them
    wait until there is one. Conditions that follow from others (a.k = 5 AND a.k = b.k gives b.k = 5)
    filter each relation."""
    graph = graph_of(root)
    if graph is None:
        children = tuple(join_by_equalities(child) for child in root.children())
        return with_inputs(root, children)
    relations = tuple(join_by_equalities(relation) for relation in graph.relations)
    graph = JoinGraph(relations, graph.equalities, graph.conditions)
    return with_columns(build(graph, written_order(graph)), root.schema)
