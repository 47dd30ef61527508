"""From a model's SQL to its definition, with the names and types that the warehouse knows."""

from __future__ import annotations

from dataclasses import replace

from olapdb.bind.analysis import source_of
from olapdb.errors import Error
from olapdb.sql import nodes
from olapdb.sql.format import to_sql

from .chain import attach
from .definition import Definition, ModelConfig, define
from .errors import refuse
from .inputs import read_model
from .names import Names
from .refusals import refuse_clauses
from .shape import shape_of
from .warehouse import TableInfo, Warehouse


def compile_model(warehouse: Warehouse, names: Names, sql: str, config: ModelConfig) -> Definition:
    """The definition of the model. CompilationError, with reason and remedy, where a trigger
    cannot keep it right or where the SQL is wrong."""
    try:
        select = read_model(sql)
    except Error as error:
        raise refuse("the SQL does not parse:", str(error), "") from error
    refuse_clauses(select)
    attached = attach(select, lambda name: warehouse.upstream(name, names.database))
    source = _source(warehouse, names, attached)
    if attached is select:
        warehouse.describe(to_sql(select))  # names that do not exist are told as the engine does
    shape = shape_of(attached)
    types = warehouse.describe(to_sql(replace(shape.trigger)))
    upstream = source.uuid if attached is not select else ""
    return define(shape, types, source.partition_key, config, upstream)


def _source(warehouse: Warehouse, names: Names, select: nodes.Select) -> TableInfo:
    """The table whose INSERTs fire the trigger."""
    name = source_of(select)
    if name is None:
        raise refuse(
            "the model's first FROM is no table,",
            "so nothing would fire it.",
            "Select from a source, a seed, a table or another incremental_mv.",
        )
    source = warehouse.table(name, names.database)
    if source is None:
        raise refuse(
            f"the source {name} does not exist", "in the warehouse.", "Load or build it first."
        )
    if source.engine in ("View", "MaterializedView"):
        raise refuse(
            f"{name} is a {source.engine},",
            "which no INSERT goes to, so that nothing would fire.",
            "Select from the table below it; a staging model may be ephemeral, its SQL is then "
            "part of this model.",
        )
    return source
