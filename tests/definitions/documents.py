"""Gives drawn tables columns whose type an ALTER may change without another value being written, from a random
source of their own: the other seeds keep their scripts.

Columns: JSON and Dynamic with fewer places than they meet, an Enum, a time with a zone, a tuple with names. Statements:
ALTERs that type a path, give more places, rename a value, change the zone, exchange the elements' names.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.definitions.tables import Field, TableDraft

COLUMNS = (
    Field(
        "js",
        "JSON(max_dynamic_paths = 1)",
        ('\'{"a":1,"b":"x"}\'', "'{\"b\":2}'", "'{}'", '\'{"a":"t","c":[1]}\''),
        role="json",
    ),
    Field("dy", "Dynamic(max_types = 1)", ("1", "'v'", "[1]", "NULL"), role="dynamic"),
    Field("en", "Enum8('a' = 1, 'b' = 2)", ("'a'", "'b'"), role="enum"),
    Field("zt", "DateTime('UTC')", ("'2024-01-01 00:30:00'", "'2024-06-01 23:30:00'"), role="zone"),
    Field("tp", "Tuple(a Int64, b Int64)", ("(1, 2)", "(3, 0)"), role="tuple"),
)
LATER_TYPES = {
    "json": ("JSON", "JSON(a Int64)", "JSON(b String)", "JSON(SKIP a)", COLUMNS[0].type),
    "dynamic": ("Dynamic", "Dynamic(max_types = 3)", COLUMNS[1].type),
    "enum": (
        "Enum8('z' = 1, 'b' = 2)",
        "Enum8('a' = 1, 'b' = 2, 'c' = 3)",
        "Enum16('a' = 1, 'b' = 2)",
    ),
    "zone": ("DateTime('Asia/Tokyo')", "DateTime64(3, 'UTC')", COLUMNS[3].type),
    "tuple": ("Tuple(b Int64, a Int64)", "Tuple(a Int64, b String)", COLUMNS[4].type),
}


class Documents:
    """A source of such columns for one script; a quarter of the scripts have some."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"documents {seed}")
        self.used = self.lot(0.25)

    def lot(self, share: float) -> bool:
        """Return True with the given probability."""
        return self.chance.random() < share

    def table(self, table: TableDraft) -> TableDraft:
        """Return the table with some of the columns; mostly the table itself."""
        if not self.used or table.engine in ("SummingMergeTree", "AggregatingMergeTree"):
            return table
        table = table.copy()
        names = {f.name for f in table.fields}
        table.fields += [f for f in COLUMNS if f.name not in names and self.lot(0.6)]
        return table

    def number(self, fields: Sequence[Field], dot: str) -> tuple[str, str] | None:
        """Return an expression over one of the columns and its type; mostly None."""
        field = self._field(fields, 0.4)
        if field is None:
            return None
        name = f"{dot}{field.name}"
        by_role = {
            "json": [
                (f"ifNull({name}.a.:Int64, 0)", "Int64"),
                (f"length(JSONAllPaths({name}))", "UInt64"),
                (f"length(toString({name}.b))", "UInt64"),
            ],
            "dynamic": [
                (f"ifNull({name}.Int64, 0)", "Int64"),
                (f"length(ifNull(toString({name}), ''))", "UInt64"),
            ],
            "enum": [(f"toInt64({name})", "Int64"), (f"toUInt8({name} = 'b')", "UInt8")],
            "zone": [(f"toHour({name})", "UInt8"), (f"toUInt16(toDate({name}))", "UInt16")],
            "tuple": [(f"{name}.a", "Int64"), (f"toInt64({name}.1)", "Int64")],
        }
        return self.chance.choice(by_role[field.role])

    def key(self, fields: Sequence[Field], dot: str) -> str | None:
        """Return a String expression over one of the columns; mostly None."""
        field = self._field(fields, 0.3)
        if field is None:
            return None
        name = f"{dot}{field.name}"
        by_role = {
            "json": [f"toString({name})", f"ifNull(toString({name}.b), '-')"],
            "dynamic": [f"dynamicType({name})", f"ifNull(toString({name}), '-')"],
            "enum": [f"toString({name})"],
            "zone": [f"toString({name})", f"formatDateTime({name}, '%F')"],
            "tuple": [f"toString({name})", f"toString({name}.a)"],
        }
        return self.chance.choice(by_role[field.role])

    def step(self, inputs: Sequence[TableDraft]) -> list[str]:
        """Return an ALTER of one of the columns; mostly none."""
        if not self.used or not inputs or not self.lot(0.25):
            return []
        table = self.chance.choice(inputs)
        field = self._field(table.fields, 1.0)
        if field is None:
            return []
        kind = self.chance.choice(LATER_TYPES[field.role])
        return [f"ALTER TABLE {table.name} MODIFY COLUMN {field.name} {kind}"]

    def _field(self, fields: Sequence[Field], share: float) -> Field | None:
        """Return one of the columns with this probability."""
        found = [f for f in fields if f.role in LATER_TYPES]
        if not self.used or not found or not self.lot(share):
            return None
        return self.chance.choice(found)
