"""One run of dbt: its lock, and the check of each node before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.events.logging import AdapterLogger

from .. import config_check
from ..config_check import reserved_suffix
from ..config_reader import config_error
from ..credentials import MEMORY
from ..incremental_mv.left_triggers import left_triggers
from ..project import named_node, node_config, project_folder
from ..relation import OlapdbRelation
from ..run_lock import WRITING_COMMANDS, RunLock
from .base import AdapterBase

logger = AdapterLogger("olapdb")

_LISTED = 5
"""The most triggers that the warning of left ones names."""
_CHECKED = ("model", "seed", "snapshot")
"""The resource types whose config is checked before they run."""


class RunMethods(AdapterBase):
    """The lock of a run, and the checks of configs and names."""

    def __init__(self, config: Any, mp_context: Any) -> None:
        """Make the adapter of a project; a relative path of its profile is in the project's folder."""
        super().__init__(config, mp_context)
        config.credentials.project_folder = project_folder(config)
        self._run_lock: RunLock | None = None
        self._grants_noted = False
        self._reserved_names: dict[str, str] | None = None

    def set_relations_cache(
        self, relation_configs: Iterable[Any], clear: bool = False, required_schemas: Any = None
    ) -> None:
        """Check the names of all nodes, take the lock of the run, then read which relations exist.

        Raises CompilationError for names that are those of parts of another model."""
        if self._reserved():
            raise config_error(list(self._reserved().values()))
        self._lock_run()
        super().set_relations_cache(relation_configs, clear, required_schemas)
        if self._run_lock is not None:
            self._warn_of_left_triggers()

    def _warn_of_left_triggers(self) -> None:
        """Log the triggers of models that the project has no longer: they go on at each INSERT."""
        nodes = getattr(self.get_macro_resolver(), "nodes", {})
        models = [node for node in nodes.values() if str(node.resource_type) == "model"]
        schemas = {node.schema for node in models} | {self.config.credentials.schema}
        with self.connection_named("left_triggers"):
            left = left_triggers(
                self.warehouse(),
                schemas,
                {node.unique_id for node in models},
                str(getattr(self.config, "project_name", "")),
            )
        if left:
            listed = ", ".join(left[:_LISTED]) + (", …" if len(left) > _LISTED else "")
            fire = "trigger, which still fires" if len(left) == 1 else "triggers, which still fire"
            logger.warning(
                f"The project has no model any more for {len(left)} {fire} at "
                f"each INSERT: {listed}. dbt run-operation drop_orphans shows and drops them."
            )

    def _lock_run(self) -> None:
        """Take the lock of the target if the command of dbt writes; see `RunLock`."""
        command = str(getattr(getattr(self.config, "args", None), "which", "") or "")
        if command in WRITING_COMMANDS:
            self._take_lock(command)

    def _take_lock(self, command: str) -> bool:
        """Take the lock of the target for a command; return whether this call has taken it.

        A run has it already if a hook of it calls. A warehouse in memory has no other runs."""
        credentials = self.config.credentials
        if credentials.read_only or self._run_lock is not None or credentials.location == MEMORY:
            return False
        self._handle()  # makes the folder of a new warehouse
        lock = RunLock(credentials.location, credentials.schema)
        lock.acquire(f"dbt {command}", credentials.wait_for_run)
        self._run_lock = lock
        return True

    def _release_lock(self) -> None:
        """Release the lock of the target, so that its next run can begin."""
        if self._run_lock is not None:
            self._run_lock.release()
            self._run_lock = None

    def cleanup_connections(self) -> None:
        """Close all connections, and let the next run of the target begin."""
        super().cleanup_connections()
        self._release_lock()

    def pre_model_hook(self, config: Mapping[str, Any]) -> None:
        """Check a model, seed or snapshot before anything of it runs.

        Raises one CompilationError for all mistakes of its config and its name, which a run without
        dbt's cache has not judged yet."""
        node = config.model  # type: ignore[attr-defined]
        if str(node.resource_type) not in _CHECKED:
            return
        self._lock_run()
        problems = config_check.mistakes(node_config(node, self.config), self.config.credentials)
        reserved = self._reserved().get(node.unique_id)
        if reserved is not None:
            problems.append(reserved)
        if problems:
            raise config_error(problems)

    @available
    def reserved_suffix(self, identifier: str, name: str, resource_type: str) -> str:
        """Return why a node cannot have a relation of this name, "" if it can."""
        return reserved_suffix(identifier, name) if str(resource_type) in _CHECKED else ""

    def _reserved(self) -> dict[str, str]:
        """Return the mistakes in the names of the project's relations, by unique id."""
        if self._reserved_names is None:
            manifest = self.get_macro_resolver()
            nodes = getattr(manifest, "nodes", {}).values()
            self._reserved_names = config_check.reserved_names(
                named_node(n) for n in nodes if str(n.resource_type) in _CHECKED
            )
        return self._reserved_names

    @available
    def note_grants(self, relation: OlapdbRelation) -> str:
        """Log, once a run, that grants do nothing. Returns "", for Jinja."""
        if not self._grants_noted:
            self._grants_noted = True
            logger.info(f"olapdb has no users: grants, as those of {relation}, do nothing.")
        return ""
