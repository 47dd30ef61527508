"""concat, concatWithSeparator and format: strings joined from several values."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, BadGet
from olapdb.functions import composition, scalar
from olapdb.functions.arrays.construction import resolve_concatenation
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.strings import rendering
from olapdb.functions.strings.arguments import TEXT_TYPES
from olapdb.types import STRING, Array, DataType, Map, Tuple, plain


def display_as_text(array: pa.Array, data_type: DataType, call: scalar.Invocation) -> pa.Array:
    """Return values of any type as text, as toString does, but keep a FixedString's zero bytes."""
    return rendering.display_array(array, data_type, call.environment.zone)


def _concat(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve concat: join values as text, but arrays as arrays, tuples as tuples and maps as maps."""
    if arguments and all(isinstance(plain(a.type), Array) for a in arguments):
        return resolve_concatenation(name, arguments)
    for kind, joined in ((Tuple, "tupleConcat"), (Map, "mapConcat")):
        if arguments and all(isinstance(plain(a.type), kind) for a in arguments):
            return composition.as_call(
                name, composition.call(joined, *composition.parts_of(arguments))
            )

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Join the values of each row as text."""
        texts = [display_as_text(a, t, call) for a, t in zip(arrays, call.types, strict=True)]
        return pc.binary_join_element_wise(*texts, "") if len(texts) > 1 else texts[0]

    if not arguments:
        return ScalarCall(name, STRING, lambda v, r, e: pa.scalar(""))
    return scalar.standard_call(name, arguments, STRING, kernel)


def _concat_with(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Join the values of each row as text, with the first argument between them: the kernel of concatWithSeparator."""
    texts = [display_as_text(a, t, call) for a, t in zip(arrays[1:], call.types[1:], strict=True)]
    if not texts:
        return pa.array([""] * call.rows, pa.string())
    return pc.binary_join_element_wise(*texts, columns.text(arrays[0]))


def _text_first_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless the first argument is a string."""
    scalar.require(name, types[:1], TEXT_TYPES, "a String")
    return STRING


def _format(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve format(pattern, …): replace {} and {n} of a constant pattern by values as text. Raises BadGet for a
    constant number in place of the pattern, else IllegalTypeOfArgument."""
    template = arguments[0].constant.as_py() if arguments[0].constant is not None else None
    if isinstance(template, int | float):
        raise BadGet(f"The pattern of {name} is a text, not {arguments[0].type}.")
    if not isinstance(template, str):
        raise scalar.illegal(name, arguments[0].type, "a constant pattern")
    pieces = _parse_template(template, len(arguments) - 1)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Join the pattern's texts and the arguments' texts in the pattern's order."""
        texts = [
            pa.repeat(pa.scalar(p), call.rows)
            if isinstance(p, str)
            else display_as_text(arrays[p + 1], call.types[p + 1], call)
            for p in pieces
        ]
        return pc.binary_join_element_wise(*texts, "") if len(texts) > 1 else texts[0]

    return scalar.standard_call(name, arguments, STRING, kernel)


def _parse_template(template: str, count: int) -> list[str | int]:
    """Return the pieces of a format pattern: texts, and indices of `count` arguments from 0.

    Raises BadArguments if the pattern names an argument that is not there, has a single brace, or
    both {} and {n}."""
    pieces: list[str | int] = []
    next_index = 0
    numbered: set[bool] = set()
    for piece in re.split(r"(\{\{|\}\}|\{\d*\})", template):
        if piece in ("{{", "}}"):
            pieces.append(piece[0])
        elif re.fullmatch(r"\{\d*\}", piece):
            numbered.add(piece != "{}")
            index = int(piece[1:-1]) if piece != "{}" else next_index
            next_index += 1
            if index >= count:
                raise BadArguments(f"The pattern {template!r} needs more arguments.")
            pieces.append(index)
        elif "{" in piece or "}" in piece:
            raise BadArguments(f"A brace of the pattern {template!r} is not one of {{}} or {{n}}.")
        elif piece:
            pieces.append(piece)
    if len(numbered) > 1:
        raise BadArguments(f"The pattern {template!r} has both {{}} and {{n}}.")
    return pieces or [""]


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("concat", _concat, count=(0, None), insensitive=True),
    scalar.custom("concatAssumeInjective", _concat, count=(0, None)),
    scalar.define(
        "concatWithSeparator",
        _text_first_rule,
        _concat_with,
        count=(1, None),
        aliases=("concat_ws",),
        insensitive=True,
    ),
    scalar.define(
        "concatWithSeparatorAssumeInjective", _text_first_rule, _concat_with, count=(1, None)
    ),
    scalar.custom("format", _format, count=(1, None)),
)
