"""Lines of names and types, and the number of values of a row: what formats of rows share."""

from __future__ import annotations

from collections.abc import Sequence

from olapdb import errors, types
from olapdb.formats.base import Input
from olapdb.formats.name_matching import SETTING, matched_names
from olapdb.functions import parse_type
from olapdb.records import dataclass


@dataclass(frozen=True)
class Head:
    """The columns of the data in order: names, and types if the head has them."""

    names: tuple[str, ...]
    types: tuple[types.DataType, ...] | None = None


def checked_head(source: Input, names: Sequence[str], type_names: Sequence[str] | None) -> Head:
    """Check names and types of a head against the wanted columns, as the settings say, and return the Head. Raises
    NoSuchColumn for an unknown name unless input_format_skip_unknown_fields is on, and IncorrectData for another
    type."""
    types_of_data = None if type_names is None else tuple(parse_type(name) for name in type_names)
    if source.structure is None:
        return Head(tuple(names), types_of_data)
    settings = source.settings
    if not settings.boolean("input_format_with_names_use_header"):
        return Head(tuple(name for name, _ in source.structure), types_of_data)
    wanted = dict(source.structure)
    names = matched_names(names, wanted, settings.text(SETTING))
    for at, name in enumerate(names):
        if name in wanted and name in names[:at]:
            raise errors.IncorrectData(f"The data name column {name} twice.")
        if name not in wanted:
            if not settings.boolean("input_format_skip_unknown_fields"):
                raise unknown_field(name, wanted)
        elif (
            types_of_data
            and settings.boolean("input_format_with_types_use_header")
            and types_of_data[at] != wanted[name]
        ):
            raise errors.IncorrectData(
                f"Column {name} has type {wanted[name]}, the data say {types_of_data[at]}.",
                hint="SETTINGS input_format_with_types_use_header = 0 converts the values.",
            )
    return Head(tuple(names), types_of_data)


def unknown_field(name: str, wanted: Sequence[str] | dict[str, types.DataType]) -> errors.Error:
    """Return the error that column `name` of the data is not among the `wanted` ones."""
    return errors.IncorrectData(
        f"The data have a column {name}, which is none of {', '.join(wanted)}.",
        hint="SETTINGS input_format_skip_unknown_fields = 1 skips it.",
    )


def numbered_names(count: int) -> tuple[str, ...]:
    """Return the names c1, c2, … of columns without names."""
    return tuple(f"c{at}" for at in range(1, count + 1))


def plain_names(source: Input, count: int) -> tuple[str, ...]:
    """Return the names of the columns of data without a head: those of the wanted columns, else c1, c2, …."""
    if source.structure is None:
        return numbered_names(count)
    return tuple(name for name, _ in source.structure)


def count_error(row: int, count: int, names: Sequence[str]) -> errors.DataError:
    """Return the error that a row has `count` values instead of one for each of `names`."""
    missing = f": {names[count]} has none" if count < len(names) else ""
    return errors.CannotParseInput(
        f"Row {row} has {count} values for {len(names)} columns{missing}.",
        hint=f"The columns are {', '.join(names)}.",
    )


def no_structure(reason: str) -> errors.DataError:
    """Return the error that the columns of the data cannot be inferred, with the reason."""
    return errors.CannotExtractTableStructure(
        f"The columns of the data cannot be found: {reason}.",
        hint="Give the structure: file('path', 'format', 'a UInt8, b String').",
    )
