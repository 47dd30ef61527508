"""The pattern that finds the tokens of most texts finds what sqlglot's scanner does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from olapdb.sql.scanner import scanned_tokens
from olapdb.sql.tokens import SourceText, plain_tokens

pytestmark = pytest.mark.feature("sql")

SQL = Path(__file__).parents[1] / "sql"
PIECES = (
    *("a", "t", "x", "b", "e", "n", "N", "_1", "SELECT", "é", "0", "1", "12", "0x1f", "0b1", "1e5"),
    *("1.5", "1.", ".5", "1_000", "'it'", "''", "'", "'a''b'", "'\\n'", '"q"', '""', "`w`", "`"),
    *(
        " ",
        "  ",
        "\n",
        "\t",
        "\r\n",
        "\f",
        "\xa0",
        "--",
        "-- c\n",
        "--'\n",
        "# c\n",
        "#!",
        "/*",
        "*/",
    ),
    *("'a\\'b'", "'\\\\'", "'\\d+\\x41'", "'''", "'\\", "'\\xff\\'", "\\'"),
    *(
        "||",
        "|>",
        "|",
        "::",
        ":",
        "->",
        "-",
        ">",
        "=",
        "<",
        "!",
        "~",
        "*",
        "?",
        "@",
        "@@",
        "$1",
        "$$",
    ),
    *("(", ")", "[", "]", "{", "}", ",", ";", ".", "+", "/", "%", "^", "&", "\\", "#"),
)


def check(text: str) -> bool:
    """Compare what both read; return whether the pattern reads the text."""
    plain = plain_tokens(text, 3)
    if plain is not None:
        assert plain == scanned_tokens(SourceText(f"...{text}"), text, 3)
    return plain is not None


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@example("a.1.2 t.1.x .5 1.5")
@example("x'41' b'1' n'a' e'a'")
@example("a!=b<=>c->d")
@example("1--1\n-2")
@settings(max_examples=2_000)
def test_both_read_the_same(text: str) -> None:
    check(text)


def test_most_statements_of_the_sql_tests_need_no_scanner() -> None:
    texts = [
        statement
        for file in sorted(SQL.glob("*.slt"))
        for statement in re.split(r"\n\n|\n----\n", file.read_text(encoding="utf-8"))[:40]
    ]
    read = [check(text.partition("\n")[2]) for text in texts]
    assert sum(read) > 0.6 * len(read) > 1_000
