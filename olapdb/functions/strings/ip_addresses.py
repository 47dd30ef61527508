"""IP addresses as numbers, bytes, texts and ranges."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import (
    CannotParse,
    CannotParseIPv4,
    CannotParseIPv6,
    DataError,
    IllegalTypeOfArgument,
)
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.casts.numbers import first_bad
from olapdb.functions.kernels import columns, regexes
from olapdb.functions.kernels.addresses import (
    MAPPED,
    fixed_binary,
    ipv4_texts,
    ipv6_texts,
    mapped_ipv4,
    parsed_ipv4,
    parsed_ipv6,
)
from olapdb.functions.strings.arguments import text_rule
from olapdb.functions.strings.rendering import fixed_bytes
from olapdb.types import (
    IPV4,
    IPV6,
    STRING,
    UINT8,
    UINT32,
    DataType,
    FixedString,
    Integer,
    IPv4,
    IPv6,
    String,
    Tuple,
    make_nullable,
)

_IPV6_BYTES = FixedString(16)


def _number_to_text(*, class_c: bool) -> scalar.Kernel:
    """Return the kernel of IPv4NumToString, or with `class_c` of IPv4NumToStringClassC, which writes xxx for the
    last octet."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Write each UInt32 as four numbers with dots between them."""
        texts = ipv4_texts(columns.wrapped(arrays[0], pa.uint32()))
        return regexes.replaced(texts, r"[0-9]+$", "xxx") if class_c else texts

    return kernel


def _refuse_bad(array: pa.Array, bad: np.ndarray, kind: type[DataError], name: str) -> None:
    """Raise an error of this class about the first text that is marked as bad, if any."""
    row = first_bad(bad)
    if row is not None:
        value = columns.binary(columns.unpadded(array))[row].as_py().decode("utf-8", "replace")
        raise kind(
            f"Invalid {name} value {value!r}.",
            hint=f"{name}StringToNumOrNull returns NULL for such texts.",
        ).at_row(row)


_ZERO_ON_ERROR = "cast_ipv4_ipv6_default_on_conversion_error"


def _text_to_number(otherwise: str) -> scalar.Kernel:
    """Return the kernel of IPv4StringToNum. `otherwise` says what a bad text gives: "" an error, "Null" NULL,
    "Default" 0."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Parse addresses to UInt32; with `otherwise` "" raise CannotParseIPv4 for the first bad text, unless a setting
        makes it 0."""
        numbers, fine = parsed_ipv4(arrays[0])
        if not otherwise and _ZERO_ON_ERROR not in call.environment.changed:
            _refuse_bad(arrays[0], ~fine, CannotParseIPv4, "IPv4")
        return columns.from_values(numbers, pa.uint32(), fine if otherwise == "Null" else None)

    return kernel


def _text_to_bytes(otherwise: str) -> scalar.Kernel:
    """Return the kernel of IPv6StringToNum. `otherwise` says what a bad text gives: "" an error, "Null" NULL,
    "Default" 16 zero bytes."""

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Parse addresses to 16 bytes; with `otherwise` "" raise CannotParseIPv6 for the first bad text, unless a
        setting makes it zero bytes."""
        addresses = parsed_ipv6(arrays[0])
        if not otherwise and _ZERO_ON_ERROR not in call.environment.changed:
            _refuse_bad(arrays[0], np.asarray(addresses.is_null()), CannotParseIPv6, "IPv6")
        return addresses if otherwise == "Null" else pc.fill_null(addresses, bytes(16))

    return kernel


def _nullable(
    result: DataType, kernel: scalar.Kernel
) -> Callable[[str, Sequence[Argument]], ScalarCall]:
    """Return the resolver of a function of one text with the kernel; its result is always Nullable(`result`)."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call as a function with the type `result`, and make the result Nullable."""
        call = scalar.standard_call(name, arguments, text_rule(result), kernel)
        return replace(call, type=make_nullable(call.type))

    return resolve


def _is_ipv4(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return 1 where a text is an IPv4 address, else 0: the kernel of isIPv4String."""
    return columns.from_values(parsed_ipv4(arrays[0])[1], pa.uint8())


def _is_ipv6(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return 1 where a text is an IPv6 address, else 0: the kernel of isIPv6String."""
    return parsed_ipv6(arrays[0], maps_ipv4=False).is_valid().cast(pa.uint8())


def _bytes_to_text(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the texts of IPv6 addresses from their 16 bytes: the kernel of IPv6NumToString."""
    return ipv6_texts(arrays[0])


def _bytes_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless the argument is an IPv6 or its 16 bytes."""
    _require_bytes(name, types[0])
    return STRING


def _require_bytes(name: str, data_type: DataType) -> None:
    """Raise IllegalTypeOfArgument unless the type is IPv6 or FixedString(16)."""
    if not isinstance(data_type, IPv6) and data_type != _IPV6_BYTES:
        raise IllegalTypeOfArgument(f"{name} takes an IPv6 or a FixedString(16), not {data_type}.")


def _mapped_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return IPv6 for an IPv4, FixedString(16) for a UInt32; raise for other types.

    Raises IllegalTypeOfArgument."""
    if isinstance(types[0], IPv4):
        return IPV6
    if types[0] == UINT32:
        return _IPV6_BYTES
    raise IllegalTypeOfArgument(f"{name} takes an IPv4 or a UInt32, not {types[0]}.")


def _cut_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless the arguments are an IPv6 and two numbers."""
    _require_bytes(name, types[0])
    for count in types[1:]:
        if not isinstance(count, Integer):
            raise IllegalTypeOfArgument(f"{name} takes numbers of bytes, not {count}.")
    return STRING


def _cut(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the texts of IPv6 addresses whose last bytes, as many as the arguments say, are set to zero: the kernel
    of cutIPv6."""
    raw = fixed_bytes(arrays[0]).copy()
    mapped = _is_mapped(raw)
    if_ipv6, if_ipv4 = (columns.numpy_values(counts).astype(np.int64) for counts in arrays[1:])
    kept = 16 - np.where(mapped, if_ipv4, if_ipv6)
    raw[np.arange(16)[None, :] >= kept[:, None]] = 0
    return ipv6_texts(fixed_binary(raw))


def _is_mapped(raw: np.ndarray) -> np.ndarray:
    """Return which rows of 16 bytes are IPv4 addresses mapped to IPv6 (::ffff:0:0/96)."""
    return np.asarray((raw[:, :12] == np.frombuffer(MAPPED, np.uint8)).all(axis=1))


# --- ranges


def _range_rule(kind: DataType) -> scalar.TypeRule:
    """Return the type rule of a function of an address of type `kind` and a prefix length: a pair of addresses."""
    taken = UINT32 if kind == IPV4 else _IPV6_BYTES

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return a pair of addresses; raise IllegalTypeOfArgument unless an address and a prefix length are given."""
        if types[0] not in (kind, taken) or types[1] != UINT8:
            raise IllegalTypeOfArgument(f"{name} takes an {kind} and a UInt8.")
        return Tuple((kind, kind))

    return rule


def _ipv4_range(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the first and last address of a subnet: IPv4CIDRToRange."""
    numbers = columns.numpy_values(arrays[0]).astype(np.int64)
    bits = 32 - np.minimum(columns.numpy_values(arrays[1]).astype(np.int64), 32)
    low = numbers >> bits << bits
    ends = [pa.array(end, pa.uint32()) for end in (low, low | ((1 << bits) - 1))]
    return columns.structs_from(ends, call.result.arrow, rows=call.rows)


def _ipv6_range(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return the first and last address of a subnet: IPv6CIDRToRange."""
    raw = fixed_bytes(arrays[0])
    mask = _prefix_mask(np.minimum(columns.numpy_values(arrays[1]).astype(np.int64), 128))
    ends = [fixed_binary(end) for end in (raw & mask, raw | ~mask)]
    return columns.structs_from(ends, call.result.arrow, rows=call.rows)


def _prefix_mask(lengths: np.ndarray) -> np.ndarray:
    """Return 16 bytes whose first `lengths` bits are set; uint8, shape (rows, 16)."""
    bits = np.clip(lengths[:, None] - 8 * np.arange(16)[None, :], 0, 8)
    return (0xFF00 >> bits & 0xFF).astype(np.uint8)


def _in_range_rule(
    name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
) -> DataType:
    """Return UInt8; raise IllegalTypeOfArgument unless the arguments are an address and a text."""
    address, prefix = types
    if not isinstance(address, String | IPv4 | IPv6) or not isinstance(prefix, String):
        raise IllegalTypeOfArgument(f"{name} takes an address and a prefix such as '10.0.0.0/8'.")
    return UINT8


def _in_range(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
    """Return 1 where an address lies in the subnet, else 0: the kernel of isIPAddressInRange. Raises CannotParse."""
    address, is_ipv4 = _addresses(arrays[0], call.types[0])
    network, network_is_ipv4, lengths = _subnets(arrays[1])
    mask = _prefix_mask(lengths + np.where(network_is_ipv4, 96, 0))
    inside = ((address ^ network) & mask == 0).all(axis=1) & (is_ipv4 == network_is_ipv4)
    return columns.from_values(inside, pa.uint8())


def _addresses(array: pa.Array, data_type: DataType) -> tuple[np.ndarray, np.ndarray]:
    """Return the 16 bytes of each address, and a mask of those written as IPv4; raise CannotParse."""
    if isinstance(data_type, IPv4):
        return fixed_bytes(mapped_ipv4(array)), np.ones(len(array), bool)
    if isinstance(data_type, IPv6):
        return fixed_bytes(array), np.zeros(len(array), bool)
    addresses = parsed_ipv6(array)
    bad = first_bad(np.asarray(addresses.is_null()))
    if bad is not None:
        raise CannotParse(f"{array[bad].as_py()!r} is neither an IPv4 nor an IPv6 address.").at_row(
            bad
        )
    return fixed_bytes(addresses), parsed_ipv4(array)[1]


def _subnets(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for subnets such as 10.0.0.0/8 their 16 bytes, a mask of those written as IPv4, and the prefix lengths.

    Each distinct text is parsed once. Raises CannotParse."""
    encoded = array.dictionary_encode()
    networks = [_subnet(text) for text in encoded.dictionary.to_pylist()]
    codes = columns.numpy_values(encoded.indices)
    raw = np.frombuffer(b"".join(n[0] for n in networks), np.uint8).reshape(-1, 16)
    is_ipv4, lengths = (np.array([n[at] for n in networks]) for at in (1, 2))
    return raw[codes], is_ipv4[codes].astype(bool), lengths[codes].astype(np.int64)


def _subnet(text: str) -> tuple[bytes, bool, int]:
    """Return the 16 bytes of a subnet, whether it is written as IPv4, and its prefix length.

    Raises CannotParse."""
    try:
        if "/" not in text:
            raise ValueError
        network = ipaddress.ip_interface(text).network
    except ValueError:
        raise CannotParse(f"{text!r} is no address with the length of a prefix.") from None
    base = text.partition("/")[0]
    address = ipaddress.ip_address(base)
    is_ipv4 = isinstance(address, ipaddress.IPv4Address)
    return (MAPPED if is_ipv4 else b"") + address.packed, is_ipv4, network.prefixlen


def _number_rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
    """Return String; raise IllegalTypeOfArgument unless the argument is an IPv4 or an integer of up to 32 bits without a sign."""
    number = types[0]
    if isinstance(number, IPv4) or (
        isinstance(number, Integer) and not number.signed and number.bits <= 32
    ):
        return STRING
    raise scalar.illegal(name, number, "an IPv4 or a UInt32")


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.define(
        "IPv4NumToString",
        _number_rule,
        _number_to_text(class_c=False),
        aliases=("INET_NTOA",),
        insensitive=True,
    ),
    scalar.define("IPv4NumToStringClassC", _number_rule, _number_to_text(class_c=True)),
    scalar.define(
        "IPv4StringToNum",
        text_rule(UINT32),
        _text_to_number(""),
        aliases=("INET_ATON",),
        insensitive=True,
    ),
    scalar.custom("IPv4StringToNumOrNull", _nullable(UINT32, _text_to_number("Null"))),
    scalar.define("IPv4StringToNumOrDefault", text_rule(UINT32), _text_to_number("Default")),
    scalar.define("isIPv4String", text_rule(UINT8), _is_ipv4),
    scalar.define("isIPv6String", text_rule(UINT8), _is_ipv6),
    scalar.define(
        "IPv6NumToString", _bytes_rule, _bytes_to_text, aliases=("INET6_NTOA",), insensitive=True
    ),
    scalar.define(
        "IPv6StringToNum",
        text_rule(_IPV6_BYTES),
        _text_to_bytes(""),
        aliases=("INET6_ATON",),
        insensitive=True,
    ),
    scalar.custom("IPv6StringToNumOrNull", _nullable(_IPV6_BYTES, _text_to_bytes("Null"))),
    scalar.define("IPv6StringToNumOrDefault", text_rule(_IPV6_BYTES), _text_to_bytes("Default")),
    scalar.define("IPv4ToIPv6", _mapped_rule, lambda arrays, call: mapped_ipv4(arrays[0])),
    scalar.define("cutIPv6", _cut_rule, _cut, count=3),
    scalar.define("IPv4CIDRToRange", _range_rule(IPV4), _ipv4_range, count=2),
    scalar.define("IPv6CIDRToRange", _range_rule(IPV6), _ipv6_range, count=2),
    scalar.define("isIPAddressInRange", _in_range_rule, _in_range, count=2),
)
