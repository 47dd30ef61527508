"""Databases, tables and views of the catalog: frozen facts.

Identity is the `id`, never the name: ids are not reused, RENAME and EXCHANGE keep them, and a
column that is dropped and added again is a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Literal, TypeAlias, TypeVar

from olapdb.config import MEMORY_SETTINGS, SESSION_SETTINGS, TABLE_SETTINGS, SettingValue
from olapdb.records import dataclass
from olapdb.types import DataType, quote_identifier, stored_type

BLOOM_RATE = 0.025
"""The rate of false positives of a bloom_filter whose definition gives none."""

ROW_GROUP_ROWS = 65_536
"""The rows of a granule where nothing else is said."""

GRANULE_ROWS_MAX = 2**31 - 1
"""No granule is larger: a part with fewer rows is one granule, as with any larger number."""

DefaultKind: TypeAlias = Literal["", "DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `default` is SQL text, "" without one; `since` is the schema version from which on
    parts hold the column: older ones read its default."""

    id: int
    name: str
    type: DataType
    default_kind: DefaultKind = ""
    default: str = ""
    comment: str = ""
    codec: str = ""
    since: int = 1
    ttl: str = ""
    """SQL text of the time from which on the column reads as its default; "" without one."""
    statistics: str = ""
    """The types of its STATISTICS, comma-separated."""
    settings: str = ""
    """Its SETTINGS, `name = value` comma-separated by name. They size blocks of ClickHouse's files."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", stored_type(self.type))

    @property
    def stored(self) -> bool:
        """Return whether parts have this column: not if it is ALIAS or EPHEMERAL."""
        return self.default_kind not in ("ALIAS", "EPHEMERAL")

    @property
    def described_default(self) -> str:
        """The default as DESCRIBE shows it: that of the type for an EPHEMERAL column without one."""
        if self.default_kind == "EPHEMERAL" and not self.default:
            name = self.type.name.replace("\\", "\\\\").replace("'", "\\'")
            return f"defaultValueOfTypeName('{name}')"
        return self.default


@dataclass(frozen=True, slots=True)
class PastColumn:
    """The former name and type name of a column in parts of schema versions below `before`, and
    whether their bounds still hold (they do not if the type change reordered values)."""

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
"""The roles of an engine's arguments, in order."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A table engine. `arguments` are column names in order: SummingMergeTree(a, b) -> ("a", "b");
    ReplacingMergeTree(v) -> ("v",), which is its `version`."""

    name: str
    arguments: tuple[str, ...] = ()

    @property
    def is_merge_tree(self) -> bool:
        """Return whether the engine is of the MergeTree family."""
        return self.name.endswith("MergeTree")

    @property
    def combines(self) -> bool:
        """Return whether merges and FINAL combine rows of equal sorting key."""
        return self.is_merge_tree and self.name != "MergeTree"

    @property
    def stores_rows(self) -> bool:
        """Return whether the engine keeps rows: all but Null do."""
        return self.name != "Null"

    @property
    def depends_on_order(self) -> bool:
        """Return whether the order of insertion matters: for which row of a key survives or,
        without a sorting key, for the order of the rows. Then only adjacent parts may merge."""
        kept = (*ENGINE_ROLES, "CoalescingMergeTree")
        return self.name in kept or not self.is_merge_tree

    @property
    def merges_values(self) -> bool:
        """Return whether states and sums of equal keys are merged; the other combining engines keep
        one whole row."""
        return self.name in ("SummingMergeTree", "AggregatingMergeTree")

    @property
    def merges_states(self) -> bool:
        """Return whether columns of aggregate types (AggregateFunction, SimpleAggregateFunction) of equal keys are
        merged. CoalescingMergeTree merges these and keeps one value of each other column."""
        return self.merges_values or self.keeps_last_values

    @property
    def keeps_last_values(self) -> bool:
        """Return whether merges keep the last value of each column that is not NULL, of several rows."""
        return self.name == "CoalescingMergeTree"

    @property
    def drops_keys(self) -> bool:
        """Return whether combining may leave no row of a key: zero sums, rows that cancel out."""
        return self.name == "SummingMergeTree" or self.sign is not None

    @property
    def sign(self) -> str | None:
        """The column whose 1 asserts a row and whose -1 cancels it. None if the engine has no such
        argument."""
        return self._argument("sign")

    @property
    def version(self) -> str | None:
        """The column that decides which row of a key is the newest. None if the engine has no such
        argument."""
        return self._argument("version")

    @property
    def is_deleted(self) -> str | None:
        """The column whose 1 makes a row the tombstone of its key. None if the engine has no such
        argument."""
        return self._argument("is_deleted")

    def _argument(self, role: str) -> str | None:
        """Return the argument in this role of ENGINE_ROLES. None if the engine was given none."""
        roles = ENGINE_ROLES.get(self.name, ())
        return next((a for r, a in zip(roles, self.arguments) if r == role), None)

    def __str__(self) -> str:
        if self.name == "File":
            return f"File('{self.arguments[0]}')"
        words = 2 if self.name == "Join" else 0  # ANY, LEFT
        names = [quote_identifier(name) for name in self.arguments[words:]]
        arguments = ", ".join((*self.arguments[:words], *names))
        return f"{self.name}({arguments})" if arguments else self.name


@dataclass(frozen=True, slots=True)
class DatabaseEntry:
    """A database of the catalog."""

    id: str
    name: str
    comment: str = ""


IndexType: TypeAlias = Literal[
    "minmax", "set", "bloom_filter", "tokenbf_v1", "ngrambf_v1", "text", "vector_similarity"
]
VECTOR_SIMILARITY: Literal["vector_similarity"] = "vector_similarity"


@dataclass(frozen=True, slots=True)
class SkipIndex:
    """A skip index. `expression` is SQL text over `columns`; `argument` is the maximum number of
    values of a set (0: any) or the rate of false positives of a bloom_filter; `granularity` is in
    granules. `parameters` are those of a filter of words (bytes, hashes, seed) or n-grams (n, bytes,
    hashes, seed).

    Of a text index, `tokenizer` is one with its parameters, `preprocessor` the SQL text of what is
    applied to the expression before ("" for nothing), `definition` the arguments of TYPE text. Parts hold
    nothing of an index vector_similarity, whose parameter is the length of a vector."""

    name: str
    expression: str
    type: IndexType
    columns: tuple[str, ...]
    argument: float = 0.0
    granularity: int = 1
    parameters: tuple[int, ...] = ()
    tokenizer: str = ""
    preprocessor: str = ""
    definition: str = ""

    @property
    def type_full(self) -> str:
        """The type as SQL text: `set(100)`."""
        if self.type == "minmax":
            return "minmax"
        if self.type in ("text", VECTOR_SIMILARITY):
            return f"{self.type}({self.definition})"
        if self.parameters:
            return f"{self.type}({', '.join(map(str, self.parameters))})"
        if self.argument == BLOOM_RATE and self.type == "bloom_filter":
            return self.type
        text = str(int(self.argument)) if self.type == "set" else repr(self.argument)
        return f"{self.type}({text})"


@dataclass(frozen=True, slots=True)
class Projection:
    """A projection: `query` is its SELECT without FROM. "Normal" ones have the rows in the order of
    `sorting_key`, "Aggregate" ones their groups, by its expressions, with the states of aggregates."""

    name: str
    query: str
    kind: Literal["Normal", "Aggregate"]
    sorting_key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A stored table. `sorting_key` () means ORDER BY tuple(); `primary_key` is how many of its
    items form the primary key; `partition_key` is SQL text, "" for the single partition "all".
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
    projections: tuple[Projection, ...] = ()
    past: tuple[PastColumn, ...] = ()
    last_column_id: int = 0
    """The highest id that a dropped column had."""
    assumed: tuple[str, ...] = ()
    """The names of the constraints that are ASSUME: no row is checked for them."""
    sampling_key: str = ""
    """SQL text of SAMPLE BY, an unsigned integer of the primary key; "" without one."""
    declared_keys: tuple[str, ...] = ()
    """(primary, order, items): the texts of PRIMARY KEY ("" without one) and of ORDER BY as they were
    written for a sorting key of these items; () where they are written as others are."""
    revision: int = field(default=0, compare=False)

    def column(self, name: str) -> Column | None:
        """Return the column of that name, or None."""
        return next((c for c in self.columns if c.name == name), None)

    def setting(self, name: str) -> SettingValue:
        """Return a setting of the table, its default where CREATE TABLE did not give it."""
        given = (value for key, value in self.settings if key == name)
        return next(given, (TABLE_SETTINGS.get(name) or MEMORY_SETTINGS[name]).default)

    @property
    def is_bounded(self) -> bool:
        """Return whether an INSERT may remove the oldest blocks, as Memory tables' settings say."""
        names = ("max_rows_to_keep", "max_bytes_to_keep")
        return any(name in names and bool(value) for name, value in self.settings)

    @property
    def checks(self) -> tuple[tuple[str, str], ...]:
        """The constraints that rows are checked for: (name, condition)."""
        return tuple(
            constraint for constraint in self.constraints if constraint[0] not in self.assumed
        )

    @property
    def granule_rows(self) -> int:
        """Return the rows of a granule: those of `index_granularity`, but ROW_GROUP_ROWS where it is
        ClickHouse's default, which every SHOW CREATE TABLE of ClickHouse says."""
        given = min(int(self.setting("index_granularity")), GRANULE_ROWS_MAX)
        return ROW_GROUP_ROWS if given == TABLE_SETTINGS["index_granularity"].default else given

    @property
    def expires(self) -> bool:
        """Return whether rows or values of the table expire: it has a TTL, or one of its columns
        has."""
        return bool(self.ttl) or any(column.ttl for column in self.columns)

    @property
    def stored_columns(self) -> tuple[Column, ...]:
        """The columns that parts have."""
        return tuple(c for c in self.columns if c.stored)

    def renamed(self, database: str, name: str) -> Table:
        """Return the table under another name."""
        return replace(self, database=database, name=name)


@dataclass(frozen=True, slots=True)
class View:
    """A plain view: `query` is its SELECT with every table name qualified.

    A view with parameters, such as {p:UInt32}, has no columns of its own: FROM calls it by values.
    A dictionary is a view over its source whose columns are its key, then its attributes.
    `dictionary` is then its CREATE DICTIONARY, of which `query` replaces the source; else ""."""

    id: str
    database: str
    name: str
    columns: tuple[Column, ...]
    query: str
    comment: str = ""
    version: int = 1
    created_ms: int = 0
    dictionary: str = ""
    merges: str = ""
    """The engine `Merge('db', 'regexp')`, `Alias('db', 't')`, `Dictionary` or `GenerateRandom(1)` of a
    table that stores no rows, `AS numbers(5)` of one that calls a table function; else ""."""
    alias_of: tuple[str, ...] = ()
    """The database and name of the table that an Alias stands for; else ()."""
    revision: int = field(default=0, compare=False)

    @property
    def has_parameters(self) -> bool:
        """Return whether the view is read by a call with values for its parameters."""
        return not self.columns and not self.dictionary and not self.alias_of

    @property
    def called_function(self) -> str:
        """Return the call of CREATE TABLE … AS numbers(5) as SQL text; "" for other tables."""
        return self.merges.removeprefix("AS ") if self.merges.startswith("AS ") else ""

    @property
    def engine_name(self) -> str:
        """The engine's name, such as `Merge`; "" for a view."""
        if self.called_function:
            return _ENGINES_OF_FUNCTIONS.get(
                self.called_function.partition("(")[0], "TableFunction"
            )
        return self.merges.partition("(")[0]

    def renamed(self, database: str, name: str) -> View:
        """Return the view under another name."""
        return replace(self, database=database, name=name)


_ENGINES_OF_FUNCTIONS = {
    "numbers": "SystemNumbers",
    "numbers_mt": "SystemNumbers",
    "generate_series": "SystemNumbers",
    "zeros": "SystemZeros",
    "zeros_mt": "SystemZeros",
    "values": "Values",
    "`values`": "Values",
    "file": "File",
    "merge": "Merge",
    "null": "Null",
}
"""What ClickHouse calls the engine of a table that calls a table function."""

Standing: TypeAlias = Literal["", "candidate", "previous"]
"""The role of a materialized view's version. candidate: SYSTEM REBUILD VIEW is building it;
previous: it was replaced and is kept for SYSTEM ROLLBACK VIEW. Both fire on every INSERT and own
their targets."""


@dataclass(frozen=True, slots=True)
class MaterializedView:
    """An INSERT trigger from `source_id` into `target_id`.

    `query` is frozen: names qualified, `*` expanded; `settings` are those that change its meaning,
    as of CREATE.  `references` are the ids of all tables that it reads, the source first; when one
    of them is renamed, `query` is rewritten in the same commit.  `version` is the definition's
    version.  `inner` means that the view owns its target.  `unprovable` is the reason why the view
    cannot be proven, or "", by the rules of release `judged_by`
    (`olapdb.views.provability.RULES`); 0 where it was made before there were rules.
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
    """The source block from which on the trigger fired; older blocks are its first gap."""
    standing: Standing = ""
    stands_beside: str = ""
    """The id of the view that this version will replace, or that replaced it, see `Standing`."""
    generation: int = 1
    """Counts the REBUILDs; it is part of the name of a candidate or previous version."""
    read_view_id: str = ""
    """The id of a plain view whose query changes together with the versions, "" for none."""
    read_query: str = ""
    """The query that the plain view gets when this candidate or previous version takes the name.
    Its table names are those of that moment."""
    added_keys: tuple[int, ...] = ()
    """The ids of the target's columns that an ALTER added to its ORDER BY since the view was defined. The query does
    not give them: until MODIFY QUERY does, each has one value in all of the view's rows, its constant default."""
    revision: int = field(default=0, compare=False)

    @property
    def dimension_mode(self) -> str:
        """`current`: a change of a dimension makes dependent rows stale; `at_insert`: rows stay as
        inserted."""
        return str(dict(self.settings).get("dimensions", SESSION_SETTINGS["dimensions"].default))

    def needs(self, object_id: str) -> bool:
        """Return whether the object is the view's source or target, or is read by it."""
        ids = (self.source_id, self.target_id, *self.dimension_ids, *self.references)
        return object_id in ids

    def renamed(self, database: str, name: str) -> MaterializedView:
        """Return the view under another name."""
        return replace(self, database=database, name=name)


@dataclass(frozen=True, slots=True)
class RefreshableView:
    """A materialized view that is no trigger: its query fills `target_id` on a schedule.

    A refresh exchanges the target's rows for those of `query`, or adds them (`append`).  `query` is
    frozen as that of a `MaterializedView`; `settings` and `zone` are those of CREATE.  `refresh` is
    the REFRESH clause as SQL text without DEPENDS ON, whose views are `depends_on` by id.  `inner`
    means that the view owns its target.  The other fields are the state after the last attempt;
    times are milliseconds since the epoch, 0 for never.
    """

    id: str
    database: str
    name: str
    columns: tuple[Column, ...]
    query: str
    target_id: str
    refresh: str
    depends_on: tuple[str, ...] = ()
    append: bool = False
    inner: bool = False
    settings: tuple[tuple[str, str | int | float | bool], ...] = ()
    zone: str = "UTC"
    comment: str = ""
    version: int = 1
    created_ms: int = 0
    stopped: bool = False
    """True if SYSTEM STOP VIEW suspended the schedule."""
    scheduled_from_ms: int = 0
    """The time from which the next refresh is computed; 0: it is due now."""
    last_attempt_ms: int = 0
    last_success_ms: int = 0
    last_success_duration_ms: int = 0
    written_rows: int = 0
    retry: int = 0
    """The number of failed attempts at the present refresh."""
    exception: str = ""
    """The error of the last attempt, "" if it succeeded."""
    revision: int = field(default=0, compare=False)

    def needs(self, object_id: str) -> bool:
        """Return whether the object is the view's target, or a view that must refresh first."""
        return object_id == self.target_id or object_id in self.depends_on

    def renamed(self, database: str, name: str) -> RefreshableView:
        """Return the view under another name."""
        return replace(self, database=database, name=name)


SchemaObject: TypeAlias = Table | View | MaterializedView | RefreshableView
KindOfObject = TypeVar("KindOfObject", bound=SchemaObject)
"""`revision` is the number of the commit that last put the object: any change raises it, while
`version` counts only changes of the object's meaning. A changed object is put back with the
revision that was read, and the put conflicts if another commit changed it meanwhile. 0: not put
yet."""
