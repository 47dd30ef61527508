"""Pieces of texts: n-grams, groups of patterns; texts put together by printf and overlay."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    BadArguments,
    IndexOfPositionalArgument,
    NumberOfArgumentsDoesntMatch,
    TooLargeArray,
)
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import columns, slices
from olapdb.functions.kernels.by_value import (
    bytes_of_text,
    define_by_value,
    on_text,
    text_of,
    values_by_row,
)
from olapdb.functions.kernels.integer_order import order_by
from olapdb.functions.kernels.nested import truncate_lists
from olapdb.functions.scalar import with_count_errors
from olapdb.functions.strings.all_matches import PatternMatches, all_matches, cut
from olapdb.functions.strings.arguments import TEXT_TYPES, text_rule
from olapdb.functions.strings.search_many import pattern_of
from olapdb.types import STRING, Array, Boolean, DataType, Float, Integer
from olapdb.types.arrow_values import from_numpy

_TEXTS = Array(STRING)


def _encoded(texts: Sequence[str | None]) -> list[bytes]:
    """Return texts as bytes; None, a group without a match, gives b""."""
    return [bytes_of_text(text or "") for text in texts]


def _is_utf8(texts: pa.Array) -> bool:
    """Return whether all texts are valid UTF-8."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _ngrams_of(text: bytes, size: int) -> list[bytes]:
    """Return the n-grams of `size` characters of one text."""
    characters = text_of(text)
    return _encoded([characters[at : at + size] for at in range(len(characters) - size + 1)])


def _ngrams(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return all n-grams of `size` characters of each text: the kernel of ngrams; raise BadArguments unless the size is
    above 0.

    A byte that belongs to no character of UTF-8 is a character of its own."""
    texts = columns.text(arrays[0])
    offsets, data = columns.bytes_of(texts)
    sizes = columns.numpy_values(arrays[1])
    if (sizes < 1).any():
        raise BadArguments("The length of ngrams is at least 1.")
    if not _is_utf8(texts):
        return values_by_row(arrays, _ngrams_of, call.result.arrow)
    sizes = np.minimum(sizes, sizes.dtype.type(min(len(data) + 1, np.iinfo(sizes.dtype).max)))
    sizes = sizes.astype(np.int64)
    heads = np.flatnonzero((data & 0xC0) != 0x80)
    firsts, lasts = (np.searchsorted(heads, side) for side in (offsets[:-1], offsets[1:]))
    list_offsets = columns.offsets_from_counts(np.maximum(lasts - firsts - sizes + 1, 0))
    owners = columns.parents_of(list_offsets)
    starts = firsts[owners] + np.arange(len(owners)) - list_offsets[owners]
    ends = starts + sizes[owners]
    inside = ends < lasts[owners]
    stops = np.where(inside, heads[np.where(inside, ends, 0)], offsets[1:][owners])
    return columns.lists_from(list_offsets, cut(data, heads[starts], stops))


def _alpha_tokens(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the runs of ASCII letters of each text, at most as many as the second argument if that is above 0: the
    kernel of alphaTokens."""
    offsets, data = columns.bytes_of(columns.text(arrays[0]))
    is_letter = np.zeros(len(data) + 1, bool)
    is_letter[:-1] = (data | 0x20) - np.uint8(ord("a")) < 26
    at_bound = np.zeros(len(data) + 1, bool)
    at_bound[offsets] = True
    before = np.append(False, is_letter[:-1])
    starts = np.flatnonzero(is_letter & (at_bound | ~before))
    ends = np.flatnonzero(before & (at_bound | ~is_letter))
    counts = np.bincount(np.searchsorted(offsets, starts, "right") - 1, minlength=len(arrays[0]))
    lists = columns.lists_from(columns.offsets_from_counts(counts), cut(data, starts, ends))
    limit = call.constant(1) if len(arrays) > 1 else 0
    return truncate_lists(lists, limit) if isinstance(limit, int) and limit > 0 else lists


def _groups_of(pattern: bytes) -> re.Pattern[str]:
    """Return a compiled pattern; raise BadArguments unless it has groups."""
    compiled = pattern_of(pattern)
    if not compiled.groups:
        raise BadArguments(f"There are no groups in the pattern {text_of(pattern)!r}.")
    return compiled


def _all_groups(text: bytes, pattern: bytes) -> list[list[bytes]]:
    """Return for each match the list of its groups.

    An empty match counts, as in ClickHouse, and the next one begins a character later, unless that is the end."""
    compiled, whole, at = _groups_of(pattern), text_of(text), 0
    matches = []
    while at < len(whole) and (match := compiled.search(whole, at)) is not None:
        matches.append(_encoded(match.groups()))
        at = match.end() + (match.end() == match.start())
    return matches


def _groups_across(text: bytes, pattern: bytes) -> list[list[bytes]]:
    """Return for each group the list of what it matched, over all matches."""
    matches = _all_groups(text, pattern)
    return [[match[at] for match in matches] for at in range(_groups_of(pattern).groups)]


def _with_all_groups(
    join: Callable[[PatternMatches], pa.Array], function: Callable[[bytes, bytes], object]
) -> scalar.Kernel:
    """Return a kernel that passes the matches of a column to `join`. Where they cannot be found at once, `function`
    is called with each distinct row."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Find the matches in the texts of each distinct pattern together."""

        def of_pattern(texts: list[pa.Array], values: list[str]) -> pa.Array:
            """Return the groups of one pattern in the texts. Raises BadArguments for a pattern without groups."""
            pattern = bytes_of_text(values[0])
            matches = all_matches(texts[0], values[0], _groups_of(pattern).groups)
            if matches is not None:
                return join(matches)
            rows = [texts[0], columns.as_array(pa.scalar(pattern), len(texts[0]))]
            return values_by_row(rows, function, call.result.arrow)

        return slices.per_value([columns.text(a) for a in arrays], (1,), of_pattern)

    return kernel


def _lists_of_matches(matches: PatternMatches) -> pa.Array:
    """Return for each row a list of matches, each the list of its groups."""
    count, groups = len(matches.owners), len(matches.texts) - 1
    order = np.arange(groups)[None, :] * count + np.arange(count)[:, None]
    values = pa.concat_arrays(matches.texts[1:]).take(from_numpy(order.reshape(-1)))
    lists = columns.lists_from(np.arange(count + 1) * groups, values)
    return columns.lists_from(columns.offsets_from_counts(matches.counts), lists)


def _lists_of_groups(matches: PatternMatches) -> pa.Array:
    """Return for each row a list of groups, each the list of what it matched."""
    count, groups = len(matches.owners), len(matches.texts) - 1
    owners, places = np.tile(matches.owners, groups), np.repeat(np.arange(groups), count)
    order = order_by(owners, places)  # keeps the order of matches
    values = pa.concat_arrays(matches.texts[1:]).take(from_numpy(order))
    inner = columns.offsets_from_counts(np.repeat(matches.counts, groups))
    return columns.lists_from(
        np.arange(matches.rows + 1) * groups, columns.lists_from(inner, values)
    )


def _first_groups(text: bytes, pattern: bytes) -> list[bytes]:
    """Return the groups of the first match of a pattern; no groups without a match."""
    match = _groups_of(pattern).search(text_of(text))
    return _encoded(match.groups()) if match else []


def _regexp_extract(text: bytes, pattern: bytes, index: int | None = None) -> bytes:
    """Return the group number `index` of the first match: 0 is the whole match; None means the first group, or the
    whole match without groups.

    Raises IndexOfPositionalArgument."""
    compiled = pattern_of(pattern)
    group = index if index is not None else min(compiled.groups, 1)
    if not 0 <= group <= compiled.groups:
        raise IndexOfPositionalArgument(
            f"The index {group} of regexpExtract is not from 0 to {compiled.groups}."
        )
    match = compiled.search(text_of(text))
    return bytes_of_text(match.group(group) or "") if match else b""


def _reverse_pieces(text: bytes, separator: bytes = b".") -> bytes:
    """Return the pieces between separators in reverse order; for an empty separator the bytes."""
    return separator.join(reversed(text.split(separator))) if separator else text[::-1]


def _quoted(value: bytes) -> bytes:
    """Return the text with a backslash before each character that a pattern would read."""
    return re.sub(rb"([\\^$.\[\]|()?*+{\-:])", rb"\\\1", value).replace(b"\0", b"\\\0")


def _translated(text: str, source: str, target: str) -> str:
    """Return the text with each character of `source` replaced by the character of `target` at its place, or dropped if
    `target` is too short.

    Raises BadArguments."""
    if len(target) > len(source):
        raise BadArguments(
            "The second and third argument of translate have as many characters, or the third fewer."
        )
    return text.translate({ord(c): target[at : at + 1] for at, c in enumerate(source)})


def _translate(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Replace each character of the second argument by the one at its place in the third: the kernel of translate."""

    def replaced(texts: list[pa.Array], values: list[str]) -> pa.Array:
        """Replace characters in texts by one pair of source and target. Raises BadArguments."""
        source, target = (np.frombuffer(bytes_of_text(value), np.uint8) for value in values)
        if len(target) > len(source):
            raise BadArguments(
                "The third argument of translate has at most as many characters as the second."
            )
        if (source >= 0x80).any() or (target >= 0x80).any():
            raise BadArguments("translate replaces ASCII characters.", hint="Use translateUTF8.")
        # Of a character that stands twice in the source, the last one counts.
        table, kept = np.arange(256, dtype=np.uint8), np.ones(256, bool)
        kept[source] = np.arange(len(source)) < len(target)
        table[source[: len(target)]] = target
        offsets, data = columns.bytes_of(texts[0])
        stays = kept[data]
        ends = np.append(0, np.cumsum(stays))
        return columns.strings_from(ends[offsets], table[data[stays]])

    return slices.per_value([columns.text(a) for a in arrays], (1, 2), replaced)


def _overlaid(
    text: bytes | str, new: bytes | str, offset: int, length: int | None = None
) -> bytes | str:
    """Return the text with `length` units from `offset` replaced by `new`; the offset counts from 1, from the end if
    negative; 0 is behind the end.

    Without `length`, or with a negative one, as many units as `new` has are replaced."""
    size = len(new) if length is None or length < 0 else length
    start = offset - 1 if offset > 0 else len(text) + offset
    start = min(max(start, 0), len(text))
    return text[:start] + new + text[start + size :]  # type: ignore[operator]


def _printf_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless a text, then texts and numbers."""
    scalar.require(name, types[:1], TEXT_TYPES, "a String")
    scalar.require(name, types[1:], (*TEXT_TYPES, Integer, Float, Boolean), "a String or number")
    return STRING


_SPECIFIER = re.compile(r"%([-+ 0#]*)(\d+)?(?:\.(\d+))?([diouxXeEfFgGaAcs%])")


def _printf(template: bytes, *values: object) -> bytes:
    """Return the template with the values in place of its specifiers, as C's printf.

    Raises BadArguments for a value that does not fit its specifier, and
    NumberOfArgumentsDoesntMatch for another number of values.
    """
    wanted = sum(m.group(4) != "%" for m in _SPECIFIER.finditer(text_of(template)))
    if wanted != len(values):
        raise NumberOfArgumentsDoesntMatch(
            f"The format of printf takes {wanted} value(s), {len(values)} given."
        )
    remaining = iter(values)

    def formatted(match: re.Match[str]) -> str:
        """Format the next value by one specifier. Raises BadArguments for a value of another kind, or if no value is
        left."""
        flags, width, precision, kind = match.groups()
        if kind == "%":
            return "%"
        value = next(remaining, None)
        if isinstance(value, bytes):
            value = text_of(value)
        if isinstance(value, str) != (kind == "s"):
            raise BadArguments(f"The argument of printf for {match.group(0)} is of another kind.")
        if kind in "diouxXc" and isinstance(value, float):
            raise BadArguments(f"The argument of printf for {match.group(0)} is not an integer.")
        if kind in "aAeEfFgG":
            if not isinstance(value, float):
                raise BadArguments(f"The argument of printf for {match.group(0)} is no float.")
            if kind in "aA":
                return _hexadecimal(value, kind, flags, int(width or 0), precision)
        shape = f"%{flags or ''}{width or ''}{'.' + precision if precision else ''}{'d' if kind == 'u' else kind}"
        return str(shape % value)

    return bytes_of_text(_SPECIFIER.sub(formatted, text_of(template)))


def _hexadecimal(value: float, kind: str, flags: str, width: int, precision: str | None) -> str:
    """Return a float in the form of C's `%a`, 0x1.8p+0, or of `%A`, in capitals. Without a precision it has as many
    digits as it needs."""
    sign = "-" if math.copysign(1, value) < 0 else next((f for f in "+ " if f in flags), "")
    text = abs(value).hex()
    if math.isfinite(value):
        mantissa, exponent = text.removeprefix("0x").split("p")
        digits = mantissa.replace(".", "").ljust(14, "0")
        if precision is not None and int(precision) < 13:
            dropped = 1 << 4 * (13 - int(precision))
            kept, rest = divmod(int(digits, 16), dropped)
            kept += 2 * rest > dropped or (2 * rest == dropped and kept % 2)
            digits = f"{kept:x}".rjust(int(precision) + 1, "0")
        fraction = (
            digits[1:].rstrip("0") if precision is None else digits[1:].ljust(int(precision), "0")
        )
        point = "." if fraction or "#" in flags else ""
        text = f"0x{digits[0]}{point}{fraction}p{exponent}"
    if "-" in flags:
        text = f"{sign}{text}".ljust(width)
    elif "0" in flags:
        text = sign + text.rjust(width - len(sign), "0")
    else:
        text = f"{sign}{text}".rjust(width)
    return text.upper() if kind == "A" else text


def _on_characters(function: Callable[..., object]) -> Callable[..., bytes]:
    """Return a function of bytes that calls `function` with texts and encodes its result; see `on_text`."""
    return on_text(function)  # type: ignore[arg-type]


_NESTED = Array(_TEXTS)
_MATCHES_MAX = "regexp_max_matches_per_row"
_ACROSS = scalar.define(
    "extractAllGroupsHorizontal",
    text_rule(_NESTED, 2),
    _with_all_groups(_lists_of_groups, _groups_across),
    count=2,
)


def _across_by_settings(changed: frozenset[str]) -> scalar.Resolver:
    """Return the resolver of extractAllGroupsHorizontal that bounds the matches of a row by the setting, or its default if
    it is not among the changed ones."""
    most = int(Environment(changed=changed).setting(_MATCHES_MAX, "1000"))

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; its kernel raises TooLargeArray for a row of more matches."""
        call = _ACROSS.resolver(name, arguments)

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Find the matches, and count those of each row's first group."""
            result = call.kernel(values, rows, environment)
            _, groups = columns.elements_of(columns.single(result))
            counts = np.diff(columns.elements_of(groups)[0])
            if len(counts) and counts.max() > most:
                raise TooLargeArray(
                    f"A row of {name} has more than {most} matches.",
                    hint=f"SET {_MATCHES_MAX} to a larger number.",
                )
            return result

        return replace(call, kernel=kernel)

    return resolve


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define("ngrams", text_rule(_TEXTS), _ngrams, count=2),
    scalar.define(
        "alphaTokens", text_rule(_TEXTS), _alpha_tokens, count=(1, 2), aliases=("splitByAlpha",)
    ),
    scalar.define(
        "extractAllGroupsVertical",
        text_rule(_NESTED, 2),
        _with_all_groups(_lists_of_matches, _all_groups),
        count=2,
        aliases=("extractAllGroups",),
    ),
    replace(_ACROSS, resolver=_across_by_settings(frozenset()), by_settings=_across_by_settings),
    define_by_value("extractGroups", text_rule(_TEXTS, 2), _first_groups, count=2),
    define_by_value(
        "regexpExtract",
        text_rule(STRING, 2),
        _regexp_extract,
        count=(2, 3),
        aliases=("REGEXP_EXTRACT", "REGEXP_SUBSTR"),
        insensitive=True,
    ),
    *with_count_errors(
        (
            define_by_value(
                "reverseBySeparator", text_rule(STRING, 2), _reverse_pieces, count=(1, 2)
            ),
        ),
        few=BadArguments,
        many=BadArguments,
    ),
    define_by_value("regexpQuoteMeta", text_rule(STRING), _quoted),
    scalar.define("translate", text_rule(STRING, 3), _translate, count=3),
    define_by_value("translateUTF8", text_rule(STRING, 3), on_text(_translated), count=3),
    define_by_value("overlay", text_rule(STRING, 2), _overlaid, count=(3, 4), insensitive=True),
    define_by_value(
        "overlayUTF8",
        text_rule(STRING, 2),
        _on_characters(_overlaid),
        count=(3, 4),
        insensitive=True,
    ),
    define_by_value("printf", _printf_rule, _printf, count=(1, None)),
)
