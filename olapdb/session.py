"""READ FIRST: one statement, stage by stage.

    execute    text -> statements (sql)
    _run       each statement with its context: snapshot, settings, parameters, query id
    _track     listed, cancellable and logged while it runs (runtime/tracking.py)
    _answer    runs it again where a concurrent writer made its read worthless
    _dispatch  statement -> its handler (statements/handlers.py) -> Result

A SELECT goes on: snapshot -> bind -> optimize -> execute (statements/query/select.py).  An INSERT:
rows -> blocks -> stage source and views -> one commit (statements/dml/insert.py, ingest/).
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, SupportsInt, TypeVar

from olapdb import errors
from olapdb.bind.placeholders import parameter_sets, refuse_surplus
from olapdb.catalog.read_retry import retry_read
from olapdb.config import Settings
from olapdb.functions.base import Environment
from olapdb.lazy import LazyModule, lazy_modules
from olapdb.maintenance.damaged_parts import check_suspects
from olapdb.model.schema import RefreshableView
from olapdb.model.snapshot import Snapshot
from olapdb.result import InsertedRows, QueryStatistics, Result
from olapdb.runtime.activity import RunningQuery
from olapdb.runtime.python_code import PYTHON_OPTIONS, LocalFunction, PythonOptions, local_function
from olapdb.runtime.tracking import QueryTracker
from olapdb.sql import nodes
from olapdb.sql.parser import parse_table_name
from olapdb.statements import handlers
from olapdb.statements.admin.readonly import refuse_if_readonly
from olapdb.statements.context import OpenWarehouse, Parameters, Progress, StatementContext
from olapdb.statements.databases import require_database
from olapdb.statements.expansion import with_functions
from olapdb.statements.query import output, select
from olapdb.statements.session_parameters import SessionParameters, is_parameter
from olapdb.statements.temporary_routing import for_table, routed
from olapdb.statements.temporary_tables import TemporaryTables
from olapdb.statements.texts import kind_of, parse_text, positional_parameters
from olapdb.threads import park_if_ending
from olapdb.types import DataType, quote_identifier

if TYPE_CHECKING:
    from olapdb.statements.admin import refresh, system_view
    from olapdb.statements.ddl import refreshable_definition
    from olapdb.statements.dml import insert, replace_rows
else:
    refresh, system_view = lazy_modules("olapdb.statements.admin", "refresh", "system_view")
    refreshable_definition = LazyModule("olapdb.statements.ddl.refreshable_definition")
    insert, replace_rows = lazy_modules("olapdb.statements.dml", "insert", "replace_rows")

_Rows = TypeVar("_Rows", bound=SupportsInt)


class Session:
    """A current database and settings on an open warehouse. Threads may share it."""

    def __init__(self, engine: OpenWarehouse, database: str, settings: Settings) -> None:
        self.engine = engine
        self.database = database
        self.settings = settings
        self.temporary = TemporaryTables(engine.services)
        self.parameters = SessionParameters()
        self.local_functions: Mapping[tuple[str, str], LocalFunction] = {}
        """The Python functions of this session alone, see `create_function`."""
        self._tracker = QueryTracker(engine.services, partial(check_suspects, engine.services))

    # --- the story

    def execute(
        self, text: str, parameters: Parameters = None, *, progress: Progress | None = None
    ) -> Result:
        """Run every statement of the text in order; return the last one's result."""
        _check_text(text)
        text = self.parameters.with_names(text, parameters)
        statements = parse_text(text)
        if not statements:
            return Result()
        if parameters:
            refuse_surplus(positional_parameters(text), parameters)
        result = Result()
        for statement in statements:
            result.close()
            result = self._run(statement, self._context(text, parameters, progress))
        return result

    def _run(self, statement: nodes.Statement, context: StatementContext) -> Result:
        """Answer one statement as a tracked query."""
        return self._track(kind_of(statement), context, lambda: self._answer(statement, context))

    def _track(self, kind: str, context: StatementContext, answer: Callable[[], Result]) -> Result:
        """Call `answer` as the tracked query of `context`, see `runtime.tracking`."""
        query = RunningQuery(
            query_id=context.query_id,
            query=context.text,
            kind=kind,
            database=context.database,
            settings=context.settings.changed,
            started_ms=int(context.environment.now_seconds * 1000),
            statistics=context.statistics,
            cancelled=context.cancelled,
        )
        try:
            return self._tracker.run(query, answer, runs_user_code=context.runs_user_code)
        finally:
            self.temporary.settle()

    def _answer(self, statement: nodes.Statement, context: StatementContext) -> Result:
        """Dispatch the statement. Repeat a read if a concurrent writer changed the catalog's file
        under it.

        A query whose snapshot was vacuumed before it was pinned is repeated too, unless it names
        the snapshot.
        """
        retried: tuple[type[errors.Error], ...] = (errors.CatalogChanged,)
        if isinstance(statement, nodes.Query) and not _asks_for_snapshot(statement, context):
            retried = (errors.CatalogChanged, errors.SnapshotTooOld)
        result = retry_read(lambda: self._dispatch(statement, context), retried)
        return output.with_text(result, getattr(statement, "format", None), context)

    def _dispatch(self, statement: nodes.Statement, context: StatementContext) -> Result:
        """Run USE and SET here, and any other statement by its handler. Raise ReadOnly if the session
        may not write and the statement would."""
        if not isinstance(statement, nodes.Query) and isinstance(statement, nodes.WithSettings):
            return self._dispatch(statement.statement, context.with_settings(statement.settings))
        statement, context = routed(statement, context)
        refuse_if_readonly(statement, context)
        statement = with_functions(statement, context)
        if not isinstance(statement, nodes.Query):  # a SELECT imports no nodes of other statements
            match statement:
                case nodes.Use():
                    return self._use(statement, context)
                case nodes.SetSettings():
                    return self._set(statement, context)
        return handlers.run_statement(statement, context)

    # --- other ways in

    def execute_many(self, text: str, sets: Iterable[Parameters]) -> Result:
        """Run the statement once for each set of parameters. An INSERT … VALUES that consists of
        parameters is one INSERT of all sets. Raises BadArguments."""
        _check_text(text)
        statements = parse_text(text)
        if len(statements) != 1:
            raise errors.BadArguments("executemany() takes exactly one statement.")
        sets = parameter_sets(sets, positional_parameters(text))
        if not sets:
            return Result(affected_rows=0)
        if isinstance(statements[0], nodes.Insert):
            statement, rows = statements[0], insert.rows_of_parameters(statements[0])
            if rows is not None:
                context = for_table(statement.table, self._context(text, None, None))

                def answer() -> Result:
                    """Insert all rows of the executemany call in one statement."""
                    refuse_if_readonly(statement, context)
                    return insert.run_insert_many(statement, rows, sets, context)

                return self._track("Insert", context, answer)
        affected = 0
        result = Result()
        for parameters in sets:
            result = self._run(statements[0], self._context(text, parameters, None))
            result.close()
            affected += max(result.affected_rows, 0)
        return Result(affected_rows=affected, query_id=result.query_id)

    def insert(
        self,
        table: str,
        data: Any,
        *,
        columns: Sequence[str] | None,
        token: str | None,
        offsets: Mapping[str, Sequence[int]] | None = None,
        replace: str = "",
    ) -> InsertedRows:
        """Insert Arrow data into `table` ("name" or "database.name"); return the rows inserted.

        `replace` is a REPLACE clause; "" inserts only. Raises BadArguments."""
        if replace:
            if token is not None or offsets is not None:
                raise errors.BadArguments("insert() takes `replace` or a token or offsets.")
            return self.run_insert(
                f"INSERT INTO {table} {replace} FORMAT Arrow",
                lambda context: replace_rows.run_replace_data(
                    table, data, columns, replace, context
                ),
                table,
            )
        return self.run_insert(
            f"INSERT INTO {table} FORMAT Arrow",
            lambda context: insert.run_insert_data(table, data, columns, token, context, offsets),
            table,
        )

    def run_insert(
        self, text: str, work: Callable[[StatementContext], _Rows], table: str = ""
    ) -> _Rows:
        """Run `work`, an INSERT of rows that are not text, as a tracked query; return its result,
        the rows written. `table` may name a temporary table; without it there is none.

        `text` is shown in system.processes and system.query_log. `work` may call the caller's own
        code (an iterator of batches, a Spark frame), whose exceptions are raised unchanged.
        """
        done: list[_Rows] = []

        def answer(context: StatementContext) -> Result:
            """Call `work` if the session may write; keep what it returns in `done`."""
            refuse_if_readonly(None, context)
            done.append(work(context))
            return Result(affected_rows=int(done[0]))

        context = self._context(text, None, None, runs_user_code=True)
        if table:
            context = for_table(parse_table_name(table), context)
        self._track("Insert", context, lambda: answer(context))
        return done[0]

    def run_on_view(self, text: str, *, progress: Progress | None = None) -> tuple[object, ...]:
        """Run one SYSTEM … VIEW command; return its rows as dataclasses. Raises BadArguments."""
        statements = parse_text(text)
        if len(statements) != 1 or not isinstance(statements[0], nodes.SystemView):
            raise errors.BadArguments("run_on_view() takes exactly one SYSTEM … VIEW statement.")
        statement, context = statements[0], self._context(text, None, progress)
        rows: tuple[object, ...] = ()

        def answer() -> Result:
            """Run the command if the session may write, again if another process changed the
            catalog meanwhile."""
            nonlocal rows
            refuse_if_readonly(statement, context)
            rows = retry_read(
                lambda: system_view.run_command(statement, context), (errors.CatalogChanged,)
            )
            return Result()

        self._track(kind_of(statement), context, answer)
        return rows

    def refresh_due(self, may_continue: Callable[[], bool]) -> bool:
        """Make the refreshes of views that are due, each as a tracked statement, until
        `may_continue()` is false. Return whether there are refreshable views. An error of a refresh
        is recorded with its view, and not raised."""
        if next(iter(self.snapshot().objects_of(RefreshableView)), None) is None:
            return False  # without an import of what refreshes need
        due = refresh.due_views(self._context("", None, None))
        failed: errors.Error | None = None
        for view in due:
            if not may_continue():
                break
            name = f"{quote_identifier(view.database)}.{quote_identifier(view.name)}"
            context = self._context(f"SYSTEM REFRESH VIEW {name}", None, None)

            def answer(context: StatementContext = context, view_id: str = view.id) -> Result:
                """Refresh the view unless another process did meanwhile."""
                rows = refresh.refresh_now(view_id, context, only_if_due=True)
                return Result(affected_rows=rows)

            try:
                self._track("System", context, answer).close()
            except (errors.RefreshFailed, errors.QueryWasCancelled, errors.UnknownTable):
                continue
            except errors.Error as error:  # of olapdb itself: the other views are due as well
                failed = error
        if failed is not None:
            raise failed
        return True

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot. What it reads from the catalog later is of the same
        commit."""
        check_suspects(self.engine.services)
        return self.engine.services.catalog.snapshot()

    def describe(self, text: str) -> tuple[tuple[str, DataType], ...]:
        """Return the names and types of a query's columns, without running it.

        Raises BadArguments."""
        statements = parse_text(text)
        if len(statements) != 1 or not isinstance(statements[0], nodes.Query):
            raise errors.BadArguments("describe() takes exactly one SELECT.")
        context = self._context(text, None, None)
        query = with_functions(statements[0], context)
        assert isinstance(query, nodes.Query)
        return select.describe(query, context)

    def create_function(
        self,
        name: str,
        handler: Callable[..., Any],
        arguments: Mapping[str, str],
        returns: str,
        options: PythonOptions = PYTHON_OPTIONS,
    ) -> None:
        """Make a Python callable a function of this session's queries, in place of one with its
        name. See `Connection.create_function`."""
        function = local_function(name, handler, arguments, returns, options)
        self.local_functions = {**self.local_functions, ("", name): function}

    def stored_query(self, text: str) -> str:
        """Return the query as a view stores it: full table names, explicit columns, no SETTINGS; or
        CREATE MATERIALIZED VIEW … REFRESH as SHOW CREATE would show it.

        Equal texts are equal definitions. Raises what binding the names in FROM raises.
        Also raises BadArguments."""
        statements = parse_text(text)
        if isinstance(statements[0], nodes.CreateMaterializedView) and statements[0].refresh:
            return refreshable_definition.stored_definition(
                statements[0], self._context(text, None, None)
            )
        if len(statements) != 1 or not isinstance(statements[0], nodes.Query):
            raise errors.BadArguments("stored_query() takes exactly one SELECT.")
        context = self._context(text, None, None)
        query = with_functions(statements[0], context)
        assert isinstance(query, nodes.Query)
        return select.stored_query(query, context)

    def cancel(self) -> None:
        """Make running statements end with QUERY_WAS_CANCELLED at their next batch."""
        self._tracker.cancel()

    def close(self) -> None:
        """Drop the session's temporary tables. Idempotent."""
        self.temporary.close()

    # --- helpers

    def _context(
        self,
        text: str,
        parameters: Parameters,
        progress: Progress | None,
        *,
        runs_user_code: bool = False,
    ) -> StatementContext:
        """Return the context of a new statement. First run callbacks that freed results left
        behind, and check parts that reads suspect of damage.

        With `runs_user_code` the statement calls the caller's code, whose exceptions are raised
        unchanged. Raises BadArguments if the parameters are no sequence and no mapping."""
        if parameters is not None and not isinstance(parameters, Mapping | Sequence):
            raise errors.BadArguments(
                f"Parameters are a sequence (for ?) or a mapping (for :name), not "
                f"{type(parameters).__name__}."
            )
        park_if_ending()
        self.engine.services.deferred.run_pending()
        check_suspects(self.engine.services)
        query_uuid = uuid.uuid4()
        query_id = str(query_uuid)
        return StatementContext(
            engine=self.engine,
            text=text,
            database=self.database,
            settings=self.settings,
            environment=Environment(
                zone=self.engine.services.zone,
                now_seconds=time.time(),
                query_id=query_id,
                database=self.database,
                random_seed=query_uuid.int & 0xFFFFFFFF,
                opened_seconds=self.engine.services.opened_seconds,
                warehouse_id=self.engine.services.catalog.warehouse_id,
            ),
            parameters=self.parameters.beside(parameters, text),
            cancelled=threading.Event(),
            progress=progress,
            runs_user_code=runs_user_code or progress is not None or bool(self.local_functions),
            statistics=QueryStatistics(),
            local_functions=self.local_functions,
            temporary=self.temporary,
        )

    def _use(self, statement: nodes.Use, context: StatementContext) -> Result:
        """Make the database the session's current one. Raise UnknownDatabase if it does not
        exist."""
        require_database(statement.database, context.snapshot(), statement.position)
        self.database = statement.database
        return Result()

    def _set(self, statement: nodes.SetSettings, context: StatementContext) -> Result:
        """Run SET: change settings, and values of parameters."""
        settings = [setting for setting in statement.settings if not is_parameter(setting)]
        self.settings = context.with_settings(settings, takes_engine=True).settings
        self.parameters.set(statement.settings)
        return Result()


def _asks_for_snapshot(query: nodes.Query, context: StatementContext) -> bool:
    """Return whether the setting `snapshot` selects an older snapshot for the query."""
    clauses = getattr(query, "settings", ())
    return bool(context.settings.integer("snapshot")) or any(s.name == "snapshot" for s in clauses)


def _check_text(text: object) -> None:
    """Raise BadArguments for a statement that is no text."""
    if not isinstance(text, str):
        raise errors.BadArguments(f"A statement is a str, not {type(text).__name__}.")
