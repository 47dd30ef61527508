"""The materialization `incremental_mv`, its tests and its operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError

from ..constraints import Contract
from ..credentials import check_backfill_engine
from ..incremental_mv import generic_tests, reconcile, runner
from ..incremental_mv.config import ReconcilePolicy, RunSettings, reconcile_policy, settings_of
from ..incremental_mv.hook_writes import writes_to_target
from ..incremental_mv.names import ModelNames, selector_of
from ..incremental_mv.operations import test_files
from ..incremental_mv.shared_target import owner_of
from ..incremental_mv.source_comparison import tested_relation
from ..refreshable import runner as refreshable_runner
from ..refreshable.config import is_refreshed, refresh_of
from ..relation import OlapdbRelation
from ..storage_clause import query_settings, storage_clause
from .runs import RunMethods
from .types import TypeMethods

logger = AdapterLogger("olapdb")


class IncrementalMvMethods(RunMethods, TypeMethods):
    """Methods of `incremental_mv` models."""

    @available.parse(lambda *a, **k: {})
    def run_incremental_mv(
        self,
        relation: OlapdbRelation,
        sql: str,
        config: Mapping[str, Any],
        model: Mapping[str, Any],
        flags: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Bring target, trigger and read view up to date with the model; see `runner.run`.

        Returns `message`, `rows_affected` and `code`, the SQL that was run."""
        credentials = self.config.credentials
        if config["contract"]["enforced"]:
            self.contract_elements(model)  # dbt warns of constraints that are left out
        shares = owner_of(getattr(self.get_macro_resolver(), "nodes", {}), model)
        names = ModelNames(
            relation.schema or "",
            relation.identifier or "",
            shares,
            selector_of(model["unique_id"]),
        )
        settings = settings_of(config, model, credentials, flags)
        with self._turn.taken():
            outcome = runner.run(self.warehouse(), names, sql, settings)
        for identifier, kind in outcome.relations:
            self.cache_added(self._sibling(relation, identifier, RelationType(kind)))
        return outcome.as_dict()

    @available.parse(lambda sql, relation: sql)
    def hook_to_run(self, sql: str, relation: OlapdbRelation) -> str:
        """Return the rendered hook of an `incremental_mv` as it is run, in a form that Jinja keeps:
        writes into the read view go to the target."""
        names = self.warehouse().named(relation.schema or "", relation.identifier or "")
        return f"{{% raw %}}{writes_to_target(sql, names)}{{% endraw %}}"

    @available.parse(lambda *a, **k: False)
    def is_refreshed(self, config: Mapping[str, Any]) -> bool:
        """Return whether the model is a view that is refreshed on a schedule."""
        return is_refreshed(config)

    @available.parse(lambda *a, **k: {})
    def run_refreshable(
        self, relation: OlapdbRelation, sql: str, model: Mapping[str, Any], full_refresh: bool
    ) -> dict[str, Any]:
        """Bring a view that is refreshed on a schedule up to date with the model; see
        `refreshable.runner.run`. Returns the same as `run_incremental_mv`.

        Raises CompilationError."""
        config = model["config"]
        if config["contract"]["enforced"]:
            elements = self.contract_elements(model)
            if any(element.startswith("CONSTRAINT") for element in elements):
                raise CompilationError(
                    "A materialized_view with refresh has no constraints. Test them, or use a table."
                )
            if stored := Contract.of(model).stored_otherwise():
                raise CompilationError(
                    f"The contract gives {', '.join(stored)} a codec or ttl, which columns of a "
                    "materialized_view with refresh do not have. Use config ttl, or a table."
                )
        refreshed = refreshable_runner.RefreshedModel(
            sql,
            refresh_of(config, relation.schema or ""),
            storage_clause(config),
            query_settings(config),
            str(config.get("on_configuration_change") or "apply"),
            full_refresh,
        )
        names = ModelNames(relation.schema or "", relation.identifier or "")
        former = self.get_relation(
            relation.database or "", relation.schema or "", relation.identifier or ""
        )
        outcome = refreshable_runner.run(self.warehouse(), names, refreshed)
        if former is not None and former.type != RelationType.MaterializedView:
            self.cache_dropped(former)
        for identifier, kind in outcome.relations:
            self.cache_added(self._sibling(relation, identifier, RelationType(kind)))
        return outcome.as_dict()

    @available.parse(lambda *a, **k: "select 1 where 1 = 0")
    def incremental_mv_test(
        self, test: str, model: OlapdbRelation | str, arguments: Mapping[str, Any], running: bool
    ) -> str:
        """Return a query with one row for each finding of a generic test of `incremental_mv`.

        If `running`, the test is run now, and its findings are logged. Otherwise (dbt compile, docs)
        the query reads the recorded verdicts."""
        given = {name: value for name, value in arguments.items() if value is not None}
        given.setdefault("engine", self.config.credentials.backfill_engine)
        policy, selector = self._tested_model(model)
        if running and self.config.credentials.read_only:
            generic_tests.require_reading_only(test, policy, given)
        findings = generic_tests.run_test(
            self.warehouse(), test, model, given, policy, running=running, selector=selector
        )
        if isinstance(findings, str):
            return findings
        for finding in reconcile.bounded(findings):
            logger.info(finding.line())
        return reconcile.findings_sql(findings)

    def _tested_model(self, model: OlapdbRelation | str) -> tuple[ReconcilePolicy, str]:
        """Return the policy that the config of a tested model has for the test `reconciled`, and what
        chooses the model in dbt's commands."""
        names, _ = tested_relation(model)
        nodes: Mapping[str, Any] = getattr(self.get_macro_resolver(), "nodes", {})
        for node in nodes.values():
            if (node.schema, node.alias) == (names.database, names.model):
                policy = reconcile_policy({"reconcile": node.config.get("reconcile")})
                return policy, selector_of(node.unique_id)
        return ReconcilePolicy(), ""

    @available.parse(lambda *a, **k: None)
    def incremental_mv_operation(self, operation: str, options: Mapping[str, Any]) -> None:
        """Run an operation of `dbt run-operation` on the chosen models, and log its table.

        One that changes something waits for a run of the target, as a run does. Raises
        DbtRuntimeError if it failed for any of them, after the others."""
        # dbt-core's selection and compiler load only with operations.
        from ..incremental_mv.operations import actions, dispatch, plan, project

        dispatch.check_arguments(operation, options)
        credentials = self.config.credentials
        manifest_project = project.ManifestProject(self.get_macro_resolver(), self.config)
        engine = options.get("engine") or credentials.backfill_engine
        flags = {"full_refresh": bool(options.get("full_refresh"))}

        def next_settings(node: Mapping[str, Any]) -> RunSettings:
            """Return the settings of the next run of a model."""
            return settings_of(node["config"], node, credentials, flags)

        schemas = {schema for schema, _ in manifest_project.relations()} | {credentials.schema}
        locked = operation in dispatch.CHANGING and self._take_lock(f"run-operation {operation}")
        try:
            dispatch.run(
                operation,
                actions.Request(
                    self.warehouse(), check_backfill_engine(engine, operation), dict(options)
                ),
                manifest_project,
                plan.Planner(manifest_project, next_settings),
                frozenset(schemas),
            )
        finally:
            if locked:
                self._release_lock()

    @available.parse(lambda *a, **k: False)
    def is_untested(self, model: Mapping[str, Any], nodes: Mapping[str, Any]) -> bool:
        """Return whether no test reconciles an `incremental_mv` model; `nodes` are those of the graph.

        The first model of a run asks for all."""
        if self._untested is None:
            untested = test_files.untested(nodes.values())
            self._untested = frozenset(n["unique_id"] for n in untested)
        return model["unique_id"] in self._untested

    @available.parse(lambda *a, **k: [])
    def write_reconciliation_tests(
        self, nodes: Iterable[Mapping[str, Any]], folder: str | None
    ) -> list[str]:
        """Bring the generated tests up to date, one for each model without a test; return lines."""
        root = getattr(self.config, "project_root", ".")
        paths = getattr(self.config, "test_paths", None) or ["tests"]
        project = getattr(self.config, "project_name", "")
        return test_files.write_tests(nodes, root, folder or f"{paths[0]}/reconciled", project)
