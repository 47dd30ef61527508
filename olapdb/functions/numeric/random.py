"""Random integers and UUIDs: rand, rand64, generateUUIDv4."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.hashing import mix
from olapdb.functions.scalar import ScalarDefinition, custom
from olapdb.types import UINT32, UINT64, UUID_TYPE, DataType


def _random(result: DataType) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return a resolver of random integers, which the query's seed determines."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; arguments are ignored."""

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Draw one integer for each row."""
            return columns.from_values(_draw(rows, environment), result.arrow)

        return ScalarCall(name, result, kernel, "row")

    return resolve


def _draw(rows: int, environment: Environment) -> np.ndarray:
    """Return one random uint64 for each row, of the environment's seed, or of a new one if it is
    0.
    """
    generator = np.random.default_rng(environment.random_seed or None)
    start = generator.integers(0, 2**63, dtype=np.uint64)
    with np.errstate(over="ignore"):
        return mix(np.arange(rows, dtype=np.uint64) + start)


def _uuids(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve generateUUIDv4(): random UUIDs of version 4 (RFC 9562)."""

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Draw one UUID for each row."""
        seed = environment.random_seed or uuid.uuid4().int & (2**63 - 1)
        generator = np.random.default_rng(seed)
        data = generator.integers(0, 256, (rows, 16), dtype=np.uint8)
        data[:, 6] = (data[:, 6] & 0x0F) | 0x40
        data[:, 8] = (data[:, 8] & 0x3F) | 0x80
        return pa.Array.from_buffers(UUID_TYPE.arrow, rows, [None, pa.py_buffer(data.tobytes())])

    return ScalarCall(name, UUID_TYPE, kernel, "row")


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("rand", _random(UINT32), count=(0, 1), aliases=("rand32",), insensitive=True),
    custom("rand64", _random(UINT64), count=(0, 1)),
    custom("generateUUIDv4", _uuids, count=(0, 1)),
)
