"""Files that statements read and write: which are allowed, how they are opened and replaced."""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import lzma
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from olapdb import errors
from olapdb.config import Settings
from olapdb.formats.base import Format

_ARROW_CODECS = {"zstd": "zstd", "zst": "zstd", "lz4": "lz4", "br": "brotli", "brotli": "brotli"}
_LEVELS = {"gzip": (1, 9), "bz2": (1, 9), "xz": (1, 9), "zstd": (1, 22), "lz4": (1, 12)}
"""The lowest and the highest LEVEL of a codec."""
_OWN_CODECS = {"gzip": "gzip", "gz": "gzip", "bz2": "bz2", "xz": "xz", "lzma": "xz"}


_NAME_BYTES_MAX = 255
_PATH_BYTES_MAX = 4_000


def resolved_path(path: str, settings: Settings) -> str:
    """Return the absolute path of a file that statements may use; a relative path is in the first folder of the
    setting user_files_path. Raises PathNotAllowed for a path outside its folders, also through a symbolic link."""
    folders = [f for f in settings.text("user_files_path").split(os.pathsep) if f]
    if not folders:
        raise errors.PathNotAllowed(
            f"The file {path!r} cannot be used: no folder of files is allowed.",
            hint="olapdb.connect(…, settings={'user_files_path': 'folder'}) allows one to queries. A view "
            "reads no files: nothing would tell it of their changes.",
        )
    if "\0" in path:
        raise errors.PathNotAllowed("The name of a file cannot hold a zero byte.")
    _refuse_long(path)
    roots = [os.path.realpath(folder) for folder in folders]
    name = path.removeprefix("file://")
    absolute = os.path.normpath(os.path.join(roots[0], name))
    real = os.path.realpath(absolute)
    if not any(Path(real).is_relative_to(root) for root in roots):
        raise errors.PathNotAllowed(
            f"The file {path!r} is not inside of {' or '.join(map(repr, roots))}.",
            hint="The setting user_files_path, which connect() takes, names the folders.",
        )
    return absolute


def _refuse_long(path: str) -> None:
    """Raise OperationalError if a part of the path has more than 255 bytes, which no file system allows."""
    names = os.fsencode(path).split(b"/")
    if max(map(len, names)) > _NAME_BYTES_MAX or len(os.fsencode(path)) > _PATH_BYTES_MAX:
        raise errors.OperationalError(
            "The name of the file is too long.",
            hint=f"A name has up to {_NAME_BYTES_MAX} bytes, a path up to {_PATH_BYTES_MAX}.",
        )


def matching_files(pattern: str, settings: Settings) -> list[str]:
    """Return the sorted files that match a path with `*`, `?`, `**` and `{a,b}`; an empty list if none does. A path
    without these is returned even if the file does not exist. Raises the errors of `resolved_path`."""
    paths: set[str] = set()
    for alternative in _alternatives(pattern):
        absolute = resolved_path(alternative, settings)
        if any(mark in alternative for mark in "*?[") or alternative != pattern:
            matching = glob.glob(absolute.replace("[", "[[]"), recursive=True)
            paths.update(resolved_path(path, settings) for path in matching if os.path.isfile(path))
        else:
            paths.add(absolute)
    return sorted(paths)


def _alternatives(pattern: str) -> list[str]:
    """Expand `{a,b}` and `{1..3}` in a pattern to the list of alternatives."""
    braces = re.search(r"\{([^{}]*)\}", pattern)
    if braces is None:
        return [pattern]
    numbers = re.fullmatch(r"([0-9]+)\.\.([0-9]+)", braces[1])
    choices = braces[1].split(",")
    if numbers is not None:
        width = len(numbers[1]) if numbers[1].startswith("0") else 0
        choices = [str(n).zfill(width) for n in range(int(numbers[1]), int(numbers[2]) + 1)]
    before, behind = pattern[: braces.start()], pattern[braces.end() :]
    return [path for choice in choices for path in _alternatives(before + choice + behind)]


def codec_of(name: str) -> str:
    """Return the codec of a compression by name: "none", "gzip", "bz2", "xz" or one of Arrow's. Raises
    UnsupportedMethod for other names."""
    lowered = name.lower()
    if lowered in ("", "none", "auto"):
        return "none"
    codec = _OWN_CODECS.get(lowered) or _ARROW_CODECS.get(lowered)
    if codec is None:
        known = ", ".join(sorted({*_OWN_CODECS.values(), *_ARROW_CODECS.values()}))
        raise errors.UnsupportedMethod(
            f"Unknown compression method {name!r}.", hint=f"There are none, {known}."
        )
    return codec


def open_input(path: str, compression: str) -> BinaryIO:
    """Open a file for reading, decompressed. Raises CannotStat if it does not exist."""
    codec = codec_of(compression)
    try:
        if codec == "none":
            return open(path, "rb", buffering=1 << 20)
        if codec == "gzip":
            return cast(BinaryIO, gzip.open(path, "rb"))
        if codec == "bz2":
            return cast(BinaryIO, bz2.open(path, "rb"))
        if codec == "xz":
            return cast(BinaryIO, lzma.open(path, "rb"))
        return cast(BinaryIO, io.BufferedReader(pa.input_stream(path, compression=codec), 1 << 20))
    except OSError as error:
        raise errors.CannotStat(
            f"Cannot read the file {path}: {error.strerror or error}."
        ) from None


class NewFile:
    """A file to be written: first under a temporary name, then renamed when it is complete. `mode` is "" (the file
    must not exist), APPEND or TRUNCATE."""

    def __init__(self, path: str, mode: str, compression: str, level: int | None = None) -> None:
        """Take the path, the mode and the compression; nothing is opened yet."""
        self._path = path
        self._mode = mode
        self._codec = codec_of(compression)
        self._level = level
        self._temporary = ""
        if level is None:
            return
        bounds = _LEVELS.get(self._codec)
        if bounds is None:
            raise errors.NotSupportedError(
                f"COMPRESSION '{compression}' takes no LEVEL.",
                hint=f"{', '.join(_LEVELS)} take one.",
            )
        if not bounds[0] <= level <= bounds[1]:
            raise errors.BadArguments(
                f"LEVEL {level} of COMPRESSION '{compression}' is none of {bounds[0]} to {bounds[1]}."
            )

    def check(self, chosen: Format) -> None:
        """Check that the file may be written. Raises FileAlreadyExists, FileDoesntExist for a missing folder,
        NotSupportedError for APPEND with a format of one result a file, BadArguments and CannotAppendToFile."""
        if not os.path.isdir(os.path.dirname(self._path)):
            raise errors.FileDoesntExist(f"There is no folder {os.path.dirname(self._path)}.")
        if os.path.isdir(self._path):
            raise errors.FileAlreadyExists(f"{self._path} is a folder.")
        if not os.path.exists(self._path):
            return
        if not self._mode:
            raise errors.FileAlreadyExists(
                f"File {self._path} exists.", hint="APPEND adds to it, TRUNCATE replaces it."
            )
        if self._mode == "APPEND" and self._codec != "none":
            raise errors.BadArguments(
                "A compressed file cannot be appended to.",
                hint="Write another file, TRUNCATE, or write without compression.",
            )
        if self._mode == "APPEND" and not chosen.appends:
            raise errors.CannotAppendToFile(
                f"A file of format {chosen.name} cannot be appended to.",
                hint="Write another file, or TRUNCATE.",
            )

    def write(self, pieces: Iterator[bytes]) -> None:
        """Write the pieces and publish the file. On failure nothing has changed."""
        try:
            self.stage(pieces)
            self.publish()
        finally:
            self.discard()

    def stage(self, pieces: Iterator[bytes]) -> None:
        """Write the pieces to the temporary file in the file's folder."""
        self._temporary = os.path.join(os.path.dirname(self._path), f".{uuid.uuid4().hex}.tmp")
        try:
            with open(self._temporary, "xb") as raw:
                if self._mode == "APPEND" and os.path.exists(self._path):
                    with open(self._path, "rb") as existing:
                        shutil.copyfileobj(existing, raw, 1 << 20)
                stream = self._compressed(raw)
                for piece in pieces:
                    stream.write(piece)
                if stream is not raw:
                    stream.close()
                raw.flush()
                os.fsync(raw.fileno())
        except OSError as error:
            raise errors.system_error(error, self._path) from None

    def discard(self) -> None:
        """Remove the temporary file unless it was published."""
        with suppress(OSError):
            os.unlink(self._temporary)

    def _compressed(self, raw: BinaryIO) -> Any:
        """Return a stream that compresses into the open file."""
        match self._codec:
            case "none":
                return raw
            case "gzip":
                return gzip.GzipFile("", "wb", 9 if self._level is None else self._level, raw, 0)
            case "bz2":
                return bz2.BZ2File(raw, "wb", compresslevel=self._level or 9)
            case "xz":
                return lzma.LZMAFile(raw, "wb", preset=self._level)
            case codec if self._level is None:
                return pa.CompressedOutputStream(_Open(raw), codec)
            case codec:
                return io.BufferedWriter(_Frames(raw, pa.Codec(codec, self._level)), 1 << 24)

    def publish(self) -> None:
        """Rename the temporary file to its final name; replace an existing file only if the mode allows it. Raises
        FileAlreadyExists."""
        if self._mode:
            os.replace(self._temporary, self._path)
            return
        try:
            os.link(self._temporary, self._path)
        except FileExistsError:
            raise errors.FileAlreadyExists(
                f"File {self._path} exists: it was made meanwhile.",
                hint="APPEND adds to it, TRUNCATE replaces it.",
            ) from None


class _Frames(io.RawIOBase):
    """A stream that compresses each written piece as a frame of its own."""

    def __init__(self, raw: BinaryIO, codec: pa.Codec) -> None:
        """Take the file and the codec."""
        super().__init__()
        self._raw = raw
        self._codec = codec

    def writable(self) -> bool:
        """Return True: the stream is for writing."""
        return True

    def write(self, data: Any) -> int:
        """Compress the piece and write it; return its uncompressed size."""
        piece = bytes(data)
        self._raw.write(self._codec.compress(piece, asbytes=True))
        return len(piece)


class _Open(io.RawIOBase):
    """A writable file whose `close` does not close the file below."""

    def __init__(self, raw: BinaryIO) -> None:
        """Take the file below."""
        super().__init__()
        self._raw = raw

    def writable(self) -> bool:
        """Return True: the stream is for writing."""
        return True

    def write(self, data: Any) -> int:
        """Write to the file below; return the number of bytes."""
        return self._raw.write(data)
