"""Networks of addresses: the longest that holds an address, beside Python's `ipaddress`."""

from __future__ import annotations

import ipaddress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import olapdb
from olapdb.compute.dictionary_prefixes import Prefixes

pytestmark = pytest.mark.feature("functions", "dimensions")

ADDRESSES = st.integers(0, 2**10 - 1).map(lambda bits: (bits << 118) | bits)
NETWORKS = st.sets(
    st.tuples(ADDRESSES, st.integers(0, 128)).map(
        lambda pair: ipaddress.IPv6Network(pair, strict=False)
    ),
    max_size=20,
)


@given(NETWORKS, st.lists(st.none() | ADDRESSES, max_size=20))
def test_the_longest_network_is_found(
    networks: set[ipaddress.IPv6Network], wanted: list[int | None]
) -> None:
    listed = sorted(networks, key=str)
    rows = np.arange(len(listed))[::-1].copy()
    prefixes = Prefixes(pa.array([str(network) for network in listed], pa.string()), rows)
    addresses = pa.array(
        [None, *(None if a is None else a.to_bytes(16, "big") for a in wanted)], pa.binary(16)
    )
    expected = [-1]
    for address in wanted:
        holding = [n for n in listed if address is not None and ipaddress.IPv6Address(address) in n]
        longest = max(holding, key=lambda network: network.prefixlen, default=None)
        expected.append(-1 if longest is None else int(rows[listed.index(longest)]))
    assert prefixes.find(addresses.slice(1)).tolist() == expected[1:]
    assert prefixes.find(addresses).tolist() == expected


def test_a_changed_network_makes_what_views_looked_up_stale() -> None:
    """A new network takes addresses from a wider one, so that rows of other keys change."""
    with olapdb.connect(":memory:") as connection:
        for statement in (
            "CREATE TABLE nets (net String, name String) ENGINE = MergeTree ORDER BY net",
            "INSERT INTO nets VALUES ('10.0.0.0/8', 'wide')",
            "CREATE DICTIONARY d (net String, name String) PRIMARY KEY net"
            " SOURCE(CLICKHOUSE(TABLE 'nets')) LAYOUT(IP_TRIE) LIFETIME(0)",
            "CREATE TABLE hits (at UInt8, ip IPv4) ENGINE = MergeTree ORDER BY at",
            "CREATE TABLE target (at UInt8, name String) ENGINE = MergeTree ORDER BY at",
            "CREATE MATERIALIZED VIEW v TO target AS"
            " SELECT at, dictGet('d', 'name', ip) AS name FROM hits",
            "INSERT INTO hits VALUES (1, '10.1.1.1'), (2, '10.2.2.2')",
            "INSERT INTO nets VALUES ('10.1.0.0/16', 'narrow')",
        ):
            connection.execute(statement)
        views = "SELECT stale_slices > 0 FROM system.views WHERE name = 'v'"
        assert connection.execute(views).fetchall() == [(1,)]
        connection.execute("SYSTEM REPLAY VIEW v STALE")
        rows = connection.execute("SELECT * FROM target ORDER BY at").fetchall()
    assert rows == [(1, "narrow"), (2, "wide")]
