"""Check that a warehouse is consistent with its catalog. Every fault test ends with this."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from olapdb.catalog.protocol import Catalog
from olapdb.errors import OperationalError, SnapshotTooOld
from olapdb.model.part import BlockRange, Part, detached_table
from olapdb.model.schema import Table
from olapdb.model.snapshot import Snapshot
from olapdb.storage.checksum import indicates_damage, verify_file, verify_inline
from olapdb.storage.column_statistics import table_bounds
from olapdb.storage.reader import PartReader
from olapdb.storage.replay_manifest import is_in_use
from olapdb.storage.store import Store
from olapdb.storage.writer import DATA_FOLDER, lease_of_path

CheckRows = Callable[[Table, Part, pa.Table], Iterator[str]]
"""A caller's check of a part's rows (their order, say); yields problems."""


def check_database(
    catalog: Catalog, store: Store, *, check_rows: CheckRows | None = None
) -> list[str]:
    """Return the problems found, in words; none for a consistent warehouse.

    It checks every part's bytes, row count and bounds; that block numbers and contributions were
    assigned; that inline rows exist; that coverage lies within the source's blocks; and that each
    file belongs to a live lease, a live part or a dropped one.
    """
    problems: list[str] = []
    with catalog.pinned() as snapshot:
        for item in snapshot.objects():
            if isinstance(item, Table):
                problems += _check_table(snapshot, store, item, check_rows)
        problems += _check_coverage(snapshot)
    problems += _check_files(catalog, store)
    return problems


def _check_table(
    snapshot: Snapshot, store: Store, table: Table, check_rows: CheckRows | None
) -> Iterator[str]:
    """Yield the problems of the table's live and detached parts."""
    next_block = snapshot.next_block(table)
    seen: set[str] = set()
    for part in snapshot.parts(table.id):
        name = f"{table.database}.{table.name}, part {part.id} ({part.name})"
        if part.id in seen:
            yield f"{name} is there twice"
        seen.add(part.id)
        if part.block_range.last >= next_block:
            yield f"{name} has blocks beyond {next_block - 1}"
        yield from (f"{name}: {problem}" for problem in _check_contributions(snapshot, part))
        yield from (
            f"{name}: {problem}"
            for problem in part_problems(snapshot, store, table, part, check_rows)
        )
    for part in snapshot.parts(detached_table(table.id)):
        if part.detached_reason:
            continue  # in quarantine: known to be damaged
        name = f"{table.database}.{table.name}, detached part {part.id} ({part.name})"
        yield from (
            f"{name}: {problem}"
            for problem in part_problems(snapshot, store, table, part, check_rows)
        )


def _check_contributions(snapshot: Snapshot, part: Part) -> Iterator[str]:
    """Yield contributions without block numbers, or with blocks that their source lacks."""
    for contribution in part.contributions:
        source = snapshot.by_id(contribution.source_id)
        if not isinstance(source, Table):
            continue  # dropped since; the rows stay
        last = snapshot.next_block(source) - 1
        for blocks in contribution.blocks:
            if not isinstance(blocks, BlockRange):
                yield "has a contribution without a block number"
            elif blocks.last > last:
                yield f"was made from block {blocks.last}, but its source has {last}"


def part_problems(
    snapshot: Snapshot, store: Store, table: Table, part: Part, check_rows: CheckRows | None = None
) -> Iterator[str]:
    """Yield the problems of a part: of its checksum, row count and bounds, and those that
    `check_rows` yields for its rows. Read all of the part.

    Raises errors that are not about the part, such as a lack of memory or file descriptors."""
    try:
        if part.inline:
            verify_inline(part, snapshot.inline_rows(part))
        elif part.rows:
            verify_file(store, part)
        elif part.path:
            yield "is a placeholder, but has a file"
        if part.rows:
            yield from _check_rows(snapshot, store, table, part, check_rows)
    except OperationalError as error:
        if not indicates_damage(error) and not isinstance(error, SnapshotTooOld):
            raise
        yield str(error)


def _check_rows(
    snapshot: Snapshot, store: Store, table: Table, part: Part, check_rows: CheckRows | None
) -> Iterator[str]:
    """Yield differences of the part's row count, bounds and, by `check_rows`, its rows."""
    reader = PartReader(store, snapshot, part, table)
    names = [c.name for c in table.stored_columns if reader.has_column(c.name)]
    rows = reader.read(names)
    if rows.num_rows != part.rows:
        yield f"has {rows.num_rows} rows, {part.rows} were written"
        return
    if part.schema_version == table.version and len(names) == len(table.stored_columns):
        stored_bounds = {name: part.bounds[name] for name in names if name in part.bounds}
        actual = table_bounds(table, rows, stored_bounds)
        wrong = [name for name, bounds in stored_bounds.items() if actual.get(name) != bounds]
        if wrong:
            yield f"has wrong bounds for {', '.join(wrong)}"
        if check_rows is not None:
            yield from check_rows(table, part, rows)


def _check_coverage(snapshot: Snapshot) -> Iterator[str]:
    """Yield the views that cover blocks beyond their source's last one."""
    for item in snapshot.objects():
        if not isinstance(item, Table):
            continue
        last = snapshot.next_block(item) - 1
        for view in snapshot.views_on(item.id):
            coverage = snapshot.coverage(view.id)
            ranges = [
                *coverage.everywhere,
                *(r for rs in coverage.by_partition.values() for r in rs),
            ]
            if any(blocks.last > last for blocks in ranges):
                yield f"{view.database}.{view.name} covers blocks that {item.name} does not have"


def _check_files(catalog: Catalog, store: Store) -> Iterator[str]:
    """Yield files that no part, dropped part, live lease or manifest needs."""
    live = {lease.id for lease in catalog.leases() if lease.state == "live"}
    files = list(store.list(f"{DATA_FOLDER}/"))
    referenced = catalog.referenced_paths()
    present = {file.path for file in files}
    for file in files:
        if file.path in referenced or lease_of_path(file.path) in live:
            continue
        if not is_in_use(store, file.path, present):
            yield f"{file.path} is referred to by nothing; vacuum has not removed it"
