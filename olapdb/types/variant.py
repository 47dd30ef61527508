"""Variant: a type whose every value is of one of several types."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from olapdb.records import dataclass
from olapdb.types.base import DataType

NUMBER = "number"
"""The name of the Arrow field that says which alternative a row has: no type is called so."""
ALTERNATIVES_MAX = 255


@dataclass(frozen=True)
class Variant(DataType):
    """A type whose every value is of one of `alternatives`, or NULL.

    The alternatives are sorted by name, and none repeats (`variant_of`). In Arrow a column is a struct
    (decision 016): `number` is the place of the row's alternative, and a field for each alternative, called
    by its type's name, has the values of its rows and is NULL in others. A row that is NULL is a NULL struct.
    So structs compare as ClickHouse orders variants: by alternative, then by value.
    """

    alternatives: tuple[DataType, ...]

    @property
    def name(self) -> str:
        """The name: "Variant(String, UInt64)"."""
        return f"Variant({', '.join(t.name for t in self.alternatives)})"

    @property
    def field_names(self) -> tuple[str, ...]:
        """The names of the alternatives, which are those of the Arrow fields behind `number`."""
        return tuple(t.name for t in self.alternatives)

    def place_of(self, name: str) -> int | None:
        """Return the place of the alternative with this name of a type; None if there is none."""
        names = self.field_names
        return names.index(name) if name in names else None

    def with_alternatives(self, change: Callable[[DataType], DataType]) -> Variant:
        """Return the Variant whose alternatives are those of this one, each changed."""
        return variant_of(tuple(map(change, self.alternatives)))


def variant_of(alternatives: Sequence[DataType]) -> Variant:
    """Return the Variant of these types, in any order; those of a Variant among them are its own.

    A Variant alone stays what it is."""
    if alternatives and all(isinstance(t, Variant) and t == alternatives[0] for t in alternatives):
        assert isinstance(alternatives[0], Variant)
        return alternatives[0]
    flat: dict[str, DataType] = {}
    for alternative in alternatives:
        inner = alternative.alternatives if isinstance(alternative, Variant) else (alternative,)
        flat.update((t.name, t) for t in inner)
    return Variant(tuple(flat[name] for name in sorted(flat)))
