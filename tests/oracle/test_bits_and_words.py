"""Bits, words in texts, and other names of functions beside ClickHouse."""

from __future__ import annotations

import pytest

from olapdb.dbapi.connection import Connection
from tests.harness.beside import assert_same
from tests.harness.oracle import Oracle

pytestmark = pytest.mark.feature("functions")

ASKED = r"""
SELECT hasToken('a?b', 'b'), hasToken('aéb', 'b'), hasToken('a-b', 'a'), hasToken('abab', 'ab'), hasToken('ab abc', 'abc'), hasToken('xab ab', 'ab'), hasToken('a', ''), hasToken('', 'a')
SELECT hasToken(NULL::Nullable(String), 'a'), toTypeName(hasToken(NULL::Nullable(String), 'a'))
SELECT hasTokenCaseInsensitive('Hello World', 'WORLD'), hasTokenOrNull('a', 'a b'), hasTokenOrNull('a', ''), hasTokenCaseInsensitiveOrNull('A','a'), toTypeName(hasTokenOrNull('a','a'))
SELECT hasToken('a', materialize('a'))
SELECT hasToken('a', '_')
SELECT hasToken(5, 'a')
SELECT hasToken('a', 'é'), hasToken('aé b', 'aé'), hasToken(unhex('61FF20622062'), 'b'), hasToken(unhex('61FF'), 'a')
SELECT hasToken(materialize('x.y[z]'), 'y'), hasToken('a+b', 'a')
SELECT number, hasToken(toString(number), '1') FROM numbers(3)
SELECT bitCount(7), bitCount(-1::Int8), bitCount(255::UInt64), toTypeName(bitCount(1)), bitCount(1.5), bitCount(-1::Int64), bitCount(true), bitCount(1.5::Float32), bitCount(-1::Int32), bitCount(-1::Int16)
SELECT bitCount('ab'), toTypeName(bitCount('ab')), bitCount(toFixedString('ab', 4)), toTypeName(bitCount(toFixedString('ab', 4))), bitCount('')
SELECT bitCount(toDate('2020-01-01'))
SELECT bitCount([1])
SELECT bitCount(NULL::Nullable(Int8)), toTypeName(bitCount(NULL::Nullable(Int8)))
SELECT bitTest(5, materialize(2)), bitTest(5, 0), bitTest(5,1), toTypeName(bitTest(5,1)), bitTest(-1, 7), bitTest(5::UInt64, 63), bitTest(-1::Int64, 63)
SELECT bitTest(1.5, 1)
SELECT bitTest(5::UInt8, 8)
SELECT bitTest(5::UInt8, -1)
SELECT bitTestAll(5, 0, 2), bitTestAny(5, 1, 2), bitTestAll(5, 0, 1), bitTestAny(5, 1, 3), bitTestAll(5, 0)
SELECT multiSearchAny('abc', ['x','b']), toTypeName(multiSearchAny('abc', ['x','b'])), multiSearchAny('abc', ['']), multiSearchAny('abc', []::Array(String)), multiSearchAnyCaseInsensitive('ABC', ['b'])
SELECT multiSearchAny(5, ['a'])
SELECT multiSearchAny('a', ['a', NULL])
SELECT multiSearchAny('a', 'a')
SELECT multiSearchAny(NULL::Nullable(String), ['a'])
SELECT multiSearchAny(materialize('abc'), materialize(['c','d']))
SELECT multiSearchAnyUTF8('aé', ['é']), multiSearchAnyCaseInsensitive('aÉ', ['é']), multiSearchAnyCaseInsensitiveUTF8('aÉ', ['é'])
SELECT max_by(number, -number), min_by(number, number), MAX_BY(number, number), session_user(), SESSION_USER() FROM numbers(4)
"""


@pytest.mark.parametrize("query", ASKED.strip().splitlines())
def test_asked(connection: Connection, oracle: Oracle, query: str) -> None:
    assert_same(connection, oracle, query)
