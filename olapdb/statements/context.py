"""The context of a running statement: warehouse, settings, parameters, name resolution."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from olapdb import errors
from olapdb.bind import BindScope
from olapdb.bind.analysis import referenced_tables
from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.commit.origin import CommitOrigin
from olapdb.config import Settings
from olapdb.errors import IncorrectQuery
from olapdb.execute import ExecutionContext, SystemReader
from olapdb.functions.base import Environment
from olapdb.functions.scalar import ScalarDefinition
from olapdb.lazy import lazy_modules
from olapdb.model.schema import MaterializedView, RefreshableView, SchemaObject, Table, View
from olapdb.model.session_snapshot import TEMPORARY_DATABASE, SessionSnapshot, temporary_ids
from olapdb.model.snapshot import Snapshot
from olapdb.model.user_function import UserFunction
from olapdb.plan.nodes import Field
from olapdb.records import dataclass
from olapdb.runtime.python_code import LocalFunction, refuse_python, stored_definition
from olapdb.runtime.services import Services
from olapdb.sql import nodes
from olapdb.sql.parser import parse_query
from olapdb.statements.temporary_tables import TemporaryTables
from olapdb.storage.session_store import SessionStore
from olapdb.storage.store import Store

if TYPE_CHECKING:
    from olapdb.result import QueryStatistics
    from olapdb.system import all_tables, information_schema, registry
    from olapdb.system.registry import SystemTable
    from olapdb.views.jobs.executor import Executor
else:
    all_tables, information_schema, registry = lazy_modules(
        "olapdb.system", "all_tables", "information_schema", "registry"
    )

Parameters: TypeAlias = Sequence[object] | Mapping[str, object] | None
Progress: TypeAlias = Callable[[Any], None]


class Background(Protocol):
    """The background merges and TTL of this process.

    `table_id` None means all tables. `running` False stops the work, and returns when no such work
    is in progress.
    """

    def set_merges(self, running: bool, table_id: str | None = None) -> None:
        """Start or stop background merges."""
        ...

    def set_ttl(self, running: bool, table_id: str | None = None) -> None:
        """Start or stop the removal of expired rows."""
        ...

    def expires(self, table_id: str) -> bool:
        """Return whether expired rows of the table may be removed: no `set_ttl(False)` applies."""
        ...


@dataclass(frozen=True)
class OpenWarehouse:
    """An open warehouse, as statements see it.

    `executor(name, settings)` returns the executor for SETTINGS engine = name. `background` is None for a
    read-only warehouse.
    """

    services: Services
    executor: Callable[[str, Settings], Executor]
    background: Background | None
    plans: PlanCache

    @property
    def system(self) -> Mapping[str, SystemTable]:
        """The system tables by name."""
        return all_tables.SYSTEM_TABLES


@dataclass
class PlanCache:
    """A bounded cache of optimized plans by SQL text, query, database and settings. Thread-safe.

    A plan is valid while no object that it names has a new revision; the caller checks that.
    """

    entries_max: int = 512
    _entries: dict[object, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: object) -> Any:
        """Return the plan of the key; None if there is none."""
        with self._lock:
            return self._entries.get(key)

    def put(self, key: object, plan: Any) -> None:
        """Store a plan, in place of the oldest one if the cache is full."""
        with self._lock:
            if len(self._entries) >= self.entries_max:
                self._entries.pop(next(iter(self._entries)))
            self._entries[key] = plan


_OF_BUFFERS = frozenset({"INSERT", "CREATE TABLE AS", "EXPLAIN PROVENANCE"})
"""The statements that a Buffer passes on to its table; ClickHouse refuses those that remove rows or columns."""


@dataclass(frozen=True)
class StatementContext:
    """The context of one statement: its text, settings, parameters and surroundings."""

    engine: OpenWarehouse
    text: str
    database: str
    settings: Settings
    environment: Environment
    parameters: Parameters
    cancelled: threading.Event
    progress: Progress | None
    statistics: QueryStatistics
    runs_user_code: bool = False
    """Whether the statement calls the caller's code (a stream of rows, `progress`). Exceptions of
    that code are the caller's, not bugs of the engine."""

    local_functions: Mapping[tuple[str, str], LocalFunction] = field(default_factory=dict)
    """The Python functions of the connection, see `Session.create_function`."""

    temporary: TemporaryTables | None = None
    """The temporary tables of the session; None where there is no session."""

    on_temporary: bool = False
    """Whether the statement is about a temporary table: names without a database are of these."""

    @property
    def services(self) -> Services:
        """Return the services of the catalog that the statement is about: the warehouse's, or that
        of the session's temporary tables."""
        if self.on_temporary and self.temporary is not None:
            return self.temporary.services(self.settings)
        return self.engine.services

    @property
    def query_id(self) -> str:
        """Return the statement's id in system.processes and system.query_log."""
        return self.environment.query_id

    def origin(self, kind: str = "") -> CommitOrigin:
        """Return the origin of this statement's commits; `kind` is the commit's kind in
        system.snapshots."""
        return CommitOrigin(
            self.services,
            kind,
            self.query_id,
            self.text,
            self.settings,
            self.environment.of_warehouse,
            self.cancelled,
        )

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot. A statement that changes something takes one snapshot, and
        uses no other.

        Raises BadArguments for SETTINGS snapshot, which reads the past.
        """
        number = self.settings.integer("snapshot")
        if number:
            raise errors.BadArguments(
                f"SETTINGS snapshot = {number} reads the past; this statement is about the present.",
                hint="Give the setting to a SELECT, also to that of INSERT INTO … SELECT.",
            )
        return self.services.catalog.snapshot()

    def of_the_present(self) -> StatementContext:
        """Return this context without SETTINGS snapshot: INSERT … SELECT … SETTINGS snapshot = n
        reads the past, but writes to the newest snapshot."""
        if not self.settings.integer("snapshot"):
            return self
        return replace(self, settings=self.settings.with_changes({"snapshot": 0}))

    def reading_snapshot(self) -> Snapshot:
        """Return the snapshot that SETTINGS snapshot names, else the newest. Raise SnapshotTooOld
        if vacuum has removed its parts."""
        number = self.settings.integer("snapshot") or None
        return self._beside(self.engine.services.catalog.snapshot(number))

    def with_temporary(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot that queries read: with the session's temporary tables if there are
        any. `snapshot` is of the catalog that the statement is about."""
        if self.temporary is None or isinstance(snapshot, SessionSnapshot):
            return snapshot
        if self.on_temporary:
            return SessionSnapshot(self.engine.services.catalog.snapshot(), snapshot)
        return self._beside(snapshot)

    def _beside(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot of the warehouse with the session's temporary tables, if there are
        any."""
        temporary = None if self.temporary is None else self.temporary.snapshot()
        return snapshot if temporary is None else SessionSnapshot(snapshot, temporary)

    def pin(self, snapshot: Snapshot) -> Callable[[], None]:
        """Keep vacuum from deleting the parts of a snapshot of `with_temporary`, until the returned
        function is called."""
        pinned = [(self.engine.services.catalog, snapshot.number)]
        if isinstance(snapshot, SessionSnapshot) and self.temporary is not None:
            own = self.temporary.services(self.settings).catalog
            pinned.append((own, snapshot.temporary.number))
        for catalog, number in pinned:
            catalog.pin(number)

        def unpin() -> None:
            """Remove the pins of the snapshots."""
            for catalog, number in pinned:
                catalog.unpin(number)

        return unpin

    def with_settings(
        self, settings: Sequence[nodes.Setting], *, takes_engine: bool = False
    ) -> StatementContext:
        """Return this context with the settings of the statement's SETTINGS clause.

        `takes_engine`: the statement computes chunks of a view, so the setting `engine` applies;
        other statements refuse it. Raises ReadOnly for changes that the setting `readonly` forbids.
        """
        if not settings:
            return self
        changes = {setting.name: setting.value for setting in settings}
        if not takes_engine:
            self.settings.refuse_engine(changes)
        self.settings.refuse_if_readonly(changes)
        return replace(self, settings=self.settings.with_changes(changes))

    def in_session_zone(self) -> StatementContext:
        """Return this context for a statement that computes rows in the zone of the setting
        session_timezone. All others, such as mutations and definitions, use the warehouse's."""
        environment = self.environment.in_zone(self.settings.text("session_timezone"))
        return self if environment == self.environment else replace(self, environment=environment)

    def require_warehouse_zone(self, what: str, position: errors.Position | None) -> None:
        """Raise NotSupportedError if the setting session_timezone names another zone than the
        warehouse's, in which alone `what` is computed: times that a SELECT shows would be others."""
        zone = self.settings.text("session_timezone")
        if zone in ("", self.engine.services.zone):
            return
        raise errors.NotSupportedError(
            f"{what} in the zone {zone} of the setting session_timezone is not supported: it is"
            f" computed in the warehouse's zone, {self.engine.services.zone}.",
            hint="Run it with session_timezone = '', and name zones: toDateTime('…', 'Asia/Tokyo').",
            position=position,
        )

    def scope(self, snapshot: Snapshot) -> BindScope:
        """Return the scope in which the binder resolves names at the snapshot."""
        snapshot = self.with_temporary(snapshot)
        return BindScope(
            snapshot=snapshot,
            temporary=frozenset(temporary_ids(snapshot)),
            database=self.database,
            settings=self.settings,
            environment=self.environment,
            parameters=self.parameters,
            system_tables=self._system_fields,
            python_function=partial(self._python_function, snapshot.functions),
        )

    def execution(self, snapshot: Snapshot) -> ExecutionContext:
        """Return the context in which plans over the snapshot are executed."""
        snapshot = self.with_temporary(snapshot)
        store: Store = self.engine.services.store
        if isinstance(snapshot, SessionSnapshot) and self.temporary is not None:
            store = SessionStore(store, self.temporary.store)
        return ExecutionContext(
            snapshot=snapshot,
            store=store,
            settings=self.settings,
            environment=self.environment,
            statistics=self.statistics,
            cancelled=self.cancelled,
            system=self._read_system(snapshot),
        )

    def functions(self) -> Mapping[tuple[str, str], UserFunction]:
        """Return the functions that users made by (database, name), as of the newest commit.

        Those of the connection come before stored ones."""
        stored = self.engine.services.catalog.snapshot().functions
        own = {key: f.function for key, f in self.local_functions.items()}
        return {**stored, **own} if own else stored

    def _python_function(
        self, stored: Mapping[tuple[str, str], UserFunction], database: str, name: str
    ) -> ScalarDefinition | None:
        """Return the Python function of this name, of the connection or `stored`; None if there is none.

        Raises SupportIsDisabled for one that the warehouse stores if the setting
        allow_python_functions is off."""
        local = self.local_functions.get((database, name))
        if local is not None:
            return local.definition()
        function = stored.get((database, name))
        if function is None or function.language != "python":
            return None
        refuse_python(function.full_name, self.settings)
        return stored_definition(function)

    # --- names

    def locate(self, name: nodes.TableName) -> tuple[str, str]:
        """Return (database, name); a name without a database is in the current one, or a temporary
        table's if the statement is about these."""
        if name.database is not None:
            return name.database, name.name
        return TEMPORARY_DATABASE if self.on_temporary else self.database, name.name

    def find(self, snapshot: Snapshot, name: nodes.TableName) -> SchemaObject | None:
        """Return the object of that name; None if there is none."""
        return snapshot.find(*self.locate(name))

    def require(self, snapshot: Snapshot, name: nodes.TableName) -> SchemaObject:
        """Return the object of that name. Raise the error of `unknown_table` if there is none."""
        item = self.find(snapshot, name)
        if item is None:
            raise unknown_table(snapshot, *self.locate(name)).at(name.position)
        return item

    def require_table(self, snapshot: Snapshot, name: nodes.TableName, action: str) -> Table:
        """Return the stored table of that name; for a materialized view its inner table.

        Raises the errors of `require`, IncorrectQuery for a view with a TO target,
        UnsupportedMethod for a plain view, NotSupportedError for what a Buffer does not pass on.
        `action` names the statement in these errors."""
        item = self.require(snapshot, name)
        match item:
            case Table():
                return item
            case MaterializedView(inner=True) | RefreshableView(inner=True):
                inner = snapshot.by_id(item.target_id)
                if isinstance(inner, Table):
                    return inner
                raise unknown_table(snapshot, item.database, item.name)
            case MaterializedView() | RefreshableView():
                target = snapshot.by_id(item.target_id)
                target_name = f"{target.database}.{target.name}" if target else "its target"
                raise incorrect_query(
                    f"{action}: materialized view {name} writes to {target_name}.",
                    f"Run the statement on {target_name}.",
                    name,
                )
            case View(alias_of=(database, table)):
                if item.engine_name == "Buffer" and action not in _OF_BUFFERS:
                    raise errors.NotSupportedError(
                        f"{action}: {name} is a Buffer, which passes INSERTs on to {database}.{table}.",
                        hint=f"Run the statement on {database}.{table}.",
                        position=name.position,
                    )
                aliased = nodes.TableName(table, database, position=name.position)
                return self.require_table(snapshot, aliased, action)
            case View():
                raise errors.UnsupportedMethod(
                    f"{action}: {name} is a view and stores nothing.",
                    hint="Name a table.",
                    position=name.position,
                )

    def require_view(self, snapshot: Snapshot, name: nodes.TableName) -> MaterializedView:
        """Return the materialized view of that name. Raise QueryNotSupportedInMaterializedView for
        another object, and the errors of `require`."""
        view = self.require(snapshot, name)
        if not isinstance(view, MaterializedView):
            raise errors.QueryNotSupportedInMaterializedView(
                f"{name} is not a materialized view.",
                hint="system.views lists the materialized views.",
                position=name.position,
            )
        return view

    # --- system tables

    def system_table(self, database: str, name: str) -> SystemTable | None:
        """Return a table of the database `system` or of information_schema; None if there is
        none."""
        if database == "system":
            return self.engine.system.get(name)
        return (
            information_schema.information_tables().get(name.lower())
            if _is_single_case(name)
            else None
        )

    def _system_fields(self, database: str, name: str) -> Any:
        """Return the columns of a system table as a tuple of `Field`; None if there is no such
        table."""
        system_table = self.system_table(database, name)
        return (
            None
            if system_table is None
            else tuple(
                Field(field_name, data_type) for field_name, data_type in system_table.fields
            )
        )

    def _read_system(self, snapshot: Snapshot) -> SystemReader:
        """Return a function that reads columns of a system table; see `SystemReader`.

        The name of an information_schema table has its database in front."""

        def read(name: str, columns: Sequence[str], values: Mapping[str, frozenset[str]]) -> Any:
            """Return these columns of the system table, at least its rows of these values."""
            database, _, table_name = name.rpartition(".")
            system_tables = (
                information_schema.information_tables() if database else self.engine.system
            )
            context = registry.SystemContext(
                snapshot, self.engine.services, self.settings, self.database, self.engine.system
            )
            return system_tables[table_name].read(context, columns, values)

        return read


def _is_single_case(name: str) -> bool:
    """Return whether the name is all lower or all upper case: ClickHouse has
    information_schema.tables and TABLES, not Tables."""
    return name in (name.lower(), name.upper())


def incorrect_query(message: str, hint: str, name: nodes.TableName) -> errors.ProgrammingError:
    """Return an IncorrectQuery at the position of the name."""
    return IncorrectQuery(message, hint=hint, position=name.position)


def unknown_table(
    snapshot: Snapshot, database: str, name: str
) -> errors.ProgrammingError | errors.UnsupportedMethod:
    """Return the error for a missing table: UnknownTable with the nearest name, or UnknownDatabase.

    UnsupportedMethod for a name in a system database, which contains no stored tables.
    """
    if database == TEMPORARY_DATABASE:
        return errors.UnknownTable(
            f"Temporary table {name} does not exist.",
            hint="SHOW TEMPORARY TABLES lists those of this session.",
        )
    if database in SYSTEM_DATABASES:
        return errors.UnsupportedMethod(
            f"{database}.{name} is no stored table: the database {database} has system tables only.",
            hint="They can be read by SELECT; name a table of another database.",
        )
    if database not in snapshot.databases:
        return errors.UnknownDatabase(
            f"Database {database} does not exist.", hint=f"CREATE DATABASE {database} makes it."
        )
    names = [item.name for item in snapshot.objects(database)]
    similar_names = difflib.get_close_matches(name, names, n=1)
    hint = (
        f"Did you mean {database}.{similar_names[0]}?"
        if similar_names
        else "SHOW TABLES lists those there are."
    )
    return errors.UnknownTable(f"Table {database}.{name} does not exist.", hint=hint)


def refuse_dependents(
    snapshot: Snapshot, item: SchemaObject, action: str, but: Collection[str] = ()
) -> None:
    """Raise HaveDependentObjects if a materialized view, except the ids in `but`, reads or writes
    the object, or if a refreshable view writes it or depends on it. A dictionary over an object
    that is dropped counts too. The error names them; `action` is the verb of the error."""
    dependents = [
        view
        for view in snapshot.objects()
        if view.id not in (item.id, *but)
        and (
            (isinstance(view, MaterializedView | RefreshableView) and view.needs(item.id))
            or (action == "drop" and is_dictionary_over(view, item))
        )
    ]
    if dependents:
        names = [f"{view.database}.{view.name}" for view in dependents]
        verb = "depends" if len(names) == 1 else "depend"
        raise errors.HaveDependentObjects(
            f"Cannot {action} {item.database}.{item.name}: {', '.join(names)} {verb} on it.",
            hint=f"{'; '.join(map(drop_text, dependents))} first.",
        )


def drop_text(item: SchemaObject) -> str:
    """Return the statement that drops a view or a dictionary."""
    kind = "DICTIONARY" if isinstance(item, View) and item.dictionary else "VIEW"
    if isinstance(item, View) and item.merges:
        kind = "TABLE"
    return f"DROP {kind} {item.database}.{item.name}"


def is_dictionary_over(view: SchemaObject, item: SchemaObject) -> bool:
    """Return whether the view is a dictionary whose source names the item, or a table of the engine
    Dictionary over it."""
    is_over = isinstance(view, View) and (view.dictionary or view.engine_name == "Dictionary")
    if not isinstance(view, View) or not is_over:
        return False
    return any(
        (name.database or view.database, name.name) == (item.database, item.name)
        for name in referenced_tables(parse_query(view.query))
    )
