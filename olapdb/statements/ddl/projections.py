"""Projections: the PROJECTION clauses of CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from olapdb.dml.mutation_steps import RewriteStep
from olapdb.engine.projections import bind_projection, define_projection
from olapdb.errors import (
    AlterOfColumnIsForbidden,
    BadArguments,
    IllegalProjection,
    NoSuchProjection,
    ProgrammingError,
    SupportIsDisabled,
    in_clause,
)
from olapdb.model.schema import Projection, Table
from olapdb.model.snapshot import Snapshot
from olapdb.sql import nodes
from olapdb.sql.stored_expressions import refuse_outside_values
from olapdb.statements.context import StatementContext
from olapdb.statements.ddl.positions import newest_moved
from olapdb.statements.dml.partitions import find_partition


def add_projections(definitions: tuple[nodes.ProjectionDefinition, ...], table: Table) -> Table:
    """Return the table with these projections too. Raise IllegalProjection if a name is taken, and
    what `define_projection` raises."""
    for definition in definitions:
        if any(existing.name == definition.name for existing in table.projections):
            raise IllegalProjection(
                f"The projection {definition.name} is there already.",
                hint="Choose another name.",
                position=definition.position,
            )
        refuse_outside_values(definition.query, "a projection")
        with in_clause(f"PROJECTION {definition.name}"):
            projection = define_projection(definition, table)
        table = replace(table, projections=(*table.projections, projection))
    check_projections_of_engine(table)
    return table


def check_projections_of_engine(table: Table) -> None:
    """Raise an error if the table has projections and its engine can have none, or combines rows
    without the setting that says what a merge does with projections."""
    if not table.projections:
        return
    if not table.engine.is_merge_tree:
        raise BadArguments(
            f"Engine {table.engine.name} has no projections.", hint="The MergeTree family has."
        )
    if table.engine.combines and table.setting("deduplicate_merge_projection_mode") != "rebuild":
        raise SupportIsDisabled(
            f"{table.engine.name} combines rows when parts merge: its projections must be rebuilt.",
            hint="Say SETTINGS deduplicate_merge_projection_mode = 'rebuild'.",
        )


def alter_projection(action: nodes.ProjectionAction, table: Table) -> Table:
    """Return the table after ADD or DROP PROJECTION, which affect parts written from now on.
    MATERIALIZE PROJECTION and OPTIMIZE … FINAL rewrite older parts."""
    exists = any(projection.name == action.name for projection in table.projections)
    match action.action:
        case "ADD":
            assert action.projection is not None
            if exists and action.if_exists:
                return table
            return _move_newest(add_projections((action.projection,), table), action)
        case "DROP":
            if not exists and not action.if_exists:
                raise _unknown(action, table)
            remaining = tuple(p for p in table.projections if p.name != action.name)
            return replace(table, projections=remaining)
        case "MATERIALIZE" | "CLEAR":
            return table  # `projection_steps` rewrites the parts


def projection_steps(
    action: nodes.ProjectionAction, table: Table, context: StatementContext, snapshot: Snapshot
) -> Sequence[RewriteStep]:
    """Return the steps of MATERIALIZE and CLEAR PROJECTION, which rewrite all parts. CLEAR omits
    the projection until the next merge. Raise NoSuchProjection for an unknown one."""
    if action.action not in ("MATERIALIZE", "CLEAR"):
        return ()
    partition = None
    if action.partition is not None:
        partition = find_partition(action.partition, table, context, snapshot)
    if all(projection.name != action.name for projection in table.projections):
        if action.if_exists:
            return ()
        raise _unknown(action, table)
    return (RewriteStep(partition, action.name if action.action == "CLEAR" else ""),)


def check_altered_projections(before: Table, after: Table) -> Table:
    """Return the altered table with its projections as they are over its columns now. Raise an
    error if a change of columns breaks one."""
    if not after.projections:
        return after
    check_projections_of_engine(after)
    types = {column.name: column.type for column in before.columns}
    projections: list[Projection] = []
    for projection in after.projections:
        try:
            bound = bind_projection(projection, after)
        except ProgrammingError as error:
            raise type(error)(
                f"The ALTER breaks the projection {projection.name}: {error.message}",
                hint=f"ALTER TABLE … DROP PROJECTION {projection.name} first.",
            ) from error
        for name in bound.columns:
            column = after.column(name)
            if column is not None and name in types and types[name] != column.type:
                raise AlterOfColumnIsForbidden(
                    f"The projection {projection.name} orders or groups by {name}, whose type"
                    " cannot change.",
                    hint=f"ALTER TABLE … DROP PROJECTION {projection.name} first.",
                )
        projections.append(bound.definition)
    return replace(after, projections=tuple(projections))


def _unknown(action: nodes.ProjectionAction, table: Table) -> NoSuchProjection:
    """Return the error for a projection that the table lacks."""
    return NoSuchProjection(
        f"{table.database}.{table.name} has no projection {action.name}.",
        hint="system.projections lists those there are.",
        position=action.position,
    )


def _move_newest(table: Table, action: nodes.ProjectionAction) -> Table:
    """Return the table with its newest projection moved FIRST or AFTER another one.

    Raises NoSuchProjection."""

    def missing(which: str, hint: str) -> NoSuchProjection:
        """Return the error for a projection that the table lacks."""
        message = f"{table.database}.{table.name} has no projection {which}."
        return NoSuchProjection(message, hint=hint, position=action.position)

    return replace(table, projections=newest_moved(table.projections, action, missing))
