"""JSON, JSONCompact, JSONStrings, JSONCompactStrings, JSONColumns: a result as one document."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.formats.base import Ending, Format, Header, Writer
from olapdb.formats.json_documents import document_reader
from olapdb.formats.json_rows import Values
from olapdb.formats.json_values import JsonStyle, json_string, json_texts, string_texts
from olapdb.formats.texts import body, joined_rows


def metadata(header: Header) -> str:
    """Return the member "meta" of a document, which lists each column's name and type."""
    columns = ",\n".join(
        f'\t\t{{\n\t\t\t"name": {json_string(name, header)},'
        f'\n\t\t\t"type": {json_string(data_type.name, header)}\n\t\t}}'
        for name, data_type in zip(header.names, header.types, strict=True)
    )
    return f'{{\n\t"meta":\n\t[\n{columns}\n\t]'


def numbers(header: Header, ending: Ending) -> str:
    """Return the members that follow the data, and the closing bracket of the document.

    They are "rows", "rows_before_limit_at_least" if it was counted, and "statistics" unless
    `output_format_write_statistics` is off."""
    text = f',\n\n\t"rows": {ending.rows}'
    read = ending.statistics
    if read is not None and read.rows_before_limit is not None:
        text += f',\n\n\t"rows_before_limit_at_least": {read.rows_before_limit}'
    if header.settings.boolean("output_format_write_statistics"):
        text += (
            f',\n\n\t"statistics":\n\t{{\n\t\t"elapsed": {ending.elapsed_seconds:.9f},'
            f'\n\t\t"rows_read": {read.rows_read if read else 0},'
            f'\n\t\t"bytes_read": {read.bytes_read if read else 0}\n\t}}'
        )
    return text + "\n}\n"


class DocumentWriter(Writer):
    """A writer of JSON documents: rows are objects, or with `compact` arrays; `values` formats the values of a
    column."""

    def __init__(self, header: Header, values: Values = json_texts, compact: bool = False) -> None:
        """Take the columns, the formatter of values, and whether rows are arrays."""
        super().__init__(header)
        self._values = values
        self._compact = compact
        self._rows = 0
        self._labels = [json_string(name, header) + ": " for name in header.names]

    def start(self) -> bytes:
        """Return the opening bracket, "meta", and the start of "data"."""
        return (metadata(self.header) + ',\n\n\t"data":\n\t[').encode()

    def _row_texts(self, batch: pa.RecordBatch, level: int, *, behind: bool = False) -> pa.Array:
        """Return each row as JSON text, members indented by `level` steps. With `behind` (totals, extremes) nested
        values are on one line."""
        style = JsonStyle(self.header, "" if self._compact else "\t", level, valid=True)
        if behind or not style.flag("pretty_print"):
            style = JsonStyle(self.header, valid=True)
        columns = zip(batch.columns, self.header.types, strict=True)
        texts = [self._values(column, data_type, style) for column, data_type in columns]
        if self._compact:
            return joined_rows(texts, ", ", "[", "]")
        line = "\n" + "\t" * level
        members = [
            pc.binary_join_element_wise(line + label, text, "")
            for label, text in zip(self._labels, texts, strict=True)
        ]
        return joined_rows(members, ",", "{", line[:-1] + "}")

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows, separated by commas."""
        text = body(joined_rows([self._row_texts(batch, 3)], "", ",\n\t\t"))
        first, self._rows = self._rows == 0, self._rows + batch.num_rows
        return text[1:] if first else text

    def finish(self, ending: Ending) -> bytes:
        """Return the totals, the extremes, the number of rows, and the statistics: the end of the document."""
        text = b"\n\t]" if self._rows else b"\n\n\t]"
        return text + members_behind(self, ending) + numbers(self.header, ending).encode()

    def totals(self, totals: pa.RecordBatch) -> bytes:
        """Return the value of the member "totals", with the whitespace before it."""
        return (b" " if self._compact else b"\n\t") + body(self._row_texts(totals, 2, behind=True))

    def extremes(self, rows: pa.RecordBatch) -> bytes:
        """Return the value of the member "extremes", {"min": …, "max": …}, with the whitespace before it."""
        space = b" " if self._compact else b"\n\t\t"
        least, greatest = (
            space + body(self._row_texts(rows.slice(at, 1), 3, behind=True)) for at in (0, 1)
        )
        return b'\n\t{\n\t\t"min":' + least + b',\n\t\t"max":' + greatest + b"\n\t}"


class ColumnsWriter(Writer):
    """A writer of JSONColumns: one array a column. With `names` they are members of an object; with `meta` their
    types precede. Keeps the texts of all rows until the end."""

    def __init__(self, header: Header, names: bool = True, meta: bool = False) -> None:
        """Take the columns; `names` and `meta` as for the class."""
        super().__init__(header)
        self._names = names
        self._meta = meta
        self._texts: list[list[bytes]] = [[] for _ in header.names]

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Keep the columns' texts; return nothing."""
        style = JsonStyle(self.header, valid=self._meta)
        columns = zip(self._texts, batch.columns, self.header.types, strict=True)
        for texts, column, data_type in columns:
            texts.append(body(joined_rows([json_texts(column, data_type, style)], "", ", ")))
        return b""

    def finish(self, ending: Ending) -> bytes:
        """Return the document."""
        indent = b"\t\t" if self._meta else b"\t"
        opening, closing = (b"{", b"}") if self._names else (b"[", b"]")
        lines = []
        for name, texts in zip(self.header.names, self._texts, strict=True):
            label = f"{json_string(name, self.header)}: ".encode() if self._names else b""
            lines.append(indent + label + b"[" + b"".join(texts)[2:] + b"]")
        if not ending.rows and (self._meta or not self._names):
            lines = []  # as ClickHouse writes them
        document = opening + b"\n" + b",\n".join(lines) + b"\n" + indent[1:] + closing
        if not self._meta:
            return document + b"\n"
        before = (metadata(self.header) + ',\n\n\t"data":\n\t').encode()
        document += members_behind(DocumentWriter(self.header), ending)
        return before + document + numbers(self.header, ending).encode()


def members_behind(writer: DocumentWriter, ending: Ending) -> bytes:
    """Return the members "totals" and "extremes", those that exist, each with a comma before it."""
    text = b""
    if ending.totals is not None:
        text += b',\n\n\t"totals":' + writer.totals(ending.totals)
    if ending.extremes is not None:
        text += b',\n\n\t"extremes":' + writer.extremes(ending.extremes)
    return text


FORMATS = (
    Format(
        "JSON",
        "One JSON document: columns, rows as objects, number of rows, statistics.",
        DocumentWriter,
        document_reader("objects"),
        appends=False,
    ),
    Format(
        "JSONStrings",
        "JSON with all values as strings.",
        partial(DocumentWriter, values=string_texts),
        appends=False,
    ),
    Format(
        "JSONCompact",
        "JSON with rows as arrays.",
        partial(DocumentWriter, compact=True),
        document_reader("arrays"),
    ),
    Format(
        "JSONCompactStrings",
        "JSONCompact with all values as strings.",
        partial(DocumentWriter, values=string_texts, compact=True),
    ),
    Format(
        "JSONColumns",
        "One JSON object, an array a column.",
        ColumnsWriter,
        document_reader("columns"),
    ),
    Format(
        "JSONCompactColumns",
        "One JSON array, an array a column.",
        partial(ColumnsWriter, names=False),
        document_reader("column arrays"),
    ),
    Format(
        "JSONColumnsWithMetadata",
        "JSONColumns with the columns' types, the number of rows, and statistics.",
        partial(ColumnsWriter, meta=True),
        document_reader("columns and meta"),
        appends=False,
    ),
)
