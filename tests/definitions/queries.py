"""Draws queries of views, from all that may stand in one, and the columns that they give.

An `Output` says what a target needs to know about a column: whether it is a key, which aggregate
made it, and its type as far as the drawing knows it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.definitions.tables import VOLATILE, Field, TableDraft, wide


@dataclass(frozen=True)
class Output:
    """`form` is how an aggregate is stored: "state", "simple" or "value"; "" for keys and rows."""

    name: str
    expression: str
    type: str
    is_key: bool = False
    form: str = ""
    function: str = ""


@dataclass
class QueryDraft:
    """`text` is the SELECT, `grouped` tells that its outputs are keys and aggregates."""

    text: str
    outputs: list[Output]
    grouped: bool
    source: str
    reads: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Expression:
    text: str
    type: str


def draw_query(
    chance: random.Random, source: TableDraft, others: Sequence[TableDraft],
    plain_views: Sequence[tuple[str, TableDraft]], merging: bool, prefix: str = "",
) -> QueryDraft:  # fmt: skip
    """A query over the source first; `merging` tells that its target joins rows, so most of the
    time it groups by what it gives."""
    drawing = _Drawing(chance, source, others, plain_views)
    return drawing.draw(merging)


class _Drawing:
    def __init__(
        self, chance: random.Random, source: TableDraft, others: Sequence[TableDraft],
        plain_views: Sequence[tuple[str, TableDraft]],
    ) -> None:  # fmt: skip
        self.chance, self.source, self.others, self.plain_views = (
            chance,
            source,
            others,
            plain_views,
        )
        self.reads: list[str] = []
        self.features: list[str] = []
        self.alias = ""
        self.more: list[Expression] = []
        self.joined: list[Field] = []
        # What a source that joins its rows cannot tell apart: plain keys, sums of sums.
        self.plain = source.engine in ("SummingMergeTree", "AggregatingMergeTree") and self.lot(0.5)

    def lot(self, share: float) -> bool:
        return self.chance.random() < share

    # --- relations

    def a_table(self) -> tuple[str, TableDraft] | None:
        """Another table, or a plain view of one, to be read beside the source."""
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
            ("INNER JOIN", "LEFT JOIN", "ANY LEFT JOIN", "SEMI LEFT JOIN", "ANTI LEFT JOIN", "LEFT ANY JOIN", "CROSS JOIN", "RIGHT JOIN", "FULL JOIN", "ASOF JOIN"),
            (40, 32, 5, 5, 4, 2, 3, 2, 2, 1),
        )[0]  # fmt: skip
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
        same = [f for f in self.source.fields if f.type == key.type and f.role in ("key", "number")]
        return f"s.{same[0].name if same else 'k'}"

    # --- scalars

    def columns(self, *roles: str) -> list[Expression]:
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
        """A condition of an -If aggregate."""
        numbers = [
            e.text
            for e in self.columns("key", "number")
            if "Int" in e.type and "Nullable" not in e.type
        ]
        return f"{numbers[0]} > 0" if numbers else "1"

    def key(self) -> Expression:
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
        return chance.choice([
            Expression(f"toString({found.text})", "String"),
            Expression(f"ifNull(toString({found.text}), '-')", "String"),
            Expression(f"length(toString({found.text}))", "UInt64"),
            Expression(f"upper(ifNull(toString({found.text}), ''))", "String"),
            Expression(f"if(ifNull(toString({found.text}), '') = 'a', 'first', 'rest')", "String"),
            Expression(f"intHash64(length(ifNull(toString({found.text}), ''))) % 3", "UInt64"),
        ])  # fmt: skip

    def number(self) -> Expression:
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

    # --- aggregates

    def aggregate(self, name: str, merging: bool, summing: bool = False) -> Output:
        chance = self.chance
        if self.plain and self.lot(0.8):
            return self.sum_of_sums(name)
        x = self.number()
        if summing or (merging and self.lot(0.45)):
            kind, lot = plain_of(x.type), chance.random()
            if summing or lot < 0.6:
                text, type_, function = chance.choice([
                    ("count()", "UInt64", "sum"), (f"sum({x.text})", wide(x.type), "sum"),
                    (f"sum({x.text})", wide(x.type), "sum"), (f"countIf(toInt64({x.text}) > 0)" if "Nullable" not in x.type else "count()", "UInt64", "sum"),
                    (f"sumIf({x.text}, {self.flag()})", wide(x.type), "sum"), (f"sum({x.text})", wide(x.type), "sum"), (f"sumIfOrNull({x.text}, {self.flag()})" if self.lot(0.3) else f"sum({x.text})", f"Nullable({plain_of(wide(x.type))})", "sum"),
                ])  # fmt: skip
            else:
                function = chance.choice(("min", "max", "any", "min", "max", "any", "anyLast"))
                text, type_ = f"{function}({x.text})", x.type
            del kind
            return Output(name, text, type_, form="simple", function=function)
        if merging and self.lot(0.75):
            function, arguments = chance.choice([
                ("uniqExact", [x]), ("avg", [x]), ("uniq", [x]), ("quantile(0.5)", [x]), ("groupUniqArray", [x]),
                ("sum", [x]), ("count", []), ("max", [x]), ("argMax", [x, self.number()]), ("groupArray", [x]),
                ("stddevPop", [x]), ("any", [x]), ("anyLast", [x]), ("avgWeighted", [x, self.number()]), ("argMin", [x, self.number()]),
                ("sumOrNull", [x]), ("avgOrNull", [x]), ("covarPop", [x, self.number()]), ("median", [x]), ("groupBitOr", [x]),
                ("quantileExact", [x]), ("quantilesExact(0.1, 0.9)", [x]), ("first_value", [x]), ("corr", [x, self.number()]),
            ])  # fmt: skip
            plain, bracket, parameters = function.partition("(")
            said = ", ".join(a.text for a in arguments)
            types = "".join(f", {a.type}" for a in arguments)
            if self.lot(0.15):
                return Output(
                    name,
                    f"{plain}IfState{bracket}{parameters}({said + ', ' if said else ''}{self.flag()})",
                    f"AggregateFunction({plain}If{bracket}{parameters}{types}, UInt8)",
                    form="state",
                    function=plain,
                )
            return Output(
                name,
                f"{plain}State{bracket}{parameters}({said})",
                f"AggregateFunction({function}{types})",
                form="state",
                function=plain,
            )
        text, type_ = chance.choice([
            (f"avg({x.text})", "Float64"), ("count()", "UInt64"), (f"uniqExact({x.text})", "UInt64"),
            (f"sum({x.text})", wide(x.type)), (f"max({x.text})", x.type), (f"groupUniqArray(toString({x.text}))", "Array(String)"),
            (f"sum({x.text}) + 1", "Int64"), (f"count(DISTINCT {x.text})", "UInt64"), (f"quantile({x.text})", "Float64"),
            (f"sum(DISTINCT {x.text})", wide(x.type)), (f"any({x.text})", x.type), ("sum(1)", "UInt64"),
            (f"varSamp({x.text})", "Float64"), (f"toInt32(sum({x.text}))", "Int32"),
        ])  # fmt: skip
        return Output(name, text, type_, form="value", function="")

    def sum_of_sums(self, name: str) -> Output:
        """The column of the source, joined as its merges join it."""
        found = self.chance.choice(
            self.source.of_role("number") or [Field("1", "UInt8", role="number")]
        )
        inside, kind = found.type.partition("(")[2].partition(",")[0], value_type(found.type)
        function = inside if found.type.startswith("SimpleAggregateFunction") else "sum"
        if function == "sum":
            kind = wide(kind)
        if self.lot(0.3):
            return Output(
                name,
                f"{function}State({found.name})",
                f"AggregateFunction({function}, {value_type(found.type)})",
                form="state",
                function=function,
            )
        return Output(name, f"{function}({found.name})", kind, form="simple", function=function)

    # --- the whole

    def draw(self, merging: bool) -> QueryDraft:
        chance = self.chance
        relation, prelude = self.source.name, ""
        lot = chance.random()
        if lot < 0.06:
            first = self.source.fields[0].name
            relation = f"(SELECT * FROM {self.source.name} WHERE toString({first}) != '2')"
            self.features.append("FROM subquery")
        elif lot < 0.1:
            numbers = ", ".join(f.name for f in self.source.fields if f.kind in ("", "DEFAULT"))
            relation = f"(SELECT {numbers} FROM {self.source.name})"
            self.features.append("FROM subquery")
        elif lot < 0.14:
            prelude = f"WITH q AS (SELECT * FROM {self.source.name}) "
            relation = "q"
            self.features.append("CTE")
        elif lot < 0.17:
            plain = [p for p in self.plain_views if p[1].name == self.source.name]
            if plain:
                relation = plain[0][0]
                self.features.append("plain view")
        elif lot < 0.19 and "MergeTree" in self.source.engine and self.source.engine != "MergeTree":
            relation += " FINAL"
        arrays = self.source.of_role("array")
        tail = ""
        if arrays and self.lot(0.5) and not relation.endswith("FINAL"):
            tail = f" {self.chance.choice(('ARRAY', 'LEFT ARRAY'))} JOIN arr AS el"
            self.more.append(Expression("el", "UInt8"))
            self.features.append("ARRAY JOIN")
        elif self.others and not self.plain and self.lot(0.42) and not relation.endswith("FINAL"):
            tail = self.join()
            if tail and relation == "q":
                tail = tail
        where = f" WHERE {self.condition()}" if self.lot(0.35) and not self.plain else ""
        grouped = self.lot(0.93) if merging else self.lot(0.3)
        grouped = grouped or (self.plain and merging)
        if grouped:
            return self._grouped(prelude, relation + tail + where, merging)
        return self._rows(prelude, relation + tail + where)

    def _grouped(self, prelude: str, rest: str, merging: bool) -> QueryDraft:
        chance = self.chance
        keys = [self.key() for _ in range(chance.choices((0, 1, 2), (7, 60, 33))[0])]
        outputs: list[Output] = []
        for at, key in enumerate(dict.fromkeys(keys)):
            name = (
                key.text.rpartition(".")[2]
                if key.text.replace(".", "").replace("_", "").isalnum()
                else f"k{at}"
            )
            if (
                name.startswith("_")
                or not name.isidentifier()
                or name[0] == "m"
                or any(o.name == name for o in outputs)
            ):
                name = f"k{at}"
            outputs.append(Output(name, key.text, key.type, is_key=True))
        summing = merging and self.lot(0.35)
        count = chance.randint(1, 3)
        outputs += [self.aggregate(f"m{at}", merging, summing) for at in range(count)]
        said = ", ".join(
            o.expression if o.expression == o.name else f"{o.expression} AS {o.name}"
            for o in outputs
        )
        by = ", ".join(o.expression for o in outputs if o.is_key)
        text = f"{prelude}SELECT {said} FROM {rest}" + (f" GROUP BY {by}" if by else "")
        if self.lot(0.03):
            text += " HAVING count() > 1"
        if self.lot(0.02):
            text += chance.choice((" LIMIT 2", " ORDER BY 1 LIMIT 1"))
        if self.lot(0.05) and not prelude:
            text += f" UNION ALL {text}"
            self.features.append("UNION ALL")
        return QueryDraft(text, outputs, True, self.source.name, self.reads, self.features)

    def _rows(self, prelude: str, rest: str) -> QueryDraft:
        chance = self.chance
        outputs: list[Output] = []
        for key in dict.fromkeys(self.key() for _ in range(chance.randint(1, 2))):
            outputs.append(Output(f"k{len(outputs)}", key.text, key.type, is_key=True))
        for at in range(chance.randint(0, 2)):
            number = self.number()
            outputs.append(Output(f"m{at}", number.text, number.type, form="row"))
        shown = [
            f for f in self.source.fields
            if f.role in ("sign", "version", "deleted", "text") and f.kind != "EPHEMERAL" and self.lot(0.5)
        ]  # fmt: skip
        dot = f"{self.alias}." if self.alias else ""
        outputs += [Output(f.name, f"{dot}{f.name}", f.type, form=f.role) for f in shown]
        if self.joined and self.lot(0.25):  # columns of the joined table alone
            outputs = [
                Output(f"m{at}", f"j.{f.name}", f.type, form="row")
                for at, f in enumerate(self.joined)
            ]
        said = ", ".join(
            o.expression if o.expression == o.name else f"{o.expression} AS {o.name}"
            for o in outputs
        )
        distinct = "DISTINCT " if self.lot(0.04) else ""
        text = f"{prelude}SELECT {distinct}{said} FROM {rest}"
        if self.lot(0.05):
            text += chance.choice(
                (
                    " LIMIT 3",
                    f" ORDER BY {outputs[0].name} LIMIT 1 BY {outputs[0].name}",
                    " ORDER BY ALL LIMIT 2",
                )
            )
        elif self.lot(0.05) and not prelude:
            text += f" UNION ALL {text}"
            self.features.append("UNION ALL")
        return QueryDraft(text, outputs, False, self.source.name, self.reads, self.features)


def value_type(kind: str) -> str:
    """The type of the values of a SimpleAggregateFunction column."""
    return kind.partition(", ")[2][:-1] if kind.startswith("SimpleAggregateFunction(") else kind


def plain_of(kind: str) -> str:
    return (
        kind.removeprefix("Nullable(").removesuffix(")") if kind.startswith("Nullable(") else kind
    )
