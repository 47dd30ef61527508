"""Time zones that differ from row to row: the function is called once for each distinct zone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.types import String


def by_row_zone(resolver: scalar.Resolver, at: int) -> scalar.Resolver:
    """Extend a resolver so that argument `at`, a time zone, may be a column of Strings. The result type must not
    depend on the zone. The kernel raises BadArguments for an unknown zone."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call with a zone for each row; a constant zone, or an argument of another type, goes to the
        original resolver."""
        varies = (
            len(arguments) > at
            and arguments[at].constant is None
            and isinstance(arguments[at].type, String)
        )
        if not varies:
            return resolver(name, arguments)

        def with_zone(zone: pa.Scalar) -> ScalarCall:
            """Resolve the call with this constant zone."""
            fixed = Argument(arguments[at].type, zone)
            return resolver(name, [*arguments[:at], fixed, *arguments[at + 1 :]])

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Call the function once for the rows of each distinct zone, and restore the order of the rows."""
            zones = columns.as_array(values[at], rows).dictionary_encode()
            codes = columns.numpy_values(zones.indices)
            results, places = [], []
            for code, zone in enumerate(zones.dictionary):
                chosen = np.flatnonzero(codes == code)
                own = [
                    value if isinstance(value, pa.Scalar) else value.take(pa.array(chosen))
                    for value in values
                ]
                own[at] = zone
                result = with_zone(zone).kernel(own, len(chosen), environment)
                results.append(columns.as_array(result, len(chosen)))
                places.append(chosen)
            order = np.argsort(np.concatenate([np.zeros(0, np.int64), *places]), kind="stable")
            joined = pa.concat_arrays(results) if results else pa.nulls(0, whole.type.arrow)
            return joined.take(pa.array(order))

        whole = with_zone(pa.scalar("UTC"))
        return ScalarCall(name, whole.type, kernel, whole.volatility)

    return resolve
