"""Checksums of parts.

A file's checksum has two parts: the CRC-32 of all of its bytes, and the BLAKE2b of its footer.  A
reader checks the size and the footer when it opens a file, and each page's own CRC as it reads the
page; so a point query does not read a whole file to trust it.  Small files are checked whole at
once.  `verify_file` (CHECK TABLE, recovery) always reads everything.
"""

from __future__ import annotations

import errno
import hashlib
import zlib

import pyarrow as pa

from olapdb import errors
from olapdb.model.part import Part
from olapdb.storage.store import Store

WHOLE_FILE_BYTES_MAX = 1 << 20
_CHUNK_BYTES = 4 << 20
_TAIL_BYTES = 8
_MAGIC = b"PAR1"
_RESOURCE_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN})


def checksum_of_bytes(data: bytes | memoryview) -> str:
    """Return the CRC-32 as 8 hexadecimal digits: the checksum of an inline part."""
    return f"{zlib.crc32(data):08x}"


def checksum_of_file(source: pa.NativeFile) -> str:
    """Return `<CRC-32 of the file>-<BLAKE2b of the footer>`. Raises CorruptedData for a file
    without a footer."""
    source.seek(0)
    crc = 0
    while chunk := source.read_buffer(_CHUNK_BYTES):
        crc = zlib.crc32(memoryview(chunk), crc)
        if chunk.size < _CHUNK_BYTES:
            break
    return checksum_of_parts(crc, read_footer(source))


def checksum_of_parts(crc: int, footer: bytes) -> str:
    """Return a file's checksum from the CRC-32 of all its bytes and its footer with length and
    magic."""
    return f"{crc:08x}-{_footer_digest(footer)}"


def read_footer(source: pa.NativeFile) -> bytes:
    """Return the footer with its length and magic. Raises CorruptedData for a file that is not
    Parquet."""
    size = source.size()
    if size < _TAIL_BYTES + len(_MAGIC):
        raise errors.CorruptedData("The file is shorter than a Parquet footer.")
    tail = source.read_at(_TAIL_BYTES, size - _TAIL_BYTES)
    length = int.from_bytes(tail[:4], "little") + _TAIL_BYTES
    if tail[4:] != _MAGIC or length > size - len(_MAGIC):
        raise errors.CorruptedData("The file does not end with a Parquet footer.")
    footer: bytes = source.read_at(length, size - length)
    return footer


def verify_open(source: pa.NativeFile, part: Part) -> bytes:
    """Check size and footer of a part's file, and all bytes of a small file; return the footer.
    Raises ChecksumDoesntMatch."""
    if source.size() != part.bytes:
        raise mismatch(part, f"has {source.size()} bytes, {part.bytes} were written")
    if part.bytes <= WHOLE_FILE_BYTES_MAX:
        _compare(part, checksum_of_file(source))
        return read_footer(source)
    try:
        footer = read_footer(source)
    except errors.CorruptedData as error:
        raise mismatch(part, error.message) from error
    if _footer_digest(footer) != part.checksum.partition("-")[2]:
        raise mismatch(part, "has a changed footer")
    return footer


def verify_file(store: Store, part: Part) -> None:
    """Read and check the whole file of a part. Raises ChecksumDoesntMatch or FileDoesntExist."""
    with store.open_input(part.path) as source:
        if source.size() != part.bytes:
            raise mismatch(part, f"has {source.size()} bytes, {part.bytes} were written")
        try:
            checksum = checksum_of_file(source)
        except errors.CorruptedData as error:
            raise mismatch(part, error.message) from error
        except OSError as error:
            raise unreadable(part, error) from error
        _compare(part, checksum)


def unreadable(part: Part, error: Exception) -> errors.OperationalError:
    """Return the error for a part whose bytes cannot be read (EIO, say) or parsed: CorruptedData.

    A lack of memory or file descriptors says nothing about the part and keeps its own error.
    """
    if isinstance(error, MemoryError):
        return errors.MemoryLimitExceeded(f"There is no memory to read part {part.id}: {error}.")
    if isinstance(error, OSError) and error.errno in _RESOURCE_ERRORS:
        return errors.system_error(error, part.path)
    return errors.CorruptedData(
        f"Part {part.id} of table {part.table_id}, partition {part.partition_id}, in "
        f"{part.path or 'the catalog (inline)'} cannot be read: {error}.",
        hint=quarantine_hint(part),
    )


def indicates_damage(error: errors.Error) -> bool:
    """Return whether the error means that a part's bytes are missing, changed or unreadable."""
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.errno == errno.EIO:
        return True
    return isinstance(error, errors.CorruptedData | errors.FileDoesntExist)


def verify_inline(part: Part, rows: bytes) -> None:
    """Raise ChecksumDoesntMatch if the bytes of an inline part are not those that were written."""
    _compare(part, checksum_of_bytes(rows))


def mismatch(part: Part, difference: str) -> errors.ChecksumDoesntMatch:
    """Return the error for a part that differs from the bytes written; `difference` says how."""
    place = part.path or "the catalog (inline)"
    return errors.ChecksumDoesntMatch(
        f"Part {part.id} of table {part.table_id}, partition {part.partition_id}, in {place}: {difference}.",
        hint=quarantine_hint(part),
    )


def quarantine_hint(part: Part) -> str:
    """Return the hint of errors about a part that cannot be read."""
    return (
        f"Restore the file from a backup, or set the part aside: SYSTEM QUARANTINE PART '{part.id}'"
        " ON the table; other parts stay readable."
    )


def _compare(part: Part, checksum: str) -> None:
    """Raise the error of `mismatch` if the computed checksum is not the part's."""
    if checksum != part.checksum:
        raise mismatch(part, f"checksum {checksum}, but {part.checksum} was written")


def _footer_digest(footer: bytes) -> str:
    """Return the BLAKE2b hash (16 bytes, in hex) of a Parquet footer."""
    return hashlib.blake2b(footer, digest_size=16).hexdigest()
