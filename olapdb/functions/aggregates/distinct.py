"""uniqExact, uniq and groupUniqArray: sets of distinct values, or samples of their hashes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import ArgumentOutOfBound, NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.signatures import (
    distinct_set_type,
    illegal_argument,
    require_count,
    require_no_parameters,
    state_type_of,
)
from olapdb.functions.base import Aggregate, Division, Groups
from olapdb.functions.kernels import columns, hashing
from olapdb.functions.kernels.decimal_width import has_short_form, lengthened, shortened
from olapdb.functions.kernels.nested import truncate_lists
from olapdb.functions.kernels.supertypes import as_number
from olapdb.native import distinct as native_distinct
from olapdb.native.library import library
from olapdb.native.values import values_of_numbers
from olapdb.records import dataclass
from olapdb.types import (
    UINT8,
    UINT64,
    AggregateFunction,
    Array,
    Boolean,
    DataType,
    Integer,
    Map,
    Tuple,
    plain,
)

SAMPLE_MAX = 65_536
"""The hashes that uniq keeps a group; ClickHouse has the same bound."""

_POWERS = 65
"""How often 2 divides a hash is one of so many numbers."""


def distinct_lists(arguments: Sequence[pa.Array], groups: Groups, arrow: pa.DataType) -> pa.Array:
    """Return each group's distinct values as a sorted list, of list type `arrow`, shape
    (groups.count,). Several arguments make a list of structs."""
    if len(arguments) == 1 and has_short_form(arguments[0].type):
        short = shortened(arguments[0])
        integers = columns.view(short, pa.int64())
        lists = distinct_lists([integers], groups, pa.list_(pa.int64()))
        offsets, elements = columns.elements_of(lists)
        decimals = lengthened(columns.view(elements, short.type))
        return columns.lists_from(offsets, columns.retype(decimals, arrow.value_type))
    numbers = group_kernels.distinct_integers(arguments[0], groups) if len(arguments) == 1 else None
    if numbers is not None:
        values = columns.from_values(numbers[1], arguments[0].type)
        return columns.lists_from(numbers[0], columns.retype(values, arrow.value_type))
    ranking = group_kernels.rank_rows(arguments)
    offsets, ranks = group_kernels.distinct_ranks(ranking, groups)
    rows = pa.array(ranking.rows[ranks])
    representatives = [a.take(rows) for a in arguments]
    if len(representatives) == 1:
        return columns.lists_from(offsets, columns.retype(representatives[0], arrow.value_type))
    return columns.lists_from(offsets, columns.structs_from(representatives, arrow.value_type))


def union_lists(states: pa.Array, groups: Groups) -> pa.Array:
    """Return for each group the union of its lists of distinct values, sorted."""
    offsets, elements = columns.elements_of(states)
    owners = group_kernels.element_groups(offsets, groups)
    if pa.types.is_struct(elements.type):
        return distinct_lists(columns.struct_fields(elements), owners, states.type)
    return distinct_lists([elements], owners, states.type)


def set_of(values: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Return one list of type `arrow` of the distinct values, sorted."""
    lists = columns.lists_from(np.array([0, len(values)]), columns.retype(values, arrow.value_type))
    return union_lists(lists, Groups(np.zeros(1, np.int64), 1))


@dataclass(frozen=True)
class UniqExact(Aggregate):
    """uniqExact: the exact number of distinct values.

    State: Array(T) of the distinct values, sorted; of Tuples for several arguments."""

    @property
    def ignores_repeats(self) -> bool:
        """True: the state depends on the set of values alone."""
        return True

    @property
    def keeps_distinct(self) -> bool:
        """True: the state is made of distinct values."""
        return True

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return each group's distinct values, sorted; rows with a NULL are skipped."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        return distinct_lists(arguments, groups, self.state_type.arrow)

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Return the union of each group's distinct values, sorted."""
        return union_lists(states, groups)

    def of_distinct(
        self, values: pa.Array, offsets: np.ndarray, codes: np.ndarray
    ) -> pa.Array | None:
        """Return the number of distinct values of each group from `offsets`, which cut the distinct codes into
        groups."""
        return columns.from_values(np.diff(offsets), self.result_type.arrow)

    def of_marked(self, values: pa.Array, marks: np.ndarray) -> pa.Array | None:
        """Return the number of distinct values of each group from `marks`, which have a bit for each value that a
        group has."""
        return self.of_distinct(values, native_distinct.starts_of_marks(marks), marks)

    @property
    def division(self) -> Division:
        """Return "by value", since the parts' numbers of distinct values add up."""
        return "by value"

    def elements(self, states: pa.Array) -> list[pa.Array]:
        """Return the values of states."""
        return [columns.elements_of(states)[1]]

    def state_of_elements(self, elements: Sequence[pa.Array]) -> pa.Array:
        """Return the state of values, which may have repeats."""
        return set_of(elements[0], self.state_type.arrow)

    def result_of_parts(self, parts: Iterable[pa.Array], count: int) -> pa.Array:
        """Return the number of distinct values of all parts."""
        total = sum(len(columns.elements_of(part)[1]) for part in parts)
        return columns.from_values(np.array([total], np.int64), self.result_type.arrow)

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the number of distinct values of each group; a narrower type than UInt64 wraps."""
        return columns.from_values(np.diff(columns.offsets_of(states)), self.result_type.arrow)


@dataclass(frozen=True)
class OfDistinctValues(UniqExact):
    """An aggregate whose result is made of the distinct values, not of their number."""

    def of_distinct(
        self, values: pa.Array, offsets: np.ndarray, codes: np.ndarray
    ) -> pa.Array | None:
        """Return None: the result needs the values, so the caller takes the state."""
        return None

    def of_marked(self, values: pa.Array, marks: np.ndarray) -> pa.Array | None:
        """Return None: the result needs the values, so the caller takes the state."""
        return None

    @property
    def division(self) -> Division:
        """Return "none": the result needs the values of all parts."""
        return "none"


@dataclass(frozen=True)
class GroupUniqArray(OfDistinctValues):
    """groupUniqArray([limit]): the distinct values, sorted, at most `limit` of them. ClickHouse
    leaves their order open.
    """

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return each group's distinct values, cut to the limit if there is one."""
        if not self.parameters:
            return states
        return truncate_lists(states, int(str(self.parameters[0])))


@dataclass(frozen=True)
class Uniq(Aggregate):
    """uniq: an estimate of the number of distinct values, exact up to 65,536.

    State: Tuple(skip UInt8, hashes Array(UInt64)), the hashes that 2^skip divides. `skip` is the
    least for which at most 65,536 hashes remain (Bar-Yossef et al. 2002, as in ClickHouse), so the
    state depends on the set of values alone. Result: the number of hashes times 2^skip.
    """

    @property
    def ignores_repeats(self) -> bool:
        """True: the state depends on the set of values alone."""
        return True

    @property
    def keeps_distinct(self) -> bool:
        """True: the state is made of distinct values."""
        return True

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Hash the rows without NULLs and return each group's sample of the hashes."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        is_text = len(arguments) == 1 and pa.types.is_string(arguments[0].type)
        if is_text and library() is None:
            encoded = arguments[0].dictionary_encode()
            per_value = hashing.hash_values(encoded.dictionary)
            hashes = per_value[columns.numpy_values(encoded.indices)]
        else:
            hashes = hashing.hash_rows(arguments)
        return self._sample(hashes, groups, np.zeros(groups.count, np.int64))

    def merge(self, states: pa.Array, groups: Groups) -> pa.Array:
        """Return the samples of the unions; each group starts from its states' largest `skip`."""
        skips, lists = columns.struct_fields(states)
        offsets, elements = columns.elements_of(lists)
        skip = np.zeros(groups.count, np.int64)
        np.maximum.at(skip, groups.codes, columns.numpy_values(skips).astype(np.int64))
        hashes, owners = (
            columns.numpy_values(elements),
            group_kernels.element_groups(offsets, groups),
        )
        if library() is not None:
            return self._sample(hashes, owners, skip)
        divisible = _divides(hashes, skip[owners.codes])
        return self._sample(hashes[divisible], Groups(owners.codes[divisible], groups.count), skip)

    def of_distinct(
        self, values: pa.Array, offsets: np.ndarray, codes: np.ndarray
    ) -> pa.Array | None:
        """Return the estimate of each group from how many of its hashes each power of two divides. None where two
        values have one hash, which counts once."""
        hashes = _hashes_of_distinct(values)
        if hashes is None:
            return None
        counts = np.diff(offsets)
        large = np.flatnonzero(counts > SAMPLE_MAX)
        powers = _powers_of_two(hashes) if len(large) else hashes
        for group in large.tolist():  # each has many codes
            own = powers[codes[offsets[group] : offsets[group + 1]]]
            # How many hashes 2^skip divides, for each skip.
            divided = np.bincount(own, minlength=_POWERS)[::-1].cumsum()[::-1]
            skip = int(np.argmax(divided <= SAMPLE_MAX))
            counts[group] = int(divided[skip]) << skip
        return columns.from_values(counts.astype(np.uint64), pa.uint64())

    def of_marked(self, values: pa.Array, marks: np.ndarray) -> pa.Array | None:
        """Return the estimate of each group, as `of_distinct` does, from marks: bits for the values that a group has.
        Masks of the values whose hashes 2^skip divides select those that are counted."""
        hashes = _hashes_of_distinct(values)
        if hashes is None:
            return None
        counts = np.diff(native_distinct.starts_of_marks(marks))
        left, powers, skip = np.flatnonzero(counts > SAMPLE_MAX), None, 0
        estimates = counts.copy()
        while len(left):  # at most 64 rounds: skip grows by one
            skip += 1
            powers = _powers_of_two(hashes) if powers is None else powers
            divides = np.zeros(marks.shape[1] * 8, np.uint8)
            bits = np.packbits(powers >= skip, bitorder="little")
            divides[: len(bits)] = bits
            sampled = np.diff(native_distinct.starts_of_marks(marks[left] & divides.view("<u8")))
            estimates[left] = sampled << skip
            left = left[sampled > SAMPLE_MAX]
        return columns.from_values(estimates.astype(np.uint64), pa.uint64())

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the estimate of each group: its number of hashes times 2^skip; UInt64."""
        skips, lists = columns.struct_fields(states)
        counts = np.diff(columns.offsets_of(lists)).astype(np.uint64)
        return columns.from_values(
            counts << columns.numpy_values(skips).astype(np.uint64), pa.uint64()
        )

    def _sample(self, hashes: np.ndarray, groups: Groups, skip: np.ndarray) -> pa.Array:
        """Return the states of the groups' hashes. Raises `skip` (one number a group) until at most the limit of
        hashes remains, and drops the hashes that 2^skip does not divide."""
        if library() is not None:
            samples = native_distinct.sample(
                values_of_numbers(hashes), groups.kernel_codes, skip, SAMPLE_MAX
            )
            return self._states(*samples)
        offsets, distinct = _distinct_hashes(hashes, groups)
        owners = np.repeat(np.arange(groups.count), np.diff(offsets))
        counts = np.diff(offsets)
        while (over_limit := counts > SAMPLE_MAX).any():  # at most 64 rounds: skip grows by one
            skip = skip + over_limit
            divisible = _divides(distinct, skip[owners])
            distinct, owners = distinct[divisible], owners[divisible]
            counts = np.bincount(owners, minlength=groups.count)
        return self._states(columns.offsets_from_counts(counts), distinct, skip)

    def _states(self, offsets: np.ndarray, hashes: np.ndarray, skip: np.ndarray) -> pa.Array:
        """Return the states (skip, hashes) of samples; `offsets` cut the hashes into groups."""
        lists = columns.lists_from(offsets, columns.from_values(hashes, pa.uint64()))
        fields = [columns.from_values(skip, pa.uint8()), lists]
        return columns.structs_from(fields, self.state_type.arrow)


def _hashes_of_distinct(values: pa.Array) -> np.ndarray | None:
    """Return the hashes of values that all differ; None where two of them have one hash, which counts once."""
    hashes = hashing.hash_rows([values])
    offsets, _ = _distinct_hashes(hashes, Groups(np.zeros(len(hashes), np.int64), 1))
    return None if int(offsets[-1]) < len(values) else hashes


def _distinct_hashes(hashes: np.ndarray, groups: Groups) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of the groups, and each group's distinct hashes, sorted."""
    array = pa.array(hashes)
    numbers = group_kernels.distinct_integers(array, groups)
    if numbers is not None:
        return numbers
    ranking = group_kernels.rank_rows([array])
    offsets, ranks = group_kernels.distinct_ranks(ranking, groups)
    return offsets, hashes[ranking.rows[ranks]]


def _powers_of_two(hashes: np.ndarray) -> np.ndarray:
    """Return how often 2 divides each hash, 64 for 0; uint8."""
    lowest = hashes & (~hashes + np.uint64(1))
    _, exponents = np.frexp(lowest.astype(np.float64))  # 2^n is 0.5 * 2^(n + 1)
    return np.where(lowest == 0, _POWERS - 1, exponents - 1).astype(np.uint8)


def _divides(hashes: np.ndarray, skip: np.ndarray) -> np.ndarray:
    """Return whether 2^skip divides each hash; bool, shape of `hashes`."""
    masks = (np.uint64(1) << skip.astype(np.uint64)) - np.uint64(1)
    return np.asarray((hashes & masks) == 0)


def uniq(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve uniq, uniqExact, uniqCombined(64), uniqHLL12 of any arguments but maps and states.

    uniqCombined, uniqCombined64 and uniqHLL12 are uniq, whose estimate is as close as theirs."""
    if name.startswith("uniqCombined"):
        _require_precision(name, parameters)
    else:
        require_no_parameters(name, parameters)
    if not types:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} needs an argument.")
    for data_type in types:
        if isinstance(plain(data_type), Map | AggregateFunction):
            raise illegal_argument(name, data_type, "a value that can be compared")
    if name == "uniqExact":
        return UniqExact(
            name, (), types, UINT64, state_type_of(name, (), types, distinct_set_type(types))
        )
    state = Tuple((UINT8, Array(UINT64)), ("skip", "hashes"))
    state_type = state_type_of(name, parameters, types, state)
    return Uniq(name, parameters, types, UINT64, state_type, merge_class="sketch")


def _require_precision(name: str, parameters: tuple[object, ...]) -> None:
    """Raise ArgumentOutOfBound unless there is no parameter or one integer from 12 to 20.

    Also raises NumberOfArgumentsDoesntMatch."""
    if len(parameters) > 1:
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} takes one parameter.")
    for precision in parameters:
        if not isinstance(precision, int) or not 12 <= precision <= 20:
            raise ArgumentOutOfBound(
                f"The precision of {name} is an integer from 12 to 20, not {precision!r}."
            )


def group_bitmap(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve groupBitmap of integers: their number without repetitions, in the type of the integers,
    of Bool in UInt8.

    Raises IllegalTypeOfArgument."""
    require_no_parameters(name, parameters)
    require_count(name, types, 1)
    argument = plain(types[0])
    if not isinstance(argument, Integer | Boolean):
        raise illegal_argument(name, types[0], "an integer")
    state = state_type_of(name, (), types, distinct_set_type(types))
    return UniqExact(name, (), types, as_number(argument), state)
