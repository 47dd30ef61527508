"""Joining what several tasks staged renumbers blocks and changes nothing else."""

from __future__ import annotations

import pickle

import pytest

from olapdb.ingest.staged_insert import StagedInsert, ViewWrite, join_staged
from olapdb.model.changes import AddBlock, AddCoverage, AddPart
from olapdb.model.part import BlockRange, Contribution, NewBlock, Part
from olapdb.model.requirements import SchemaIs
from olapdb.model.view_state import CoverageRow

pytestmark = pytest.mark.feature("insert")


def staged(rows: int, part_id: str) -> StagedInsert:
    contribution = Contribution("v", 1, "s", None, (NewBlock("s", 0),), 2)
    return StagedInsert(
        table_id="s",
        snapshot=5,
        rows=rows,
        block_count=1,
        requirements=(SchemaIs("s", 1),),
        changes=(
            AddBlock(NewBlock("s", 0), rows),
            AddPart(Part(part_id, "s", "all", (), rows, 10, NewBlock("s", 0), path=part_id)),
            AddBlock(NewBlock("t", 0), 2, "view"),
            AddPart(
                Part(
                    f"{part_id}t",
                    "t",
                    "all",
                    (),
                    2,
                    10,
                    NewBlock("t", 0),
                    contributions=(contribution,),
                )
            ),
            AddCoverage(CoverageRow("v", None, NewBlock("s", 0))),
        ),
        views=(ViewWrite("v", rows, 2, 100),),
    )


def test_blocks_are_numbered_on() -> None:
    joined = join_staged([staged(3, "a"), staged(4, "b")])
    assert (joined.rows, joined.block_count) == (7, 2)
    assert joined.requirements == (SchemaIs("s", 1),)
    assert joined.paths == ("a", "b")
    second = joined.changes[5:]
    assert second[0] == AddBlock(NewBlock("s", 1), 4)
    assert second[2] == AddBlock(NewBlock("t", 1), 2, "view")
    target = second[3]
    assert isinstance(target, AddPart)
    assert target.part.blocks == NewBlock("t", 1)
    assert target.part.contributions[0].blocks == (NewBlock("s", 1),)
    assert second[4] == AddCoverage(CoverageRow("v", None, NewBlock("s", 1)))
    assert joined.views == (ViewWrite("v", 7, 4, 200, 2),)


def test_committed_ranges_stay_as_they_are() -> None:
    one = staged(1, "a")
    backfilled = AddCoverage(CoverageRow("v", "p", BlockRange(1, 4)))
    other = StagedInsert("s", 5, 1, 0, (), (backfilled,))
    assert join_staged([one, other]).changes[-1] == backfilled


def test_it_travels() -> None:
    one = staged(3, "a")
    assert pickle.loads(pickle.dumps(one)) == one
