"""A dictionary as its CREATE statement says: its key, range and attributes."""

from __future__ import annotations

from functools import lru_cache

from olapdb import types
from olapdb.model.schema import View
from olapdb.records import dataclass
from olapdb.sql import nodes as sql
from olapdb.sql.parser import parse_one

LAYOUTS = {
    "FLAT": "Flat",
    "HASHED": "Hashed",
    "SPARSE_HASHED": "SparseHashed",
    "HASHED_ARRAY": "HashedArray",
    "DIRECT": "Direct",
    "CACHE": "Cache",
    "SSD_CACHE": "SSDCache",
    "RANGE_HASHED": "RangeHashed",
    "IP_TRIE": "Trie",
    "POLYGON": "Polygon",
    "POLYGON_SIMPLE": "Polygon",
    "POLYGON_INDEX_EACH": "Polygon",
    "POLYGON_INDEX_CELL": "Polygon",
}
"""The layouts, and their names in system.dictionaries. All hold the same rows here."""


@dataclass(frozen=True, slots=True)
class DictionaryDefinition:
    """A parsed CREATE DICTIONARY. `keys` are the columns of its key, `bounds` those of its range,
    () without one, `attributes` the others.

    `is_simple`: the key is one number, held as UInt64; else any columns, held in their types."""

    statement: sql.CreateDictionary
    keys: tuple[sql.DictionaryAttribute, ...]
    bounds: tuple[sql.DictionaryAttribute, ...]
    attributes: tuple[sql.DictionaryAttribute, ...]

    @property
    def is_simple(self) -> bool:
        """Return whether the key is one number."""
        kind = self.statement.layout.kind if self.statement.layout is not None else ""
        if "COMPLEX_KEY" in kind or len(self.keys) != 1:
            return False
        return kind == "FLAT" or isinstance(self.keys[0].type, types.Integer)

    @property
    def has_prefixes(self) -> bool:
        """Return whether the key is the text of a network: LAYOUT(IP_TRIE)."""
        return self.statement.layout is not None and self.statement.layout.kind == "IP_TRIE"

    @property
    def has_polygons(self) -> bool:
        """Return whether the key is polygons: LAYOUT(POLYGON) and its kin."""
        layout = self.statement.layout
        return layout is not None and layout.kind.startswith("POLYGON")

    @property
    def columns(self) -> tuple[tuple[sql.DictionaryAttribute, types.DataType], ...]:
        """Return the columns in the order of SELECT *, with the types in which they are held."""
        keys = [(key, types.UINT64 if self.is_simple else key.type) for key in self.keys]
        bounds = [(bound, types.plain(bound.type)) for bound in self.bounds]
        return (*keys, *bounds, *((a, a.type) for a in self.attributes))

    @property
    def latest(self) -> bool:
        """Return whether the last of overlapping ranges counts: RANGE_LOOKUP_STRATEGY 'max'."""
        layout = self.statement.layout
        value = layout.parameter("RANGE_LOOKUP_STRATEGY") if layout is not None else None
        return isinstance(value, sql.Literal) and value.value == "max"

    @property
    def parent(self) -> sql.DictionaryAttribute | None:
        """Return the HIERARCHICAL attribute, None if there is none."""
        return next((a for a in self.attributes if "HIERARCHICAL" in a.flags), None)


def define_dictionary(statement: sql.CreateDictionary) -> DictionaryDefinition:
    """Return the definition of a statement whose clauses name columns that it has."""
    columns = {attribute.name: attribute for attribute in statement.attributes}
    keys = tuple(columns[name] for name in statement.primary_key)
    bounds = tuple(columns[name] for name in statement.range or ())
    taken = {column.name for column in (*keys, *bounds)}
    others = tuple(a for a in statement.attributes if a.name not in taken)
    return DictionaryDefinition(statement, keys, bounds, others)


@lru_cache(maxsize=256)
def _parsed(text: str) -> DictionaryDefinition:
    """Parse the text of a CREATE DICTIONARY."""
    statement = parse_one(text)
    assert isinstance(statement, sql.CreateDictionary)
    return define_dictionary(statement)


def definition_of(view: View) -> DictionaryDefinition:
    """Return the definition of a view that is a dictionary."""
    return _parsed(view.dictionary)


def text_of(value: sql.Expression | None) -> str:
    """Return a parameter's value as text, quoted or not."""
    if isinstance(value, sql.Literal):
        return str(value.value)
    return ".".join(value.parts) if isinstance(value, sql.Identifier) else ""


def open_end(data_type: types.DataType, *, highest: bool) -> sql.Expression:
    """Return the lowest or highest value of a type: NULL as a bound leaves the range open."""
    match data_type:
        case types.Integer():
            number = data_type.maximum if highest else data_type.minimum
            value: sql.Literal = sql.Literal(number, str(number))
        case types.Float():
            value = sql.Literal("inf" if highest else "-inf")
        case types.Date():
            value = sql.Literal("2149-06-06" if highest else "1970-01-01")
        case types.Date32():
            value = sql.Literal("2299-12-31" if highest else "1900-01-01")
        case types.DateTime():
            return sql.Cast(sql.Literal(2**32 - 1 if highest else 0), data_type)
        case _:
            value = sql.Literal("2299-12-31 23:59:59" if highest else "1900-01-01 00:00:00")
    return sql.Cast(value, data_type)
