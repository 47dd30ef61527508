"""normalizeQuery and normalizedQueryHash: queries that differ in literals and names alone are one.

A query is cut into tokens as ClickHouse's lexer does. Literals become `?`, several between commas `?..`;
white space and comments become one space. Names are left out where they look generated: those of 36
bytes and more, with a space or with three digits. The functions …KeepNames keep them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.functions import scalar
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.by_value import define_by_value, values_by_row
from olapdb.functions.numeric.byte_hashes import values_of
from olapdb.functions.numeric.sip_hashes import sip_hash64
from olapdb.records import dataclass
from olapdb.types import STRING, UINT64, String

_TOKEN = re.compile(
    rb"""
    (?P<blank> \s+ | --[^\n]*\n? | \#[ !][^\n]*\n? | /\*.*?\*/ )
    | (?P<literal>
        [xXbB]?'(?:[^'\\]|\\.|'')*'
        | \$(?P<here>\w*)\$.*?\$(?P=here)\$
        | (?:0[xXbB][0-9a-fA-F_.]+(?:[pP][+-]?\d+)? | \d[\d_]*(?:\.[\d_]*)?(?:[eE][+-]?\d+)?
            | (?<![\w\])"`])\.\d[\d_]*(?:[eE][+-]?\d+)?)(?![\w$])
      )
    | (?P<name> "(?:[^"\\]|\\.|"")*" | `(?:[^`\\]|\\.|``)*` )
    | (?P<word> [A-Za-z0-9_$]+ )
    | (?P<sign> <=> | -> | :: | \|\| | == | != | <> | <= | >= | @@ | [-+*/%=<>|?:;,.@^~&(){}\[\]] )
    """,
    re.VERBOSE | re.DOTALL,
)
_LONG_NAME = 36
_Token: TypeAlias = tuple[str, bytes]
"""The kind of a token, a group of `_TOKEN`, and its bytes."""


def _tokens(text: bytes) -> Iterator[_Token]:
    """Yield the tokens of a query up to the first that ClickHouse's lexer does not know. A word before a `(` has the
    kind `sign`: it is no name."""
    at = 0
    while (match := _TOKEN.match(text, at)) is not None:
        kind = match.lastgroup or ""
        kind = "literal" if kind == "here" else kind
        at = match.end()
        if kind == "word":
            kind = "sign" if text[at : at + 1] == b"(" else "name"
        yield kind, match.group()


def _is_complex(name: bytes) -> bool:
    """Return whether a name, quotes included, looks generated: it is long, has white space, or three separate
    numbers."""
    return len(name) >= _LONG_NAME or bool(re.search(rb"\s|\d\D*\d\D*\d", name))


@dataclass(frozen=True)
class _Form:
    """The signs that a normal form writes for a literal, for several literals, and for a name, and whether it keeps
    names and blanks."""

    literal: bytes
    more: bytes
    name: bytes
    keeps_names: bool
    has_blanks: bool


def _normal(text: bytes, form: _Form) -> bytes:
    """Return a query with its literals, and names that look generated, replaced by the form's signs."""
    out: list[bytes] = []
    literals, comma, blank = 0, False, False  # of the run of literals that has not ended yet
    last_blank = False
    for kind, token in [*_tokens(text), ("end", b"")]:
        if kind == "blank":
            if form.has_blanks and not last_blank:
                blank = blank or literals > 0
                out += [b" "] if not literals and out else []
            last_blank = True
            continue
        last_blank = False
        if kind == "literal":
            out += [] if literals else [form.literal]
            literals, comma, blank = literals + 1, False, False
            continue
        if token == b"," and literals:
            comma = True
            continue
        if form.has_blanks and comma and token in (b"+", b"-"):
            continue  # the sign of a literal that follows others
        if token != b",":
            out += [form.more] if literals > 1 else []
            out += [b","] if comma else []
            out += [b" "] if blank else []
            literals, comma, blank = 0, False, False
        hidden = kind == "name" and not form.keeps_names and _is_complex(token)
        out.append(form.name if hidden else token)
    return b"".join(out)


def _text_form(*, keeps_names: bool) -> _Form:
    """Return the form of normalizeQuery, or with `keeps_names` of normalizeQueryKeepNames."""
    return _Form(b"?", b"..", b"`?`", keeps_names, True)


def _hash_kernel(*, keeps_names: bool) -> scalar.Kernel:
    """Return the kernel of normalizedQueryHash: SipHash of the query's normal form without white space."""
    form = _Form(b"\0", b"\0", b"\1", keeps_names, False)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Hash the normal form of each query."""
        texts = values_by_row(arrays, lambda text: _normal(text, form), pa.string())
        hashes = sip_hash64(values_of(columns.binary(texts)))
        return columns.from_values(np.asarray(hashes), pa.uint64())

    return kernel


def _define_text(name: str, *, keeps_names: bool) -> scalar.ScalarDefinition:
    """Define normalizeQuery or normalizeQueryKeepNames."""
    form = _text_form(keeps_names=keeps_names)
    rule = scalar.fixed_rule(STRING, (String,), "a String")
    return define_by_value(name, rule, lambda text: _normal(text, form))


_HASH_RULE = scalar.fixed_rule(UINT64, (String,), "a String")

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    _define_text("normalizeQuery", keeps_names=False),
    _define_text("normalizeQueryKeepNames", keeps_names=True),
    scalar.define("normalizedQueryHash", _HASH_RULE, _hash_kernel(keeps_names=False)),
    scalar.define("normalizedQueryHashKeepNames", _HASH_RULE, _hash_kernel(keeps_names=True)),
)
