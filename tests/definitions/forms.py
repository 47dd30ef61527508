"""Draws newer forms of queries and statements, from a random source of their own: a seed gives the
script that the grammar alone gives, with some of its parts in these forms.

Queries: functions that users made in SQL, lambdas, JSON functions, states that are merged again,
window functions, grouping sets. Statements: CREATE [OR REPLACE] FUNCTION, plain views that finalize
a target's states, INSERT … REPLACE.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.definitions.documents import Documents
from tests.definitions.latest import Latest
from tests.definitions.newest import Newest
from tests.definitions.tables import Field, TableDraft, value_type

FUNCTIONS = (
    "CREATE FUNCTION one_more AS (a) -> toInt64(ifNull(a, 0)) + 1",
    "CREATE FUNCTION in_brackets AS (a) -> concat('<', ifNull(toString(a), ''), '>')",
)
REDEFINED = (
    "CREATE OR REPLACE FUNCTION one_more AS (a) -> toInt64(ifNull(a, 0)) + 2",
    "CREATE OR REPLACE FUNCTION in_brackets AS (a) -> concat('(', ifNull(toString(a), ''), ')')",
    "DROP FUNCTION one_more",
)
FINAL_TYPES = {"uniqExact": "UInt64", "uniq": "UInt64", "count": "UInt64", "avg": "Float64"}
"""Types of finalized states, as far as the generator knows them."""


@dataclass(frozen=True)
class MergedState:
    """The merge of a column of states: as a state again (`state`), or as a value (`value`)."""

    state: str
    value: str
    type: str
    function: str


class Forms:
    """A source of newer forms for one script; a third of the scripts have some."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"forms {seed}")
        self.used = self.lot(0.35)
        self.has_functions = self.used and self.lot(0.5)
        self.newest = Newest(seed)
        self.latest = Latest(seed)
        self.documents = Documents(seed)

    def lot(self, share: float) -> bool:
        """Return True with the given probability."""
        return self.chance.random() < share

    def draws(self, share: float) -> bool:
        """Return whether the script has newer forms, and one stands here."""
        return self.used and self.lot(share)

    # --- expressions

    def number(self, x: str, arrays: Sequence[Field]) -> tuple[str, str] | None:
        """Return an expression over the number `x`, or over an array column, and its type; mostly
        None."""
        if not self.draws(0.3):
            return None
        whole = f"toInt64(ifNull({x}, 0))"
        choices = [
            (f"arraySum(z -> z * 2, [{whole}])", "Int64"),
            (f"arrayFold((acc, z) -> acc + z, [{whole}], toInt64(0))", "Int64"),
            (f"JSONExtractInt(concat('{{\"a\":', toString({whole}), '}}'), 'a')", "Int64"),
        ]
        if self.has_functions:
            choices += [(f"one_more({x})", "Int64")] * 2
        if arrays:
            name = arrays[0].name
            choices += [
                (f"arraySum(z -> z + 1, {name})", "UInt64"),
                (f"arrayCount(z -> z > 0, {name})", "UInt32"),
            ]
        return self.chance.choice(choices)

    def key(self, x: str) -> str | None:
        """Return a String expression over the key `x`; mostly None."""
        if not self.draws(0.2):
            return None
        text = f"ifNull(toString({x}), '-')"
        choices = [
            f"arrayStringConcat(arrayMap(z -> upper(z), [{text}]))",
            f"arrayFilter(z -> z != 'b', [{text}, 'b'])[1]",
            f"JSONExtractString(concat('{{\"a\":\"', {text}, '\"}}'), 'a')",
        ]
        if self.has_functions:
            choices += [f"in_brackets({x})"] * 2
        return self.chance.choice(choices)

    def merged_state(self, source: TableDraft) -> MergedState | None:
        """Return the merge of a column of states of the source, or None."""
        states = [f for f in source.fields if f.type.startswith("AggregateFunction(")]
        if not states or not self.draws(0.6):
            return None
        found = self.chance.choice(states)
        function = function_of(found.type)
        name, bracket, parameters = function.partition("(")
        return MergedState(
            f"{name}MergeState{bracket}{parameters}({found.name})",
            f"{name}Merge{bracket}{parameters}({found.name})",
            found.type,
            name,
        )

    def window(self, key: str, x: str) -> tuple[str, str] | None:
        """Return a window function and its type; mostly None."""
        if not self.draws(0.1):
            return None
        return self.chance.choice(
            [
                (f"row_number() OVER (PARTITION BY {key} ORDER BY {x})", "UInt64"),
                (f"count() OVER (PARTITION BY {key})", "UInt64"),
                (f"toInt64(sum(toInt64(ifNull({x}, 0))) OVER (ORDER BY {key}))", "Int64"),
            ]
        )

    def grouping(self, keys: Sequence[str]) -> str | None:
        """Return the GROUP BY list with subtotals of the keys; mostly None."""
        if not keys or not self.draws(0.08):
            return None
        said = ", ".join(keys)
        return self.chance.choice(
            [
                f"ROLLUP({said})",
                f"CUBE({said})",
                f"GROUPING SETS (({keys[0]}), ({said}))",
                f"GROUPING SETS (({said}))",
                f"{said} WITH ROLLUP",
                f"{said} WITH TOTALS",
            ]
        )

    # --- statements

    def functions(self) -> list[str]:
        """Return the statements that create the script's functions."""
        return list(FUNCTIONS) if self.has_functions else []

    def read_view(self, target: TableDraft) -> tuple[str, TableDraft] | None:
        """Return the statement for a plain view that finalizes the target's states, and what it
        shows; mostly None."""
        keys = [f for f in target.fields if f.role == "key"]
        if not target.engine.startswith("AggregatingMergeTree") or not keys or not self.draws(0.4):
            return None
        said, fields = [f.name for f in keys], list(keys)
        for found in target.fields:
            if found.type.startswith("SimpleAggregateFunction("):
                function, kind = function_of(found.type), value_type(found.type)
                said.append(f"{function}({found.name}) AS {found.name}")
                fields.append(Field(found.name, kind, role="number"))
            elif found.type.startswith("AggregateFunction("):
                function = function_of(found.type)
                name, bracket, parameters = function.partition("(")
                if name in FINAL_TYPES:
                    merged = f"{name}Merge{bracket}{parameters}({found.name})"
                    said.append(f"{merged} AS {found.name}")
                    fields.append(Field(found.name, FINAL_TYPES[name], role="number"))
        name, by = f"rv_{target.name}", ", ".join(f.name for f in keys)
        text = f"CREATE VIEW {name} AS SELECT {', '.join(said)} FROM {target.name} GROUP BY {by}"
        return text, TableDraft(name, "", fields)

    def step(self, inputs: Sequence[TableDraft]) -> list[str]:
        """Return the statements of a step in a newer form; mostly none."""
        if not self.draws(0.15):
            return []
        if self.has_functions and self.lot(0.3):
            return [self.chance.choice(REDEFINED)]
        table = self.chance.choice(inputs)
        given = [f for f in table.fields if f.is_given]
        keys = [f for f in given if f.role == "key"]
        if not keys:
            return []
        names = ", ".join(f.name for f in given)
        key = self.chance.choice(keys)
        value = self.chance.choice(key.values)
        holds = f"{key.name} IS NULL" if value == "NULL" else f"{key.name} = {value}"
        row = ", ".join(self.chance.choice(f.values) for f in given)
        replaced = self.chance.choice(
            (f"WHERE {holds}", f"USING ({key.name})", f"USING ({key.name}) WHERE {holds}")
        )
        rows = self.chance.choice(
            (
                f"SELECT {names} FROM {table.name} LIMIT 2",
                f"SELECT {names} FROM {table.name} WHERE {holds}",
                f"VALUES ({row})",
            )
        )
        return [f"INSERT INTO {table.name} ({names}) REPLACE {replaced} {rows}"]


def function_of(kind: str) -> str:
    """Return the function of an aggregate type with its parameters: "quantile(0.5)"."""
    inner, depth = kind.partition("(")[2], 0
    for at, letter in enumerate(inner):
        depth += (letter == "(") - (letter == ")")
        if (letter == "," and depth == 0) or depth < 0:
            return inner[:at]
    return inner
