"""Values and SQLInsert: rows as SQL writes them. INSERT … FORMAT Values is read by the parser."""

from __future__ import annotations

import pyarrow as pa

from olapdb.formats.base import Ending, Format, Header, Writer
from olapdb.formats.texts import body, joined_rows, quoted


def _rows(batch: pa.RecordBatch, header: Header, separator: str) -> pa.Array:
    """Return the rows as `,(1,'a')`, with `separator` between values and in front."""
    columns = zip(batch.columns, header.types, strict=True)
    texts = [quoted(column, data_type, header) for column, data_type in columns]
    return joined_rows(texts, separator, separator + "(", ")")


class ValuesWriter(Writer):
    """A writer of Values: `(1,'a'),(2,'b')`."""

    _rows = 0

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows, separated by commas."""
        text = body(_rows(batch, self.header, ","))
        first, self._rows = self._rows == 0, self._rows + batch.num_rows
        return text[1:] if first else text


class SqlInsertWriter(Writer):
    """A writer of SQLInsert: INSERT statements of a batch's rows each."""

    _rows = 0

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the head of the first statement, and the rows."""
        text = body(_rows(batch, self.header, ", "))
        first, self._rows = self._rows == 0, self._rows + batch.num_rows
        if not first:
            return text
        names = ", ".join(f"`{name}`" for name in self.header.names)
        table = self.header.settings.text("output_format_sql_insert_table_name")
        return f"INSERT INTO {table} ({names}) VALUES".encode() + text[1:]

    def finish(self, ending: Ending) -> bytes:
        """Return the end of the statement."""
        return b";\n"


FORMATS = (
    Format("Values", "Rows in parentheses, as INSERT INTO t VALUES has them.", ValuesWriter),
    Format("SQLInsert", "INSERT statements of the rows.", SqlInsertWriter),
)
