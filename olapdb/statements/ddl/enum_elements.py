"""The type of a column after MODIFY COLUMN … ADD ENUM VALUES."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from olapdb import errors
from olapdb.model.schema import Column
from olapdb.sql import nodes
from olapdb.types import DataType, Enum, LowCardinality, Nullable


def with_enum_elements(column: Column, action: nodes.ModifyColumn) -> DataType:
    """Return the column's type with the elements of the action added to its Enum. Elements that the
    Enum has may be named again with their numbers.

    An element without a number gets the number after that of the preceding one in the action; the
    first one gets the number after the largest of the Enum. Raises IllegalColumn for a column that
    is no Enum, BadArguments for a text or a number that is taken, ArgumentOutOfBound for a number
    beyond the type, and SyntaxError for a text twice."""
    try:
        return _extended(column.type, action.elements)
    except errors.Error as error:
        raise error.at(action.position) from None


def _extended(data_type: DataType, added: Sequence[tuple[str, int | None]]) -> DataType:
    """Return the type with more elements in its Enum."""
    if isinstance(data_type, Nullable | LowCardinality):
        return replace(data_type, inner=_extended(data_type.inner, added))
    if not isinstance(data_type, Enum):
        raise errors.IllegalColumn(
            f"ADD ENUM VALUES changes an Enum, not a column of type {data_type}."
        )
    if len(dict(added)) < len(added):
        raise errors.SyntaxError("ADD ENUM VALUES names an element twice.")
    numbers, texts = dict(data_type.elements), data_type.texts
    following = data_type.elements[-1][1] + 1
    for text, given in added:
        number = following if given is None else given
        following = number + 1
        if numbers.get(text, number) != number:
            raise errors.BadArguments(
                f"Enum element '{text}' has the number {numbers[text]}, not {number}."
            )
        if texts.get(number, text) != text:
            raise errors.BadArguments(
                f"Enum value {number} belongs to '{texts[number]}', not to '{text}'."
            )
        if not -(1 << data_type.bits - 1) <= number < 1 << data_type.bits - 1:
            raise errors.ArgumentOutOfBound(
                f"Value {number} of element '{text}' is beyond Enum{data_type.bits}.",
                hint="MODIFY COLUMN … Enum16(…) has room for more.",
            )
        numbers[text], texts = number, texts | {number: text}
    elements = sorted(numbers.items(), key=lambda element: element[1])
    return replace(data_type, elements=tuple(elements))
