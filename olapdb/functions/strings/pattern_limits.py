"""The settings that bound the patterns of multiMatch… and multiFuzzyMatch…, or forbid these functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import columns

_LENGTH, _TOTAL = "max_hyperscan_regexp_length", "max_hyperscan_regexp_total_length"


def limited(definition: scalar.ScalarDefinition) -> scalar.ScalarDefinition:
    """Return the definition of a multi-pattern function, checked by the settings that bound patterns or forbid the
    function.

    Its last argument is the array of patterns."""

    def by_settings(changed: frozenset[str]) -> scalar.Resolver:
        """Return the resolver that checks the limits under the settings `changed`, which are not at their defaults."""
        limits = dict(setting.split("=") for setting in changed if "=" in setting)

        def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
            """Resolve the call. Raises FunctionNotAllowed, and BadArguments for constant patterns that are
            too long; the kernel raises it for others."""
            if "allow_hyperscan" in changed:
                raise errors.FunctionNotAllowed(
                    f"Function {name} is not allowed: the setting allow_hyperscan is 0.",
                    hint="SET allow_hyperscan = 1.",
                )
            call = definition.resolver(name, arguments)
            constant = arguments[-1].constant
            if constant is not None:
                _check(columns.as_array(constant, 1), limits)
                return call

            def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
                """Check the patterns of each row, then search for them."""
                _check(columns.single(values[-1]), limits)
                return call.kernel(values, rows, environment)

            return replace(call, kernel=kernel)

        return resolve

    return replace(definition, by_settings=by_settings)


def _check(lists: pa.Array, limits: dict[str, str]) -> None:
    """Raise BadArguments for a pattern, or for a row's patterns together, with more bytes than `limits` say; a limit
    of 0 is none."""
    offsets, patterns = columns.elements_of(lists)
    sizes = columns.numpy_values(pc.fill_null(pc.binary_length(columns.text(patterns)), 0))
    totals = np.diff(np.concatenate(([0], np.cumsum(sizes)))[offsets])
    for name, byte_counts in ((_LENGTH, sizes), (_TOTAL, totals)):
        most = int(limits.get(name, 0))
        if most and len(byte_counts) and byte_counts.max() > most:
            raise errors.BadArguments(
                f"Patterns of {byte_counts.max()} bytes are longer than {name} = {most}.",
                hint=f"SET {name} = 0 takes patterns of any length.",
            )
