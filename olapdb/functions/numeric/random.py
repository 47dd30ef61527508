"""Random integers, UUIDs, texts and numbers of distributions: rand, randNormal, randomString."""

from __future__ import annotations

import threading
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from olapdb.errors import (
    ArgumentOutOfBound,
    BadArguments,
    IllegalTypeOfArgument,
    TooLargeStringSize,
)
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.hashing import mix
from olapdb.functions.scalar import (
    Invocation,
    ScalarDefinition,
    constant_integer,
    custom,
    require,
    standard_call,
)
from olapdb.types import (
    FLOAT64,
    STRING,
    UINT8,
    UINT32,
    UINT64,
    UUID_TYPE,
    DataType,
    DateTime,
    FixedString,
    Float,
    Integer,
    String,
    plain,
)


def _random(result: DataType) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of rand and rand64: random integers of type `result`, one a row, which the query's seed
    determines."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call. A constant argument is a tag: calls with different tags draw different numbers."""
        tag = arguments[0].constant if arguments else None

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Draw one random integer for each row."""
            return columns.from_values(_draw(rows, environment, tag), result.arrow)

        return ScalarCall(name, result, kernel, "row")

    return resolve


def _draw(rows: int, environment: Environment, tag: pa.Scalar | None) -> np.ndarray:
    """Return one random uint64 for each row, from the environment's seed and the call's constant argument `tag`.

    A seed of 0 means a new seed at each call."""
    seed: int | list[int] | None = environment.random_seed or None
    if tag is not None and seed is not None:
        seed = [environment.random_seed, zlib.crc32(repr(tag).encode())]
    generator = np.random.default_rng(seed)
    start = generator.integers(0, 2**63, dtype=np.uint64)
    with np.errstate(over="ignore"):
        return mix(np.arange(rows, dtype=np.uint64) + start)


def _uuids(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve generateUUIDv4([tag]): a random UUID of version 4 (RFC 9562) for each row."""

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Draw one UUID for each row. The argument is a tag: calls with another one draw other UUIDs."""
        seeds = [environment.random_seed or uuid.uuid4().int & (2**63 - 1)]
        if values and isinstance(values[0], pa.Scalar):
            seeds.append(zlib.crc32(repr(values[0]).encode()))
        generator = np.random.default_rng(seeds if len(seeds) > 1 else seeds[0])
        data = generator.integers(0, 256, (rows, 16), dtype=np.uint8)
        data[:, 6] = (data[:, 6] & 0x0F) | 0x40
        data[:, 8] = (data[:, 8] & 0x3F) | 0x80
        return pa.Array.from_buffers(UUID_TYPE.arrow, rows, [None, pa.py_buffer(data.tobytes())])

    return ScalarCall(name, UUID_TYPE, kernel, "row")


def _ordered_uuids(milliseconds: np.ndarray, generator: np.random.Generator) -> pa.Array:
    """Return UUIDs of version 7 (RFC 9562) with these Unix times in milliseconds; the generator draws the other
    bits."""
    rows = len(milliseconds)
    data = generator.integers(0, 256, (rows, 16), dtype=np.uint8)
    stamp = milliseconds.astype(">u8").view(np.uint8).reshape(rows, 8)
    data[:, :6] = stamp[:, 2:]
    data[:, 6] = (data[:, 6] & 0x0F) | 0x70
    data[:, 8] = (data[:, 8] & 0x3F) | 0x80
    return pa.Array.from_buffers(UUID_TYPE.arrow, rows, [None, pa.py_buffer(data.tobytes())])


def _uuids_of_now(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve generateUUIDv7([tag]): UUIDs of version 7 with the query's time, ascending within a block."""

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Draw one UUID for each row: the time, then the number of the row in the block, then random bits. A
        constant argument is a tag."""
        tags = [repr(value) for value in values if isinstance(value, pa.Scalar)]
        now = int(environment.now_seconds * 1000)
        uuids = _ordered_uuids(np.full(rows, now, np.int64), generator_of(environment, name, *tags))
        data = np.frombuffer(uuids.buffers()[1], np.uint8).reshape(rows, 16).copy()
        counter = np.arange(rows, dtype=">u8").view(np.uint8).reshape(rows, 8)
        data[:, 6] = 0x70
        data[:, 9:12] = counter[:, 5:]
        buffers = [None, pa.py_buffer(data.tobytes())]
        return pa.Array.from_buffers(UUID_TYPE.arrow, rows, buffers)

    return ScalarCall(name, UUID_TYPE, kernel, "row")


def _uuids_of_times(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve dateTimeToUUIDv7(time): UUIDs of version 7 of the given times.

    Raises IllegalTypeOfArgument."""
    given = plain(arguments[0].type)
    if not isinstance(given, DateTime):
        raise IllegalTypeOfArgument(f"{name} takes a DateTime, not {arguments[0].type}.")

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Draw one UUID of version 7 for each row's time."""
        seconds = columns.numpy_values(columns.as_array(values[0], rows)).astype(np.int64)
        return _ordered_uuids(seconds * 1000, generator_of(environment, name))

    return ScalarCall(name, UUID_TYPE, kernel, "row")


_ticks_lock = threading.Lock()
_last_tick = 0


def _next_ticks(now: int, count: int) -> np.ndarray:
    """Return `count` ascending integers from `now` on, or from the last one returned plus 1 if that is greater, so
    that none repeats in this process."""
    global _last_tick
    with _ticks_lock:
        first = max(now, _last_tick + 1)
        _last_tick = first + count - 1
    return np.arange(first, first + count, dtype=np.int64)


def _snowflakes(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve generateSnowflakeID([expr[, machine]]): 41 bits of milliseconds, 10 of the machine's
    number, 12 of a counter."""
    machine = 0
    if len(arguments) > 1:
        machine = constant_integer(name, arguments, 1, "the machine") & 0x3FF

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return one ascending number for each row; a millisecond has 4,096 numbers, further rows take the next
        one's."""
        ticks = _next_ticks(int(environment.now_seconds * 1000) << 12, rows)
        numbers = ((ticks >> 12) << 22) | (machine << 12) | (ticks & 0xFFF)
        return columns.from_values(numbers.astype(np.uint64), pa.uint64())

    return ScalarCall(name, UINT64, kernel, "row")


Draw: TypeAlias = Callable[[np.random.Generator, tuple[float, ...], int], np.ndarray]


def generator_of(environment: Environment, *call: object) -> np.random.Generator:
    """Return a random generator seeded by the query's seed and `call`, the function's name and its tags: equal calls
    over one batch draw equal numbers.

    A seed of 0 gives a fresh generator."""
    if not environment.random_seed:
        return np.random.default_rng()
    return np.random.default_rng([environment.random_seed, zlib.crc32(repr(call).encode())])


def _number(name: str, argument: Argument) -> float:
    """Return a constant number as a float; raise IllegalTypeOfArgument for anything else."""
    value = None if argument.constant is None else argument.constant.as_py()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise IllegalTypeOfArgument(f"The parameters of {name} are constant numbers.")
    kind = plain(argument.type)
    if isinstance(kind, Integer) and kind.signed:
        raise IllegalTypeOfArgument(
            f"Illegal type {kind} of argument of function {name}: a Float64 or unsigned integer"
            " expected."
        )
    return float(value)


def _distribution(draw: Draw, count: int, result: DataType) -> Callable[..., ScalarCall]:
    """Return the resolver of a function such as randNormal: its first `count` arguments are constant parameters of
    the distribution, from which `draw` draws."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call. An argument behind the parameters is a tag: calls with different tags draw different
        numbers."""
        parameters = tuple(_number(name, argument) for argument in arguments[:count])
        tag = arguments[count].constant if len(arguments) > count else None

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Draw one number for each row from the distribution; raise BadArguments for impossible parameters."""
            generator = generator_of(environment, name, *parameters, tag)
            try:
                return columns.from_values(draw(generator, parameters, rows), result.arrow)
            except (ValueError, OverflowError, ZeroDivisionError) as error:
                raise BadArguments(f"{name}: {error}.") from error

        return ScalarCall(name, result, kernel, "row")

    return resolve


_DISTRIBUTIONS: Mapping[str, tuple[int, DataType, Draw]] = {
    "randCanonical": (0, FLOAT64, lambda g, p, n: g.random(n)),
    "randUniform": (2, FLOAT64, lambda g, p, n: g.uniform(p[0], p[1], n)),
    "randNormal": (2, FLOAT64, lambda g, p, n: g.normal(p[0], p[1], n)),
    "randLogNormal": (2, FLOAT64, lambda g, p, n: g.lognormal(p[0], p[1], n)),
    "randExponential": (1, FLOAT64, lambda g, p, n: g.exponential(1 / p[0], n)),
    "randChiSquared": (1, FLOAT64, lambda g, p, n: g.chisquare(p[0], n)),
    "randStudentT": (1, FLOAT64, lambda g, p, n: g.standard_t(p[0], n)),
    "randFisherF": (2, FLOAT64, lambda g, p, n: g.f(p[0], p[1], n)),
    "randBernoulli": (1, UINT8, lambda g, p, n: g.binomial(1, p[0], n)),
    "randBinomial": (2, UINT64, lambda g, p, n: g.binomial(int(p[0]), p[1], n)),
    "randNegativeBinomial": (2, UINT64, lambda g, p, n: g.negative_binomial(p[0], p[1], n)),
    "randPoisson": (1, UINT64, lambda g, p, n: g.poisson(p[0], n)),
}
"""The number of parameters, the result and the drawing of each distribution."""


def _lengths(name: str, column: Column, rows: int, unit: str) -> np.ndarray:
    """Return the length, in `unit`, of each row's random text; raise TooLargeStringSize with its row for a negative
    or too great one."""
    lengths = columns.numpy_values(columns.as_array(column, rows)).astype(np.int64)
    impossible = (lengths < 0) | (lengths > _RANDOM_BYTES_MAX)
    if impossible.any():
        raise TooLargeStringSize(f"{name} makes texts of 0 to {_RANDOM_BYTES_MAX} {unit}.").at_row(
            int(np.argmax(impossible))
        )
    return lengths


def _random_bytes(*, printable: bool) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of randomString(length), or with `printable` of randomPrintableASCII(length), in bytes."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; the length is an argument that may differ by row. Raises IllegalTypeOfArgument."""
        if not isinstance(plain(arguments[0].type), Integer):
            raise IllegalTypeOfArgument(f"{name} takes a length, not {arguments[0].type}.")
        tag = arguments[1].constant if len(arguments) > 1 else None

        def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
            """Draw the random bytes of each row's text; raise TooLargeStringSize for an impossible length."""
            lengths = _lengths(name, values[0], rows, "bytes")
            offsets = columns.offsets_from_counts(lengths)
            generator = generator_of(environment, name, tag)
            low, high = (32, 127) if printable else (0, 256)
            data = generator.integers(low, high, int(offsets[-1]), dtype=np.uint8)
            return columns.strings_from(offsets, data)

        return ScalarCall(name, STRING, kernel, "row")

    return resolve


_RANDOM_BYTES_MAX = 1 << 24


def _fixed_bytes(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve randomFixedString(length[, tag]) of a constant length.

    Raises IllegalTypeOfArgument and ArgumentOutOfBound."""
    length = constant_integer(name, arguments, 0, "the length")
    if length < 0 or not isinstance(plain(arguments[0].type), Integer):
        raise IllegalTypeOfArgument(
            f"{name} takes an unsigned length in bytes, not one of {arguments[0].type}."
        )
    if length == 0:
        raise ArgumentOutOfBound(f"{name} takes a length of at least 1 byte.")
    if length >= _RANDOM_BYTES_MAX:
        raise ArgumentOutOfBound(f"{name} takes a length below {_RANDOM_BYTES_MAX} bytes.")
    result = FixedString(length)
    tag = arguments[1].constant if len(arguments) > 1 else None

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Draw the random bytes of each row's FixedString."""
        data = generator_of(environment, name, tag).integers(0, 256, rows * length, dtype=np.uint8)
        buffers = [None, pa.py_buffer(data.tobytes())]
        return pa.Array.from_buffers(result.arrow, rows, buffers)

    return ScalarCall(name, result, kernel, "row")


def _characters(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve randomStringUTF8(length): random characters of Unicode but surrogates.

    Raises IllegalTypeOfArgument."""
    if not isinstance(plain(arguments[0].type), Integer):
        raise IllegalTypeOfArgument(f"{name} takes a length, not {arguments[0].type}.")
    tag = arguments[1].constant if len(arguments) > 1 else None

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Draw the characters of each row; raise TooLargeStringSize for an impossible length."""
        lengths = _lengths(name, values[0], rows, "characters")
        offsets = columns.offsets_from_counts(lengths)
        drawn = generator_of(environment, name, tag).integers(
            0, _CODE_POINTS - _SURROGATES, int(offsets[-1]), dtype=np.uint32
        )
        points = np.where(drawn >= _FIRST_SURROGATE, drawn + _SURROGATES, drawn)
        sizes = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
        places = columns.offsets_from_counts(sizes)
        text = points.astype("<u4").tobytes().decode("utf-32-le").encode()
        return columns.strings_from(places[offsets], np.frombuffer(text, np.uint8))

    return ScalarCall(name, STRING, kernel, "row")


_CODE_POINTS = 0x110000
_FIRST_SURROGATE = 0xD800
_SURROGATES = 0x800


def _constant_number(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve randConstant([x]): one random UInt32 for all rows of a query, another one for another constant x."""
    tag = arguments[0].constant if arguments else None

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Draw the one number; the query's seed and the argument determine it."""
        number = generator_of(environment, name, tag).integers(0, 2**32, dtype=np.uint32)
        return pa.scalar(int(number), UINT32.arrow)

    return ScalarCall(name, UINT32, kernel, "query")


def _fuzzed(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve fuzzBits(text, share): the text with each bit flipped at random with the probability `share`.

    Raises IllegalTypeOfArgument unless the share is a constant float, ArgumentOutOfBound unless it is from 0 to 1."""
    require(name, [plain(arguments[0].type)], (String, FixedString), "a String or FixedString")
    share = arguments[1].constant
    if share is None or not isinstance(plain(arguments[1].type), Float):
        raise IllegalTypeOfArgument(f"The second argument of {name} is a constant float.")
    chance = share.as_py()
    if chance < 0 or chance > 1:
        raise ArgumentOutOfBound(f"The second argument of {name} is between 0 and 1, not {chance}.")

    def kernel(values: list[pa.Array], call: Invocation) -> pa.Array:
        """Flip each bit of each row's text with the probability `chance`."""
        offsets, data = columns.bytes_of(columns.binary(values[0]))
        drawn = generator_of(call.environment, name).random((len(data), 8)) < chance
        mask = np.packbits(drawn, axis=1).reshape(-1)
        return columns.retype(columns.strings_from(offsets, data ^ mask), call.result.arrow)

    whole = standard_call(name, arguments, plain(arguments[0].type), kernel)
    return replace(whole, volatility="row")


DEFINITIONS: tuple[ScalarDefinition, ...] = (
    custom("rand", _random(UINT32), count=(0, 1), aliases=("rand32",), insensitive=True),
    custom("rand64", _random(UINT64), count=(0, 1)),
    custom("generateUUIDv4", _uuids, count=(0, 1)),
    custom("generateUUIDv7", _uuids_of_now, count=(0, 1)),
    custom("dateTimeToUUIDv7", _uuids_of_times),
    custom("generateSnowflakeID", _snowflakes, count=(0, 2)),
    *(
        custom(name, _distribution(draw, count, result), count=(count, count + 1))
        for name, (count, result, draw) in _DISTRIBUTIONS.items()
    ),
    custom("randomString", _random_bytes(printable=False), count=(1, 2)),
    custom("randomFixedString", _fixed_bytes, count=(1, 2)),
    custom("randomStringUTF8", _characters, count=(1, 2)),
    custom("fuzzBits", _fuzzed, count=2),
    custom("randConstant", _constant_number, count=(0, 1)),
    custom("randomPrintableASCII", _random_bytes(printable=True), count=(1, 2)),
)
