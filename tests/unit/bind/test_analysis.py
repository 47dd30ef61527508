"""Analysis of a query's syntax for views: its source, its tables, its qualified form."""

from __future__ import annotations

from pathlib import Path

import pytest

import olapdb
from olapdb import errors
from olapdb.bind import BindScope, bind_query
from olapdb.bind.analysis import (
    is_deterministic,
    nondeterministic_functions,
    qualify,
    referenced_tables,
    rename_tables,
    source_of,
)
from olapdb.functions.registry import function_names
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_query
from tests.unit.bind.warehouse import SNAPSHOT, scope

pytestmark = pytest.mark.feature("select")


@pytest.mark.parametrize(
    ("query", "source"),
    [
        ("SELECT 1", None),
        ("SELECT * FROM numbers(3)", None),
        ("SELECT * FROM a JOIN b ON a.k = b.k", "a"),
        ("SELECT * FROM (SELECT k FROM x.a) AS s LEFT JOIN b USING k", "x.a"),
        ("WITH q AS (SELECT * FROM a) SELECT * FROM q", "a"),
        ("WITH p AS (SELECT * FROM a), q AS (SELECT * FROM p JOIN c USING k) SELECT * FROM q", "a"),
        ("WITH a AS (SELECT * FROM a) SELECT * FROM a", "a"),
        ("SELECT * FROM (SELECT 1 FROM u1 UNION ALL SELECT 1 FROM u2)", "u1"),
        ("SELECT * FROM a WHERE k IN (SELECT k FROM b)", "a"),
    ],
)
def test_source_is_the_leftmost_table(query: str, source: str | None) -> None:
    found = source_of(parse_query(query))
    assert (None if found is None else str(found)) == source


def test_referenced_tables_in_order_without_names_of_with() -> None:
    query = parse_query(
        "WITH q AS (SELECT * FROM a), r AS (SELECT * FROM q) "
        "SELECT (SELECT max(x) FROM d) FROM r JOIN x.b USING k "
        "WHERE k IN (SELECT k FROM c) AND k NOT IN db.e UNION ALL SELECT 1 FROM a"
    )
    assert [str(t) for t in referenced_tables(query)] == ["a", "d", "x.b", "c", "db.e"]


def test_nondeterministic_functions() -> None:
    assert nondeterministic_functions(parse_query("SELECT NOW(), rand(), x FROM t")) == (
        "NOW",
        "rand",
    )
    assert is_deterministic(parse_query("SELECT toDate(x) FROM t"))
    assert not is_deterministic(parse_query("SELECT 1 FROM t WHERE d < (SELECT today())"))


def test_what_differs_from_run_to_run_is_known_by_all_its_names(tmp_path: Path) -> None:
    """A cached plan would otherwise return the time of its binding."""

    def answers(connection: olapdb.dbapi.connection.Connection, name: str) -> object:
        return connection.execute(f"SELECT {name}()").fetchall()

    with olapdb.connect(tmp_path) as one:
        for name in function_names():
            try:
                written = parse_query(f"SELECT {name}()")
                with olapdb.connect(tmp_path) as other:
                    differ = answers(one, name) != answers(other, name)
            except errors.Error:
                continue
            assert not (differ and is_deterministic(written)), name
    for name in ("localtimestamp", "query_id", "INITIAL_QUERY_ID", "uptime", "now64"):
        assert not is_deterministic(parse_query(f"SELECT {name}()")), name


@pytest.mark.parametrize(
    ("query", "frozen"),
    [
        ("SELECT * FROM carriers", "SELECT carrier, name FROM default.carriers"),
        (
            "SELECT * EXCEPT (name), 1 AS one FROM carriers AS c",
            "SELECT carrier, 1 AS one FROM default.carriers AS c",
        ),
        (
            "SELECT * FROM carriers JOIN other.flights ON name = 'x'",
            "SELECT carrier, name, id FROM default.carriers INNER JOIN other.flights ON name = 'x'",
        ),
        (
            "SELECT * FROM carriers AS a JOIN carriers AS b ON a.name = b.name",
            "SELECT carrier, name, b.carrier, b.name FROM default.carriers AS a "
            "INNER JOIN default.carriers AS b ON a.name = b.name",
        ),
        (
            "SELECT * REPLACE (upper(name) AS name) FROM carriers WHERE name > 'a'",
            "SELECT carrier, upper(carriers.name) AS name FROM default.carriers "
            "WHERE carriers.name > 'a'",
        ),
        (
            "WITH q AS (SELECT * FROM carriers) SELECT * FROM q WHERE carrier IN (SELECT carrier FROM late)",
            "WITH q AS (SELECT carrier, name FROM default.carriers) SELECT carrier, name FROM q "
            "WHERE carrier IN (SELECT carrier FROM default.late)",
        ),
        (
            "SELECT carrier FROM carriers UNION ALL SELECT * FROM (SELECT name FROM carriers)",
            "SELECT carrier FROM default.carriers UNION ALL "
            "SELECT name FROM (SELECT name FROM default.carriers)",
        ),
        (
            "SELECT count() FROM target WHERE carrier IN carriers",
            "SELECT count() FROM default.target WHERE carrier IN default.carriers",
        ),
        ("SELECT COLUMNS('^na') FROM carriers", "SELECT name FROM default.carriers"),
        ("SELECT name FROM system.tables", "SELECT name FROM system.tables"),
    ],
)
def test_frozen_text(query: str, frozen: str) -> None:
    assert to_sql(qualify(parse_query(query), scope())) == to_sql(parse_query(frozen))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM carriers AS a LEFT JOIN carriers AS b ON a.name = b.name",
        "SELECT * FROM flights JOIN carriers USING carrier",
        "SELECT * FROM flights RIGHT JOIN carriers USING carrier",
        "SELECT * FROM flights FULL JOIN carriers USING carrier",
        "SELECT flights.*, c.* FROM flights, carriers AS c, target",
        "SELECT * FROM flights, carriers AS c, target",
        "SELECT * REPLACE (delay + 1 AS delay) FROM flights WHERE delay > 1 ORDER BY delay",
        "SELECT * FROM (SELECT count() FROM flights)",
    ],
)
def test_frozen_text_means_the_same(query: str) -> None:
    frozen = parse_query(to_sql(qualify(parse_query(query), scope())))
    before = bind_query(parse_query(query), scope())
    after = bind_query(frozen, BindScope(SNAPSHOT, "other"))
    assert after.names == before.names
    assert after.root == before.root


def test_qualify_refuses_what_it_cannot_expand() -> None:
    with pytest.raises(errors.UnknownTable):
        qualify(parse_query("SELECT * FROM nosuch"), scope())


def test_renamed_tables_keep_the_meaning_of_columns() -> None:
    renamed = {("d", "a"): ("d", "b"), ("d", "b"): ("e", "a")}
    query = parse_query(
        "SELECT a.x, b.*, d.a.y FROM d.a JOIN d.b ON a.k = b.k WHERE z IN d.a AND k IN (SELECT k FROM d.b AS q)"
    )
    assert to_sql(rename_tables(query, renamed)) == to_sql(
        parse_query(
            "SELECT a.x, b.*, a.y FROM d.b AS a JOIN e.a AS b ON a.k = b.k "
            "WHERE z IN d.b AND k IN (SELECT k FROM e.a AS q)"
        )
    )


def test_names_of_with_are_not_renamed() -> None:
    query = parse_query("WITH a AS (SELECT 1 FROM d.a) SELECT * FROM a")
    renamed = rename_tables(query, {("d", "a"): ("d", "c")})
    assert to_sql(renamed) == to_sql(parse_query("WITH a AS (SELECT 1 FROM d.c) SELECT * FROM a"))
