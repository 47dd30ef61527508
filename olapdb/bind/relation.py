"""The relation of a FROM clause: columns by name, and a plan node of the used columns.

The node is built last, when every expression over the relation is bound: so a scan reads, and a
join carries, only the used columns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import cached_property

from olapdb.plan.expressions import Expression
from olapdb.plan.nodes import Node
from olapdb.records import dataclass
from olapdb.types import STRING, DataType

Qualifier = tuple[str, ...]


@dataclass(eq=False)
class RelationColumn:
    """A column of a relation, by the user's name for it.

    `make` returns its expression over the relation's node. `qualifiers` are the ways to write its
    table before the dot, such as (t,) and (db, t). `starred`: `*` shows it; `bare`: its name alone,
    without a qualifier, finds it. `used`: an expression has read it. `state` returns the column of
    aggregate states from which the values were finished, None if there is none."""

    name: str
    type: DataType
    make: Callable[[], Expression]
    qualifiers: tuple[Qualifier, ...] = ()
    starred: bool = True
    bare: bool = True
    shown_bare: bool = False
    """Whether its result name has no qualifier, as that of the left key of USING."""
    used: bool = False
    state: Callable[[], Expression | None] | None = None
    array_joined: bool = False
    """True if ARRAY JOIN made the column, which `n.*` then shows by its name `n.x`."""

    def use(self) -> Expression:
        """Return the column's expression, and record that an expression reads it."""
        self.used = True
        return self._expression

    @cached_property
    def _expression(self) -> Expression:
        """Return what `make` returns, computed once."""
        return self.make()

    @property
    def qualifier(self) -> str:
        """The shortest name of the column's table, "" where it has none."""
        return ".".join(self.qualifiers[0]) if self.qualifiers else ""

    def is_shown_as(self, qualifier: Qualifier) -> bool:
        """Return whether the query shows the column's table by this name: not if an alias hides
        it."""
        return bool(self.qualifiers) and self.qualifiers[0] == qualifier[-1:]


class DeferredColumn(RelationColumn):
    """A column, shown by no `*`, whose type is found when it is first asked for."""

    def __init__(
        self,
        name: str,
        type_of: Callable[[], DataType],
        make: Callable[[], Expression],
        qualifiers: tuple[Qualifier, ...],
    ) -> None:
        super().__init__(name, STRING, make, qualifiers, starred=False)
        self._type_of = type_of
        del self.type

    def __getattr__(self, name: str) -> object:
        if name != "type":
            raise AttributeError(name)
        self.type = self._type_of()
        return self.type


@dataclass(eq=False)
class Relation:
    """Columns in `*` order, leftmost table first; a repeated name means the leftmost column.

    `build` returns the plan node; it is called once all expressions over the relation are bound.
    `label` names the relation in error messages; `joins` counts the joins in it.
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
        """Return the columns that an identifier may mean, the preferred one first.

        `b.k` is a column k of b, or else the column that a subquery calls "b.k"; `b.n.k` may be n.k of b, too."""
        name, qualifier = parts[-1], parts[:-1]
        named = self.by_name.get(name, [])
        if not qualifier:
            return [c for c in named if c.bare]
        qualified = [c for c in named if qualifier in c.qualifiers]
        qualified = [c for c in qualified if c.is_shown_as(qualifier)] or qualified
        if qualified or len(parts) == 2:
            return qualified or [c for c in self.by_name.get(".".join(parts), []) if c.bare]
        dotted = [c for c in self.by_name.get(".".join(parts), []) if c.bare]
        for length in range(len(parts) - 2, 0, -1):
            named = self.by_name.get(".".join(parts[length:]), [])
            dotted += [c for c in named if parts[:length] in c.qualifiers]
        return dotted

    def find(self, parts: tuple[str, ...]) -> RelationColumn | None:
        """Return the column that an identifier means, else None."""
        candidates = self.candidates(parts)
        return candidates[0] if candidates else None

    def display(self, column: RelationColumn) -> str:
        """Return the result name of a column without an alias.

        It is unqualified where the name means this column and, if more than two tables are joined,
        no other column has it."""
        bare = [c for c in self.by_name[column.name] if c.bare]
        if column.shown_bare:
            return column.name
        is_first = bool(bare) and bare[0] is column
        if (is_first and (len(bare) == 1 or self.joins <= 1)) or not column.qualifier:
            return column.name
        return f"{column.qualifier}.{column.name}"

    def starred(self, qualifier: Qualifier = ()) -> Iterator[RelationColumn]:
        """Yield the columns of `*` or `t.*`; a qualified star shows those that USING hides, too."""
        columns = self.columns
        if qualifier:
            named = [c for c in columns if qualifier in c.qualifiers]
            columns = [c for c in named if c.is_shown_as(qualifier)] or named
        for column in columns:
            if column.starred or (qualifier and not column.bare):
                yield column

    def has_qualifier(self, qualifier: Qualifier) -> bool:
        """Return whether a table of the relation has this name."""
        return any(qualifier in c.qualifiers for c in self.columns)
