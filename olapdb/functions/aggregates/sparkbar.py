"""sparkbar: a group's values over x as a text of bars."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, IllegalTypeOfArgument, NumberOfArgumentsDoesntMatch
from olapdb.functions.aggregates import group_kernels
from olapdb.functions.aggregates.gathered import Gathered, rows_type
from olapdb.functions.aggregates.signatures import illegal_argument, require_count, state_type_of
from olapdb.functions.base import Aggregate, Groups
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.integer_order import order_by
from olapdb.records import dataclass
from olapdb.types import STRING, DataType, Date, DateTime, Float, Integer, plain

_WIDTH_MAX = 1024
_BARS = np.array([list(bar.encode().ljust(3, b"\0")) for bar in " ▁▂▃▄▅▆▇█"], np.uint8)
_BYTES = np.array([1] + [3] * 8)


@dataclass(frozen=True)
class Sparkbar(Gathered):
    """sparkbar(width[, min x, max x])(x, y): one bar for each of `width` ranges of x, as high as the
    mean of the sums of y at the x of the range, beside the highest. Only y above 0 count."""

    width: int = 2
    bounds: tuple[int, int] | None = None

    def state(self, arguments: Sequence[pa.Array], groups: Groups) -> pa.Array:
        """Return the states of the groups, of the rows that have no NULL and whose x is within the bounds, if there
        are any."""
        arguments, groups = group_kernels.drop_null_rows(arguments, groups)
        if self.bounds:
            x = columns.numpy_values(arguments[0])
            keep = (x >= self.bounds[0]) & (x <= self.bounds[1])
            arguments, groups = group_kernels.filter_rows(arguments, groups, keep)
        return super().state(arguments, groups)

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Return each group's text; empty for a group without a y above 0."""
        x, y = arguments
        count = len(offsets) - 1
        codes = columns.parents_of(offsets)
        least, most = self._ranges(x.astype(np.uint64), codes, count)
        keep = y > 0
        places, sums, owners = _sums_by_x(x[keep].astype(np.uint64), y[keep], codes[keep])
        heights = np.zeros((count, self.width))
        if len(places):
            delta = (most - least).astype(np.float64)[owners] + 1
            shift = (places - least[owners]).astype(np.float64)
            bars = np.minimum((self.width / delta * shift).astype(np.int64), self.width - 1)
            cells = owners * self.width + bars
            size = count * self.width
            total, number = np.bincount(cells, sums, size), np.bincount(cells, minlength=size)
            with np.errstate(invalid="ignore", divide="ignore"):
                means = np.where(number > 0, total / number, 0).reshape(count, self.width)
                heights = _scaled(means, y.dtype)
        present = np.bincount(owners, minlength=count) > 0
        return _texts(heights.astype(np.int64), present, present & (least == most))

    def _ranges(
        self, x: np.ndarray, codes: np.ndarray, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and the upper end of the x range of each group: those of the parameters, else the group's
        least and greatest x."""
        least, most = np.full(count, np.iinfo(np.uint64).max), np.zeros(count, np.uint64)
        if self.bounds:
            least[:], most[:] = self.bounds
        else:
            np.minimum.at(least, codes, x)
            np.maximum.at(most, codes, x)
        return least, most


def _scaled(means: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Scale means to bar heights from 1 to 8; means of 0 or less have height 0. Follows ClickHouse's integer
    arithmetic, which divides by a seventh of the greatest mean if 7 times a mean overflows the type."""
    if dtype.kind == "f":
        scaled = means / (means.max(axis=1, keepdims=True) / 7)
    else:
        means = np.floor(np.minimum(means, np.iinfo(dtype).max))
        highest = means.max(axis=1, keepdims=True)
        scaled = means * 7 / highest
        wide = means * 7 > np.iinfo(dtype).max
        scaled = np.where(wide, np.floor(means / np.maximum(highest // 7, 1)), scaled)
    return np.where(means > 0, np.minimum(scaled + 1, 8), 0)


def _sums_by_x(
    x: np.ndarray, y: np.ndarray, codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct x of each group, sorted, their sums of y and their groups."""
    order = order_by(codes, x)
    x, codes = x[order], codes[order]
    new = np.ones(len(x), bool)
    new[1:] = (x[1:] != x[:-1]) | (codes[1:] != codes[:-1])
    cells = np.cumsum(new) - 1
    sums = np.bincount(cells, y[order].astype(np.float64)) if len(x) else np.zeros(0)
    return x[new], sums, codes[new]


def _texts(heights: np.ndarray, present: np.ndarray, single: np.ndarray) -> pa.Array:
    """Turn bar heights from 0 to 8, one row a group, into texts. The text is empty for groups not `present`, and one
    full bar for groups of a single x."""
    shown = np.broadcast_to((present & ~single)[:, None], heights.shape).copy()
    heights = np.where(single[:, None], 8, heights)
    shown[single, 0] = True
    sizes = (_BYTES[heights] * shown).sum(axis=1)
    bars = heights[shown]
    used = np.arange(3) < _BYTES[bars][:, None]
    return columns.strings_from(columns.offsets_from_counts(sizes), _BARS[bars][used])


def sparkbar(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve sparkbar(width[, min x, max x])(x, y) of an unsigned integer or time, and a number.

    Raises NumberOfArgumentsDoesntMatch, BadArguments and IllegalTypeOfArgument."""
    require_count(name, types, 2)
    if len(parameters) not in (1, 3):
        raise NumberOfArgumentsDoesntMatch(f"Aggregate function {name} has 1 or 3 parameters.")
    width, *bounds = (_integer(name, parameter) for parameter in parameters)
    if not 2 <= width <= _WIDTH_MAX:
        raise BadArguments(f"The width of {name} is from 2 to {_WIDTH_MAX}, not {width}.")
    if bounds and bounds[0] >= bounds[1]:
        raise BadArguments(f"The least x of {name} is less than the greatest.")
    x, y = (plain(t) for t in types)
    if not isinstance(x, Date | DateTime) and not (isinstance(x, Integer) and not x.signed):
        raise illegal_argument(name, types[0], "an unsigned integer, Date or DateTime")
    if bounds and bounds[0] < 0:
        raise IllegalTypeOfArgument(f"The least x of {name} is of x's type {x}: not below 0.")
    if not isinstance(y, Integer | Float):
        raise illegal_argument(name, types[1], "a number")
    parameters = (width, *bounds)
    state = state_type_of(name, parameters, types, rows_type(types))
    given = (bounds[0], bounds[1]) if bounds else None
    return Sparkbar(name, parameters, types, STRING, state, width=width, bounds=given)


def _integer(name: str, parameter: object) -> int:
    """Return an integer parameter, or the days or seconds of a date or time; raise BadArguments for
    any other one."""
    if isinstance(parameter, datetime.datetime):
        parameter = parameter if parameter.tzinfo else parameter.replace(tzinfo=datetime.UTC)
        return int(parameter.timestamp())
    if isinstance(parameter, datetime.date):
        return (parameter - datetime.date(1970, 1, 1)).days
    if not isinstance(parameter, int) or isinstance(parameter, bool):
        raise BadArguments(f"The parameters of {name} are integers, not {parameter!r}.")
    return parameter
