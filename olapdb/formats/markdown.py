"""Markdown: a table of GitHub's Markdown."""

from __future__ import annotations

import re
import string

import pyarrow as pa

from olapdb import types
from olapdb.formats.base import Format, Header, Writer
from olapdb.formats.texts import (
    body,
    is_right_aligned,
    is_text,
    joined_rows,
    shown,
    tab_escaped,
    tab_escaped_name,
    with_null,
)
from olapdb.functions.kernels import columns, regexes
from olapdb.functions.variants.values import gathered

_SPECIAL = f"([{re.escape(string.punctuation)}])"
"""Characters that have a meaning in Markdown, as a regular expression."""


class MarkdownWriter(Writer):
    """A writer of Markdown; numbers and times stand at the right side."""

    def start(self) -> bytes:
        """Return the names and the line below them."""
        names = " | ".join(tab_escaped_name(name) for name in self.header.names)
        sides = "|".join(map(_side, self.header.types))
        return f"| {names} |\n|{sides}|\n".encode()

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows."""
        return body(self.rows(batch))

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the line of each row."""
        texts = [
            _cell(column, data_type, self.header)
            for column, data_type in zip(batch.columns, self.header.types, strict=True)
        ]
        return joined_rows(texts, " | ", "| ", " |\n")


def _cell(column: pa.Array, data_type: types.DataType, header: Header) -> pa.Array:
    """Return the values as TabSeparated writes them."""
    null = header.settings.text("format_tsv_null_representation")
    if isinstance(variant := types.plain(data_type), types.Variant | types.Dynamic):
        texts = gathered(column, variant, lambda v, t: _cell(v, t, header), pa.string())
        return with_null(texts, null)
    texts = shown(column, data_type, header)
    if header.settings.boolean("output_format_markdown_escape_special_characters"):
        if is_text(data_type):
            texts = regexes.replaced(columns.text(texts), _SPECIAL, r"\\\1")
    elif is_text(data_type):
        texts = tab_escaped(texts)
    return with_null(texts, null)


def _side(data_type: types.DataType) -> str:
    """Return the Markdown mark of a column's alignment: `-:` (right) for numbers and times, else `:-` (left)."""
    return "-:" if is_right_aligned(data_type) else ":-"


FORMATS = (
    Format("Markdown", "A table of Markdown.", MarkdownWriter, aliases=("MD",), endings=("md",)),
)
