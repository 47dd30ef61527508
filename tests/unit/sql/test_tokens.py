"""The lexical rules of ClickHouse, over sqlglot's scanner."""

from __future__ import annotations

import pytest

from olapdb import errors
from olapdb.sql.tokens import SourceText, tokenize

pytestmark = pytest.mark.feature("sql")


def texts(text: str) -> list[str]:
    return [f"{token.kind}:{token.text}" for token in tokenize(SourceText(text))[:-1]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t.1.2", ["word:t", "operator:.", "number:1", "operator:.", "number:2"]),
        ("t.1.x", ["word:t", "operator:.", "number:1", "operator:.", "word:x"]),
        ("a[1].2", ["word:a", "operator:[", "number:1", "operator:]", "operator:.", "number:2"]),
        (".5 1.5 5.", ["number:0.5", "number:1.5", "number:5."]),
        ("1e3 2.5e-3", ["number:1e3", "number:2.5e-3"]),
        ("1_000 0x1F 0b101", ["number:1000", "number:31", "number:5"]),
        ("1abc", ["word:1abc"]),
        (
            "$1 $name f($1,$2)",
            [
                "parameter:1",
                "parameter:name",
                "word:f",
                "operator:(",
                "parameter:1",
                "operator:,",
                "parameter:2",
                "operator:)",
            ],
        ),
        (
            "a->b a::b a||b a<=>b a==b a<>b",
            [
                "word:a",
                "operator:->",
                "word:b",
                "word:a",
                "operator:::",
                "word:b",
                "word:a",
                "operator:||",
                "word:b",
                "word:a",
                "operator:<=>",
                "word:b",
                "word:a",
                "operator:==",
                "word:b",
                "word:a",
                "operator:<>",
                "word:b",
            ],
        ),
        ("a<-1", ["word:a", "operator:<", "operator:-", "number:1"]),
        (
            r"'it''s' 'a\'b' 'a\\' '\n\t\x41\q'",
            ["string:it's", "string:a'b", "string:a\\", "string:\n\tA\\q"],
        ),
        (
            r"`a``b` `c\`d` " + '"e""f" "select"',
            ["name:a`b", "name:c`d", 'name:e"f', "name:select"],
        ),
        ("x'4142' b'01000001'", ["string:AB", "string:A"]),
        (r"'\xc3\xa9' '\\x41' '\x27'", ["string:é", "string:\\x41", "string:'"]),
        ("$$it's$$ $t$a$$b$t$ '$$'", ["string:it's", "string:a$$b", "string:$$"]),
        (
            "1 -- x\n+ # y\n2 #! z\n /* a /* b */ c */ 3",
            ["number:1", "operator:+", "number:2", "number:3"],
        ),
        ("", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


def test_quoted_words_are_no_keywords() -> None:
    word, quoted, end = tokenize(SourceText('select "select"'))
    assert (word.key, quoted.key, end.kind) == ("SELECT", "", "end")


def test_a_piece_has_places_of_the_whole() -> None:
    source = SourceText("xx;\n a = 'b'")
    tokens = tokenize(source, 3)
    assert [source.text[t.start : t.end] for t in tokens] == ["a", "=", "'b'", ""]
    assert str(source.position(tokens[2].start)) == "line 2, column 6"


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("a 'bc", 2),
        ("a `b", 2),
        ('"b', 0),
        ("a /* b", 2),
        ("/* a /* b */", 0),
        ("a #b", 2),
        ("a N'x'", 2),
        ("a \\ b", 2),
        (r"a `\xff`", 2),
        ("a @ b", 2),
        ("1.x", 0),
    ],
)
def test_what_is_no_token_is_a_syntax_error_with_its_place(text: str, offset: int) -> None:
    with pytest.raises(errors.SyntaxError) as raised:
        tokenize(SourceText(text))
    assert raised.value.position is not None
    assert raised.value.position.offset == offset


@pytest.mark.parametrize("text", [r"'a\xff'", "x'61ff'", "b'0110000111111111'"])
def test_bytes_that_are_not_utf8_become_surrogates(text: str) -> None:
    assert tokenize(SourceText(text))[0].text == "a\udcff"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"""'a""b\'c``d'""", 'string:a""b\'c``d'),
        (r"""'a""b''c'""", 'string:a""b\'c'),
        (r'''"a""b''c\n"''', "name:a\"b''c\n"),
        (r"""`a``b""\t`""", 'name:a`b""\t'),
    ],
)
def test_only_the_quote_around_a_text_is_doubled_inside(text: str, expected: str) -> None:
    assert texts(text) == [expected]
