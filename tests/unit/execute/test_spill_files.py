"""A temporary file is closed once no thread uses it: its descriptor's number may be another file's then."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from olapdb.compute.spill.files import TemporaryData, TemporaryDataLimits
from olapdb.errors import OperationalError
from olapdb.result import QueryStatistics

pytestmark = pytest.mark.feature("settings")
BATCH = pa.record_batch({"s": pa.array(["a", None, "b"])})


def test_closing_waits_for_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = TemporaryData(str(tmp_path), TemporaryDataLimits(), QueryStatistics()).file("Join")
    writing, may_write, closed = threading.Event(), threading.Event(), threading.Event()
    pwrite, was_closed = os.pwrite, []

    def slow_pwrite(descriptor: int, data: bytes, offset: int) -> int:
        writing.set()
        may_write.wait()
        was_closed.append(closed.is_set())
        return pwrite(descriptor, data, offset)

    def close() -> None:
        file.close()
        closed.set()

    monkeypatch.setattr(os, "pwrite", slow_pwrite)
    threads = [threading.Thread(target=file.append, args=(BATCH,)), threading.Thread(target=close)]
    threads[0].start()
    writing.wait()
    threads[1].start()
    assert not closed.wait(0.2)  # it cannot end before the write, however long one waits
    may_write.set()
    for thread in threads:
        thread.join()
    assert was_closed == [False]
    assert closed.is_set()


def test_a_closed_file_is_not_used(tmp_path: Path) -> None:
    file = TemporaryData(str(tmp_path), TemporaryDataLimits(), QueryStatistics()).file("Join")
    extent = file.append(BATCH)
    assert file.read(extent).equals(BATCH)
    file.close()
    for use in (lambda: file.append(BATCH), lambda: file.read(extent)):
        with pytest.raises(OperationalError, match="the query has ended"):
            use()
