"""Strings to arrays and back: splitBy…, arrayStringConcat, extract…, substringIndex."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, CannotCompileRegexp
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns, slices
from olapdb.functions.scalar import Invocation, Kernel, ScalarDefinition, define, illegal, require
from olapdb.functions.strings import rendering
from olapdb.functions.strings.arguments import DOT_MATCHES_ALL, TEXT_TYPES
from olapdb.types import STRING, Array, DataType, Integer, is_nullable

_STRINGS = Array(STRING)
_PLACES = re.compile(r"(\\[bBAz]|(?<!\[)[$^])|\\.|\[\^?\]?", re.DOTALL)
_ALL = np.int64(2**62)
"""More bytes than a text has."""


def _separated(
    result: DataType,
) -> Callable[[str, tuple[DataType, ...], Sequence[Argument]], DataType]:
    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        require(name, types[:2], TEXT_TYPES, "a String")
        require(name, types[2:], Integer, "an integer")
        return result

    return rule


def _split(how: Callable[[pa.Array, str], pa.Array]) -> Kernel:
    """how(texts, separator); a third argument bounds the number of pieces, the rest is dropped."""

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        separator, subject = columns.text(arrays[0]), columns.text(arrays[1])
        made = slices.per_value([subject, separator], (1,), lambda o, v: how(o[0], v[0]))
        limit = call.constant(2)
        if len(arrays) > 2 and not isinstance(limit, int):
            raise BadArguments("The number of pieces must be constant.")
        return made if not isinstance(limit, int) or limit <= 0 else truncate_lists(made, limit)

    return kernel


def truncate_lists(lists: pa.Array, limit: int) -> pa.Array:
    """At most `limit` elements of each list."""
    offsets, elements = columns.elements_of(lists)
    counts = np.diff(offsets)
    within = np.arange(len(elements)) - np.repeat(offsets[:-1], counts) < limit
    kept = columns.offsets_from_counts(np.minimum(counts, limit))
    return columns.lists_from(kept, elements.filter(pa.array(within)))


def split_by_string(array: pa.Array, separator: str) -> pa.Array:
    """An empty separator cuts into single bytes."""
    if separator:
        return pc.split_pattern(array, separator).cast(pa.list_(pa.string()))
    counts = slices.lengths_of(array)
    offsets = columns.offsets_from_counts(counts)
    owners = columns.parents_of(offsets)
    positions = np.arange(len(owners)) - offsets[owners]
    taken = array.take(pa.array(owners))
    return columns.lists_from(
        offsets, slices.pieces(taken, positions, np.ones(len(owners), np.int64))
    )


def _by_char(array: pa.Array, separator: str) -> pa.Array:
    if len(array) and len(separator) != 1:
        raise BadArguments(
            "The separator of splitByChar is one character.", hint="Use splitByString."
        )
    return split_by_string(array, separator)


def _by_regexp(array: pa.Array, pattern: str) -> pa.Array:
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
    """Whether the pattern may match no characters somewhere; Arrow's split would never end.

    So it may where it matches the empty text, were all its places (^, $, word ends) anywhere."""
    placeless = _PLACES.sub(lambda m: "(?:)" if m.group(1) else m.group(), pattern)
    return bool(pc.match_substring_regex(pa.scalar(""), placeless).as_py())


def _by_matches(array: pa.Array, pattern: str) -> pa.Array:
    """One match of each text at a time; a match of no characters is the text's last."""
    found: list[pa.Array] = []
    owners: list[np.ndarray] = []
    rows, rest = np.arange(len(array)), array
    while len(rest):
        start, length = _spans(rest, pattern)
        last = length == 0
        found.append(
            slices.pieces(rest, np.zeros(len(rest), np.int64), np.where(last, _ALL, start))
        )
        owners.append(rows)
        rest = slices.pieces(rest, start + length, np.full(len(rest), _ALL))
        rows, rest = rows[~last], rest.filter(pa.array(~last))
    return _gathered(found, owners, len(array))


def _by_whitespace(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    trimmed = pc.ascii_trim_whitespace(columns.text(arrays[0]))
    lists = pc.ascii_split_whitespace(trimmed).cast(pa.list_(pa.string()))
    return _without_empty(lists)


def _by_non_alpha(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    return _without_empty(_by_regexp(columns.text(arrays[0]), r"[\s[:punct:]]+"))


def _without_empty(lists: pa.Array) -> pa.Array:
    offsets, elements = columns.elements_of(lists)
    kept = np.asarray(pc.not_equal(elements, ""))
    counts = np.bincount(columns.parents_of(offsets)[kept], minlength=len(lists))
    return columns.lists_from(columns.offsets_from_counts(counts), elements.filter(pa.array(kept)))


def _one_text(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    require(name, types[:1], TEXT_TYPES, "a String")
    return _STRINGS


def _join_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    require(name, types[:1], Array, "an Array")
    require(name, types[1:], TEXT_TYPES, "a String")
    return STRING


def _join(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """NULL elements are left out."""
    array_type = call.types[0]
    assert isinstance(array_type, Array)
    offsets, elements = columns.elements_of(arrays[0])
    if is_nullable(array_type.inner) and elements.null_count:
        kept = np.asarray(elements.is_valid())
        counts = np.bincount(columns.parents_of(offsets)[kept], minlength=len(arrays[0]))
        offsets, elements = columns.offsets_from_counts(counts), elements.filter(pa.array(kept))
    shown = rendering.display_array(elements, array_type.inner, call.environment.zone)
    lists = columns.lists_from(offsets, shown)
    separator = columns.text(arrays[1]) if len(arrays) > 1 else ""
    return pc.binary_join(lists, separator)


def _extract(*, every: bool) -> Kernel:
    """The first group of the pattern, or all of it where it has none."""

    def one(array: pa.Array, pattern: str) -> pa.Array:
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            raise CannotCompileRegexp(
                f"The regular expression {pattern!r} is wrong: {error}."
            ) from None
        if not every:
            return _first_match(array, pattern, groups)
        # RE2 through Arrow finds one match at a time; cut the matched part off until none is left
        found: list[pa.Array] = []
        owners: list[np.ndarray] = []
        rows, rest = np.arange(len(array)), array
        while len(rest):
            start, length = _spans(rest, pattern)
            hit = length > 0  # a match of no characters is the end, as in ClickHouse
            if not hit.any():
                break
            rows, rest = rows[hit], rest.filter(pa.array(hit))
            found.append(_first_match(rest, pattern, groups))
            owners.append(rows)
            rest = slices.pieces(rest, (start + length)[hit], np.full(len(rest), _ALL))
        return _gathered(found, owners, len(array))

    def kernel(arrays: list[pa.Array], call: Invocation) -> pa.Array:
        texts = [columns.text(a) for a in arrays]
        return slices.per_value(texts, (1,), lambda o, v: one(o[0], v[0]))

    return kernel


def _first_match(array: pa.Array, pattern: str, groups: int) -> pa.Array:
    wrapped = pattern if groups else f"({pattern})"
    named = DOT_MATCHES_ALL + _named_first(wrapped)
    found = pc.struct_field(pc.extract_regex(array, named), "g1")
    return pc.fill_null(found, "")


def _named_first(pattern: str) -> str:
    """The pattern with its first group named g1 and the others not capturing."""
    first = True

    def rename(match: re.Match[str]) -> str:
        nonlocal first
        name, first = ("(?P<g1>" if first else "(?:"), False
        return name

    return re.sub(r"(?<!\\)\((?!\?)", rename, pattern)


def _spans(array: pa.Array, pattern: str) -> tuple[np.ndarray, np.ndarray]:
    """Where the first match of each text begins and how long it is, in bytes; 0 and 0 without."""
    span = pc.extract_regex_span(array, f"{DOT_MATCHES_ALL}(?P<all>{_capturing_none(pattern)})")
    bounds = pc.struct_field(span, "all")
    start, length = (pc.fill_null(pc.list_element(bounds, at), 0) for at in (0, 1))
    return (
        columns.numpy_values(start).astype(np.int64),
        columns.numpy_values(length).astype(np.int64),
    )


def _capturing_none(pattern: str) -> str:
    return re.sub(r"(?<!\\)\((?!\?)", "(?:", pattern)


def _gathered(found: list[pa.Array], owners: list[np.ndarray], rows: int) -> pa.Array:
    if not found:
        return columns.lists_from(np.zeros(rows + 1, np.int64), pa.array([], pa.string()))
    merged, owner = pa.concat_arrays(found), np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    counts = np.bincount(owner, minlength=rows)
    return columns.lists_from(columns.offsets_from_counts(counts), merged.take(pa.array(order)))


def _substring_index(arrays: list[pa.Array], call: Invocation) -> pa.Array:
    """What is before the n-th separator, from the right for a negative n."""
    count = call.constant(2)
    if not isinstance(count, int):
        raise illegal("substringIndex", call.types[2], "a constant integer")

    def one(others: list[pa.Array], values: list[str]) -> pa.Array:
        separator = values[0]
        if count == 0 or not separator:
            return pa.array([""] * len(others[0]), pa.string())
        lists = split_by_string(others[0], separator)
        offsets, elements = columns.elements_of(lists)
        sizes = np.diff(offsets)
        place = np.arange(len(elements)) - np.repeat(offsets[:-1], sizes)
        from_end = np.repeat(sizes, sizes) - place
        kept = place < count if count > 0 else from_end <= -count
        counts = np.bincount(columns.parents_of(offsets)[kept], minlength=len(lists))
        chosen = columns.lists_from(
            columns.offsets_from_counts(counts), elements.filter(pa.array(kept))
        )
        return pc.binary_join(chosen, separator)

    return slices.per_value([columns.text(arrays[0]), columns.text(arrays[1])], (1,), one)


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    define("splitByChar", _separated(_STRINGS), _split(_by_char), count=(2, 3)),
    define("splitByString", _separated(_STRINGS), _split(split_by_string), count=(2, 3)),
    define("splitByRegexp", _separated(_STRINGS), _split(_by_regexp), count=(2, 3)),
    define("splitByWhitespace", _one_text, _by_whitespace),
    define("splitByNonAlpha", _one_text, _by_non_alpha),
    define(
        "arrayStringConcat",
        _join_rule,
        _join,
        count=(1, 2),
        aliases=("array_to_string",),
        insensitive=True,
    ),
    define("extract", _separated(STRING), _extract(every=False), count=2),
    define("extractAll", _separated(_STRINGS), _extract(every=True), count=2),
    define(
        "substringIndex",
        _separated(STRING),
        _substring_index,
        count=3,
        aliases=("SUBSTRING_INDEX",),
        insensitive=True,
    ),
)
