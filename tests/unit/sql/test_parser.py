"""Every statement that people use parses, or is refused by name; errors say where and what."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from olapdb import errors
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse, parse_expression, parse_one, parse_query, parse_table_name
from olapdb.types import UINT8, Decimal

pytestmark = pytest.mark.feature("sql")


def _load() -> object:
    path = Path(__file__).with_name("statements.py")
    spec = importlib.util.spec_from_file_location("sql_statements", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sql_statements"] = module
    spec.loader.exec_module(module)
    return module


_STATEMENTS = _load()
QUERIES: list[str] = _STATEMENTS.QUERIES  # type: ignore[attr-defined]
CREATES: list[str] = _STATEMENTS.CREATES  # type: ignore[attr-defined]
OTHERS: list[str] = _STATEMENTS.OTHERS  # type: ignore[attr-defined]
REFUSED: list[str] = _STATEMENTS.REFUSED  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", QUERIES)
def test_query_parses_and_reads_back(text: str) -> None:
    query = parse_query(text)
    written = to_sql(query)
    assert parse_query(written) == query, written
    assert to_sql(parse_query(written)) == written


@pytest.mark.parametrize("text", CREATES)
def test_create_parses_and_reads_back(text: str) -> None:
    statement = parse_one(text)
    written = to_sql(statement)
    assert parse_one(written) == statement, written


@pytest.mark.parametrize("text", OTHERS)
def test_statement_parses(text: str) -> None:
    assert isinstance(parse_one(text), nodes.Statement)


@pytest.mark.parametrize("text", REFUSED)
def test_what_olapdb_lacks_is_refused_by_name(text: str) -> None:
    with pytest.raises(errors.NotSupportedError) as raised:
        parse_one(text)
    assert raised.value.position is not None
    assert raised.value.name == "NOT_IMPLEMENTED"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("BACKUP TABLE t TO Disk('d', 'x')", "SYSTEM BACKUP TO"),
        ("RESTORE TABLE t FROM Disk('d', 'x')", "SYSTEM RESTORE FROM"),
    ],
)
def test_what_is_refused_names_the_statement_to_use(text: str, hint: str) -> None:
    with pytest.raises(errors.InvalidConfigParameter) as raised:
        parse_one(text)
    assert hint in raised.value.hint


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("SELECT", 1, 7, "Expected an expression, found the end of the statement"),
        ("SELECT 1 +", 1, 11, "Expected an expression"),
        ("SELECT\n  a b c\nFROM t", 2, 7, "found c"),
        ("SELECT (1", 1, 10, "Expected ,"),
        ("SELECT f(1, FROM t", 1, 13, "Expected an expression, found FROM"),
        ("SELECT a FROM t LIMIT 1 LIMIT 2", 1, 25, "one LIMIT"),
        ("SELECT TOP 1 a FROM t LIMIT 2", 1, 23, "one LIMIT"),
        ("SELECT a FROM t JOIN u", 1, 23, "ON or USING"),
        ("SELECT a FROM t FULL SEMI JOIN u USING (a)", 1, 17, "LEFT or RIGHT"),
        ("SELECT 'abc", 1, 8, "not closed"),
        ("SELECT 'abc''", 1, 8, "not closed"),
        ("SELECT 1 /* x", 1, 10, "not closed"),
        ("SELECT 1 ¢", 1, 10, "Unrecognized token"),
        ("SELECT CASE WHEN 1 THEN 2", 1, 26, "Expected END"),
        ("CREATE TABLE t (a Int8)\nENGINE = Memory ENGINE = Log", 2, 17, "twice"),
        ("SELECT x::", 1, 11, "a data type"),
        ("SELEC 1", 1, 1, "Expected a statement, found SELEC"),
        ("SYSTEM REPLAY VIEW v STALE PARTITION 1", 1, 28, "one of"),
        ("SYSTEM ADOPT VIEW v PARTITION 1", 1, 21, "SETTINGS or the end"),
    ],
)
def test_syntax_errors_say_where_and_what(text: str, line: int, column: int, words: str) -> None:
    with pytest.raises(errors.SyntaxError) as raised:
        parse(text)
    position = raised.value.position
    assert position is not None
    assert (position.line, position.column) == (line, column), raised.value
    assert words in str(raised.value)
    assert raised.value.code == 62


def test_values_without_rows_have_their_place() -> None:
    with pytest.raises(errors.NoDataToInsert, match="no rows behind VALUES") as raised:
        parse("INSERT INTO t VALUES")
    assert raised.value.position == errors.Position(1, 21, 20)


def test_unknown_type_has_its_place() -> None:
    with pytest.raises(errors.UnknownType) as raised:
        parse("SELECT 1,\n x::NoSuch")
    assert raised.value.position == errors.Position(2, 5, 14)


@pytest.mark.parametrize(
    ("start", "opening", "inner"),
    [
        ("SELECT ", "(", "1"),
        ("SELECT * FROM ", "(", "t"),
        ("ALTER TABLE t ", "(", "DROP COLUMN c"),
        ("SELECT ", "f() OVER (ORDER BY ", "1"),
    ],
)
def test_deep_nesting_is_an_error_not_a_crash(start: str, opening: str, inner: str) -> None:
    with pytest.raises(errors.SyntaxError, match="nests deeper"):
        parse(start + opening * 5000 + inner + ")" * 5000)


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        (f"SHOW TABLES LIMIT {'1' * 5000}", 19, "a whole number"),
        (f"SELECT t.{'1' * 5000}", 10, "a whole number"),
        (f"SELECT ${'1' * 5000}", 8, "a parameter"),
        (f"SELECT INTERVAL '{'1' * 5000} day'", 17, "an interval"),
        ("SELECT INTERVAL '--5 day'", 17, "an interval"),
        ("SELECT INTERVAL '-+5 day'", 17, "an interval"),
        ("SELECT INTERVAL '² day'", 17, "an interval"),
    ],
)
def test_what_is_no_whole_number_of_64_bits_is_an_error(text: str, column: int, words: str) -> None:
    with pytest.raises(errors.SyntaxError, match=words) as raised:
        parse(text)
    assert raised.value.position == errors.Position(1, column, column - 1)


def test_a_number_of_any_length_is_a_float() -> None:
    assert parse_expression("1" * 400) == nodes.Literal(float("inf"))
    assert parse_expression("1" * 5000) == nodes.Literal(float("inf"))
    assert parse_expression("-" + "1" * 30) == nodes.Literal(-float("1" * 30))


def test_an_index_may_be_of_a_map() -> None:
    table = parse_one("CREATE TABLE t (a Int8, INDEX i {'a': 1, 'b': 2}['a'] TYPE minmax)")
    assert isinstance(table, nodes.CreateTable)
    assert [index.name for index in table.indexes] == ["i"]


def test_statements_are_split_at_semicolons_outside_quotes_and_data() -> None:
    text = "SELECT 'a;b'; -- c; d\n;INSERT INTO t VALUES (1, ';'); SELECT 2 /* ; */;\n"
    first, insert, last = parse(text)
    assert first == parse_one("SELECT 'a;b'")
    assert isinstance(insert, nodes.Insert)
    assert insert.values is not None
    assert insert.values.text.strip() == "(1, ';')"
    assert last == parse_one("SELECT 2")
    with pytest.raises(errors.SyntaxError, match="one statement"):
        parse_one(text)


def test_the_data_of_an_insert_is_never_tokenized() -> None:
    insert = parse_one("INSERT INTO t (a) VALUES (¢ not sql")
    assert isinstance(insert, nodes.Insert)
    assert insert.values == nodes.ValuesData(" (¢ not sql")
    assert insert.values is not None
    assert insert.values.position == errors.Position(1, 25, 24)
    lines = parse_one("INSERT INTO t FORMAT CSV\n1,'\n2,;")
    assert isinstance(lines, nodes.Insert)
    assert (lines.format, lines.data) == ("CSV", "1,'\n2,;")


def test_settings_of_an_inserting_query_are_of_the_insert() -> None:
    insert = parse_one("INSERT INTO t SETTINGS a = 1 SELECT 1 SETTINGS b = 2")
    assert isinstance(insert, nodes.Insert)
    assert isinstance(insert.query, nodes.Select)
    assert [s.name for s in insert.settings] == ["a", "b"]
    assert insert.query.settings == ()


def test_output_clauses_behind_the_last_branch_are_of_the_whole() -> None:
    query = parse_query("SELECT 1 UNION ALL SELECT 2 LIMIT 1 SETTINGS max_threads = 1 FORMAT CSV")
    assert isinstance(query, nodes.SetOperation)
    assert isinstance(query.right, nodes.Select)
    assert query.format == "CSV"
    assert query.settings == (nodes.Setting("max_threads", 1),)
    assert query.right.limit == nodes.Literal(1)
    assert query.right.settings == ()
    assert query.right.format is None


def test_intersect_binds_tighter_than_union() -> None:
    query = parse_query("SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3")
    assert isinstance(query, nodes.SetOperation)
    assert query.operator == "UNION"
    assert isinstance(query.right, nodes.SetOperation)
    assert query.right.operator == "INTERSECT"


def test_parameters() -> None:
    array = parse_expression("[?, :a, %(b)s, $2, {c:UInt8}, ?]")
    assert isinstance(array, nodes.ArrayLiteral)
    assert array.elements == (
        nodes.Parameter(None, 0),
        nodes.Parameter("a", None),
        nodes.Parameter("b", None),
        nodes.Parameter(None, 1),
        nodes.Parameter("c", None, UINT8),
        nodes.Parameter(None, 1),
    )


def test_casts_of_numbers_keep_their_text() -> None:
    cast = parse_expression("0.10000000000000000001::Decimal(38, 20)")
    assert cast == nodes.Cast(nodes.Literal("0.10000000000000000001"), Decimal(38, 20))


def test_table_names() -> None:
    assert parse_table_name("t") == nodes.TableName("t")
    assert parse_table_name('"a b".`c.d`') == nodes.TableName("c.d", "a b")
    with pytest.raises(errors.SyntaxError):
        parse_table_name("a.b c")


@pytest.mark.parametrize("command", ["BACKUP", "RESTORE"])
def test_the_hint_of_a_backup_names_a_statement_that_there_is(command: str) -> None:
    with pytest.raises(errors.InvalidConfigParameter) as raised:
        parse(f"{command} TABLE t TO Disk('a', 'b')")
    hint = raised.value.hint
    assert hint is not None
    words = hint.split()
    parse(" ".join(words[:4]))


def test_a_stored_dictionary_may_have_a_lifetime_that_create_refuses() -> None:
    """Warehouses hold such texts, which system.dictionaries parses: the parser must not refuse them."""
    text = (
        "CREATE DICTIONARY d (k UInt64, v String) PRIMARY KEY k SOURCE(NULL()) LAYOUT(FLAT())"
        " LIFETIME(MIN 2 MAX 0)"
    )
    statement = parse_one(text)
    assert isinstance(statement, nodes.CreateDictionary)
    assert statement.lifetime == (2, 0)
