"""Draws sources, dimensions and rows of them.

A drawn table is plain data; a `Field` knows the values that may be inserted into it. Domains are
small, so that keys meet, sums cancel out and narrow types overflow.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

KEY_TYPES = {
    "UInt8": ["0", "1", "2", "3"],
    "Int32": ["-1", "0", "1", "300"],
    "String": ["'a'", "'b'", "'c'", "''"],
    "LowCardinality(String)": ["'a'", "'b'", "'c'"],
    "Nullable(String)": ["'a'", "'b'", "NULL"],
    "Nullable(UInt8)": ["0", "1", "NULL"],
    "Date": ["'2024-01-01'", "'2024-01-02'", "'2024-02-01'"],
    "FixedString(2)": ["'ab'", "'c'"],
}
NUMBER_TYPES = {
    "UInt8": ["0", "1", "2", "100", "200"],
    "Int8": ["-100", "-1", "0", "1", "100"],
    "UInt16": ["0", "1", "300"],
    "Int32": ["-2", "-1", "0", "1", "2", "300", "-300"],
    "Int64": ["-2", "-1", "0", "1", "2", "300", "5000000000"],
    "UInt64": ["0", "1", "2", "300", "10000000000000000000"],
    "Float64": ["-1.5", "-0.5", "0", "0.5", "1.5", "16777217", "0.1"],
    "Float32": ["-1.5", "-0.5", "0", "0.5", "1.5", "16777216"],
    "Decimal(9, 2)": ["-1.5", "0", "1.25", "9999999.99"],
    "Nullable(Int32)": ["-1", "0", "1", "300", "NULL"],
}
TIME_TYPES = {
    "Date": ["'2024-01-01'", "'2024-01-02'", "'2024-02-01'"],
    "DateTime('UTC')": ["'2024-01-01 00:00:00'", "'2024-01-01 12:00:00'", "'2024-02-01 00:00:01'"],
    "DateTime64(3, 'UTC')": ["'2024-01-01 00:00:00.001'", "'2024-01-31 23:59:59.999'"],
}
VOLATILE = (
    "rand()",
    "now()",
    "now64(3)",
    "generateUUIDv4()",
    "rand64()",
    "today()",
    "hostName()",
    "queryID()",
    "uptime()",
    "toUnixTimestamp(now())",
    "rand() % 7",
    "currentDatabase()",
    "timezone()",
    "version()",
    "toUInt8(rand(1))",
    "yesterday()",
    "serverUUID()",
    "initialQueryID()",
    "currentUser()",
    "randUniform(0, 9)",
)


@dataclass(frozen=True)
class Field:
    """A column. `kind` is "", DEFAULT, MATERIALIZED, ALIAS or EPHEMERAL; `values` are the literals
    that an INSERT may give it, empty if it accepts none."""

    name: str
    type: str
    values: tuple[str, ...] = ()
    kind: str = ""
    expression: str = ""
    role: str = ""
    """key, number, time, text, array, sign, version, deleted or more"""
    ttl: str = ""
    """The column's TTL expression"""

    @property
    def ddl(self) -> str:
        return (
            f"{self.name} {self.type}"
            + (f" {self.kind} {self.expression}".rstrip() if self.kind else "")
            + (f" TTL {self.ttl}" if self.ttl else "")
        )

    @property
    def is_given(self) -> bool:
        return bool(self.values) and self.kind in ("", "DEFAULT")


@dataclass
class TableDraft:
    """A table as the statements so far define it, assuming that none was refused."""

    name: str
    engine: str
    fields: list[Field]
    order: str = ""
    partition: str = ""
    more: str = ""
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def ddl(self) -> str:
        columns = ", ".join([*(f.ddl for f in self.fields)])
        return f"CREATE TABLE {self.name} ({columns}{self.more_columns}) ENGINE = {self.engine}{self.clauses}"

    more_columns: str = ""

    @property
    def is_tree(self) -> bool:
        return "MergeTree" in self.engine

    @property
    def clauses(self) -> str:
        if not self.is_tree:
            return ""
        said = f" PARTITION BY {self.partition}" if self.partition else ""
        said += f" ORDER BY {self.order or 'tuple()'}{self.more}"
        if self.settings:
            said += " SETTINGS " + ", ".join(f"{k} = {v}" for k, v in self.settings.items())
        return said

    def of_role(self, *roles: str) -> list[Field]:
        return [f for f in self.fields if f.role in roles]

    def copy(self) -> TableDraft:
        return replace(self, fields=list(self.fields), settings=dict(self.settings))


def draw_source(chance: random.Random, name: str, key_type: str) -> TableDraft:
    """Draw a source that has the columns which its engine's merges need."""
    engine = chance.choices(
        (
            "MergeTree",
            "Summing",
            "Aggregating",
            "Replacing",
            "Collapsing",
            "Versioned",
            "Memory",
            "Log",
            "Null",
        ),
        (58, 12, 6, 7, 4, 3, 4, 2, 4),
    )[0]
    fields = [
        Field("k", key_type, tuple(KEY_TYPES[key_type]), role="key"),
        Field("g", "UInt8", ("0", "1", "2"), role="key"),
        _number(chance, "x"),
        _number(chance, "y"),
    ]
    return _finished(chance, name, engine, fields, volatile=0.05)


def draw_dimension(chance: random.Random, name: str, key_type: str) -> TableDraft:
    engine = chance.choices(
        (
            "MergeTree",
            "Summing",
            "Aggregating",
            "Replacing",
            "Collapsing",
            "Memory",
            "Log",
            "Versioned",
        ),
        (40, 14, 8, 18, 6, 6, 4, 3),
    )[0]
    fields = [
        Field("k", key_type, tuple(KEY_TYPES[key_type]), role="key"),
        replace(_number(chance, "w"), role="number"),
    ]
    if engine not in ("Summing", "Aggregating") and chance.random() < 0.5:
        fields.append(Field("label", "String", ("'p'", "'q'", "''"), role="text"))
    return _finished(chance, name, engine, fields, volatile=0.05)


def _number(chance: random.Random, name: str) -> Field:
    kind = chance.choice([*NUMBER_TYPES, "Int64", "Int32", "UInt8"])
    values = NUMBER_TYPES[kind]
    if chance.random() < 0.6:  # values that cancel out, and equal rows
        values = ["0", "1"] if kind.startswith("UInt") else ["-1", "1", "0"]
    return Field(name, kind, tuple(values), role="number")


def _finished(
    chance: random.Random, name: str, engine: str, fields: list[Field], volatile: float
) -> TableDraft:
    keys = [f.name for f in fields if f.role == "key"]
    table = TableDraft(name, engine, fields)
    if engine == "Aggregating":
        table.fields = [
            replace(
                f,
                type=f"SimpleAggregateFunction({chance.choice(('sum', 'max', 'min', 'any'))}, {_wide(f.type)})",
            )
            if f.role == "number"
            else f
            for f in fields
        ]
    elif engine not in ("Summing", "Aggregating"):
        table.fields += _more_fields(chance, volatile)
    if engine == "Replacing":
        lot = chance.random()
        if lot < 0.6:
            table.fields.append(Field("ver", "UInt32", ("1", "2", "3"), role="version"))
        if lot < 0.3:
            table.fields.append(Field("gone", "UInt8", ("0", "0", "1"), role="deleted"))
        arguments = "(ver, gone)" if lot < 0.3 else "(ver)" if lot < 0.6 else ""
        table.engine = f"ReplacingMergeTree{arguments}"
    elif engine in ("Collapsing", "Versioned"):
        table.fields.append(Field("sg", "Int8", ("1", "1", "-1"), role="sign"))
        if engine == "Versioned":
            table.fields.append(Field("ver", "UInt32", ("1", "2"), role="version"))
        table.engine = (
            "CollapsingMergeTree(sg)"
            if engine == "Collapsing"
            else "VersionedCollapsingMergeTree(sg, ver)"
        )
    elif engine in ("Summing", "Aggregating"):
        table.engine = f"{engine}MergeTree"
    if not table.is_tree:
        return table
    table.order = f"({', '.join(chance.sample(keys, len(keys)))})"
    if chance.random() < 0.1:
        table.order = keys[0]
    if "Nullable" in fields[0].type:
        table.settings["allow_nullable_key"] = "1"
    if chance.random() < 0.35:
        table.partition = chance.choice(
            [
                keys[-1],
                keys[-1],
                f"{keys[-1]}",
                "k" if "Nullable" not in fields[0].type else keys[-1],
            ]
        )
    if chance.random() < 0.06:
        table.more_columns = (
            ", CONSTRAINT small CHECK " + chance.choice(["g < 250", "x != 7"])
            if "g" in keys
            else ""
        )
    times = table.of_role("time")
    if times and chance.random() < 0.2:
        table.more = f" TTL {times[0].name} + INTERVAL {chance.choice((1, 100))} YEAR"
        if chance.random() < 0.5:
            table.settings["ttl_retain"] = "0"
    return table


def _more_fields(chance: random.Random, volatile: float) -> list[Field]:
    found = []
    if chance.random() < 0.35:
        kind = chance.choice([*TIME_TYPES])
        found.append(Field("d", kind, tuple(TIME_TYPES[kind]), role="time"))
    if chance.random() < 0.3:
        found.append(Field("b", "String", ("'x'", "'yy'", "''", "'10'"), role="text"))
    if chance.random() < 0.2:
        found.append(Field("arr", "Array(UInt8)", ("[]", "[1]", "[1, 2]"), role="array"))
    if chance.random() < 0.15:
        found.append(draw_computed(chance, "c1", ("k", "'z'"), volatile=volatile))
    return found


def draw_computed(
    chance: random.Random, name: str, texts: Sequence[str], volatile: float = 0.3
) -> Field:
    """Draw a computed column; with probability `volatile` its value differs at each computation."""
    kind = chance.choices(("DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL"), (50, 25, 20, 5))[0]
    if chance.random() < volatile:
        expression = f"toString({chance.choice(VOLATILE)})"
    else:
        expression = f"concat(toString({chance.choice(list(texts))}), 'm')"
    return Field(
        name, "String", ("'given'",) if kind == "DEFAULT" else (), kind, expression, "text"
    )


def _wide(kind: str) -> str:
    """Return the type of a sum of values of this type."""
    if kind.startswith("Nullable"):
        return "Nullable(Int64)"
    if kind.startswith("Decimal"):
        return "Decimal(38, 2)"
    if kind.startswith("Float"):
        return "Float64"
    return "UInt64" if kind.startswith("UInt") else "Int64"


wide = _wide


def draw_rows(
    chance: random.Random, table: TableDraft, count: int
) -> tuple[list[str], list[list[str]]]:
    """Draw the names of the columns that an INSERT gives, and a row of literals for each of
    `count`."""
    given = [f for f in table.fields if f.is_given and (f.kind == "" or chance.random() < 0.4)]
    return [f.name for f in given], [[chance.choice(f.values) for f in given] for _ in range(count)]


def value_type(kind: str) -> str:
    """Return the type of the values of a SimpleAggregateFunction column, else the type itself."""
    return kind.partition(", ")[2][:-1] if kind.startswith("SimpleAggregateFunction(") else kind


def plain_of(kind: str) -> str:
    return (
        kind.removeprefix("Nullable(").removesuffix(")") if kind.startswith("Nullable(") else kind
    )
