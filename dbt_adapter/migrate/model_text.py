"""The text of a model, divided into config call, Jinja and SQL without running dbt.

For the analysis Jinja becomes SQL that means the same: `{{ ref('a') }}` the table `a` of a database
of its own, `{{ source('s', 't') }}` the table `s`.`t`, and any other expression a column. Blocks of
`{% if is_incremental() %}` are left out: they say how rows are added, not what the model is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from olapdb.errors import Error
from olapdb.sql import nodes
from olapdb.sql.parser import parse_query

REF_DATABASE = "__ref"
"""The database of the tables that stand for refs while a model is analysed."""

_CONFIG = re.compile(r"\{\{-?\s*config\s*\(")
_COMMENT = re.compile(r"\{#.*?#\}", re.S)
_EXPRESSION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.S)
_REF = re.compile(r"^ref\(\s*(?:['\"][^'\"]+['\"]\s*,\s*)?['\"]([^'\"]+)['\"]")
_SOURCE = re.compile(r"^source\(\s*['\"]([^'\"]+)['\"]\s*,\s*['\"]([^'\"]+)['\"]\s*\)$")
_IF_INCREMENTAL = re.compile(
    r"\{%-?\s*if\s+is_incremental\(\)\s*-?%\}(.*?)"
    r"(?:\{%-?\s*else\s*-?%\}(.*?))?\{%-?\s*endif\s*-?%\}",
    re.S,
)
_STATEMENT = re.compile(r"\{%-?\s*(\w+).*?-?%\}", re.S)
_HARMLESS = frozenset({"set", "endset", "do"})
_CONSTANTS = {"true": True, "false": False, "none": None}


@dataclass(frozen=True)
class ConfigCall:
    """The `{{ config(…) }}` of a model: where it stands, and its arguments as texts and as values.

    `values` has only the arguments that are constants; `start` and `end` are 0 without a call."""

    start: int
    end: int
    texts: Mapping[str, str]
    values: Mapping[str, object]


def config_call(text: str) -> ConfigCall:
    """Return the first config call of a model's text. Raises ValueError if it cannot be read."""
    match = _CONFIG.search(text)
    if match is None:
        return ConfigCall(0, 0, {}, {})
    close = _closing(text, match.end() - 1)
    end = text.find("}}", close)
    if close < 0 or end < 0:
        raise ValueError("its config(…) has no end")
    call_text = "config" + text[match.end() - 1 : close + 1]
    try:
        call = ast.parse(call_text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"its config(…) cannot be read: {error.msg}") from error
    assert isinstance(call, ast.Call)
    texts: dict[str, str] = {}
    values: dict[str, object] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise ValueError("its config(…) has arguments by **, which cannot be read")
        texts[keyword.arg] = ast.get_source_segment(call_text, keyword.value) or ""
        known, value = _constant(keyword.value)
        if known:
            values[keyword.arg] = value
    return ConfigCall(match.start(), end + 2, texts, values)


def _closing(text: str, opening: int) -> int:
    """Return the position of the parenthesis that closes the one at `opening`, -1 if none does."""
    depth, quote, position = 0, "", opening
    while position < len(text):
        character = text[position]
        if quote:
            if character == "\\":
                position += 1
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth == 0:
                return position
        position += 1
    return -1


def _constant(node: ast.expr) -> tuple[bool, object]:
    """Return (True, value) of a constant, with Jinja's true, false and none; else (False, None)."""
    if isinstance(node, ast.Name) and node.id in _CONSTANTS:
        return True, _CONSTANTS[node.id]
    if isinstance(node, ast.List | ast.Tuple):
        items = [_constant(item) for item in node.elts]
        return all(known for known, _ in items), [value for _, value in items]
    if isinstance(node, ast.Dict):
        keys = [_constant(key) if key is not None else (False, None) for key in node.keys]
        values = [_constant(value) for value in node.values]
        known = all(k for k, _ in (*keys, *values))
        return known, {
            str(key): value for (_, key), (_, value) in zip(keys, values, strict=True)
        } if known else None
    try:
        return True, ast.literal_eval(node)
    except ValueError:
        return False, None


def parsed(text: str, call: ConfigCall) -> nodes.Query:
    """Return the model's query, with Jinja replaced as the module says.

    Raises ValueError with the reason if it cannot be analysed."""
    sql = _COMMENT.sub(" ", text[: call.start] + text[call.end :])
    sql = _IF_INCREMENTAL.sub(lambda m: m[2] or " ", sql)
    for statement in _STATEMENT.finditer(sql):
        if statement[1] not in _HARMLESS:
            raise ValueError(f"its SQL is made by Jinja ({{% {statement[1]} … %}})")
    sql = _EXPRESSION.sub(_stand_in, _STATEMENT.sub(" ", sql))
    try:
        return parse_query(sql.strip().rstrip(";"))
    except Error as error:
        raise ValueError(f"its SQL does not parse: {error}") from error


def _stand_in(match: re.Match[str]) -> str:
    """Return the SQL that stands for a Jinja expression."""
    expression = match[1]
    if expression == "this":
        return f"`{REF_DATABASE}`.`__this`"
    ref, source = _REF.match(expression), _SOURCE.match(expression)
    if ref is not None:
        return f"`{REF_DATABASE}`.`{ref[1]}`"
    if source is not None:
        return f"`{source[1]}`.`{source[2]}`"
    return "__jinja"
