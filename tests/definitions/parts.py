"""Draws the parts of queries: relations besides the source, conditions, keys and numbers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.definitions.forms import Forms
from tests.definitions.tables import VOLATILE, Field, TableDraft, value_type, wide


@dataclass(frozen=True)
class Expression:
    """An expression as SQL, with its type as far as the generator knows it."""

    text: str
    type: str


class Parts:
    """A generator of one query's parts. `reads` lists the relations, `features` the syntax it has
    used."""

    def __init__(
        self,
        chance: random.Random,
        source: TableDraft,
        others: Sequence[TableDraft],
        plain_views: Sequence[tuple[str, TableDraft]],
        forms: Forms,
    ) -> None:
        self.chance, self.source, self.others, self.plain_views = (
            chance,
            source,
            others,
            plain_views,
        )
        self.forms = forms
        self.reads: list[str] = []
        self.features: list[str] = []
        self.alias = ""
        self.more: list[Expression] = []
        self.joined: list[Field] = []
        # Uses only what merges of the source cannot change: plain keys and sums of sums.
        self.plain = source.engine in ("SummingMergeTree", "AggregatingMergeTree") and self.lot(0.5)

    def lot(self, share: float) -> bool:
        """Return True with the given probability."""
        return self.chance.random() < share

    # --- relations

    def a_table(self) -> tuple[str, TableDraft] | None:
        """Draw another table, or a plain view of one, to read besides the source."""
        pool: list[tuple[str, TableDraft]] = [(t.name, t) for t in self.others]
        pool += [p for p in self.plain_views if self.lot(0.5)]
        if not pool:
            return None
        name, table = self.chance.choice(pool)
        self.reads.append(name)
        return name, table

    def join(self) -> str:
        found = self.a_table()
        if found is None:
            return ""
        name, table = found
        keys = table.of_role("key")
        if not keys:
            return ""
        key = keys[0].name
        if not any(
            f.type == keys[0].type and f.role in ("key", "number") for f in self.source.fields
        ):
            return ""
        kind = self.chance.choices(
            (
                "INNER JOIN",
                "LEFT JOIN",
                "ANY LEFT JOIN",
                "SEMI LEFT JOIN",
                "ANTI LEFT JOIN",
                "LEFT ANY JOIN",
                "CROSS JOIN",
                "RIGHT JOIN",
                "FULL JOIN",
                "ASOF JOIN",
            ),
            (40, 32, 5, 5, 4, 2, 3, 2, 2, 1),
        )[0]
        self.features.append(kind)
        numbers = table.of_role("number", "text", "more")
        relation, alias = name, "j"
        final = (
            " FINAL"
            if "MergeTree" in table.engine and table.engine != "MergeTree" and self.lot(0.2)
            else ""
        )
        lot = self.chance.random()
        if lot < 0.15 and numbers:
            number = numbers[0].name
            self.features.append("joined GROUP BY")
            aggregate = self.chance.choice(("sum", "max", "any", "min", "count"))
            if aggregate == "sum" and numbers[0].role != "number":
                aggregate = "max"
            relation = f"(SELECT {key}, {aggregate}({number}) AS {number} FROM {name}{final} GROUP BY {key})"
            kind_of = (
                wide(numbers[0].type)
                if aggregate == "sum"
                else "UInt64"
                if aggregate == "count"
                else numbers[0].type
            )
            table = TableDraft(
                name,
                "",
                [
                    keys[0],
                    Field(
                        number,
                        kind_of,
                        role="number"
                        if aggregate == "sum" or numbers[0].role == "number"
                        else numbers[0].role,
                    ),
                ],
            )
        elif lot < 0.25:
            self.features.append("joined LIMIT")
            order = self.chance.choice(
                ["", f" ORDER BY {key}", f" ORDER BY {key}, {numbers[0].name}" if numbers else ""]
            )
            by = self.chance.choice([f" LIMIT 1 BY {key}", " LIMIT 2"])
            relation = f"(SELECT * FROM {name}{final}{order}{by})"
        elif lot < 0.3:
            relation = f"(SELECT DISTINCT * FROM {name}{final})"
        else:
            relation = name
            if final:
                relation, alias = f"{name} AS j FINAL", ""
        self.alias = "s"
        self.joined = [
            f
            for f in table.fields
            if f.role in ("number", "text", "time") and f.kind in ("", "DEFAULT", "MATERIALIZED")
        ]
        condition = f"ON {self.key_of_source(keys[0])} = j.{key}"
        if kind == "CROSS JOIN":
            condition = ""
        elif self.lot(0.08) and self.joined:
            condition += f" AND j.{self.joined[0].name} = j.{self.joined[0].name}"
        return f" AS s {kind} {relation}{' AS ' + alias if alias else ''} {condition}".rstrip()

    def key_of_source(self, key: Field) -> str:
        """Return a source column of the key's type to join by, else `s.k`."""
        same = [f for f in self.source.fields if f.type == key.type and f.role in ("key", "number")]
        return f"s.{same[0].name if same else 'k'}"

    # --- scalars

    def columns(self, *roles: str) -> list[Expression]:
        """Return the columns in scope with one of these roles."""
        dot = f"{self.alias}." if self.alias else ""
        found = [
            Expression(f"{dot}{f.name}", value_type(f.type))
            for f in self.source.fields
            if f.role in roles and f.kind != "EPHEMERAL"
        ]
        found += [
            Expression(f"j.{f.name}", value_type(f.type)) for f in self.joined if f.role in roles
        ]
        return found + [m for m in self.more if "number" in roles]

    def scalar_subquery(self) -> Expression | None:
        """Draw a scalar subquery over another table, or None if there is none with numbers."""
        found = self.a_table()
        if found is None:
            return None
        name, table = found
        numbers = table.of_role("number")
        if not numbers:
            return None
        self.features.append("scalar subquery")
        number = numbers[0]
        aggregate = self.chance.choice(("sum", "max", "count", "any", "min"))
        if self.lot(0.15):
            order = self.chance.choice(["", f" ORDER BY {number.name}", " ORDER BY k"])
            return Expression(
                f"(SELECT {number.name} FROM {name}{order} LIMIT 1)", f"Nullable({number.type})"
            )
        return Expression(
            f"coalesce((SELECT toInt64({aggregate}({number.name})) FROM {name}), 0)", "Int64"
        )

    def condition(self) -> str:
        """Draw a condition for WHERE."""
        chance = self.chance
        lot = chance.random()
        found = self.a_table() if lot < 0.45 else None
        dot = f"{self.alias}." if self.alias else ""
        if found is not None:
            name, table = found
            keys = table.of_role("key")
            if keys:
                self.features.append("IN")
                inner = f"SELECT {keys[0].name} FROM {name}"
                if table.of_role("number") and self.lot(0.5):
                    number = table.of_role("number")[0].name
                    inner += chance.choice(
                        [
                            f" WHERE {number} > 0",
                            f" WHERE {number} = 1",
                            f" GROUP BY {keys[0].name} HAVING count() > 1",
                            f" GROUP BY {keys[0].name} HAVING sum({number}) > 1",
                        ]
                    )
                if self.lot(0.1):
                    inner += f" ORDER BY {keys[0].name} LIMIT 2"
                elif self.lot(0.1):
                    inner += " LIMIT 1"
                same = [
                    f
                    for f in self.source.fields
                    if f.type == keys[0].type and f.role in ("key", "number")
                ]
                if not same:
                    return "1"
                return f"{dot}{same[0].name} {'NOT ' if self.lot(0.2) else ''}IN ({inner})"
        if lot < 0.5:
            scalar = self.scalar_subquery()
            numbers = self.source.of_role("number", "key")
            if scalar is not None and numbers and "Int" in numbers[0].type:
                return f"{dot}{numbers[0].name} < {scalar.text}"
        if lot < 0.52:
            found = self.a_table()
            if found is not None:
                self.features.append("EXISTS")
                return f"EXISTS (SELECT 1 FROM {found[0]})"
        if lot < 0.54:
            self.features.append("volatile")
            return f"length(toString({chance.choice(VOLATILE)})) > 0"
        numbers = [f.name for f in self.source.fields if f.role == "number" or f.type == "UInt8"]
        if not numbers:
            return "1"
        x = f"{dot}{chance.choice(numbers)}"
        return chance.choice(
            [f"{x} > 0", f"{x} != 2", f"{x} IN (1, 2)", f"{x} IN (-1, 1, 300)", f"{x} IS NOT NULL"]
        )

    def flag(self) -> str:
        """Draw a condition for an -If aggregate."""
        numbers = [
            e.text
            for e in self.columns("key", "number")
            if "Int" in e.type and "Nullable" not in e.type
        ]
        return f"{numbers[0]} > 0" if numbers else "1"

    def key(self) -> Expression:
        """Draw an expression to group by."""
        found = self._key()
        dot = f"{self.alias}." if self.alias else ""
        latest = None if self.plain else self.forms.latest.key(self.source.fields, dot)
        if not self.plain:
            latest = latest or self.forms.documents.key(self.source.fields, dot)
        if latest is not None:
            return Expression(latest, "String")
        newer = None if self.plain else self.forms.key(found.text)
        return found if newer is None else Expression(newer, "String")

    def _key(self) -> Expression:
        chance = self.chance
        keys = self.columns("key")
        if self.plain and keys:
            return chance.choice(keys)
        if not keys or self.lot(0.12):
            keys = keys + self.columns("number", "text", "time") or [Expression("1", "UInt8")]
        found = chance.choice(keys)
        lot = chance.random()
        if lot < 0.62:
            return found
        if lot < 0.66:
            self.features.append("volatile")
            return Expression(f"toString({chance.choice(VOLATILE)})", "String")
        if lot < 0.69:
            self.features.append("virtual")
            return Expression(
                chance.choice(("_part", "_partition_id", "_table", "toString(_part_offset)")),
                "String",
            )
        times = self.columns("time")
        if times and lot < 0.8:
            function = chance.choice(("toDate", "toMonday", "toStartOfMonth", "toStartOfHour"))
            at = chance.choice(times)
            return Expression(
                f"{function}({at.text})",
                "Date" if function != "toStartOfHour" else "DateTime('UTC')",
            )
        return chance.choice(
            [
                Expression(f"toString({found.text})", "String"),
                Expression(f"ifNull(toString({found.text}), '-')", "String"),
                Expression(f"length(toString({found.text}))", "UInt64"),
                Expression(f"upper(ifNull(toString({found.text}), ''))", "String"),
                Expression(
                    f"if(ifNull(toString({found.text}), '') = 'a', 'first', 'rest')", "String"
                ),
                Expression(f"intHash64(length(ifNull(toString({found.text}), ''))) % 3", "UInt64"),
            ]
        )

    def number(self) -> Expression:
        """Draw an expression to aggregate."""
        found = self._number()
        arrays = () if self.more or self.alias else self.source.of_role("array")
        keys = [(key.text, key.type) for key in self.columns("key")]
        looked_up = None if self.plain else self.forms.newest.looked_up(keys)
        if looked_up is not None:
            return Expression(*looked_up)
        dot = f"{self.alias}." if self.alias else ""
        latest = (
            None if self.plain else self.forms.latest.number(self.source.fields, dot, found.text)
        )
        if not self.plain:
            latest = latest or self.forms.documents.number(self.source.fields, dot)
        if latest is not None:
            return Expression(*latest)
        newer = None if self.plain else self.forms.number(found.text, arrays)
        return found if newer is None else Expression(*newer)

    def _number(self) -> Expression:
        numbers = self.columns("number") or [Expression("1", "UInt8")]
        found = self.chance.choice(numbers)
        lot = self.chance.random()
        if lot < 0.7 or self.plain:
            return found
        if lot < 0.74:
            self.features.append("volatile")
            return Expression(f"length(toString({self.chance.choice(VOLATILE)}))", "UInt64")
        if lot < 0.8:
            return self.scalar_subquery() or found
        if lot < 0.9:
            return Expression(
                f"toFloat64({found.text}) * 0.5",
                "Nullable(Float64)" if "Nullable" in found.type else "Float64",
            )
        if "Decimal" in found.type or "Float" in found.type or found.type == "UInt64":
            return found
        function = "abs" if lot < 0.95 else "negate"
        return Expression(
            f"toInt64({function}({found.text}))",
            "Nullable(Int64)" if "Nullable" in found.type else "Int64",
        )
