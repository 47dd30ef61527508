"""What a disk holds after a loss of power: names and bytes that were flushed, of the others anything.

`Disk` watches what the process asks of the operating system (fsync, rename, unlink) below one
folder, and gives an image of it as of any moment:

    lose   of what was not flushed nothing: names that their folder's flush did not follow are gone,
           and files that were deleted or replaced since are back
    tear   names are there, but half of the bytes of each file that was not flushed
    keep   all of it, as after a kill of the process

The catalog's files are taken as they are at that moment: SQLite flushes them itself.
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
    """Of `root` and below; everything there is durable at first.

    `flushed`: files whose bytes are; `entries`: names that their folder's flush has made so, of
    files and folders; `gone`: the bytes of durable names that were deleted or replaced."""

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

    # --- what was asked for

    def _flushed(self, path: str) -> None:
        if not os.path.isdir(path):
            self.flushed.add(path)
            return
        there = {os.path.join(path, name) for name in os.listdir(path)}
        self.entries -= {one for one in self.entries if os.path.dirname(one) == path} - there
        self.entries |= there
        for one in [one for one in self.gone if os.path.dirname(one) == path]:
            del self.gone[one]

    def _forget(self, path: str) -> None:
        """The name is about to go, or to be another file's."""
        if path in self.entries and os.path.isfile(path):
            self.gone.setdefault(path, Path(path).read_bytes())
        self.flushed.discard(path)

    def _renamed(self, source: str, target: str) -> None:
        if source in self.flushed:
            self.flushed.discard(source)
            self.flushed.add(target)

    # --- what is left

    def image(self, mode: Mode, into: Path) -> None:
        """Writes what the disk would hold to the folder `into`."""
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
        """The name, and those of the folders that it lies in."""
        if path in self.gone:
            return False  # the older file of that name is what is back
        while path != str(self.root):
            if path not in self.entries:
                return False
            path = os.path.dirname(path)
        return True

    def _all(self) -> Iterator[str]:
        for folder, folders, files in os.walk(self.root):
            yield from (os.path.join(folder, name) for name in (*folders, *files))
