"""Columns as texts, and texts joined to rows: what the text formats share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.base import Header
from olapdb.functions.kernels import columns
from olapdb.functions.strings.rendering import TEXT_ESCAPES, Style, display_array, display_nested
from olapdb.functions.variants.values import gathered

_NEEDS_ESCAPE = np.zeros(256, bool)
_NEEDS_ESCAPE[list(b"\\'\t\n\r\0\b\f")] = True


def is_right_aligned(data_type: types.DataType) -> bool:
    """Return whether tables align values of the type at the right: numbers and times."""
    numbers = types.Integer | types.Float | types.Decimal
    days = types.Date | types.Date32 | types.DateTime | types.DateTime64
    times = types.Interval | types.Time | types.Time64
    inner = types.plain(data_type)
    return isinstance(inner, numbers | days | times) and not isinstance(inner, types.Boolean)


def is_text(data_type: types.DataType) -> bool:
    """Return whether values of the type are texts of any characters."""
    return isinstance(
        types.plain(data_type),
        types.String | types.FixedString | types.Enum | types.Json | types.AggregateFunction,
    )


def shown(array: pa.Array, data_type: types.DataType, header: Header) -> pa.Array:
    """Format values as top-level texts; NULL is null. Bools are written as the settings say."""
    if isinstance(types.plain(data_type), types.Boolean):
        true = header.settings.text("bool_true_representation")
        return pc.if_else(array, true, header.settings.text("bool_false_representation"))
    if isinstance(variant := types.plain(data_type), types.Variant | types.Dynamic):
        return gathered(array, variant, lambda v, t: shown(v, t, header), pa.string())
    texts = display_array(array, data_type, header.environment.zone, style_of(header))
    return columns.text(texts)


def quoted(array: pa.Array, data_type: types.DataType, header: Header) -> pa.Array:
    """Format values as in SQL: strings and times quoted, NULL as the word."""
    return display_nested(array, data_type, header.environment.zone, style_of(header))


_DIGITS_MAX = 100


def style_of(header: Header) -> Style:
    """Return the style of times, numbers and quotes that the settings give. Raises BadArguments."""
    settings = header.settings
    if (digits := settings.integer("output_format_float_precision")) > _DIGITS_MAX:
        raise errors.BadArguments(
            f"output_format_float_precision is at most {_DIGITS_MAX}, not {digits}."
        )
    return Style(
        times=settings.text("date_time_output_format"),
        zeros=settings.boolean("output_format_decimal_trailing_zeros"),
        trimmed=settings.boolean("output_format_trim_fixed_string"),
        doubled_quotes=settings.boolean("output_format_values_escape_quote_with_quote"),
        digits=digits,
        points=settings.boolean("output_format_always_write_decimal_point_in_float_and_decimal"),
        short_times=settings.boolean(
            "date_time_64_output_format_cut_trailing_zeros_align_to_groups_of_thousands"
        ),
        spans=settings.text("interval_output_format") == "kusto",
    )


def tab_escaped(array: pa.Array) -> pa.Array:
    r"""Escape texts for TabSeparated: `\t`, `\n`, `\\`, `\'` and the like."""
    if not _NEEDS_ESCAPE[columns.bytes_of(array)[1]].any():
        return array
    for plain, escaped in TEXT_ESCAPES:
        array = pc.replace_substring(array, plain, escaped)
    return array


def zero_for_empty(array: pa.Array, data_type: types.DataType | None) -> pa.Array:
    """Replace empty texts by 0 if the type is an integer or decimal, since an empty value means 0 there."""
    if data_type is None:
        return array
    inner = types.plain(data_type)
    if isinstance(inner, types.Boolean) or not isinstance(
        inner, types.Integer | types.Decimal | types.WideNumber
    ):
        return array
    empty = pc.equal(array, "")
    return pc.if_else(empty, "0", array) if pc.any(empty).as_py() else array


def with_null(array: pa.Array, null: str) -> pa.Array:
    """Return the texts with `null` in place of NULL."""
    return pc.fill_null(array, null) if array.null_count else array


def joined_rows(
    texts: Sequence[pa.Array], separator: str, start: str = "", end: str = ""
) -> pa.Array:
    """Join the values of each row with a separator, with `start` before and `end` after them."""
    rows = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, separator)
    return pc.binary_join_element_wise(start, rows, end, "") if start or end else rows


def body(rows: pa.Array) -> bytes:
    """Concatenate all texts of the array."""
    return bytes(columns.bytes_of(rows)[1])


def tab_escaped_name(text: str) -> str:
    """Escape a name for TabSeparated."""
    for plain, escaped in TEXT_ESCAPES:
        text = text.replace(plain, escaped)
    return text
