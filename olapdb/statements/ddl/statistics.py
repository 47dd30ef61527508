"""SETTINGS and STATISTICS of columns: declared, and shown. Parts always have bounds and sketches of all columns
(see `optimize/cardinality.py`), so there is nothing to compute for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from olapdb.config import TABLE_SETTINGS
from olapdb.errors import IllegalStatistics, IncorrectQuery, Position, UnknownSetting
from olapdb.model.schema import Column, Table
from olapdb.sql import nodes
from olapdb.types import (
    Boolean,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Enum,
    FixedString,
    String,
    is_number,
    plain,
)

_NUMERIC = ("tdigest",)
_TYPES = ("basic", "countmin", "minmax", "tdigest", "uniq", "uniq_v2")


def statistics_text(types: Sequence[str], column: Column, position: Position | None) -> str:
    """Return the types of statistics of a column as its definition has them. Raise IncorrectQuery for
    an unknown type, IllegalStatistics for one that the column's type does not have."""
    names = [name.lower() for name in types]
    for name in names:
        if name not in _TYPES:
            raise IncorrectQuery(
                f"Unknown statistics type: {name}.",
                hint=f"There are {', '.join(_TYPES)}.",
                position=position,
            )
        if not _fits(name, column):
            raise IllegalStatistics(
                f"Statistics of type '{name}' does not support data type {column.type.name}.",
                hint=f"Column {column.name} may have others.",
                position=position,
            )
    return ", ".join(dict.fromkeys(names))


_SETTINGS = ("max_compress_block_size", "min_compress_block_size")
"""Settings that a column may have: sizes of blocks, which a Parquet file does not have so."""


def with_settings(column: Column, settings: Sequence[nodes.Setting]) -> Column:
    """Return the column with these settings of its own added or replaced; a value of None removes
    one. Raises UnknownSetting for a setting that no column has."""
    given = dict(pair.split(" = ") for pair in column.settings.split(", ") if pair)
    for setting in settings:
        if setting.value is None:
            given.pop(setting.name, None)
            continue
        if setting.name not in _SETTINGS:
            raise UnknownSetting(
                f"Setting {setting.name} is unknown or not supported at column level.",
                hint=f"There are {', '.join(_SETTINGS)}.",
                position=setting.position,
            )
        given[setting.name] = str(TABLE_SETTINGS[setting.name].parse(setting.value))
    text = ", ".join(f"{name} = {value}" for name, value in sorted(given.items()))
    return replace(column, settings=text)


def with_statistics(column: Column, definition: nodes.ColumnDefinition) -> Column:
    """Return the column with the STATISTICS and SETTINGS of its definition."""
    column = with_settings(column, definition.settings)
    if not definition.statistics:
        return column
    text = statistics_text(definition.statistics, column, definition.position)
    return replace(column, statistics=text)


def _fits(name: str, column: Column) -> bool:
    """Return whether columns of this type can have statistics of the type `name`. Nullable and
    LowCardinality do not count."""
    inner = plain(column.type)
    times = isinstance(inner, Boolean | Date | Date32 | DateTime | DateTime64 | Enum)
    if name in ("tdigest", "minmax"):
        return is_number(inner) or times
    return is_number(inner) or times or isinstance(inner, String | FixedString)


def altered_statistics(action: nodes.StatisticsAction, table: Table) -> Table:
    """Return the table after ADD, MODIFY, DROP, CLEAR or MATERIALIZE STATISTICS.

    Raises IllegalStatistics for a column that does not exist, or has none to drop or has them
    already."""
    names = list(action.columns)
    if names == ["ALL"] and action.verb == "MATERIALIZE":
        return table
    columns = {column.name: column for column in table.columns}
    for name in names:
        column = columns.get(name)
        if column is None:
            raise _illegal(
                f"Cannot {action.verb.lower()} statistics: there is no column {name}.", action
            )
        columns[name] = _altered(column, action)
    return replace(table, columns=tuple(columns[column.name] for column in table.columns))


def _altered(column: Column, action: nodes.StatisticsAction) -> Column:
    """Return the column after the action."""
    if action.verb in ("ADD", "MODIFY"):
        text = statistics_text(action.types, column, action.position)
        if action.verb == "MODIFY":
            return replace(column, statistics=text)
        present = column.statistics.split(", ") if column.statistics else []
        added = text.split(", ")
        repeated = [name for name in added if name in present]
        if repeated and not action.conditional:
            raise _illegal(f"Column {column.name} has statistics {repeated[0]} already.", action)
        return replace(column, statistics=", ".join(dict.fromkeys([*present, *added])))
    if not column.statistics and not action.conditional and action.verb != "MATERIALIZE":
        raise _illegal(f"Cannot find statistics of column {column.name}.", action)
    return replace(column, statistics="") if action.verb == "DROP" else column


def _illegal(message: str, action: nodes.StatisticsAction) -> IllegalStatistics:
    """Return (do not raise) the error of an action on statistics."""
    return IllegalStatistics(
        message, hint="SHOW CREATE TABLE shows the statistics of columns.", position=action.position
    )
