"""The making of Enum types: their elements, checked and numbered."""

from __future__ import annotations

from collections.abc import Sequence

from olapdb import errors
from olapdb.types.scalars import Enum

_WIDTHS = {"Enum8": 8, "Enum16": 16}


def enum_of(name: str, elements: Sequence[tuple[str, int | None]]) -> Enum:
    """Return the Enum8 or Enum16 with these texts and numbers; `Enum` takes the narrower that fits.

    Without numbers the elements count from 1, or from the first one's number. Raises
    EmptyDataPassed without elements, UnexpectedAstStructure where only some have numbers,
    SyntaxError where a text or number repeats, ArgumentOutOfBound for numbers beyond the width.
    """
    if not elements:
        raise errors.EmptyDataPassed(
            "An Enum has at least one element.", hint="Write Enum8('a' = 1, 'b' = 2)."
        )
    numbered = _numbered(elements)
    _check_unique(numbered)
    bits = _WIDTHS.get(name) or _least_bits(numbered)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    for text, number in numbered:
        if not low <= number <= high:
            raise errors.ArgumentOutOfBound(
                f"The number {number} of element {text!r} is outside of Enum{bits},"
                f" {low} to {high}.",
                hint="Take Enum16." if bits == 8 else "",
            )
    return Enum(bits, tuple(sorted(numbered, key=lambda element: element[1])))


def _numbered(elements: Sequence[tuple[str, int | None]]) -> list[tuple[str, int]]:
    """Return the elements with numbers; where only the first or none has one, the others count up from it (from 1).
    Raises UnexpectedAstStructure if only some have numbers."""
    given = [(text, number) for text, number in elements if number is not None]
    if len(given) == len(elements):
        return given
    if any(number is not None for _, number in elements[1:]):
        raise errors.UnexpectedAstStructure(
            "Either all or no elements of an Enum have numbers.",
            hint="Write a number behind each element: 'a' = 1, 'b' = 2.",
        )
    first = elements[0][1]
    start = 1 if first is None else first
    return [(text, start + at) for at, (text, _) in enumerate(elements)]


def _check_unique(elements: Sequence[tuple[str, int]]) -> None:
    """Raise SyntaxError for the first text or number that repeats."""
    by_text: dict[str, int] = {}
    by_number: dict[int, str] = {}
    for text, number in elements:
        if text in by_text:
            raise errors.SyntaxError(
                f"Duplicate text in Enum: {text!r} = {by_text[text]} and {number}."
            )
        if number in by_number:
            raise errors.SyntaxError(
                f"Duplicate number in Enum: {number} is {by_number[number]!r} and {text!r}."
            )
        by_text[text], by_number[number] = number, text


def _least_bits(elements: Sequence[tuple[str, int]]) -> int:
    """Return 8 if all numbers fit an Enum8, else 16."""
    return 8 if all(-128 <= number <= 127 for _, number in elements) else 16
