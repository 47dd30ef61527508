"""Pairs of key and value out of texts, `a:1, b:"x y"`: extractKeyValuePairs and …WithEscaping."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, LimitExceeded
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.by_value import values_by_row
from olapdb.records import dataclass
from olapdb.types import STRING, Map, plain

_PAIR_DELIMITERS = " ,;"
_MOST_DELIMITERS = 8
_STRATEGIES = ("INVALID", "ACCEPT", "PROMOTE")
_RESULT = Map(STRING, STRING)
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.?)", re.DOTALL)
_ESCAPED = dict(
    zip(
        (b"a", b"b", b"e", b"f", b"n", b"r", b"t", b"v", b"0", b"\\"),
        (b"\a", b"\b", b"\x1b", b"\f", b"\n", b"\r", b"\t", b"\v", b"\0", b"\\"),
        strict=True,
    )
)


@dataclass(frozen=True)
class _Grammar:
    """The grammar of pairs: the characters between key and value (`colon`), between pairs (`delimiters`) and around
    quoted texts, and the meaning of a quote inside a text.

    INVALID: it ends the pair; ACCEPT: it is a character; PROMOTE: it begins a quoted text there."""

    colon: bytes
    delimiters: bytes
    quote: bytes
    strategy: str
    escaping: bool

    def pairs(self, text: bytes) -> list[tuple[bytes, bytes]]:
        """Return the pairs (key, value) of a text in their order, without quotes, and with escape
        sequences replaced if `escaping`; text that is no pair is skipped."""
        pairs: list[tuple[bytes, bytes]] = []
        at = 0
        while at < len(text):
            if text[at] in self.delimiters:
                at += 1
                continue
            key, at = self._read(text, at, self._key)
            if key is None:
                continue
            if not key or text[at : at + 1] != self.colon:
                at += text[at : at + 1] == self.colon or not key
                continue
            value, at = self._read(text, at + 1, self._value)
            if value is None:
                continue
            read = (self._unescaped(key), self._unescaped(value))
            if read[0] is not None and read[1] is not None:
                pairs.append((read[0], read[1]))
        return pairs

    def _read(self, text: bytes, at: int, unquoted: re.Pattern[bytes]) -> tuple[bytes | None, int]:
        """Return the key or value that begins at position `at`, and the position behind it; None for one that a
        quote spoils."""
        if text[at : at + 1] != self.quote:
            bare = unquoted.match(text, at)
            assert bare is not None
            at = bare.end()
            if text[at : at + 1] != self.quote or not self.quote:
                return bare.group(), at
            if self.strategy == "INVALID":
                return None, at + 1
        quoted = self._quoted.match(text, at)
        return (None, len(text)) if quoted is None else (quoted.group(1), quoted.end())

    @cached_property
    def _key(self) -> re.Pattern[bytes]:
        """The pattern of an unquoted key, which ends before a delimiter of keys or pairs."""
        return self._unquoted(self.colon + self.delimiters)

    @cached_property
    def _value(self) -> re.Pattern[bytes]:
        """The pattern of an unquoted value, which ends before a delimiter of pairs."""
        return self._unquoted(self.delimiters)

    @cached_property
    def _quoted(self) -> re.Pattern[bytes]:
        """The pattern of a quoted text; its group is the text between the quotes."""
        quote = re.escape(self.quote)
        escape = rb"\\." if self.escaping else b"(?!)"
        barred = quote + (rb"\\" if self.escaping else b"")
        return re.compile(b"%s((?:[^%s]|%s)*)%s" % (quote, barred, escape, quote), re.DOTALL)

    def _unquoted(self, ends: bytes) -> re.Pattern[bytes]:
        """Return the pattern of a text up to the first of the characters `ends`, or to a quote unless the strategy
        is ACCEPT."""
        barred = re.escape(ends + (b"" if self.strategy == "ACCEPT" else self.quote))
        if not self.escaping:
            return re.compile(b"[^%s]*" % barred)
        return re.compile(rb"(?:[^%s\\]|\\.?)*" % barred, re.DOTALL)

    def _unescaped(self, text: bytes) -> bytes | None:
        """Return a key or value with its escape sequences replaced; None for one that begins with a
        sequence, which ClickHouse does not read either.

        Sequences of a delimiter, and unknown ones, stay as they are."""
        if not self.escaping or b"\\" not in text:
            return text
        if text.startswith(b"\\"):
            return None
        result, at = b"", 0
        kept = frozenset(self.colon + self.delimiters)
        for escape in _ESCAPE.finditer(text):
            result += text[at : escape.start()]
            at = escape.end()
            body = escape.group(1)
            if len(body) == 3:
                result += bytes([int(body[1:], 16)])
            elif body and body[0] in kept:
                result += escape.group()
            elif body == self.quote or body in _ESCAPED:
                result += _ESCAPED.get(body, body)
            else:
                result += escape.group()
        return result + text[at:]


def _resolve(*, escaping: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of extractKeyValuePairs, or with `escaping` of extractKeyValuePairsWithEscaping.

    Arguments: (text[, key_value_delimiter[, pair_delimiters[, quote[, strategy]]]])."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call, whose result is Map(String, String); all arguments but the first are constants. Raises
        BadArguments."""
        scalar.require(name, [plain(arguments[0].type)], type(STRING), "a String")
        given = [
            scalar.constant_text(name, arguments, at, "a delimiter")
            for at in range(1, len(arguments))
        ]
        colon, delimiters, quote, strategy = (
            given + [":", _PAIR_DELIMITERS, '"', "PROMOTE"][len(given) :]
        )[:4]
        strategy = strategy.upper()
        if len(colon) != 1 or len(quote) > 1 or len(delimiters) > _MOST_DELIMITERS:
            raise BadArguments(
                f"{name} takes one character between key and value, one to quote, and at most"
                f" {_MOST_DELIMITERS} between pairs."
            )
        if colon in delimiters or quote in (colon, *delimiters):
            raise BadArguments(f"The delimiters and the quote of {name} are different characters.")
        if strategy not in _STRATEGIES:
            raise BadArguments(f"The strategy of {name} is one of {', '.join(_STRATEGIES)}.")

        grammar = _Grammar(colon.encode(), delimiters.encode(), quote.encode(), strategy, escaping)

        def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            """Read the pairs of each distinct text once."""
            most = int(call.environment.setting("extract_key_value_pairs_max_pairs_per_row", "0"))
            pairs = values_by_row(arrays[:1], grammar.pairs, call.result.arrow)
            if most and int(np.diff(columns.offsets_of(pairs)).max(initial=0)) > most:
                raise LimitExceeded(
                    f"{name} found more than {most} pairs in a row.",
                    hint="The setting extract_key_value_pairs_max_pairs_per_row says how many it may.",
                )
            return pairs

        return scalar.standard_call(name, arguments, _RESULT, kernel)

    return resolve


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom(
        "extractKeyValuePairs",
        _resolve(escaping=False),
        count=(1, 5),
        aliases=("str_to_map", "STR_TO_MAP", "mapFromString"),
    ),
    scalar.custom("extractKeyValuePairsWithEscaping", _resolve(escaping=True), count=(1, 5)),
)
