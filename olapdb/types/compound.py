"""Types built of other types, and functions that wrap and unwrap them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

from olapdb.records import dataclass
from olapdb.types.base import DataType, quote_identifier
from olapdb.types.dynamic import Dynamic, Json
from olapdb.types.scalars import Boolean, Decimal, ExactFloat, Float, Integer, Nothing, WideInteger
from olapdb.types.variant import Variant


@dataclass(frozen=True)
class Nullable(DataType):
    """A type whose values may be NULL."""

    inner: DataType

    @property
    def name(self) -> str:
        """The name: "Nullable(UInt8)"."""
        return f"Nullable({self.inner.name})"


@dataclass(frozen=True)
class LowCardinality(DataType):
    """A type with the values of `inner`, marked as having few distinct ones; Parquet stores it with a dictionary."""

    inner: DataType

    @property
    def name(self) -> str:
        """The name: "LowCardinality(String)"."""
        return f"LowCardinality({self.inner.name})"


@dataclass(frozen=True)
class Array(DataType):
    """A list of values of one type."""

    inner: DataType

    @property
    def name(self) -> str:
        """The name: "Array(UInt8)"."""
        return f"Array({self.inner.name})"


@dataclass(frozen=True)
class Tuple(DataType):
    """A tuple; `names` is empty for an unnamed one, whose Arrow fields are called 1, 2, …"""

    elements: tuple[DataType, ...]
    names: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name: "Tuple(UInt8, String)", or with field names "Tuple(a UInt8, b String)"."""
        if self.names:
            inner = ", ".join(
                f"{quote_identifier(n)} {t.name}"
                for n, t in zip(self.names, self.elements, strict=True)
            )
        else:
            inner = ", ".join(t.name for t in self.elements)
        return f"Tuple({inner})"

    def goes_by_name(self, target: Tuple) -> bool:
        """Return whether a conversion to `target` matches elements by name: both tuples have names, these or their
        order differ, and at least one name is in both. Otherwise it matches by position."""
        common = set(self.names).intersection(target.names)
        return bool(common) and self.names != target.names

    @property
    def field_names(self) -> tuple[str, ...]:
        """Return the names of the Arrow fields: the element names, or "1", "2", … for an unnamed tuple."""
        return self.names or tuple(str(i + 1) for i in range(len(self.elements)))


@dataclass(frozen=True)
class Map(DataType):
    """A list of key and value pairs."""

    key: DataType
    value: DataType

    @property
    def name(self) -> str:
        """The name: "Map(String, UInt8)"."""
        return f"Map({self.key.name}, {self.value.name})"


@dataclass(frozen=True)
class AggregateFunction(DataType):
    """The state of a partial aggregation as a value.

    `function` includes combinators ("sumIf"), `parameters` are SQL literals ("0.9"), `arguments`
    are the argument types.  `state` is the plain type that represents it (avg: `Tuple(sum,
    count)`); the aggregate defines it, see `olapdb.functions`.  Equal names have equal states.
    """

    function: str
    parameters: tuple[str, ...]
    arguments: tuple[DataType, ...]
    state: DataType = field(compare=False)

    @property
    def name(self) -> str:
        """The name: "AggregateFunction(quantile(0.9), UInt8)"."""
        parameters = f"({', '.join(self.parameters)})" if self.parameters else ""
        rest = "".join(f", {a.name}" for a in self.arguments)
        return f"AggregateFunction({self.function}{parameters}{rest})"


@dataclass(frozen=True)
class SimpleAggregateFunction(DataType):
    """A value that merges with itself: `sum`, `min`, `max`, `any`, …; reads as its `inner` type."""

    function: str
    inner: DataType

    @property
    def name(self) -> str:
        """The name: "SimpleAggregateFunction(sum, UInt64)"."""
        return f"SimpleAggregateFunction({self.function}, {self.inner.name})"


def is_nullable(data_type: DataType) -> bool:
    """Return whether a column of the type may hold NULL.

    True for Nullable(T), LowCardinality(Nullable(T)), SimpleAggregateFunction(f, Nullable(T)),
    Variant, Dynamic and Nothing.
    """
    match data_type:
        case Nullable() | Nothing() | Variant() | Dynamic():
            return True
        case LowCardinality(inner) | SimpleAggregateFunction(inner=inner):
            return is_nullable(inner)
        case _:
            return False


def plain(data_type: DataType) -> DataType:
    """Return the type without Nullable, LowCardinality and SimpleAggregateFunction around it."""
    while isinstance(data_type, Nullable | LowCardinality | SimpleAggregateFunction):
        data_type = data_type.inner
    return data_type


def with_inner(array: Array, inner: DataType) -> Array:
    """Return the array type with the element type replaced; the same object if it does not change."""
    return array if inner == array.inner else Array(inner)


def with_elements(whole: Tuple, elements: tuple[DataType, ...]) -> Tuple:
    """Return the tuple type with the element types replaced; the same object if they do not change."""
    return whole if elements == whole.elements else Tuple(elements, whole.names)


def with_parts(data_type: DataType, change: Callable[[DataType], DataType]) -> DataType:
    """Return an array, map or tuple type with each type in it changed; any other type unchanged."""
    match data_type:
        case Array(inner):
            return with_inner(data_type, change(inner))
        case Map(key, value):
            return Map(change(key), change(value))
        case Tuple(elements):
            return with_elements(data_type, tuple(map(change, elements)))
    return data_type


def without_low_cardinality(data_type: DataType) -> DataType:
    """Return the type with LowCardinality removed at every depth: itself, in arrays, tuples and maps."""
    if isinstance(data_type, LowCardinality):
        return without_low_cardinality(data_type.inner)
    return with_parts(data_type, without_low_cardinality)


def without_inner_low_cardinality(data_type: DataType) -> DataType:
    """Return the type with LowCardinality removed from inside arrays, tuples and maps, but not around the type
    itself."""
    nested = isinstance(data_type, Array | Map | Tuple)
    return without_low_cardinality(data_type) if nested else data_type


def make_nullable(data_type: DataType) -> DataType:
    """Return Nullable(T); T unchanged if it may be NULL already, or can never be (Array, Map, states). LowCardinality
    stays outside; a SimpleAggregateFunction is dropped."""
    if is_nullable(data_type) or isinstance(data_type, Array | Map | AggregateFunction):
        return data_type
    if isinstance(data_type, LowCardinality):
        return LowCardinality(make_nullable(data_type.inner))
    if isinstance(data_type, SimpleAggregateFunction):
        return make_nullable(data_type.inner)
    return Nullable(data_type)


def stored_type(data_type: DataType) -> DataType:
    """Return the type that a table's column needs to hold such values.

    WideInteger becomes Decimal and ExactFloat Float64, also inside of other types.
    """
    match data_type:
        case WideInteger():
            return Decimal(data_type.precision, data_type.scale)
        case ExactFloat():
            return Float(data_type.bits)
        case Nullable(inner) | LowCardinality(inner):
            return type(data_type)(stored_type(inner))
        case Array(inner):
            return with_inner(data_type, stored_type(inner))
        case Map(key, value):
            return Map(stored_type(key), stored_type(value))
        case Tuple(elements):
            return with_elements(data_type, tuple(map(stored_type, elements)))
        case Variant():
            return data_type.with_alternatives(stored_type)
        case SimpleAggregateFunction(function, inner):
            return SimpleAggregateFunction(function, stored_type(inner))
        case AggregateFunction(function, parameters, arguments, state):
            arguments = tuple(map(stored_type, arguments))
            return AggregateFunction(function, parameters, arguments, stored_type(state))
        case _:
            return data_type


def variants_in(data_type: DataType) -> Iterator[Variant]:
    """Yield each Variant that is in the type; the type itself if it is one."""
    match plain(data_type):
        case Variant() as variant:
            yield variant
            for alternative in variant.alternatives:
                yield from variants_in(alternative)
        case Array(inner):
            yield from variants_in(inner)
        case Map(key, value):
            yield from variants_in(key)
            yield from variants_in(value)
        case Tuple(elements):
            for element in elements:
                yield from variants_in(element)


def has_variant(data_type: DataType) -> bool:
    """Return whether the type is or contains a Variant."""
    return any(True for _ in variants_in(data_type))


def any_part(data_type: DataType, kinds: tuple[type[DataType], ...]) -> bool:
    """Return whether the type or any type inside it is of one of the kinds; Nullable and the like are ignored. The
    paths of a JSON are not searched."""
    match plain(data_type):
        case inner if isinstance(inner, kinds):
            return True
        case Array(inner):
            return any_part(inner, kinds)
        case Map(key, value):
            return any_part(key, kinds) or any_part(value, kinds)
        case Tuple(elements):
            return any(any_part(element, kinds) for element in elements)
        case Variant(alternatives):
            return any(any_part(alternative, kinds) for alternative in alternatives)
        case _:
            return False


def has_types_by_row(data_type: DataType) -> bool:
    """Return whether the type is or contains a Variant, Dynamic or JSON, whose values have types of their own."""
    return any_part(data_type, (Variant, Dynamic, Json))


def has_floats(data_type: DataType) -> bool:
    """Return whether the type is or may contain a float; for floats 0 and -0 are equal but distinct values."""
    return any_part(data_type, (Float, Dynamic, Json))


def is_number(data_type: DataType) -> bool:
    """Return whether the type, without Nullable and the like, is a number or Bool."""
    return isinstance(plain(data_type), Integer | Float | Decimal | Boolean)
