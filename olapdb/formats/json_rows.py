"""The formats JSON…EachRow: a row of JSON a line."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.formats.base import Ending, Format, Header, Writer
from olapdb.formats.json_array_rows import compact_reader
from olapdb.formats.json_read import object_reader, string_reader
from olapdb.formats.json_values import JsonStyle, json_string, json_texts, string_texts
from olapdb.formats.texts import body, joined_rows
from olapdb.types import DataType

Values: TypeAlias = Callable[[pa.Array, DataType, JsonStyle], pa.Array]
_INDENT = "    "


class EachRowWriter(Writer):
    """A writer of JSONEachRow: one object a line. `values` formats a column; `pretty` puts each member on its own
    line."""

    def __init__(self, header: Header, values: Values = json_texts, pretty: bool = False) -> None:
        """Take the columns and the options of the class."""
        super().__init__(header)
        self._values = values
        self._style = JsonStyle(header, _INDENT if pretty else "", 1)
        self._as_array = header.settings.boolean("output_format_json_array_of_rows")
        self._rows = 0
        names = [json_string(name, header) for name in header.names]
        if pretty:
            self._labels = [f"{_INDENT}{name}: " for name in names]
            self._frame = ("{\n", ",\n", "\n}")
        else:
            self._labels = [f"{name}:" for name in names]
            self._frame = ("{", ",", "}")

    def start(self) -> bytes:
        """Return the bracket of output_format_json_array_of_rows, if it is on."""
        return b"[\n" if self._as_array else b""

    def objects(self, batch: pa.RecordBatch) -> pa.Array:
        """Return each row's JSON object as text."""
        texts = [
            pc.binary_join_element_wise(label, self._values(column, data_type, self._style), "")
            for label, column, data_type in zip(
                self._labels, batch.columns, self.header.types, strict=True
            )
        ]
        opening, separator, closing = self._frame
        return joined_rows(texts, separator, opening, closing)

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows, each on its line."""
        rows = self.objects(batch)
        first, self._rows = self._rows == 0, self._rows + batch.num_rows
        if not self._as_array:
            return body(pc.binary_join_element_wise(rows, "\n", ""))
        text = body(pc.binary_join_element_wise(",\n", rows, ""))
        return text[2:] if first else text

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return each row's object, with the end of its line if it is no element of an array."""
        rows = self.objects(batch)
        return rows if self._as_array else pc.binary_join_element_wise(rows, "\n", "")

    def finish(self, ending: Ending) -> bytes:
        """Return the closing bracket of output_format_json_array_of_rows, if it is on."""
        return b"\n]\n" if self._as_array else b""


class ProgressRowsWriter(EachRowWriter):
    """A writer of JSONEachRowWithProgress: a line says what it is, "meta", "row", "totals", "min", "max" or
    "progress". The rows are written when they are there, so that one line of progress comes behind them."""

    def start(self) -> bytes:
        """Return the line of the columns' names and types."""
        columns = ",".join(
            f'{{"name":{json_string(name, self.header)},"type":{json_string(kind.name, self.header)}}}'
            for name, kind in zip(self.header.names, self.header.types, strict=True)
        )
        return f'{{"meta":[{columns}]}}\n'.encode()

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows, each on its line."""
        return body(self.rows(batch))

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the line of each row."""
        return pc.binary_join_element_wise('{"row":', self.objects(batch), "}\n", "")

    def finish(self, ending: Ending) -> bytes:
        """Return the lines behind the rows: totals, extremes, what was read, and the rows before LIMIT."""
        lines: list[str] = []
        if ending.totals is not None:
            lines.append(f'{{"totals":{self.objects(ending.totals)[0].as_py()}}}')
        if ending.extremes is not None:
            least, greatest = self.objects(ending.extremes).to_pylist()
            lines += [f'{{"min":{least}}}', f'{{"max":{greatest}}}']
        read = ending.statistics
        if read is not None and read.rows_read:
            lines.append(
                f'{{"progress":{{"read_rows":"{read.rows_read}","read_bytes":"{read.bytes_read}",'
                f'"total_rows_to_read":"{read.rows_read}",'
                f'"elapsed_ns":"{int(ending.elapsed_seconds * 1e9)}"}}}}'
            )
        if read is not None and read.rows_before_limit is not None:
            lines.append(f'{{"rows_before_limit_at_least":{read.rows_before_limit}}}')
        return "".join(f"{line}\n" for line in lines).encode()


class CompactProgressWriter(ProgressRowsWriter):
    """A writer of JSONCompactEachRowWithProgress: JSONEachRowWithProgress with an array for each row."""

    def objects(self, batch: pa.RecordBatch) -> pa.Array:
        """Return each row's JSON array as text."""
        texts = [
            self._values(column, data_type, self._style)
            for column, data_type in zip(batch.columns, self.header.types, strict=True)
        ]
        return joined_rows(texts, ", ", "[", "]")


class CompactRowsWriter(Writer):
    """A writer of JSONCompactEachRow: an array a line. `head_lines`: 1 for names, 2 for types too."""

    def __init__(self, header: Header, values: Values = json_texts, head_lines: int = 0) -> None:
        """Take the columns and the options of the class."""
        super().__init__(header)
        self._values = values
        self._style = JsonStyle(header)
        self._head_lines = head_lines

    def start(self) -> bytes:
        """Return the lines of names and of types, as far as the format has them."""
        lines = (self.header.names, [t.name for t in self.header.types])[: self._head_lines]
        texts = [", ".join(json_string(name, self.header) for name in line) for line in lines]
        return "".join(f"[{text}]\n" for text in texts).encode()

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows, each on its line."""
        return body(self.rows(batch))

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the line of each row."""
        texts = [
            self._values(column, data_type, self._style)
            for column, data_type in zip(batch.columns, self.header.types, strict=True)
        ]
        return joined_rows(texts, ", ", "[", "]\n")


def _compact(name: str, values: Values, head_lines: int, description: str) -> Format:
    """Return the format JSONCompact…EachRow called `name`: each row is an array, after `head_lines` lines of names
    and types."""
    reader = compact_reader(head_lines, strings=values is string_texts)
    writer = partial(CompactRowsWriter, values=values, head_lines=head_lines)
    return Format(name, description, writer, reader)


FORMATS = (
    Format(
        "JSONEachRow",
        "A JSON object a line, a member a column.",
        EachRowWriter,
        object_reader(),
        ("JSONLines", "NDJSON", "JSONL"),
        ("jsonl", "ndjson", "json"),
    ),
    Format(
        "PrettyJSONEachRow",
        "JSONEachRow with a line for each member.",
        partial(EachRowWriter, pretty=True),
        aliases=("PrettyJSONLines", "PrettyNDJSON"),
    ),
    Format(
        "JSONStringsEachRow",
        "JSONEachRow with all values as strings.",
        partial(EachRowWriter, values=string_texts),
        string_reader(),
    ),
    Format(
        "JSONEachRowWithProgress",
        "JSONEachRow with lines that say what was read.",
        ProgressRowsWriter,
    ),
    Format(
        "JSONStringsEachRowWithProgress",
        "JSONStringsEachRow with lines that say what was read.",
        partial(ProgressRowsWriter, values=string_texts),
    ),
    Format(
        "JSONCompactEachRowWithProgress",
        "JSONCompactEachRow with lines that say what was read.",
        CompactProgressWriter,
    ),
    Format(
        "JSONCompactStringsEachRowWithProgress",
        "JSONCompactStringsEachRow with lines that say what was read.",
        partial(CompactProgressWriter, values=string_texts),
    ),
    _compact("JSONCompactEachRow", json_texts, 0, "A JSON array a line."),
    _compact(
        "JSONCompactEachRowWithNames", json_texts, 1, "JSONCompactEachRow behind a line of names."
    ),
    _compact(
        "JSONCompactEachRowWithNamesAndTypes",
        json_texts,
        2,
        "JSONCompactEachRow behind a line of names and one of types.",
    ),
    _compact("JSONCompactStringsEachRow", string_texts, 0, "A JSON array of strings a line."),
    _compact(
        "JSONCompactStringsEachRowWithNames",
        string_texts,
        1,
        "JSONCompactStringsEachRow behind a line of names.",
    ),
    _compact(
        "JSONCompactStringsEachRowWithNamesAndTypes",
        string_texts,
        2,
        "JSONCompactStringsEachRow behind a line of names and one of types.",
    ),
)
