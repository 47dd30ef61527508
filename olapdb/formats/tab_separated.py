"""TabSeparated, its Raw form, TSKV, and LineAsString: a row a line, values between tabs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from olapdb.errors import IncorrectQuery
from olapdb.formats.base import Ending, Format, Header, Input, Reader, Rows, Structure, Writer
from olapdb.formats.delimited import Lines, Returns, infer_lines, read_lines
from olapdb.formats.texts import (
    body,
    is_text,
    joined_rows,
    shown,
    tab_escaped,
    tab_escaped_name,
    with_null,
)
from olapdb.functions.variants.values import gathered
from olapdb.types import STRING, DataType, Dynamic, Variant, plain


class TabWriter(Writer):
    """A writer of TabSeparated. `head_lines`: 1 for names, 2 for types too; `raw`: no escapes."""

    def __init__(self, header: Header, head_lines: int = 0, raw: bool = False) -> None:
        """Take the columns; `head_lines` and `raw` as for the class."""
        super().__init__(header)
        self._head_lines = head_lines
        self._raw = raw
        crlf = header.settings.boolean("output_format_tsv_crlf_end_of_line")
        self._end = "\r\n" if crlf else "\n"
        self._null = header.settings.text("format_tsv_null_representation")

    def start(self) -> bytes:
        """Return the lines of names and of types, as far as the format has them."""
        lines = (self.header.names, [t.name for t in self.header.types])[: self._head_lines]
        escape = str if self._raw else tab_escaped_name
        return "".join("\t".join(map(escape, line)) + self._end for line in lines).encode()

    def texts(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the columns as texts."""
        columns = zip(batch.columns, self.header.types, strict=True)
        return [self.column_texts(column, data_type) for column, data_type in columns]

    def column_texts(self, column: pa.Array, data_type: DataType) -> pa.Array:
        """Return one column as texts, escaped unless raw."""
        if isinstance(variant := plain(data_type), Variant | Dynamic):
            texts = gathered(column, variant, self.column_texts, pa.string())
            return with_null(texts, self._null)
        texts = shown(column, data_type, self.header)
        if is_text(data_type) and not self._raw:
            texts = tab_escaped(texts)
        return with_null(texts, self._null)

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows, each on its line."""
        return body(self.rows(batch))

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the line of each row."""
        return joined_rows(self.texts(batch), "\t", "", self._end)

    def finish(self, ending: Ending) -> bytes:
        """Return the totals and the extremes, those that exist, each after an empty line."""
        end = self._end.encode()
        return b"".join(end + self.write(rows) for rows in ending.rows_behind)


def _layout(head_lines: int, raw: bool, source: Input) -> Lines:
    """Return the layout of the lines of a TabSeparated format under the settings."""
    return Lines(
        separator="\t",
        head_lines=head_lines,
        escapes=not raw,
        null=source.settings.text("format_tsv_null_representation"),
        skipped=source.settings.integer("input_format_tsv_skip_first_lines"),
        empty_as_default=source.settings.boolean("input_format_tsv_empty_as_default"),
        detects=source.settings.boolean("input_format_tsv_detect_header"),
        ragged=source.settings.boolean("input_format_tsv_allow_variable_number_of_columns"),
        returns=_returns(source, raw),
        trims_end=source.settings.boolean("input_format_tsv_skip_trailing_empty_lines"),
        guesses=source.settings.boolean("input_format_tsv_use_best_effort_in_schema_inference"),
    )


def _returns(source: Input, raw: bool) -> Returns:
    """Return what becomes of a carriage return at the end of a line: it is refused, or with the setting
    input_format_tsv_crlf_end_of_line dropped; values of the raw form keep it."""
    if not source.settings.boolean("input_format_tsv_crlf_end_of_line"):
        return "refused"
    return "kept" if raw else "dropped"


def _reader(head_lines: int, raw: bool) -> Reader:
    """Return the reader of a TabSeparated format."""

    def infer(source: Input) -> Structure:
        """Return the columns by the head's names and types, or by the values."""
        return infer_lines(source, _layout(head_lines, raw, source))

    def read(source: Input) -> Iterator[Rows]:
        """Yield the rows as texts."""
        return read_lines(source, _layout(head_lines, raw, source))

    return Reader(infer, read, named=head_lines > 0)


def _tab_formats() -> Iterator[Format]:
    """Yield the formats of the TabSeparated family."""
    heads = (
        ("", ""),
        ("WithNames", " behind a line of names"),
        ("WithNamesAndTypes", " behind a line of names and one of types"),
    )
    for head_lines, (suffix, said) in enumerate(heads):
        for raw in (False, True):
            name = f"TabSeparated{'Raw' if raw else ''}{suffix}"
            short = f"TSV{'Raw' if raw else ''}{suffix}"
            aliases = (short, f"Raw{suffix}") if raw else (short,)
            yield Format(
                name,
                f"A row a line, values between tabs{', without escapes' if raw else ''}{said}.",
                partial(TabWriter, head_lines=head_lines, raw=raw),
                _reader(head_lines, raw),
                aliases,
                ("tsv",) if not raw and not head_lines else (),
            )


def _infer_line(source: Input) -> Structure:
    """Return the single String column of LineAsString."""
    return (("line", STRING),)


def _read_line(source: Input) -> Iterator[Rows]:
    """Yield the lines unchanged as texts. Raises IncorrectQuery for several wanted columns."""
    if source.structure is not None and len(source.structure) != 1:
        raise IncorrectQuery("LineAsString is for a single column of type String.")
    return read_lines(source, Lines(separator="", escapes=False, null=None))


FORMATS = (
    *_tab_formats(),
    Format(
        "LineAsString",
        "Each line is one String.",
        partial(TabWriter, raw=True),
        Reader(_infer_line, _read_line),
    ),
    Format(
        "LineAsStringWithNames",
        "LineAsString behind a line of names.",
        partial(TabWriter, head_lines=1, raw=True),
    ),
    Format(
        "LineAsStringWithNamesAndTypes",
        "LineAsString behind a line of names and one of types.",
        partial(TabWriter, head_lines=2, raw=True),
    ),
)
