"""Compatibility of a view's columns with its target: names, and types as an INSERT would cast
them."""

from __future__ import annotations

import pyarrow as pa

from olapdb import errors
from olapdb.functions import store_column
from olapdb.functions.base import Environment
from olapdb.ingest.deduplication_key import refused_target
from olapdb.model.schema import Column, Table
from olapdb.model.snapshot import Snapshot
from olapdb.plan.nodes import Plan
from olapdb.sql import nodes
from olapdb.types import AggregateFunction, DataType, plain
from olapdb.views.definition.query_shape import constants_of


def check_columns(
    name: str,
    plan: Plan,
    target: Table,
    declared: tuple[nodes.ColumnDefinition, ...],
    snapshot: Snapshot,
    environment: Environment,
) -> None:
    """Raise ThereIsNoColumn, IllegalColumn, BadTypeOfField, TypeMismatch or CannotConvertType if
    the query's columns do not fit the target; NotSupportedError for a target that drops rows.

    `declared` is the statement's column list; omitted types are None. It must agree with the
    target, whose types are stored.
    """
    if target.setting("deduplicate_by"):
        raise refused_target(target)
    for column, data_type in zip(plan.names, plan.types, strict=True):
        target_column = target.column(column)
        if target_column is None:
            available = ", ".join(candidate.name for candidate in target.columns)
            raise errors.ThereIsNoColumn(
                f"View {name} has a column {column}, which its target {target.database}."
                f"{target.name} does not have.",
                hint=f"Use AS to give it one of the target's names: {available}.",
            )
        check_column(name, column, data_type, target_column, environment)
    for column, constant in constants_of(plan):
        written_column = target.column(column)
        if written_column is not None and constant.value.is_valid:
            values = pa.array([constant.value.as_py()], constant.type.arrow)
            check_column(name, column, constant.type, written_column, environment, values)
    for declaration in declared:
        target_column = target.column(declaration.name)
        if target_column is None or declaration.name not in plan.names:
            raise errors.ThereIsNoColumn(
                f"View {name} declares a column {declaration.name}, which its query or its"
                " target does not have.",
                hint="Leave the column list out; the target's types count.",
            )
        if declaration.type is not None and declaration.type != target_column.type:
            raise errors.BadTypeOfField(
                f"View {name} declares column {declaration.name} as {declaration.type}, but"
                f" {target.database}.{target.name} stores {target_column.type}.",
                hint="Leave the column list out; the target's types count.",
            )


def check_column(
    name: str,
    column: str,
    have: DataType,
    wanted: Column,
    environment: Environment,
    values: pa.Array | None = None,
) -> None:
    """Raise an error, as `check_columns` does, if view `name` cannot write a column of type `have`
    into the target's column `wanted`. `values`, of type `have`, are the values to write if they are
    known."""
    target = wanted.type
    if wanted.default_kind in ("MATERIALIZED", "ALIAS"):
        raise errors.IllegalColumn(
            f"View {name} writes column {column} of its target, which is {wanted.default_kind}.",
            hint="Leave it out of the query; it is computed.",
        )
    if isinstance(plain(have), AggregateFunction) or isinstance(target, AggregateFunction):
        _check_state(name, column, plain(have), target)
        return
    try:
        if values is None:
            values = pa.nulls(0, have.arrow)
        store_column(values, have, target, environment)
    except errors.DataError as error:
        raise errors.CannotConvertType(
            f"View {name}: column {column} is {have} and cannot be stored as {target}:"
            f" {error.message}",
            hint=f"Cast it in the query: CAST({column}, '{target}') AS {column}.",
        ) from error


def _check_state(name: str, column: str, have: DataType, target: DataType) -> None:
    """Raise TypeMismatch or CannotConvertType unless both types are the same aggregate state."""
    if have == target:
        return
    if isinstance(have, AggregateFunction) and isinstance(target, AggregateFunction):
        raise errors.CannotConvertType(
            f"View {name}: column {column} is {have}, the target stores {target}; states of"
            " different functions or arguments cannot be converted.",
            hint=f"Make the target's column {have}, or cast the arguments.",
        )
    if isinstance(target, AggregateFunction):
        parameters = f"({', '.join(target.parameters)})" if target.parameters else ""
        raise errors.TypeMismatch(
            f"View {name}: column {column} is the finished value {have}, the target stores the"
            f" state {target}.",
            hint=f"Use {target.function}State{parameters} in the query.",
        )
    raise errors.TypeMismatch(
        f"View {name}: column {column} is the state {have}, the target stores {target}.",
        hint=f"Make the target's column {have}, in an AggregatingMergeTree.",
    )
