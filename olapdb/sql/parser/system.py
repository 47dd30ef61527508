"""SYSTEM: the commands for materialized views, and the others."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Literal, get_args

from olapdb.errors import (
    BadArguments,
    Error,
    NotSupportedError,
    Position,
    SupportIsDisabled,
    SyntaxError,
    UnknownDisk,
    UnsupportedInProcess,
)
from olapdb.records import dataclass
from olapdb.sql.nodes import (
    Expression,
    NewVersion,
    PartitionReference,
    Query,
    Setting,
    StorageClause,
    System,
    SystemView,
    TableName,
)
from olapdb.sql.nodes.administration import ViewAction
from olapdb.sql.parser import clauses, columns, expressions, queries, storage
from olapdb.sql.parser.cursor import TokenCursor

_ACTIONS: tuple[ViewAction, ...] = get_args(ViewAction)
_CLAUSES: dict[str, tuple[str, ...]] = {
    "BACKFILL": ("PARTITION", "DISCARD", "DRY"),
    "REPLAY": ("PARTITION", "WHERE", "FROM", "STALE", "DISCARD"),
    "RECONCILE": ("PARTITION", "SAMPLE", "OLDEST", "STALE", "METADATA"),
    "CANCEL": ("JOB",),
}
"""What may stand behind the view's name, by action; SETTINGS always may."""
_CLAUSE_NAMES = {"DISCARD": "DISCARD BYPASS", "DRY": "DRY RUN"}

_STORAGE = frozenset({"ENGINE", "PARTITION", "PRIMARY", "ORDER", "TTL", "COMMENT"})
"""What may describe the new target of a REBUILD, and the comment of its view."""

_EXCLUSIVE = frozenset({"PARTITION", "WHERE", "FROM", "STALE", "SAMPLE", "OLDEST", "METADATA"})

_CACHES = (
    "DNS CACHE",
    "MARK CACHE",
    "INDEX MARK CACHE",
    "UNCOMPRESSED CACHE",
    "INDEX UNCOMPRESSED CACHE",
    "PRIMARY INDEX CACHE",
    "MMAP CACHE",
    "PAGE CACHE",
    "QUERY CACHE",
    "QUERY CONDITION CACHE",
    "COMPILED EXPRESSION CACHE",
    "FILESYSTEM CACHE",
    "SCHEMA CACHE",
    "FORMAT SCHEMA CACHE",
    "CONNECTIONS CACHE",
    "S3 CLIENT CACHE",
    "ICEBERG METADATA CACHE",
    "PARQUET METADATA CACHE",
    "VECTOR SIMILARITY INDEX CACHE",
    "TEXT INDEX TOKENS CACHE",
    "TEXT INDEX HEADER CACHE",
    "TEXT INDEX POSTINGS CACHE",
    "TEXT INDEX CACHES",
    "AVRO SCHEMA CACHE",
)
"""What SYSTEM CLEAR, or DROP, empties."""

_STORAGES = ("FILE", "S3", "HDFS", "URL", "AZURE")
"""Whose schemas SYSTEM DROP SCHEMA CACHE FOR empties."""

_BACKGROUND = (
    "MERGES",
    "TTL MERGES",
    "MOVES",
    "FETCHES",
    "REPLICATED SENDS",
    "REPLICATION QUEUES",
    "PULLING REPLICATION LOG",
    "DISTRIBUTED SENDS",
    "CLEANUP",
)
"""What SYSTEM STOP and START suspend, of one table or of all."""

_COMMANDS: dict[
    tuple[str, ...],
    Literal["", "table", "optional table", "names", "argument", "argument on table", "replica"],
] = {
    ("QUARANTINE", "PART"): "argument on table",
    ("BACKUP", "TO"): "argument",
    ("RESTORE", "FROM"): "argument",
    ("FLUSH", "LOGS"): "names",
    ("FLUSH", "ASYNC", "INSERT", "QUEUE"): "",
    **{
        (verb, *what.split()): "optional table"
        for verb in ("STOP", "START")
        for what in _BACKGROUND
    },
    ("FLUSH", "DISTRIBUTED"): "table",
    ("SYNC", "REPLICA"): "table",
    ("SYNC", "DATABASE", "REPLICA"): "table",
    ("RESTART", "REPLICA"): "table",
    ("RESTART", "REPLICAS"): "",
    ("RESTORE", "REPLICA"): "table",
    ("WAIT", "LOADING", "PARTS"): "table",
    ("REFRESH", "VIEW"): "table",
    ("WAIT", "VIEW"): "table",
    ("STOP", "VIEWS"): "",
    ("START", "VIEWS"): "",
    ("RELOAD", "DICTIONARIES"): "",
    ("RELOAD", "DICTIONARY"): "table",
    ("RELOAD", "FUNCTIONS"): "",
    ("RELOAD", "USERS"): "",
    ("RELOAD", "FUNCTION"): "argument",
    ("RELOAD", "EMBEDDED", "DICTIONARIES"): "",
    ("RELOAD", "ASYNCHRONOUS", "METRICS"): "",
    ("UNLOAD", "DICTIONARIES"): "",
    ("UNLOAD", "DICTIONARY"): "table",
    ("LOAD", "PRIMARY", "KEY"): "optional table",
    ("UNLOAD", "PRIMARY", "KEY"): "optional table",
    ("PREWARM", "MARK", "CACHE"): "table",
    ("PREWARM", "PRIMARY", "INDEX", "CACHE"): "table",
    ("DROP", "REPLICA"): "replica",
    ("DROP", "DATABASE", "REPLICA"): "replica",
    ("SYNC", "FILE", "CACHE"): "",
    ("JEMALLOC", "PURGE"): "",
}
_ABSENT: dict[str, type[Error]] = {
    **dict.fromkeys(
        (
            "DROP CATALOG REPLICA",
            "DROP DISTRIBUTED CACHE",
            "CLEAR DISTRIBUTED CACHE",
            "STOP REPLICATED DDL QUERIES",
            "START REPLICATED DDL QUERIES",
            "STOP REPLICATED VIEW",
            "START REPLICATED VIEW",
            "STOP REDUCE BLOCKING PARTS",
            "START REDUCE BLOCKING PARTS",
            "STOP VIRTUAL PARTS UPDATE",
            "START VIRTUAL PARTS UPDATE",
            "RESTORE DATABASE REPLICA",
            "UNLOCK SNAPSHOT",
            "TEST VIEW",
            "SCHEDULE MERGE",
            "SYNC MERGES",
            "ENABLE FAILPOINT",
            "DISABLE FAILPOINT",
            "NOTIFY FAILPOINT",
            "WAIT FAILPOINT",
        ),
        BadArguments,
    ),
    **dict.fromkeys(
        ("JEMALLOC", "REPLICA READY", "REPLICA UNREADY", "UNFREEZE"), SupportIsDisabled
    ),
    **dict.fromkeys(
        ("RESTART DISK", "RELOAD DISK", "DROP DISK METADATA CACHE", "CLEAR DISK METADATA CACHE"),
        UnknownDisk,
    ),
    **dict.fromkeys(("DROP MODEL", "RELOAD MODEL", "RELOAD MODELS", "INSTRUMENT"), SyntaxError),
    "RELOAD CONFIG": UnsupportedInProcess,
    **dict.fromkeys(
        (
            "SYNC FILESYSTEM CACHE",
            "SYNC TRANSACTION LOG",
            "SUSPEND",
            "STOP LISTEN",
            "START LISTEN",
            "STOP THREAD FUZZER",
            "START THREAD FUZZER",
            "STOP ALL",
            "START ALL",
            "PAUSE",
            "WAIT BLOBS",
            "FLUSH OBJECT STORAGE QUEUE",
            "RESET COVERAGE",
            "SET COVERAGE",
            "ENABLE",
            "DISABLE",
            "CANCEL ALL",
            "REFRESH ALL",
            "SHUTDOWN",
            "KILL",
        ),
        NotSupportedError,
    ),
}
"""ClickHouse's commands about servers, replicas and disks that olapdb refuses by name, with the
error that ClickHouse in process gives."""

_SYNC_MODES = ("STRICT", "LIGHTWEIGHT", "PULL")


@dataclass
class _ViewClauses:
    """The clauses behind the view's name; `seen` holds their first keywords."""

    seen: set[str] = field(default_factory=set)
    partition: PartitionReference | None = None
    where: Expression | None = None
    from_value: Expression | None = None
    sample: int | None = None
    oldest: int | None = None
    job: str | None = None
    settings: tuple[Setting, ...] = ()
    new_version: NewVersion = field(default_factory=NewVersion)
    query: Query | None = None


def parse_system(cursor: TokenCursor) -> SystemView | System:
    """Parse a statement that begins with SYSTEM."""
    start = cursor.at
    cursor.expect("SYSTEM")
    if cursor.take("CANCEL", "REBUILD", "VIEW"):
        return _parse_view_command(cursor, "CANCEL REBUILD", start)
    if cursor.key_after(1) == "VIEW":
        action = cursor.take_one_of(*_ACTIONS)
        if action:
            cursor.advance()
            return _parse_view_command(cursor, action, start)
    if cursor.key in ("CLEAR", "DROP") and (cache := _parse_cache(cursor, start)) is not None:
        return cache
    for keys, takes in _COMMANDS.items():
        if cursor.take(*keys):
            return _parse_command(cursor, " ".join(keys), takes, start)
    for absent, kind in _ABSENT.items():
        if cursor.sees(*absent.split()):
            raise kind(
                f"SYSTEM {absent} is not supported: there is no server, replica or disk to act on.",
                hint="For views there are SYSTEM BACKFILL, REPLAY, RECONCILE and ADOPT VIEW.",
                position=cursor.position(),
            )
    raise cursor.expected("a command of SYSTEM")


def _parse_cache(cursor: TokenCursor, start: int) -> System | None:
    """Parse `CLEAR | DROP … CACHE`, with the TAG of a query cache and FOR of one of schemas; None if
    it is no cache that is next. The command says DROP."""
    for cache in _CACHES:
        words = cache.split()
        if not (cursor.take("CLEAR", *words) or cursor.take("DROP", *words)):
            continue
        argument = None
        if cache == "QUERY CACHE" and cursor.take("TAG"):
            argument = cursor.string()
        elif cache.endswith("SCHEMA CACHE") and cursor.take("FOR"):
            if cache == "SCHEMA CACHE" and cursor.key not in _STORAGES:
                raise cursor.expected(", ".join(_STORAGES))
            argument = cursor.identifier()
        clauses.refuse_on_cluster(cursor, creates=True)
        position = cursor.position(cursor.tokens[start])
        return System(f"DROP {cache}", None, argument, position=position)
    return None


def _parse_command(cursor: TokenCursor, command: str, takes: str, start: int) -> System:
    """Parse the arguments that `command` takes, in the form `takes` (see `_COMMANDS`); SYSTEM is token number
    `start`."""
    position = cursor.position(cursor.tokens[start])
    clauses.refuse_on_cluster(cursor, creates=True)
    if takes == "names":
        names = () if cursor.ended else cursor.comma_separated(TokenCursor.table_name)
        listed = ",".join(name.name for name in names)
        return System(command, None, listed or None, position=position)
    if takes == "argument":
        quoted = cursor.token.kind == "string"
        argument = cursor.string() if quoted else cursor.identifier()
        return System(command, None, argument, position=position)
    if takes == "replica":
        return _parse_dropped_replica(cursor, command, position)
    if takes == "argument on table":
        argument = cursor.string()
        cursor.expect("ON")
        return System(command, cursor.table_name(), argument, position=position)
    if takes == "table" or (takes == "optional table" and cursor.is_name()):
        table = cursor.table_name()
        mode = cursor.take_one_of(*_SYNC_MODES) if command.startswith("SYNC") else ""
        return System(command, table, mode or None, position=position)
    return System(command, position=position)


def _parse_dropped_replica(cursor: TokenCursor, command: str, position: Position) -> System:
    """Parse what follows SYSTEM DROP [DATABASE] REPLICA: `'name' [FROM SHARD 's'] [FROM TABLE t |
    DATABASE d]`. The database is the System's table, by its name alone."""
    replica = cursor.string()
    if cursor.take("FROM", "SHARD"):
        cursor.string()
    table: TableName | None = None
    if cursor.take("FROM", "TABLE"):
        table = cursor.table_name()
    elif cursor.take("FROM", "DATABASE"):
        database = TableName(cursor.identifier())
        table = database if "DATABASE" in command else None
    elif cursor.sees("FROM", "ZKPATH"):
        raise cursor.refused(f"SYSTEM {command} FROM ZKPATH", "There is no ZooKeeper.")
    return System(command, table, replica, position=position)


# --- views


def _parse_view_command(cursor: TokenCursor, action: ViewAction, start: int) -> SystemView:
    """Parse the view and the clauses that `action` takes, up to the end of the statement.

    `v [PARTITION p | WHERE c | FROM x | STALE | SAMPLE n | OLDEST n | METADATA] [DISCARD BYPASS]
    [DRY RUN] [JOB 'id'] [SETTINGS …]`; SYSTEM is token number `start`.
    """
    position = cursor.position(cursor.tokens[start])
    view = cursor.table_name()
    view_clauses = _ViewClauses()
    while _parse_view_clause(cursor, action, view_clauses):
        pass
    if not cursor.ended:
        names = (_CLAUSE_NAMES.get(clause, clause) for clause in _CLAUSES.get(action, ()))
        allowed = ", ".join((*names, "SETTINGS"))
        if action == "REBUILD":
            allowed = (
                f"a column list, ENGINE, PARTITION BY, ORDER BY, TTL, {allowed}, COMMENT,"
                " REPLACE VIEW, AS SELECT"
            )
        raise cursor.expected(f"{allowed} or the end of SYSTEM {action} VIEW")
    return SystemView(
        action,
        view,
        view_clauses.partition,
        view_clauses.where,
        view_clauses.from_value,
        "STALE" in view_clauses.seen,
        view_clauses.sample,
        "METADATA" in view_clauses.seen,
        "DISCARD" in view_clauses.seen,
        view_clauses.settings,
        view_clauses.query,
        view_clauses.new_version,
        view_clauses.oldest,
        "DRY" in view_clauses.seen,
        view_clauses.job,
        position=position,
    )


def _parse_view_clause(cursor: TokenCursor, action: ViewAction, view_clauses: _ViewClauses) -> bool:
    """Parse the next clause into `view_clauses`; return False if none is next, or none may follow."""
    clause = cursor.key
    if action == "REBUILD" and cursor.take("AS"):
        view_clauses.query = queries.parse_query(cursor)
        view_clauses.settings += getattr(view_clauses.query, "settings", ())
        return False
    if action == "REBUILD" and _parse_version_clause(cursor, view_clauses):
        return True
    if cursor.take("SETTINGS"):
        view_clauses.settings += clauses.parse_settings(cursor)
        return True
    if clause not in _CLAUSES.get(action, ()):
        return False
    if clause in view_clauses.seen or (clause in _EXCLUSIVE and view_clauses.seen & _EXCLUSIVE):
        exclusive = ", ".join(c for c in _CLAUSES[action] if c in _EXCLUSIVE)
        raise SyntaxError(
            f"SYSTEM {action} VIEW takes one of {exclusive}, once.", position=cursor.position()
        )
    view_clauses.seen.add(clause)
    if clause == "PARTITION":
        view_clauses.partition = storage.parse_partition(cursor)
        return True
    cursor.advance()
    match clause:
        case "WHERE":
            view_clauses.where = expressions.parse_expression(cursor)
        case "FROM":
            view_clauses.from_value = expressions.parse_expression(cursor)
        case "SAMPLE":
            view_clauses.sample = cursor.integer("the number of slices")
        case "OLDEST":
            view_clauses.oldest = cursor.integer("the number of slices")
        case "DISCARD":
            cursor.expect("BYPASS")
        case "DRY":
            cursor.expect("RUN")
        case "JOB":
            view_clauses.job = cursor.string()
    return True


def _parse_version_clause(cursor: TokenCursor, view_clauses: _ViewClauses) -> bool:
    """Parse a clause that describes the new version of a REBUILD; return False if none is next.

    `[(columns, constraints)] [ENGINE … ORDER BY …] [COMMENT 'c'] [REPLACE VIEW r AS (SELECT …)]`.
    After a column list, SETTINGS among the clauses of the storage are those of the table."""
    version = view_clauses.new_version
    if cursor.key == "(" and version == NewVersion():
        elements = columns.parse_table_elements(cursor)
        if elements.indexes or elements.projections:
            raise cursor.refused(
                "An INDEX or a PROJECTION in REBUILD VIEW", "Add it by ALTER TABLE after the swap."
            )
        listed = replace(
            version, columns=tuple(elements.columns), constraints=tuple(elements.constraints)
        )
        view_clauses.new_version = _with_storage(cursor, listed)
        return True
    if cursor.key in _STORAGE and version.storage is None and version.comment is None:
        view_clauses.new_version = _with_storage(cursor, version)
        return True
    if version.replaced_view is None and cursor.take("REPLACE", "VIEW"):
        name = cursor.table_name()
        cursor.expect("AS")
        cursor.expect("(")
        query = queries.parse_query(cursor)
        cursor.expect(")")
        view_clauses.new_version = replace(version, replaced_view=name, replaced_query=query)
        return True
    return False


def _with_storage(cursor: TokenCursor, version: NewVersion) -> NewVersion:
    """Return the version with the clauses of its target's storage and its COMMENT, as far as they
    are next."""
    commented = cursor.key == "COMMENT"
    described, comment = storage.parse_storage(cursor, with_settings=bool(version.columns))
    is_described = replace(described, position=None) != StorageClause()
    return replace(
        version,
        storage=described if is_described else None,
        comment=comment if comment or commented else None,
    )
