"""Simulates the content of a disk after a loss of power: flushed names and bytes, and anything of
the others.

`Disk` watches the system calls of the process (fsync, rename, unlink) below one folder, and gives
an image of it at any moment:

    lose   nothing unflushed: names are gone whose folder was not flushed after them, and files
           that were deleted or replaced since are back
    tear   names are there, but half of the bytes of each file that was not flushed
    keep   all of it, as after a kill of the process

The catalog's files are copied in their present state: SQLite flushes them itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Mode = Literal["lose", "tear", "keep"]
CATALOG = ("catalog.sqlite", "catalog.sqlite-wal")


@dataclass
class Disk:
    """The durable content of `root` and below; everything there is durable at first.

    `flushed` are files with durable bytes; `entries` are durable names, of files and folders, whose
    folder was flushed; `gone` has the bytes of durable names that were deleted or replaced.
    """

    root: Path
    flushed: set[str] = field(default_factory=set)
    entries: set[str] = field(default_factory=set)
    gone: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in self._all():
            self.entries.add(path)
            self.flushed.add(path)

    @contextmanager
    def watched(self) -> Iterator[Disk]:
        """Watch the process's system calls."""
        real = {name: getattr(os, name) for name in ("fsync", "replace", "rename", "unlink")}

        def fsync(descriptor: int) -> None:
            real["fsync"](descriptor)
            self._flushed(os.readlink(f"/proc/self/fd/{descriptor}"))

        def replace(source: object, target: object) -> None:
            self._forget(os.fspath(target))  # type: ignore[call-overload]
            real["replace"](source, target)
            self._renamed(os.fspath(source), os.fspath(target))  # type: ignore[call-overload]

        def unlink(path: object) -> None:
            self._forget(os.fspath(path))  # type: ignore[call-overload]
            real["unlink"](path)

        os.fsync, os.replace, os.rename, os.unlink = fsync, replace, replace, unlink  # type: ignore[assignment]
        try:
            yield self
        finally:
            for name, function in real.items():
                setattr(os, name, function)

    # --- system calls

    def _flushed(self, path: str) -> None:
        if not os.path.isdir(path):
            self.flushed.add(path)
            return
        there = {os.path.join(path, name) for name in os.listdir(path)}
        self.entries -= {entry for entry in self.entries if os.path.dirname(entry) == path} - there
        self.entries |= there
        for one in [one for one in self.gone if os.path.dirname(one) == path]:
            del self.gone[one]

    def _forget(self, path: str) -> None:
        """Save the bytes of a durable name that is about to be deleted or replaced."""
        if path in self.entries and os.path.isfile(path):
            self.gone.setdefault(path, Path(path).read_bytes())
        self.flushed.discard(path)

    def _renamed(self, source: str, target: str) -> None:
        if source in self.flushed:
            self.flushed.discard(source)
            self.flushed.add(target)

    # --- images

    def image(self, mode: Mode, into: Path) -> None:
        """Write the disk's possible content to the folder `into`."""
        into.mkdir()
        for name in CATALOG:
            if (self.root / name).exists():
                # By another process: closing the file here would drop SQLite's locks on it.
                subprocess.run(["cp", str(self.root / name), str(into / name)], check=True)
        for path in self._all():
            relative = os.path.relpath(path, self.root)
            if not relative.startswith("data") or os.path.isdir(path):
                continue
            if mode == "lose" and not self._is_durable(path):
                continue
            os.makedirs(os.path.dirname(into / relative), exist_ok=True)
            if mode != "keep" and path not in self.flushed:
                data = Path(path).read_bytes()
                (into / relative).write_bytes(data[: len(data) // 2])
            else:
                shutil.copyfile(path, into / relative)
        for path, data in self.gone.items() if mode == "lose" else ():
            relative = os.path.relpath(path, self.root)
            if relative.startswith("data"):
                os.makedirs(os.path.dirname(into / relative), exist_ok=True)
                (into / relative).write_bytes(data)

    def _is_durable(self, path: str) -> bool:
        """Return whether the name and those of its folders are durable."""
        if path in self.gone:
            return False  # the older file of that name is back
        while path != str(self.root):
            if path not in self.entries:
                return False
            path = os.path.dirname(path)
        return True

    def _all(self) -> Iterator[str]:
        for folder, folders, files in os.walk(self.root):
            yield from (os.path.join(folder, name) for name in (*folders, *files))
