"""Conversions to and from Enum8 and Enum16, and texts in their place."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.casts import numbers
from olapdb.functions.casts.numbers import first_bad
from olapdb.functions.kernels import columns
from olapdb.functions.scalar import ScalarDefinition
from olapdb.functions.strings.rendering import display_array
from olapdb.types.arrow import enum_texts
from olapdb.types.arrow_values import to_numpy

_WHOLE_NUMBER = r"^[+-]?[0-9]{1,18}$"


def to_enum(array: pa.Array, source: types.DataType, target: types.Enum) -> pa.Array:
    """Convert texts, numbers and other Enums, without nulls, to an Enum.

    A text is an element's text or, where it is none, an element's number. Raises
    UnknownElementOfEnum with its row for a value that the Enum lacks, and CannotConvertType where
    two Enums give one text different numbers.
    """
    match source:
        case types.String() | types.FixedString():
            return _from_texts(columns.unpadded(array), target)
        case types.Enum():
            _check_same_numbers(source, target)
            return _from_numbers(array, source, target)
        case _:
            return _from_numbers(numbers.to_integer(array, source, types.INT64), source, target)


def _check_same_numbers(source: types.Enum, target: types.Enum) -> None:
    """Raise CannotConvertType if a text of both Enums has different numbers."""
    wanted = dict(target.elements)
    for text, number in source.elements:
        if wanted.get(text, number) != number:
            raise errors.CannotConvertType(
                f"Enum conversion changes the number of element {text!r} from {number} to"
                f" {wanted[text]}.",
                hint="Cast to String first: toString(x)::Enum8(…).",
            )


def _from_numbers(array: pa.Array, source: types.DataType, target: types.Enum) -> pa.Array:
    """Return integers as numbers of the Enum; raise UnknownElementOfEnum for the first that it
    lacks."""
    known = pa.array([number for _, number in target.elements], pa.int64())
    bad = first_bad(~to_numpy(pc.is_in(array.cast(pa.int64()), known)))
    if bad is not None:
        raise errors.UnknownElementOfEnum(
            f"Unexpected value {array[bad].as_py()} in {target}.", hint=_elements(target)
        ).at_row(bad)
    return columns.wrapped(array, target.arrow)


def _from_texts(array: pa.Array, target: types.Enum) -> pa.Array:
    """Return texts as numbers of the Enum; raise UnknownElementOfEnum with its row for the first that is neither an
    element nor an element's number."""
    encoded = array.dictionary_encode()
    texts = encoded.dictionary
    places = pc.index_in(texts, pa.array([text for text, _ in target.elements]))
    by_text = pa.array([number for _, number in target.elements], target.arrow).take(places)
    if by_text.null_count:
        by_text = pc.coalesce(by_text, _written_numbers(texts, target))
    by_row = by_text.take(encoded.indices)
    bad = first_bad(to_numpy(by_row.is_null()))
    if bad is not None:
        text = display_array(array.slice(bad, 1), types.STRING)[0].as_py()
        raise errors.UnknownElementOfEnum(
            f"Unknown element {text!r} for {target}.", hint=_nearest(text, target)
        ).at_row(bad)
    return by_row


def _written_numbers(texts: pa.Array, target: types.Enum) -> pa.Array:
    """Return the Enum's numbers that texts such as '3' spell; NULL for a text that spells none of them."""
    whole = pc.match_substring_regex(texts, _WHOLE_NUMBER)
    digits = pc.utf8_ltrim(pc.if_else(whole, texts, pa.scalar(None, pa.string())), "+")
    spelt = digits.cast(pa.int64())
    known = pc.is_in(spelt, pa.array([number for _, number in target.elements], pa.int64()))
    return pc.if_else(known, spelt, pa.scalar(None, pa.int64())).cast(target.arrow)


def _nearest(text: str, target: types.Enum) -> str:
    """Return a hint that names the element most like `text`, or lists the first elements if none is like it."""
    close = difflib.get_close_matches(text, [known for known, _ in target.elements], 1)
    return f"Maybe you meant {close[0]!r}." if close else _elements(target)


_SHOWN_ELEMENTS = 20


def _elements(target: types.Enum) -> str:
    """Return a hint that lists the first elements of the Enum."""
    shown = ", ".join(f"{text!r} = {number}" for text, number in target.elements[:_SHOWN_ELEMENTS])
    more = len(target.elements) - _SHOWN_ELEMENTS
    return f"It has {shown}{f' and {more} more' if more > 0 else ''}."


def reading_enums(definition: ScalarDefinition) -> ScalarDefinition:
    """Return a function of texts that takes Enums too: it sees their elements' texts."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call with a String in place of each Enum; its kernel converts Enums to texts."""
        kinds = [types.plain(argument.type) for argument in arguments]
        if not any(isinstance(kind, types.Enum) for kind in kinds):
            return definition.resolver(name, arguments)
        texts = [
            _as_text(argument) if isinstance(kind, types.Enum) else argument
            for argument, kind in zip(arguments, kinds, strict=True)
        ]
        call = definition.resolver(name, texts)

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Run the function on the Enums' texts."""
            read = [_texts(value, kind) for value, kind in zip(values, kinds, strict=True)]
            return call.kernel(read, rows, environment)

        return replace(call, kernel=kernel, monotonic=False)

    return replace(definition, resolver=resolve)


def _as_text(argument: Argument) -> Argument:
    """Return an Enum argument as a String argument, Nullable where the Enum is; any other argument as given."""
    kind = types.plain(argument.type)
    text = types.Nullable(types.STRING) if types.is_nullable(argument.type) else types.STRING
    value = argument.constant
    return Argument(text, None if value is None else _scalar_text(value, kind))


def _texts(column: Column, kind: types.DataType) -> Column:
    """Return an Enum's texts, any other column as given."""
    if not isinstance(kind, types.Enum):
        return column
    return _scalar_text(column, kind) if isinstance(column, pa.Scalar) else enum_texts(column, kind)


def _scalar_text(value: pa.Scalar, kind: types.DataType) -> pa.Scalar:
    """Return the text of a constant Enum."""
    assert isinstance(kind, types.Enum)
    return enum_texts(columns.single(value), kind)[0]
