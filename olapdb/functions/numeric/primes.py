"""isPrime and isProbablePrime: the test of Miller and Rabin, once for each distinct number.

Twelve bases decide it for 64 bits (Sorenson and Webster, 2015). For wider numbers the bases are the
first primes, so that an answer does not change from call to call.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from olapdb.errors import BadArguments, IllegalColumn
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels.by_value import define_by_value, values_by_row
from olapdb.types import UINT8, DataType, Integer, WideNumber

_DECISIVE = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
_ROUNDS, _ROUNDS_MAX = 25, 256


def _is_prime(value: int) -> int:
    """Return whether an integer of at most 64 bits is prime."""
    return int(_passes_all(value, _DECISIVE))


def _passes_all(value: int, bases: Sequence[int]) -> bool:
    """Return whether an integer passes as a prime: at least 2, divided by none of these prime bases but itself, and
    passed by the test of Miller and Rabin for each."""
    if value < 2:
        return False
    for base in bases:
        if value % base == 0:
            return value == base
    odd, twos = value - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(value, base, odd, twos) for base in bases)


def _passes(value: int, base: int, odd: int, twos: int) -> bool:
    """Return whether `value` passes the test of Miller and Rabin for one base, so that it may be prime; value - 1 =
    odd * 2^twos."""
    x = pow(base, odd, value)
    if x in (1, value - 1):
        return True
    for _ in range(twos - 1):
        x = x * x % value
        if x == value - 1:
            return True
    return False


def _first_primes(count: int) -> list[int]:
    """Return the first `count` primes, from 2 on."""
    primes: list[int] = []
    number = 2
    while len(primes) < count:
        if all(number % prime for prime in primes):
            primes.append(number)
        number += 1
    return primes


def _is_natural(data_type: DataType) -> bool:
    """Return whether a type is an unsigned integer of at most 64 bits."""
    return isinstance(data_type, Integer) and not data_type.signed


def _rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return UInt8; raise IllegalTypeOfArgument unless an unsigned integer of 64 bits is given."""
    if not _is_natural(types[0]):
        raise scalar.illegal(name, types[0], "an unsigned integer of at most 64 bits")
    return UINT8


def _probable_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return UInt8 of an unsigned integer of any width and a constant number of rounds, 1 to 256.

    Raises IllegalTypeOfArgument, IllegalColumn and BadArguments."""
    wide = isinstance(types[0], WideNumber) and not types[0].signed
    if not wide and not _is_natural(types[0]):
        raise scalar.illegal(name, types[0], "an unsigned integer")
    if len(types) > 1:
        if not _is_natural(types[1]):
            raise scalar.illegal(name, types[1], "an unsigned number of rounds")
        if arguments[1].constant is None:
            raise IllegalColumn(f"The number of rounds of {name} must be a constant.")
        rounds = arguments[1].constant.as_py()
        if not 1 <= rounds <= _ROUNDS_MAX:
            raise BadArguments(f"The number of rounds of {name} is 1 to {_ROUNDS_MAX}.")
    return UINT8


def _is_probable_prime(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return 1 where a number is probably prime, else 0: certain up to 64 bits, beyond with as many bases as the
    second argument says."""
    rounds = call.constant(1)
    count = max(len(_DECISIVE), rounds if isinstance(rounds, int) else _ROUNDS)
    bases = _first_primes(count) if isinstance(call.types[0], WideNumber) else _DECISIVE
    return values_by_row(
        arrays[:1], lambda value: int(_passes_all(int(value), bases)), call.result.arrow
    )


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    define_by_value("isPrime", _rule, _is_prime),
    scalar.define("isProbablePrime", _probable_rule, _is_probable_prime, count=(1, 2)),
)
