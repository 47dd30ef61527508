"""What a FROM clause offers: columns to find by name, and a node once it is known which are used.

The node is built last, when every expression over the relation is bound: a scan then reads just
what was asked for, and a join carries just that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from olapdb.plan.expressions import Expression
from olapdb.plan.nodes import Node
from olapdb.types import DataType

Qualifier = tuple[str, ...]


@dataclass(eq=False)
class RelationColumn:
    """A column by its user's name. `make` gives its expression over the relation's node, and
    records that it is needed; `qualifiers` are the forms before the dot that name its table.

    `starred`: `*` shows it; `bare`: it is found without a qualifier too.
    """

    name: str
    type: DataType
    make: Callable[[], Expression]
    qualifiers: tuple[Qualifier, ...] = ()
    starred: bool = True
    bare: bool = True
    shown_bare: bool = False
    """Its result name has no qualifier: the left key of USING."""
    used: bool = False

    def use(self) -> Expression:
        """The expression; from now on the relation's node will offer what it needs."""
        self.used = True
        return self._expression

    @cached_property
    def _expression(self) -> Expression:
        return self.make()

    @property
    def qualifier(self) -> str:
        """The shortest name of the table, "" where it has none."""
        return ".".join(self.qualifiers[0]) if self.qualifiers else ""


@dataclass(eq=False)
class Relation:
    """Columns in `*` order, leftmost table first; of equal names the leftmost is meant.

    `label` names it in error messages; `joins` counts the joins in it.
    """

    columns: Sequence[RelationColumn]
    build: Callable[[], Node]
    label: str = ""
    joins: int = 0
    by_name: dict[str, list[RelationColumn]] = field(init=False)

    def __post_init__(self) -> None:
        grouped: defaultdict[str, list[RelationColumn]] = defaultdict(list)
        for column in self.columns:
            grouped[column.name].append(column)
        self.by_name = dict(grouped)

    def candidates(self, parts: tuple[str, ...]) -> list[RelationColumn]:
        """Columns that the identifier may mean, the preferred first.

        `b.k` is a column k of b, or else the column that a subquery calls "b.k"."""
        name, qualifier = parts[-1], parts[:-1]
        named = self.by_name.get(name, [])
        if not qualifier:
            return [c for c in named if c.bare]
        qualified = [c for c in named if qualifier in c.qualifiers]
        return qualified or [c for c in self.by_name.get(".".join(parts), []) if c.bare]

    def find(self, parts: tuple[str, ...]) -> RelationColumn | None:
        found = self.candidates(parts)
        return found[0] if found else None

    def display(self, column: RelationColumn) -> str:
        """The result name of a column that has no alias: bare where that means this column and,
        where more than two tables are joined, no other."""
        bare = [c for c in self.by_name[column.name] if c.bare]
        if column.shown_bare:
            return column.name
        is_first = bool(bare) and bare[0] is column
        if (is_first and (len(bare) == 1 or self.joins <= 1)) or not column.qualifier:
            return column.name
        return f"{column.qualifier}.{column.name}"

    def starred(self, qualifier: Qualifier = ()) -> Iterator[RelationColumn]:
        """What `*` (or `t.*`) stands for; a qualified star shows what USING hid, too."""
        for column in self.columns:
            if not qualifier:
                shown = column.starred
            else:
                shown = qualifier in column.qualifiers and (column.starred or not column.bare)
            if shown:
                yield column

    def has_qualifier(self, qualifier: Qualifier) -> bool:
        return any(qualifier in c.qualifiers for c in self.columns)
