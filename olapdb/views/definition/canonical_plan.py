"""The form of a bound plan that is equal for two texts that mean the same.

Binding gives columns unique names, which depend on the text and on the names of tables. The
canonical form has numbers in their place, and ids for tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType

from olapdb.model.schema import Column, Table
from olapdb.plan import nodes
from olapdb.plan.nodes import Plan
from olapdb.plan.tree import all_nodes


def canonical_plan(
    plan: Plan, table_id: str = "", renamed: Mapping[str, str] = MappingProxyType({})
) -> object:
    """Return the plan in a form that a rename does not change, for comparison.

    Unique names become numbers in order of appearance, tables become ids, and the columns of table
    `table_id` get their new names.
    """
    return _Shaper(table_id, renamed).plan(plan)


class _Shaper:
    """A walk over one plan that numbers its unique names."""

    def __init__(self, table_id: str, renamed: Mapping[str, str]) -> None:
        self._table_id = table_id
        self._renamed = renamed
        self._numbers: dict[str, int] = {}
        self._names: frozenset[str] = frozenset()

    def plan(self, plan: Plan) -> object:
        """Return the canonical form of the plan: of its root and of its output."""
        self._names = frozenset(
            column.name for node in all_nodes(plan.root) for column in node.schema
        )
        root = self._shape(plan.root)
        return root, tuple((self._shape(unique), name) for unique, name in plan.output)

    def _shape(self, value: object) -> object:
        """Return the canonical form of a node, an expression or a field of one."""
        match value:
            case nodes.Scan():
                return self._scan(value)
            case str() if value in self._names:
                return self._numbers.setdefault(value, len(self._numbers))
            case tuple() | list():
                return tuple(self._shape(item) for item in value)
            case Column() | Table():
                return value.id
            case _ if is_dataclass(value) and type(value).__module__.startswith("olapdb.plan"):
                shaped_fields = tuple(
                    self._shape(getattr(value, item.name)) for item in fields(value) if item.compare
                )
                return type(value).__name__, shaped_fields
            case _:
                return value

    def _scan(self, scan: nodes.Scan) -> object:
        """Return the canonical form of a scan, with its columns sorted by their new names."""
        renamed = self._renamed if scan.table.id == self._table_id else {}
        order = sorted(scan.columns, key=lambda pair: renamed.get(pair[1], pair[1]))
        columns = tuple((self._shape(unique), renamed.get(name, name)) for unique, name in order)
        return "Scan", scan.table.id, columns, scan.final, self._shape(scan.predicate)
