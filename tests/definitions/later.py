"""Gives drawn tables types, engines and clauses that the grammar alone does not draw, from a random
source of their own: the other seeds keep their scripts.

Columns: a plain number of an AggregatingMergeTree. Types: wide integers, Enum, IPv4, IPv6, Time. Engines: CoalescingMergeTree, of targets too,
and Join and Set for dimensions. Clauses: projections, text indexes, TTL of a column, TTL … GROUP BY.
"""

from __future__ import annotations

import random
from dataclasses import replace

from tests.definitions.queries import QueryDraft
from tests.definitions.tables import Field, TableDraft, value_type

KEYS = {
    "Int128": ("-1", "0", "1", "170141183460469231731687303715884105727"),
    "UInt256": ("0", "1", "2"),
    "Enum8('a' = 1, 'b' = 2, 'c' = 3)": ("'a'", "'b'", "'c'"),
    "IPv4": ("'10.0.0.1'", "'10.0.0.2'", "'255.255.255.255'"),
    "IPv6": ("'::1'", "'2001:db8::1'"),
    "Time": ("'00:00:01'", "'12:30:00'"),
}
NUMBERS = {
    "Int128": ("-2", "0", "1", "5000000000"),
    "UInt128": ("0", "1", "300"),
    "Int256": ("-1", "0", "1"),
    "UInt256": ("0", "1", "2"),
}


class Later:
    """A source of later forms for one script; a third of the scripts have some."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"later {seed}")
        self.used = self.lot(0.33)
        self.key_type = self.chance.choice(list(KEYS)) if self.lot(0.6) else ""
        self.of_plain_columns = random.Random(f"plain columns {seed}")
        self.of_targets = random.Random(f"coalescing targets {seed}")

    def lot(self, share: float) -> bool:
        """Return True with the given probability."""
        return self.chance.random() < share

    def table(self, table: TableDraft, is_dimension: bool = False) -> TableDraft:
        """Return the table with some of its parts in later forms; mostly the table itself."""
        if table.engine == "AggregatingMergeTree" and self.of_plain_columns.random() < 0.4:
            table = _with_plain_number(table)
        if not self.used:
            return table
        table = table.copy()
        table.fields = [self._field(f, table) for f in table.fields]
        if table.engine == "MergeTree":
            self._clauses(table)
            self._engine(table, is_dimension)
        return table

    def target(self, table: TableDraft, query: QueryDraft) -> TableDraft:
        """Return the target of a query as a CoalescingMergeTree, sometimes; mostly the table itself.

        Half of these have a column with a default, which another view into the target may give."""
        chance = self.of_targets
        if table.engine not in ("AggregatingMergeTree", "MergeTree") or chance.random() > 0.12:
            return table
        table = table.copy()
        table.engine = "CoalescingMergeTree"
        keys = [o.name for o in query.outputs if o.is_key]
        if keys and table.order == "tuple()" and chance.random() < 0.7:
            table.order = f"({keys[0]})"
        if all(f.name != "own" for f in table.fields) and chance.random() < 0.5:
            kind = chance.choice(
                (
                    "Int64",
                    "Nullable(Int64)",
                    "SimpleAggregateFunction(max, Int64)",
                    "SimpleAggregateFunction(any, Nullable(Int64))",
                    "SimpleAggregateFunction(sum, Int64)",
                )
            )
            of_key = f"length(toString({chance.choice(keys)}))" if keys else "3"
            default = chance.choice((of_key, of_key, "0", "7", "NULL"))
            if default == "NULL" and "Nullable" not in kind:
                default = "1"
            table.fields.append(Field("own", kind, (), "DEFAULT", default, "own"))
        return table

    def second_writer(self, text: str, target: TableDraft) -> str:
        """Return the query of another view into a CoalescingMergeTree; it may give the column that the
        target computes for the first."""
        chance = self.of_targets
        if target.engine != "CoalescingMergeTree" or all(
            f.kind != "DEFAULT" for f in target.fields
        ):
            return text
        if not text.startswith("SELECT ") or " FROM " not in text or chance.random() < 0.3:
            return text
        value = chance.choice(("5", "max(length(toString(g)))", "sum(g)", "g", "min(g)", "NULL"))
        return text.replace(" FROM ", f", {value} AS own FROM ", 1)

    def _field(self, field: Field, table: TableDraft) -> Field:
        if field.name == "k" and self.key_type:
            return replace(field, type=self.key_type, values=KEYS[self.key_type])
        aggregated = field.type.startswith("SimpleAggregateFunction")
        if field.role == "number" and not aggregated and self.lot(0.3):
            kind = self.chance.choice(list(NUMBERS))
            return replace(field, type=kind, values=NUMBERS[kind])
        return field

    def _engine(self, table: TableDraft, is_dimension: bool) -> None:
        if is_dimension and self.lot(0.35):
            table.engine = self.chance.choice(
                ("Join(ANY, LEFT, k)", "Join(ALL, INNER, k)", "Join(ALL, LEFT, k)", "Set")
            )
            table.more_columns = table.more = ""
        elif self.lot(0.2):
            table.engine = "CoalescingMergeTree"

    def _clauses(self, table: TableDraft) -> None:
        keys = [f.name for f in table.fields if f.role == "key"]
        names = [f.name for f in table.fields]
        if self.lot(0.25):
            table.more_columns += f", PROJECTION pr (SELECT {keys[0]}, count() GROUP BY {keys[0]})"
        if "b" in names and self.lot(0.5):
            table.more_columns += ", INDEX tx b TYPE text(tokenizer = 'splitByNonAlpha')"
        times = table.of_role("time")
        if not times or table.more:
            return
        numbers = [f.name for f in table.of_role("number")]
        if numbers and self.lot(0.3):
            table.fields = [
                replace(f, ttl=f"{times[0].name} + INTERVAL 1 YEAR")
                if f.name == numbers[0] and not f.kind
                else f
                for f in table.fields
            ]
        elif numbers and table.order.startswith("(") and self.lot(0.4):
            by = table.order.strip("()")
            table.more = (
                f" TTL {times[0].name} + INTERVAL 1 YEAR GROUP BY {by}"
                f" SET {numbers[0]} = max({numbers[0]})"
            )


def _with_plain_number(table: TableDraft) -> TableDraft:
    """Return the table with its first merged number as a plain one, of which a merge keeps one row's
    value."""
    table = table.copy()
    merged = [f for f in table.fields if f.type.startswith("SimpleAggregateFunction")]
    if merged:
        plain = replace(merged[0], type=value_type(merged[0].type))
        table.fields = [plain if f is merged[0] else f for f in table.fields]
    return table
