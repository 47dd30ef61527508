"""A lost catalog made anew from the footers of the parts, for want of a backup.

A footer has its table's schema, its partition and which parts it stands for, so tables and rows
come back.  What lay in the catalog alone does not: views, rows of small INSERTs that no merge had
made a file of yet, and which parts were dropped but not vacuumed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from olapdb.catalog.protocol import CATALOG_FILE
from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.errors import BadArguments, CannotOpenWarehouse, OperationalError
from olapdb.errors import Error as OlapdbError
from olapdb.functions import parse_type
from olapdb.maintenance.surviving_parts import stands_for, surviving_parts
from olapdb.model.changes import AddBlock, AddPart, Change, Commit, CreateDatabase, PutObject
from olapdb.model.encoding import FOOTER_KEY, FooterFacts, decode_footer
from olapdb.model.part import NewBlock, Part
from olapdb.model.schema import DatabaseEntry, Table
from olapdb.storage.checksum import checksum_of_file
from olapdb.storage.replay_manifest import MANIFEST_SUFFIX, ManifestFile, read_manifest
from olapdb.storage.store import LocalStore, Store, flush_folder, system_errors
from olapdb.storage.writer import DATA_FOLDER, column_bytes

_NEW_FOLDER = "catalog.new"
"""Where the new catalog grows, with the files that belong to one."""
SUPERSEDED_FOLDER = "superseded"
"""Where a rebuild puts files that the new catalog does not have; nothing reads them."""


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What came back. `superseded` parts were left out, since another holds their rows: their files
    lie in the warehouse's folder `superseded` now, unless files could not be read and a second
    rebuild may be needed; `unreadable` are these with the reason; `renamed`
    tables as `old -> new`, where two had one name."""

    tables: tuple[str, ...]
    parts: int
    rows: int
    superseded: int
    unreadable: tuple[str, ...]
    renamed: tuple[str, ...]


def rebuild_catalog(folder: str | os.PathLike[str]) -> RebuildReport:
    """Makes `catalog.sqlite` of a warehouse that has lost it. BadArguments where there is one.

    Each part is a new block of its table, in the order of the blocks that were; of two that may
    hold the same rows the one that says so stays.  The catalog is there whole or not at all.
    """
    root = Path(folder)
    with system_errors(str(root)):
        return _rebuild(root)


def _rebuild(root: Path) -> RebuildReport:
    final = root / CATALOG_FILE
    # A log that was left of the old catalog would be played into the new one.
    for file in (final, root / f"{CATALOG_FILE}-wal", root / f"{CATALOG_FILE}-journal"):
        if file.exists():
            raise BadArguments(
                f"{root} has a catalog, or the log of one: {file.name}.",
                hint=f"Move {CATALOG_FILE}, {CATALOG_FILE}-wal and {CATALOG_FILE}-shm away first if it"
                " is damaged.",
            )
    if not (root / DATA_FOLDER).is_dir():
        raise CannotOpenWarehouse(f"{root} has no folder {DATA_FOLDER}: it is no warehouse.")
    new = root / _NEW_FOLDER
    shutil.rmtree(new, ignore_errors=True)  # what was killed has left
    new.mkdir()
    try:
        report, aside = _write_catalog(root, new / CATALOG_FILE)
        if not report.unreadable:  # or a second rebuild, which can read all, would need the files
            _set_aside(root, aside)
        os.replace(new / f"{CATALOG_FILE}.whole", final)
        flush_folder(root)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return report


def _write_catalog(root: Path, new: Path) -> tuple[RebuildReport, list[str]]:
    """What came back, and the paths of files that are not part of it, the oldest first."""
    found, unreadable = _read_all(LocalStore(root, read_only=True))
    notes, torn = _read_notes(LocalStore(root, read_only=True))
    kept = surviving_parts(found, notes)
    tables = _tables(kept)
    named, renamed = _named(tables)
    catalog = SqliteCatalog(new)
    try:
        # The catalog is new and no process has it open, so nothing can conflict.
        catalog.apply(_commit(kept, named))
        catalog.copy_to(f"{new}.whole")
    finally:
        catalog.close()
    stays = {facts.part.path for facts in kept}
    aside = [facts.part.path for facts in found if facts.part.path not in stays]
    report = RebuildReport(
        tuple(sorted(f"{t.database}.{t.name}" for t in named.values())),
        len(kept),
        sum(facts.part.rows for facts in kept),
        len(aside),
        (*unreadable, *torn),
        renamed,
    )
    return report, [*aside, *(note.path for note in notes)]


def _set_aside(root: Path, paths: list[str]) -> None:
    """No vacuum will know whose these files are, so they would stay longer than the part that names
    them: were the catalog lost once more, their rows would be there twice.  The oldest first, so that
    the same holds where this is killed; notes last."""
    folders = {root}
    for path in paths:
        place = root / SUPERSEDED_FOLDER / Path(path).relative_to(DATA_FOLDER)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.replace(root / path, place)
        folders |= {place.parent, place.parent.parent, (root / path).parent}
    for folder in sorted(folders):
        flush_folder(folder)


def _read_all(store: Store) -> tuple[list[FooterFacts], list[str]]:
    """The facts of every file that reads as a part, by age, and why others do not."""
    found, unreadable = [], []
    for file in store.list(f"{DATA_FOLDER}/"):
        if not file.path.endswith(".parquet"):
            continue  # what a killed writer left
        try:
            found.append(_read(store, file.path, file.bytes))
        except (OlapdbError, OSError, KeyError, ValueError, pa.ArrowException) as error:
            unreadable.append(f"{file.path}: {error}")
    return _by_age(found), unreadable


def _by_age(found: list[FooterFacts]) -> list[FooterFacts]:
    """In the order of their blocks, oldest first: of two rows of a key the later one may be the one
    that counts.  And each after all that it replaces.

    A part that a merge or a mutation wrote knows the numbers of its blocks; one that an INSERT
    wrote, a block that came before them.  Only where that is the same, and for files of releases
    that did not note it, the clock tells: it may have been set back.

        INSERT (after 0), INSERT (after 1), DELETE (rewrites 1..1)   ->   the DELETE's, the second
    """
    by_id = {facts.part.id: facts for facts in found}
    placed: list[tuple[tuple[int, bool, int, int, str], FooterFacts]] = []
    newest: dict[str, int] = {}
    for facts in sorted(found, key=lambda one: (one.part.created_ms, one.part.id)):
        part, known = facts.part, newest.get(facts.part.table_id, 0)
        if isinstance(part.blocks, NewBlock):
            number = known if facts.after is None else facts.after
            place = (number, True, part.blocks.index, part.created_ms, part.id)
        else:
            number = part.blocks.last
            place = (number, False, len(stands_for(facts, by_id)), part.created_ms, part.id)
        newest[part.table_id] = max(known, number)
        placed.append((place, facts))
    return [facts for _, facts in sorted(placed, key=lambda one: one[0])]


def _read_notes(store: Store) -> tuple[list[ManifestFile], list[str]]:
    """What replays have noted beside their parts, and why some of it cannot be read."""
    notes, unreadable = [], []
    for file in store.list(f"{DATA_FOLDER}/"):
        if not file.path.endswith(MANIFEST_SUFFIX):
            continue
        try:
            notes.append(read_manifest(store, file.path))
        except (OlapdbError, OSError, KeyError, ValueError) as error:
            unreadable.append(f"{file.path}: {error}")
    return notes, unreadable


def _read(store: Store, path: str, size: int) -> FooterFacts:
    with store.open_input(path) as source:
        file = pq.ParquetFile(source, page_checksum_verification=True)
        facts = decode_footer((file.metadata.metadata or {})[FOOTER_KEY], parse_type)
        if file.metadata.num_rows != facts.part.rows:
            raise OperationalError(f"has {file.metadata.num_rows} rows, not {facts.part.rows}")
        for _ in file.iter_batches():  # every page against its checksum
            pass
        compressed, uncompressed = column_bytes(file.metadata, facts.table)
        part = replace(
            facts.part,
            bytes=size,
            path=path,
            checksum=checksum_of_file(source),
            granules=file.metadata.num_row_groups,
            compressed_bytes=compressed,
            uncompressed_bytes=uncompressed,
        )
    return replace(facts, part=part)


def _tables(kept: list[FooterFacts]) -> Mapping[str, Table]:
    """The newest schema of each table, by id."""
    newest: dict[str, Table] = {}
    for facts in kept:
        known = newest.get(facts.table.id)
        if known is None or facts.table.version >= known.version:
            newest[facts.table.id] = facts.table
    return newest


def _named(tables: Mapping[str, Table]) -> tuple[dict[str, Table], tuple[str, ...]]:
    """Footers know the names of then: where two tables have one name, the later ones get another."""
    taken: set[tuple[str, str]] = set()
    named, renamed = {}, []
    for table in sorted(tables.values(), key=lambda t: (t.created_ms, t.id)):
        name = table.name
        if (table.database, name) in taken:
            name = f"{table.name}_{table.id[:8]}"
            renamed.append(f"{table.database}.{table.name} -> {table.database}.{name}")
        taken.add((table.database, name))
        named[table.id] = replace(table, name=name, revision=0)
    return named, tuple(renamed)


def _commit(kept: list[FooterFacts], tables: Mapping[str, Table]) -> Commit:
    changes: list[Change] = [
        CreateDatabase(DatabaseEntry(f"rebuilt-{name}", name))
        for name in sorted({table.database for table in tables.values()} - {"default"})
    ]
    changes += [PutObject(table) for table in tables.values()]
    counts: dict[str, int] = {}
    for facts in kept:
        block = NewBlock(facts.part.table_id, counts.get(facts.part.table_id, 0))
        counts[facts.part.table_id] = block.index + 1
        part: Part = replace(facts.part, blocks=block, contributions=())
        changes += [AddBlock(block, part.rows, "attach"), AddPart(part)]
    return Commit((), tuple(changes), "REBUILD CATALOG")
