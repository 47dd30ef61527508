"""firstSignificantSubdomain and cutToFirstSignificantSubdomain: the part of a host that its owner
registered, the label before `com` or `co.uk`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions import scalar
from olapdb.functions.kernels import regexes
from olapdb.functions.strings.arguments import text_kernel, text_rule
from olapdb.functions.strings.domain_suffixes import two_level_suffixes
from olapdb.functions.strings.url_hosts import domain, domain_rfc, group, without_www
from olapdb.types import STRING

_Hosts = Callable[[pa.Array], pa.Array]
_LAST_DOT = r"\.$"


@cache
def _suffixes() -> pa.Array:
    """Return the suffixes of two labels as a set to look in."""
    return pa.array(two_level_suffixes(), pa.string())


def _from_significant(hosts: pa.Array) -> pa.Array:
    """Return hosts, given without a last dot, from their significant label on, which their owner registered.

    It is the label before the last one, or before the last two if these are a known suffix. It is the first label of
    a host with two. A host of one label is returned whole."""
    two = group(hosts, r"(?:^|\.)(?P<x>[^.]*\.[^.]*)$")
    three = group(hosts, r"(?:^|\.)(?P<x>[^.]*\.[^.]*\.[^.]*)$")
    has_three = pc.match_substring_regex(hosts, r"\..*\.")
    deep = pc.and_(pc.is_in(two, _suffixes()), has_three)
    domains = pc.if_else(deep, three, two)
    return pc.if_else(pc.match_substring(hosts, "."), domains, hosts)


def _first(hosts_of: _Hosts) -> _Hosts:
    """Return a function from URLs to the significant label of their hosts: firstSignificantSubdomain. `hosts_of`
    finds the hosts."""

    def first(urls: pa.Array) -> pa.Array:
        """Return the significant label of each URL's host; '' without a host."""
        hosts = regexes.replaced(hosts_of(urls), _LAST_DOT, "")
        return group(_from_significant(hosts), r"^(?P<x>[^.]*)")

    return first


def _cut(hosts_of: _Hosts) -> _Hosts:
    """Return a function from URLs to their hosts from the significant label on: cutToFirstSignificantSubdomain; ''
    if that label is empty."""

    def cut(urls: pa.Array) -> pa.Array:
        """Cut each URL's host before its significant label; a last dot stays."""
        hosts = hosts_of(urls)
        rest = _from_significant(regexes.replaced(hosts, _LAST_DOT, ""))
        dot = pc.if_else(pc.ends_with(hosts, "."), ".", "")
        whole = pc.binary_join_element_wise(rest, dot, "")
        return pc.if_else(pc.match_substring_regex(rest, r"^[^.]"), whole, "")

    return cut


_URL = text_rule(STRING)

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = tuple(
    scalar.define(name, _URL, text_kernel(function))
    for rfc, hosts in (("", domain), ("RFC", domain_rfc))
    for name, function in (
        (f"firstSignificantSubdomain{rfc}", _first(without_www(hosts))),
        (f"cutToFirstSignificantSubdomain{rfc}", _cut(without_www(hosts))),
        (f"cutToFirstSignificantSubdomainWithWWW{rfc}", _cut(hosts)),
    )
)
