"""The manifest of a replay: which files it replaces by which. Needed to rebuild a lost catalog.

    data/<table id>/<lease id>-<swap id>.swap
        {"slices": null}                                   in progress: ignore the new parts
        {"slices": [{"new": [path, …], "gone": [path, …]}, …]}   "new" replaces "gone"

A replay writes parts before it knows which ones they will replace, and many parts may replace one;
so the parts' footers name the swap's id, and this file lists the replacements.  It is written
before the first part and completed before the commit.  Without it the parts count like any others:
vacuum removes a manifest once the files of either side are gone.
"""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet

import pyarrow as pa

from olapdb.errors import FileDoesntExist
from olapdb.records import dataclass
from olapdb.storage.store import Store

MANIFEST_SUFFIX = ".swap"


@dataclass(frozen=True, slots=True)
class ReplacedSlice:
    """Paths of files of one partition: `new` hold all rows that `replaced_paths` held."""

    new: tuple[str, ...]
    replaced_paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """The content of a manifest file; `slices` is None while the replay is in progress."""

    path: str
    slices: tuple[ReplacedSlice, ...] | None = None

    @property
    def swap_id(self) -> str:
        """The id by which the footers of the replay's parts refer to the manifest."""
        return self.path.rpartition("-")[2].removesuffix(MANIFEST_SUFFIX)

    def applies_to(self, present: AbstractSet[str]) -> bool:
        """Return whether, for any slice, both new and replaced files are present, so that the
        manifest must decide which count."""
        return any(
            not present.isdisjoint(swapped.new) and not present.isdisjoint(swapped.replaced_paths)
            for swapped in self.slices or ()
        )


def is_in_use(store: Store, path: str, present: AbstractSet[str]) -> bool:
    """Return whether the file is a complete manifest with a slice of which both new and replaced
    files are in `present`."""
    if not path.endswith(MANIFEST_SUFFIX):
        return False
    try:
        return read_manifest(store, path).applies_to(present)
    except (KeyError, ValueError, FileDoesntExist):
        return False


def is_complete(store: Store, path: str) -> bool:
    """Return whether the file is a manifest whose replay listed all replacements. Raises the
    Store's errors."""
    try:
        return read_manifest(store, path).slices is not None
    except (KeyError, ValueError):
        return False


def manifest_path(folder: str, table_id: str, lease_id: str, swap_id: str) -> str:
    """Return the path of a manifest. It contains the lease's id like a part's path, so that vacuum
    knows the owner."""
    return f"{folder}/{table_id}/{lease_id}-{swap_id}{MANIFEST_SUFFIX}"


def write_manifest(store: Store, note: ManifestFile) -> None:
    """Write the manifest, replacing an older one at its path. Raises the Store's errors."""
    slices = (
        None
        if note.slices is None
        else [
            {"new": list(swapped.new), "gone": list(swapped.replaced_paths)}
            for swapped in note.slices
        ]
    )
    data = json.dumps({"slices": slices}).encode()

    def write(sink: pa.NativeFile) -> None:
        """Write the encoded manifest to the file."""
        sink.write(data)

    store.write(note.path, write)


def read_manifest(store: Store, path: str) -> ManifestFile:
    """Read a manifest. Raises ValueError or KeyError for a file that is none, and the Store's
    errors."""
    with store.open_input(path) as source:
        slices = json.loads(source.read())["slices"]
    if slices is None:
        return ManifestFile(path)
    return ManifestFile(
        path,
        tuple(ReplacedSlice(tuple(swapped["new"]), tuple(swapped["gone"])) for swapped in slices),
    )
