"""COLLATE where ICU is not installed."""

from __future__ import annotations

import sys

import pytest

import olapdb
from olapdb.functions.strings import collations

pytestmark = pytest.mark.feature("select")


def test_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    collations._library.cache_clear()
    monkeypatch.setitem(sys.modules, "icu", None)
    with olapdb.connect() as connection:
        with pytest.raises(olapdb.NotSupportedError, match=r"olapdb\[icu\]"):
            connection.execute("SELECT 'a' AS x FROM numbers(2) ORDER BY x COLLATE 'xx'")
        listed = connection.execute("SELECT count() FROM system.collations").fetchall()
    assert listed == [(0,)]
