"""What a replay swaps in, and for what: told beside its parts, for a catalog that is rebuilt from
footers.

    data/<table id>/<lease id>-<swap id>.swap
        {"slices": null}                                   under way: none of its parts counts
        {"slices": [{"new": [path, …], "gone": [path, …]}, …]}   they stand for those that are gone

A replay writes parts while it does not know yet what they will replace, and many of them for one
that goes; so their footers name the swap, and the note tells the rest.  It is there before the
first of the parts, and tells all before the commit.  Where there is none the parts are parts like
any others: vacuum removes a note once nothing is left of what it tells of.
"""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import pyarrow as pa

from olapdb.errors import FileDoesntExist
from olapdb.storage.store import Store

SWAP_SUFFIX = ".swap"


@dataclass(frozen=True, slots=True)
class SwappedSlice:
    """Paths of files of one partition: `new` are there for all rows that `gone` had."""

    new: tuple[str, ...]
    gone: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SwapNote:
    """`slices` None: under way."""

    path: str
    slices: tuple[SwappedSlice, ...] | None = None

    @property
    def swap_id(self) -> str:
        return self.path.rpartition("-")[2].removesuffix(SWAP_SUFFIX)

    def tells(self, present: AbstractSet[str]) -> bool:
        """Whether a complete note says anything about the files that are there."""
        return any(
            not present.isdisjoint(one.new) and not present.isdisjoint(one.gone)
            for one in self.slices or ()
        )


def still_tells(store: Store, path: str, present: AbstractSet[str]) -> bool:
    """Whether the file is the note of a swap that is still worth keeping, whoever wrote it: one that
    is complete, while both sides of it are there."""
    if not path.endswith(SWAP_SUFFIX):
        return False
    try:
        return read_swap_note(store, path).tells(present)
    except (KeyError, ValueError, FileDoesntExist):
        return False


def is_complete(store: Store, path: str) -> bool:
    """Whether it is a note that tells all. Raises the Store's errors."""
    try:
        return read_swap_note(store, path).slices is not None
    except (KeyError, ValueError):
        return False


def swap_path(folder: str, table_id: str, lease_id: str, swap_id: str) -> str:
    """Named as a part's file is, so that vacuum knows whose it is."""
    return f"{folder}/{table_id}/{lease_id}-{swap_id}{SWAP_SUFFIX}"


def write_swap_note(store: Store, note: SwapNote) -> None:
    """Writes the note, or the one of that name anew. Raises the Store's errors."""
    slices = (
        None
        if note.slices is None
        else [{"new": list(one.new), "gone": list(one.gone)} for one in note.slices]
    )
    data = json.dumps({"slices": slices}).encode()

    def write(sink: pa.NativeFile) -> None:
        sink.write(data)

    store.write(note.path, write)


def read_swap_note(store: Store, path: str) -> SwapNote:
    """Raises ValueError or KeyError for what is no note, and the Store's errors."""
    with store.open_input(path) as source:
        slices = json.loads(source.read())["slices"]
    if slices is None:
        return SwapNote(path)
    return SwapNote(
        path, tuple(SwappedSlice(tuple(one["new"]), tuple(one["gone"])) for one in slices)
    )
