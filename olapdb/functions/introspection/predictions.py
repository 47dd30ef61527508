"""evalMLMethod: what a model that an aggregate learned says of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import BadArguments, NotSupportedError, NumberOfArgumentsDoesntMatch
from olapdb.functions import scalar
from olapdb.functions.aggregates.stochastic import REGRESSIONS
from olapdb.functions.base import Argument, Column, ScalarCall
from olapdb.functions.composition import as_call, call, parts_of
from olapdb.functions.kernels import columns
from olapdb.types import FLOAT64, AggregateFunction, Decimal, Float, Integer, plain


def _prediction(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve evalMLMethod(state, x, …): the value that the trained model in the state predicts. Raises
    IllegalTypeOfArgument, BadArguments, NotSupportedError for a state of another aggregate, and
    NumberOfArgumentsDoesntMatch unless there are as many x as the model has weights."""
    model = arguments[0].type
    if not isinstance(model, AggregateFunction):
        raise scalar.illegal(name, model, "an AggregateFunction, the model,")
    for argument in arguments[1:]:
        kind = plain(argument.type)
        if isinstance(kind, Decimal):
            raise BadArguments(f"The arguments of {name} are integers or floats, not {kind}.")
        scalar.require(name, [kind], (Integer, Float), "a number")
    base = next((known for known in REGRESSIONS if model.function.startswith(known)), None)
    if base is None:
        raise NotSupportedError(f"{name} does not predict by a state of {model.function}.")
    if len(arguments) != len(model.arguments):
        raise NumberOfArgumentsDoesntMatch(
            f"The model of {name} takes {len(model.arguments) - 1} numbers,"
            f" {len(arguments) - 1} given."
        )
    weights_of = as_call(name, call("finalizeAggregation", parts_of(arguments)[0]))

    def kernel(values: list[Column], invocation: scalar.Invocation) -> pa.Array:
        """Return bias + sum of weight * x; for a logistic model, its logistic function, a probability."""
        rows = invocation.rows
        learned = columns.single(weights_of.kernel(values, rows, invocation.environment))
        offsets, elements = columns.elements_of(learned)
        weights = columns.numpy_values(elements)[offsets[0] :].reshape(len(learned), -1)
        predicted = np.zeros(rows) + weights[:, -1]
        for at, value in enumerate(values[1:]):
            numbers = columns.numpy_values(columns.as_array(value, rows)).astype(np.float64)
            predicted = predicted + weights[:, at] * numbers
        if base == REGRESSIONS[1]:
            with np.errstate(over="ignore"):
                predicted = 1 / (1 + np.exp(-predicted))
        return columns.from_values(predicted, pa.float64())

    return scalar.standard_call(name, arguments, FLOAT64, kernel, keeps_constants=True)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("evalMLMethod", _prediction, count=(1, None)),
)
