"""System tables: a name, its columns as ClickHouse spells them, and a function that lists the rows."""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa

from olapdb.config import Settings
from olapdb.functions import parse_type
from olapdb.functions.kernels.constants import default_value
from olapdb.model.detached import is_hidden
from olapdb.model.schema import SchemaObject
from olapdb.model.session_snapshot import TEMPORARY_DATABASE
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass
from olapdb.runtime.services import Services
from olapdb.types import UUID, Array, DataType, Enum, Map, Nullable, String, Tuple, plain
from olapdb.types.arrow import arrow_schema
from olapdb.types.arrow_values import array_of

_TOKEN = re.compile(r"[(),]")
_NO_UUID = b"\0" * 16

Row: TypeAlias = Sequence[object] | Mapping[str, object]
"""The values in the order of the columns; or by name, the others being empty: NULL, "", [], 0."""


@dataclass(frozen=True)
class SystemContext:
    """The query that reads a system table: its snapshot, settings and database; `tables` are all
    system tables by name.

    `columns` are those that the query reads, None for all. `values` are the texts that it can keep
    in a column. A listing may leave other columns empty and other rows out, and saves their cost."""

    snapshot: Snapshot
    services: Services
    settings: Settings
    database: str
    tables: Mapping[str, SystemTable]
    columns: frozenset[str] | None = None
    values: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def needs(self, *columns: str) -> bool:
        """Return whether the query reads any of these columns."""
        return self.columns is None or not self.columns.isdisjoint(columns)

    def keeps(self, **values: str) -> bool:
        """Return whether the query can keep a row with these values, by column."""
        return all(text in self.values.get(column, (text,)) for column, text in values.items())

    def objects(self, name: str = "name") -> Iterator[SchemaObject]:
        """Yield the tables and views that the query can keep, by database and name.

        `name` is the column that has their names; `database` has their databases."""
        databases, names = self.values.get("database"), self.values.get(name)
        if databases is None or names is None or TEMPORARY_DATABASE in databases:
            yield from self._kept(self.snapshot.objects(), name)
            return
        for database in sorted(databases):
            items = (self.snapshot.find(database, text) for text in sorted(names))
            yield from (item for item in items if item is not None)

    def temporary(self, name: str = "name") -> Iterator[SchemaObject]:
        """Yield the session's temporary tables that the query can keep, by name."""
        yield from self._kept(self.snapshot.objects(TEMPORARY_DATABASE), name)

    def _kept(self, items: Iterable[SchemaObject], name: str) -> Iterator[SchemaObject]:
        """Yield those of the objects that the query can keep, without detached ones."""
        for item in items:
            if not is_hidden(item.database) and self.keeps(
                **{"database": item.database, name: item.name}
            ):
                yield item


def _column(values: list[object], data_type: DataType) -> pa.Array:
    """Return the values of a column as Arrow; the texts of an Enum become its numbers, those of a
    UUID its bytes, of which "" has none but zeros."""
    if isinstance(data_type, Enum):
        numbers: dict[object, object] = dict(data_type.elements)
        values = [numbers.get(value, value) for value in values]
    elif isinstance(data_type, UUID):
        values = [uuid.UUID(value).bytes if value else _NO_UUID for value in map(str, values)]
    return array_of(values, data_type.arrow)


def _defaults(data_type: DataType, count: int) -> pa.Array:
    """Return a column of a type's default value."""
    if not count:
        return pa.nulls(0, data_type.arrow)
    if isinstance(data_type, Tuple):
        elements = [_defaults(element, count) for element in data_type.elements]
        return pa.StructArray.from_arrays(elements, fields=list(data_type.arrow))
    return pa.repeat(default_value(data_type), count)


def moment(milliseconds: float) -> datetime.datetime:
    """Return a time in milliseconds since 1970 as a datetime in UTC."""
    return datetime.datetime.fromtimestamp(milliseconds / 1000, tz=datetime.UTC)


def moment_if_any(milliseconds: float) -> datetime.datetime | None:
    """Return a time in milliseconds since 1970 as a datetime in UTC. None for 0, which means
    never."""
    return moment(milliseconds) if milliseconds else None


Fields: TypeAlias = tuple[tuple[str, DataType], ...]


def parse_columns(text: str) -> Fields:
    """Return the (name, type) pairs of "name Type, name Type"."""
    pairs = (column.split(maxsplit=1) for column in _items(text))
    return tuple((name, parse_type(type_name)) for name, type_name in pairs)


def _items(text: str) -> Iterator[str]:
    """Yield what stands between the commas that are outside of parentheses, blanks as one."""
    text = " ".join(text.split())
    depth = start = 0
    for token in _TOKEN.finditer(text):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
        elif not depth:
            yield text[start : token.start()]
            start = token.end()
    yield text[start:]


@dataclass(frozen=True)
class SystemTable:
    """A system table. `columns` are "name Type, name Type"; `rows` lists its few rows.

    `also` are ClickHouse's columns, in its order: those that are not among `columns` are empty."""

    name: str
    columns: str
    rows: Callable[[SystemContext], Iterable[Row]]
    comment: str = ""
    also: str = ""

    @cached_property
    def filled(self) -> Fields:
        """The (name, type) of each column that `rows` fills, in the order of its values."""
        theirs = dict(self._theirs)
        return tuple((name, theirs.get(name, own)) for name, own in parse_columns(self.columns))

    @cached_property
    def fields(self) -> Fields:
        """The (name, type) of each column: ClickHouse's in its order, then olapdb's own."""
        theirs = {name for name, _ in self._theirs}
        own = (field for field in self.filled if field[0] not in theirs)
        return (*self._theirs, *own)

    @cached_property
    def _theirs(self) -> Fields:
        """The (name, type) of each column that ClickHouse's table of this name has, in its order."""
        return parse_columns(self.also) if self.also else ()

    def read(
        self, context: SystemContext, columns: Sequence[str], values: Mapping[str, frozenset[str]]
    ) -> pa.Table:
        """Return the named columns, in that order, as Arrow with the fields' types.

        Rows with another value in a column of `values` may be left out."""
        rows = self._filled_rows(replace(context, columns=frozenset(columns), values=values))
        position = {name: i for i, (name, _) in enumerate(self.filled)}
        types = dict(self.fields)
        arrays = [
            _column([row[position[c]] for row in rows], types[c])
            if c in position
            else _defaults(types[c], len(rows))
            for c in columns
        ]
        schema = arrow_schema(columns, [types[c] for c in columns])
        if not columns:
            return pa.table({"": pa.nulls(len(rows))}).select([])
        return pa.Table.from_arrays(arrays, schema=schema)

    def row_tuples(self, context: SystemContext) -> list[Sequence[object]]:
        """Return all rows as sequences in the order of `fields`."""
        position = {name: i for i, (name, _) in enumerate(self.filled)}
        empty = {name: _empty(data_type) for name, data_type in self.fields}
        return [
            tuple(row[position[name]] if name in position else empty[name] for name in empty)
            for row in self._filled_rows(context)
        ]

    def _filled_rows(self, context: SystemContext) -> list[Sequence[object]]:
        """Return all rows as sequences in the order of `filled`."""
        empty = {name: _empty(data_type) for name, data_type in self.filled}
        return [
            tuple({**empty, **row}.values()) if isinstance(row, Mapping) else row
            for row in self.rows(context)
        ]


def _empty(data_type: DataType) -> object:
    """Return the value of a column that a row leaves out: NULL, [], "" or 0, by type."""
    match plain(data_type):
        case _ if isinstance(data_type, Nullable):
            return None
        case Array() | Map():
            return []
        case String() | UUID():
            return ""
        case _:
            return 0
