"""xxHash64Spark: Spark's xxhash64 of one text, which is XXH64 with the seed 42."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.numeric.byte_hashes import values_of, xx_hash64
from olapdb.types import INT64, Nothing, String, is_nullable, plain

_SEED = 42
"""The seed, which is also the hash of NULL."""


def _hash(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the hash of each text, as a signed number."""
    hashed = xx_hash64(values_of(columns.text(arrays[0])), _SEED)
    return columns.from_values(hashed.view(np.int64), pa.int64())


def _resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve xxHash64Spark(text): Int64, never NULL. NULL gives the seed 42. Raises IllegalTypeOfArgument."""
    given = arguments[0].type
    seed = pa.scalar(_SEED, pa.int64())
    if isinstance(plain(given), Nothing):
        return ScalarCall(name, INT64, lambda values, rows, environment: seed)
    scalar.require(name, [plain(given)], String, "a String")
    call = scalar.standard_call(name, arguments, INT64, _hash)
    if not is_nullable(given):
        return call

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Hash the texts; a NULL gives the seed."""
        return pc.fill_null(call.kernel(values, rows, environment), seed)

    return ScalarCall(name, INT64, kernel)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom("xxHash64Spark", _resolve, count=1),
)
