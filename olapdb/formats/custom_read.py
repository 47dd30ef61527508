"""Reads CustomSeparated: rows between delimiters that settings name."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.base import Input, Reader, Rows, Structure
from olapdb.formats.blocks import blocks_of
from olapdb.formats.escaping_rules import VALUE_PATTERNS, infer_values, read_values
from olapdb.formats.header_detection import inferred_head
from olapdb.formats.heads import Head, checked_head, no_structure, numbered_names, plain_names
from olapdb.formats.matched import values_rows
from olapdb.formats.texts import is_text
from olapdb.functions import parse_type
from olapdb.functions.kernels import regexes
from olapdb.records import dataclass


@dataclass(frozen=True)
class _Layout:
    """The delimiters and the rule of the settings."""

    source: Input

    @property
    def rule(self) -> str:
        """Return the escaping rule of values."""
        return self.source.settings.text("format_custom_escaping_rule")

    def delimiter(self, place: str) -> str:
        """Return the delimiter that the settings name for a place."""
        return self.source.settings.text(f"format_custom_{place}_delimiter")

    @property
    def separator(self) -> str:
        """Return the text between the last value of a row and the first of the next. Raises BadArguments if it is
        empty."""
        places = ("row_after", "row_between", "row_before")
        separator = "".join(self.delimiter(place) for place in places)
        if not separator:
            raise errors.BadArguments("CustomSeparated is read with a delimiter of rows only.")
        return separator

    def check(self) -> None:
        """Raise BadArguments if values of the rule Escaped are not followed by a tab or line feed, where ClickHouse
        ends them."""
        structure = self.source.structure
        if self.rule != "Escaped" or self.delimiter("field")[:1] in ("\t", "\n"):
            return
        if structure is None or any(is_text(kind) for _, kind in structure):
            raise errors.BadArguments(
                "Texts of the rule Escaped end with a tab or a line feed.",
                hint="SETTINGS format_custom_escaping_rule = 'CSV' takes another delimiter.",
            )

    def rows(self) -> Iterator[pa.Array]:
        """Yield the texts of the rows, without row delimiters, one block at a time. Raises IncorrectData if the data
        do not begin and end as the settings say."""
        self.check()
        separator = self.separator.encode()
        start = (self.delimiter("result_before") + self.delimiter("row_before")).encode()
        end = (self.delimiter("row_after") + self.delimiter("result_after")).encode()

        def end_of_rows(data: bytes) -> int:
            """Return the number of bytes up to and including the last row separator."""
            at = data.rfind(separator)
            return 0 if at < 0 else at + len(separator)

        previous: bytes | None = None
        for block in blocks_of(self.source.stream, end_of_rows):
            if previous is not None:
                yield _split(previous.removesuffix(separator), separator)
                previous = block
                continue
            data = block.lstrip(b"\r\n") if not block.startswith(start) else block
            if not data.startswith(start) and data.strip():
                raise errors.IncorrectData(f"CustomSeparated begins with {start.decode()!r}.")
            previous = data[len(start) :]
        if previous is None or not previous.strip():
            return
        whole = previous if previous.endswith(end) else previous.rstrip(b" \t\r\n")
        if not whole.endswith(end):
            raise errors.CannotParseInput(
                f"The data of CustomSeparated do not end with {end.decode()!r}.",
                hint="The settings format_custom_row_after_delimiter and …_result_after_delimiter"
                " say how they end.",
            )
        previous = whole[: len(whole) - len(end)]
        yield _split(previous, separator)

    def values(self, rows: pa.Array, names: tuple[str, ...], first_row: int) -> list[pa.Array]:
        """Split rows into the texts of their values, one array for each column. Raises CannotParseInput for a row
        with another number of values than `names`."""
        groups = (f"(?P<g{at}>{VALUE_PATTERNS[self.rule]})" for at in range(len(names)))
        pattern = re.escape(self.delimiter("field")).join(groups)
        fields = regexes.extracted(rows, f"^(?s:{pattern})$")
        if fields.null_count:
            at = int(np.flatnonzero(~fields.is_valid().to_numpy(zero_copy_only=False))[0])
            raise errors.CannotParseInput(
                f"Row {first_row + at} is not {len(names)} values of rule {self.rule}, separated by"
                f" {self.delimiter('field')!r}.",
                hint=f"The columns are {', '.join(names)}.",
            )
        return [fields.field(at) for at in range(len(names))]

    def count(self, row: str) -> int:
        """Return the number of values of a row."""
        field = re.escape(self.delimiter("field"))
        value = re.compile(rf"(?s:{VALUE_PATTERNS[self.rule]})(?:(?={field})|\Z)")
        count = at = 0
        while (match := value.match(row, at)) is not None:
            count += 1
            if match.end() == len(row):
                return count
            at = match.end() + len(self.delimiter("field"))
        raise errors.CannotParseInput(f"The first row is no values of rule {self.rule}: {row[:80]}")

    def texts(self, values: list[pa.Array]) -> list[pa.Array]:
        """Decode values that are names or types."""
        target = types.STRING if self.rule == "JSON" else None
        return [read_values(field, target, self.rule, self.source, 1)[0] for field in values]


def _split(data: bytes, separator: bytes) -> pa.Array:
    """Return the pieces of the data between separators."""
    whole = pa.array([data], pa.binary()).cast(pa.string(), safe=False)
    return pc.list_flatten(pc.split_pattern(whole, separator.decode()))


def custom_reader(head_lines: int) -> Reader:
    """Return the reader of CustomSeparated, with names and types in its first rows or without."""

    def blocks(source: Input) -> Iterator[tuple[Head | None, list[pa.Array], int]]:
        """Yield for each block the head, the values' texts by column, and the number of its first row. Raises
        AttemptToReadAfterEof for data that end within their head."""
        layout = _Layout(source)
        head, names, first_row = None, None, 1
        for rows in layout.rows():
            if names is None:
                names = _names(layout, rows[0].as_py(), head_lines)
                values = layout.values(rows, names, first_row)
                head, used = _head(layout, values, head_lines)
                names = names if head is None else head.names
                yield head, [field.slice(used) for field in values], first_row
            else:
                yield head, layout.values(rows, names, first_row), first_row
            first_row += len(rows)
        if names is None and head_lines:
            raise errors.AttemptToReadAfterEof("The data end before their names or types.")

    def read(source: Input) -> Iterator[Rows]:
        """Yield the rows of a block at a time."""
        for head, values, first_row in blocks(source):
            names = Head(plain_names(source, len(values))) if head is None else head
            if values and len(values[0]):
                yield values_rows(values, names, _Layout(source).rule, source, first_row)

    def infer(source: Input) -> Structure:
        """Return the columns by the names and types in the data, else by the values."""
        plain = Input(source.stream, source.settings, source.environment)
        first = next(blocks(plain), None)
        if first is None:
            raise no_structure("they have no rows")
        head, values, _ = first
        if head is not None and head.types is not None:
            return tuple(zip(head.names, head.types, strict=True))
        rows = max(source.settings.integer("input_format_max_rows_to_read_for_schema_inference"), 1)
        rule = _Layout(source).rule
        kinds = [infer_values(field.slice(0, rows), rule, plain) for field in values]
        names = numbered_names(len(values)) if head is None else head.names
        return tuple(zip(names, kinds, strict=True))

    return Reader(infer, read, named=head_lines > 0)


def _names(layout: _Layout, row: str, head_lines: int) -> tuple[str, ...]:
    """Return a name for each value of a row: the wanted columns' names if the data have no names."""
    if head_lines or layout.source.structure is None:
        return numbered_names(layout.count(row))
    return plain_names(layout.source, 0)


def _head(layout: _Layout, values: list[pa.Array], head_lines: int) -> tuple[Head | None, int]:
    """Return the head and its number of rows; also a head that is recognized only by its names. Raises
    AttemptToReadAfterEof."""
    source = layout.source
    if head_lines:
        if len(values[0]) < head_lines:
            raise errors.AttemptToReadAfterEof("The data end before their names or types.")
        names, *kinds = zip(
            *(
                field.to_pylist()
                for field in layout.texts([v.slice(0, head_lines) for v in values])
            ),
            strict=True,
        )
        return checked_head(source, names, kinds[0] if kinds else None), head_lines
    if not source.settings.boolean("input_format_custom_detect_header"):
        return None, 0
    first = layout.texts([field.slice(0, 2) for field in values])
    if source.structure is None:
        rows = Rows(numbered_names(len(first)), (), tuple(first), len(first[0]))
        head = inferred_head(rows)
        return head, 0 if head is None else 1 + (head.types is not None)
    names = tuple(texts[0].as_py() for texts in first)
    if not {name for name, _ in source.structure}.issuperset(names):
        return None, 0
    second = [texts[1].as_py() for texts in first] if len(first[0]) > 1 else []
    has_types = bool(second) and all(map(_is_type, second))
    return checked_head(source, names, second if has_types else None), 1 + has_types


def _is_type(name: str | None) -> bool:
    """Return whether the text is the name of a type."""
    try:
        parse_type(name or "")
    except errors.Error:
        return False
    return True
