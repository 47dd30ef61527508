"""ClickHouse's lexical rules: SQL text to tokens, each with its position in the text.

The scanner is sqlglot's `Tokenizer`, subclassed by its class attributes only, which works where
sqlglot is compiled (`sqlglotc`) and where it is not.  It finds where tokens begin and end.  This
module reads their meaning from the text, so that escapes, numbers and operators follow ClickHouse
and have one home:

* no word is a keyword: the grammar decides by context, so a column may be called `date` or `when`;
* the number in `t.1.2` is two tuple elements, `.5` one number, `1abc` an identifier;
* `$1` and `$name` are parameters, `$$…$$` and `$tag$…$tag$` are strings.

Comments are `-- …`, `# …`, `#! …` and `/* … */` (nested), as in ClickHouse.
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal, NamedTuple

from sqlglot.dialects.clickhouse import ClickHouse
from sqlglot.errors import TokenError
from sqlglot.tokens import Tokenizer, TokenType

from olapdb.errors import Position, SyntaxError

Kind = Literal["word", "name", "string", "number", "operator", "parameter", "end"]

_OPERATORS = ("||", "|>", "::", "->", ">=", "<=", "<>", "!=", "==", "<=>", "~*", "!~", "!~*")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_$]*\Z")
_PARAMETER = re.compile(r"\$[A-Za-z0-9_]+\Z")
_EXPONENT = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+")
_TUPLE_ELEMENT = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:\.[A-Za-z0-9_]+)*\Z")
COMMENT = r"--[^\n]*+|\#[ !][^\n]*+|/\*.*?\*/"
QUOTED = r"'(?:[^'\\]|\\.|'')*+'|\"(?:[^\"\\]|\\.|\"\")*+\"|`(?:[^`\\]|\\.|``)*+`|" + COMMENT
HEREDOC = r"(?P<mark>\$\w*\$)(?P<body>.*?)(?P=mark)"
"""Patterns, for DOTALL, of pieces of text inside which nothing else begins."""

_HEREDOC = re.compile(f"{QUOTED}|{HEREDOC}", re.DOTALL)
_QUOTED_OR_OPEN = re.compile(QUOTED + r"|(?P<open>['\"`]|/\*)", re.DOTALL)
_ESCAPE = {
    quote: re.compile(rf"\\(x[0-9A-Fa-f]{{2}}|.)|{quote}{quote}", re.DOTALL) for quote in "'\"`"
}
"""An escape or a doubled quote, inside quotes of each kind."""
_ESCAPED = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "0": "\0",
    "N": "",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "/": "/",
    "=": "=",
}


class Token(NamedTuple):
    """A piece of the text from offset `start` to `end`, with its value `text`, unquoted, unescaped.

    The grammar compares `key`: the word in capitals or the operator, and "" for quoted names,
    strings, numbers and parameters, so that a quoted `"select"` is never taken for the keyword.
    """

    kind: Kind
    text: str
    key: str
    start: int
    end: int


class SourceText:
    """A whole SQL text, which finds the line and column of an offset.

    It counts lines from the offset of the last call, since a parser goes from left to right:
    counting from the beginning each time takes time in the square of the text's length.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._offset = 0
        self._line = 1
        self._line_start = 0

    def position(self, offset: int) -> Position:
        """Return the position of `offset`: line and column from 1, and the offset itself."""
        text = self.text
        if offset < self._line_start:
            self._line -= text.count("\n", offset, self._line_start)
            self._line_start = text.rfind("\n", 0, offset) + 1
        elif offset > self._offset:
            newlines = text.count("\n", self._offset, offset)
            if newlines:
                self._line += newlines
                self._line_start = text.rfind("\n", self._offset, offset) + 1
        self._offset = offset
        return Position(self._line, offset - self._line_start + 1, offset)


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


def unescape(text: str, quote: str = "'") -> str:
    r"""Return the value of the inside of a text between `quote`s: `\n`, `\x41`, `''` are read.

    An unknown escape such as `\d` keeps its backslash, as in ClickHouse.  Consecutive `\xHH` are
    UTF-8 bytes; those that are not valid become surrogates. Raises SyntaxError for these in a name.
    """
    escape = _ESCAPE[quote]
    if "\\x" not in text:
        return escape.sub(_unescape_one, text)
    raw = re.sub(
        rb"\\(?:x([0-9A-Fa-f]{2})|\\)",
        lambda m: b"\\\\" if m[1] is None else _protect(int(m[1], 16)),
        text.encode(),
    )
    try:
        text = raw.decode("utf-8", "strict" if quote != "'" else "surrogateescape")
    except UnicodeDecodeError:
        raise SyntaxError("A name with \\x escapes must be valid UTF-8.") from None
    return escape.sub(_unescape_one, text)


def _protect(byte: int) -> bytes:
    """Return a byte of `\\xHH`, escaped where a second pass would read it as an escape or quote."""
    return b"\\" + bytes([byte]) if byte in b"\\'\"`" else bytes([byte])


def _unescape_one(match: re.Match[str]) -> str:
    """Return the value of one escape or doubled quote; an unknown escape is unchanged."""
    escaped = match[1]
    if escaped is None:
        return match[0][0]
    if escaped < " " or escaped == "\x7f":
        return escaped
    return _ESCAPED.get(escaped, match[0])


# By its name sqlglot would import the dialect at the first statement, in whatever thread runs it; a
# process that forks meanwhile leaves its child waiting for that import for ever.
_DIALECT = ClickHouse()


def tokenize(source: SourceText, start: int = 0, end: int | None = None) -> list[Token]:
    """Return the tokens of `source.text[start:end]`, then one of kind "end".

    Raises SyntaxError with the position of a quote or comment that is not closed, or of a
    character that begins no token.
    """
    end = len(source.text) if end is None else end
    piece = source.text if start == 0 and end == len(source.text) else source.text[start:end]
    heredocs: dict[int, str] = {}
    scanned = _hide_heredocs(piece, heredocs) if "$" in piece else piece
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
            case TokenType.STRING if at in heredocs:
                tokens.append(Token("string", heredocs[at], "", start + at, start + after))
            case TokenType.STRING:
                value = _unquote(source, piece[at:after], start + at)
                tokens.append(Token("string", value, "", start + at, start + after))
            case TokenType.NUMBER:
                number = _EXPONENT.match(scan.text)
                stop = len(scan.text) if number is None else number.end()
                _number(tokens, scan.text[:stop], start + at, start + at + stop)
                if stop < len(scan.text):  # the scanner takes `1e5+0.5` for one number
                    tokens.extend(tokenize(source, start + at + stop, start + after)[:-1])
            case TokenType.HEX_STRING | TokenType.BIT_STRING:
                base = 16 if scan.token_type == TokenType.HEX_STRING else 2
                tokens.append(_based(piece[at], scan.text, base, start + at, start + after))
            case TokenType.IDENTIFIER if piece[at] in '"`':
                value = _unquote(source, piece[at:after], start + at)
                tokens.append(Token("name", value, "", start + at, start + after))
            case TokenType.PARAMETER if piece[at : at + 2] == "@@":
                tokens.append(Token("operator", "@@", "@@", start + at, start + at + 2))
            case TokenType.PARAMETER if tokens and tokens[-1].end == start + after:
                pass  # the second one of @@
            case TokenType.PARAMETER:
                raise SyntaxError("Unrecognized token '@'.", position=source.position(start + at))
            case TokenType.PLACEHOLDER:
                tokens.append(Token("operator", "?", "?", start + at, start + after))
            case (
                TokenType.NATIONAL_STRING
                | TokenType.IDENTIFIER
                | TokenType.BACKSLASH
                | TokenType.HASH
            ):
                raise SyntaxError(
                    f"Unrecognized token {piece[at:after][:20]!r}.",
                    position=source.position(start + at),
                )
            case _:
                tokens.append(Token("operator", scan.text, scan.text, start + at, start + after))
    tokens.append(Token("end", "", "", end, end))
    return tokens


def _word(tokens: list[Token], source: SourceText, text: str, start: int) -> None:
    """Append the tokens of what the scanner takes for a word.

    It is a word, a parameter, elements such as `1.x`, or a number. Raises SyntaxError for any
    other text."""
    end = start + len(text)
    if _PLAIN_WORD.match(text):
        tokens.append(Token("word", text, text.upper(), start, end))
    elif _PARAMETER.match(text):
        tokens.append(Token("parameter", text[1:], "", start, end))
    elif "." in text and text[0].isdigit() and _after_dot(tokens, start):
        # `t.1.x`: the scanner took `1.x` for one word
        _elements(tokens, text, start)
    elif number := _EXPONENT.match(text):
        _number(tokens, number.group(), start, start + number.end())
        tokens.extend(tokenize(source, start + number.end(), end)[:-1])
    else:
        raise SyntaxError(
            f"Unrecognized token {text[:20]!r}.",
            hint="A name with other characters than letters, digits and _ needs `backquotes`.",
            position=source.position(start),
        )


def _after_dot(tokens: list[Token], start: int) -> bool:
    """Return whether the offset `start` is right behind `t.`, `f(x).`, `a[1].` or `"t".`"""
    if len(tokens) < 2 or tokens[-1].key != "." or tokens[-1].end != start:
        return False
    before = tokens[-2]
    if before.end != tokens[-1].start:
        return False
    return before.kind in ("word", "name", "number") or before.key in (")", "]", "}")


def _number(tokens: list[Token], text: str, start: int, end: int) -> None:
    """Append a number: `1.2` behind `t.` as two elements, `5` behind a lone dot as `0.5`."""
    if _after_dot(tokens, start) and _TUPLE_ELEMENT.match(text):
        _elements(tokens, text, start)
    elif tokens and tokens[-1].key == "." and tokens[-1].end == start:
        dot = tokens.pop()
        tokens.append(Token("number", f"0.{text}", "", dot.start, end))
    else:
        tokens.append(Token("number", text, "", start, end))


def _elements(tokens: list[Token], text: str, start: int) -> None:
    """Append the elements of `1.2.x` and the dots between them."""
    for index, part in enumerate(text.split(".")):
        if index:
            tokens.append(Token("operator", ".", ".", start - 1, start))
        if part.isdigit():
            tokens.append(Token("number", part, "", start, start + len(part)))
        elif part:
            tokens.append(Token("word", part, part.upper(), start, start + len(part)))
        start += len(part) + 1


def _based(first: str, digits: str, base: int, start: int, end: int) -> Token:
    """Return the token of `0x1F` or `0b101`, numbers, or of `x'41'` or `b'01000001'`, strings.

    Bytes that are not UTF-8 become surrogates."""
    if first == "0":
        return Token("number", str(int(digits, base)), "", start, end)
    width = 2 if base == 16 else 8
    padded = digits.zfill(-(-len(digits) // width) * width)
    data = bytes(int(padded[i : i + width], base) for i in range(0, len(padded), width))
    return Token("string", data.decode("utf-8", "surrogateescape"), "", start, end)


def _unquote(source: SourceText, quoted: str, offset: int) -> str:
    """Return the value of a quoted string or name, which is at `offset`."""
    inside = quoted[1:-1]
    if "\\" not in inside and quoted[0] not in inside:
        return inside
    try:
        return unescape(inside, quoted[0])
    except SyntaxError as error:
        raise error.at(source.position(offset)) from None


def _hide_heredocs(piece: str, heredocs: dict[int, str]) -> str:
    """Return `piece` with every heredoc as a quoted string of the same length.

    Offsets stay right. Puts the inside of each heredoc into `heredocs`, by offset."""

    def hide(match: re.Match[str]) -> str:
        """Record a heredoc's inside and return its stand-in; return any other match unchanged."""
        if match["mark"] is None:
            return match[0]
        heredocs[match.start()] = match["body"]
        return "'" + "." * (len(match[0]) - 2) + "'"

    return _HEREDOC.sub(hide, piece)


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
