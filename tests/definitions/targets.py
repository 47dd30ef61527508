"""Draws the target of a query: engine, keys, wider or narrower columns, and columns of its own."""

from __future__ import annotations

import random

from tests.definitions.queries import Output, QueryDraft
from tests.definitions.tables import VOLATILE, Field, TableDraft, plain_of, wide

NARROWER = {
    "UInt64": ("UInt8", "UInt16", "UInt32", "Int64", "Int8"),
    "Int64": ("Int8", "Int32", "UInt64", "UInt8"),
    "Float64": ("Float32", "Int64", "Int32"),
    "Int32": ("Int8", "UInt8", "Int16"),
    "UInt16": ("UInt8",),
    "UInt32": ("UInt8",),
    "Int8": ("UInt8",),
    "Float32": ("Int32",),
    "Decimal(38, 2)": ("Decimal(9, 2)", "Decimal(9, 0)", "Int64"),
    "UInt8": ("Int8",),
    "String": ("FixedString(2)", "UInt8"),
    "DateTime('UTC')": ("Date",),
    "Decimal(9, 2)": ("Decimal(9, 0)",),
    "DateTime64(3, 'UTC')": ("DateTime('UTC')", "Date"),
}
WIDER = {
    "UInt8": ("UInt32", "UInt64", "Int64", "Nullable(UInt8)"),
    "Int8": ("Int64", "Float64"),
    "UInt16": ("UInt64",),
    "Int32": ("Int64", "Float64", "Nullable(Int64)"),
    "UInt64": ("Float64", "Nullable(UInt64)"),
    "Int64": ("Float64", "Nullable(Int64)"),
    "Float32": ("Float64",),
    "Float64": ("Nullable(Float64)",),
    "String": ("LowCardinality(String)", "Nullable(String)"),
    "Date": ("DateTime('UTC')", "Date32"),
    "Decimal(9, 2)": ("Decimal(18, 4)", "Float64"),
}


def draw_target(chance: random.Random, name: str, query: QueryDraft, merging: bool) -> TableDraft:
    """Draw a target that mostly fits the query, and sometimes does not."""
    keys = [o for o in query.outputs if o.is_key]
    fields = [Field(o.name, _type(chance, o), role=_role(o)) for o in query.outputs]
    engine = _engine(chance, query, merging)
    table = TableDraft(name, engine, fields)
    if engine.startswith("AggregatingMergeTree"):
        table.fields = [
            Field(f.name, _stored(o, f.type), role=f.role)
            for f, o in zip(fields, query.outputs, strict=True)
        ]
    order = [o.name for o in keys]
    if not query.grouped and chance.random() < 0.4:
        order = [
            o.name for o in chance.sample(query.outputs, chance.randint(0, len(query.outputs)))
        ]
    elif chance.random() < 0.07 and len(query.outputs) > 1:
        order = [
            *order,
            chance.choice(
                [o.name for o in query.outputs if not o.is_key and o.form != "state"]
                or order
                or [query.outputs[0].name]
            ),
        ][:3]
    chance.shuffle(order)
    table.order = f"({', '.join(dict.fromkeys(order))})" if order else "tuple()"
    if any("Nullable" in f.type for f in table.fields if f.name in order):
        table.settings["allow_nullable_key"] = "1"
    _partition(chance, table, query)
    _own_columns(chance, table, query)
    if chance.random() < 0.06:
        at = chance.choice(query.outputs)
        table.more_columns += (
            f", CONSTRAINT some CHECK {_as_number(at)} {chance.choice(('< 4', '!= 3', '>= 0'))}"
        )
    if chance.random() < 0.06:
        at = chance.choice(query.outputs)
        table.more = f" TTL {_as_time(at)} + INTERVAL 10 YEAR"
        if chance.random() < 0.4:
            table.settings["ttl_retain"] = "0"
    return table


def _engine(chance: random.Random, query: QueryDraft, merging: bool) -> str:
    sign = any(o.name == "sg" for o in query.outputs)
    version = [o.name for o in query.outputs if o.name == "ver" or not o.is_key]
    if merging:
        simple = all(o.form in ("simple", "") and o.function in ("sum", "") for o in query.outputs)
        if simple and chance.random() < 0.45:
            return "SummingMergeTree"
        return chance.choices(
            ("AggregatingMergeTree", "SummingMergeTree", "MergeTree"), (85, 10, 5)
        )[0]
    if sign and chance.random() < 0.6:
        return "CollapsingMergeTree(sg)"
    lot = chance.random()
    if lot < 0.1:
        return "ReplacingMergeTree" + (
            f"({chance.choice(version)})" if version and chance.random() < 0.6 else ""
        )
    if lot < 0.14 and not query.grouped:
        return chance.choice(("SummingMergeTree", "AggregatingMergeTree"))
    if lot < 0.17 and version:
        return f"CollapsingMergeTree({chance.choice(version)})"
    if lot < 0.19 and len(version) > 1:
        return f"VersionedCollapsingMergeTree({version[0]}, {version[1]})"
    return chance.choices(("MergeTree", "Memory", "Log", "Null"), (82, 9, 5, 2))[0]


def _type(chance: random.Random, output: Output) -> str:
    lot, kind = chance.random(), output.type
    if kind.startswith("AggregateFunction"):
        return kind
    if output.is_key:
        pool = NARROWER if lot < 0.02 else WIDER if lot < 0.1 else {}
    else:
        pool = NARROWER if lot < 0.06 else WIDER if lot < 0.18 else {}
    inner = plain_of(kind)
    found = pool.get(inner)
    if not found:
        return kind
    chosen = chance.choice(found)
    return (
        f"Nullable({plain_of(chosen)})"
        if kind != inner and "LowCardinality" not in chosen
        else chosen
    )


def _role(output: Output) -> str:
    if output.is_key:
        return "key"
    number = any(word in output.type for word in ("Int", "Float", "Decimal"))
    return "number" if number and not output.type.startswith(("Agg", "Arr", "Map")) else "other"


def _stored(output: Output, kind: str) -> str:
    if output.form == "simple":
        if output.function == "sum":
            kind = wide(kind)  # the type of a sum
        return f"SimpleAggregateFunction({output.function}, {kind})"
    if output.form in ("value", "row") and "Array" not in kind and not output.is_key:
        return f"SimpleAggregateFunction(max, {kind})"
    return kind


def _partition(chance: random.Random, table: TableDraft, query: QueryDraft) -> None:
    lot = chance.random()
    keys = [
        f.name
        for f in table.fields
        if f.role == "key" and "Nullable" not in f.type and "Float" not in f.type
    ]
    if lot < 0.25 and keys:
        table.partition = chance.choice(keys)
    elif lot < 0.33 and keys:
        table.partition = f"length(toString({chance.choice(keys)})) % 2"
    elif lot < 0.4:
        at = chance.choice(query.outputs)
        table.partition = f"{_as_number(at)} % 2" if chance.random() < 0.7 else at.name


def _own_columns(chance: random.Random, table: TableDraft, query: QueryDraft) -> None:
    """Add columns that the query does not write: constant, or computed from keys or aggregates."""
    if chance.random() > 0.13:
        return
    kind = chance.choices(
        ("DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL", ""), (42, 32, 12, 4, 10)
    )[0]
    lot = chance.random()
    keys = [o for o in query.outputs if o.is_key]
    at = chance.choice(keys) if keys and lot < 0.35 else chance.choice(query.outputs)
    if lot > 0.88:
        expression = f"length(toString({chance.choice(VOLATILE)}))"
    elif lot > 0.8:
        expression = str(chance.choice((0, 1, 7)))
    else:
        expression = f"{_as_number(at)} + {chance.choice((0, 1))}"
    column = "Int64"
    if table.engine.startswith("Aggregating"):
        column = f"SimpleAggregateFunction({chance.choice(('max', 'sum', 'any', 'min'))}, Int64)"
    if kind == "ALIAS":
        column = "Int64"
    table.fields.append(Field("own", column, (), kind, expression if kind else "", "own"))


def _as_number(output: Output) -> str:
    kind = plain_of(output.type)
    if kind.startswith("AggregateFunction"):
        return f"length(toString(finalizeAggregation({output.name})))"
    if any(kind.startswith(word) for word in ("UInt", "Int", "Float", "Decimal")):
        return f"ifNull({output.name}, 0)" if "Nullable" in output.type else output.name
    return f"length(ifNull(toString({output.name}), ''))"


def _as_time(output: Output) -> str:
    if plain_of(output.type).startswith(("Date", "DateTime")):
        return output.name
    return f"toDateTime(1000000000 + toInt64({_as_number(output)}) * 86400, 'UTC')"
