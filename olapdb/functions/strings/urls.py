"""Parts of URLs: protocol, path, query string, parameters, levels; and percent-encoding.

URLs are split by regular expressions, which Arrow runs over whole columns. As in ClickHouse nothing
is validated: of a text that is no URL a part is an empty string.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import IllegalColumn
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns, regexes
from olapdb.functions.kernels.by_value import bytes_of_text, define_by_value, values_by_row
from olapdb.functions.strings import rendering
from olapdb.functions.strings.arguments import TEXT_TYPES, text_kernel, text_rule
from olapdb.functions.strings.url_hosts import group
from olapdb.types import STRING, Array, DataType, Nothing, String

_PATH = r"^[^/]*(?P<x>/[^?#]*)"
_PROTOCOL = (
    r"^(?P<x>[a-zA-Z][a-zA-Z0-9+.-]*):"
    r"(?s:...|[^\x00-\x7F].|.[^\x00-\x7F]|[^\x00-\x{7FF}])"  # three bytes must follow
)
_WWW = (
    r"(?s)^((?:[a-zA-Z][a-zA-Z0-9+.-]*:|[\x00-.0-\x7F])?//(?:[^:/?#]*@)?)www\."
    r"([^@:/?#]+|[^@:/?#]*[:/?#].*)$"
)
_PATH_FULL = r"(?s)^[^/]*(?P<x>/.*)"


def _part(pattern: str) -> Callable[[pa.Array], pa.Array]:
    """Return a function that gives the group `x` of the pattern's match in each URL; '' where it does not match."""
    return lambda array: group(array, pattern)


def _path(pattern: str) -> Callable[[pa.Array], pa.Array]:
    """Return a function that gives the group `x` of the pattern's match in what follows each URL's `//`."""

    def path(array: pa.Array) -> pa.Array:
        """Return the pattern's group `x` in the part of each URL that follows `//`."""
        rest = regexes.replaced(columns.text(array), "^[^/]*//", "")
        return group(rest, pattern)

    return path


def _query_and_fragment(array: pa.Array) -> pa.Array:
    """Return what follows the first `?`, or without one what begins with the first `#`."""
    behind = group(array, r"(?s)^[^?]*(?P<x>\?.*)")
    query = pc.if_else(pc.equal(behind, ""), group(array, "(?s)^[^#]*(?P<x>#.*)"), behind)
    return regexes.replaced(query, r"^\?", "")


def _cut(pattern: str, kept: str = "") -> Callable[[pa.Array], pa.Array]:
    """Return a function that removes what the pattern matches from URLs; `kept` is the replacement."""
    return lambda array: regexes.replaced(columns.text(array), pattern, kept)


def _cut_www(array: pa.Array) -> pa.Array:
    """Remove the `www.` that begins the host of a URL with a protocol."""
    return regexes.replaced(columns.text(array), _WWW, r"\1\2")


# --- parameters ----------------------------------------------------------------------------------


def _parameters(array: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Return the parameters of URLs, `name` or `name=value`, as offsets by URL and a column of texts.

    They stand behind `?` and `#`, separated by `&`, `;`, `?` or `#`."""
    text = group(array, r"(?s)[?#](?P<x>.*)$")
    lists = pc.split_pattern_regex(text, "[&;?#]")
    offsets, items = columns.elements_of(lists)
    keep = np.asarray(pc.not_equal(items, ""))
    counts = np.bincount(columns.parents_of(offsets)[keep], minlength=len(array))
    kept = columns.offsets_from_counts(counts)
    return kept, items.filter(pa.array(keep))


def _listed_parameters(array: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Return all parameters of URLs as offsets by URL and a column of texts.

    Here `&` and `#` separate, and what stands before `?` in a name does not count. The last parameter counts only
    with `=`."""
    lists = pc.split_pattern_regex(group(array, r"(?s)[?#](?P<x>.*)$"), "[&#]")
    offsets, items = columns.elements_of(lists)
    keep = np.ones(len(items), bool)
    last = offsets[1:] - 1
    keep[last] = np.asarray(pc.match_substring(items, "="))[last]
    counts = np.bincount(columns.parents_of(offsets)[keep], minlength=len(array))
    items = regexes.replaced(items.filter(pa.array(keep)), r"(?s)^[^=]*\?", "")
    return columns.offsets_from_counts(counts), items


def _parameter_list(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return all parameters of URLs: extractURLParameters."""
    offsets, items = _listed_parameters(arrays[0])
    return columns.lists_from(offsets, items)


def _parameter_names(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the names of all parameters of URLs: extractURLParameterNames."""
    offsets, items = _listed_parameters(arrays[0])
    return columns.lists_from(offsets, regexes.replaced(items, "(?s)=.*$", ""))


def _parameter(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the value of the first parameter with the given name, '' if there is none: the kernel of
    extractURLParameter."""
    urls, names = (columns.text(array) for array in arrays)
    offsets, items = _parameters(urls)
    owners = columns.parents_of(offsets)
    wanted = names.take(pa.array(owners))
    same = np.asarray(pc.match_substring(items, "="))
    same &= np.asarray(pc.equal(regexes.replaced(items, "(?s)=.*$", ""), wanted))
    rows, first = np.unique(owners[same], return_index=True)
    values = regexes.replaced(items, "(?s)^[^=]*=", "")
    first_values = values.take(pa.array(np.flatnonzero(same)[first]))
    empty = pa.repeat(pa.scalar(""), len(urls))
    return columns.replaced_rows(empty, rows, first_values)


def _cut_parameter(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Remove the first parameter with a name, or with each name of an array, from URLs.

    Several names are searched in the whole URL, so that two cuts may take one `&` each; this calls
    Python once for each distinct URL.
    """
    names = call.constant(1)
    if isinstance(names, list):
        return values_by_row(arrays[:1], partial(_without_parameters, names=names), pa.string())
    pattern = (
        rf"(?s)^(?P<before>[^?#]*[?#](?:.*?[?#&])??)(?P<cut>{_literal(str(names))}=[^&#]*)"
        r"(?P<after>.*)$"
    )
    text = columns.text(arrays[0])
    groups = regexes.extracted(text, pattern)
    before, after = (pc.struct_field(groups, name) for name in ("before", "after"))
    joined = regexes.replaced(after, "^&", "")
    separate = pc.invert(pc.starts_with(after, "&"))
    shortened = regexes.replaced(before, "&$", "")
    before = pc.if_else(separate, shortened, before)
    return pc.coalesce(pc.binary_join_element_wise(before, joined, ""), text)


def _literal(text: str) -> str:
    """Return a regular expression that matches exactly the text."""
    return "".join(f"\\x{{{ord(letter):x}}}" for letter in text)


def _without_parameters(url: bytes, names: list[str]) -> bytes:
    """Return one URL without the first parameter of each of these names."""
    kept = np.ones(len(url), bool)
    start = re.match(rb"[^?#]*[?#]", url)
    for name in names if start else ():
        pattern = rb"(?<=[?#&])" + re.escape(bytes_of_text(name)) + rb"=[^&#]*"
        match = re.compile(pattern).search(url, start.end() if start else 0)
        if match is None:
            continue
        begin, end = match.span()
        if url[end : end + 1] == b"&":
            end += 1
        elif url[begin - 1 : begin] == b"&":
            begin -= 1
        kept[begin:end] = False
    return np.frombuffer(url, np.uint8)[kept].tobytes()


def _cut_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument or IllegalColumn unless a text, then a constant
    text or array of texts."""
    scalar.require(name, types[:1], TEXT_TYPES, "a String")
    scalar.require(name, types[1:], (*TEXT_TYPES, Array), "a String or Array(String)")
    named = types[1].inner if isinstance(types[1], Array) else types[1]
    if arguments[1].constant is None or not isinstance(named, String | Nothing):
        raise IllegalColumn(
            f"The second argument of function {name} is a constant text or array of texts."
        )
    return STRING


# --- levels --------------------------------------------------------------------------------------

_SITE = re.compile(rb"[a-z0-9]+://[^/?#]*")
_LEVEL = re.compile(rb"[/?#]*[^/?#]+[/?#]?")


def levels_of(url: bytes, *, path_only: bool = False) -> list[bytes]:
    """Return a URL up to each of its separators `/`, `?` and `#`;
    without a protocol the whole URL.

    `path_only` leaves the protocol and the host out.
    """
    site = _SITE.match(url)
    if site is None:
        return [] if path_only or not url else [url]
    begin = site.end() if path_only else 0
    first = min(site.end() + 1, len(url))
    ends = [match.end() for match in _LEVEL.finditer(url, first)]
    return [url[begin:end] for end in ([] if path_only else [first]) + ends]


# --- percent-encoding ----------------------------------------------------------------------------

_LETTERS = np.zeros(256, bool)
_LETTERS[[*range(48, 58), *range(65, 91), *range(97, 123), *b"-_.~"]] = True
_HEX = np.full(256, -1, np.int16)
for _at, _digit in enumerate(b"0123456789abcdef"):
    _HEX[_digit] = _at
for _at, _digit in enumerate(b"ABCDEF", 10):
    _HEX[_digit] = _at
_PERCENT, _SPACE, _PLUS = 37, 32, 43


def _encode(*, form: bool) -> Callable[[pa.Array], pa.Array]:
    """Return a function that percent-encodes all bytes but letters, digits and `-_.~`; with `form` a space becomes
    +."""

    def encode(array: pa.Array) -> pa.Array:
        """Write each byte as one character, or as % and two hexadecimal digits."""
        offsets, data = columns.bytes_of(columns.binary(array))
        plain = _LETTERS[data] | ((data == _SPACE) & form)
        ends = columns.offsets_from_counts(np.where(plain, 1, 3))
        out = np.full(int(ends[-1]), _PERCENT, np.uint8)
        out[ends[:-1][plain]] = np.where(data[plain] == _SPACE, _PLUS, data[plain])
        digits = rendering.hex_matrix(data[~plain][:, None]).reshape(-1, 2)
        out[ends[:-1][~plain] + 1], out[ends[:-1][~plain] + 2] = digits[:, 0], digits[:, 1]
        return columns.strings_from(ends[offsets], out)

    return encode


def _decode(*, form: bool) -> Callable[[pa.Array], pa.Array]:
    """Return a function that decodes percent-encoding: `%41` is A. A % without two hexadecimal digits behind it stays.

    With `form` a + becomes a space."""

    def decode(array: pa.Array) -> pa.Array:
        """Write the byte in place of %, and leave out its two digits; with `form` write + as a space."""
        offsets, data = columns.bytes_of(columns.binary(array))
        ends = np.repeat(offsets[1:], np.diff(offsets))
        places = np.flatnonzero((data == _PERCENT) & (np.arange(len(data)) + 2 < ends))
        high, low = _HEX[data[places + 1]], _HEX[data[places + 2]]
        places, high, low = (part[(high >= 0) & (low >= 0)] for part in (places, high, low))
        out = np.where(data == _PLUS, _SPACE, data).astype(np.uint8) if form else data.copy()
        out[places] = high * 16 + low
        keep = np.ones(len(data), bool)
        keep[places + 1] = keep[places + 2] = False
        before = columns.offsets_from_counts(keep)
        return columns.strings_from(before[offsets], out[keep])

    return decode


_URL, _LIST = text_rule(STRING), text_rule(Array(STRING))
_TEXTS = {
    "protocol": _part(_PROTOCOL),
    "path": _path(_PATH),
    "pathFull": _path(_PATH_FULL),
    "queryString": _part(r"^[^?]*\?(?P<x>[^#]*)"),
    "fragment": _part(r"(?s)^[^#]*#(?P<x>.*)$"),
    "queryStringAndFragment": _query_and_fragment,
    "cutWWW": _cut_www,
    "cutQueryString": _cut(r"\?[^#]*"),
    "cutFragment": _cut(r"(?s)#.*$"),
    "cutQueryStringAndFragment": _cut(r"(?s)\?.*$|^([^?#]*)#[^?]*$", r"\1"),
    "encodeURLComponent": _encode(form=False),
    "encodeURLFormComponent": _encode(form=True),
    "decodeURLComponent": _decode(form=False),
    "decodeURLFormComponent": _decode(form=True),
}

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(scalar.define(name, _URL, text_kernel(function)) for name, function in _TEXTS.items()),
    scalar.define("extractURLParameter", text_rule(STRING, 2), _parameter, count=2),
    scalar.define("extractURLParameters", _LIST, _parameter_list),
    scalar.define("extractURLParameterNames", _LIST, _parameter_names),
    scalar.define("cutURLParameter", _cut_rule, _cut_parameter, count=2),
    define_by_value("URLHierarchy", _LIST, levels_of),
    define_by_value("URLPathHierarchy", _LIST, partial(levels_of, path_only=True)),
)
