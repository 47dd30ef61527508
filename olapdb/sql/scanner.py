"""Reading any SQL text with sqlglot's scanner, which is imported for texts that `tokens` cannot read by itself.

The scanner is sqlglot's `Tokenizer`, subclassed by its class attributes only, which works where sqlglot is
compiled (`sqlglotc`) and where it is not.  It finds where tokens begin and end.  This module reads their
meaning from the text, so that escapes, numbers and operators follow ClickHouse.
"""

from __future__ import annotations

import re
from typing import ClassVar, TypeAlias

from sqlglot.dialects.clickhouse import ClickHouse
from sqlglot.errors import TokenError
from sqlglot.tokens import Tokenizer, TokenType

from olapdb.errors import SyntaxError
from olapdb.sql.tokens import (
    HEREDOC,
    QUOTED,
    Kind,
    SourceText,
    Token,
    append_elements,
    append_number,
    is_after_dot,
    tokenize,
    unquote,
)

_OPERATORS = ("||", "|>", "::", "->", ">=", "<=", "<>", "!=", "==", "<=>", "~*", "!~", "!~*")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_$]*\Z")
_PARAMETER = re.compile(r"\$[A-Za-z0-9_]+\Z")
_EXPONENT = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+")
_HEX = r"[0-9A-Fa-f](?:_?[0-9A-Fa-f])*"
_HEX_FLOAT = re.compile(
    rf"(?<![\w.])0[xX](?:{_HEX}\.?(?:{_HEX})?[pP][+-]?[0-9](?:_?[0-9])*|{_HEX}\.(?:{_HEX})?)"
)
_NAME = re.compile(r"0[xXbB](?:_\w*|\w+_|\w*__\w*)$")
"""What begins as a number of another base, but has an underscore that is not between two digits."""
_QUOTED_OR_HEX_FLOAT = re.compile(f"{QUOTED}|(?P<float>{_HEX_FLOAT.pattern})", re.DOTALL)
_HEREDOC = re.compile(f"{QUOTED}|{HEREDOC}", re.DOTALL)
_CURLY = re.compile(f"{QUOTED}|{HEREDOC}|(?P<text>‘[^’]*’)|(?P<name>“[^”]*”)", re.DOTALL)
_QUOTED_OR_OPEN = re.compile(QUOTED + r"|(?P<open>['\"`]|/\*)", re.DOTALL)


class _ClickHouseTokenizer(Tokenizer):
    """sqlglot's scanner with ClickHouse's quotes and comments; it knows no keyword."""

    COMMANDS: ClassVar[set[TokenType]] = set()
    KEYWORDS = dict.fromkeys(_OPERATORS, TokenType.UNKNOWN)
    IDENTIFIERS = ['"', "`"]
    IDENTIFIER_ESCAPES = ["\\"]
    STRING_ESCAPES = ["'", "\\"]
    HEX_STRINGS = [("0x", ""), ("0X", ""), ("x'", "'"), ("X'", "'")]
    BIT_STRINGS = [("0b", ""), ("b'", "'"), ("B'", "'")]
    COMMENTS = ["--", "# ", "#!", ("/*", "*/")]
    COMMENTS_TERMINATE_AT_NEWLINE_ONLY = True


# By its name sqlglot would import the dialect at the first statement, in whatever thread runs it; a
# process that forks meanwhile leaves its child waiting for that import for ever.
_DIALECT = ClickHouse()


_Hidden: TypeAlias = dict[int, tuple[Kind, str]]
"""Kind and text of what sqlglot's scanner would not read, by the offset of its stand-in."""
_NOT_OURS = frozenset(
    (TokenType.NATIONAL_STRING, TokenType.IDENTIFIER, TokenType.BACKSLASH, TokenType.HASH)
)
"""What sqlglot's scanner reads and ClickHouse's grammar does not have."""


def scanned_tokens(source: SourceText, piece: str, start: int) -> list[Token]:
    """Return the tokens of `piece`, which begins at the offset `start` of the source.

    Raises SyntaxError with the position of a quote or comment that is not closed, or of a
    character that begins no token.
    """
    hidden: _Hidden = {}
    scanned = _hide_curly(piece, hidden) if "‘" in piece or "“" in piece else piece
    scanned = _hide_heredocs(scanned, hidden) if "$" in scanned else scanned
    scanned = _hide_hex_floats(scanned, hidden) if _HEX_FLOAT.search(scanned) else scanned
    try:
        raw = _ClickHouseTokenizer(_DIALECT).tokenize(scanned)
    except TokenError:
        raise _not_closed(source, piece, start) from None
    tokens: list[Token] = []
    for scan in raw:
        at, after = scan.start, scan.end + 1
        match scan.token_type:
            case TokenType.VAR:
                _word(tokens, source, scan.text, start + at)
            case TokenType.STRING | TokenType.IDENTIFIER | TokenType.NUMBER if at in hidden:
                tokens.append(Token(*hidden[at], "", start + at, start + after))
            case TokenType.STRING:
                value = unquote(source, piece[at:after], start + at)
                tokens.append(Token("string", value, "", start + at, start + after))
            case TokenType.NUMBER:
                number = _EXPONENT.match(scan.text)
                stop = len(scan.text) if number is None else number.end()
                append_number(tokens, scan.text[:stop], start + at, start + at + stop)
                if stop < len(scan.text):  # the scanner takes `1e5+0.5` for one number
                    tokens.extend(tokenize(source, start + at + stop, start + after)[:-1])
            case TokenType.HEX_STRING | TokenType.BIT_STRING if _NAME.match(piece, at, after):
                text = piece[at:after]  # 0x_1, the name of a column
                tokens.append(Token("word", text, text.upper(), start + at, start + after))
            case TokenType.HEX_STRING | TokenType.BIT_STRING:
                base = 16 if scan.token_type == TokenType.HEX_STRING else 2
                tokens.append(_based(piece[at], scan.text, base, start + at, start + after))
            case TokenType.IDENTIFIER if piece[at] in '"`':
                value = unquote(source, piece[at:after], start + at)
                tokens.append(Token("name", value, "", start + at, start + after))
            case TokenType.PARAMETER:
                _at_sign(tokens, source, piece[at : at + 2], start + at)
            case TokenType.PLACEHOLDER:
                tokens.append(Token("operator", "?", "?", start + at, start + after))
            case unknown if unknown in _NOT_OURS:
                raise SyntaxError(
                    f"Unrecognized token {piece[at:after][:20]!r}.",
                    position=source.position(start + at),
                )
            case _:
                tokens.append(Token("operator", scan.text, scan.text, start + at, start + after))
    return tokens


def _at_sign(tokens: list[Token], source: SourceText, text: str, start: int) -> None:
    """Append the token of `@@`, or of the @ of a JSON path, `j.@path`; `text` has the character behind it too.

    The scanner gives `@@` as two tokens: the second appends none. Raises SyntaxError for another @."""
    if text == "@@":
        tokens.append(Token("operator", "@@", "@@", start, start + 2))
    elif tokens and tokens[-1].end == start + 1:
        pass
    elif tokens and tokens[-1].text == ".":
        tokens.append(Token("operator", "@", "@", start, start + 1))
    else:
        raise SyntaxError("Unrecognized token '@'.", position=source.position(start))


def _word(tokens: list[Token], source: SourceText, text: str, start: int) -> None:
    """Append the tokens of what the scanner takes for a word.

    It is a word, a parameter, elements such as `1.x`, or a number. Raises SyntaxError for any
    other text."""
    end = start + len(text)
    if _PLAIN_WORD.match(text):
        tokens.append(Token("word", text, text.upper(), start, end))
    elif _PARAMETER.match(text):
        tokens.append(Token("parameter", text[1:], "", start, end))
    elif "." in text and text[0].isdigit() and is_after_dot(tokens, start):
        # `t.1.x`: the scanner took `1.x` for one word
        append_elements(tokens, text, start)
    elif number := _EXPONENT.match(text):
        append_number(tokens, number.group(), start, start + number.end())
        tokens.extend(tokenize(source, start + number.end(), end)[:-1])
    else:
        raise SyntaxError(
            f"Unrecognized token {text[:20]!r}.",
            hint="A name with other characters than letters, digits and _ needs `backquotes`.",
            position=source.position(start),
        )


def _based(first: str, digits: str, base: int, start: int, end: int) -> Token:
    """Return the token of `0x1F` or `0b101`, numbers, or of `x'41'` or `b'01000001'`, strings.

    Bytes that are not UTF-8 become surrogates."""
    if first == "0":
        return Token("number", str(int(digits, base)), "", start, end)
    width = 2 if base == 16 else 8
    padded = digits.zfill(-(-len(digits) // width) * width)
    data = bytes(int(padded[i : i + width], base) for i in range(0, len(padded), width))
    return Token("string", data.decode("utf-8", "surrogateescape"), "", start, end)


def _hide_heredocs(piece: str, hidden: _Hidden) -> str:
    """Return `piece` with every heredoc as a quoted string of the same length.

    Offsets stay right. Puts the inside of each heredoc into `hidden`, by offset."""

    def hide(match: re.Match[str]) -> str:
        """Record a heredoc's inside and return its stand-in; return any other match unchanged."""
        if match["mark"] is None:
            return match[0]
        hidden[match.start()] = ("string", match["body"])
        return "'" + "." * (len(match[0]) - 2) + "'"

    return _HEREDOC.sub(hide, piece)


def _hide_curly(piece: str, hidden: _Hidden) -> str:
    """Return `piece` with texts and names in curly quotes, ‘text’ and “name”, in straight ones; the length stays.

    Puts the inside of each, which has no escapes, into `hidden`, by offset."""

    def hide(match: re.Match[str]) -> str:
        """Record a text or name and return its stand-in; return any other match unchanged."""
        quote = "'" if match["text"] else '"'
        if not match["text"] and not match["name"]:
            return match[0]
        hidden[match.start()] = ("string" if match["text"] else "name", match[0][1:-1])
        return quote + "." * (len(match[0]) - 2) + quote

    return _CURLY.sub(hide, piece)


def _hide_hex_floats(piece: str, hidden: _Hidden) -> str:
    """Return `piece` with every number such as `0x1.8p3` as digits of the same length.

    Puts the number as decimal text into `hidden`, by offset."""

    def hide(match: re.Match[str]) -> str:
        """Record a number and return its stand-in; return any other match unchanged."""
        if match["float"] is None:
            return match[0]
        hidden[match.start()] = ("number", _float_text(match[0]))
        return "1" * len(match[0])

    return _QUOTED_OR_HEX_FLOAT.sub(hide, piece)


def _float_text(text: str) -> str:
    """Return the shortest decimal text of a hexadecimal number, which is marked as a float; `inf` past the range."""
    try:
        return repr(float.fromhex(text.replace("_", "")))
    except OverflowError:
        return "1e400"


def _not_closed(source: SourceText, piece: str, start: int) -> SyntaxError:
    """Return the error for the quote or comment of `piece` that is not closed."""
    for match in _QUOTED_OR_OPEN.finditer(piece):
        if match["open"]:
            what = "comment" if match["open"] == "/*" else f"quote {match['open']}"
            return SyntaxError(
                f"The {what} is not closed.", position=source.position(start + match.start())
            )
    comment = max(piece.find("/*"), 0)  # a nested one, which the pattern cannot see
    return SyntaxError("The comment is not closed.", position=source.position(start + comment))
