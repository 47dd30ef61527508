"""Python models: run the code, and write its rows."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.base.impl import log_code_execution
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events.logging import AdapterLogger

import olapdb

from ..python_models import submission
from ..python_models.rows_table import drop_statement, is_whole_table, rows_relation
from ..relation import OlapdbRelation
from .relations import RelationMethods

logger = AdapterLogger("olapdb")


class PythonModelMethods(RelationMethods):
    """Methods of models in Python."""

    def __init__(self, config: Any, mp_context: Any) -> None:
        """Begin without rows of any model."""
        super().__init__(config, mp_context)
        self._python_rows: dict[int, OlapdbRelation] = {}

    @property
    def default_python_submission_method(self) -> str:
        """The submission method of Python models that name none."""
        return submission.default_method(self.config.credentials)

    @available.parse(lambda *a, **k: a[0])
    def python_model_rows(
        self, relation: OlapdbRelation, model: dict[str, Any], compiled_code: str
    ) -> OlapdbRelation:
        """Run a Python model and return the table that holds its rows: a temporary one, or one that
        was written in one commit.

        The caller drops the table; if the model fails before, `post_model_hook` does."""
        self._python_rows[threading.get_ident()] = rows_relation(relation, model)
        self.submit_python_job(model, compiled_code)
        return self._python_rows[threading.get_ident()]

    @available.parse(lambda *a, **k: False)
    def shares_rows(
        self, rows: OlapdbRelation | None, model: Mapping[str, Any], existing: OlapdbRelation | None
    ) -> bool:
        """Return whether a table model takes the files of its rows' table instead of writing them again.

        Not if a trigger reads the model: it is told of the rows that changed, which an exchange of
        all files does not say."""
        if rows is None or not rows.include_policy.schema or not is_whole_table(model):
            return False
        return existing is None or (existing.is_table and not self._triggers_over(existing))

    def post_model_hook(self, config: Mapping[str, Any], context: None) -> None:
        """Drop the rows of a Python model that failed after it had written them."""
        rows = self._python_rows.pop(threading.get_ident(), None)
        if rows is None:
            return
        try:
            self._handle().connection.execute(drop_statement(rows))
        except olapdb.Error as error:
            logger.warning(f"{rows.render()} is left until the model runs again: {error}")

    @log_code_execution
    def submit_python_job(
        self, parsed_model: dict[str, Any], compiled_code: str
    ) -> AdapterResponse:
        """Run a Python model and write its rows into the rows' table of the model's relation."""
        relation = self.Relation.create(
            database=parsed_model["database"],
            schema=parsed_model["schema"],
            identifier=parsed_model["alias"],
        )
        with self.connections.exception_handler(f"the Python model {parsed_model['name']}"):
            table, rows = submission.write_rows(
                self._handle().connection,
                parsed_model,
                compiled_code,
                relation,
                self.config.credentials,
            )
        self._python_rows[threading.get_ident()] = table
        return AdapterResponse(_message=f"OK {rows}", rows_affected=rows)
