"""JSONObjectEachRow: one object, whose members are the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.base import Ending, Format, Header, Input, Reader, Rows, Structure, Writer
from olapdb.formats.heads import no_structure
from olapdb.formats.json_read import index_of, infer_object_texts, is_needed, object_rows
from olapdb.formats.json_row_blocks import KeyedRowBlocks
from olapdb.formats.json_rows import EachRowWriter
from olapdb.formats.json_values import JsonStyle, string_texts
from olapdb.formats.texts import body, is_text
from olapdb.functions.json import paths

_NAMES = "format_json_object_each_row_column_for_object_name"


class ObjectRowsWriter(Writer):
    """A writer of JSONObjectEachRow: members row_1, row_2, …, or named by the column that the setting gives. Raises
    IllegalColumn if the result lacks this column or it is no text."""

    def __init__(self, header: Header) -> None:
        """Take the columns, and find the column of names."""
        super().__init__(header)
        name = header.settings.text(_NAMES)
        self._at = -1
        if name:
            self._at = header.names.index(name) if name in header.names else -1
            if self._at < 0 or not is_text(header.types[self._at]):
                raise errors.BadArguments(
                    f"{name}, which {_NAMES} names, is no column of texts of the result."
                )
        kept = [at for at in range(len(header.names)) if at != self._at]
        self._kept = kept
        self._objects = EachRowWriter(
            replace(
                header,
                names=tuple(header.names[at] for at in kept),
                types=tuple(header.types[at] for at in kept),
            )
        )
        self._rows = 0

    def start(self) -> bytes:
        """Return the opening bracket."""
        return b"{"

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows with their names."""
        labels = pc.binary_join_element_wise("\n\t", self._labels(batch), ": ", "")
        rows = self._objects.objects(batch.select(self._kept))
        text = body(pc.binary_join_element_wise(",", labels, rows, ""))
        first, self._rows = self._rows == 0, self._rows + batch.num_rows
        return text[1:] if first else text

    def _labels(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the member names of the rows, quoted."""
        if self._at >= 0:
            kind = self.header.types[self._at]
            return string_texts(batch.column(self._at), kind, JsonStyle(self.header))
        numbers = pa.array(np.arange(self._rows + 1, self._rows + batch.num_rows + 1))
        return pc.binary_join_element_wise('"row_', numbers.cast(pa.string()), '"', "")

    def finish(self, ending: Ending) -> bytes:
        """Return the closing bracket."""
        return b"\n}\n" if self._rows else b"\n\n}\n"


def _read(source: Input) -> Iterator[Rows]:
    """Yield the rows of one block at a time, with the members' names as a column if the setting asks for it."""
    name = source.settings.text(_NAMES)
    known = source.structure is None or name in dict(source.structure)
    wanted = bool(name) and known and is_needed(name, source)
    first_row = 1
    for labels, texts in KeyedRowBlocks(source).pairs():
        done = 0
        for rows in object_rows(source, iter((texts,)), first_row):
            yield _with_names(rows, name, labels.slice(done, rows.rows)) if wanted else rows
            done += rows.rows
        first_row += len(texts)


def _with_names(rows: Rows, name: str, labels: pa.Array) -> Rows:
    """Add the rows' names, given quoted, as column `name`; it replaces a member of this name."""
    index = index_of(labels, 1)
    column = paths.keys_of(index, index.root)
    kept = [at for at, own in enumerate(rows.names) if own != name]
    return Rows(
        (name, *(rows.names[at] for at in kept)),
        (types.STRING, *(rows.types[at] for at in kept)),
        (column, *(rows.arrays[at] for at in kept)),
        rows.rows,
    )


def _infer(source: Input) -> Structure:
    """Infer the columns from the first rows' members; the column of names, if any, comes first."""
    first = next(KeyedRowBlocks(source).pairs(), None)
    if first is None:
        raise no_structure("they have no rows")
    structure = infer_object_texts(source, first[1])
    name = source.settings.text(_NAMES)
    if not name:
        return structure
    return ((name, types.STRING), *(column for column in structure if column[0] != name))


FORMATS = (
    Format(
        "JSONObjectEachRow",
        "One JSON object, a member a row.",
        ObjectRowsWriter,
        Reader(_infer, _read, named=True),
        appends=False,
    ),
)
