"""tokenizeQuery: the tokens of a query with their places and kinds, as ClickHouse's lexer cuts them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.types import UINT64, Array, DataType, Enum, String, Tuple

_KINDS = (
    *("Whitespace", "Comment", "BareWord", "Number", "StringLiteral", "QuotedIdentifier"),
    *("OpeningRoundBracket", "ClosingRoundBracket", "OpeningSquareBracket"),
    *("ClosingSquareBracket", "OpeningCurlyBrace", "ClosingCurlyBrace", "Comma", "Semicolon"),
    *("VerticalDelimiter", "Dot", "Asterisk", "HereDoc", "DollarSign", "Plus", "Minus", "Slash"),
    *("Percent", "Arrow", "QuestionMark", "Colon", "Caret", "DoubleColon", "Equals", "NotEquals"),
    *("Less", "Greater", "LessOrEquals", "GreaterOrEquals", "Spaceship", "PipeMark"),
    *("PipeOperator", "Concatenation", "Tilde", "TildeAsterisk", "NotTilde", "NotTildeAsterisk"),
    *("At", "DoubleAt", "EndOfStream", "Error", "ErrorMultilineCommentIsNotClosed"),
    *("ErrorSingleQuoteIsNotClosed", "ErrorDoubleQuoteIsNotClosed", "ErrorBackQuoteIsNotClosed"),
    *("ErrorSingleExclamationMark", "ErrorSinglePipeMark", "ErrorWrongNumber"),
    "ErrorMaxQuerySizeExceeded",
)
_NUMBER_OF_KIND = {kind: number for number, kind in enumerate(_KINDS)}
_TOKENS = Array(
    Tuple(
        (UINT64, UINT64, Enum(8, tuple((kind, number) for number, kind in enumerate(_KINDS)))),
        ("begin", "end", "type"),
    )
)
_SIGNS = {
    b"(": "OpeningRoundBracket",
    b")": "ClosingRoundBracket",
    b"[": "OpeningSquareBracket",
    b"]": "ClosingSquareBracket",
    b"{": "OpeningCurlyBrace",
    b"}": "ClosingCurlyBrace",
    b",": "Comma",
    b";": "Semicolon",
    b"\\G": "VerticalDelimiter",
    b".": "Dot",
    b"*": "Asterisk",
    b"$": "DollarSign",
    b"+": "Plus",
    b"-": "Minus",
    b"/": "Slash",
    b"%": "Percent",
    b"->": "Arrow",
    b"?": "QuestionMark",
    b":": "Colon",
    b"^": "Caret",
    b"::": "DoubleColon",
    b"=": "Equals",
    b"==": "Equals",
    b"!=": "NotEquals",
    b"<>": "NotEquals",
    b"<": "Less",
    b">": "Greater",
    b"<=": "LessOrEquals",
    b">=": "GreaterOrEquals",
    b"<=>": "Spaceship",
    b"|": "PipeMark",
    b"|>": "PipeOperator",
    b"||": "Concatenation",
    b"~": "Tilde",
    b"~*": "TildeAsterisk",
    b"!~": "NotTilde",
    b"!~*": "NotTildeAsterisk",
    b"@": "At",
    b"@@": "DoubleAt",
    b"!": "ErrorSingleExclamationMark",
}
_LONGEST_FIRST = sorted(_SIGNS, key=len, reverse=True)
_TOKEN = re.compile(
    rb"""
    (?P<Whitespace> [ \t\n\r\f\v]+ )
    | (?P<Comment> --[^\n]* | \#[ !][^\n]* | /\*.*?\*/ )
    | (?P<ErrorMultilineCommentIsNotClosed> /\*.* )
    | (?P<StringLiteral> [xXbB]?'(?:[^'\\]|\\.|'')*' )
    | (?P<ErrorSingleQuoteIsNotClosed> [xXbB]?'.* )
    | (?P<QuotedIdentifier> "(?:[^"\\]|\\.|"")*" | `(?:[^`\\]|\\.|``)*` )
    | (?P<ErrorDoubleQuoteIsNotClosed> ".* )
    | (?P<ErrorBackQuoteIsNotClosed> `.* )
    | (?P<HereDoc> \$(?P<tag>\w*)\$.*?\$(?P=tag)\$ )
    | (?P<BareWord> [A-Za-z_][A-Za-z0-9_$]* | \$[A-Za-z0-9_$]+ )
    | (?P<sign> %s )
    """
    % b"|".join(map(re.escape, _LONGEST_FIRST)),
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(
    rb"0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?\d+)?|0[bB][01_]+"
    rb"|(?:\d[\d_]*(?:\.(?:\d[\d_]*)?)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?"
)
_DIGITS = re.compile(rb"\d+")
_REST_OF_WORD = re.compile(rb"[A-Za-z0-9_]*")
_WORD = re.compile(rb"[A-Za-z0-9_$]+")
_BEFORE_AN_ELEMENT = ("BareWord", "QuotedIdentifier", "ClosingRoundBracket", "ClosingSquareBracket")
"""Tokens behind which a point begins the name of an element, and no number."""


def _number(query: bytes, at: int, before: str) -> tuple[str, int] | None:
    """Return the kind and the end of the number at `at`; None if none begins there. `before` is the token in front
    of it."""
    if before == "Dot" and (match := _DIGITS.match(query, at)) is not None:
        return "Number", match.end()
    if query[at : at + 1] == b"." and before in (*_BEFORE_AN_ELEMENT, "Number"):
        return None
    match = _NUMBER.match(query, at)
    if match is None:
        return None
    rest = _REST_OF_WORD.match(query, match.end())
    assert rest is not None
    if not rest.group():
        return "Number", match.end()
    is_word = _WORD.fullmatch(query, at, rest.end()) is not None
    return "BareWord" if is_word else "ErrorWrongNumber", rest.end()


def _tokens(query: bytes) -> list[dict[str, object]]:
    """Return the tokens of a query with their places and kinds; a byte that begins no token has the kind Error."""
    tokens: list[dict[str, object]] = []
    at, before = 0, ""
    while at < len(query):
        number = _number(query, at, before)
        if number is not None:
            kind, end = number
        elif (match := _TOKEN.match(query, at)) is not None:
            group = "HereDoc" if match.lastgroup == "tag" else match.lastgroup or ""
            kind, end = _SIGNS[match.group()] if group == "sign" else group, match.end()
        else:
            kind, end = "Error", at + 1
        tokens.append({"begin": at, "end": end, "type": _NUMBER_OF_KIND[kind]})
        at = end
        if kind not in ("Whitespace", "Comment"):
            before = kind
    return tokens


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return an array of named tuples; raise IllegalTypeOfArgument for other arguments than texts."""
    scalar.require(name, types, String, "a String")
    return _TOKENS


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    define_by_value("tokenizeQuery", _rule, _tokens, insensitive=True),
)
