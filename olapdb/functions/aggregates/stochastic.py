"""stochasticLinearRegression and stochasticLogisticRegression: weights of a linear model, learned by
gradient descent.

The rows are taken in batches, in their order; rows behind the last whole batch change nothing, as in
ClickHouse. Adam: Kingma and Ba (2015). The state has the rows themselves, so that the weights do not
depend on how rows were cut into blocks; ClickHouse averages the weights of blocks.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    BadGet,
    CannotConvertType,
    IllegalTypeOfArgument,
    TooFewArguments,
    TooManyArguments,
)
from olapdb.functions.aggregates.gathered import Gathered, rows_type
from olapdb.functions.aggregates.signatures import illegal_argument, state_type_of
from olapdb.functions.base import Aggregate
from olapdb.functions.kernels import columns
from olapdb.records import dataclass
from olapdb.types import FLOAT64, Array, Boolean, DataType, Float, Integer, plain

REGRESSIONS = ("stochasticLinearRegression", "stochasticLogisticRegression")
_METHODS = ("SGD", "Momentum", "Nesterov", "Adam")
_DEFAULTS: tuple[object, ...] = (1.0, 0.5, 15.0, "Adam")


class _Updater:
    """The optimizer of a method (SGD, Momentum, Nesterov, Adam) and its memory of earlier gradients; float64, shape
    (groups, weights)."""

    def __init__(self, method: str, rate: float, shape: tuple[int, int]) -> None:
        """Start with no earlier gradients for `shape`, (groups, weights); `rate` is the learning rate."""
        self._method, self._rate = method, rate
        self._momentum = np.zeros(shape)
        self._squares = np.zeros(shape)
        self._decay = {"Momentum": 0.1, "Nesterov": 0.9}.get(method, 0.0)

    def place(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights at which the next gradients are taken."""
        if self._method != "Nesterov":
            return weights
        return weights + self._momentum[: len(weights)] * self._decay

    def step(self, gradients: np.ndarray, size: int, number: int) -> np.ndarray:
        """Return the change of the weights of the first `len(gradients)` groups after batch `number`, from 1, of
        `size` rows."""
        momentum = self._momentum[: len(gradients)]
        if self._method == "SGD":
            return self._rate / size * gradients
        if self._method != "Adam":
            momentum[:] = momentum * self._decay + self._rate * gradients / size
            return momentum
        squares, mean = self._squares[: len(gradients)], gradients / size
        momentum[:] = 0.9 * momentum + (1 - 0.9) * mean
        squares[:] = 0.999 * squares + (1 - 0.999) * mean * mean
        spread = np.sqrt(squares / (1 - 0.999**number)) + 1e-6
        return self._rate * momentum / ((1 - 0.9**number) * spread)


@dataclass(frozen=True)
class StochasticRegression(Gathered):
    """stochastic…Regression([rate[, l2[, batch[, method]]]])(target, x, …): an array of the weight of
    each x and the bias.

    State: Array(Tuple of the arguments), in row order."""

    rate: float = 1.0
    penalty: float = 0.5
    batch: int = 15
    method: str = "Adam"

    def _result(self, offsets: np.ndarray, arguments: list[np.ndarray]) -> pa.Array:
        """Train on each group's rows in row order, batch by batch; return each group's array of weights and bias."""
        target, *features = (a.astype(np.float64) for a in arguments)
        points = np.stack(features, axis=1)
        sizes = np.diff(offsets)
        batches = sizes // self.batch if self.batch > 0 else np.zeros_like(sizes)
        order = np.argsort(-batches, kind="stable")
        weights = np.zeros((len(sizes), len(features) + 1))
        updater = _Updater(self.method, self.rate, weights.shape)
        places = np.arange(max(self.batch, 0))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for number in range(int(batches.max(initial=0))):
                groups = order[: np.count_nonzero(batches > number)]
                rows = offsets[groups][:, None] + number * self.batch + places
                now = weights[: len(groups)]
                gradients = self._gradients(updater.place(now), target[rows], points[rows])
                now += updater.step(gradients, self.batch, number + 1)
        learned = np.empty_like(weights)
        learned[order] = weights
        ends = np.arange(len(sizes) + 1) * weights.shape[1]
        return columns.lists_from(ends, columns.from_values(learned.reshape(-1), pa.float64()))

    def _gradients(self, at: np.ndarray, target: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Return the gradients of groups (axis 0) at their weights, summed over a batch (axis 1) in
        the order of its rows."""
        slopes, bias = at[:, None, :-1], at[:, -1:]
        parts = [points[..., i] * slopes[..., i] for i in range(points.shape[2])]
        if self.name.startswith(REGRESSIONS[0]):
            distance = target - bias
            for part in parts:
                distance = distance - part
            pull = distance * 2
        else:
            score = bias + np.zeros_like(target)
            for part in parts:
                score = score + part
            pull = target / (np.exp(score * target) + 1)
        moves = pull[..., None] * points - 2 * self.penalty * slopes
        each = np.concatenate((moves, pull[..., None]), axis=2)
        return np.asarray(np.cumsum(each, axis=1)[:, -1])


def stochastic_regression(
    name: str, parameters: tuple[object, ...], types: tuple[DataType, ...]
) -> Aggregate:
    """Resolve a regression of a target and at least one number.

    Raises TooManyArguments, TooFewArguments, CannotConvertType, BadGet and IllegalTypeOfArgument."""
    if len(parameters) > len(_DEFAULTS):
        raise TooManyArguments(
            f"Aggregate function {name} takes up to four parameters: the learning rate, the"
            " coefficient of L2 regularization, the size of a batch and the method."
        )
    for number in parameters[:3]:
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise CannotConvertType(f"The parameter {number!r} of {name} is no number.")
    if len(types) < 2:
        raise TooFewArguments(f"Aggregate function {name} takes a target and numbers behind it.")
    for data_type in types:
        if not isinstance(plain(data_type), Integer | Float | Boolean):
            raise illegal_argument(name, data_type, "a number")
    given: list[object] = [*parameters, *_DEFAULTS[len(parameters) :]]
    rate, penalty, batch, method = given
    if not isinstance(method, str):
        raise BadGet(f"The method of {name} is a text, one of {', '.join(_METHODS)}.")
    if method not in _METHODS:
        raise IllegalTypeOfArgument(
            f"{name} does not know the method {method!r}. It knows {', '.join(_METHODS)}."
        )
    assert isinstance(rate, int | float)
    assert isinstance(penalty, int | float)
    assert isinstance(batch, int | float)
    return StochasticRegression(
        name,
        parameters,
        types,
        Array(FLOAT64),
        state_type_of(name, parameters, types, rows_type(types)),
        merge_class="ordered",
        rate=float(rate),
        penalty=float(penalty),
        batch=int(batch),
        method=method,
    )
