"""Draws queries of views over the whole grammar, and the columns that they return.

An `Output` holds what a target must know of a column: whether it is a key, which aggregate made it,
and its type as far as the generator knows it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.definitions.forms import Forms
from tests.definitions.parts import Expression, Parts
from tests.definitions.tables import Field, TableDraft, plain_of, value_type, wide


@dataclass(frozen=True)
class Output:
    """A column of a query. `form` says how an aggregate is stored: "state", "simple" or "value"; ""
    for keys and rows."""

    name: str
    expression: str
    type: str
    is_key: bool = False
    form: str = ""
    function: str = ""


@dataclass
class QueryDraft:
    """A SELECT and its columns. `grouped` says that these are keys and aggregates."""

    text: str
    outputs: list[Output]
    grouped: bool
    source: str
    reads: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)


def draw_query(
    chance: random.Random,
    source: TableDraft,
    others: Sequence[TableDraft],
    plain_views: Sequence[tuple[str, TableDraft]],
    merging: bool,
    forms: Forms,
) -> QueryDraft:
    """Draw a query whose first relation is the source. `merging`: the target's merges combine rows,
    so the query mostly groups by its keys."""
    drawing = _Drawing(chance, source, others, plain_views, forms)
    return drawing.draw(merging)


class _Drawing(Parts):
    # --- aggregates

    def aggregate(self, name: str, merging: bool, summing: bool = False) -> Output:
        chance = self.chance
        merged = None if self.alias else self.forms.merged_state(self.source)
        if merged is not None and merging and not summing:
            return Output(name, merged.state, merged.type, form="state", function=merged.function)
        if merged is not None and not merging:
            return Output(name, f"toFloat64({merged.value})", "Float64", form="value")
        if self.plain and self.lot(0.8):
            return self.sum_of_sums(name)
        x = self.number()
        arrays = () if self.more or self.alias else self.source.of_role("array")
        newest = None if summing else self.forms.newest.aggregate(x.text, x.type, arrays)
        if not (summing or self.alias or self.more):
            newest = self.forms.latest.aggregate(self.source.fields, x.text) or newest
        if newest is not None and merging:
            plain = newest.function.partition("(")[0]
            return Output(
                name, newest.call("State"), newest.state_type, form="state", function=plain
            )
        if newest is not None:
            return Output(name, f"toString({newest.call()})", "String", form="value")
        if summing or (merging and self.lot(0.45)):
            kind, lot = plain_of(x.type), chance.random()
            if summing or lot < 0.6:
                text, type_, function = chance.choice(
                    [
                        ("count()", "UInt64", "sum"),
                        (f"sum({x.text})", wide(x.type), "sum"),
                        (f"sum({x.text})", wide(x.type), "sum"),
                        (
                            f"countIf(toInt64({x.text}) > 0)"
                            if "Nullable" not in x.type
                            else "count()",
                            "UInt64",
                            "sum",
                        ),
                        (f"sumIf({x.text}, {self.flag()})", wide(x.type), "sum"),
                        (f"sum({x.text})", wide(x.type), "sum"),
                        (
                            f"sumIfOrNull({x.text}, {self.flag()})"
                            if self.lot(0.3)
                            else f"sum({x.text})",
                            f"Nullable({plain_of(wide(x.type))})",
                            "sum",
                        ),
                    ]
                )
            else:
                function = chance.choice(("min", "max", "any", "min", "max", "any", "anyLast"))
                text, type_ = f"{function}({x.text})", x.type
            del kind
            return Output(name, text, type_, form="simple", function=function)
        if merging and self.lot(0.75):
            function, arguments = chance.choice(
                [
                    ("uniqExact", [x]),
                    ("avg", [x]),
                    ("uniq", [x]),
                    ("quantile(0.5)", [x]),
                    ("groupUniqArray", [x]),
                    ("sum", [x]),
                    ("count", []),
                    ("max", [x]),
                    ("argMax", [x, self.number()]),
                    ("groupArray", [x]),
                    ("stddevPop", [x]),
                    ("any", [x]),
                    ("anyLast", [x]),
                    ("avgWeighted", [x, self.number()]),
                    ("argMin", [x, self.number()]),
                    ("sumOrNull", [x]),
                    ("avgOrNull", [x]),
                    ("covarPop", [x, self.number()]),
                    ("median", [x]),
                    ("groupBitOr", [x]),
                    ("quantileExact", [x]),
                    ("quantilesExact(0.1, 0.9)", [x]),
                    ("first_value", [x]),
                    ("covarPop", [x, self.number()]),
                ]
            )
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
        text, type_ = chance.choice(
            [
                (f"avg({x.text})", "Float64"),
                ("count()", "UInt64"),
                (f"uniqExact({x.text})", "UInt64"),
                (f"sum({x.text})", wide(x.type)),
                (f"max({x.text})", x.type),
                (f"groupUniqArray(toString({x.text}))", "Array(String)"),
                (f"sum({x.text}) + 1", "Int64"),
                (f"count(DISTINCT {x.text})", "UInt64"),
                (f"quantile({x.text})", "Float64"),
                (f"sum(DISTINCT {x.text})", wide(x.type)),
                (f"any({x.text})", x.type),
                ("sum(1)", "UInt64"),
                (f"varSamp({x.text})", "Float64"),
                (f"toInt32(sum({x.text}))", "Int32"),
            ]
        )
        return Output(name, text, type_, form="value", function="")

    def sum_of_sums(self, name: str) -> Output:
        """Draw an aggregate of a number column with the function that the source's merges apply to
        it."""
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

    # --- the whole query

    def draw(self, merging: bool) -> QueryDraft:
        """Draw the whole query."""
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
        by = [o.expression for o in outputs if o.is_key]
        by = self.forms.grouping(by) or ", ".join(by)
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
            f
            for f in self.source.fields
            if f.role in ("sign", "version", "deleted", "text")
            and f.kind != "EPHEMERAL"
            and self.lot(0.5)
        ]
        dot = f"{self.alias}." if self.alias else ""
        outputs += [Output(f.name, f"{dot}{f.name}", f.type, form=f.role) for f in shown]
        if self.joined and self.lot(0.25):  # output the joined table's columns alone
            outputs = [
                Output(f"m{at}", f"j.{f.name}", f.type, form="row")
                for at, f in enumerate(self.joined)
            ]
        window = self.forms.window(outputs[0].expression, outputs[-1].expression)
        if window is not None:
            outputs.append(Output("mw", *window, form="row"))
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
