"""Functions that change letters or their order: lower, upper, initcap, reverse."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


_SPECIAL_SMALL = (
    "[\u00df\u0149\u01f0\u0390\u03b0\u0587\u1e96-\u1e9a\u1f50\u1f52\u1f54\u1f56"
    "\u1f80-\u1faf\u1fb2-\u1fb4\u1fb6\u1fb7\u1fbc\u1fc2-\u1fc4\u1fc6\u1fc7\u1fcc"
    "\u1fd2\u1fd3\u1fd6\u1fd7\u1fe2-\u1fe4\u1fe6\u1fe7\u1ff2-\u1ff4\u1ff6\u1ff7\u1ffc"
    "\ufb00-\ufb06\ufb13-\ufb17]"
)
"""Letters whose capital is several letters, as SS is that of the sharp s (Unicode, SpecialCasing.txt)."""
_SPECIAL_CAPITALS = "[\u0130\u03a3]"
"""Capitals whose small letter is several characters, or depends on its place in the word: sigma."""


def _with_special_letters(
    change: Callable[[pa.Array], pa.Array], letters: str, exact: Callable[[str], str]
) -> Callable[[pa.Array], pa.Array]:
    """Return a function of texts that applies `change`, and `exact` to each distinct text that has any of the
    special `letters`. Bytes that are not UTF-8 stay as they are."""

    def of_bytes(text: bytes) -> bytes:
        """Apply `exact` to what is UTF-8 in a text."""
        return exact(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def changed(texts: pa.Array) -> pa.Array:
        """Apply `change` to all texts, then `exact` to those with special letters."""
        try:
            simple = change(texts)
        except pa.ArrowInvalid:  # some are not UTF-8
            encoded = texts.cast(pa.binary()).dictionary_encode()
            values = pa.array([of_bytes(t) for t in encoded.dictionary.to_pylist()], pa.binary())
            return values.take(encoded.indices).view(texts.type)
        special = pc.match_substring_regex(texts, pattern=letters)
        if not pc.any(special).as_py():
            return simple
        encoded = texts.filter(special).dictionary_encode()
        values = pa.array([exact(text) for text in encoded.dictionary.to_pylist()], texts.type)
        return pc.replace_with_mask(simple, special, values.take(encoded.indices))

    return changed


_upper_utf8 = _with_special_letters(pc.utf8_upper, _SPECIAL_SMALL, str.upper)
_lower_utf8 = _with_special_letters(pc.utf8_lower, _SPECIAL_CAPITALS, str.lower)
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
    scalar.define("lowerUTF8", _ONE_TEXT, text_kernel(_lower_utf8)),
    scalar.define("upperUTF8", _ONE_TEXT, text_kernel(_upper_utf8)),
    scalar.define("reverse", _reverse_rule, _same_length(_reverse), insensitive=True),
    scalar.define("reverseUTF8", _ONE_TEXT, text_kernel(pc.utf8_reverse)),
    scalar.define("initcap", _letters_rule, _same_length(text_kernel(_initcap)), insensitive=True),
)
