"""Values and SQLInsert: rows as SQL writes them. INSERT … VALUES is read by the parser."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.formats.base import Ending, Format, Header, Writer
from olapdb.formats.texts import body, joined_rows, quoted
from olapdb.formats.values_read import VALUES_READER


def _rows(batch: pa.RecordBatch, header: Header, separator: str, start: str) -> pa.Array:
    """Format rows as `(1,'a')`, with `separator` between the values and `start` before each row."""
    columns = zip(batch.columns, header.types, strict=True)
    texts = [quoted(column, data_type, header) for column, data_type in columns]
    return joined_rows(texts, separator, start + "(", ")")


class ValuesWriter(Writer):
    """A writer of Values: `(1,'a'),(2,'b')`."""

    _rows = 0

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows, separated by commas."""
        text = body(_rows(batch, self.header, ",", ","))
        first, self._rows = self._rows == 0, self._rows + batch.num_rows
        return text[1:] if first else text

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the parentheses of each row."""
        return _rows(batch, self.header, ",", "")


class SqlInsertWriter(Writer):
    """A writer of SQLInsert: INSERT statements of at most output_format_sql_insert_max_batch_size
    rows."""

    def __init__(self, header: Header) -> None:
        """Take the columns, and the names and limits of the settings."""
        super().__init__(header)
        settings = header.settings
        self._rows = 0
        self._rows_max = settings.integer("output_format_sql_insert_max_batch_size")
        quote = "`" if settings.boolean("output_format_sql_insert_quote_names") else ""
        verb = "REPLACE" if settings.boolean("output_format_sql_insert_use_replace") else "INSERT"
        names = ", ".join(f"{quote}{name}{quote}" for name in header.names)
        if settings.boolean("output_format_sql_insert_include_column_names"):
            names = f" ({names})"
        else:
            names = ""
        table = settings.text("output_format_sql_insert_table_name")
        self._head = f"{verb} INTO {table}{names} VALUES"

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows, each preceded by a comma or by the start of a new statement."""
        rows = _rows(batch, self.header, ", ", " ")
        numbers = np.arange(self._rows, self._rows + batch.num_rows)
        self._rows += batch.num_rows
        starts = pa.array(numbers == 0)
        begins = pa.array(numbers % self._rows_max == 0)
        separators = pc.if_else(starts, self._head, pc.if_else(begins, f";\n{self._head}", ","))
        return body(pc.binary_join_element_wise(separators, rows, ""))

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return for each row its INSERT statement, without the final semicolon."""
        return pc.binary_join_element_wise(self._head, _rows(batch, self.header, ", ", " "), "")

    def finish(self, ending: Ending) -> bytes:
        """Return the end of the last statement."""
        return b";\n"


FORMATS = (
    Format(
        "Values",
        "Rows in parentheses, as INSERT INTO t VALUES has them.",
        ValuesWriter,
        VALUES_READER,
    ),
    Format("SQLInsert", "INSERT statements of the rows.", SqlInsertWriter),
)
