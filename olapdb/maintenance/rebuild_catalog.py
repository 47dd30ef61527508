"""Rebuild a lost catalog from the footers of the parts, if there is no backup.

A footer has its table's schema, its partition and the parts it replaced, so tables and rows come
back.  Facts of the catalog alone are lost: views, rows of small INSERTs that no merge had written
to a file, and which parts were dropped but not vacuumed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from olapdb.catalog.protocol import CATALOG_FILE
from olapdb.catalog.sqlite.catalog import SqliteCatalog
from olapdb.errors import BadArguments, CannotOpenWarehouse, OperationalError
from olapdb.errors import Error as OlapdbError
from olapdb.functions import parse_type
from olapdb.maintenance.surviving_parts import inputs_of, surviving_parts
from olapdb.model.changes import AddBlock, AddDatabase, AddPart, Change, Commit, PutObject
from olapdb.model.encoding import FOOTER_KEY, FooterFacts, decode_footer
from olapdb.model.part import NewBlock, Part
from olapdb.model.schema import DatabaseEntry, Table
from olapdb.records import dataclass
from olapdb.storage.checksum import checksum_of_file
from olapdb.storage.replay_manifest import MANIFEST_SUFFIX, ManifestFile, read_manifest
from olapdb.storage.store import LocalStore, Store, flush_folder, system_errors
from olapdb.storage.writer import DATA_FOLDER, column_bytes

_NEW_FOLDER = "catalog.new"
"""Where the new catalog is built, with SQLite's files beside it."""
SUPERSEDED_FOLDER = "superseded"
"""Where a rebuild moves files that the new catalog does not contain; no reader uses them."""


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """The result of a rebuild.

    `superseded` parts were left out, since others hold their rows; their files were moved to the
    folder `superseded`, unless files were unreadable and a second rebuild may need them.
    `unreadable` lists those with the reason; `renamed` lists tables as `old -> new`, where two had
    one name.
    """

    tables: tuple[str, ...]
    parts: int
    rows: int
    superseded: int
    unreadable: tuple[str, ...]
    renamed: tuple[str, ...]


def rebuild_catalog(folder: str | os.PathLike[str]) -> RebuildReport:
    """Create the `catalog.sqlite` of a warehouse that has lost it. Raises BadArguments if there is
    one.

    Each part becomes a new block of its table, in the order of the old blocks; of two parts that
    may hold the same rows the one that replaced the other stays.  The catalog appears whole or not
    at all.
    """
    root = Path(folder)
    with system_errors(str(root)):
        return _rebuild(root)


def _rebuild(root: Path) -> RebuildReport:
    """Write a new catalog from the files of the warehouse `root`, and move it to its place.

    Raises BadArguments if the warehouse has a catalog or the log of one, and CannotOpenWarehouse if
    it has no data folder.
    """
    final = root / CATALOG_FILE
    # SQLite would apply a log left by the old catalog to the new one.
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
    shutil.rmtree(new, ignore_errors=True)  # left by a killed rebuild
    new.mkdir()
    try:
        report, left_out = _write_catalog(root, new / CATALOG_FILE)
        if not report.unreadable:  # else a second rebuild, which can read all, needs the files
            _move_superseded(root, left_out)
        os.replace(new / f"{CATALOG_FILE}.whole", final)
        flush_folder(root)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return report


def _write_catalog(root: Path, new: Path) -> tuple[RebuildReport, list[str]]:
    """Write the catalog; return the report, and the paths of files not in it, the oldest first."""
    footers, unreadable = _read_all(LocalStore(root, read_only=True))
    manifests, unreadable_manifests = _read_manifests(LocalStore(root, read_only=True))
    survivors = surviving_parts(footers, manifests)
    tables = _tables(survivors)
    named, renamed = _uniquely_named(tables)
    catalog = SqliteCatalog(new)
    try:
        # The catalog is new and no process has it open, so nothing can conflict.
        catalog.apply(_commit(survivors, named))
        catalog.copy_to(f"{new}.whole")
    finally:
        catalog.close()
    kept_paths = {facts.part.path for facts in survivors}
    left_out = [facts.part.path for facts in footers if facts.part.path not in kept_paths]
    report = RebuildReport(
        tuple(sorted(f"{t.database}.{t.name}" for t in named.values())),
        len(survivors),
        sum(facts.part.rows for facts in survivors),
        len(left_out),
        (*unreadable, *unreadable_manifests),
        renamed,
    )
    return report, [*left_out, *(manifest.path for manifest in manifests)]


def _move_superseded(root: Path, paths: list[str]) -> None:
    """Move files to the folder `superseded`.

    Vacuum does not know their leases, so they would outlive the part that replaced them; after
    another loss of the catalog their rows would be counted twice.  The oldest move first and
    manifests last, so that the same holds if the process is killed meanwhile.
    """
    folders = {root}
    for path in paths:
        place = root / SUPERSEDED_FOLDER / Path(path).relative_to(DATA_FOLDER)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.replace(root / path, place)
        folders |= {place.parent, place.parent.parent, (root / path).parent}
    for folder in sorted(folders):
        flush_folder(folder)


def _read_all(store: Store) -> tuple[list[FooterFacts], list[str]]:
    """Return the facts of every readable part file, by age, and the error texts of the unreadable
    ones."""
    footers, unreadable = [], []
    for file in store.list(f"{DATA_FOLDER}/"):
        if not file.path.endswith(".parquet"):
            continue  # left by a killed writer
        try:
            footers.append(_read(store, file.path, file.bytes))
        except (OlapdbError, OSError, KeyError, ValueError, pa.ArrowException) as error:
            unreadable.append(f"{file.path}: {error}")
    return _in_block_order(footers), unreadable


def _in_block_order(footers: list[FooterFacts]) -> list[FooterFacts]:
    """Return the parts in the order of their blocks, oldest first, and each after all that it
    replaces. The order matters: of two rows of a key the later one may be the one that counts.

    A part that a merge or a mutation wrote knows its block numbers; a part of an INSERT knows a
    block that preceded it.  If these are equal, and for files of releases that did not record it,
    the clock decides, although it may have been set back.

        INSERT (after 0), INSERT (after 1), DELETE (rewrites 1..1)   ->   the DELETE's, the second
    """
    by_id = {facts.part.id: facts for facts in footers}
    ordered: list[tuple[tuple[int, bool, int, int, str], FooterFacts]] = []
    newest: dict[str, int] = {}
    for facts in sorted(footers, key=lambda item: (item.part.created_ms, item.part.id)):
        part, last_block = facts.part, newest.get(facts.part.table_id, 0)
        if isinstance(part.blocks, NewBlock):
            number = last_block if facts.after is None else facts.after
            place = (number, True, part.blocks.index, part.created_ms, part.id)
        else:
            number = part.blocks.last
            place = (number, False, len(inputs_of(facts, by_id)), part.created_ms, part.id)
        newest[part.table_id] = max(last_block, number)
        ordered.append((place, facts))
    return [facts for _, facts in sorted(ordered, key=lambda item: item[0])]


def _read_manifests(store: Store) -> tuple[list[ManifestFile], list[str]]:
    """Return the manifests of replays, and the errors of unreadable ones."""
    manifests, unreadable = [], []
    for file in store.list(f"{DATA_FOLDER}/"):
        if not file.path.endswith(MANIFEST_SUFFIX):
            continue
        try:
            manifests.append(read_manifest(store, file.path))
        except (OlapdbError, OSError, KeyError, ValueError) as error:
            unreadable.append(f"{file.path}: {error}")
    return manifests, unreadable


def _read(store: Store, path: str, size: int) -> FooterFacts:
    """Return a file's facts after checking every page against its checksum; `size` is in bytes.

    Raises OperationalError if the file has another number of rows than its footer says.
    """
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


def _tables(footers: list[FooterFacts]) -> Mapping[str, Table]:
    """Return the newest schema of each table, by id."""
    newest: dict[str, Table] = {}
    for facts in footers:
        newer = newest.get(facts.table.id)
        if newer is None or facts.table.version >= newer.version:
            newest[facts.table.id] = facts.table
    return newest


def _uniquely_named(tables: Mapping[str, Table]) -> tuple[dict[str, Table], tuple[str, ...]]:
    """Return the tables by id with unique names, and the renames: footers have former names, and of
    two tables with one name the later one is renamed."""
    taken: set[tuple[str, str]] = set()
    by_id, renamed = {}, []
    for table in sorted(tables.values(), key=lambda t: (t.created_ms, t.id)):
        name = table.name
        if (table.database, name) in taken:
            name = f"{table.name}_{table.id[:8]}"
            renamed.append(f"{table.database}.{table.name} -> {table.database}.{name}")
        taken.add((table.database, name))
        by_id[table.id] = replace(table, name=name, revision=0)
    return by_id, tuple(renamed)


def _commit(footers: list[FooterFacts], tables: Mapping[str, Table]) -> Commit:
    """Return the commit that creates the databases and tables and adds the parts as new blocks."""
    changes: list[Change] = [
        AddDatabase(DatabaseEntry(f"rebuilt-{name}", name))
        for name in sorted({table.database for table in tables.values()} - {"default"})
    ]
    changes += [PutObject(table) for table in tables.values()]
    counts: dict[str, int] = {}
    for facts in footers:
        block = NewBlock(facts.part.table_id, counts.get(facts.part.table_id, 0))
        counts[facts.part.table_id] = block.index + 1
        part: Part = replace(facts.part, blocks=block, contributions=())
        changes += [AddBlock(block, part.rows, "attach"), AddPart(part)]
    return Commit((), tuple(changes), "REBUILD CATALOG")
