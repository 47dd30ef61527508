"""Facts of the server, session and query: version, currentDatabase, queryID, uptime, …."""

from __future__ import annotations

import platform
import threading
import uuid
from collections.abc import Callable, Sequence

import pyarrow as pa

from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.scalar import ScalarDefinition, custom, require
from olapdb.types import (
    STRING,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    UUID_TYPE,
    Array,
    Boolean,
    DataType,
    DateTime,
    Integer,
    plain,
)

_TEXTS = Array(STRING)


SERVER_REVISION = 54_515


SERVER_VERSION = "26.9.2.1"
"""The release of ClickHouse whose behaviour is the reference; version() returns it."""


def _constant(
    result: DataType, value: Callable[[Environment], object]
) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of a function without arguments whose value depends only on the environment."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; it keeps its value for the whole query."""

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Return `value(environment)` as a constant."""
            return pa.scalar(value(environment), result.arrow)

        return ScalarCall(name, result, kernel, "query")

    return resolve


def _warehouse_uuid(environment: Environment) -> bytes:
    """Return the warehouse's id as 16 bytes, all zero if it has none."""
    return uuid.UUID(environment.warehouse_id).bytes if environment.warehouse_id else bytes(16)


def _current_schemas(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve PostgreSQL's current_schemas(b): the current database, for either b."""
    require(name, [plain(arguments[0].type)], (Boolean, Integer), "a truth value")
    return _constant(_TEXTS, lambda environment: [environment.database])(name, arguments)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
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
    custom(
        "currentQueryID",
        _constant(STRING, lambda e: e.query_id),
        count=0,
        aliases=("current_query_id",),
        insensitive=True,
    ),
    custom(
        "initialQueryStartTime",
        _constant(DateTime(), lambda e: int(e.now_seconds)),
        count=0,
        aliases=("initial_query_start_time",),
        insensitive=True,
    ),
    custom(
        "connectionId",
        _constant(UINT64, lambda e: 0),
        count=0,
        aliases=("connection_id",),
        insensitive=True,
    ),
    custom("tcpPort", _constant(UINT16, lambda e: 0), count=0),
    custom("buildId", _constant(STRING, lambda e: ""), count=0),
    custom(
        "authenticatedUser",
        _constant(STRING, lambda e: "default"),
        count=0,
        aliases=("authUser",),
        insensitive=True,
    ),
    custom("enabledProfiles", _constant(_TEXTS, lambda e: ["default"]), count=0),
    custom("defaultProfiles", _constant(_TEXTS, lambda e: ["default"]), count=0),
    custom("zookeeperSessionUptime", _constant(UINT32, lambda e: 0), count=0),
    custom("hasThreadFuzzer", _constant(UINT8, lambda e: 0), count=0),
    custom("tid", _constant(UINT64, lambda e: threading.get_native_id()), count=0),
    custom(
        "getOSKernelVersion",
        _constant(STRING, lambda e: " ".join(platform.uname()[i] for i in (0, 2))),
        count=0,
    ),
    custom("shardNum", _constant(UINT32, lambda e: 0), count=0, insensitive=True),
    custom("shardCount", _constant(UINT32, lambda e: 0), count=0, insensitive=True),
)
