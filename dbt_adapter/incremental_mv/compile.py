"""Compiles a model's SQL to its definition, with the names and types of the warehouse."""

from __future__ import annotations

from dataclasses import replace

from dbt_common.exceptions import CompilationError, DbtDatabaseError

from olapdb.bind.analysis import referenced_tables, source_of
from olapdb.bind.user_functions import calls_of_users
from olapdb.errors import Error
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.types import DataType

from .chain import attach_to_target
from .config import ModelConfig
from .declared_inputs import check_inputs
from .errors import refuse, refuse_all, refuse_sql
from .model_definition import ModelDefinition, define_model
from .model_sql import read_model
from .names import ModelNames
from .query_split import split_query
from .refusals import refusals
from .shared_target import config_of_owner, into_shared_target
from .target_contract import with_contract
from .warehouse import TableInfo, Warehouse


def compile_model(
    warehouse: Warehouse, names: ModelNames, sql: str, config: ModelConfig
) -> ModelDefinition:
    """Return the definition of the model.

    Raises CompilationError, with reason and remedy, if the SQL is wrong or a trigger cannot keep the
    model correct."""
    try:
        select = read_model(sql)
        if calls_of_users(select):  # a changed function is a changed definition
            select = read_model(warehouse.written_out(to_sql(select)))
    except Error as error:
        raise refuse_sql(sql, error) from error
    _refuse_mistakes(select)
    warehouse.model_state(names, referenced_tables(select))  # one query for all that follows
    attached = attach_to_target(select, lambda name: warehouse.upstream(name, names.database))
    source = _source(warehouse, names, attached)
    if names.shares:
        config = config_of_owner(warehouse, names, config)
    try:
        check_inputs(select, source, config)
        split = split_query(attached)
        types = warehouse.describe(to_sql(split.trigger))
    except (CompilationError, DbtDatabaseError):
        if attached is select:
            warehouse.describe(to_sql(select))  # raises the error in terms of the model's own SQL
        raise
    described: tuple[tuple[str, DataType], ...] = ()
    if config.contract is not None or (attached is select and not split.reads_columns):
        described = warehouse.describe(to_sql(select))  # raises what is wrong with expressions
    definition = define_model(split, types, source.partition_key, config)
    definition = replace(definition, chained=attached is not select)
    if config.contract is not None:
        definition = with_contract(definition, config.contract, described)
    return into_shared_target(warehouse, names, definition) if names.shares else definition


def _refuse_mistakes(select: nodes.Select) -> None:
    """Raise one CompilationError for all clauses and columns that a trigger cannot maintain."""
    errors = list(refusals(select))
    if not errors:
        return  # The columns are judged once the upstream's are known.
    try:
        split_query(select)
    except CompilationError as error:
        errors.append(error)
    raise refuse_all(errors)


def _source(warehouse: Warehouse, names: ModelNames, select: nodes.Select) -> TableInfo:
    """Return the table whose INSERTs fire the trigger; raise CompilationError unless there is one."""
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
