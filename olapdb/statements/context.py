"""What a running statement can reach."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from olapdb import errors
from olapdb.bind import BindScope
from olapdb.bind.system_tables import SYSTEM_DATABASES
from olapdb.commit.origin import CommitOrigin
from olapdb.config import Settings
from olapdb.errors import IncorrectQuery
from olapdb.execute import ExecutionContext
from olapdb.functions.base import Environment
from olapdb.model.schema import MaterializedView, SchemaObject, Table, View
from olapdb.model.snapshot import Snapshot
from olapdb.plan.nodes import Field
from olapdb.runtime.services import Services
from olapdb.sql import nodes
from olapdb.system.information_schema import information_tables
from olapdb.system.registry import SystemContext, SystemTable

if TYPE_CHECKING:
    from olapdb.bind import BindScope
    from olapdb.execute import ExecutionContext
    from olapdb.result import QueryStatistics
    from olapdb.views.jobs.executor import Executor

Parameters: TypeAlias = Sequence[object] | Mapping[str, object] | None
Progress: TypeAlias = Callable[[Any], None]


class Background(Protocol):
    """Merges and TTL in the background, of one table or (None) of all: `running` False stops them,
    and returns when none is under way; in this process."""

    def set_merges(self, running: bool, table_id: str | None = None) -> None: ...

    def set_ttl(self, running: bool, table_id: str | None = None) -> None: ...

    def expires(self, table_id: str) -> bool:
        """Whether expired rows of the table may leave: no `set_ttl(False)` holds."""
        ...


@dataclass(frozen=True)
class OpenWarehouse:
    """An open warehouse, as statements see it.

    `executor(name, settings)` gives the executor of SETTINGS engine = name; `system` are the
    system tables by name; `background` None: a read-only warehouse has none.
    """

    services: Services
    executor: Callable[[str, Settings], Executor]
    background: Background | None
    system: Mapping[str, SystemTable]
    plans: PlanCache


@dataclass
class PlanCache:
    """Optimized plans by SQL text, database and settings; valid while the revisions of what
    they name are unchanged. Bounded, and safe for many threads."""

    entries_max: int = 512
    _entries: dict[object, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: object) -> Any:
        with self._lock:
            return self._entries.get(key)

    def put(self, key: object, plan: Any) -> None:
        with self._lock:
            if len(self._entries) >= self.entries_max:
                self._entries.pop(next(iter(self._entries)))
            self._entries[key] = plan


@dataclass(frozen=True)
class StatementContext:
    """One statement: its text, settings and parameters, and the snapshot that it reads."""

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
    """Whether it runs code of the caller's (a stream that makes rows, `progress`), whose errors are
    the caller's own."""

    @property
    def services(self) -> Services:
        return self.engine.services

    @property
    def query_id(self) -> str:
        return self.environment.query_id

    def origin(self, kind: str = "") -> CommitOrigin:
        """Return who commits for this statement; `kind` is that of the commit."""
        return CommitOrigin(
            self.services,
            kind,
            self.query_id,
            self.text,
            self.settings,
            self.environment,
            self.cancelled,
        )

    def snapshot(self) -> Snapshot:
        """The newest, of which a statement takes one and stays with it; for those that change
        something, so SETTINGS snapshot is refused."""
        number = self.settings.integer("snapshot")
        if number:
            raise errors.BadArguments(
                f"SETTINGS snapshot = {number} reads the past; this statement is about the present.",
                hint="Give the setting to a SELECT, also to that of INSERT INTO … SELECT.",
            )
        return self.services.catalog.snapshot()

    def of_the_present(self) -> StatementContext:
        """For what an INSERT … SELECT … SETTINGS snapshot = n writes."""
        if not self.settings.integer("snapshot"):
            return self
        return replace(self, settings=self.settings.with_changes({"snapshot": 0}))

    def reading_snapshot(self) -> Snapshot:
        """As of SETTINGS snapshot, else the newest. SnapshotTooOld where its parts are gone."""
        return self.services.catalog.snapshot(self.settings.integer("snapshot") or None)

    def with_settings(
        self, settings: Sequence[nodes.Setting], *, takes_engine: bool = False
    ) -> StatementContext:
        """Return this statement's context with the settings of its SETTINGS clause. `takes_engine`:
        the statement computes chunks of a view where the setting `engine` says."""
        if not settings:
            return self
        changes = {s.name: s.value for s in settings}
        if not takes_engine:
            self.settings.refuse_engine(changes)
        self.settings.refuse_if_readonly(changes)
        return replace(self, settings=self.settings.with_changes(changes))

    def scope(self, snapshot: Snapshot) -> BindScope:

        return BindScope(
            snapshot=snapshot,
            database=self.database,
            settings=self.settings,
            environment=self.environment,
            parameters=self.parameters,
            system_tables=self._system_fields,
        )

    def execution(self, snapshot: Snapshot) -> ExecutionContext:

        return ExecutionContext(
            snapshot=snapshot,
            store=self.services.store,
            settings=self.settings,
            environment=self.environment,
            statistics=self.statistics,
            cancelled=self.cancelled,
            system=self._read_system(snapshot),
        )

    # --- names

    def locate(self, name: nodes.TableName) -> tuple[str, str]:
        return name.database or self.database, name.name

    def find(self, snapshot: Snapshot, name: nodes.TableName) -> SchemaObject | None:
        return snapshot.find(*self.locate(name))

    def require(self, snapshot: Snapshot, name: nodes.TableName) -> SchemaObject:
        """The object of that name, or UnknownTable with the nearest names."""
        found = self.find(snapshot, name)
        if found is None:
            raise unknown_table(snapshot, *self.locate(name)).at(name.position)
        return found

    def require_table(self, snapshot: Snapshot, name: nodes.TableName, action: str) -> Table:
        """A stored table; a materialized view with an inner table stands for that."""
        found = self.require(snapshot, name)
        match found:
            case Table():
                return found
            case MaterializedView(inner=True):
                inner = snapshot.by_id(found.target_id)
                if isinstance(inner, Table):
                    return inner
                raise unknown_table(snapshot, found.database, found.name)
            case MaterializedView():
                target = snapshot.by_id(found.target_id)
                where = f"{target.database}.{target.name}" if target else "its target"
                raise nodes_error(
                    f"{action}: materialized view {name} writes to {where}.",
                    f"Run the statement on {where}.",
                    name,
                )
            case View():
                raise errors.UnsupportedMethod(
                    f"{action}: {name} is a view and stores nothing.",
                    hint="Name a table.",
                    position=name.position,
                )

    def require_view(self, snapshot: Snapshot, name: nodes.TableName) -> MaterializedView:
        found = self.require(snapshot, name)
        if not isinstance(found, MaterializedView):
            raise errors.QueryNotSupportedInMaterializedView(
                f"{name} is not a materialized view.",
                hint="system.views lists the materialized views.",
                position=name.position,
            )
        return found

    # --- system tables

    def system_table(self, database: str, name: str) -> SystemTable | None:
        """Of the database system, or of information_schema; None where there is none."""
        if database == "system":
            return self.engine.system.get(name)
        return information_tables().get(name.lower()) if _in_one_case(name) else None

    def _system_fields(self, database: str, name: str) -> Any:

        found = self.system_table(database, name)
        return None if found is None else tuple(Field(n, t) for n, t in found.fields)

    def _read_system(self, snapshot: Snapshot) -> Callable[[str, Sequence[str]], Any]:
        context = SystemContext(
            snapshot, self.services, self.settings, self.database, self.engine.system
        )

        def read(name: str, columns: Sequence[str]) -> Any:
            database, _, inside = name.rpartition(".")
            known = information_tables() if database else self.engine.system
            return known[inside].read(context, columns)

        return read


def _in_one_case(name: str) -> bool:
    """information_schema.tables and TABLES, as ClickHouse has them; not Tables."""
    return name in (name.lower(), name.upper())


def nodes_error(message: str, hint: str, name: nodes.TableName) -> errors.ProgrammingError:

    return IncorrectQuery(message, hint=hint, position=name.position)


def unknown_table(
    snapshot: Snapshot, database: str, name: str
) -> errors.ProgrammingError | errors.UnsupportedMethod:
    """UnknownTable, or UnknownDatabase, with what is near; UnsupportedMethod of a system table, which
    is never among what is stored."""

    if database in SYSTEM_DATABASES:
        return errors.UnsupportedMethod(
            f"{database}.{name} is no stored table: the database {database} has system tables only.",
            hint="They can be read by SELECT; name a table of another database.",
        )
    if database not in snapshot.databases:
        return errors.UnknownDatabase(
            f"Database {database} does not exist.", hint=f"CREATE DATABASE {database} makes it."
        )
    names = [o.name for o in snapshot.objects(database)]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean {database}.{near[0]}?" if near else "SHOW TABLES lists those there are."
    return errors.UnknownTable(f"Table {database}.{name} does not exist.", hint=hint)


def refuse_dependents(snapshot: Snapshot, item: SchemaObject, action: str) -> None:
    """HAVE_DEPENDENT_OBJECTS where a materialized view reads or writes the object."""
    dependents = [
        v
        for v in snapshot.objects()
        if isinstance(v, MaterializedView) and v.id != item.id and v.needs(item.id)
    ]
    if dependents:
        names = [f"{v.database}.{v.name}" for v in dependents]
        depend = "depends" if len(names) == 1 else "depend"
        raise errors.HaveDependentObjects(
            f"Cannot {action} {item.database}.{item.name}: {', '.join(names)} {depend} on it.",
            hint=f"{'; '.join(f'DROP VIEW {name}' for name in names)} first.",
        )
