"""One dictionary for the parts that a query reads: answers stay, and equal values have equal codes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import olapdb
from olapdb.config import tuning
from olapdb.execute.operators import coded_sets
from olapdb.native.library import library
from olapdb.storage import shared_codes
from olapdb.storage.cache import FileCache, PartCache
from olapdb.storage.column_cache import ChunkKey
from olapdb.storage.shared_codes import JointDictionary, joint_dictionary, share_codes

pytestmark = pytest.mark.feature("select", "aggregates")

ROWS = 60_000
QUERIES = [
    "SELECT user, count(), sum(v) FROM t GROUP BY user ORDER BY user",
    "SELECT text, user, count() FROM t GROUP BY text, user ORDER BY text, user",
    "SELECT text, count() FROM t WHERE text <> '' AND v > 10 GROUP BY text ORDER BY text",
    "SELECT maybe, min(text), count() FROM t GROUP BY maybe ORDER BY maybe",
    "SELECT uniqExact(user), uniq(user), uniqExact(maybe), uniq(text) FROM t",
    "SELECT g, uniqExact(user), uniq(maybe), groupUniqArray(text), count() FROM t GROUP BY g ORDER BY g",
    "SELECT g, uniqState(user), uniqExactState(text), uniqExact(user, g) FROM t GROUP BY g ORDER BY g",
    "SELECT g, uniq(user) FROM t GROUP BY ROLLUP(g) ORDER BY g, uniq(user)",
    "SELECT text, uniq(user) AS u FROM t GROUP BY text WITH TOTALS HAVING u > 3 ORDER BY text",
    "SELECT g, count(DISTINCT user), sum(user) FROM t WHERE user % 3 = 1 GROUP BY g ORDER BY g",
    "SELECT day, max(user), uniq(user), min(maybe) FROM t GROUP BY day ORDER BY day",
    "SELECT DISTINCT text, g FROM t ORDER BY text, g",
    "SELECT count() FROM t WHERE text LIKE '%1%'",
    "SELECT g, countIf(text = ''), sumIf(v, text LIKE '%1%'), avgIf(v, user % 3 = 1 AND v > 10),"
    " countIf(maybe > 0), sumIfState(v, text = ''), maxIf(v, text = '') FROM t GROUP BY g ORDER BY g",
    "SELECT sumIf(v, text = ''), countIf(g), sum(v > 10), countIf(v > 10), countIf(NULL) FROM t",
    "SELECT user, countIf(text = ''), sumIf(v, v > 10) FROM t GROUP BY user ORDER BY user",
]


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Give two months whose users and texts overlap, and a part of the second month with others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "JOINT_VALUES_MIN", 1)
        patch.setattr(tuning, "SHARED_DICTIONARY_ROWS_MIN", 1)
        with olapdb.connect(tmp_path_factory.mktemp("joint")) as made:
            made.execute(
                "CREATE TABLE t (day Date, g UInt8, user UInt64, maybe Nullable(Int64), text String,"
                " v UInt16) ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY v"
            )
            for month, first in ((1, 0), (2, 500), (2, 900)):
                made.execute(
                    f"INSERT INTO t SELECT toDate('2024-0{month}-01') + number % 7, number % 5,"
                    f" cityHash64({first} + number % 1000), if(number % 11 = 0, NULL,"
                    f" toInt64(cityHash64(number % 300 + {first} / 2))),"
                    f" if(number % 4 = 0, '', toString({first} + number % 700)), number % 100"
                    f" FROM numbers({ROWS})"
                )
            yield made


@pytest.mark.parametrize("query", QUERIES)
def test_answers_stay(connection: Any, query: str) -> None:
    """The first run reads values, later ones codes of parts, then those of one dictionary."""
    first = connection.execute(query).fetch_arrow_table()
    for _ in range(4):
        assert connection.execute(query).fetch_arrow_table().equals(first)


@pytest.mark.skipif(library() is None, reason="Integers have codes for compiled kernels alone.")
def test_later_runs_have_one_dictionary(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dictionaries = []
    joined = coded_sets.joined_sets

    def noted(parts: Any) -> Any:
        dictionaries.append({part.values.dictionary.buffers()[1].address for part in parts})
        return joined(parts)

    monkeypatch.setattr(coded_sets, "joined_sets", noted)
    for _ in range(4):
        rows = connection.execute("SELECT uniqExact(user) FROM t").fetchall()
    assert rows == [(1900,)]
    assert [len(known) for known in dictionaries[-1:]] == [1]
    connection.execute("SYSTEM DROP UNCOMPRESSED CACHE")
    assert connection.execute("SELECT uniqExact(user) FROM t").fetchall() == rows


def test_codes_of_another_dictionary_are_not_translated() -> None:
    own, other = pa.array(["a", "b"]), pa.array(["a", "b"])
    joint = JointDictionary(
        pa.array(["b", "a"]), {"x": (own, pa.array([1, 0], pa.int32())), "y": (other, None)}
    )
    column = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int32()), own)
    assert joint.translated("x", column).indices.to_pylist() == [1, None, 0]
    assert joint.translated("x", column).to_pylist() == ["a", None, "b"]
    assert joint.translated("y", column) is column
    assert joint.translated("z", column) is column
    assert joint.translated("x", own) is own


def test_a_dictionary_that_is_too_large_is_joined_once(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = connection.session.engine.services.store.cache
    monkeypatch.setattr(cache, "joints", FileCache(4_000))
    joins = []
    joint = shared_codes._joint

    def noted(dictionaries: Any) -> Any:
        joins.append(dictionaries)
        return joint(dictionaries)

    monkeypatch.setattr(shared_codes, "_joint", noted)
    for _ in range(6):
        rows = connection.execute("SELECT count() FROM t WHERE text LIKE '%1%'").fetchall()
    assert rows == connection.execute("SELECT countIf(text LIKE '%1%') FROM t").fetchall()
    assert len(joins) == 1


def test_sets_of_files_that_were_asked_for_are_bounded() -> None:
    cache = PartCache()
    cache.joints = FileCache(4_000)
    paths = [f"data/{number}.parquet" for number in range(50)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "JOINT_VALUES_MIN", 1)
        patch.setattr(tuning, "SHARED_DICTIONARY_ROWS_MIN", 1)
        for path in paths:
            cache.columns.keep(path, [ChunkKey(1, 0, False)], [pa.array(["text"] * 100)])
            share_codes(cache.columns, path, 1, [100])
        for end in range(2, len(paths)):
            assert joint_dictionary(cache, paths[end - 2 : end], 1) is None
    assert 0 < len(cache.joints) < 10


def test_they_leave_with_a_file(connection: Any) -> None:
    cache = connection.session.engine.services.store.cache
    for _ in range(3):
        connection.execute("SELECT count() FROM t WHERE text LIKE '%1%'").fetchall()
    assert len(cache.joints)
    connection.execute("OPTIMIZE TABLE t FINAL")
    assert not len(cache.joints)
