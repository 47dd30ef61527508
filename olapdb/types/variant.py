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
    """A type each value of which is of one of `alternatives`, or NULL. Alternatives are sorted by name and do not
    repeat (`variant_of`). In Arrow a column is a struct (decision 016): `number` is the index of the row's
    alternative; each alternative has a field, named by its type, that is NULL in rows of other alternatives. A NULL
    row is a NULL struct. So structs sort as ClickHouse sorts variants: by alternative, then by value."""

    alternatives: tuple[DataType, ...]

    @property
    def name(self) -> str:
        """The name: "Variant(String, UInt64)"."""
        return f"Variant({', '.join(t.name for t in self.alternatives)})"

    @property
    def field_names(self) -> tuple[str, ...]:
        """Return the names of the alternatives, which are also the names of the Arrow fields after `number`."""
        return tuple(t.name for t in self.alternatives)

    def place_of(self, name: str) -> int | None:
        """Return the index of the alternative whose type has this name; None if there is none."""
        names = self.field_names
        return names.index(name) if name in names else None

    def with_alternatives(self, change: Callable[[DataType], DataType]) -> Variant:
        """Return the Variant with `change` applied to each alternative."""
        return variant_of(tuple(map(change, self.alternatives)))


def variant_of(alternatives: Sequence[DataType]) -> Variant:
    """Return the Variant of these types, given in any order; a Variant among them is replaced by its alternatives. A
    single Variant is returned unchanged."""
    if alternatives and all(isinstance(t, Variant) and t == alternatives[0] for t in alternatives):
        assert isinstance(alternatives[0], Variant)
        return alternatives[0]
    flat: dict[str, DataType] = {}
    for alternative in alternatives:
        inner = alternative.alternatives if isinstance(alternative, Variant) else (alternative,)
        flat.update((t.name, t) for t in inner)
    return Variant(tuple(flat[name] for name in sorted(flat)))
