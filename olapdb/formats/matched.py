"""Rows that a regular expression splits into values: Regexp, and what CustomSeparated shares."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors
from olapdb.formats.base import Format, Input, Reader, Rows, Structure
from olapdb.formats.blocks import blocks_of, end_of_lines
from olapdb.formats.escaping_rules import infer_values, read_values
from olapdb.formats.heads import Head, no_structure, numbered_names
from olapdb.functions.kernels import regexes
from olapdb.functions.kernels.escapes import spans


def lines_of(block: bytes) -> pa.Array:
    """Return the lines of a block, without their ends."""
    data = np.frombuffer(block if block.endswith(b"\n") else block + b"\n", np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.concatenate(([0], ends[:-1] + 1))
    return pc.utf8_rtrim(spans(data, starts, ends), "\r")


def values_rows(
    values: Sequence[pa.Array], head: Head, rule: str, source: Input, first_row: int
) -> Rows:
    """Build the wanted columns of rows; `values` are the texts by column position, `rule` is their escaping rule."""
    wanted = dict(source.structure or ())
    names, arrays, kinds = [], [], []
    for name, texts in zip(head.names, values, strict=True):
        if (source.structure is not None and name not in wanted) or name in names:
            continue
        if source.needed is not None and name not in source.needed:
            continue
        array, kind = read_values(texts, wanted.get(name), rule, source, first_row)
        names.append(name)
        arrays.append(array)
        kinds.append(kind)
    rows = len(values[0]) if values else 0
    return Rows(tuple(names), tuple(kinds), tuple(arrays), rows)


def named_groups(pattern: str) -> tuple[str, int]:
    """Return the regular expression with its groups named g1, g2, …, as Arrow requires, and the number of groups.
    Raises BadArguments for an invalid expression."""
    count = 0

    def name(opening: re.Match[str]) -> str:
        """Add a name to the opening of a group; return any other match unchanged."""
        nonlocal count
        if opening[0] not in ("(", "(?P<", "(?<"):
            return opening[0]
        count += 1
        return f"(?P<g{count}>"

    token = r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P<\w+>|\(\?<\w+>|\(\?|\("
    named = re.sub(token, lambda m: name(_opening(m)), pattern)
    try:
        regexes.extracted(pa.nulls(0, pa.string()), named)
    except pa.ArrowInvalid as error:
        raise errors.BadArguments(
            f"Cannot read the regular expression {pattern!r}: {error}.",
            hint="It is one of RE2, with a group for each column.",
        ) from None
    return named, count


def _opening(opening: re.Match[str]) -> re.Match[str]:
    """Return the match of a group's opening, without the name that the group has of its own."""
    named = re.match(r"\(\?P?<(?=\w)", opening[0])
    return named or opening


def _settings(source: Input) -> tuple[str, int, str, bool]:
    """Return the expression, its number of groups, the escaping rule, and whether lines that do not match are
    skipped. Raises BadArguments without an expression."""
    pattern = source.settings.text("format_regexp")
    if not pattern:
        raise errors.BadArguments(
            "Regexp needs an expression.", hint="SETTINGS format_regexp = '…'."
        )
    named, count = named_groups(pattern)
    rule = source.settings.text("format_regexp_escaping_rule")
    return f"^(?s:{named})$", count, rule, source.settings.boolean("format_regexp_skip_unmatched")


def _matched(source: Input) -> Iterator[tuple[list[pa.Array], int]]:
    """Yield the texts of the groups of each block of lines, and the number of its first line.

    Raises IncorrectData for a line that does not match, unless such lines are skipped."""
    pattern, count, _, skips = _settings(source)
    first_row = 1
    for block in blocks_of(source.stream, end_of_lines):
        lines = lines_of(block)
        fields = regexes.extracted(lines, pattern)
        if fields.null_count and not skips:
            at = int(np.flatnonzero(~fields.is_valid().to_numpy(zero_copy_only=False))[0])
            raise errors.IncorrectData(
                f"Line {first_row + at} does not match format_regexp.",
                hint="format_regexp_skip_unmatched = 1 skips such lines.",
            )
        kept = fields.drop_null()
        yield [kept.field(at) for at in range(count)], first_row
        first_row += len(lines)


def _read(source: Input) -> Iterator[Rows]:
    """Yield the rows of one block of lines at a time. Raises IncorrectData if the number of groups is not that of the
    columns."""
    _, count, rule, _ = _settings(source)
    names = tuple(name for name, _ in source.structure or ()) or numbered_names(count)
    if len(names) != count:
        raise errors.IncorrectData(
            f"format_regexp has {count} groups for {len(names)} columns: {', '.join(names)}."
        )
    for values, first_row in _matched(source):
        yield values_rows(values, Head(names), rule, source, first_row)


def _infer(source: Input) -> Structure:
    """Return the columns c1, c2, … of the groups."""
    _, count, rule, _ = _settings(source)
    first = next(_matched(source), None)
    if first is None:
        raise no_structure("they have no rows")
    rows = max(source.settings.integer("input_format_max_rows_to_read_for_schema_inference"), 1)
    kinds = [infer_values(texts.slice(0, rows), rule, source) for texts in first[0]]
    return tuple(zip(numbered_names(count), kinds, strict=True))


FORMATS = (
    Format("Regexp", "Lines that a regular expression splits.", reader=Reader(_infer, _read)),
)
