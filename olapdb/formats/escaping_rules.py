"""Values as an escaping rule writes them: Escaped, Quoted, CSV, JSON or Raw."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.formats.base import Input
from olapdb.formats.inference import Guess
from olapdb.formats.json_read import column_of_tokens, index_of, inferred_type
from olapdb.formats.nested_inference import type_of_values
from olapdb.formats.texts import is_text
from olapdb.functions.kernels import regexes
from olapdb.functions.kernels.escapes import unescaped

_STRING = types.Nullable(types.STRING)
VALUE_PATTERNS = {
    "Escaped": r"(?:[^\\]|\\.)*?",
    "Quoted": r"'(?:[^'\\]|\\.)*'|(?:[^'\\]|'(?:[^'\\]|\\.)*')*?",
    "CSV": r'"(?:[^"]|"")*"|[^"]*?',
    "JSON": r'"(?:[^"\\]|\\.)*"|(?:[^"\\]|"(?:[^"\\]|\\.)*")*?',
    "Raw": r".*?",
}
"""What a value of each rule is, as a regular expression of RE2."""


def read_values(
    texts: pa.Array, target: types.DataType | None, rule: str, source: Input, first_row: int
) -> tuple[pa.Array, types.DataType]:
    """Decode texts that the escaping rule wrote; return the values and their type; NULL is null. Raises IncorrectData
    for a text that the rule cannot write."""
    match rule:
        case "JSON":
            index = index_of(texts, first_row)
            kind = target or inferred_type(index, index.root, source)
            return column_of_tokens(index, index.root, kind, source)
        case "Escaped":
            null = source.settings.text("format_tsv_null_representation")
            plain = unescaped(texts) if target is None or is_text(target) else texts
            return _with_nulls(plain, pc.equal(texts, null)), _STRING
        case "CSV":
            null = source.settings.text("format_csv_null_representation")
            inner = _within(texts, '"')
            plain = pc.if_else(
                pc.starts_with(texts, '"'), pc.replace_substring(inner, '""', '"'), texts
            )
            return _with_nulls(plain, pc.equal(texts, null)), _STRING
        case "Quoted":
            quoted = pc.starts_with(texts, "'")
            if target is not None and is_text(target):
                is_null = pc.equal(pc.utf8_upper(texts), "NULL")
                if not pc.all(pc.or_(quoted, is_null), min_count=0).as_py():
                    raise errors.CannotParseQuotedString(
                        f"A text of column type {target} stands in no quotes."
                    )
            plain = pc.if_else(quoted, unescaped(_within(texts, "'")), texts)
            return _with_nulls(plain, pc.equal(pc.utf8_upper(texts), "NULL")), _STRING
        case _:
            null = source.settings.text("format_tsv_null_representation")
            return _with_nulls(texts, pc.equal(texts, null)), _STRING


def infer_values(texts: pa.Array, rule: str, source: Input) -> types.DataType:
    """Infer the type of a column's texts under the escaping rule; quoted texts are not numbers."""
    if rule == "JSON":
        index = index_of(texts, 1)
        return inferred_type(index, index.root, source)
    values, _ = read_values(texts, None, rule, source, 1)
    is_quoted = (
        rule in ("CSV", "Quoted") and pc.any(pc.match_substring_regex(texts, "^['\"]")).as_py()
    )
    data_type = type_of_values(values, Guess.of(source.settings), numbers=not is_quoted)
    return types.make_nullable(data_type or types.STRING)


def _within(texts: pa.Array, quote: str) -> pa.Array:
    """Return texts without their first and last character, which are quotes."""
    return regexes.replaced(texts, f"^{quote}|{quote}$", "")


def _with_nulls(texts: pa.Array, is_null: pa.Array) -> pa.Array:
    """Return the texts, null where the mask `is_null` is True."""
    if not pc.any(is_null, min_count=0).as_py():
        return texts
    return pc.if_else(is_null, pa.scalar(None, pa.string()), texts)
