"""Model facts as JSON, both for the catalog and for the footers of parts.

Types are written as ClickHouse names.  Values of partition keys that JSON does not have are tagged:
`{"$": "date", "v": 19000}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

from olapdb.errors import InternalError
from olapdb.model.named_collection import CollectionEntry, NamedCollection
from olapdb.model.part import BlockRange, Blocks, Contribution, NewBlock, Part
from olapdb.model.schema import (
    Column,
    Engine,
    KeyItem,
    MaterializedView,
    PastColumn,
    Projection,
    RefreshableView,
    SchemaObject,
    SkipIndex,
    Table,
    View,
)
from olapdb.model.user_function import FunctionParameter, UserFunction
from olapdb.records import dataclass
from olapdb.types import DataType

Json: TypeAlias = object
ParseType: TypeAlias = Callable[[str], DataType]

_EPOCH = date(1970, 1, 1)
_EPOCH_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TAG = "$"


_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def dumps(value: Json) -> str:
    """Return compact JSON."""
    return _ENCODER.encode(value)  # json.dumps would make an encoder for each of many small values


# --- values ---------------------------------------------------------------------------------------


def encode_value(value: object) -> Json:
    """Return a partition value as JSON. Raises InternalError for a class that no key can have."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            zone = "" if value.tzinfo is None else "UTC"
            return {_TAG: "time", "v": (aware - _EPOCH_TIME) // _MICROSECOND, "z": zone}
        case date():
            return {_TAG: "date", "v": (value - _EPOCH).days}
        case bytes():
            return {_TAG: "bytes", "v": value.hex()}
        case Decimal():
            return {_TAG: "decimal", "v": str(value)}
        case UUID():
            return {_TAG: "uuid", "v": value.hex}
        case tuple() | list():
            return [encode_value(item) for item in value]
        case _:
            raise InternalError(f"A partition value of class {type(value).__name__}.")


def decode_value(value: Json) -> object:
    """Return the value of `encode_value`; lists become tuples."""
    if isinstance(value, list):
        return tuple(decode_value(item) for item in value)
    if not isinstance(value, dict):
        return value
    match value[_TAG]:
        case "time":
            time = _EPOCH_TIME + value["v"] * _MICROSECOND
            return time if value["z"] else time.replace(tzinfo=None)
        case "date":
            return _EPOCH + timedelta(days=value["v"])
        case "bytes":
            return bytes.fromhex(value["v"])
        case "decimal":
            return Decimal(value["v"])
        case "uuid":
            return UUID(value["v"])
        case tag:
            raise InternalError(f"A value tagged {tag!r} in the catalog.")


def encode_blocks(blocks: Blocks) -> Json:
    """Return blocks as JSON, committed or new."""
    if isinstance(blocks, NewBlock):
        return {"table": blocks.table_id, "new": blocks.index}
    return [blocks.first, blocks.last]


def decode_blocks(value: Json) -> Blocks:
    """Return the blocks of `encode_blocks`."""
    if isinstance(value, dict):
        return NewBlock(value["table"], value["new"])
    return BlockRange(*value)  # type: ignore[misc]


def encode_contributions(contributions: Iterable[Contribution]) -> Json:
    """Return contributions as a JSON list."""
    return [
        [
            c.view_id,
            c.view_version,
            c.source_id,
            c.source_partition,
            [encode_blocks(b) for b in c.blocks],
            c.rows,
        ]
        for c in contributions
    ]


def decode_contributions(value: Iterable[list[Any]]) -> tuple[Contribution, ...]:
    """Return the contributions of `encode_contributions`."""
    return tuple(
        Contribution(view, version, source, partition, tuple(map(decode_blocks, blocks)), rows)
        for view, version, source, partition, blocks, rows in value
    )


# --- parts ----------------------------------------------------------------------------------------


def encode_part_rest(part: Part) -> str:
    """Return as JSON the facts of a part that have no column in the catalog; its contributions have
    block numbers."""
    return dumps(
        [
            encode_value(part.partition_value),
            part.schema_version,
            part.checksum,
            dict(part.bounds),
            dict(part.uncompressed_bytes),
            dict(part.compressed_bytes),
            part.granules,
            encode_contributions(part.contributions),
            part.created_ms,
            *([part.detached_reason] if part.detached_reason or part.codec else []),
            *([part.codec] if part.codec else []),
        ]
    )


def decode_part(row: Sequence[Any]) -> Part:
    """Return the part of a row of the catalog's parts, in the order of `PART_COLUMNS`."""
    (
        part_id,
        table_id,
        partition_id,
        first,
        last,
        level,
        rows,
        size_bytes,
        path,
        inline,
        created_commit,
        rest,
    ) = row
    (
        value,
        schema_version,
        checksum,
        bounds,
        uncompressed,
        compressed,
        granules,
        contributions,
        created_ms,
        *optional,
    ) = json.loads(rest)
    return Part(
        id=part_id,
        table_id=table_id,
        partition_id=partition_id,
        partition_value=decode_value(value),  # type: ignore[arg-type]
        rows=rows,
        bytes=size_bytes,
        blocks=BlockRange(first, last),
        level=level,
        path=path,
        inline=bool(inline),
        schema_version=schema_version,
        checksum=checksum,
        bounds={name: tuple(column_range) for name, column_range in bounds.items()},
        uncompressed_bytes=uncompressed,
        compressed_bytes=compressed,
        granules=granules,
        contributions=decode_contributions(contributions) if contributions else (),
        created_ms=created_ms,
        created_commit=created_commit,
        detached_reason=optional[0] if optional else "",
        codec=optional[1] if len(optional) > 1 else "",
    )


# --- schema ---------------------------------------------------------------------------------------

OBJECT_KINDS: dict[str, type[SchemaObject]] = {
    "table": Table,
    "view": View,
    "materialized_view": MaterializedView,
    "refreshable_view": RefreshableView,
}


FUNCTION_KIND = "function"
"""The kind of a function's row among the catalog's objects."""


def encode_function(function: UserFunction) -> str:
    """Return the function's fields by name as JSON; the inverse of `decode_function`."""
    body: dict[str, Json] = {f.name: getattr(function, f.name) for f in fields(function)}
    body["parameters"] = [[p.name, p.type, p.default] for p in function.parameters]
    body["packages"] = list(function.packages)
    return dumps(body)


def decode_function(text: str) -> UserFunction:
    """Return the function of `encode_function`."""
    body = json.loads(text)
    body["parameters"] = tuple(FunctionParameter(*p) for p in body["parameters"])
    body["packages"] = tuple(body["packages"])
    return UserFunction(**body)


COLLECTION_KIND = "named_collection"
"""The kind of a named collection's row among the catalog's objects."""


def encode_collection(collection: NamedCollection) -> str:
    """Return the collection as JSON; the inverse of `decode_collection`."""
    entries: list[Json] = [[e.key, e.value, e.overridable] for e in collection.entries]
    return dumps({"id": collection.id, "name": collection.name, "entries": entries})


def decode_collection(text: str) -> NamedCollection:
    """Return the collection of `encode_collection`."""
    body = json.loads(text)
    entries = tuple(CollectionEntry(*entry) for entry in body["entries"])
    return NamedCollection(body["id"], body["name"], entries)


def object_kind(schema_object: SchemaObject) -> str:
    """Return the name of the object's class among the catalog's kinds: a key of `OBJECT_KINDS`."""
    return next(kind for kind, cls in OBJECT_KINDS.items() if type(schema_object) is cls)


def encode_columns(columns: Iterable[Column]) -> Json:
    """Return columns as a JSON list."""
    return [
        [
            *(c.id, c.name, c.type.name, c.default_kind, c.default, c.comment, c.codec, c.since),
            *_last_given([c.ttl, c.statistics, c.settings]),
        ]
        for c in columns
    ]


def _last_given(texts: list[str]) -> list[str]:
    """Return the texts up to the last one that is not empty."""
    while texts and not texts[-1]:
        texts.pop()
    return texts


def encode_object(schema_object: SchemaObject) -> str:
    """Return the object's fields by name as JSON; the inverse of `decode_object`."""
    body: dict[str, Json] = {}
    for field in fields(schema_object):
        value = getattr(schema_object, field.name)
        match field.name:
            case "columns":
                body["columns"] = encode_columns(value)
            case "engine":
                body["engine"] = [value.name, list(value.arguments)]
            case "projections":
                body["projections"] = [
                    [p.name, p.query, p.kind, list(p.sorting_key)] for p in value
                ]
            case "indexes":
                body["indexes"] = [
                    [
                        i.name,
                        i.expression,
                        i.type,
                        list(i.columns),
                        i.argument,
                        i.granularity,
                        list(i.parameters),
                        *([i.tokenizer, i.preprocessor, i.definition] if i.definition else []),
                    ]
                    for i in value
                ]
            case "past":
                body["past"] = [
                    [p.column_id, p.before, p.name, p.type, p.bounds_hold] for p in value
                ]
            case "sorting_key":
                body["sorting_key"] = [[item.expression, item.descending] for item in value]
            case _:
                body[field.name] = value
    return dumps(body)


def decode_object(kind: str, text: str, parse_type: ParseType) -> SchemaObject:
    """Return the object of `encode_object`. Fields that an older release did not write have their
    defaults."""
    body = json.loads(text)
    arguments: dict[str, object] = {}
    for name, value in body.items():
        match name:
            case "columns":
                arguments[name] = decode_columns(value, parse_type)
            case "engine":
                arguments[name] = Engine(value[0], tuple(value[1]))
            case "indexes":
                arguments[name] = tuple(
                    SkipIndex(n, e, t, tuple(columns), *map(_tuples, rest))  # type: ignore[arg-type]
                    for n, e, t, columns, *rest in value
                )
            case "projections":
                arguments[name] = tuple(Projection(n, q, k, tuple(keys)) for n, q, k, keys in value)
            case "past":
                arguments[name] = tuple(PastColumn(*past) for past in value)
            case "sorting_key":
                arguments[name] = tuple(KeyItem(e, d) for e, d in value)
            case _:
                arguments[name] = _tuples(value)
    return OBJECT_KINDS[kind](**arguments)  # type: ignore[arg-type]


def decode_columns(value: Iterable[list[object]], parse_type: ParseType) -> tuple[Column, ...]:
    """Return the columns of `encode_columns`."""
    return tuple(
        Column(id, name, parse_type(type_name), *rest)  # type: ignore[arg-type]
        for id, name, type_name, *rest in value
    )


def _tuples(value: Json) -> object:
    """Return JSON's lists as the tuples that frozen dataclasses hold."""
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    return value


# --- footers --------------------------------------------------------------------------------------

FOOTER_KEY = b"olapdb.part"
FOOTER_FORMAT = 1


def encode_footer(
    part: Part,
    table: Table,
    replaces: tuple[str, ...] = (),
    swap: str = "",
    after: int | None = None,
) -> str:
    """Return as JSON all facts to recover a part and its table after a loss of the catalog.

    `replaces`: ids of the parts whose rows it holds; `swap`: the id of the replay that wrote it;
    `after`: the table's newest block when it was staged, as its own number is not assigned yet.
    """
    facts: Mapping[str, Json] = {
        "format": FOOTER_FORMAT,
        "id": part.id,
        "table_id": part.table_id,
        "table": encode_object(table),
        "partition_id": part.partition_id,
        "partition_value": encode_value(part.partition_value),
        "blocks": encode_blocks(part.blocks),
        "level": part.level,
        "rows": part.rows,
        "bounds": dict(part.bounds),
        "contributions": encode_contributions(part.contributions),
        "created_ms": part.created_ms,
        "replaces": list(replaces),
    }
    if part.codec:
        facts = {**facts, "codec": part.codec}
    if swap:
        facts = {**facts, "swap": swap}
    if after is not None:
        facts = {**facts, "after": after}
    return dumps(facts)


@dataclass(frozen=True, slots=True)
class FooterFacts:
    """The facts of a footer: the table at that time, the part without bytes, path and checksum, the
    ids of the parts that it replaces, and `swap` and `after` as in `encode_footer`."""

    table: Table
    part: Part
    replaces: tuple[str, ...]
    swap: str = ""
    after: int | None = None


def decode_footer(text: bytes, parse_type: ParseType) -> FooterFacts:
    """Return the facts of `encode_footer`. Raises KeyError or ValueError for any other text."""
    facts = json.loads(text)
    table = decode_object("table", facts["table"], parse_type)
    if not isinstance(table, Table):
        raise ValueError("The footer is of no table.")
    part = Part(
        id=facts["id"],
        table_id=facts["table_id"],
        partition_id=facts["partition_id"],
        partition_value=decode_value(facts["partition_value"]),  # type: ignore[arg-type]
        rows=facts["rows"],
        bytes=0,
        blocks=decode_blocks(facts["blocks"]),
        level=facts["level"],
        schema_version=table.version,
        created_ms=facts["created_ms"],
        bounds={name: tuple(column_range) for name, column_range in facts["bounds"].items()},
        codec=facts.get("codec", ""),
    )
    return FooterFacts(
        table, part, tuple(facts.get("replaces", ())), facts.get("swap", ""), facts.get("after")
    )
