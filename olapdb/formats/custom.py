"""CustomSeparated: rows between delimiters that settings name, values by one of several rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from olapdb import types
from olapdb.formats.base import Ending, Format, Header, Writer
from olapdb.formats.csv import CsvWriter
from olapdb.formats.custom_read import custom_reader
from olapdb.formats.json_values import JsonStyle, json_string, json_texts
from olapdb.formats.tab_separated import TabWriter
from olapdb.formats.texts import body, joined_rows, quoted, shown, tab_escaped_name, with_null
from olapdb.formats.xml import xml_escaped, xml_texts
from olapdb.sql.literals import quote_string


class CustomWriter(Writer):
    """A writer of CustomSeparated. `head_lines`: 1 for names, 2 for types too."""

    def __init__(self, header: Header, head_lines: int = 0) -> None:
        """Take the columns; `head_lines` as for the class."""
        super().__init__(header)
        self._head_lines = head_lines
        self._rule = header.settings.text("format_custom_escaping_rule")
        self._has_rows = False

    def start(self) -> bytes:
        """Return the text before the result, and the rows of names and types."""
        head = (self.header.names, [t.name for t in self.header.types])[: self._head_lines]
        rows = (
            self._delimiter("row_before")
            + self._delimiter("field").join(map(self._name, line))
            + self._delimiter("row_after")
            + self._delimiter("row_between")
            for line in head
        )
        return (self._delimiter("result_before") + "".join(rows)).encode()

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows, with the delimiters before, after and between them."""
        columns = zip(batch.columns, self.header.types, strict=True)
        texts = [self._texts(column, data_type) for column, data_type in columns]
        between = self._delimiter("row_between")
        start, end = self._delimiter("row_before"), self._delimiter("row_after")
        text = body(joined_rows(texts, self._delimiter("field"), between + start, end))
        is_first, self._has_rows = not self._has_rows, True
        return text[len(between.encode()) :] if is_first else text

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return each row with the delimiters before and after it."""
        columns = zip(batch.columns, self.header.types, strict=True)
        texts = [self._texts(column, data_type) for column, data_type in columns]
        start, end = self._delimiter("row_before"), self._delimiter("row_after")
        return joined_rows(texts, self._delimiter("field"), start, end)

    def finish(self, ending: Ending) -> bytes:
        """Return the text after the result; the format has no totals."""
        return self._delimiter("result_after").encode()

    def _delimiter(self, place: str) -> str:
        """Return the delimiter of the setting for `place`, such as "field" or "row_after"."""
        return self.header.settings.text(f"format_custom_{place}_delimiter")

    def _name(self, text: str) -> str:
        """Return a name or type name written by the escaping rule."""
        return _NAMES[self._rule](text, self.header)

    def _texts(self, column: pa.Array, data_type: types.DataType) -> pa.Array:
        """Return a column as texts, as the rule writes values."""
        return column_values(self._rule, column, data_type, self.header)


def column_values(
    rule: str, column: pa.Array, data_type: types.DataType, header: Header
) -> pa.Array:
    """Return a column as texts written by the escaping rule `rule`."""
    return _VALUES[rule](column, data_type, header)


def _escaped(column: pa.Array, data_type: types.DataType, header: Header) -> pa.Array:
    """Return values as TabSeparated has them."""
    return TabWriter(header).column_texts(column, data_type)


def _quoted(column: pa.Array, data_type: types.DataType, header: Header) -> pa.Array:
    """Return values as SQL has them."""
    if isinstance(types.plain(data_type), types.Boolean):
        return with_null(shown(column, data_type, header), "NULL")
    return quoted(column, data_type, header)


def _csv(column: pa.Array, data_type: types.DataType, header: Header) -> pa.Array:
    """Return values as CSV has them; a tuple is several, with commas between."""
    return joined_rows(list(CsvWriter(header).column_texts(column, data_type)), ",")


def _json(column: pa.Array, data_type: types.DataType, header: Header) -> pa.Array:
    """Return values as JSON has them."""
    return json_texts(column, data_type, JsonStyle(header))


def _raw(column: pa.Array, data_type: types.DataType, header: Header) -> pa.Array:
    """Return values without escapes."""
    null = header.settings.text("format_tsv_null_representation")
    return with_null(shown(column, data_type, header), null)


_VALUES: dict[str, Callable[[pa.Array, types.DataType, Header], pa.Array]] = {
    "Escaped": _escaped,
    "Quoted": _quoted,
    "CSV": _csv,
    "JSON": _json,
    "XML": xml_texts,
    "Raw": _raw,
}
_NAMES: dict[str, Callable[[str, Header], str]] = {
    "Escaped": lambda text, _: tab_escaped_name(text),
    "Quoted": lambda text, _: quote_string(text),
    "CSV": lambda text, _: '"{}"'.format(text.replace('"', '""')),
    "JSON": json_string,
    "XML": lambda text, _: xml_escaped(text),
    "Raw": lambda text, _: text,
}
"""The rules of `format_custom_escaping_rule`, for values and for names."""

FORMATS = tuple(
    Format(
        f"CustomSeparated{head}",
        f"Rows between delimiters of the settings format_custom_…{text}.",
        partial(CustomWriter, head_lines=lines),
        custom_reader(lines),
    )
    for lines, (head, text) in enumerate(
        (("", ""), ("WithNames", ", names first"), ("WithNamesAndTypes", ", names and types first"))
    )
)
