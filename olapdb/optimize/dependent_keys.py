"""Keys of GROUP BY that other keys decide are computed for each group, not for each row.

SELECT x, x - 1, 7, count() … GROUP BY x, x - 1, 7
SELECT x, x - 1, 7, count … FROM (SELECT x, count() … GROUP BY x)

Rows of one x have one x - 1, so the groups are the same, in the same order. Each value of x has a row: an
expression that fails for a group fails for that row, too. Floats stay: 0.0 and -0.0 are two groups.
"""

from __future__ import annotations

from dataclasses import replace

from olapdb.plan.expressions import (
    Call,
    Cast,
    ColumnRef,
    Constant,
    Expression,
    InValues,
    columns_of,
    substitute,
    walk,
)
from olapdb.plan.nodes import Aggregate, Node, Project
from olapdb.plan.tree import bottom_up
from olapdb.types import UUID, Date, Date32, DateTime, DateTime64, Integer, String, plain

_EXACT = (Integer, String, Date, Date32, DateTime, DateTime64, UUID)
"""The types of keys whose equal values are the same value to every function."""


def drop_dependent_keys(root: Node) -> Node:
    """Group by the keys that decide all others, and compute these above the groups."""
    return bottom_up(root, _dropped)


def _dropped(node: Node) -> Node:
    """Return an Aggregate without dependent keys under a Project that computes them; any other node unchanged."""
    if not isinstance(node, Aggregate) or node.sets or node.totals is not None:
        return node
    if node.empty_without_rows:
        return node
    deciding = {
        key.name: ColumnRef(key.type, name)
        for name, key in node.keys
        if isinstance(key, ColumnRef) and isinstance(plain(key.type), _EXACT)
    }
    computed = {
        name: substitute(key, deciding) for name, key in node.keys if _is_decided(key, deciding)
    }
    keys = tuple((name, key) for name, key in node.keys if name not in computed)
    if not computed or not keys:
        return node
    columns = tuple(
        (field.name, computed.get(field.name, ColumnRef(field.type, field.name)))
        for field in node.schema
    )
    return Project(replace(node, keys=keys), columns)


def _is_decided(key: Expression, deciding: dict[str, ColumnRef]) -> bool:
    """Return whether a key is a function of the columns `deciding`, which are keys, and of nothing else."""
    return (
        not isinstance(key, ColumnRef)
        and isinstance(plain(key.type), _EXACT)
        and columns_of(key) <= deciding.keys()
        and all(
            isinstance(e, ColumnRef | Constant | Cast | InValues)
            or (isinstance(e, Call) and e.function.volatility == "pure")
            for e in walk(key)
        )
    )
