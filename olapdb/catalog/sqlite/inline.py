"""The bytes of inline parts as the catalog holds them: deflated where that makes them smaller.

Most of a small part's Arrow file is its schema, twice: of 1,600 bytes 430 are left.
"""

from __future__ import annotations

import zlib

_ARROW = b"ARROW1"
"""What an Arrow file begins with, and no zlib stream does."""
_LEVEL = 1
_WINDOW_BITS = 12
_MEMORY_LEVEL = 5
"""Parts are a few KiB: a small state is made faster, and packs them as well."""


def deflated(data: bytes) -> bytes:
    """Return what the catalog stores of an inline part's bytes."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL)
    packed = packer.compress(data) + packer.flush()
    return packed if len(packed) < len(data) else data


def inflated(stored: bytes) -> bytes:
    """Return the part's bytes: format 1 stored them as they are. Damage is left to their checksum."""
    if stored.startswith(_ARROW):
        return bytes(stored)
    try:
        return zlib.decompress(stored)
    except zlib.error:
        return bytes(stored)
