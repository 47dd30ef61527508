"""What the models of a run read of system tables: single reads, one for all, again after a commit."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from dbt.adapters.olapdb.incremental_mv.shared_reads import (
    SINGLE_READS,
    Rows,
    SharedReads,
    UnchangedTables,
)

pytestmark = pytest.mark.feature("dbt")

NAMES = [("d", f"m{n}") for n in range(10)]


class Tables:
    """A system table whose rows say at which commit they were read; m9 is missing."""

    def __init__(self) -> None:
        self.commit = 7
        self.asked: list[int] = []
        self.commits_meanwhile = 0
        self.reads = SharedReads(lambda: NAMES)

    def newest(self) -> int:
        return self.commit

    def fetch(self, names: Iterable[tuple[str, str]]) -> Rows:
        wanted = list(names)
        self.asked.append(len(wanted))
        self.commit += self.commits_meanwhile
        return {name: {"commit": self.commit} for name in wanted if name[1] != "m9"}

    def read(self, number: int) -> int | None:
        row = self.reads.rows([NAMES[number]], self.newest, self.fetch).get(NAMES[number])
        return None if row is None else row["commit"]


def test_one_query_asks_for_all_models_after_a_few() -> None:
    tables = Tables()
    assert [tables.read(number) for number in range(10)] == [7] * 9 + [None]
    assert tables.asked == [1] * SINGLE_READS + [10]
    assert [tables.read(number) for number in range(10)] == [7] * 9 + [None]
    assert len(tables.asked) == SINGLE_READS + 1


def test_after_a_commit_each_model_asks_again() -> None:
    tables = Tables()
    for number in range(5):
        tables.read(number)
    tables.commit = 8
    assert tables.read(0) == 8
    assert tables.asked[-1] == 1
    assert tables.read(9) is None


def test_rows_between_two_commits_are_not_shared() -> None:
    tables = Tables()
    tables.commits_meanwhile = 1
    assert [tables.read(0) for _ in range(5)] == [8, 9, 10, 11, 12]
    assert tables.asked == [1] * 5  # a writer that never rests does not make each model ask for all


def test_rows_of_a_table_are_kept_until_the_table_is_changed() -> None:
    unchanged = UnchangedTables()
    table, view = ("raw", "events"), ("raw", "v")
    objects: dict[tuple[str, str], object] = {table: object(), view: object()}
    unchanged.keep(objects, {table: {"engine": "MergeTree"}, view: {"engine": "View"}})
    assert unchanged.rows(objects) == {table: {"engine": "MergeTree"}}
    assert unchanged.rows({table: object()}) == {}
    assert unchanged.rows({}) == {}
