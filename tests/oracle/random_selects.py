"""Random typed SELECTs over random tables, a function of a seed.

They cover WHERE, GROUP BY with aggregates and combinators, HAVING, ORDER BY, LIMIT, LIMIT BY,
DISTINCT, JOINs, ARRAY JOIN, IN, scalar subqueries, CTEs and set operations. Every answer is one
multiset of rows: LIMIT only follows LIMIT BY of the sorted column."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from tests.oracle.random_expressions import CONSTANTS, Expressions
from tests.oracle.random_values import Column, Table, random_table

ORDERED = ("int", "bool", "string", "date", "datetime", "datetime64", "decimal", "fixed", "uuid")
_AGGREGATES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("count", ("int",)),
    ("sum", ("int",)),
    ("sum", ("decimal",)),
    ("min", ("int",)),
    ("max", ("string",)),
    ("min", ("datetime",)),
    ("max", ("date",)),
    ("avg", ("int",)),
    ("avg", ("decimal",)),
    ("uniqExact", ("string",)),
    ("uniqExact", ("int",)),
    ("uniq", ("int",)),
    ("groupBitAnd", ("int",)),
    ("groupBitOr", ("int",)),
    ("groupBitXor", ("int",)),
    ("argMin", ("string", "int")),
    ("argMax", ("int", "date")),
    ("quantileExact", ("int",)),
    ("sumWithOverflow", ("int",)),
    ("median", ("int",)),
    ("stddevPop", ("decimal",)),
    ("min", ("decimal",)),
    ("max", ("datetime64",)),
    ("varSamp", ("int",)),
    ("max", ("fixed",)),
    ("min", ("uuid",)),
    ("corr", ("int", "int")),
    ("covarPop", ("int", "int")),
    ("sum", ("bool",)),
    ("max", ("bool",)),
)
_COMBINATORS = (
    "",
    "",
    "",
    "If",
    "OrNull",
    "OrDefault",
    "IfOrNull",
    "OrNullIf",
    "IfOrDefault",
    "OrDefaultIf",
    "Distinct",
    "DistinctIf",
    "Array",
    "ArrayIf",
    "IfState",
    "State",
    "DistinctIfOrNull",
)
_JOINS = ("INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
_SETS = (
    "UNION ALL",
    "UNION DISTINCT",
    "EXCEPT",
    "INTERSECT",
    "EXCEPT DISTINCT",
    "INTERSECT DISTINCT",
)
TABLES = (("r1", "a"), ("r2", "b"))
_DEPTH = 3


class Statements:
    """A generator of a seed's tables and statements."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.tables = [random_table(self.draw, name, prefix) for name, prefix in TABLES]

    def setup(self) -> list[str]:
        """Return the statements that create and fill the tables."""
        return [statement for table in self.tables for statement in table.statements()]

    def typed(self, statement: str) -> str:
        """Return the statement with each column's type after its name: `a0[UInt8]`."""
        types = {c.name: c.type_name for table in self.tables for c in table.columns}
        return re.sub(
            r"\b[ab]\d+\b", lambda m: f"{m.group()}[{types.get(m.group(), '')}]", statement
        )

    def statement(self) -> str:
        shapes = (
            self._rows,
            self._rows,
            self._groups,
            self._groups,
            self._whole,
            self._join,
            self._set,
            self._distinct,
            self._limit_by,
            self._subquery,
            self._common,
            self._membership,
            self._array_join,
            self._merged,
        )
        return self.draw.choice(shapes)()

    def _over(self, columns: Sequence[Column]) -> Expressions:
        return Expressions(self.draw, columns)

    def _depth(self) -> int:
        return self.draw.randint(1, _DEPTH)

    def _where(self, over: Expressions) -> str:
        if self.draw.random() < 0.5:
            return ""
        return f" WHERE {over.of('bool', self._depth() - 1)}"

    def _some(self, over: Expressions, least: int = 1, most: int = 3) -> list[str]:
        return [over.any(self._depth()) for _ in range(self.draw.randint(least, most))]

    def _table(self) -> Table:
        return self.draw.choice(self.tables)

    def _rows(self) -> str:
        table = self._table()
        over = self._over(table.columns)
        return f"SELECT {', '.join(self._some(over))} FROM {table.name}{self._where(over)}{self._limit(over)}"

    def _limit(self, over: Expressions) -> str:
        """Return "" or an ORDER BY. Ties are harmless, since answers are compared as multisets."""
        if self.draw.random() < 0.7:
            return ""
        kinds = [k for k in ORDERED if over.columns.get(k)]
        keys = [f"{over.of(self.draw.choice(kinds), 1)} {self.draw.choice(('ASC', 'DESC'))}"]
        return f" ORDER BY {', '.join(keys)}"

    def _aggregate(self, over: Expressions) -> str:
        draw = self.draw
        name, kinds = draw.choice(_AGGREGATES)
        suffix = draw.choice(_COMBINATORS)
        depth = draw.randint(0, 1)
        if suffix.startswith("Array"):
            if kinds != ("int",):
                return self._aggregate(over)
            arguments = [over.of("array int", depth)]
        else:
            arguments = [over.of(kind, depth) for kind in kinds]
        if "If" in suffix:
            arguments.append(over.of("bool", depth))
        call = f"{name}{suffix}({', '.join(arguments)})"
        return f"finalizeAggregation({call})" if suffix.endswith("State") else call

    def _aggregates(self, over: Expressions) -> list[str]:
        return [self._aggregate(over) for _ in range(self.draw.randint(1, 3))]

    def _keys(self, over: Expressions, depth: int = 1) -> list[str]:
        kinds = [k for k in ORDERED if over.columns.get(k)]
        return [over.of(self.draw.choice(kinds), depth) for _ in range(self.draw.randint(1, 2))]

    def _groups(self) -> str:
        table = self._table()
        over = self._over(table.columns)
        keys = self._keys(over)
        named = [f"{key} AS k{at}" for at, key in enumerate(keys)]
        having = " HAVING count() > 1" if self.draw.random() < 0.2 else ""
        shown = ", ".join([*named, *self._aggregates(over)])
        by = ", ".join(f"k{at}" for at in range(len(keys)))
        return f"SELECT {shown} FROM {table.name}{self._where(over)} GROUP BY {by}{having}"

    def _whole(self) -> str:
        table = self._table()
        over = self._over(table.columns)
        return f"SELECT {', '.join(self._aggregates(over))} FROM {table.name}{self._where(over)}"

    def _merged(self) -> str:
        """Draw a merge of states that a subquery makes by groups."""
        table = self._table()
        over = self._over(table.columns)
        name, kinds = self.draw.choice(_AGGREGATES)
        arguments = ", ".join(over.of(kind, 1) for kind in kinds)
        suffix = self.draw.choice(("", "If", "OrNull", "IfOrNull", "Distinct"))
        if "If" in suffix:
            arguments += f", {over.of('bool', 1)}"
        inner = f"SELECT {over.of('int', 1)} AS k, {name}{suffix}State({arguments}) AS s FROM {table.name} GROUP BY k"
        return f"SELECT {name}{suffix}Merge(s) FROM ({inner})"

    def _join(self) -> str:
        left, right = self.tables
        kind = self.draw.choice(_JOINS)
        one_sided = "SEMI" in kind or "ANTI" in kind
        columns = left.columns if one_sided else (*left.columns, *right.columns)
        over = self._over(columns)
        key = self.draw.choice(("a0 = b0", "a1 = b1", "a2 = b2", "a0 = b1", "a0 = b0 AND a2 = b2"))
        nulls = " SETTINGS join_use_nulls = 1" if self.draw.random() < 0.2 else ""
        shown = ", ".join(self._some(over))
        return f"SELECT {shown} FROM r1 {kind} r2 ON {key}{self._where(over)}{nulls}"

    def _set(self) -> str:
        kinds = [self.draw.choice(tuple(CONSTANTS)) for _ in range(self.draw.randint(1, 2))]
        sides = []
        for _ in range(2):
            table = self._table()
            over = self._over(table.columns)
            shown = ", ".join(f"{over.of(k, 1)} AS c{at}" for at, k in enumerate(kinds))
            sides.append(f"SELECT {shown} FROM {table.name}{self._where(over)}")
        return f" {self.draw.choice(_SETS)} ".join(sides)

    def _distinct(self) -> str:
        table = self._table()
        over = self._over(table.columns)
        shown = ", ".join(self._keys(over, 2))
        return f"SELECT DISTINCT {shown} FROM {table.name}{self._where(over)}"

    def _limit_by(self) -> str:
        table = self._table()
        over = self._over(table.columns)
        key = self.draw.choice([c for k in ORDERED for c in over.columns.get(k, [])])
        count = self.draw.randint(1, 3)
        rest = f"{self._where(over)} ORDER BY k LIMIT {count} BY k LIMIT 10"
        return f"SELECT {key} AS k FROM {table.name}{rest}"

    def _subquery(self) -> str:
        table = self._table()
        over = self._over(table.columns)
        inner = [("int", over.of("int", 2)), ("string", over.of("string", 2))]
        shown = ", ".join(f"{text} AS x{at}" for at, (_, text) in enumerate(inner))
        outer = self._over([Column("x0", "Int64"), Column("x1", "String")])
        outer.columns.pop("", None)
        return f"SELECT {', '.join(self._some(outer))} FROM (SELECT {shown} FROM {table.name}){self._where(outer)}"

    def _common(self) -> str:
        table = self._table()
        over = self._over(table.columns)
        scalar = f"(SELECT {self._aggregate(over)} FROM {table.name})"
        shown = ", ".join(self._some(over))
        if self.draw.random() < 0.5:
            return f"WITH {scalar} AS w SELECT w, {shown} FROM {table.name}"
        return f"WITH q AS (SELECT * FROM {table.name}{self._where(over)}) SELECT {shown} FROM q"

    def _membership(self) -> str:
        left, right = self.draw.sample(self.tables, 2)
        over, other = self._over(left.columns), self._over(right.columns)
        kind = self.draw.choice(("int", "int", "string", "date", "datetime", "float", "decimal"))
        word = self.draw.choice(("IN", "NOT IN"))
        inner = f"SELECT {other.of(kind, 1)} FROM {right.name}"
        shown = ", ".join(self._some(over, most=2))
        return f"SELECT {shown} FROM {left.name} WHERE {over.of(kind, 1)} {word} ({inner})"

    def _array_join(self) -> str:
        table = self._table()
        over = self._over(table.columns)
        kind = self.draw.choice(("array int", "array string"))
        left = self.draw.choice(("", "LEFT "))
        inner = over.of(kind, 1)
        over.columns["int" if kind == "array int" else "string"].append("e")
        return f"SELECT e, {', '.join(self._some(over, most=2))} FROM {table.name} {left}ARRAY JOIN {inner} AS e"
