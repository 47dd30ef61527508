"""ALTER TABLE beyond columns: MODIFY ORDER BY, MODIFY and RESET SETTING."""

from __future__ import annotations

from dataclasses import replace

from olapdb.bind import BindScope, bind_expression
from olapdb.config import FIXED_SETTINGS, TABLE_SETTINGS, SettingValue, table_settings
from olapdb.errors import BadArguments, NotSupportedError, ReadonlySetting
from olapdb.model.schema import KeyItem
from olapdb.plan.expressions import columns_of
from olapdb.sql import nodes
from olapdb.sql.parser import parse_expression
from olapdb.sql.stored_expressions import refuse_outside_values
from olapdb.statements.ddl.columns import ColumnsDraft
from olapdb.statements.ddl.engines import check_memory_limits, with_version
from olapdb.statements.ddl.table_definition import key_items


def modify_order_by(draft: ColumnsDraft, action: nodes.ModifyOrderBy, scope: BindScope) -> None:
    """Change the sorting key of the draft, such that existing parts remain sorted.

    Items may be removed from the end, down to the primary key. Added items may use only columns
    that the same ALTER adds, without defaults: such a column has one value in all existing rows.
    Raises BadArguments for other keys.
    Also raises NotSupportedError.
    """
    table = draft.table
    table_name = f"{table.database}.{table.name}"
    if not table.engine.is_merge_tree:
        raise NotSupportedError(
            f"{table_name} has no ORDER BY: {table.engine.name} does not sort.",
            position=action.position,
        )
    old, new = _declared_sorting_key(draft), tuple(key_items(action.order_by))
    common_length = next(
        (i for i, (old_item, new_item) in enumerate(zip(old, new)) if old_item != new_item),
        min(len(old), len(new)),
    )
    primary_length = min(table.primary_key, len(old))
    if common_length < primary_length:
        raise BadArguments(
            f"The primary key of {table_name}, {_key_text(old[:primary_length])}, must stay at the head of ORDER BY.",
            hint="CREATE a new table, INSERT … SELECT the rows, and EXCHANGE TABLES.",
            position=action.position,
        )
    for item in new[common_length:]:
        parsed = parse_expression(item.expression)
        refuse_outside_values(parsed, "a sorting key")
        bound = bind_expression(parsed, table, scope)
        for name in sorted(columns_of(bound)):
            column = table.column(name)
            if column is None or not draft.is_new(column):
                raise BadArguments(
                    f"{item.expression} cannot be added to ORDER BY of {table_name}: the rows are not"
                    f" sorted by {name}, which is there already.",
                    hint="Only columns that the same ALTER adds can be appended.",
                    position=action.position,
                )
            if column.default or column.default_kind:
                raise BadArguments(
                    f"{item.expression} cannot be added to ORDER BY of {table_name}: {name} has a"
                    " default, by which older rows are not sorted.",
                    hint="ADD COLUMN without one.",
                    position=action.position,
                )
        if not columns_of(bound):
            raise BadArguments(f"{item.expression} in ORDER BY is a constant.")
    draft.table = replace(
        table, sorting_key=with_version(table.engine, new), primary_key=table.primary_key
    )


def modify_settings(draft: ColumnsDraft, action: nodes.ModifySetting) -> None:
    """Apply MODIFY SETTING a = x, or RESET SETTING b, with the checks of CREATE TABLE. Raise
    ReadonlySetting for settings that are fixed at CREATE.
    Also raises NotSupportedError and BadArguments."""
    table = draft.table
    changes: dict[str, SettingValue | None] = {
        setting.name: setting.value for setting in action.settings
    }
    if table.engine.name == "Memory" and not action.reset:
        given = {**dict(table.settings), **dict(table_settings(changes, memory=True))}
        check_memory_limits(given)
        draft.table = replace(table, settings=tuple(given.items()))
        return
    if not table.engine.is_merge_tree:
        raise NotSupportedError(f"{table.engine.name} has no settings.", position=action.position)
    for name in (*changes, *action.reset):
        if name in FIXED_SETTINGS and changes.get(name) != table.setting(name):
            raise ReadonlySetting(
                f"Setting {name} is fixed when the table is made.",
                hint="CREATE a new table with it, INSERT … SELECT the rows, and EXCHANGE TABLES.",
                position=action.position,
            )
    unknown = next((name for name in action.reset if name not in TABLE_SETTINGS), None)
    if unknown is not None:
        raise BadArguments(
            f"Cannot reset setting {unknown}: there is none of this name.", position=action.position
        )
    settings = {**dict(table.settings), **dict(table_settings(changes))}
    remaining = tuple((name, value) for name, value in settings.items() if name not in action.reset)
    draft.table = replace(table, settings=remaining)


def _declared_sorting_key(draft: ColumnsDraft) -> tuple[KeyItem, ...]:
    """Return ORDER BY as the user wrote it, without the version column that
    VersionedCollapsingMergeTree appends."""
    table = draft.table
    if with_version(table.engine, table.sorting_key[:-1]) == table.sorting_key:
        return (
            table.sorting_key[:-1]
            if table.engine.sign and table.engine.version
            else table.sorting_key
        )
    return table.sorting_key


def _key_text(items: tuple[KeyItem, ...]) -> str:
    """Return the expressions of the key items, comma-separated."""
    return ", ".join(item.expression for item in items)
