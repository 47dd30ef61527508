"""primes(): a sieve of segments, so that memory is bounded."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from olapdb.compute.context import ExecutionContext
from olapdb.functions.kernels import columns
from olapdb.plan.nodes import Primes

_SEGMENT_MIN, _SEGMENT_MAX = 1 << 14, 1 << 22
_SLICED_MAX = 1 << 12
"""Multiples of primes up to this are crossed off by a slice each, those of larger ones together."""
_BASE_MAX = 1 << 25
"""The largest prime by whose multiples a segment is sieved: their list has 16 MB. Numbers beyond its
square that no such prime divides are tested one by one."""
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
"""Bases for which the test of Miller and Rabin is exact below 2^64 (Sorenson and Webster, 2015)."""
_END = 1 << 64


def primes_batches(node: Primes, context: ExecutionContext) -> Iterator[pa.RecordBatch]:
    """Yield the primes that the node names, in rising order."""
    index = 0
    end = None if node.count is None else node.start + node.count * node.step
    for first, last in node.ranges:
        for primes in _primes_between(first, last + 1, context):
            chosen = primes[_places(node, index, len(primes))]
            if node.count is not None:
                before = 0 if index <= node.start else -(-(index - node.start) // node.step)
                chosen = chosen[: max(node.count - before, 0)]
            index += len(primes)
            yield from _batches(node, chosen, context)
            if end is not None and index >= end:
                return


def _places(node: Primes, index: int, count: int) -> slice:
    """Return which of `count` primes the node names, the first being the prime number `index`."""
    if index <= node.start:
        return slice(node.start - index, count, node.step)
    return slice(-(index - node.start) % node.step, count, node.step)


def _batches(
    node: Primes, numbers: np.ndarray, context: ExecutionContext
) -> Iterator[pa.RecordBatch]:
    """Yield the numbers in batches."""
    for start in range(0, len(numbers), context.batch_rows):
        column = columns.from_values(numbers[start : start + context.batch_rows], pa.uint64())
        context.count_read(len(column), column.nbytes)
        yield pa.RecordBatch.from_arrays([column], schema=node.arrow_schema)


def _primes_between(start: int, end: int, context: ExecutionContext) -> Iterator[np.ndarray]:
    """Yield the primes from `start` up to `end`, excluded, a segment at a time."""
    if start <= 2 < end:
        yield np.array([2], np.uint64)
    size, limit = _SEGMENT_MIN, 1 << 10
    base = _small_primes(limit)
    low = max(start | 1, 3)
    while low < min(end, _END):
        context.check()
        high = min(low + 2 * size, end, _END)
        root = math.isqrt(high - 1)
        if limit < min(root, _BASE_MAX):
            limit = min(max(root, 2 * limit), _BASE_MAX)
            base = _small_primes(limit)
        yield _sieved(low, high, base[: np.searchsorted(base, root, "right")])
        low, size = low + 2 * size, min(size * 2, _SEGMENT_MAX)


def _small_primes(limit: int) -> np.ndarray:
    """Return the odd primes up to the limit, int64, by the sieve of Eratosthenes."""
    is_prime = np.ones(limit // 2 + 1, bool)  # of 1, 3, 5, …
    is_prime[0] = False
    for at in range(1, math.isqrt(limit) // 2 + 1):
        if is_prime[at]:
            is_prime[2 * at * (at + 1) :: 2 * at + 1] = False
    numbers = 2 * np.flatnonzero(is_prime) + 1
    return numbers[numbers <= limit]


def _sieved(low: int, high: int, base: np.ndarray) -> np.ndarray:
    """Return the primes from `low`, which is odd, up to `high`, excluded.

    `base` are the odd primes up to the root of `high`, or to _BASE_MAX."""
    is_prime = np.ones((high - low + 1) // 2, bool)  # of low, low + 2, …
    # The first odd multiple of p from p * p and from low on; squares are below 2^50.
    squares = base * base
    remainder = (np.uint64(low) % base.astype(np.uint64)).astype(np.int64)
    distance = -remainder % base
    distance += np.where(distance % 2 == 1, base, 0)
    near = min(low, 1 << 62)
    places = np.where(squares > near, squares - near, distance) // 2
    sliced = int(np.searchsorted(base, _SLICED_MAX, "right"))
    for prime, place in zip(base[:sliced].tolist(), places[:sliced].tolist(), strict=True):
        is_prime[place::prime] = False
    rest, steps = places[sliced:], base[sliced:]
    while len(rest):
        inside = rest < len(is_prime)
        rest, steps = rest[inside], steps[inside]
        is_prime[rest] = False
        rest = rest + steps
    numbers = np.uint64(low) + np.uint64(2) * np.flatnonzero(is_prime).astype(np.uint64)
    if high > _BASE_MAX**2:
        return np.array([n for n in numbers.tolist() if _is_prime(n)], np.uint64)
    return numbers


def _is_prime(number: int) -> bool:
    """Return whether an odd number below 2^64 is prime, by the test of Miller and Rabin."""
    twos = ((number - 1) & -(number - 1)).bit_length() - 1
    odd = (number - 1) >> twos
    for witness in _WITNESSES:
        power = pow(witness, odd, number)
        if power in (0, 1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True
