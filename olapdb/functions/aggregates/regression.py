"""Lines through points: the functions regr_… and simpleLinearRegression.

The state is corr's: count, means, sums of products and of squares of deviations, so that blocks
merge as Chan, Golub and LeVeque (1979) add variances.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from olapdb.errors import AggregateDoesntAllowParameters
from olapdb.functions.aggregates.covariance import Covariance
from olapdb.functions.aggregates.signatures import illegal_argument, require_count, state_type_of
from olapdb.functions.base import Aggregate
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import FLOAT64, UINT64, Boolean, DataType, Float, Integer, Tuple, plain

_FIELDS = ("count", "left", "right", "products", "left_squares", "right_squares")


@dataclass(frozen=True)
class _Moments:
    """The count, means and sums of squared and mixed deviations of each group's points; float64, shape (groups,)."""

    count: np.ndarray
    y: np.ndarray
    x: np.ndarray
    sxy: np.ndarray
    syy: np.ndarray
    sxx: np.ndarray

    def slope(self) -> np.ndarray:
        """Return the slope of each group's line; NaN for fewer than two points, or if all have one x."""
        return np.where(self.sxx > 0, self.sxy / self.sxx, np.nan)

    def intercept(self) -> np.ndarray:
        """Return the y of the line at x = 0."""
        return np.asarray(self.y - self.slope() * self.x)

    def determination(self) -> np.ndarray:
        """Return the squared correlation (R squared) of each group; 1 if all points have one y."""
        squared = np.where(self.syy > 0, self.sxy**2 / (self.sxx * self.syy), 1.0)
        return np.where(self.sxx > 0, squared, np.nan)

    def known(self, values: np.ndarray) -> np.ndarray:
        """Return `values` with NaN for the groups without points."""
        return np.where(self.count > 0, values, np.nan)


_RESULTS: dict[str, Callable[[_Moments], np.ndarray]] = {
    "regr_slope": _Moments.slope,
    "regr_intercept": _Moments.intercept,
    "regr_r2": _Moments.determination,
    "regr_count": lambda m: m.count,
    "regr_avgx": lambda m: m.known(m.x),
    "regr_avgy": lambda m: m.known(m.y),
    "regr_sxx": lambda m: m.known(m.sxx),
    "regr_syy": lambda m: m.known(m.syy),
    "regr_sxy": lambda m: m.known(m.sxy),
}
REGRESSIONS = (*_RESULTS, "simpleLinearRegression")


@dataclass(frozen=True)
class Regression(Covariance):
    """An aggregate of a line through points: regr_…(y, x) or simpleLinearRegression(x, y). Points with a NULL are
    skipped."""

    @property
    def correlates(self) -> bool:
        """Return True: the sums of squares are needed."""
        return True

    def finalize(self, states: pa.Array) -> pa.Array:
        """Return the result of the function of this name from the line through each group's points: of
        simpleLinearRegression its slope and intercept, of the others one number."""
        count, left, right, products, left_squares, right_squares = (
            columns.numpy_values(f).astype(np.float64) for f in columns.struct_fields(states)
        )
        name = self.state_type.function
        result = plain(self.result_type)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if name == "simpleLinearRegression":
                moments = _Moments(count, right, left, products, right_squares, left_squares)
                line = (moments.slope(), moments.intercept())
                fields = [columns.from_values(values, pa.float64()) for values in line]
                return columns.structs_from(fields, result.arrow)
            moments = _Moments(count, left, right, products, left_squares, right_squares)
            return columns.from_values(_RESULTS[name](moments), result.arrow)


def regression(name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]) -> Aggregate:
    """Resolve a function regr_…, such as regr_slope, or simpleLinearRegression of two numbers.

    Raises AggregateDoesntAllowParameters and IllegalTypeOfArgument."""
    if parameters:
        raise AggregateDoesntAllowParameters(f"Aggregate function {name} takes no parameters.")
    require_count(name, types, 2)
    for data_type in types:
        if not isinstance(plain(data_type), Integer | Float | Boolean):
            raise illegal_argument(name, data_type, "a number")
    state = Tuple((UINT64, *[FLOAT64] * (len(_FIELDS) - 1)), _FIELDS)
    result: DataType = FLOAT64
    if name == "regr_count":
        result = UINT64
    elif name == "simpleLinearRegression":
        result = Tuple((FLOAT64, FLOAT64), ("k", "b"))
    return Regression(
        name, (), types, result, state_type_of(name, (), types, state), merge_class="float"
    )
