"""The bytes of inline parts as the catalog stores them: deflated if that makes them smaller.

Most of a small part's Arrow file is its schema, twice: 1,600 bytes shrink to 430.
"""

from __future__ import annotations

import zlib

_ARROW = b"ARROW1"
"""The prefix of an Arrow file, which no zlib stream has."""
_LEVEL = 1
_WINDOW_BITS = 12
_MEMORY_LEVEL = 5
"""Parts are a few KiB: a small compressor state is faster and packs as well."""


def deflated(data: bytes) -> bytes:
    """Return the stored form of an inline part's bytes."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL)
    packed = packer.compress(data) + packer.flush()
    return packed if len(packed) < len(data) else data


def inflated(stored: bytes) -> bytes:
    """Return the part's bytes; format 1 stored them uncompressed. Damage is left for their checksum
    to find."""
    if stored.startswith(_ARROW):
        return bytes(stored)
    try:
        return zlib.decompress(stored)
    except zlib.error:
        return bytes(stored)
