"""Small facts to write catalogs with: a source `s`, a target `t` and a view `v` between them."""

from __future__ import annotations

import itertools

import pyarrow as pa

from olapdb.catalog.protocol import Catalog
from olapdb.model.changes import (
    AddBlock,
    AddCoverage,
    AddPart,
    Change,
    Commit,
    Committed,
    PutObject,
)
from olapdb.model.part import Contribution, NewBlock, Part
from olapdb.model.requirements import LeaseLive, Requirement, SchemaIs, ViewsAre
from olapdb.model.schema import Column, Engine, KeyItem, MaterializedView, Table
from olapdb.model.view_state import CoverageRow
from olapdb.types import STRING, UINT64

COLUMNS = (Column(1, "k", STRING), Column(2, "n", UINT64))

_ids = itertools.count(1)


def make_table(name: str, engine: str = "MergeTree", **more: object) -> Table:
    """Return a table whose id is its name: k String, n UInt64, ORDER BY k."""
    facts = {"columns": COLUMNS, "sorting_key": (KeyItem("k"),), "primary_key": 1, **more}
    return Table(name, "default", name, Engine(engine), **facts)  # type: ignore[arg-type]


def make_view(name: str = "v", source: str = "s", target: str = "t") -> MaterializedView:
    """Return a view whose id is its name: sums of n by k, from `source` into `target`."""
    query = f"SELECT k, sum(n) AS n FROM default.{source} GROUP BY k"
    return MaterializedView(name, "default", name, COLUMNS, query, source, target)


def rows_of(*pairs: tuple[str, int]) -> pa.Table:
    """Return (k, n) pairs as an Arrow table."""
    return pa.table(
        {
            "k": pa.array([k for k, _ in pairs], pa.string()),
            "n": pa.array([n for _, n in pairs], pa.uint64()),
        }
    )


def make_part(table_id: str, index: int = 0, **more: object) -> Part:
    """Return a part without a file, which the catalog never opens."""
    facts = {
        "id": f"{table_id}-{next(_ids)}",
        "table_id": table_id,
        "partition_id": "all",
        "partition_value": (),
        "rows": 10,
        "bytes": 100,
        "blocks": NewBlock(table_id, index),
        "uncompressed_bytes": {"k": 60, "n": 40},
        "checksum": "x",
        **more,
    }
    facts.setdefault("path", f"data/{table_id}/lease-{facts['id']}.parquet")
    return Part(**facts)  # type: ignore[arg-type]


def create(catalog: Catalog, *objects: Table | MaterializedView) -> Committed:
    """Commit the objects to the catalog."""
    return catalog.apply(Commit((), tuple(PutObject(item) for item in objects), "CREATE"))


def create_all(catalog: Catalog) -> Committed:
    """Commit `s`, `t` and `v`."""
    return create(catalog, make_table("s"), make_table("t"), make_view())


def insert(
    catalog: Catalog,
    lease_id: str,
    *requirements: Requirement,
    more: tuple[Change, ...] = (),
    part: Part | None = None,
) -> Committed:
    """Commit one INSERT into `s`, with its view's rows into `t`."""
    source, target = NewBlock("s", 0), NewBlock("t", 0)
    made = Contribution("v", 1, "s", None, (source,), 3)
    needed = (
        LeaseLive(lease_id),
        SchemaIs("s", 1),
        SchemaIs("t", 1),
        ViewsAre("s", (("v", 1),)),
        *requirements,
    )
    changes = (
        AddBlock(source, 10),
        AddPart(part or make_part("s")),
        AddBlock(target, 3),
        AddPart(make_part("t", contributions=(made,))),
        AddCoverage(CoverageRow("v", None, source)),
        *more,
    )
    return catalog.apply(Commit(needed, changes, "INSERT", "q", "INSERT INTO s"))
