"""Hosts of URLs: domain and port, by ClickHouse's own reading and by RFC 3986, and netloc.

A protocol is at most 13 characters long. What stands between it and the first `/`, `?` or `#` is
the authority, `user:password@host:port`. A host has a dot inside, or stands in brackets; as in ClickHouse what is in them is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns, regexes
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.functions.strings.arguments import text_kernel, text_rule
from olapdb.types import STRING, UINT16, DataType

_PROTOCOL = r"^(?://|[\x00-\x7f][a-zA-Z0-9.+-]{0,12}://)"
_RFC_PROTOCOL = r"^(?://|[\x00-\x7f][a-zA-Z0-9.+\[-]{0,12}://)"
_NO_PROTOCOL = r"^[\s\S][a-zA-Z0-9.+\[-]{0,14}[ \t<>%{}|\\^~\];=&]"
"""A text that RFC functions read no further: the character cannot be in the first piece."""
_NAME = r"[^ \t<>%{}|\\^~\[\];=&:/?#@]*"
_PARTS = rf"{_PROTOCOL}?(?P<authority>(?:{_NAME}@)*(?P<host>{_NAME}))(?P<behind>[\s\S]?)"
"""A match of any text: what may stand before the host does so if it can."""
_BARRED = r" \t<>{}|\\^\[\]@/?#"
_RFC_USER = rf"^[^:{_BARRED}]*(?::[^:{_BARRED}]*)?@"
_RFC_HOST = rf"(?P<x>[^;=&~%:{_BARRED}]+)"
_RFC_NAME = rf"^{_RFC_HOST}(?:$|[/?#]|:[^:@;=&~%/?#]*(?:[:/?#]|$))"
_RFC_NAME_OF_USER = rf"{_RFC_USER}{_RFC_HOST}(?:$|[@/?#]|:[^:@;=&~%/?#]*(?:[:@/?#]|$))"
_RFC_ADDRESS = rf"(?:{_RFC_USER}|^)\[(?P<x>[^;=&~%.{_BARRED}]*)\]"
_DOTTED_USER = rf"^[^:{_BARRED}]*\.(?:[^:.{_BARRED}]*@|[^:.{_BARRED}]+:[^:{_BARRED}]*@)"
_RFC_BEFORE = r"^(?:[^@/?#]*@)?(?:\[[^\]]*\]|[^:/?#]*)"
_DIGITS = r"^:(?P<x>[0-9]*)(?:[/?#]|$)"


def group(array: pa.Array, pattern: str) -> pa.Array:
    """Return the group `x` of a pattern in each text, '' where it does not match."""
    groups = pc.struct_field(regexes.extracted(columns.text(array), pattern), "x")
    return pc.fill_null(groups, "")


def _behind(array: pa.Array, protocol: str) -> pa.Array:
    """Return each URL without the protocol in front; as given where the pattern `protocol` does not match."""
    return regexes.replaced(columns.text(array), protocol, "")


def domain(array: pa.Array) -> pa.Array:
    """Return the hosts of URLs, with or without a protocol; '' for a text without a dot.

    The dot may also be in the user name before @."""
    parts = regexes.extracted(columns.text(array), _PARTS)
    authority, host, behind = columns.struct_fields(parts)
    ends = pc.is_in(behind, pa.array(["", ":", "/", "?", "#"]))
    dotted = pc.and_not(pc.match_substring(authority, "."), pc.ends_with(authority, "."))
    return pc.if_else(pc.and_(ends, dotted), host, "")


def domain_rfc(array: pa.Array) -> pa.Array:
    """Return the hosts of URLs by RFC 3986: user names may have any character, and IPv6 addresses stand in brackets."""
    text = columns.text(array)
    text = pc.if_else(pc.match_substring_regex(text, _NO_PROTOCOL), "", text)
    text = _behind(text, _RFC_PROTOCOL)
    name = pc.binary_join_element_wise(
        group(text, _RFC_NAME), group(text, _RFC_NAME_OF_USER), ""
    )  # at most one of them matches
    dotted = pc.match_substring_regex(name, r"\.[^.]+$")
    by_user = pc.and_(
        pc.match_substring_regex(text, _DOTTED_USER), pc.match_substring_regex(name, r"^[^.]+$")
    )
    return pc.if_else(pc.or_(dotted, by_user), name, group(text, _RFC_ADDRESS))


def without_www(host_of: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], pa.Array]:
    """Return a function from URLs to their hosts, which `host_of` finds, without a leading `www.`."""
    return lambda array: regexes.replaced(host_of(array), r"^www\.([\s\S])", r"\1")


def _top_level(host_of: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], pa.Array]:
    """Return a function from URLs to the last label of their hosts, which `host_of` finds; '' for an IP address."""
    return lambda array: group(host_of(array), r"\.(?P<x>[^.0-9][^.]*)$")


def _port(host_of: Callable[[pa.Array], pa.Array], protocol: str, before: str) -> scalar.Kernel:
    """Return the kernel of port: a URL's port, else the second argument, or 0 without one.

    `protocol` matches what stands before the host, `before` what stands before the colon of the port."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Read the digits behind the host; a text without a host, and 0 or a number above 65535, give the default."""
        hosts = host_of(arrays[0])
        rest = regexes.replaced(_behind(arrays[0], protocol), before, "")
        written = pc.utf8_ltrim(group(rest, _DIGITS), "0")
        sensible = pc.and_(pc.not_equal(hosts, ""), pc.less_equal(pc.binary_length(written), 5))
        written = pc.if_else(pc.and_(sensible, pc.not_equal(written, "")), written, "0")
        digits = columns.numpy_values(written.cast(pa.int64()))
        other = columns.numpy_values(arrays[1]) if len(arrays) > 1 else np.zeros(1, np.int64)
        known = (digits > 0) & (digits < 65_536)
        return columns.from_values(np.where(known, digits, other), pa.uint16())

    return kernel


_NETLOC_BARRED = re.compile(rb"[ \t<>{}|\\^\[\]]")
_NETLOC_ENDS = re.compile(rb"^.[a-zA-Z0-9.+-]{0,14}[ \t<>%{}|\\^~\[\];=&]", re.DOTALL)
_NETLOC_PROTOCOL = re.compile(rb"(?://(?=.)|.[a-zA-Z0-9.+-]{0,12}://)", re.DOTALL)


def _netloc(url: bytes) -> bytes:
    """Return `user:password@host:port` of one URL.

    As in ClickHouse, without @ it reaches to the last slash or question mark.
    """
    protocol = _NETLOC_PROTOCOL.match(url)
    if not url.startswith(b"//") and _NETLOC_ENDS.match(url):
        return b""
    rest, mark, _ = (url[protocol.end() :] if protocol else url).partition(b"#")
    user, at, host = rest.partition(b"@")
    barred = _NETLOC_BARRED.search(user)
    if at and barred is None:
        stop = re.search(rb"[/?;=&~% \t<>{}|\\^\[\]]", host)
        inside = host[: stop.start()] if stop else host
        cuts = [user.rfind(b"/"), user.rfind(b"?")]
        if stop and stop.group() not in b"/?":
            whole = user + at + inside
            return whole[: min([len(whole), *(cut for cut in cuts if cut >= 0)])]
        return user + at + inside
    if mark and barred is None:
        return rest
    rest = rest[: barred.start()] if barred else rest
    ends = [rest.rfind(b"/"), rest.rfind(b"?")]
    if barred is None:
        ends.append(max(rest.rfind(mark) for mark in (b";", b"=", b"&", b"~", b"%")))
    return rest[: min([len(rest), *(end for end in ends if end >= 0)])]


def _port_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return UInt16; raise the error of an argument that is no text, or of a default that is no
    constant UInt16."""
    if len(types) > 1 and (types[1] != UINT16 or arguments[1].constant is None):
        raise scalar.illegal(name, types[1], "a constant UInt16 as the default")
    return text_rule(UINT16)(name, types[:1], arguments[:1])


_URL = text_rule(STRING)
_HOSTS = {"": domain, "RFC": domain_rfc}

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(scalar.define(f"domain{n}", _URL, text_kernel(f)) for n, f in _HOSTS.items()),
    *(
        scalar.define(f"domainWithoutWWW{n}", _URL, text_kernel(without_www(f)))
        for n, f in _HOSTS.items()
    ),
    *(
        scalar.define(f"topLevelDomain{n}", _URL, text_kernel(_top_level(f)))
        for n, f in _HOSTS.items()
    ),
    scalar.define("port", _port_rule, _port(domain, _PROTOCOL, "^[^:/?#]*"), count=(1, 2)),
    scalar.define(
        "portRFC", _port_rule, _port(domain_rfc, _RFC_PROTOCOL, _RFC_BEFORE), count=(1, 2)
    ),
    define_by_value("netloc", _URL, _netloc),
)
