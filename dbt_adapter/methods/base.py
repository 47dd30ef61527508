"""What all methods of the adapter use: connections, and the relations of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.sql import SQLAdapter

from ..column import OlapdbColumn
from ..connections import Handle, OlapdbConnectionManager
from ..incremental_mv import clones
from ..incremental_mv.names import ModelNames
from ..incremental_mv.shared_reads import Name, RunReads, SharedReads
from ..incremental_mv.turn import Turn
from ..incremental_mv.warehouse import Warehouse
from ..packages import look_up_here
from ..project import maintained_models, project_relations
from ..relation import OlapdbRelation

logger = AdapterLogger("olapdb")


class AdapterBase(SQLAdapter):
    """The adapter's connection to the warehouse. Each subject's methods are a class over it."""

    ConnectionManager = OlapdbConnectionManager
    connections: OlapdbConnectionManager
    Column = OlapdbColumn
    Relation = OlapdbRelation

    def __init__(self, config: Any, mp_context: Any) -> None:
        """Make the adapter; its models share what they read of system tables."""
        look_up_here(config)
        super().__init__(config, mp_context)
        self._turn = Turn()
        self._untested: frozenset[str] | None = None
        self._shared_reads = RunReads(
            tables=SharedReads(self._relation_names), views=SharedReads(self._trigger_names)
        )

    def cancel_open_connections(self) -> Any:
        """End the statements that run, and let no further model begin, as Ctrl-C asks. Returns the names of
        the connections."""
        self._turn.end()
        return super().cancel_open_connections()

    def _handle(self) -> Handle:
        """Return the connection handle of the calling thread."""
        handle: Handle = self.connections.get_thread_connection().handle
        return handle

    def warehouse(self) -> Warehouse:
        """Return the engine as `incremental_mv` uses it, over this thread's connection."""
        return Warehouse(
            self.connections, self._handle, self._prepare_engine, self._shared_reads, self._turn
        )

    def _relation_names(self) -> Iterator[Name]:
        """Yield the names that `incremental_mv` models of the project ask for: of each model, and of
        each relation that it reads, those of its read view, trigger and target."""
        manifest = self.get_macro_resolver()
        for database, model in project_relations(manifest):
            names = ModelNames(database, model)
            yield from ((database, name) for name in (names.model, names.view, names.target))

    def _trigger_names(self) -> Iterator[Name]:
        """Yield the names of the triggers of the project's `incremental_mv` models."""
        for node in maintained_models(self.get_macro_resolver()):
            yield node.schema, ModelNames(node.schema, node.alias).view

    def _prepare_engine(self, engine: str) -> None:
        """Start a Spark session with the profile's options if `engine` is "spark".

        An active session is reused."""
        if engine != "spark":
            return
        from olapdb.spark.session import (  # PySpark is optional and slow to import
            active_session,
            spark_session,
        )

        if active_session() is None:
            logger.info("Spark starts, for the backfills and replays of this run.")
        options = dict(self.config.credentials.spark)
        with self.connections.exception_handler("start of Spark"):
            spark_session(options.pop("app_name", "olapdb dbt"), **options)

    def _parts(self, relation: OlapdbRelation) -> list[OlapdbRelation]:
        """Return the relation alone, or all parts of an `incremental_mv`.

        The parts are trigger, read view and target, in the order in which they can be dropped."""
        if relation.type not in (RelationType.View, RelationType.MaterializedView):
            return [relation]
        names = ModelNames(relation.schema or "", relation.identifier or "")
        warehouse = self.warehouse()
        warehouse.look_up((names.database, name) for name in (names.view, names.model))
        target = self._sibling(relation, names.target, RelationType.Table)
        if warehouse.owns(names):
            trigger = self._sibling(relation, names.view, RelationType.MaterializedView)
            shares = warehouse.named(names.database, names.model).shares
            return [trigger, relation] if shares else [trigger, relation, target]
        return [relation, target] if clones.is_clone(warehouse, names) else [relation]

    def _sibling(
        self, relation: OlapdbRelation, identifier: str, kind: RelationType
    ) -> OlapdbRelation:
        """Return a relation of another name and kind in the schema of `relation`."""
        sibling: OlapdbRelation = relation.incorporate(path={"identifier": identifier}, type=kind)
        return sibling
