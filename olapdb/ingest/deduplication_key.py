"""The identity of a table's rows: its settings `deduplicate_by` and `deduplicate_window…`,
checked."""

from __future__ import annotations

from olapdb import errors, types
from olapdb.config import SettingValue, is_deduplication
from olapdb.model.schema import Column, Table
from olapdb.model.snapshot import Snapshot
from olapdb.records import dataclass

WINDOW_ROWS_MAX = 100_000_000
"""The largest window. It takes about 2 GB of memory in each process that inserts into the table,
and 1.6 GB in the catalog."""
_KEY_TYPES = (
    types.Integer,
    types.Enum,
    types.String,
    types.FixedString,
    types.UUID,
    types.IPv4,
    types.IPv6,
    types.Date,
    types.Date32,
    types.DateTime,
    types.DateTime64,
    types.Time,
    types.Time64,
    types.Decimal,
    types.Boolean,
)


@dataclass(frozen=True, slots=True)
class KeyRule:
    """The columns and the window by which a table drops rows that it accepted before.

    Rules of one `definition` hash keys alike: it lists the columns by id, so that a rename keeps
    it, with the form of their values.  `window_ms` 0 is no bound in time.
    """

    columns: tuple[str, ...]
    definition: str
    window_rows: int
    window_ms: int


def key_rule(table: Table) -> KeyRule | None:
    """Return the rule of a table's settings, None if its rows have no identity.

    Raises NoSuchColumn, IllegalColumn and BadTypeOfField for columns that cannot be a key,
    BadArguments for contradictory settings, NotSupportedError for other engines.
    Also raises ArgumentOutOfBound.
    """
    named = str(table.setting("deduplicate_by"))
    if not named.strip():
        lonely = next(
            (n for n, _ in table.settings if is_deduplication(n) and n != "deduplicate_by"), None
        )
        if lonely is not None:
            raise errors.BadArguments(
                f"Setting {lonely} has no meaning without deduplicate_by.",
                hint="Name the columns that identify a row: SETTINGS deduplicate_by = 'event_id'.",
            )
        return None
    if not (table.engine.is_merge_tree or table.engine.name == "Null"):
        raise errors.NotSupportedError(
            f"deduplicate_by is not supported by the engine {table.engine.name}.",
            hint="Use an engine of the MergeTree family, or Null.",
        )
    columns = [_key_column(table, name) for name in _names(named)]
    window_rows = int(table.setting("deduplicate_window_rows"))
    if window_rows > WINDOW_ROWS_MAX:
        raise errors.ArgumentOutOfBound(
            f"deduplicate_window_rows is at most {WINDOW_ROWS_MAX}, not {window_rows}.",
            hint="A key takes about 20 bytes of memory in each process that inserts.",
        )
    return KeyRule(
        tuple(column.name for column in columns),
        ",".join(f"{column.id}:{_hash_form(column)}" for column in columns),
        window_rows,
        int(table.setting("deduplicate_window")) * 1_000,
    )


def check_deduplication(table: Table, snapshot: Snapshot) -> None:
    """Raise the errors of `key_rule`; NotSupportedError if a view writes a table with a key rule.

    A view's target must hold every row of the view's result, so it cannot drop any.
    """
    if key_rule(table) is not None and snapshot.views_into(table.id):
        raise refused_target(table)


def refused_target(table: Table) -> errors.NotSupportedError:
    """Return the error for a view whose target drops rows by key."""
    return errors.NotSupportedError(
        f"{table.database}.{table.name} drops rows by deduplicate_by, and cannot be the target of a"
        " view: it would not hold what the view makes of its source.",
        hint="Deduplicate the view's source instead.",
    )


def refuse_tasks(table: Table) -> None:
    """Raise NotSupportedError if the driver cannot read the rows that tasks staged to find keys.

    Such are tables with deduplicate_by that combine rows or store none."""
    if key_rule(table) is not None and (table.engine.combines or not table.engine.stores_rows):
        raise errors.NotSupportedError(
            f"A cluster cannot insert into {table.database}.{table.name}, which has deduplicate_by"
            f" and the engine {table.engine.name}.",
            hint="Insert into a MergeTree table with deduplicate_by, or with connection.insert().",
        )


def renamed_key(
    settings: tuple[tuple[str, SettingValue], ...], old: str, new: str
) -> tuple[tuple[str, SettingValue], ...]:
    """Return a table's settings after RENAME COLUMN `old` TO `new`; accepted keys stay valid."""
    return tuple(
        (name, ", ".join(new if column == old else column for column in _names(str(value))))
        if name == "deduplicate_by"
        else (name, value)
        for name, value in settings
    )


def _names(text: str) -> list[str]:
    """Return the column names of a comma-separated list. Raise DuplicateColumn if one is twice."""
    names = [column.strip().strip("`") for column in text.split(",")]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise errors.DuplicateColumn(f"deduplicate_by names {twice} twice.")
    return names


def _key_column(table: Table, name: str) -> Column:
    """Return the table's column of that name, which must be able to identify rows.

    Raises NoSuchColumn, IllegalColumn if it is not stored, or BadTypeOfField.
    """
    where = f"{table.database}.{table.name}"
    column = table.column(name)
    if column is None:
        raise errors.NoSuchColumn(
            f"deduplicate_by names {name!r}, which is no column of {where}.",
            hint=f"It has {', '.join(c.name for c in table.columns)}.",
        )
    if not column.stored:
        raise errors.IllegalColumn(
            f"deduplicate_by names {name} of {where}, which is {column.default_kind}.",
            hint="Name columns that are stored.",
        )
    if not isinstance(types.plain(column.type), _KEY_TYPES):
        raise errors.BadTypeOfField(
            f"deduplicate_by names {name} of {where}, whose type {column.type} is no identity.",
            hint="Use whole numbers, strings, UUIDs, addresses, dates, times or decimals.",
        )
    return column


def _hash_form(column: Column) -> str:
    """Return the name of the form in which the column's values are hashed.

    Columns of different types with one form, such as integers of any width, have equal hashes.
    """
    kind = types.plain(column.type)
    if isinstance(kind, types.Integer | types.Enum | types.Boolean):
        return "integer"
    if isinstance(kind, types.Date | types.Date32):
        return "date"
    if isinstance(kind, types.Time | types.Time64):
        return kind.name
    return "string" if isinstance(kind, types.String) else str(kind.arrow)
