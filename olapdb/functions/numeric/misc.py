"""toTypeName, throwIf, version, rand, sizes for people, and other small things."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import ThrowIfNonZero
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.hashing import mix
from olapdb.functions.numeric.maths import floats
from olapdb.functions.scalar import (
    Invocation,
    Kernel,
    ScalarDefinition,
    custom,
    define,
    illegal,
    require,
)
from olapdb.types import (
    STRING,
    UINT8,
    UINT32,
    UINT64,
    UUID_TYPE,
    AggregateFunction,
    Array,
    Boolean,
    DataType,
    Decimal,
    Float,
    Integer,
    plain,
)

_TEXTS = Array(STRING)
SERVER_REVISION = 54_515
SERVER_VERSION = "26.9.2.1"
"""The release of ClickHouse whose behaviour is the reference."""


def _type_name(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    shown = pa.scalar(arguments[0].type.name)
    return ScalarCall(name, STRING, lambda v, r, e: shown)


def _constant(
    result: DataType, value: Callable[[Environment], object]
) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            return pa.scalar(value(environment), result.arrow)

        return ScalarCall(name, result, kernel, "query")

    return resolve


def _warehouse_uuid(environment: Environment) -> bytes:
    return uuid.UUID(environment.warehouse_id).bytes if environment.warehouse_id else bytes(16)


def _current_schemas(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """PostgreSQL's: the current database, whether implicit schemas are asked for or not."""
    require(name, [plain(arguments[0].type)], (Boolean, Integer), "a truth value")
    return _constant(_TEXTS, lambda environment: [environment.database])(name, arguments)


def _throw_if(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    require(name, [plain(arguments[0].type)], (Integer, Float, Boolean), "a number")
    given = (
        arguments[1].constant.as_py()
        if len(arguments) > 1 and arguments[1].constant is not None
        else None
    )
    message = given if isinstance(given, str) else f"Value passed to '{name}' function is non-zero"

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        found = columns.truth(columns.single(values[0]))
        if pc.any(found).as_py():
            raise ThrowIfNonZero(message)
        return pa.scalar(0, pa.uint8())

    # a row function to the optimizer: it must run, and not be folded away
    return ScalarCall(name, UINT8, kernel, "row")


def _identity(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    return ScalarCall(name, arguments[0].type, lambda v, r, e: v[0])


def _materialize(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """A full column of a constant."""

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        return columns.as_array(values[0], rows)

    return ScalarCall(name, arguments[0].type, kernel)


def _random(result: DataType) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Random integers, drawn from the query's seed: the same for the same place in a query."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            return columns.from_values(_draw(rows, environment), result.arrow)

        return ScalarCall(name, result, kernel, "row")

    return resolve


def _draw(rows: int, environment: Environment) -> np.ndarray:
    generator = np.random.default_rng(environment.random_seed or None)
    start = generator.integers(0, 2**63, dtype=np.uint64)
    with np.errstate(over="ignore"):
        return mix(np.arange(rows, dtype=np.uint64) + start)


def _uuids(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Random UUIDs of version 4 (RFC 9562)."""

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        seed = environment.random_seed or uuid.uuid4().int & (2**63 - 1)
        generator = np.random.default_rng(seed)
        data = generator.integers(0, 256, (rows, 16), dtype=np.uint8)
        data[:, 6] = (data[:, 6] & 0x0F) | 0x40
        data[:, 8] = (data[:, 8] & 0x3F) | 0x80
        return pa.Array.from_buffers(UUID_TYPE.arrow, rows, [None, pa.py_buffer(data.tobytes())])

    return ScalarCall(name, UUID_TYPE, kernel, "row")


def _readable(units: tuple[str, ...], step: float) -> Kernel:
    """A number with two digits after the point and the largest unit that leaves it above one."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        values = floats(arrays[0])
        power = np.zeros(len(values), np.int64)
        scaled = values.copy()
        for _ in range(len(units) - 1):
            large = np.abs(scaled) >= step
            scaled = np.where(large, scaled / step, scaled)
            power = power + large
        names = pa.array(units).take(pa.array(power))
        return pc.binary_join_element_wise(_two_digits(scaled), names, "")

    return kernel


def _two_digits(values: np.ndarray) -> pa.Array:
    return pa.array(np.char.mod("%.2f", values).astype(object), pa.string())


def _number_to_text(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    require(name, types, (Integer, Float, Decimal), "a number")
    return STRING


def _finalize(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """finalizeAggregation(state): the value of each state."""
    from olapdb.functions.aggregates.registry import parse_parameter, resolve_aggregate

    state = arguments[0].type
    if not isinstance(state, AggregateFunction):
        raise illegal(name, state, "an AggregateFunction")
    parameters = [parse_parameter(p) for p in state.parameters]
    aggregate = resolve_aggregate(state.function, parameters, state.arguments)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        made = aggregate.finalize(columns.single(values[0]))
        return made[0] if isinstance(values[0], pa.Scalar) else made

    return ScalarCall(name, aggregate.result_type, kernel)


_BINARY = (" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB", " ZiB", " YiB")
_DECIMAL = (" B", " KB", " MB", " GB", " TB", " PB", " EB", " ZB", " YB")
_QUANTITY = (
    "",
    " thousand",
    " million",
    " billion",
    " trillion",
    " quadrillion",
    " quintillion",
    " sextillion",
    " septillion",
    " octillion",
    " nonillion",
    " decillion",
    " undecillion",
    " duodecillion",
    " tredecillion",
    " quattuordecillion",
    " quindecillion",
    " sexdecillion",
    " septendecillion",
    " octodecillion",
    " novemdecillion",
    " vigintillion",
)

DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("toTypeName", _type_name),
    custom("throwIf", _throw_if, count=(1, 3)),
    custom("ignore", _constant(UINT8, lambda e: 0), count=(0, None)),
    custom("identity", _identity),
    custom("materialize", _materialize),
    custom("version", _constant(STRING, lambda e: SERVER_VERSION), count=0, insensitive=True),
    custom(
        "currentDatabase",
        _constant(STRING, lambda e: e.database),
        count=0,
        aliases=("database", "current_database", "schema"),
        insensitive=True,
    ),
    custom(
        "queryID",
        _constant(STRING, lambda e: e.query_id),
        count=0,
        aliases=("query_id",),
        insensitive=True,
    ),
    custom(
        "currentUser",
        _constant(STRING, lambda e: "default"),
        count=0,
        aliases=("user", "current_user", "session_user"),
        insensitive=True,
    ),
    custom(
        "hostName",
        _constant(STRING, lambda e: "localhost"),
        count=0,
        aliases=("hostname",),
        insensitive=True,
    ),
    custom(
        "FQDN",
        _constant(STRING, lambda e: "localhost"),
        count=0,
        aliases=("fullHostName", "fqdn"),
        insensitive=True,
    ),
    custom("displayName", _constant(STRING, lambda e: "localhost"), count=0),
    custom(
        "uptime",
        _constant(UINT32, lambda e: max(int(e.now_seconds - e.opened_seconds), 0)),
        count=0,
    ),
    custom("serverUUID", _constant(UUID_TYPE, _warehouse_uuid), count=0),
    custom("revision", _constant(UINT32, lambda e: SERVER_REVISION), count=0, insensitive=True),
    custom(
        "initialQueryID",
        _constant(STRING, lambda e: e.query_id),
        count=0,
        aliases=("initial_query_id",),
        insensitive=True,
    ),
    custom("currentSchemas", _current_schemas, aliases=("current_schemas",), insensitive=True),
    custom("currentProfiles", _constant(_TEXTS, lambda e: ["default"]), count=0),
    custom("currentRoles", _constant(_TEXTS, lambda e: []), count=0),
    custom("enabledRoles", _constant(_TEXTS, lambda e: []), count=0),
    custom("defaultRoles", _constant(_TEXTS, lambda e: []), count=0),
    custom("shardNum", _constant(UINT32, lambda e: 0), count=0, insensitive=True),
    custom("shardCount", _constant(UINT32, lambda e: 0), count=0, insensitive=True),
    custom("rand", _random(UINT32), count=(0, 1), aliases=("rand32",), insensitive=True),
    custom("rand64", _random(UINT64), count=(0, 1)),
    custom("generateUUIDv4", _uuids, count=(0, 1)),
    define(
        "formatReadableSize",
        _number_to_text,
        _readable(_BINARY, 1024.0),
        aliases=("FORMAT_BYTES",),
        insensitive=True,
    ),
    define("formatReadableDecimalSize", _number_to_text, _readable(_DECIMAL, 1000.0)),
    define("formatReadableQuantity", _number_to_text, _readable(_QUANTITY, 1000.0)),
    custom("finalizeAggregation", _finalize),
)
