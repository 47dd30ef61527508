"""Gives drawn scripts the latest types, functions, settings and statements, from a random source of their own: the
other seeds keep their scripts.

Columns: Variant, texts of times, points. Functions: distances of texts, polygons, accurate casts within arrays,
those that follow a setting. Aggregates: sequences of events, funnels. Settings: in the query of a view, and of an
INSERT or a maintenance statement, which must not change what a view makes. Statements: temporary tables that hide
another one, DETACH and ATTACH of tables, projections, dictionaries that are replaced, DEDUPLICATE.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from tests.definitions.newest import ArrayAggregate
from tests.definitions.tables import Field, TableDraft

VARIANT = "Variant(Int64, String)"
COLUMNS = (
    Field("va", VARIANT, ("1", "-2", "'v'", "NULL"), role="variant"),
    Field("tx", "String", ("'2024-01-02 03:04:05'", "'02/01/2024 10:00:00'"), role="times"),
    Field("pt", "Point", ("(0, 0)", "(1, 2)", "(3, 1)"), role="point"),
    Field("at", "DateTime('UTC')", ("'2024-01-01 00:00:01'", "'2024-01-01 00:00:09'"), role="at"),
)
POLYGON = "[(0, 0), (2, 0), (2, 2), (0, 2)]"
OF_QUERIES = (
    "cast_string_to_date_time_mode = 'best_effort_us'",
    "cast_string_to_date_time_mode = 'basic'",
    "date_time_overflow_behavior = 'saturate'",
    "date_time_overflow_behavior = 'throw'",
    "compatibility = '21.1'",
    "compatibility = '24.3'",
    "output_format_json_quote_64bit_integers = 1",
    "enable_extended_results_for_datetime_functions = 1",
    "join_use_nulls = 1",
    "transform_null_in = 1",
    "use_variant_as_common_type = 1",
    "cast_keep_nullable = 1",
    "limit = 1",
)
OF_STATEMENTS = (
    *OF_QUERIES[:9],
    "final = 1",
    "session_timezone = 'Asia/Tokyo'",
    "additional_table_filters = {'d': '0', 's': '0'}",
    "max_rows_in_set = 1, set_overflow_mode = 'break'",
    "max_rows_to_group_by = 1, group_by_overflow_mode = 'any'",
    "use_query_condition_cache = 0",
    "offset = 1",
)


class Latest:
    """A source of such forms for one script; a third of the scripts have some."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"latest {seed}")
        self.used = self.lot(0.33)
        self.hidden: list[str] = []
        """Tables that a temporary one hides."""
        self.projections = 0

    def lot(self, share: float) -> bool:
        """Return True with the given probability."""
        return self.chance.random() < share

    def table(self, table: TableDraft) -> TableDraft:
        """Return the table with some of the columns; mostly the table itself."""
        if not self.used or table.engine in ("SummingMergeTree", "AggregatingMergeTree"):
            return table
        table = table.copy()
        names = {f.name for f in table.fields}
        table.fields += [f for f in COLUMNS if f.name not in names and self.lot(0.5)]
        return table

    # --- expressions

    def number(self, fields: Sequence[Field], dot: str, x: str) -> tuple[str, str] | None:
        """Return an expression over one of the columns, or the number `x`, and its type; mostly None."""
        if not self.used or not self.lot(0.35):
            return None
        choices = [
            (f"length(toJSONString(tuple({x}, toInt64(1))))", "UInt64"),
            (f"toUInt32(toDate(toInt64(ifNull({x}, 0)) * 1000000))", "UInt32"),
            (f"arraySum(accurateCast([ifNull({x}, 0)], 'Array(Int64)'))", "Int64"),
            (f"ifNull(accurateCastOrNull({x}, 'UInt8'), 7)", "UInt8"),
            (f"if(ifNull({x}, 0) = 1, 1, 'other')::{VARIANT}.Int64", "Nullable(Int64)"),
        ]
        for field in fields:
            name = f"{dot}{field.name}"
            choices += {
                "variant": [
                    (f"variantElement({name}, 'Int64')", "Nullable(Int64)"),
                    (f"length(toString(variantType({name})))", "UInt64"),
                    (f"ifNull({name}.Int64, 0)", "Int64"),
                ],
                "times": [
                    (f"toUInt32(toDateTimeOrZero({name}, 'UTC'))", "UInt32"),
                    (f"toHour(CAST({name} AS DateTime('UTC')))", "UInt8"),
                    (f"toUInt32(parseDateTimeBestEffortOrZero({name}, 'UTC'))", "UInt32"),
                ],
                "point": [
                    (f"toUInt8(pointInPolygon({name}, {POLYGON}))", "UInt8"),
                    (f"toInt64({name}.1)", "Int64"),
                    (f"toInt64(polygonAreaCartesian([[{name}, (5., 0.), (0., 5.)]]) * 2)", "Int64"),
                ],
                "text": [
                    (f"levenshteinDistance({name}, 'xyz')", "UInt64"),
                    (f"damerauLevenshteinDistance({name}, '10')", "UInt64"),
                    (f"toInt64(jaroWinklerSimilarity({name}, 'yy') * 100)", "Int64"),
                    (f"toInt64(ngramDistance({name}, 'yyyy') * 100)", "Int64"),
                ],
                "at": [
                    (f"toYear(toStartOfYear(toDateTime64({name}, 3)))", "UInt16"),
                    (f"toInt64(formatDateTime({name}, '%i'))", "Int64"),
                ],
            }.get(field.role, [])
        return self.chance.choice(choices)

    def key(self, fields: Sequence[Field], dot: str) -> str | None:
        """Return a String expression over one of the columns; mostly None."""
        found = [f for f in fields if f.role in ("variant", "times", "point", "at")]
        if not self.used or not found or not self.lot(0.25):
            return None
        field = self.chance.choice(found)
        name = f"{dot}{field.name}"
        by_role = {
            "variant": [f"ifNull(toString({name}), '-')", f"toString(variantType({name}))"],
            "times": [f"toString(toDateTimeOrZero({name}, 'UTC'))", f"substring({name}, 1, 4)"],
            "point": [f"toString({name})", f"wkt({name})"],
            "at": [f"formatDateTime({name}, '%M')", f"toJSONString({name})"],
        }
        return self.chance.choice(by_role[field.role])

    def aggregate(self, fields: Sequence[Field], x: str) -> ArrayAggregate | None:
        """Return an aggregate of events by their time; mostly None."""
        if not self.used or not any(f.name == "at" for f in fields) or not self.lot(0.3):
            return None
        first, second = f"ifNull({x}, 0) = 0", f"ifNull({x}, 0) = 1"
        function = self.chance.choice(
            (
                "sequenceMatch('(?1)(?2)')",
                "sequenceCount('(?1).*(?2)')",
                "sequenceMatchEvents('(?1).*(?2)')",
                "windowFunnel(10)",
            )
        )
        return ArrayAggregate(function, f"at, {first}, {second}", "DateTime('UTC'), UInt8, UInt8")

    # --- statements

    def of_query(self) -> str:
        """Return a setting for a view's query; mostly ""."""
        return self.chance.choice(OF_QUERIES) if self.used and self.lot(0.3) else ""

    def with_settings(self, said: Sequence[str]) -> list[str]:
        """Return the statements, some INSERTs and maintenance of views with a setting more."""
        return [self._with_setting(text) for text in said]

    def _with_setting(self, text: str) -> str:
        if not self.used or not self.lot(0.25):
            return text
        setting = self.chance.choice(OF_STATEMENTS)
        if text.startswith("INSERT INTO") and " VALUES " in text:
            if " SETTINGS " in text:
                return text.replace(" VALUES ", f", {setting} VALUES ", 1)
            return text.replace(" VALUES ", f" SETTINGS {setting} VALUES ", 1)
        if re.match(r"SYSTEM (BACKFILL|REPLAY|RECONCILE|ADOPT) VIEW \w+( STALE)?$", text):
            return f"{text} SETTINGS {setting}"
        return text

    def step(self, inputs: Sequence[TableDraft]) -> list[str]:
        """Return the statements of a step; mostly none."""
        if not self.used or not self.lot(0.3) or not inputs:
            return []
        table = self.chance.choice(inputs)
        kinds = [self._hidden, self._detached, self._projection, self._deduplicated]
        return self.chance.choice(kinds)(table)

    def _hidden(self, table: TableDraft) -> list[str]:
        """Hide a table by a temporary one of its name, or drop that."""
        if self.hidden:
            return [f"DROP TEMPORARY TABLE {self.hidden.pop()}"]
        self.hidden.append(table.name)
        columns = ", ".join(f"{f.name} {f.type}" for f in table.fields if f.is_given)
        return [f"CREATE TEMPORARY TABLE {table.name} ({columns})"]

    def _detached(self, table: TableDraft) -> list[str]:
        """Detach a table and attach it again."""
        return [f"DETACH TABLE {table.name}", f"ATTACH TABLE {table.name}"]

    def _projection(self, table: TableDraft) -> list[str]:
        """Add a projection to a table, and make it for the parts that are there."""
        keys = table.of_role("key")
        if not keys:
            return []
        self.projections += 1
        name, key = f"pj{self.projections}", keys[0].name
        shown = self.chance.choice(
            (f"SELECT {key}, count() GROUP BY {key}", f"SELECT * ORDER BY {key}")
        )
        return [
            f"ALTER TABLE {table.name} ADD PROJECTION {name} ({shown})",
            f"ALTER TABLE {table.name} MATERIALIZE PROJECTION {name}",
        ]

    def _deduplicated(self, table: TableDraft) -> list[str]:
        """Remove equal rows of a table, or rows by a mutation."""
        keys = table.of_role("key")
        if keys and self.lot(0.5):
            value = self.chance.choice(keys[0].values)
            condition = (
                f"{keys[0].name} IS NULL" if value == "NULL" else f"{keys[0].name} = {value}"
            )
            return [f"ALTER TABLE {table.name} DELETE WHERE {condition}"]
        return [f"OPTIMIZE TABLE {table.name} FINAL DEDUPLICATE"]
