"""The bytes of inline parts as the catalog stores them: deflated if that makes them smaller.

Most of a small part's Arrow file is its schema, twice: 1,600 bytes shrink to 430. The writer of a larger part has
compressed its values within the Arrow file, before the transaction in which this is called.
"""

from __future__ import annotations

import zlib

_ARROW = b"ARROW1"
"""The prefix of an Arrow file, which no zlib stream has."""
_LEVEL = 1
_WINDOW_BITS = 12
_MEMORY_LEVEL = 5
"""Parts are a few KiB: a small compressor state is faster and packs as well."""


def stored_form(data: bytes, value_bytes: int) -> bytes:
    """Return the stored form of an inline part's Arrow file, whose values have `value_bytes` in memory. A file that is
    smaller than its values is compressed, and stays as it is."""
    if len(data) < value_bytes:
        return data
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
