"""Functions that change letters or their order: lower, upper, initcap, reverse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions import scalar
from olapdb.functions.arrays.ordering import reverse_lists
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.strings.arguments import TEXT_TYPES, text_kernel, text_rule
from olapdb.types import STRING, Array, DataType, FixedString, Tuple


def _reverse_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return the type of an Array, a Tuple's with its elements reversed, FixedString for a
    FixedString, else String; raise IllegalTypeOfArgument for others."""
    scalar.require(name, types, (*TEXT_TYPES, Array, Tuple), "a String, Array or Tuple")
    if isinstance(types[0], Tuple):
        return Tuple(types[0].elements[::-1], types[0].names[::-1])
    return types[0] if isinstance(types[0], Array) else _same_length_type(types[0])


def _letters_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return FixedString for a FixedString, else String; raise IllegalTypeOfArgument for others."""
    scalar.require(name, types, TEXT_TYPES, "a String")
    return _same_length_type(types[0])


def _same_length_type(data_type: DataType) -> DataType:
    """Return the type of a string of the same length: a FixedString stays one, other types become
    String."""
    return data_type if isinstance(data_type, FixedString) else STRING


def _same_length(kernel: scalar.Kernel) -> scalar.Kernel:
    """Return the kernel with its result converted to FixedString where the call returns one."""

    def sized(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Run the kernel and convert its result to the FixedString that the call returns."""
        changed = kernel(arrays, call)
        if isinstance(call.result, FixedString):
            return columns.binary(changed).cast(call.result.arrow)
        return changed

    return sized


def _reverse(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Reverse the bytes of strings, or the elements of arrays and tuples."""
    if isinstance(call.types[0], Array):
        return reverse_lists(arrays[0])
    if isinstance(call.types[0], Tuple):
        fields = columns.struct_fields(arrays[0])[::-1]
        return columns.structs_from(fields, call.result.arrow, rows=len(arrays[0]))
    offsets, data = columns.bytes_of(columns.binary(arrays[0]))
    owners = columns.parents_of(offsets)
    order = offsets[owners] + offsets[owners + 1] - 1 - np.arange(len(data))
    return columns.strings_from(offsets, data[order])


def _initcap(array: pa.Array) -> pa.Array:
    """Return texts with the first letter of each word in upper case and other letters in lower
    case.

    Words consist of ASCII letters and digits.
    """
    offsets, data = columns.bytes_of(columns.binary(pc.ascii_lower(array)))
    letters = (data >= ord("a")) & (data <= ord("z"))
    in_word = letters | ((data >= ord("0")) & (data <= ord("9")))
    begins = in_word.copy()
    begins[1:] &= ~in_word[:-1]
    text_starts = offsets[:-1][np.diff(offsets) > 0]
    begins[text_starts] = in_word[text_starts]
    return columns.strings_from(offsets, np.where(begins & letters, data - 32, data))


_ONE_TEXT, _TWO = text_rule(STRING), text_rule(STRING, 2)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define(
        "lower",
        _letters_rule,
        _same_length(text_kernel(pc.ascii_lower)),
        aliases=("lcase",),
        insensitive=True,
    ),
    scalar.define(
        "upper",
        _letters_rule,
        _same_length(text_kernel(pc.ascii_upper)),
        aliases=("ucase",),
        insensitive=True,
    ),
    scalar.define("lowerUTF8", _ONE_TEXT, text_kernel(pc.utf8_lower)),
    scalar.define("upperUTF8", _ONE_TEXT, text_kernel(pc.utf8_upper)),
    scalar.define("reverse", _reverse_rule, _same_length(_reverse), insensitive=True),
    scalar.define("reverseUTF8", _ONE_TEXT, text_kernel(pc.utf8_reverse)),
    scalar.define("initcap", _letters_rule, _same_length(text_kernel(_initcap)), insensitive=True),
)
