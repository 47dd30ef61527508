"""gini and categoricalInformationValue: how unequal values are, and how much categories tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.counted_values import CountedValues
from olapdb.functions.aggregates.signatures import (
    illegal_argument,
    require_count,
    require_no_parameters,
    state_type_of,
)
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import (
    FLOAT64,
    UINT8,
    UINT64,
    Array,
    Boolean,
    DataType,
    Decimal,
    Float,
    Integer,
    Tuple,
    plain,
)


@dataclass(frozen=True)
class Gini(CountedValues):
    """gini(x): Gini's coefficient of numbers that are not negative, 0 if all are equal."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's distinct numbers and how often each occurs.

        Raises BadArguments for a number below 0."""
        (values,), groups = group_kernels.drop_null_rows(arguments, groups)
        if pa.types.is_decimal(values.type):
            values = values.cast(pa.float64())
        numbers = columns.numpy_values(values).astype(np.float64) + 0.0
        if (numbers < 0).any():
            raise BadArguments(f"{self.name} takes no negative numbers.")
        ones = np.ones(len(numbers), np.uint64)
        return self._state([columns.from_values(numbers, pa.float64())], ones, groups)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the coefficient of each group; NaN if the numbers add up to 0, and for one
        number."""
        lists, weights = columns.struct_fields(states)
        offsets, elements = columns.elements_of(lists)
        owners = columns.parents_of(offsets)
        values = columns.numpy_values(elements)
        counts = columns.numpy_values(columns.elements_of(weights)[1]).astype(np.float64)
        totals = np.bincount(owners, counts, len(states))
        running = np.append(0.0, np.cumsum(counts))
        before = running[:-1] - running[offsets[:-1]][owners]
        places = counts * (2 * before + counts - totals[owners])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            sums = np.bincount(owners, values * counts, len(states))
            spread = np.bincount(owners, places * values, len(states))
            coefficients = np.where(totals > 1, spread / (totals * sums), np.nan)
        return columns.from_values(coefficients, pa.float64())


def gini(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve gini of a number. Raises IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    if not isinstance(plain(types[0]), Integer | Float | Decimal | Boolean):
        raise illegal_argument(name, types[0], "a number")
    state = Tuple((Array(FLOAT64), Array(UINT64)), ("values", "weights"))
    return Gini(name, (), types, FLOAT64, state_type_of(name, (), types, state))


@dataclass(frozen=True)
class InformationValue(Aggregate):
    """categoricalInformationValue(category, …, tag): for each category (p - q) * ln(p / q), where p and
    q are its shares of the rows with the tag and of those without.

    State: Tuple of UInt64: the rows with and without the tag, then those of each category."""

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's counts of rows with and without the tag, in all and by category.

        Rows with a NULL are skipped."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        *categories, tag = (columns.numpy_values(argument) != 0 for argument in arguments)
        fields = []
        for category in (np.ones(len(tag), bool), *categories):
            for kept in (category & tag, category & ~tag):
                counts = np.bincount(groups.codes[kept], minlength=groups.count)
                fields.append(columns.from_values(counts, pa.uint64()))
        return columns.structs_from(fields, self.state_type.arrow)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Add up the counts of each group's states."""
        fields = [
            group_kernels.sum_integers(columns.numpy_values(field), groups, np.dtype(np.uint64))
            for field in columns.struct_fields(states)
        ]
        made = [columns.from_values(field, pa.uint64()) for field in fields]
        return columns.structs_from(made, self.state_type.arrow)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the array of the values of each group's categories."""
        counts = np.stack(
            [columns.numpy_values(f).astype(np.float64) for f in columns.struct_fields(states)]
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            tagged, others = counts[2::2] / counts[0], counts[3::2] / counts[1]
            values = (tagged - others) * np.log(tagged / others)
        offsets = np.arange(len(states) + 1) * len(values)
        return columns.lists_from(offsets, columns.from_values(values.T.reshape(-1), pa.float64()))


def information_value(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve categoricalInformationValue of one or more categories and a tag, all of UInt8.

    Raises NumberOfArgumentsDoesntMatch and IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    if len(types) < 2:
        raise NumberOfArgumentsDoesntMatch(f"{name} takes two or more arguments.")
    for data_type in types:
        if plain(data_type) != UINT8 and not isinstance(plain(data_type), Boolean):
            raise illegal_argument(name, data_type, "a UInt8")
    state = state_type_of(name, (), types, Tuple((UINT64,) * (2 * len(types))))
    return InformationValue(name, (), types, Array(FLOAT64), state)
