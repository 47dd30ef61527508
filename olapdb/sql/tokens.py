"""ClickHouse's lexical rules: SQL text to tokens, each with its position in the text.

* no word is a keyword: the grammar decides by context, so a column may be called `date` or `when`;
* the number in `t.1.2` is two tuple elements, `.5` one number, `1abc` an identifier;
* `$1` and `$name` are parameters, `$$…$$` and `$tag$…$tag$` are strings.

Comments are `-- …`, `# …`, `#! …` and `/* … */` (nested), as in ClickHouse.

Most texts are made of words, numbers, strings, names without escapes, operators and `--` comments.  One pattern
finds these.  Any other text is read by `scanner`, which takes ten times as long and imports sqlglot.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from olapdb.errors import Position, SyntaxError
from olapdb.lazy import LazyModule

if TYPE_CHECKING:
    from olapdb.sql import scanner
else:
    scanner = LazyModule("olapdb.sql.scanner")

Kind = Literal["word", "name", "string", "number", "operator", "parameter", "end"]

_TUPLE_ELEMENT = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:\.[A-Za-z0-9_]+)*\Z")
COMMENT = r"--[^\n]*+|\#[ !][^\n]*+|/\*.*?\*/"
QUOTED = r"'(?:[^'\\]|\\.|'')*+'|\"(?:[^\"\\]|\\.|\"\")*+\"|`(?:[^`\\]|\\.|``)*+`|" + COMMENT
HEREDOC = r"(?P<mark>\$\w*\$)(?P<body>.*?)(?P=mark)"
"""Patterns, for DOTALL, of pieces of text inside which nothing else begins."""

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


_PLAIN = re.compile(
    r"""
      (?P<space>   [ \t\r\n]++ | --[^\n]*+ )
    | (?P<word>    [A-Za-z_][A-Za-z0-9_]*+ (?=[\s(),;.+\-*/%<>=|\[\]:] | \Z) )
    | (?P<number>  [0-9]++ (?:\.[0-9]++)? (?=[\s(),;+\-*/%<>=|\[\]:] | \Z) )
    | (?P<string>  '(?:[^'\\]++|\\[\s\S]|'')*+' )
    | (?P<name>    `[^`\\]*+` (?!`) | "[^"\\]*+" (?!") )
    | (?P<operator> <=> | <= | <> | >= | != | == | -> | \|\| | \|> | ::
                  | [(),;.+*%<>=\[\]:] | -(?!-) | /(?!\*) )
    """,
    re.VERBOSE | re.ASCII,
)
"""What `scanner` would read in the same way, whatever is around it."""


def tokenize(source: SourceText, start: int = 0, end: int | None = None) -> list[Token]:
    """Return the tokens of `source.text[start:end]`, then one of kind "end".

    Raises SyntaxError with the position of a quote or comment that is not closed, or of a
    character that begins no token.
    """
    end = len(source.text) if end is None else end
    piece = source.text if start == 0 and end == len(source.text) else source.text[start:end]
    tokens = plain_tokens(piece, start)
    if tokens is None:
        tokens = scanner.scanned_tokens(source, piece, start)
    tokens.append(Token("end", "", "", end, end))
    return tokens


def plain_tokens(piece: str, start: int) -> list[Token] | None:
    """Return the tokens of a text that begins at the offset `start`; None if it has anything but those that
    `_PLAIN` finds."""
    tokens: list[Token] = []
    stop = 0
    for match in _PLAIN.finditer(piece):
        at, after = match.span()
        if at != stop:
            return None
        stop = after
        text = match[0]
        match match.lastgroup:
            case "word":
                tokens.append(Token("word", text, text.upper(), start + at, start + after))
            case "operator":
                tokens.append(Token("operator", text, text, start + at, start + after))
            case "number":
                append_number(tokens, text, start + at, start + after)
            case "string":
                inside = text[1:-1]
                if "\\" in inside or "'" in inside:
                    inside = unescape(inside)
                tokens.append(Token("string", inside, "", start + at, start + after))
            case "name":
                tokens.append(Token("name", text[1:-1], "", start + at, start + after))
    return tokens if stop == len(piece) else None


def is_after_dot(tokens: list[Token], start: int) -> bool:
    """Return whether the offset `start` is right behind `t.`, `f(x).`, `a[1].` or `"t".`"""
    if len(tokens) < 2 or tokens[-1].key != "." or tokens[-1].end != start:
        return False
    before = tokens[-2]
    if before.end != tokens[-1].start:
        return False
    return before.kind in ("word", "name", "number") or before.key in (")", "]", "}")


def append_number(tokens: list[Token], text: str, start: int, end: int) -> None:
    """Append a number: `1.2` behind `t.` as two elements, `5` behind a lone dot as `0.5`."""
    if is_after_dot(tokens, start) and _TUPLE_ELEMENT.match(text):
        append_elements(tokens, text, start)
    elif tokens and tokens[-1].key == "." and tokens[-1].end == start:
        dot = tokens.pop()
        tokens.append(Token("number", f"0.{text}", "", dot.start, end))
    else:
        tokens.append(Token("number", text, "", start, end))


def append_elements(tokens: list[Token], text: str, start: int) -> None:
    """Append the elements of `1.2.x` and the dots between them."""
    for index, part in enumerate(text.split(".")):
        if index:
            tokens.append(Token("operator", ".", ".", start - 1, start))
        if part.isdigit():
            tokens.append(Token("number", part, "", start, start + len(part)))
        elif part:
            tokens.append(Token("word", part, part.upper(), start, start + len(part)))
        start += len(part) + 1


def unquote(source: SourceText, quoted: str, offset: int) -> str:
    """Return the value of a quoted string or name, which is at `offset`."""
    inside = quoted[1:-1]
    if "\\" not in inside and quoted[0] not in inside:
        return inside
    try:
        return unescape(inside, quoted[0])
    except SyntaxError as error:
        raise error.at(source.position(offset)) from None
