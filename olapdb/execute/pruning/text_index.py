"""Pruning by text indexes: which granules may hold a text that a condition asks for.

A condition asks for tokens that a text has wherever it is true: all words of a value that it equals,
the whole words of a LIKE pattern.  The part of a word at the end of a pattern lies within one token:
those that have it are looked for among all tokens of the part.  With the tokenizer `array`, a token
is a whole text, and the condition itself is evaluated over the tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.compute.evaluate import evaluate_array
from olapdb.engine.text_preprocessing import is_bytewise, preprocessed_text
from olapdb.errors import Error
from olapdb.functions.base import Environment
from olapdb.functions.kernels import columns
from olapdb.functions.strings.tokenizers import Tokenizer, like_fragments
from olapdb.model.schema import SkipIndex
from olapdb.plan.expressions import (
    Call,
    ColumnRef,
    Constant,
    Expression,
    InValues,
    columns_of,
    walk,
)
from olapdb.storage.text_index import TokenGranules
from olapdb.types import FixedString, is_nullable, plain

PREPROCESSED = "\0preprocessed"
"""The name of the column that replaces what the index's preprocessor makes of its expression."""
_WORD = re.compile(rb"[0-9A-Za-z\x80-\xff]+")
_FOLDED_WORD = re.compile(rb"[0-9A-JL-RT-Za-jl-rt-z]+")


class TextCondition:
    """The judgement of conditions by the text index of one part.

    Of an index with a preprocessor, a condition over the column PREPROCESSED is judged by the tokens
    as they are; one over the index's expression (`raw`) by what the preprocessor makes of its
    constants.
    """

    def __init__(
        self,
        index: SkipIndex,
        batch: pa.RecordBatch,
        environment: Environment,
        *,
        raw: bool = False,
    ) -> None:
        self._index = TokenGranules(batch)
        self._tokenizer = Tokenizer.parse(index.tokenizer)
        self._environment = environment
        self._definition = index
        self._batch = batch
        self._raw = raw

    def granules(self, condition: Expression) -> np.ndarray:
        """Return a mask of the granules that may have a row for which the condition is true; all of
        them for a condition that the index cannot judge. bool, shape (granules,)."""
        raw = bool(self._definition.preprocessor) and columns_of(condition) != {PREPROCESSED}
        if raw and not self._raw:
            other = TextCondition(self._definition, self._batch, self._environment, raw=True)
            return other.granules(condition)
        if self._tokenizer.name == "array" and not raw and not _reads_a_list(condition):
            return self._by_evaluation(condition)
        match condition:
            case Call(
                name="hasAnyTokens" | "hasAllTokens" | "hasPhrase" as name,
                arguments=(ColumnRef(), needles, *rest),
            ) if not raw:
                return self._by_needles(name, needles, rest)
        alternatives = self._alternatives(condition)
        if alternatives is None:
            return np.ones(self._index.count, bool)
        return np.asarray(np.logical_or.reduce([np.zeros(self._index.count, bool), *alternatives]))

    def _by_needles(self, name: str, needles: Expression, rest: Sequence[Expression]) -> np.ndarray:
        """Return the mask of hasAnyTokens, hasAllTokens or hasPhrase with the index's tokenizer."""
        named = _text(rest[0]) if rest else b"splitByNonAlpha"
        if named is None or Tokenizer.parse(named.decode()) != self._tokenizer:
            return np.ones(self._index.count, bool)
        wanted = _texts(needles)
        if wanted is None:
            text = _text(needles)
            if text is None:
                return np.ones(self._index.count, bool)
            wanted = self._tokenizer.of_text(text)
        if not wanted:
            return np.zeros(self._index.count, bool)
        return self._index.of_any(wanted) if name == "hasAnyTokens" else self._index.of_all(wanted)

    def _by_evaluation(self, condition: Expression) -> np.ndarray:
        """Return the granules with a text, each of them a token, for which the condition is true.

        NULL and the empty text are in no index: if it is true for one of them, all granules stay.
        """
        column = next(part for part in walk(condition) if isinstance(part, ColumnRef))
        arrow = column.type.arrow
        try:
            tokens = self._index.tokens.cast(arrow)
            others: list[str | None] = [] if pa.types.is_fixed_size_binary(arrow) else [""]
            others += [None] if is_nullable(column.type) else []
            if self._is_true(condition, column, pa.array(others, arrow)).true_count:
                return np.ones(self._index.count, bool)
            return self._index.of_marked(self._is_true(condition, column, tokens))
        except (Error, pa.ArrowException):  # the filter will raise it, if a row is read
            return np.ones(self._index.count, bool)

    def _is_true(self, condition: Expression, column: ColumnRef, values: pa.Array) -> pa.Array:
        """Return for which values of the column the condition is true; a boolean array."""
        batch = pa.RecordBatch.from_arrays([values], names=[column.name])
        answers = evaluate_array(condition, batch, self._environment)
        return pc.fill_null(pc.cast(answers, pa.bool_()), False)

    def _alternatives(self, condition: Expression) -> Sequence[np.ndarray] | None:
        """Return masks of granules: the condition is true only in granules of one of them. None if it
        has no form that the index answers."""
        match condition:
            case Call(name="equals", arguments=(left, right)):
                column, constant = (left, right) if isinstance(left, ColumnRef) else (right, left)
                return self._each_whole(column, [_text(constant)])
            case Call(name="has", arguments=(ColumnRef() as column, constant)):
                return self._each_whole(column, [_text(constant)])
            case Call(name="hasAny" | "hasAll" as name, arguments=(ColumnRef() as column, many)):
                granules = self._each_whole(column, _texts(many) or [None])
                if granules is not None and name == "hasAll":
                    return [np.logical_and.reduce(granules)]
                return granules
            case InValues(argument=ColumnRef() as column, values=values, negated=False):
                return self._each_whole(
                    column, [_bytes(text) for text in _binary(values).to_pylist()]
                )
            case Call(name="hasToken" | "hasTokenOrNull", arguments=(ColumnRef(), word)):
                if self._tokenizer.name != "splitByNonAlpha":
                    return self._each_fragment([_text(word)])
                token = self._part(_text(word))
                return None if token is None else [self._index.of_all([token])]
            case Call(name="startsWith", arguments=(ColumnRef(), text)):
                return self._fragments([(_text(text), True, False)])
            case Call(name="endsWith", arguments=(ColumnRef(), text)):
                return self._fragments([(_text(text), False, True)])
            case Call(name="like", arguments=(ColumnRef(), pattern)):
                liked = _text(pattern)
                return None if liked is None else self._fragments(like_fragments(liked))
            case Call(name="ilike", arguments=(ColumnRef(), pattern)):
                liked = _text(pattern)
                return None if liked is None else self._folded_parts(like_fragments(liked))
            case Call(name="match", arguments=(ColumnRef(), pattern)):
                return self._patterns([_text(pattern)])
            case Call(name="multiMatchAny", arguments=(ColumnRef(), patterns)):
                return self._patterns(_texts(patterns) or [None])
            case Call(name="multiSearchAny" | "multiSearchAnyUTF8", arguments=(ColumnRef(), many)):
                return self._each_fragment(_texts(many) or [None])
        return None

    def _each_whole(
        self, column: Expression, texts: Sequence[bytes | None]
    ) -> Sequence[np.ndarray] | None:
        """Return a mask of granules for each text: those that may have it as a value of the column, or as an element of
        an array. None if one of the texts is unknown or has no tokens. A FixedString ends with zeros, which belong to
        the last piece that some tokenizers and preprocessors make."""
        if not isinstance(column, ColumnRef):
            return None
        inner = plain(column.type)
        inner = plain(getattr(inner, "inner", inner))
        padded = isinstance(inner, FixedString)
        if padded and not (self._tokenizer.reads_fragments and self._is_bytewise):
            return None
        granules = []
        for text in texts:
            if text is None:
                return None
            whole = text.rstrip(b"\0") if padded else text
            if self._raw:
                whole = preprocessed_text(self._definition, whole)
            tokens = self._tokenizer.of_text(whole)
            if not tokens:
                return None
            granules.append(self._index.of_all(tokens))
        return granules

    def _each_fragment(self, texts: Sequence[bytes | None]) -> Sequence[np.ndarray] | None:
        """Return a mask of granules for each text: those that may have a text which contains it. None if one of them
        tells nothing."""
        granules: list[np.ndarray] = []
        for text in texts:
            fragments = self._fragments([(text, False, False)])
            if fragments is None:
                return None
            granules += fragments
        return granules

    def _patterns(self, patterns: Sequence[bytes | None]) -> Sequence[np.ndarray] | None:
        """Return a mask of granules for each of the regular expressions: those that may have a text which matches it.
        None if one of the patterns tells nothing."""
        granules: list[np.ndarray] = []
        for pattern in patterns:
            runs = None if pattern is None else literal_runs(pattern)
            fragments = None if runs is None else self._fragments([(r, False, False) for r in runs])
            if fragments is None:
                return None
            granules += fragments
        return granules

    def _fragments(
        self, fragments: Iterable[tuple[bytes | None, bool, bool]]
    ) -> Sequence[np.ndarray] | None:
        """Return one mask, in a list, of the granules that may have a text with all of the fragments. Each fragment is
        (text, whether it is at the text's start, whether at its end). None if they tell nothing."""
        masks: list[np.ndarray] = []
        for fragment, starts, ends in fragments:
            text = self._part(fragment)
            if text is None:
                return None
            tokens = self._tokenizer.of_fragment(text, from_start=starts, to_end=ends)
            if tokens:
                masks.append(self._index.of_all(tokens))
            elif self._tokenizer.name == "splitByNonAlpha" and _WORD.fullmatch(text):
                masks.append(self._index.of_marked(self._with_part(text, starts, ends)))
        return [np.logical_and.reduce(masks)] if masks else None

    def _folded_parts(
        self, fragments: Iterable[tuple[bytes, bool, bool]]
    ) -> Sequence[np.ndarray] | None:
        """Return one mask, in a list, of the granules that may have a text with all of these words or parts of words,
        whatever the case of their letters; None if they tell nothing. Only ASCII is folded. K and S are left out: other
        characters have them as lower case."""
        if self._tokenizer.name != "splitByNonAlpha":
            return None
        words = [text.lower() for text, _, _ in fragments if _FOLDED_WORD.fullmatch(text)]
        if not words or not self._is_bytewise:
            return None
        lowered = columns.binary(pc.ascii_lower(columns.text(self._index.tokens)))
        masks = [self._index.of_marked(pc.match_substring(lowered, word)) for word in words]
        return [np.logical_and.reduce(masks)]

    @property
    def _is_bytewise(self) -> bool:
        """Return whether the index has each part of a text at the same place in the preprocessed text: preprocessing
        changes characters one by one, or the text is preprocessed already."""
        return not self._raw or is_bytewise(self._definition)

    def _part(self, text: bytes | None) -> bytes | None:
        """Return the part of a text as the index has it; None if that is not known."""
        if text is None or not self._is_bytewise:
            return None
        return preprocessed_text(self._definition, text) if self._raw else text

    def _with_part(self, text: bytes, starts: bool, ends: bool) -> pa.Array:
        """Return which tokens contain the text, or begin or end with it; a boolean array."""
        tokens = self._index.tokens
        if starts:
            return pc.starts_with(tokens, pattern=text)
        if ends:
            return pc.ends_with(tokens, pattern=text)
        return pc.match_substring(tokens, pattern=text)


def literal_runs(pattern: bytes) -> list[bytes] | None:
    """Return texts that every match of a regular expression (RE2) contains; None if alternatives or
    groups make that hard to tell."""
    runs, run = [], bytearray()
    at = 0

    def end_run() -> None:
        """Append the run of literal bytes read so far to the result, and begin another one."""
        runs.append(bytes(run))
        run.clear()

    while at < len(pattern):
        byte = pattern[at : at + 1]
        at += 1
        if byte in b"|(){}":
            return None
        if byte in b".^$":
            end_run()
        elif byte == b"[":
            closing = pattern.find(b"]", at + 1 + (pattern[at : at + 1] == b"^"))
            if closing < 0 or b"[" in pattern[at:closing]:
                return None
            end_run()
            at = closing + 1
        elif byte in b"*?":
            while run and 0x80 <= run[-1] < 0xC0:
                del run[-1]
            del run[-1:]  # the last character may be absent
            end_run()
        elif byte == b"+":
            end_run()
        elif byte == b"\\":
            escaped = pattern[at : at + 1]
            at += 1
            if not escaped or escaped.isalnum() or escaped[0] >= 0x80:
                if escaped not in _CLASSES:
                    return None
                end_run()
            else:
                run += escaped
        else:
            run += byte
    end_run()
    return [run for run in runs if run]


_CLASSES = (b"d", b"D", b"w", b"W", b"s", b"S", b"b", b"B")


def _reads_a_list(condition: Expression) -> bool:
    """Return whether the condition's column is an array."""
    return any(
        isinstance(part, ColumnRef) and pa.types.is_list(part.type.arrow)
        for part in walk(condition)
    )


def _text(expression: Expression) -> bytes | None:
    """Return the bytes of a constant String; None for anything else."""
    if not isinstance(expression, Constant) or not expression.value.is_valid:
        return None
    value = expression.value
    if pa.types.is_string(value.type):
        value = value.cast(pa.binary())  # as_py() of a text that is not UTF-8 raises
    return _bytes(value.as_py()) if pa.types.is_binary(value.type) else None


def _texts(expression: Expression) -> list[bytes] | None:
    """Return the bytes of a constant array of texts; None for anything else."""
    if not isinstance(expression, Constant) or not pa.types.is_list(expression.value.type):
        return None
    if not expression.value.is_valid:
        return None
    texts = [_bytes(text) for text in _binary(expression.value.values).to_pylist()]
    known = [text for text in texts if text is not None]
    return known if len(known) == len(texts) else None


def _binary(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return texts as binary values: they need not be UTF-8."""
    return values.cast(pa.binary()) if pa.types.is_string(values.type) else values


def _bytes(value: object) -> bytes | None:
    """Return a text as bytes; None for another value."""
    return value if isinstance(value, bytes) else None
