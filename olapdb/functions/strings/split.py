"""Functions that turn strings into arrays and back: splitBy…, extractAll, arrayStringConcat."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, CannotCompileRegexp
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns, regexes, slices
from olapdb.functions.kernels.integer_order import stable_order
from olapdb.functions.kernels.nested import filter_elements, truncate_lists
from olapdb.functions.scalar import Invocation, Kernel, ScalarDefinition, define, require
from olapdb.functions.strings import rendering
from olapdb.functions.strings.all_matches import all_matches
from olapdb.functions.strings.arguments import DOT_MATCHES_ALL, TEXT_TYPES
from olapdb.types import STRING, Array, DataType, Integer, is_nullable

_STRINGS = Array(STRING)
_ANCHORS = re.compile(r"(\\[bBAz]|(?<!\[)[$^])|\\.|\[\^?\]?", re.DOTALL)
_ALL = np.int64(2**62)
"""More bytes than any text has."""


def _separated_rule(
    result: DataType,
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    """Return the type rule: two strings (text and separator or pattern), then integers."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return the type `result`; raise IllegalTypeOfArgument unless the arguments are two strings, then integers."""
        require(name, types[:2], TEXT_TYPES, "a String")
        require(name, types[2:], Integer, "an integer")
        return result

    return rule


def _split_kernel(split: Callable[[pa.Array, str], pa.Array]) -> Kernel:
    """Return the kernel of a split of (separator, text[, number]).

    `split(texts, separator)` gives lists of pieces. The number is the most pieces of a text; further pieces are
    dropped."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Split the texts; a third argument of 0 or less is no bound.

        Raises BadArguments if the third argument is no constant integer.
        """
        separator, subject = columns.text(arrays[0]), columns.text(arrays[1])
        lists = slices.per_value([subject, separator], (1,), lambda o, v: split(o[0], v[0]))
        limit = call.constant(2)
        if len(arrays) > 2 and not isinstance(limit, int):
            raise BadArguments("The number of pieces must be constant.")
        return lists if not isinstance(limit, int) or limit <= 0 else truncate_lists(lists, limit)

    return kernel


def _under_settings(definition: ScalarDefinition, split: Kernel) -> ScalarDefinition:
    """Return the definition of a split; under splitby_max_substrings_includes_remaining_string its kernel is
    `split`."""
    kept = define(definition.name, _separated_rule(_STRINGS), split, count=(2, 3))
    return replace(definition, by_settings=lambda changed: kept.resolver)


def _keeping_rest(split: Callable[[pa.Array, str], pa.Array]) -> Kernel:
    """Return the kernel of a split like that of `_split_kernel`; with a number, the last of so many pieces has all
    the rest of the text."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Split the texts. Raises BadArguments if the third argument is no constant integer."""
        separator, subject = columns.text(arrays[0]), columns.text(arrays[1])
        limit = call.constant(2)
        if len(arrays) > 2 and not isinstance(limit, int):
            raise BadArguments("The number of pieces must be constant.")

        def pieces(others: list[pa.Array], values: list[str]) -> pa.Array:
            """Split texts at one separator."""
            lists = split(others[0], values[0])
            if not isinstance(limit, int) or limit <= 0:
                return lists
            return _with_rest(lists, values[0], limit)

        return slices.per_value([subject, separator], (1,), pieces)

    return kernel


def _with_rest(lists: pa.Array, separator: str, limit: int) -> pa.Array:
    """Return the lists with at most `limit` pieces: the last piece is all pieces from there on, joined by the
    separator."""
    offsets, elements = columns.elements_of(lists)
    sizes = np.diff(offsets)
    places = np.arange(len(elements)) - np.repeat(offsets[:-1], sizes)
    rest = pc.binary_join(filter_elements(offsets, elements, places >= limit - 1), separator)
    counts = np.minimum(sizes, limit)
    starts = columns.offsets_from_counts(counts)
    rows = columns.parents_of(starts)
    at = np.arange(len(rows)) - starts[rows]
    chosen = np.where(at == limit - 1, len(elements) + rows, offsets[rows] + at)
    pool = pa.concat_arrays([elements, rest])
    return columns.lists_from(starts, pool.take(pa.array(chosen)))


def split_by_string(array: pa.Array, separator: str) -> pa.Array:
    """Split texts at a separator; an empty separator splits them into single bytes."""
    if separator:
        return pc.split_pattern(array, separator).cast(pa.list_(pa.string()))
    counts = slices.lengths_of(array)
    offsets = columns.offsets_from_counts(counts)
    owners = columns.parents_of(offsets)
    positions = np.arange(len(owners)) - offsets[owners]
    repeated = array.take(pa.array(owners))
    return columns.lists_from(
        offsets, slices.pieces(repeated, positions, np.ones(len(owners), np.int64))
    )


def _by_char(array: pa.Array, separator: str) -> pa.Array:
    """Split texts at a separator; raise BadArguments unless it is one byte."""
    if len(array) and len(separator.encode("utf-8", "surrogateescape")) != 1:
        raise BadArguments("The separator of splitByChar is one byte.", hint="Use splitByString.")
    return split_by_string(array, separator)


def _by_regexp(array: pa.Array, pattern: str) -> pa.Array:
    """Split texts at matches of a pattern; an empty pattern splits into single bytes.

    Raises CannotCompileRegexp."""
    if not pattern:
        return split_by_string(array, "")
    try:
        if not _may_match_nothing(pattern):
            return pc.split_pattern_regex(array, DOT_MATCHES_ALL + pattern).cast(
                pa.list_(pa.string())
            )
        return _by_matches(array, pattern)
    except pa.ArrowInvalid as error:
        raise CannotCompileRegexp(
            f"The regular expression {pattern!r} is wrong: {error}."
        ) from None


def _may_match_nothing(pattern: str) -> bool:
    """Return whether the pattern may match the empty string; Arrow's split would then never end.

    Such a pattern matches the empty text once its anchors (^, $, word boundaries) are removed."""
    unanchored = _ANCHORS.sub(lambda m: "(?:)" if m.group(1) else m.group(), pattern)
    return bool(pc.match_substring_regex(pa.scalar(""), unanchored).as_py())


def _by_matches(array: pa.Array, pattern: str) -> pa.Array:
    """Split texts at the pattern, one match of each text at a time. An empty match ends a text."""
    pieces: list[pa.Array] = []
    owners: list[np.ndarray] = []
    rows, rest = np.arange(len(array)), array
    while len(rest):
        start, length = _spans(rest, pattern)
        last = length == 0
        pieces.append(
            slices.pieces(rest, np.zeros(len(rest), np.int64), np.where(last, _ALL, start))
        )
        owners.append(rows)
        rest = slices.pieces(rest, start + length, np.full(len(rest), _ALL))
        rows, rest = rows[~last], rest.filter(pa.array(~last))
    return _lists_by_owner(pieces, owners, len(array))


def _by_whitespace(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Split at runs of whitespace, without empty pieces: splitByWhitespace."""
    trimmed = pc.ascii_trim_whitespace(columns.text(arrays[0]))
    lists = pc.ascii_split_whitespace(trimmed).cast(pa.list_(pa.string()))
    return _without_empty_pieces(lists)


def _by_non_alpha(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Split at runs of whitespace and punctuation, without empty pieces: splitByNonAlpha."""
    return _without_empty_pieces(_by_regexp(columns.text(arrays[0]), r"[\s[:punct:]]+"))


def _without_empty_pieces(lists: pa.Array) -> pa.Array:
    """Return the lists without their empty strings."""
    offsets, elements = columns.elements_of(lists)
    return filter_elements(offsets, elements, np.asarray(pc.not_equal(elements, "")))


def _at_most(kernel: Kernel) -> Kernel:
    """Return the kernel with a bound: the constant second argument is the most pieces of a text; 0 or absent means all.

    The text behind the last piece is left out."""

    def limited(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Split the texts, and drop pieces beyond the limit."""
        lists, limit = kernel(arrays[:1], call), call.constant(1)
        return truncate_lists(lists, limit) if isinstance(limit, int) and limit > 0 else lists

    return limited


def _one_text_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return Array(String); raise IllegalTypeOfArgument unless the first argument is a string."""
    require(name, types[:1], TEXT_TYPES, "a String")
    require(name, types[1:], Integer, "an integer limit")
    return _STRINGS


def _join_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless the arguments are an array and strings."""
    require(name, types[:1], Array, "an Array")
    require(name, types[1:], TEXT_TYPES, "a String")
    return STRING


def _array_string_concat(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """Join the elements, without NULLs, by the separator: arrayStringConcat."""
    array_type = call.types[0]
    assert isinstance(array_type, Array)
    offsets, elements = columns.elements_of(arrays[0])
    if is_nullable(array_type.inner) and elements.null_count:
        present = filter_elements(offsets, elements, np.asarray(elements.is_valid()))
        offsets, elements = columns.elements_of(present)
    shown = rendering.display_array(elements, array_type.inner, call.environment.zone)
    lists = columns.lists_from(offsets, shown)
    separator = columns.text(arrays[1]) if len(arrays) > 1 else ""
    return pc.binary_join(lists, separator)


def _extract(*, every: bool) -> Kernel:
    """Return the kernel of extract, or with `every` of extractAll.

    A match gives its first group, or its whole text if the pattern has no group."""

    def extract(array: pa.Array, pattern: str) -> pa.Array:
        """Return the match, or with `every` the list of matches, of one pattern in each text.

        Raises CannotCompileRegexp for a wrong pattern.
        """
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            raise CannotCompileRegexp(
                f"The regular expression {pattern!r} is wrong: {error}."
            ) from None
        if not every:
            return _first_match(array, pattern, groups)
        pieces = all_matches(array, pattern, min(groups, 1))
        if pieces is not None:
            return columns.lists_from(columns.offsets_from_counts(pieces.counts), pieces.texts[-1])
        # Arrow finds one match at a time: cut the matched part off until no text has another match.
        matches: list[pa.Array] = []
        owners: list[np.ndarray] = []
        rows, rest = np.arange(len(array)), array
        while len(rest):
            start, length = _spans(rest, pattern)
            hit = length > 0  # an empty match ends a text, as in ClickHouse
            if not hit.any():
                break
            rows, rest = rows[hit], rest.filter(pa.array(hit))
            matches.append(_first_match(rest, pattern, groups))
            owners.append(rows)
            rest = slices.pieces(rest, (start + length)[hit], np.full(len(rest), _ALL))
        return _lists_by_owner(matches, owners, len(array))

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        """Extract matches from the texts of each distinct pattern together."""
        texts = [columns.text(a) for a in arrays]
        return slices.per_value(texts, (1,), lambda o, v: extract(o[0], v[0]))

    return kernel


def _first_match(array: pa.Array, pattern: str, groups: int) -> pa.Array:
    """Return the first match of each text, or of its first group if the pattern has one; "" without a match.
    `groups` is the pattern's number of groups."""
    wrapped = pattern if groups else f"({pattern})"
    named = DOT_MATCHES_ALL + _named_first(wrapped)
    return pc.fill_null(pc.struct_field(regexes.extracted(array, named), "g1"), "")


def _named_first(pattern: str) -> str:
    """Return the pattern with its first group named g1 and its other groups not capturing."""
    first = True

    def rename(match: re.Match[str]) -> str:
        """Return the opening of a group: named for the first, not capturing for others."""
        nonlocal first
        name, first = ("(?P<g1>" if first else "(?:"), False
        return name

    return re.sub(r"(?<!\\)\((?!\?)", rename, pattern)


def _spans(array: pa.Array, pattern: str) -> tuple[np.ndarray, np.ndarray]:
    """Return where the first match of each text begins and how long it is, in bytes; 0 and 0 if it
    has none."""
    ungrouped = re.sub(r"(?<!\\)\((?!\?)", "(?:", pattern)
    span = pc.extract_regex_span(array, f"{DOT_MATCHES_ALL}(?P<all>{ungrouped})")
    bounds = pc.struct_field(span, "all")
    start, length = (pc.fill_null(pc.list_element(bounds, at), 0) for at in (0, 1))
    return (
        columns.numpy_values(start).astype(np.int64),
        columns.numpy_values(length).astype(np.int64),
    )


def _lists_by_owner(pieces: list[pa.Array], owners: list[np.ndarray], rows: int) -> pa.Array:
    """Return for each of `rows` rows the list of the pieces that it owns, in order."""
    if not pieces:
        return columns.lists_from(np.zeros(rows + 1, np.int64), pa.nulls(0, pa.string()))
    merged, owner = pa.concat_arrays(pieces), np.concatenate(owners)
    order = stable_order(owner)
    counts = np.bincount(owner, minlength=rows)
    return columns.lists_from(columns.offsets_from_counts(counts), merged.take(pa.array(order)))


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    _under_settings(
        define("splitByChar", _separated_rule(_STRINGS), _split_kernel(_by_char), count=(2, 3)),
        _keeping_rest(_by_char),
    ),
    _under_settings(
        define(
            "splitByString", _separated_rule(_STRINGS), _split_kernel(split_by_string), count=(2, 3)
        ),
        _keeping_rest(split_by_string),
    ),
    define("splitByRegexp", _separated_rule(_STRINGS), _split_kernel(_by_regexp), count=(2, 3)),
    define("splitByWhitespace", _one_text_rule, _at_most(_by_whitespace), count=(1, 2)),
    define("splitByNonAlpha", _one_text_rule, _at_most(_by_non_alpha), count=(1, 2)),
    define(
        "arrayStringConcat",
        _join_rule,
        _array_string_concat,
        count=(1, 2),
        aliases=("array_to_string",),
        insensitive=True,
    ),
    define("extract", _separated_rule(STRING), _extract(every=False), count=2),
    define("extractAll", _separated_rule(_STRINGS), _extract(every=True), count=2),
)
