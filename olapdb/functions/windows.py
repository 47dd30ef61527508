"""Functions that require OVER: ranks, and values of other rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    BadArguments,
    NoCommonType,
    NumberOfArgumentsDoesntMatch,
    ProgrammingError,
    TooFewArguments,
    TooManyArguments,
)
from olapdb.functions.base import Argument
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.constants import default_value
from olapdb.functions.kernels.decimal_width import decimal_class
from olapdb.functions.kernels.supertypes import common_type
from olapdb.functions.scalar import require
from olapdb.functions.series_windows import SERIES
from olapdb.functions.window_definitions import Frames, WindowDefinition, WindowFunction
from olapdb.types import FLOAT64, UINT64, DataType, Decimal, Integer, is_nullable, plain


def find_window(name: str) -> WindowDefinition | None:
    """Return the definition of a window function, by its name as given or in lower case; None if unknown."""
    return _BY_NAME.get(name) or _BY_NAME.get(name.lower())


def resolve_window(
    name: str, arguments: Sequence[Argument], parameters: Sequence[Argument] = ()
) -> WindowFunction:
    """Return the window function for these arguments and parameters; the name must be known.

    Raises NumberOfArgumentsDoesntMatch, TooFewArguments and TooManyArguments, or the definition's error for
    arguments that do not fit: IllegalTypeOfArgument, BadArguments, NoCommonType."""
    definition = find_window(name)
    assert definition is not None, name
    if not definition.minimum <= len(arguments) <= definition.maximum:
        expected = str(definition.minimum)
        if definition.maximum != definition.minimum:
            expected = f"{definition.minimum} to {definition.maximum}"
        error: type[ProgrammingError] = NumberOfArgumentsDoesntMatch
        if not arguments and definition.maximum > definition.minimum:
            error = TooFewArguments
        elif len(arguments) > definition.maximum > definition.minimum:
            error = TooManyArguments
        raise error(f"Window function {name} takes {expected} argument(s), {len(arguments)} given.")
    if definition.parameters:
        if len(parameters) != definition.parameters:
            raise NumberOfArgumentsDoesntMatch(
                f"Window function {name} takes {definition.parameters} parameter(s)."
            )
        arguments = [*parameters, *arguments]
    return definition.resolve(definition.name, arguments)


# --- ranks


def _ranking(
    name: str, data_type: DataType, compute: Callable[[Frames], np.ndarray], ignored: int = 0
) -> WindowDefinition:
    """Define a function without arguments whose value for each row `compute` derives from the partitions and peers.
    It ignores up to `ignored` arguments, as ClickHouse does."""

    def resolve(spelt: str, arguments: Sequence[Argument]) -> WindowFunction:
        """Resolve the function, which uses no arguments."""
        return WindowFunction(
            spelt,
            data_type,
            lambda values, f: columns.from_values(compute(f), data_type.arrow),
            True,
        )

    return WindowDefinition(name, resolve, maximum=ignored)


def _row_number(frames: Frames) -> np.ndarray:
    """Return the number of each row in its partition, from 1."""
    return np.asarray(frames.positions - frames.partition_starts + 1)


def _rank(frames: Frames) -> np.ndarray:
    """Return each row's rank, with gaps: 1 + the number of rows of its partition before its peers."""
    return np.asarray(frames.peer_starts - frames.partition_starts + 1)


def _dense_rank(frames: Frames) -> np.ndarray:
    """Return each row's rank without gaps: the number, from 1, of its peer group in the partition."""
    groups = np.cumsum(frames.peer_starts == frames.positions)
    return np.asarray(groups - groups[frames.partition_starts] + 1) if frames.rows else groups


def _percent_rank(frames: Frames) -> np.ndarray:
    """Return (rank - 1) / (rows of the partition - 1), 0 in a partition of one row."""
    others = frames.partition_ends - frames.partition_starts - 1
    return np.where(others > 0, (_rank(frames) - 1) / np.maximum(others, 1), 0.0)


def _cume_dist(frames: Frames) -> np.ndarray:
    """Return the share, 0 to 1, of the partition's rows that come before a row or are its peers."""
    size = frames.partition_ends - frames.partition_starts
    return np.asarray((frames.peer_ends - frames.partition_starts) / size)


def _ntile(name: str, arguments: Sequence[Argument]) -> WindowFunction:
    """Resolve ntile(n): the partition's rows in n buckets of nearly equal size, numbered from 1.

    If n does not divide the number of rows, the first buckets have one row more. Raises BadArguments."""
    constant = arguments[0].constant
    buckets = constant.as_py() if constant is not None else None
    if not isinstance(plain(arguments[0].type), Integer) or not isinstance(buckets, int):
        raise BadArguments(f"The argument of {name} must be a constant positive integer.")
    if buckets < 1:
        raise BadArguments(f"The argument of {name} must be a positive integer, not {buckets}.")

    def kernel(values: Sequence[pa.Array], frames: Frames) -> pa.Array:
        """Return the number, from 1, of each row's bucket in its partition."""
        size = frames.partition_ends - frames.partition_starts
        offset = frames.positions - frames.partition_starts
        small, larger = size // buckets, size % buckets
        in_larger = larger * (small + 1)
        tile = np.where(
            offset < in_larger,
            offset // (small + 1),
            larger + (offset - in_larger) // np.maximum(small, 1),
        )
        return columns.from_values(tile + 1, pa.uint64())

    return WindowFunction(name, UINT64, kernel, True)


# --- values of other rows


def _taken(
    values: pa.Array, places: np.ndarray, inside: np.ndarray, otherwise: pa.Array
) -> pa.Array:
    """Return for each row the value at its position in `places`, or `otherwise` where `inside` is false.

    `otherwise` has one value for all rows, or one for each."""
    count = len(values)
    candidates = pa.concat_arrays([values, otherwise])
    fallback_rows = (
        np.zeros(len(places), np.int64) if len(otherwise) == 1 else np.arange(len(places))
    )
    return candidates.take(pa.array(np.where(inside, places, count + fallback_rows)))


def _shifted(name: str, *, forward: bool, in_frame: bool) -> WindowDefinition:
    """Define a function of (value[, offset[, default]]) that returns the value of another row.

    lag and lead look in the partition, lagInFrame and leadInFrame in the frame (`in_frame`).
    `forward` looks at later rows. The offset is 1 if absent; a row outside gives the default, or
    the type's.
    """

    def resolve(spelt: str, arguments: Sequence[Argument]) -> WindowFunction:
        """Resolve the function; raise BadArguments for a negative offset or an unfit default."""
        value_type = arguments[0].type
        if len(arguments) > 1:
            if not isinstance(plain(arguments[1].type), Integer):
                raise BadArguments(f"The offset of {spelt} must be an integer.")
            constant = arguments[1].constant
            if constant is not None and (not constant.is_valid or constant.as_py() < 0):
                raise BadArguments(f"The offset of {spelt} must be a non-negative integer.")
        if len(arguments) > 2:
            _require_default(spelt, value_type, arguments[2].type)

        def kernel(values: Sequence[pa.Array], frames: Frames) -> pa.Array:
            """Return for each row the value `offset` rows later or earlier, or the default."""
            offset = columns.numpy_values(values[1]).astype(np.int64) if len(values) > 1 else 1
            places = frames.positions + (offset if forward else -offset)
            low = frames.starts if in_frame else frames.partition_starts
            high = frames.ends if in_frame else frames.partition_ends
            inside = (places >= low) & (places < high)
            otherwise = values[2] if len(values) > 2 else columns.single(default_value(value_type))
            return _taken(values[0], places, inside, otherwise)

        return WindowFunction(spelt, value_type, kernel, not in_frame)

    return WindowDefinition(name, resolve, 1, 3)


def _require_default(name: str, value_type: DataType, default: DataType) -> None:
    """Raise BadArguments unless the default's type fits the column: their common type is the column's type.

    Decimals may differ in precision: only their common scale and width must be the column's."""
    try:
        shared = common_type([value_type, default])
    except NoCommonType as error:
        raise BadArguments(
            f"The default of {name} is {default}, which has no supertype with the column's type"
            f" {value_type}."
        ) from error
    kinds = plain(shared), plain(value_type)
    if is_nullable(shared) == is_nullable(value_type) and all(
        isinstance(kind, Decimal) for kind in kinds
    ):
        shared_class, own_class = (decimal_class(kind.arrow) for kind in kinds)
        if shared_class == own_class:
            return
    if shared != value_type:
        raise BadArguments(
            f"The default of {name} is {default}, which does not fit the column's type"
            f" {value_type}.",
            hint=f"Cast the column to {shared}.",
        )


def casts_of(name: str, types: Sequence[DataType]) -> tuple[DataType, ...]:
    """Return the types to which a window function's arguments are cast: their own types, but the default of lag and
    lead takes the column's type."""
    if len(types) > 2 and name in ("lag", "lead", "lagInFrame", "leadInFrame"):
        return (types[0], types[1], types[0])
    return tuple(types)


def may_find_no_row(name: str, arguments: int) -> bool:
    """Return whether the function may look at a row that is not there without a default for it, so that its result
    may be NULL or a default value."""
    definition = find_window(name)
    if definition is None:
        return False
    shifts = definition.name in ("lag", "lead", "lagInFrame", "leadInFrame")
    return (shifts and arguments < 3) or definition.name == "nth_value"


def _nth_value(name: str, arguments: Sequence[Argument]) -> WindowFunction:
    """Resolve nth_value(x, n): x of the frame's n-th row, from 1; the type's default if it has
    fewer.

    Raises BadArguments for a constant n below 1.
    """
    value_type = arguments[0].type
    require(name, [plain(arguments[1].type)], Integer, "an integer")
    constant = arguments[1].constant
    if constant is not None and (not constant.is_valid or constant.as_py() < 1):
        raise BadArguments(f"The second argument of {name} must be a positive integer.")

    def kernel(values: Sequence[pa.Array], frames: Frames) -> pa.Array:
        """Return the n-th value of each row's frame, or the type's default."""
        places = frames.starts + columns.numpy_values(values[1]).astype(np.int64) - 1
        inside = (places >= frames.starts) & (places < frames.ends)
        return _taken(values[0], places, inside, columns.single(default_value(value_type)))

    return WindowFunction(name, value_type, kernel)


def _edge(name: str, *, last: bool, keeps_null: bool) -> WindowDefinition:
    """Define first_value or last_value of the frame; without `keeps_null` they skip NULL."""

    def resolve(spelt: str, arguments: Sequence[Argument]) -> WindowFunction:
        """Resolve the function for one argument."""
        value_type = arguments[0].type

        def kernel(values: Sequence[pa.Array], frames: Frames) -> pa.Array:
            """Take the first or last value of each row's frame; the type's default if there is
            none.
            """
            column = values[0]
            places = frames.ends - 1 if last else frames.starts
            if not keeps_null and column.null_count:
                places = _nearest_valid(np.asarray(column.is_valid()), places, last)
            inside = (places >= frames.starts) & (places < frames.ends)
            return _taken(column, places, inside, columns.single(default_value(value_type)))

        return WindowFunction(spelt, value_type, kernel)

    return WindowDefinition(name, resolve, 1, 1)


def _nearest_valid(valid: np.ndarray, places: np.ndarray, backward: bool) -> np.ndarray:
    """Return for each place the nearest position at or after it (with `backward` at or before it) whose value is not
    NULL.

    The search goes beyond the frame; -1 or the number of rows if there is none."""
    rows = np.arange(len(valid))
    if backward:
        nearest = np.maximum.accumulate(np.where(valid, rows, -1))
        return np.where(places >= 0, nearest[np.maximum(places, 0)], -1)
    nearest = np.minimum.accumulate(np.where(valid, rows, len(valid))[::-1])[::-1]
    in_range = places < len(valid)
    return np.where(in_range, nearest[np.minimum(places, len(valid) - 1)], len(valid))


def edge_definition(name: str, respects_nulls: bool) -> WindowDefinition | None:
    """Return the window definition of any, first_value, anyLast or last_value, which with OVER give the frame's first
    or last value; None for other names.

    NULLs are skipped unless `respects_nulls` or the name keeps them."""
    folded = name.lower()
    base = folded.removesuffix("_respect_nulls").removesuffix("respectnulls")
    keeps = respects_nulls or base != folded
    match base:
        case "any" | "any_value" | "first_value":
            return _edge(name, last=False, keeps_null=keeps)
        case "anylast" | "last_value":
            return _edge(name, last=True, keeps_null=keeps)
        case _:
            return None


_IGNORED_MAX = 255
_DEFINITIONS: tuple[WindowDefinition, ...] = (
    _ranking("row_number", UINT64, _row_number, _IGNORED_MAX),
    _ranking("rank", UINT64, _rank),
    _ranking("dense_rank", UINT64, _dense_rank),
    _ranking("percent_rank", FLOAT64, _percent_rank, _IGNORED_MAX),
    _ranking("cume_dist", FLOAT64, _cume_dist, _IGNORED_MAX),
    WindowDefinition("ntile", _ntile, 1, 1),
    _shifted("lag", forward=False, in_frame=False),
    _shifted("lead", forward=True, in_frame=False),
    _shifted("lagInFrame", forward=False, in_frame=True),
    _shifted("leadInFrame", forward=True, in_frame=True),
    WindowDefinition("nth_value", _nth_value, 2, 2),
    *SERIES,
)

_ALIASES = {"denserank": "dense_rank", "percentrank": "percent_rank"}

_BY_NAME: Mapping[str, WindowDefinition] = MappingProxyType(
    {d.name: d for d in _DEFINITIONS}
    | {alias: d for alias, name in _ALIASES.items() for d in _DEFINITIONS if d.name == name}
)


def window_names() -> tuple[str, ...]:
    """Return the names of all window functions, sorted."""
    return tuple(sorted(d.name for d in _DEFINITIONS))
