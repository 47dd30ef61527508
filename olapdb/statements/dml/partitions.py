"""ALTER TABLE … PARTITION and PART: select the parts, and run the action on them."""

from __future__ import annotations

from olapdb.dml import attach_parts, move_parts
from olapdb.dml.part_selection import NamedParts
from olapdb.engine.layout import TableLayout, json_value, partition_id
from olapdb.errors import (
    CannotForgetPartition,
    Error,
    InvalidPartitionValue,
    NotSupportedError,
    SupportIsDisabled,
    UnknownDisk,
    UnknownVolume,
    UnsupportedMethod,
)
from olapdb.lineage.row_removal import RowChange
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.sql import nodes
from olapdb.sql.trees import elements_of_tuple
from olapdb.statements.context import StatementContext
from olapdb.statements.dml.partition_values import (
    partition_id_of,
    partition_value,
    refuse_arithmetic,
)
from olapdb.storage import frozen_parts

_WHOLE_TABLE = ("DROP", "DETACH", "ATTACH", "DROP DETACHED", "FREEZE", "UNFREEZE")
_SINGLE_PARTS = ("DROP", "DETACH", "ATTACH", "DROP DETACHED", "MOVE")


def find_partition(
    reference: nodes.PartitionReference, table: Table, context: StatementContext, snapshot: Snapshot
) -> str:
    """Return the partition id that `PARTITION value` or `PARTITION ID 'x'` names; no part needs to
    exist.

    Raises SupportIsDisabled for ALL, SyntaxError for arithmetic, and InvalidPartitionValue,
    TypeMismatch or ArgumentOutOfBound for a value that no partition of the table can have.
    Also raises NotSupportedError and UnsupportedMethod.
    """
    if reference.kind == "ID":
        return partition_id_of(reference)
    if reference.kind == "ALL":
        raise SupportIsDisabled(
            "PARTITION ALL is not supported here.",
            hint="Leave PARTITION out for the whole table; DROP, DETACH and ATTACH PARTITION take ALL.",
            position=reference.position,
        )
    if reference.kind != "VALUE" or reference.value is None:
        raise NotSupportedError(
            f"PARTITION {reference.kind} is not supported here.",
            hint="Name one partition by its value or by ID.",
            position=reference.position,
        )
    expression = reference.value
    refuse_arithmetic(expression)
    if not table.partition_key:
        if _is_empty_tuple(expression):
            return "all"
        raise _unpartitioned(table, reference)
    types = [
        element.type for element in TableLayout(table, context.environment).partition_expressions
    ]
    elements = elements_of_tuple(expression)
    if len(elements) != len(types):
        raise InvalidPartitionValue(
            f"PARTITION BY {table.partition_key} has {len(types)} elements, {len(elements)} are given.",
            position=reference.position,
        )
    scope = context.scope(snapshot)
    values = [
        json_value(partition_value(element, data_type, scope))
        for element, data_type in zip(elements, types, strict=True)
    ]
    return partition_id(values, types)


def _unpartitioned(table: Table, reference: nodes.PartitionReference) -> Error:
    """Return the error for a partition's value of a table without PARTITION BY."""
    if not table.engine.is_merge_tree:
        return UnsupportedMethod(
            f"{table.database}.{table.name} has no partitions: its engine is {table.engine.name}.",
            hint="Use an engine of the MergeTree family.",
            position=reference.position,
        )
    return InvalidPartitionValue(
        f"{table.database}.{table.name} has no PARTITION BY.",
        hint="Its one partition is tuple(), or ID 'all'.",
        position=reference.position,
    )


def _is_empty_tuple(given: nodes.Expression) -> bool:
    """Return whether the expression is a tuple without elements: `()` or `tuple()`."""
    is_tuple = isinstance(given, nodes.TupleLiteral) or (
        isinstance(given, nodes.Function) and given.name == "tuple"
    )
    return is_tuple and not elements_of_tuple(given)


def select_parts(
    reference: nodes.PartitionReference, table: Table, context: StatementContext, snapshot: Snapshot
) -> NamedParts:
    """Return the parts that a reference of any kind names: ALL, PART, or a partition."""
    if reference.kind == "ALL":
        return NamedParts()
    if reference.kind == "PART":
        return NamedParts(part=str(reference.id or _literal_value(reference.value)))
    return NamedParts(partition=find_partition(reference, table, context, snapshot))


def _literal_value(value: nodes.Expression | None) -> object:
    """Return the value of a literal; another expression unchanged."""
    return value.value if isinstance(value, nodes.Literal) else value


def alter_partition(
    statement: nodes.Alter, action: nodes.PartitionAction, context: StatementContext
) -> int:
    """Run one partition action in one commit. Return the number of rows removed, or of rows added
    if none was removed.

    Raises the errors of `olapdb.dml.move_parts` and `attach_parts`, NotSupportedError for FETCH and
    FORGET, CannotForgetPartition for FORGET of one with rows, SupportIsDisabled for actions that
    ClickHouse disables."""
    check_partition_action(action, context)
    snapshot = context.snapshot()
    table = context.require_table(snapshot, statement.table, f"{action.action} PARTITION")
    selection = select_parts(action.partition, table, context, snapshot)
    if action.action == "FORGET":
        if selection.choose(table, snapshot.parts(table.id)):
            raise CannotForgetPartition(
                "A partition with rows is not forgotten.",
                hint="ALTER TABLE … DROP PARTITION removes them.",
                position=action.position,
            )
        raise _unsupported(action)
    if action.action in ("FREEZE", "UNFREEZE"):
        _copy_or_delete_copies(action, table, selection, context)
        return 0
    other_table = None
    if action.table is not None:
        other_table = context.require_table(snapshot, action.table, f"{action.action} PARTITION")
    change = _row_change(action, context)
    match action.action:
        case "DROP":
            return move_parts.drop_parts(change, table.id, selection).rows
        case "DETACH":
            return move_parts.detach_parts(change, table.id, selection).rows
        case "ATTACH" if other_table is None:
            return attach_parts.attach_detached(change, table.id, selection).rows
        case "ATTACH":
            assert other_table is not None
            return attach_parts.attach_from(change, table.id, selection, other_table.id).rows
        case "DROP DETACHED":
            return attach_parts.drop_detached(change, table.id, selection).rows
        case "MOVE":
            assert other_table is not None
            return move_parts.move_parts(change, table.id, selection, other_table.id).rows
        case "REPLACE":
            assert other_table is not None
            return move_parts.replace_parts(
                change,
                table.id,
                selection,
                other_table.id,
                allow_empty=context.settings.boolean("allow_replace_partition_from_empty_source"),
            ).rows
        case _:
            raise _unsupported(action)


def _copy_or_delete_copies(
    action: nodes.PartitionAction, table: Table, selection: NamedParts, context: StatementContext
) -> None:
    """Run FREEZE, which copies the live parts of the table, or UNFREEZE, which deletes copies."""
    services = context.services
    if action.action == "UNFREEZE":
        frozen_parts.unfreeze_parts(services.store, table, action.target, selection.partition)
        return
    with services.catalog.pinned() as snapshot:
        parts = selection.choose(table, snapshot.parts(table.id))
        name = action.target or frozen_parts.next_name(services.store)
        frozen_parts.freeze_parts(services.store, snapshot, table, parts, name)


def check_partition_action(action: nodes.PartitionAction, context: StatementContext) -> None:
    """Raise NotSupportedError or SupportIsDisabled for an action that cannot run, before any action
    of the statement runs."""
    if action.action == "FETCH":
        raise _unsupported(action)
    if action.action in ("MOVE TO DISK", "MOVE TO VOLUME"):
        raise _no_such_place(action)
    kind = action.partition.kind
    whole_table = action.action in _WHOLE_TABLE
    if kind == "ALL" and not whole_table:
        raise SupportIsDisabled(
            f"{action.action} PARTITION ALL is not supported.",
            hint="DROP, DETACH and ATTACH PARTITION ALL are; name the partitions one by one.",
            position=action.position,
        )
    if kind == "PART" and (
        action.action not in _SINGLE_PARTS or (action.action == "ATTACH" and action.table)
    ):
        raise SupportIsDisabled(
            f"{action.action} PART … FROM is not supported.",
            hint="Name a partition.",
            position=action.position,
        )
    if action.action == "DROP DETACHED" and not context.settings.boolean("allow_drop_detached"):
        raise SupportIsDisabled(
            "DROP DETACHED PARTITION deletes rows for good, and is disabled.",
            hint="SETTINGS allow_drop_detached = 1 enables it.",
            position=action.position,
        )


_ONLY_PLACE = "default"


def _no_such_place(action: nodes.PartitionAction) -> UnknownDisk | UnknownVolume:
    """Return the error of MOVE … TO DISK or TO VOLUME: the warehouse has one place, which is named `default`.

    UnknownDisk for a move to `default`, where all parts are already, and for any other disk; UnknownVolume for any
    other volume."""
    place = action.action.rpartition(" ")[2].lower()
    if action.target == _ONLY_PLACE:
        return UnknownDisk(
            f"All parts are on the {place} default already: a warehouse is one folder.",
            position=action.position,
        )
    kind = UnknownDisk if place == "disk" else UnknownVolume
    return kind(
        f"There is no {place} {action.target}: a warehouse is one folder, on one disk.",
        position=action.position,
    )


def _unsupported(action: nodes.PartitionAction) -> NotSupportedError:
    """Return the error for a partition action that is not supported."""
    return NotSupportedError(
        f"ALTER TABLE … {action.action} PARTITION is not supported.",
        hint="SYSTEM BACKUP TO 'folder' copies a warehouse; ATTACH PARTITION … FROM shares parts"
        " with another table.",
        position=action.position,
    )


def _row_change(action: nodes.PartitionAction, context: StatementContext) -> RowChange:
    """Return the change of rows for the action, with the retention settings of the statement."""
    causes = {
        "DROP": "DROP PARTITION",
        "DETACH": "DETACH PARTITION",
        "ATTACH": "ATTACH PARTITION",
        "MOVE": "MOVE PARTITION",
        "REPLACE": "REPLACE PARTITION",
        "DROP DETACHED": "DROP DETACHED PARTITION",
    }
    return RowChange(
        context.origin(),
        causes[action.action],  # type: ignore[arg-type]
        retain=context.settings.boolean("retain") and action.action in ("DROP", "DETACH", "MOVE"),
        discard_retained=context.settings.boolean("discard_retained"),
    )
