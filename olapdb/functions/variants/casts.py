"""CAST to and from a Variant."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors, types
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.strings.rendering import display_array
from olapdb.functions.variants import texts as variant_texts
from olapdb.functions.variants.values import (
    alternatives_of,
    assembled,
    gathered,
    numbers_of,
    of_one,
)
from olapdb.types.variant import NUMBER

Convert: TypeAlias = Callable[[pa.Array, types.DataType, types.DataType], pa.Array]
"""A cast: (array, source, target) to the converted array."""


def convert(
    array: pa.Array,
    source: types.DataType,
    target: types.DataType,
    cast: Convert,
    parse: variant_texts.Parse | None,
    *,
    keeps_null: bool,
) -> pa.Array:
    """Return a column as values of `target`, where one of the types is a Variant.

    `cast` converts the values of alternatives, `parse` reads texts; without it they are Strings. NULL becomes the default of a target
    without NULL unless `keeps_null`. Raises CannotConvertType for types that do not fit, IncorrectData for a text
    that no alternative reads, and the errors of `cast`."""
    if not isinstance(target, types.Variant):
        assert isinstance(source, types.Variant)
        return _from_variant(array, source, target, cast, keeps_null)
    if isinstance(source, types.Variant):
        return _extended(array, source, target)
    return to_variant(array, source, target, cast, parse)


def _from_variant(
    array: pa.Array, source: types.Variant, target: types.DataType, cast: Convert, keeps_null: bool
) -> pa.Array:
    """Return the values of each alternative cast to `target`. A type that does not convert is an error even if no
    row has it. `keeps_null` as in `convert`."""
    for (
        alternative
    ) in source.alternatives:  # a type that does not convert is an error without rows too
        cast(pa.nulls(0, alternative.arrow), alternative, target)
    return from_variant(array, source, target, cast, keeps_null=keeps_null)


def from_variant(
    array: pa.Array,
    source: types.Variant,
    target: types.DataType,
    cast: Convert,
    *,
    keeps_null: bool = False,
) -> pa.Array:
    """Return the values of each alternative that occurs, cast to `target`.

    NULL becomes the target's default unless `keeps_null`."""
    read = gathered(array, source, lambda values, t: cast(values, t, target), target.arrow)
    if keeps_null or types.is_nullable(target) or not read.null_count:
        return read
    missing = columns.as_array(default_value(target), len(read))
    if pa.types.is_nested(read.type):
        places = np.where(np.asarray(read.is_null()), len(read), 0) + np.arange(len(read))
        return pa.concat_arrays([read, missing]).take(pa.array(places))
    return pc.if_else(read.is_valid(), read, missing)


def _extended(array: pa.Array, source: types.Variant, target: types.Variant) -> pa.Array:
    """Return a column as one of a Variant that has all its alternatives and more; raise CannotConvertType if it
    lacks one."""
    places = [target.place_of(name) for name in source.field_names]
    if None in places:
        raise errors.CannotConvertType(
            f"Cannot convert {source} to {target}, which lacks some of its types.",
            hint="Take one type by variantElement(v, 'Type'), or cast to a type that is no Variant.",
        )
    known = np.array([*places, *[255] * (256 - len(places))], np.uint8)
    values = {
        int(known[alternative.place]): alternative.values
        for alternative in alternatives_of(array, source)
    }
    return assembled(target, known[numbers_of(array)], values)


def place_for(source: types.DataType, target: types.Variant) -> int | None:
    """Return the place of the alternative that holds values of type `source` unchanged; None if there is none."""
    plain = types.plain(source)
    for name in (source.name, plain.name):
        place = target.place_of(name)
        if place is not None:
            return place
    alike = [at for at, t in enumerate(target.alternatives) if types.plain(t) == plain]
    return alike[0] if alike else None


def to_variant(
    array: pa.Array,
    source: types.DataType,
    target: types.Variant,
    cast: Convert,
    parse: variant_texts.Parse | None,
) -> pa.Array:
    """Return values as those of a Variant: texts are parsed, other values keep their type, which must be an
    alternative.

    Without `parse`, texts keep their type too, but not those of a LowCardinality. A tuple whose element names are
    those of the alternatives is the Arrow form of the Variant. Raises CannotConvertType and IncorrectData."""
    plain = types.plain(source)
    if isinstance(plain, types.Nothing):
        return pa.nulls(len(array), target.arrow)
    if parse is not None and isinstance(plain, types.String | types.FixedString):
        return _of_texts(columns.unpadded(array), target, parse)
    is_coded = parse is None and isinstance(source, types.LowCardinality)
    place = None if is_coded else place_for(source, target)
    if place is not None:
        return of_one(target, place, array)
    if isinstance(plain, types.Tuple) and plain.names in (
        (NUMBER, *target.field_names),
        target.field_names,
    ):
        return _of_fields(array, plain, target, cast)
    raise errors.CannotConvertType(
        f"Cannot convert {source} to {target}, of which it is no type.",
        hint="Cast it to one of the types first.",
    )


def _of_texts(array: pa.Array, target: types.Variant, parse: variant_texts.Parse) -> pa.Array:
    """Return each text as a value of the first alternative that reads it; NULL for the text "NULL". Raise IncorrectData
    for one that none reads."""
    is_word = pc.fill_null(pc.equal(array, "NULL"), False)
    if pc.any(is_word).as_py():
        array = pc.if_else(is_word, pa.scalar(None, array.type), array)
    read = variant_texts.of_texts(array, target, parse, variant_texts.text_order(target))
    error = variant_texts.refuse_unread(array, read, target)
    if error is not None:
        raise error
    return read


def _of_fields(
    array: pa.Array, source: types.Tuple, target: types.Variant, cast: Convert
) -> pa.Array:
    """Return structs with a field for each alternative as values of the Variant; raise IncorrectData for a row in
    which several fields are not NULL."""
    fields = dict(
        zip(
            source.names,
            zip(columns.struct_fields(array), source.elements, strict=True),
            strict=True,
        )
    )
    numbers = np.full(len(array), 255, np.uint8)
    values: dict[int, pa.Array] = {}
    for place, alternative in enumerate(target.alternatives):
        field, kind = fields[alternative.name]
        present = np.asarray(field.is_valid())
        several = present & (numbers != 255)
        if several.any():
            raise errors.IncorrectData(
                f"A row has several values for {target}, which has one."
            ).at_row(int(np.argmax(several)))
        numbers[present] = place
        values[place] = cast(field.drop_null(), kind, alternative)
    return assembled(target, numbers, values)


def of_literals(
    array: pa.Array, source: types.DataType, target: types.Variant, parse: variant_texts.Parse
) -> pa.Array:
    """Return constants of an INSERT, all of one type, as values of a Variant.

    A value keeps its type if that is an alternative; but numbers and texts, and values of other types, go to the
    first alternative that reads their text. Raises IncorrectData for one that no alternative reads."""
    plain = types.plain(source)
    if isinstance(plain, types.Nothing | types.Variant):
        return (
            to_variant(array, source, target, lambda a, s, t: a, parse)
            if isinstance(plain, types.Nothing)
            else _extended(array, plain, target)
        )
    is_read = isinstance(plain, types.String) or types.is_number(plain)
    place = None if is_read else place_for(source, target)
    if place is not None:
        return of_one(target, place, array)
    shown = display_array(array, plain)
    order = variant_texts.literal_order(target, plain)
    read = variant_texts.of_texts(shown, target, parse, order)
    error = variant_texts.refuse_unread(shown, read, target)
    if error is not None:
        raise error
    return read
