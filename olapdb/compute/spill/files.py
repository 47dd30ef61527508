"""Temporary files of a query, for rows that its operators do not keep in memory.

A file has no name as soon as it is open: the operating system frees its space when the query closes
it, and when the process ends in any way, kill -9 included.  Batches are appended as Arrow IPC
streams and read back by their extent.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from olapdb.compute.batches import rows_only, single_batch
from olapdb.errors import NotEnoughSpace, TooManyRowsOrBytes, system_error
from olapdb.lazy import lazy_modules
from olapdb.native.memory import empty
from olapdb.records import dataclass
from olapdb.result import QueryStatistics

if TYPE_CHECKING:
    from olapdb.compute.spill import fixed_rows, narrowing
    from olapdb.compute.spill.fixed_rows import DividedRows, FixedLayout
    from olapdb.compute.spill.narrowing import Narrowed
else:
    fixed_rows, narrowing = lazy_modules("olapdb.compute.spill", "fixed_rows", "narrowing")

PLAIN = pa.ipc.IpcWriteOptions(use_threads=False)
COMPRESSED_SHARE_MAX = 0.8
PLAIN_APPENDS = 31
"""Where a compressed batch has more than this part of its bytes, write so many batches as they are: reading and
writing what compression saves then takes less time than compressing it."""

READ_BYTES = 16 << 20
"""Read extents together up to about so many bytes."""

Purpose = Literal["Sort", "Aggregation", "Join", "Distinct"]
"""What a temporary file is for, as ClickHouse's metrics TemporaryFilesFor… name it."""

CODECS: Mapping[str, str | None] = {"LZ4": "lz4", "ZSTD": "zstd", "NONE": None}
"""Arrow's name of each value of the setting temporary_files_codec."""


@dataclass(frozen=True)
class TemporaryDataLimits:
    """The settings of temporary data.

    `bytes_max` is what one query may have on disk at a time, `free_bytes_min` what it must leave of
    the disk; 0 is no limit."""

    bytes_max: int = 0
    free_bytes_min: int = 0
    codec: str = "LZ4"


@dataclass(frozen=True, slots=True)
class Extent:
    """The place of a batch in a spill file: `size` bytes from `offset`. `rows` and `nbytes` are the
    batch's in memory, `changed` its columns that are written in fewer bytes. With a `layout` the bytes are its
    columns, else an Arrow IPC stream."""

    offset: int
    size: int
    rows: int
    nbytes: int
    changed: tuple[Narrowed, ...] = ()
    layout: FixedLayout | None = None


class TemporaryData:
    """The temporary files of one query. Thread-safe. `close` frees those that are still open."""

    def __init__(
        self, folder: str | None, limits: TemporaryDataLimits, statistics: QueryStatistics
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._statistics = statistics
        self._lock = threading.Lock()
        self._held_bytes = 0
        self._files: set[SpillFile] = set()
        self.options = pa.ipc.IpcWriteOptions(compression=CODECS[limits.codec], use_threads=False)

    def file(self, purpose: Purpose) -> SpillFile:
        """Open a new file; use it in a `with` block. Raises NotEnoughSpace, ReadOnly or
        OperationalError if the folder does not take one."""
        file = SpillFile(self, purpose, _open_unnamed(self.folder()), self.folder())
        with self._lock:
            self._files.add(file)
        self._statistics.add_temporary_file(purpose)
        return file

    def folder(self) -> str:
        """Return the folder of the files: `tmp_path`, the warehouse's, or the system's."""
        return self._folder or tempfile.gettempdir()

    def reserve(self, more_bytes: int) -> None:
        """Count bytes that are about to be written.

        Raises TooManyRowsOrBytes past max_temporary_data_on_disk_size_for_query, NotEnoughSpace where the
        disk would have less than min_free_disk_space_for_temporary_data left."""
        limits = self._limits
        if limits.free_bytes_min:
            status = os.statvfs(self.folder())
            if status.f_bavail * status.f_frsize - more_bytes < limits.free_bytes_min:
                raise NotEnoughSpace(
                    f"The temporary data of the query would leave less than"
                    f" {limits.free_bytes_min:,} bytes of the disk of {self.folder()}.",
                    hint="Free some space, name a folder of another disk by the setting tmp_path, or"
                    " lower min_free_disk_space_for_temporary_data.",
                )
        with self._lock:
            total = self._held_bytes + more_bytes
            if limits.bytes_max and total > limits.bytes_max:
                raise TooManyRowsOrBytes(
                    f"The temporary data of the query would be {total:,} bytes,"
                    f" max_temporary_data_on_disk_size_for_query is {limits.bytes_max:,}.",
                    hint="Raise it or max_memory_usage, or let the query sort, group or join fewer"
                    " rows at once.",
                )
            self._held_bytes = total

    def release(self, file: SpillFile) -> None:
        """Subtract the bytes of a closed file from the count of temporary bytes."""
        with self._lock:
            if file not in self._files:
                return
            self._files.remove(file)
            self._held_bytes -= file.size
        self._statistics.remove_temporary_file(file.purpose)

    def count_written(self, disk_bytes: int, memory_bytes: int) -> None:
        """Add the bytes of a written batch, on disk and in memory, to the query's statistics."""
        self._statistics.add_spilled(disk_bytes, memory_bytes)

    def close(self) -> None:
        """Close all files. Idempotent."""
        with self._lock:
            files = list(self._files)
        for file in files:
            file.close()


class SpillFile:
    """A file without a name that batches are appended to. Thread-safe."""

    def __init__(self, data: TemporaryData, purpose: Purpose, descriptor: int, folder: str) -> None:
        self.purpose = purpose
        self.size = 0
        self._data = data
        self._descriptor = descriptor
        self._place = f"temporary data in {folder}"
        self._lock = threading.Lock()
        self._left = threading.Condition(self._lock)
        self._users = 0
        """The calls that use the descriptor now: its number may be another file's as soon as it is closed."""
        self._plain_appends = 0
        """The number of batches that are still written without compression, which did not pay for the last one."""

    def append(self, batch: pa.RecordBatch) -> Extent:
        """Write a batch behind the others; return its place.

        Raises NotEnoughSpace on a full disk, TooManyRowsOrBytes past the limit of the query."""
        short, changed = narrowing.narrowed(batch)
        encoded = self._encoded(short)
        offset = self._written(encoded, batch.nbytes)
        return Extent(offset, len(encoded), batch.num_rows, batch.nbytes, changed)

    def append_divided(self, rows: DividedRows, nbytes: int) -> list[Extent | None]:
        """Write rows that are divided among partitions, `nbytes` in memory, at once; return the place of each
        partition, None for one without rows. Raises as `append`."""
        offset = self._written(rows.places.data, nbytes)
        extents: list[Extent | None] = []
        total, start = sum(rows.counts.tolist()), 0
        for count, end in zip(rows.counts.tolist(), rows.ends.tolist(), strict=True):
            own_bytes = nbytes * count // total
            extent = Extent(offset + start, end - start, count, own_bytes, layout=rows.layout)
            extents.append(extent if count else None)
            start = end
        return extents

    def _written(self, encoded: pa.Buffer | memoryview, nbytes: int) -> int:
        """Append bytes to the file; return the offset at which they begin. `nbytes` is their size in memory, for the
        statistics."""
        size = len(encoded)
        self._data.reserve(size)
        with self._lock:
            offset, self.size = self.size, self.size + size
        try:
            view = memoryview(encoded)
            at = offset
            with self._used() as descriptor:
                while len(view):
                    written = os.pwrite(descriptor, view, at)
                    at, view = at + written, view[written:]
        except OSError as error:
            raise system_error(error, self._place) from error
        self._data.count_written(size, nbytes)
        return offset

    def _encoded(self, batch: pa.RecordBatch) -> pa.Buffer:
        """Return a batch as an Arrow IPC stream: compressed, unless that hardly shortened the one before."""
        with self._lock:
            is_plain = self._plain_appends > 0
            self._plain_appends -= is_plain
        if is_plain:
            return _encoded(batch, PLAIN)
        encoded = _encoded(batch, self._data.options)
        if len(encoded) > COMPRESSED_SHARE_MAX * batch.nbytes:
            with self._lock:
                self._plain_appends = PLAIN_APPENDS
        return encoded

    def read(self, extent: Extent) -> pa.RecordBatch:
        """Return the batch at this place. Raises OperationalError if the disk does not give it."""
        if extent.layout is not None:
            return self._fixed([extent])
        buffer = pa.allocate_buffer(extent.size)
        self._read_into(memoryview(buffer), extent.offset)
        with pa.ipc.open_stream(buffer) as reader:
            batch = reader.read_next_batch()
        return (
            narrowing.widened(batch, extent.changed)
            if batch.num_columns
            else rows_only(extent.rows)
        )

    def _read_into(self, view: memoryview, at: int) -> None:
        """Fill the view with the bytes from `at` on."""
        try:
            with self._used() as descriptor:
                while len(view):
                    count = os.preadv(descriptor, [view], at)
                    if not count:
                        raise OSError("the file is too short")
                    at, view = at + count, view[count:]
        except OSError as error:
            raise system_error(error, self._place) from error

    def _fixed(self, extents: Sequence[Extent]) -> pa.RecordBatch:
        """Return the rows of extents with a layout as one batch."""
        data = empty(sum(extent.size for extent in extents), np.uint8)
        pieces, start = [], 0
        for extent in extents:
            assert extent.layout is not None
            own = data[start : start + extent.size]
            self._read_into(own.data, extent.offset)
            pieces.append((own, extent.rows, extent.layout))
            start += extent.size
        return fixed_rows.rows_of(pieces)

    def read_all(
        self, extents: Iterable[Extent], rows_max: int, bytes_max: int = READ_BYTES
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of extents, small ones joined to about `rows_max` rows or `bytes_max` bytes."""
        waiting: list[Extent] = []
        rows = nbytes = 0
        for extent in extents:
            if waiting and (rows + extent.rows > rows_max or nbytes + extent.nbytes > bytes_max):
                yield self._joined(waiting)
                waiting, rows, nbytes = [], 0, 0
            waiting.append(extent)
            rows, nbytes = rows + extent.rows, nbytes + extent.nbytes
        if waiting:
            yield self._joined(waiting)

    def _joined(self, extents: Sequence[Extent]) -> pa.RecordBatch:
        """Return the rows of extents as one batch."""
        if all(extent.layout is not None for extent in extents):
            return self._fixed(extents)
        return joined([self.read(extent) for extent in extents], sum(e.rows for e in extents))

    @contextmanager
    def _used(self) -> Iterator[int]:
        """Keep the file open in a `with` block, which gets its descriptor. Raises OSError if it is closed."""
        with self._lock:
            if self._descriptor < 0:
                raise OSError("the query has ended")
            descriptor = self._descriptor
            self._users += 1
        try:
            yield descriptor
        finally:
            with self._lock:
                self._users -= 1
                self._left.notify_all()

    def close(self) -> None:
        """Close the file, which frees its space, once no thread reads or writes it. Idempotent."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
            self._left.wait_for(lambda: not self._users)
        if descriptor >= 0:
            os.close(descriptor)
            self._data.release(self)

    def __enter__(self) -> SpillFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def remove_leftovers(folder: str) -> None:
    """Delete files that a process left in the folder, killed before it could unlink them.

    That takes a system without O_TMPFILE; a concurrent process loses no file that it has open."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            with suppress(OSError):
                os.unlink(entry.path)


def _open_unnamed(folder: str) -> int:
    """Return the descriptor of a new file without a name in the folder, which is made if needed."""
    try:
        os.makedirs(folder, exist_ok=True)
        if hasattr(os, "O_TMPFILE"):
            # Some file systems lack it; EISDIR is what kernels without it say.
            with suppress(OSError):
                return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        descriptor, path = tempfile.mkstemp(prefix="spill-", dir=folder)
        with suppress(FileNotFoundError):  # a process that opened the warehouse removed it
            os.unlink(path)
        return descriptor
    except OSError as error:
        raise system_error(error, f"temporary data in {folder}") from error


def _encoded(batch: pa.RecordBatch, options: pa.ipc.IpcWriteOptions) -> pa.Buffer:
    """Return a batch as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def joined(batches: list[pa.RecordBatch], rows: int) -> pa.RecordBatch:
    """Return batches of one schema, `rows` rows together, as one batch."""
    if len(batches) == 1:
        return batches[0]
    if not batches[0].num_columns:
        return rows_only(rows)
    return single_batch(pa.Table.from_batches(batches))
