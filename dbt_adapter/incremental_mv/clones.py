"""A clone of an `incremental_mv`: its target's rows, shared, under a read view of its own.

A clone has no trigger: INSERTs into the source reach the model alone. `dbt run` in the clone's schema
makes a model of it.
"""

from __future__ import annotations

import json

from dbt_common.exceptions import CompilationError

from olapdb.bind.syntax import rewrite
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query

from ..relation import string_literal
from .model_definition import COMMENT_KEY
from .names import ModelNames
from .warehouse import Warehouse, comment_body

_CLONE_OF = "clone_of"


def clone_model(warehouse: Warehouse, source: ModelNames, clone: ModelNames) -> list[str]:
    """Return the statements that make a clone: its target first, so that a run which is killed
    between them is completed by the next one.

    Raises CompilationError if the model has no read view."""
    rows = warehouse.rows(
        "SELECT as_select FROM system.tables WHERE engine = 'View' AND database = "
        f"{string_literal(source.database)} AND name = {string_literal(source.model)}"
    )
    if not rows:
        raise CompilationError(f"{source} has no read view to clone; run the model first.")
    comment = json.dumps({COMMENT_KEY: {_CLONE_OF: str(source)}})
    return [
        f"CREATE OR REPLACE TABLE {warehouse.sql_name(clone, clone.target)} "
        f"CLONE AS {warehouse.sql_name(source, source.target)}",
        f"CREATE OR REPLACE VIEW {warehouse.sql_name(clone, clone.model)} AS "
        f"{_reading_from(clone, source, str(rows[0]['as_select']))} "
        f"COMMENT {string_literal(comment)}",
    ]


def is_clone(warehouse: Warehouse, names: ModelNames) -> bool:
    """Return whether the relation is the read view of a clone, which has a target of its own."""
    return _CLONE_OF in comment_body(warehouse.comment(names.database, names.model))


def _reading_from(clone: ModelNames, source: ModelNames, select: str) -> str:
    """Return the SELECT of a read view with the clone's target in place of the model's."""
    old = nodes.TableName(source.target, source.database)
    new = nodes.TableName(clone.target, clone.database)
    return to_sql(rewrite(parse_query(select), lambda node: new if node == old else None))
