"""What the catalog knows of databases, tables and views: frozen facts.

Identity is the `id`, never the name: ids are not reused, RENAME and EXCHANGE keep them, and a
column that is dropped and added again is a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

from olapdb.types import DataType, quote_identifier, stored_type

DefaultKind: TypeAlias = Literal["", "DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL"]


@dataclass(frozen=True, slots=True)
class Column:
    """`default` is SQL text, "" where there is none; `since` the schema version since which parts
    hold the column: older ones read its default."""

    id: int
    name: str
    type: DataType
    default_kind: DefaultKind = ""
    default: str = ""
    comment: str = ""
    codec: str = ""
    since: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", stored_type(self.type))

    @property
    def stored(self) -> bool:
        """Whether parts have this column."""
        return self.default_kind not in ("ALIAS", "EPHEMERAL")


@dataclass(frozen=True, slots=True)
class PastColumn:
    """What a column was in parts of schema versions below `before`: its name and (the name of) its
    type there, and whether their bounds still hold (a type that orders values otherwise ends
    that)."""

    column_id: int
    before: int
    name: str
    type: str
    bounds_hold: bool = True


@dataclass(frozen=True, slots=True)
class KeyItem:
    """An element of ORDER BY: SQL text over the table's columns."""

    expression: str
    descending: bool = False


ENGINE_ROLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ReplacingMergeTree": ("version", "is_deleted"),
        "CollapsingMergeTree": ("sign",),
        "VersionedCollapsingMergeTree": ("sign", "version"),
    }
)
"""What the arguments of an engine stand for, in their order."""


@dataclass(frozen=True, slots=True)
class Engine:
    """`arguments` are column names in their order: SummingMergeTree(a, b) -> ("a", "b");
    ReplacingMergeTree(v) -> ("v",), which is its `version`."""

    name: str
    arguments: tuple[str, ...] = ()

    @property
    def is_merge_tree(self) -> bool:
        return self.name.endswith("MergeTree")

    @property
    def combines(self) -> bool:
        """Whether merges and FINAL join rows of equal sorting key."""
        return self.is_merge_tree and self.name != "MergeTree"

    @property
    def stores_rows(self) -> bool:
        return self.name != "Null"

    @property
    def depends_on_order(self) -> bool:
        """Whether the order of insertion shows: in which row of a key stays, or, without a sorting
        key, in the order of the rows. Only neighbours may then merge."""
        return self.name in ENGINE_ROLES or not self.is_merge_tree

    @property
    def merges_values(self) -> bool:
        """Whether states and sums of equal keys are joined; the other combining engines keep whole
        rows and drop the rest."""
        return self.name in ("SummingMergeTree", "AggregatingMergeTree")

    @property
    def drops_keys(self) -> bool:
        """Whether combining may leave no row of a key: sums of zero, rows that cancel out."""
        return self.name == "SummingMergeTree" or self.sign is not None

    @property
    def sign(self) -> str | None:
        """The column whose 1 states a row and whose -1 cancels it."""
        return self._argument("sign")

    @property
    def version(self) -> str | None:
        """The column by which the newest row of a key is told."""
        return self._argument("version")

    @property
    def is_deleted(self) -> str | None:
        """The column whose 1 makes a row the tombstone of its key."""
        return self._argument("is_deleted")

    def _argument(self, role: str) -> str | None:
        roles = ENGINE_ROLES.get(self.name, ())
        return next((a for r, a in zip(roles, self.arguments) if r == role), None)

    def __str__(self) -> str:
        arguments = ", ".join(quote_identifier(name) for name in self.arguments)
        return f"{self.name}({arguments})" if arguments else self.name


@dataclass(frozen=True, slots=True)
class DatabaseEntry:
    id: str
    name: str
    comment: str = ""


IndexType: TypeAlias = Literal["minmax", "set", "bloom_filter"]


@dataclass(frozen=True, slots=True)
class SkipIndex:
    """`expression` is SQL text over `columns`; `argument` the most values of a set (0: any number)
    or the rate of false positives of a bloom_filter; `granularity` is in granules."""

    name: str
    expression: str
    type: IndexType
    columns: tuple[str, ...]
    argument: float = 0.0
    granularity: int = 1

    @property
    def type_full(self) -> str:
        """As it is written: `set(100)`."""
        if self.type == "minmax":
            return "minmax"
        text = str(int(self.argument)) if self.type == "set" else repr(self.argument)
        return f"{self.type}({text})"


@dataclass(frozen=True, slots=True)
class Table:
    """`sorting_key` () means ORDER BY tuple(); `primary_key` is how many of its items are the
    primary key; `partition_key` is SQL text, "" where the table has one partition, "all".
    `version` counts its schema changes; `revision` see `SchemaObject`."""

    id: str
    database: str
    name: str
    engine: Engine
    columns: tuple[Column, ...]
    sorting_key: tuple[KeyItem, ...] = ()
    primary_key: int = 0
    partition_key: str = ""
    settings: tuple[tuple[str, str | int | float | bool], ...] = ()
    comment: str = ""
    version: int = 1
    created_ms: int = 0
    ttl: str = ""
    constraints: tuple[tuple[str, str], ...] = ()
    indexes: tuple[SkipIndex, ...] = ()
    past: tuple[PastColumn, ...] = ()
    last_column_id: int = 0
    """The highest id that a dropped column had."""
    revision: int = field(default=0, compare=False)

    def column(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name == name), None)

    def setting(self, name: str, default: str | int | float | bool) -> str | int | float | bool:
        return dict(self.settings).get(name, default)

    @property
    def stored_columns(self) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.stored)

    def renamed(self, database: str, name: str) -> Table:
        return replace(self, database=database, name=name)


@dataclass(frozen=True, slots=True)
class View:
    """A plain view: `query` is its SELECT with every table name qualified."""

    id: str
    database: str
    name: str
    columns: tuple[Column, ...]
    query: str
    comment: str = ""
    version: int = 1
    created_ms: int = 0
    revision: int = field(default=0, compare=False)

    def renamed(self, database: str, name: str) -> View:
        return replace(self, database=database, name=name)


Standing: TypeAlias = Literal["", "candidate", "previous"]
"""Of a materialized view's version. candidate: SYSTEM REBUILD VIEW is making it; previous: it was
replaced, and is kept for SYSTEM ROLLBACK VIEW. Both fire on every INSERT and own their targets."""


@dataclass(frozen=True, slots=True)
class MaterializedView:
    """An INSERT trigger from `source_id` into `target_id`.

    `query` is frozen: names qualified, `*` expanded; `settings` are those that change its
    meaning, as they were at CREATE.  `references` are the ids of all tables that it reads, the
    source first; when one of them is renamed, `query` is rewritten in the same commit.
    `version` is the definition's version.  `inner` tells that the target belongs to the view.
    `unprovable` is "" or the reason why the view cannot be proven, by the rules of release
    `judged_by` (`olapdb.views.provability.RULES`); 0 where it was made before there were rules.
    """

    id: str
    database: str
    name: str
    columns: tuple[Column, ...]
    query: str
    source_id: str
    target_id: str
    dimension_ids: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    inner: bool = False
    attached: bool = True
    version: int = 1
    settings: tuple[tuple[str, str | int | float | bool], ...] = ()
    zone: str = "UTC"
    unprovable: str = ""
    judged_by: int = 0
    comment: str = ""
    created_ms: int = 0
    first_block: int = 1
    """The source block from which on triggers fired; older blocks are its first gap."""
    standing: Standing = ""
    stands_beside: str = ""
    """The id of the view that it is to replace, or that replaced it, see `Standing`."""
    generation: int = 1
    """Counts the REBUILDs; it names a version that has not, or no longer, the view's own name."""
    revision: int = field(default=0, compare=False)

    @property
    def dimension_mode(self) -> str:
        """`current`: what was made with a dimension is stale when that changes; `at_insert`: it
        stays as it was made."""
        return str(dict(self.settings).get("dimensions", "current"))

    def needs(self, object_id: str) -> bool:
        """Whether the view cannot be without the object: its source, target, or what it reads."""
        ids = (self.source_id, self.target_id, *self.dimension_ids, *self.references)
        return object_id in ids

    def renamed(self, database: str, name: str) -> MaterializedView:
        return replace(self, database=database, name=name)


SchemaObject: TypeAlias = Table | View | MaterializedView
"""`revision` is the number of the commit that put the object as it is: any change raises it, while
`version` counts only changes of what the object means. An object that is read, changed and put back
carries the revision that was read, and the put fails where another one came between. 0: not put
yet."""
