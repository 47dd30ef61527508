"""Gives drawn queries dictionaries and aggregates with combinators of arrays, from a random source of
their own: the other seeds keep their scripts.

Dictionaries are over the script's dimensions, by their key. Combinators: -Resample, -Array, -ForEach,
-Distinct.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.definitions.tables import Field, TableDraft, value_type

RESAMPLED = ("sum", "count", "max", "avg", "uniqExact", "min")
OVER_ARRAYS = ("sumArray", "maxArray", "uniqExactArray", "sumForEach", "maxForEach", "avgForEach")


@dataclass(frozen=True)
class ArrayAggregate:
    """An aggregate call: the function with its parameters, arguments, and the type of its state."""

    function: str
    arguments: str
    types: str

    def call(self, suffix: str = "") -> str:
        """Return the call, with a suffix of the function such as State."""
        name, bracket, parameters = self.function.partition("(")
        return f"{name}{suffix}{bracket}{parameters}({self.arguments})"

    @property
    def state_type(self) -> str:
        """The type of a column of its states."""
        return f"AggregateFunction({self.function}, {self.types})"


@dataclass(frozen=True)
class DrawnDictionary:
    """A dictionary over a table, with the attribute `number`; `given` are the columns of the table that an
    INSERT gives."""

    name: str
    table: str
    key: Field
    number: Field
    layout: str
    given: tuple[str, ...]

    @property
    def has_tuples(self) -> bool:
        """Whether its key is a tuple."""
        return self.layout.startswith("COMPLEX")

    def ddl(self, name: str, table: str) -> str:
        """Return the statement that creates it under another name, over another table."""
        kind = self.key.type.removeprefix("LowCardinality(").removesuffix(")")
        return (
            f"CREATE DICTIONARY {name} ({self.key.name} {kind}, {self.number.name}"
            f" {value_type(self.number.type)}) PRIMARY KEY {self.key.name}"
            f" SOURCE(CLICKHOUSE(TABLE '{table}')) LAYOUT({self.layout}) LIFETIME(0)"
        )


class Newest:
    """A source of the newest forms for one script; a quarter of the scripts have some."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"newest {seed}")
        self.used = self.lot(0.25)
        self.has_dictionaries = self.used and self.lot(0.6)
        self.drawn: list[DrawnDictionary] = []

    def lot(self, share: float) -> bool:
        """Return True with the given probability."""
        return self.chance.random() < share

    def dictionaries(self, tables: Sequence[TableDraft]) -> list[str]:
        """Return the statements that create a dictionary over each of the tables; mostly none."""
        if not self.has_dictionaries:
            return []
        said = []
        for table in tables:
            keys, numbers = table.of_role("key"), table.of_role("number")
            if not keys or not numbers:
                continue
            name, key, number = f"dic_{table.name}", keys[0], numbers[0]
            if key.type.startswith(("Nullable", "FixedString")) or "MergeTree" not in table.engine:
                continue
            layout = "COMPLEX_KEY_HASHED()"
            if key.type.startswith("UInt"):
                layout = self.chance.choice((layout, "HASHED()", "FLAT()"))
            given = tuple(f.name for f in table.fields if f.is_given)
            self.drawn.append(DrawnDictionary(name, table.name, key, number, layout, given))
            said.append(self.drawn[-1].ddl(name, table.name))
        return said

    def looked_up(self, keys: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
        """Return a lookup by one of the keys, as (text, type) each, and its type; mostly None."""
        if not self.drawn or not keys or not self.lot(0.35):
            return None
        drawn = self.chance.choice(self.drawn)
        name, number = drawn.name, drawn.number
        text = next((text for text, type_ in keys if type_ == drawn.key.type), None)
        if text is None:
            return None
        text = f"tuple({text})" if drawn.has_tuples else text
        kind = value_type(number.type)
        return self.chance.choice(
            [
                (f"dictGet('{name}', '{number.name}', {text})", kind),
                (f"dictGetOrDefault('{name}', '{number.name}', {text}, 0)", kind),
                (f"dictHas('{name}', {text})", "UInt8"),
                (f"dictGetOrNull('{name}', '{number.name}', {text})", f"Nullable({kind})"),
            ]
        )

    def aggregate(self, x: str, kind: str, arrays: Sequence[Field]) -> ArrayAggregate | None:
        """Return an aggregate over the number `x` or an array column; mostly None."""
        if not self.used or not self.lot(0.25):
            return None
        if arrays and self.lot(0.5):
            function = self.chance.choice(OVER_ARRAYS)
            return ArrayAggregate(function, arrays[0].name, arrays[0].type)
        if self.lot(0.3):
            function = self.chance.choice(("sumDistinct", "countDistinct", "avgDistinct"))
            return ArrayAggregate(function, x, kind)
        function = self.chance.choice(RESAMPLED)
        bounds = self.chance.choice(("0, 4, 2", "-2, 3, 1", "0, 300, 100"))
        key = f"toInt64(ifNull({x}, 0))"
        if function == "count":
            return ArrayAggregate(f"countResample({bounds})", key, "Int64")
        return ArrayAggregate(f"{function}Resample({bounds})", f"{x}, {key}", f"{kind}, Int64")
