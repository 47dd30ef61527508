"""Rows of a format as settings of input change them: texts of times, Enums, addresses and bad values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.config import Settings
from olapdb.formats.base import Format, Input, Rows
from olapdb.functions import cast_or_null
from olapdb.functions.casts import parse_timestamps
from olapdb.functions.kernels.constants import default_value

_READ_BY = (
    "date_time_input_format",
    "input_format_csv_enum_as_number",
    "input_format_tsv_enum_as_number",
    "input_format_csv_use_default_on_bad_values",
    "input_format_ipv4_default_on_conversion_error",
    "input_format_ipv6_default_on_conversion_error",
)
_NOT_JSON = ("CSV", "TabSeparated")


def read_rows(chosen: Format, source: Input) -> Iterator[Rows]:
    """Read the rows of the data, with the input settings for texts of times, Enums, addresses and bad values applied.
    Raises the errors of the reader, and those of texts that are no times."""
    assert chosen.reader is not None
    rows = chosen.reader.read(source)
    if source.structure is None or not any(map(source.settings.changed.__contains__, _READ_BY)):
        return rows
    steps = {name: _step(chosen, kind, source) for name, kind in source.structure}
    return (_changed(batch, steps) for batch in rows)


Step = Callable[[pa.Array, types.DataType], tuple[pa.Array, types.DataType]]
"""What changes the texts of a column; it returns values and their type."""


def _changed(rows: Rows, steps: dict[str, Step | None]) -> Rows:
    """Apply to each column of texts its step; None leaves the column unchanged."""
    arrays, kinds = list(rows.arrays), list(rows.types)
    for at, name in enumerate(rows.names):
        step = steps.get(name)
        if step is not None and isinstance(types.plain(kinds[at]), types.String):
            arrays[at], kinds[at] = step(arrays[at], kinds[at])
    return replace(rows, arrays=tuple(arrays), types=tuple(kinds))


def _step(chosen: Format, kind: types.DataType, source: Input) -> Step | None:
    """Return the function that prepares the texts of a column as the settings say; None if they stay as they are."""
    settings, inner = source.settings, types.plain(kind)
    if isinstance(inner, types.DateTime | types.DateTime64):
        mode = settings.text("date_time_input_format")
        if mode != "best_effort":
            return partial(_times, target=inner, mode=mode, zone=source.environment.zone)
    if isinstance(inner, types.Enum) and _of_numbers(chosen, settings):
        return partial(_elements, target=inner)
    fills = _is_filled(chosen, inner, settings)
    return partial(_filled, target=inner, source=source) if fills else None


def _of_numbers(chosen: Format, settings: Settings) -> bool:
    """Return whether texts that are numbers stand for the numbers of an Enum in this format, by its setting."""
    short = {"CSV": "csv", "TabSeparated": "tsv"}
    name = next((short[prefix] for prefix in _NOT_JSON if chosen.name.startswith(prefix)), None)
    return name is not None and settings.boolean(f"input_format_{name}_enum_as_number")


def _is_filled(chosen: Format, inner: types.DataType, settings: Settings) -> bool:
    """Return whether texts that the type cannot hold become its default, by the settings."""
    if isinstance(inner, types.IPv4):
        return settings.boolean("input_format_ipv4_default_on_conversion_error")
    if isinstance(inner, types.IPv6):
        return settings.boolean("input_format_ipv6_default_on_conversion_error")
    return chosen.name.startswith("CSV") and settings.boolean(
        "input_format_csv_use_default_on_bad_values"
    )


def _times(
    texts: pa.Array,
    kind: types.DataType,
    target: types.DateTime | types.DateTime64,
    mode: str,
    zone: str,
) -> tuple[pa.Array, types.DataType]:
    """Parse texts as times in the mode of date_time_input_format; NULL stays null."""
    valid = texts.is_valid()
    present = texts.drop_null()
    if mode == "basic":
        timestamps = parse_timestamps.basic_timestamps(present, target, zone)
    else:
        timestamps = parse_timestamps.parse_datetimes(present, target, zone, american=True)
    if texts.null_count:
        places = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
        timestamps = timestamps.take(pc.if_else(valid, places, pa.scalar(None, pa.int64())))
    return timestamps, types.make_nullable(target)


def _elements(
    texts: pa.Array, kind: types.DataType, target: types.Enum
) -> tuple[pa.Array, types.DataType]:
    """Replace texts that are numbers of the Enum's elements by the elements' names; other texts stay."""
    for number, name in target.texts.items():
        texts = pc.if_else(pc.equal(texts, str(number)), name, texts)
    return texts, kind


def _filled(
    texts: pa.Array, kind: types.DataType, target: types.DataType, source: Input
) -> tuple[pa.Array, types.DataType]:
    """Parse texts; a text that the type cannot hold becomes the type's default; NULL stays null."""
    wanted = types.make_nullable(target)
    values = cast_or_null(texts, types.make_nullable(types.STRING), wanted, source.environment)
    bad = pc.and_(pc.is_null(values), pc.is_valid(texts))
    filled = pc.if_else(bad, default_value(target), values)
    return filled, wanted
