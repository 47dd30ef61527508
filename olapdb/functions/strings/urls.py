"""Parts of URLs: protocol, domain, path, query string, parameters; and percent-encoding.

URLs are split by regular expressions, which Arrow runs over whole columns. As in ClickHouse nothing
is validated: of a text that is no URL a part is an empty string.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions import scalar
from olapdb.functions.kernels import columns, slices
from olapdb.functions.strings import rendering
from olapdb.functions.strings.arguments import text_kernel, text_rule
from olapdb.types import STRING, UINT16, Array

_HOST = r"[^@/?#: \t<>%{}|\\^~\[\];=&]*"
_DOMAIN = rf"^(?:(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//)?(?:{_HOST}@)*(?P<x>{_HOST})(?:[:/?#]|$)"
_PATH = r"^[^/]*(?P<x>/[^?#]*)"
_PATH_FULL = r"(?s)^[^/]*(?P<x>/.*)"
_PORT = (
    r"^(?:(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//)?(?:[^@/?#]*@)?[a-zA-Z0-9_.~%-]+"
    r":(?P<x>[0-9]{1,5})(?:[/?#]|$)"
)


def _group(array: pa.Array, pattern: str) -> pa.Array:
    """Return the group `x` of a pattern in each text, '' where it does not match."""
    found = pc.struct_field(pc.extract_regex(columns.text(array), pattern), "x")
    return pc.fill_null(found, "")


def _part(pattern: str) -> Callable[[pa.Array], pa.Array]:
    """Return a function from URLs to the group `x` of a pattern."""
    return lambda array: _group(array, pattern)


def _domain(array: pa.Array) -> pa.Array:
    """Return the hosts of URLs, with or without a protocol; a text without a dot has none."""
    host = _group(array, _DOMAIN)
    return pc.if_else(pc.match_substring_regex(host, r"\.."), host, "")


def _path(pattern: str) -> Callable[[pa.Array], pa.Array]:
    """Return a function from URLs to the group `x` of a pattern in what follows `//`."""

    def path(array: pa.Array) -> pa.Array:
        """Cut the protocol off and match the rest."""
        rest = pc.replace_substring_regex(columns.text(array), "^[^/]*//", "", max_replacements=1)
        return _group(rest, pattern)

    return path


def _query_and_fragment(array: pa.Array) -> pa.Array:
    """Return what follows the first `?`, or begins with the first `#` if that comes earlier."""
    return pc.replace_substring_regex(_group(array, r"(?s)^[^?#]*(?P<x>[?#].*)"), r"^\?", "")


def _without_www(array: pa.Array) -> pa.Array:
    """Return the hosts of URLs without a leading `www.`."""
    return pc.replace_substring_regex(_domain(array), r"^www\.", "")


def _top_level(array: pa.Array) -> pa.Array:
    """Return the last labels of hosts; '' of addresses."""
    return _group(_domain(array), r"\.(?P<x>[^.0-9][^.]*)$")


def _cut(pattern: str) -> Callable[[pa.Array], pa.Array]:
    """Return a function that removes what a pattern matches."""
    return lambda array: pc.replace_substring_regex(columns.text(array), pattern, "")


def _cut_www(array: pa.Array) -> pa.Array:
    """Remove the `www.` that begins the host of a URL with a protocol."""
    return pc.replace_substring_regex(columns.text(array), r"^([^/]*//)www\.", r"\1")


def _port(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the ports of URLs, the second argument or 0 where there is none."""
    written = _group(arrays[0], _PORT)
    digits = pc.if_else(pc.equal(written, ""), "0", written).cast(pa.int64())
    known = np.asarray(pc.and_(pc.greater(digits, 0), pc.less(digits, 65_536)))
    other = columns.numpy_values(arrays[1]) if len(arrays) > 1 else np.zeros(len(known), np.int64)
    return columns.from_values(np.where(known, columns.numpy_values(digits), other), pa.uint16())


# --- parameters ----------------------------------------------------------------------------------


def _parameters(array: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Return the parameters of URLs, `name` or `name=value`: the offsets of each URL's, and they.

    Those behind `?` and `#`, separated by `&`, `;`, `?` or `#`.
    """
    text = _group(array, r"(?s)[?#](?P<x>.*)$")
    lists = pc.split_pattern_regex(text, "[&;?#]")
    offsets, items = columns.elements_of(lists)
    keep = np.asarray(pc.not_equal(items, ""))
    counts = np.bincount(columns.parents_of(offsets)[keep], minlength=len(array))
    kept = columns.offsets_from_counts(counts)
    return kept, items.filter(pa.array(keep))


def _parameter_list(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return all parameters of URLs: extractURLParameters."""
    offsets, items = _parameters(arrays[0])
    return columns.lists_from(offsets, items)


def _parameter_names(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the names of all parameters of URLs: extractURLParameterNames."""
    offsets, items = _parameters(arrays[0])
    return columns.lists_from(offsets, pc.replace_substring_regex(items, "(?s)=.*$", ""))


def _parameter(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the value of the first parameter with the given name, '' if there is none."""
    urls, names = (columns.text(array) for array in arrays)
    offsets, items = _parameters(urls)
    owners = columns.parents_of(offsets)
    wanted = names.take(pa.array(owners))
    same = np.asarray(pc.match_substring(items, "="))
    same &= np.asarray(pc.equal(pc.replace_substring_regex(items, "(?s)=.*$", ""), wanted))
    rows, first = np.unique(owners[same], return_index=True)
    values = pc.replace_substring_regex(items, "(?s)^[^=]*=", "")
    found = values.take(pa.array(np.flatnonzero(same)[first]))
    empty = pa.repeat(pa.scalar(""), len(urls))
    return columns.replaced_rows(empty, rows, found)


def _cut_parameter(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Remove the parameters with a name from URLs: cutURLParameter."""

    def cut(others: list[pa.Array], values: list[str]) -> pa.Array:
        """Remove one name's parameters."""
        name = "".join(f"\\x{{{ord(letter):x}}}" for letter in values[0])
        behind = pc.replace_substring_regex(others[0], f"([?#&;]){name}=[^&;#]*[&;]", r"\1")
        behind = pc.replace_substring_regex(behind, f"[&;]{name}=[^&;#]*", "")
        return pc.replace_substring_regex(behind, f"([?#]){name}=[^&;#]*", r"\1")

    return slices.per_value([columns.text(a) for a in arrays], (1,), cut)


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
    """Return percent-encoding of all bytes but letters, digits and `-_.~`; `form`: space as +."""

    def encode(array: pa.Array) -> pa.Array:
        """Write each byte as one or three characters."""
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
    """Return the decoding of `%41`; others than two hexadecimal digits behind % stay as they are.

    `form`: + is a space.
    """

    def decode(array: pa.Array) -> pa.Array:
        """Write the byte in place of %, and leave out its two digits."""
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
    "protocol": _part(r"^(?P<x>[a-zA-Z][a-zA-Z0-9+.-]*):"),
    "domain": _domain,
    "domainWithoutWWW": _without_www,
    "topLevelDomain": _top_level,
    "path": _path(_PATH),
    "pathFull": _path(_PATH_FULL),
    "queryString": _part(r"^[^?]*\?(?P<x>[^#]*)"),
    "fragment": _part(r"(?s)^[^#]*#(?P<x>.*)$"),
    "queryStringAndFragment": _query_and_fragment,
    "cutWWW": _cut_www,
    "cutQueryString": _cut(r"\?[^#]*"),
    "cutFragment": _cut(r"(?s)#.*$"),
    "cutQueryStringAndFragment": _cut(r"(?s)[?#].*$"),
    "encodeURLComponent": _encode(form=False),
    "encodeURLFormComponent": _encode(form=True),
    "decodeURLComponent": _decode(form=False),
    "decodeURLFormComponent": _decode(form=True),
}

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(scalar.define(name, _URL, text_kernel(function)) for name, function in _TEXTS.items()),
    scalar.define("port", text_rule(UINT16), _port, count=(1, 2)),
    scalar.define("extractURLParameter", text_rule(STRING, 2), _parameter, count=2),
    scalar.define("extractURLParameters", _LIST, _parameter_list),
    scalar.define("extractURLParameterNames", _LIST, _parameter_names),
    scalar.define("cutURLParameter", text_rule(STRING, 2), _cut_parameter, count=2),
)
