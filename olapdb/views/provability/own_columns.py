"""Columns of a target that the view does not give, and ALTERs that change their stored values.

A recomputation fills such columns by the table's current definition. Stored rows were filled by the
definition of their INSERT. An ALTER that fills the columns differently makes the two differ.
"""

from __future__ import annotations

from collections.abc import Collection

from olapdb.dml.column_reinterpretation import default_by_ids, names_in_default
from olapdb.engine.layout import TableLayout
from olapdb.lineage.type_change import same_result
from olapdb.model.schema import Column, Table
from olapdb.plan.expressions import Constant, columns_of, walk
from olapdb.types import has_floats
from olapdb.views.provability.computed import keeps_equal_values
from olapdb.views.provability.expressions import bound_default, volatile_names
from olapdb.views.provability.parts import BoundDefinition


def fills_otherwise(before: Table, now: BoundDefinition) -> bool:
    """Return whether an ALTER makes the target fill a stored column that the view does not give
    with other values. `before` is the target before the ALTER, `now` the definition after it.

    That is so if the column's default changes, or a default that it reads, or the type of one of
    these columns. It is also so for an added column with a default whose values merges combine:
    older parts have one value for each merged row, a recomputation one for each row that the view
    gives. Columns are matched by id, so a rename changes nothing.
    """
    given_ids = {given.id for given in now.target.columns if given.name in now.plan.names}
    old_columns = {column.id: column for column in before.columns}
    for column in _filled_columns(now.target, given_ids):
        old_column = old_columns.get(column.id)
        if old_column is None:
            differs = column.id not in given_ids and _combines_on_merge(now, column)
        else:
            differs = not same_result(old_column.type, column.type, joined=False) or (
                column.id not in given_ids
                and default_by_ids(old_column, before) != default_by_ids(column, now.target)
            )
        if differs:
            return True
    return False


def added_keys(before: Table, after: Table, kept: Collection[int]) -> tuple[int, ...]:
    """Return the ids of the columns in ORDER BY of `after` that are new in it, or were in `kept`.

    An ALTER that adds a column without a default can make it the last key of a target: rows of every
    view have one value there, so the same rows are joined as before. Once the column is no key, it
    cannot become one again."""
    old_ids = {column.id for column in before.columns}
    order = {item.expression.strip("`") for item in after.sorting_key}
    return tuple(
        column.id
        for column in after.stored_columns
        if column.name in order and (column.id not in old_ids or column.id in kept)
    )


def decided_added_keys(parts: BoundDefinition) -> set[str]:
    """Return the names of the added keys that have one value in all rows of a group: the query does not give
    them, and their default is a constant, or is computed from the keys that the query gives. An ALTER of such a
    default makes the rows stale (`fills_otherwise`)."""
    return {
        column.name for column in _added_keys_not_given(parts) if _is_decided_by_keys(parts, column)
    }


def undecided_added_key(parts: BoundDefinition) -> Column | None:
    """Return an added key that the query does not give and whose default may differ between rows of one group, None
    if there is none."""
    return next(
        (
            column
            for column in _added_keys_not_given(parts)
            if not _is_decided_by_keys(parts, column)
        ),
        None,
    )


def _added_keys_not_given(parts: BoundDefinition) -> list[Column]:
    """Return the added keys of ORDER BY that the query does not give."""
    return [
        column
        for column in parts.target.stored_columns
        if column.id in parts.added_keys
        and column.name in parts.order
        and column.name not in parts.plan.names
    ]


def _is_decided_by_keys(parts: BoundDefinition, column: Column) -> bool:
    """Return whether rows of one group that lack the column always get the same value. Of the floats 0 and -0, which
    are one key, a default may make two values."""
    if not column.default:
        return True
    default = bound_default(parts.target, column.default, parts.snapshot, parts.environment)
    if volatile_names(walk(default)):
        return False
    given = set(parts.plan.names) & set(parts.order)
    return all(
        name in given
        and (key := parts.target.column(name)) is not None
        and not has_floats(key.type)
        for name in columns_of(default)
    )


def _filled_columns(table: Table, given: Collection[int]) -> list[Column]:
    """Return the stored columns that the view does not give, and those that their defaults read."""
    waiting = [stored for stored in table.stored_columns if stored.id not in given]
    filled: dict[int, Column] = {}
    while waiting:
        column = waiting.pop()
        if column.id in filled:
            continue
        filled[column.id] = column
        if column.default and column.id not in given:
            needed = (table.column(name) for name in names_in_default(column.default))
            waiting += [needed_column for needed_column in needed if needed_column is not None]
    return list(filled.values())


def _combines_on_merge(now: BoundDefinition, column: Column) -> bool:
    """Return whether merges combine values of the added column, so that its value depends on how
    many rows were merged."""
    if not column.stored or not column.default or not now.target.engine.merges_states:
        return False
    if keeps_equal_values(TableLayout(now.target), column, grouped=False):
        return False
    default = bound_default(now.target, column.default, now.snapshot, now.environment)
    return not (isinstance(default, Constant) and not default.value.as_py())
