"""Types around other types, and what is asked of them: whether it is Nullable, what is inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from olapdb.types.base import DataType, quote_identifier
from olapdb.types.scalars import Boolean, Decimal, ExactFloat, Float, Integer, Nothing, WideInteger

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Nullable(DataType):
    inner: DataType

    @property
    def name(self) -> str:
        return f"Nullable({self.inner.name})"

    def _arrow(self, pa_module: object) -> pa.DataType:
        return self.inner.arrow


@dataclass(frozen=True)
class LowCardinality(DataType):
    """A hint only: the values are those of `inner`; Parquet's own dictionaries do the rest."""

    inner: DataType

    @property
    def name(self) -> str:
        return f"LowCardinality({self.inner.name})"

    def _arrow(self, pa_module: object) -> pa.DataType:
        return self.inner.arrow


@dataclass(frozen=True)
class Array(DataType):
    inner: DataType

    @property
    def name(self) -> str:
        return f"Array({self.inner.name})"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        return pa.list_(self.inner.arrow)


@dataclass(frozen=True)
class Tuple(DataType):
    """`names` is empty for an unnamed tuple; its Arrow fields are then called 1, 2, …"""

    elements: tuple[DataType, ...]
    names: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        if self.names:
            inner = ", ".join(
                f"{quote_identifier(n)} {t.name}"
                for n, t in zip(self.names, self.elements, strict=True)
            )
        else:
            inner = ", ".join(t.name for t in self.elements)
        return f"Tuple({inner})"

    @property
    def field_names(self) -> tuple[str, ...]:
        return self.names or tuple(str(i + 1) for i in range(len(self.elements)))

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        return pa.struct(
            [pa.field(n, t.arrow) for n, t in zip(self.field_names, self.elements, strict=True)]
        )


@dataclass(frozen=True)
class Map(DataType):
    key: DataType
    value: DataType

    @property
    def name(self) -> str:
        return f"Map({self.key.name}, {self.value.name})"

    def _arrow(self, pa_module: object) -> pa.DataType:
        import pyarrow as pa

        # {} is a Map(Nothing, …), but Arrow's keys cannot be of its null type
        key = pa.string() if isinstance(self.key, Nothing) else self.key.arrow
        return pa.map_(key, self.value.arrow)


@dataclass(frozen=True)
class AggregateFunction(DataType):
    """A partial aggregate as a value.

    `function` with combinators ("sumIf"), `parameters` as SQL literals ("0.9"), `arguments` its
    argument types.  `state` is the plain type that represents it (avg: `Tuple(sum, count)`),
    given by the aggregate itself, see `olapdb.functions`; two equal names have equal states.
    """

    function: str
    parameters: tuple[str, ...]
    arguments: tuple[DataType, ...]
    state: DataType = field(compare=False)

    @property
    def name(self) -> str:
        parameters = f"({', '.join(self.parameters)})" if self.parameters else ""
        rest = "".join(f", {a.name}" for a in self.arguments)
        return f"AggregateFunction({self.function}{parameters}{rest})"

    def _arrow(self, pa_module: object) -> pa.DataType:
        return self.state.arrow


@dataclass(frozen=True)
class SimpleAggregateFunction(DataType):
    """A value that merges with itself: `sum`, `min`, `max`, `any`, …; reads as its `inner` type."""

    function: str
    inner: DataType

    @property
    def name(self) -> str:
        return f"SimpleAggregateFunction({self.function}, {self.inner.name})"

    def _arrow(self, pa_module: object) -> pa.DataType:
        return self.inner.arrow


def is_nullable(data_type: DataType) -> bool:
    """True for Nullable(T), LowCardinality(Nullable(T)), SimpleAggregateFunction(f, Nullable(T))
    and Nothing."""
    match data_type:
        case Nullable() | Nothing():
            return True
        case LowCardinality(inner) | SimpleAggregateFunction(inner=inner):
            return is_nullable(inner)
        case _:
            return False


def plain(data_type: DataType) -> DataType:
    """Without Nullable, LowCardinality and SimpleAggregateFunction around it."""
    while isinstance(data_type, Nullable | LowCardinality | SimpleAggregateFunction):
        data_type = data_type.inner
    return data_type


def make_nullable(data_type: DataType) -> DataType:
    """Nullable(T); unchanged where it is nullable, or cannot be (Array, Map, states)."""
    if is_nullable(data_type) or isinstance(data_type, Array | Map | AggregateFunction):
        return data_type
    if isinstance(data_type, LowCardinality):
        return LowCardinality(make_nullable(data_type.inner))
    if isinstance(data_type, SimpleAggregateFunction):
        return make_nullable(data_type.inner)
    return Nullable(data_type)


def stored_type(data_type: DataType) -> DataType:
    """The type of a table's column that holds such values: a WideInteger is a Decimal there,
    an ExactFloat a Float64."""
    match data_type:
        case WideInteger():
            return Decimal(data_type.precision, data_type.scale)
        case ExactFloat():
            return Float(data_type.bits)
        case Nullable(inner) | LowCardinality(inner) | Array(inner):
            return type(data_type)(stored_type(inner))
        case Map(key, value):
            return Map(stored_type(key), stored_type(value))
        case Tuple(elements, names):
            return Tuple(tuple(map(stored_type, elements)), names)
        case SimpleAggregateFunction(function, inner):
            return SimpleAggregateFunction(function, stored_type(inner))
        case AggregateFunction(function, parameters, arguments, state):
            arguments = tuple(map(stored_type, arguments))
            return AggregateFunction(function, parameters, arguments, stored_type(state))
        case _:
            return data_type


def is_number(data_type: DataType) -> bool:
    """Integers, floats, decimals and Bool, whatever is around them."""
    return isinstance(plain(data_type), Integer | Float | Decimal | Boolean)


def arrow_schema(names: Sequence[str], data_types: Sequence[DataType]) -> pa.Schema:
    """An Arrow schema whose fields carry their ClickHouse type in the metadata, under
    `olapdb.type`; nullable only where the type is."""
    import pyarrow as pa

    return pa.schema(
        [
            pa.field(n, t.arrow, nullable=is_nullable(t), metadata={"olapdb.type": t.name})
            for n, t in zip(names, data_types, strict=True)
        ]
    )
