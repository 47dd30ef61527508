"""Columns, relations, credentials, seeds and clauses, without a dbt project."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path

import agate
import pyarrow as pa
import pytest
from dbt.adapters.olapdb import OlapdbAdapter, OlapdbColumn, OlapdbCredentials, OlapdbRelation
from dbt.adapters.olapdb.incremental_mv import progress as progress_module
from dbt.adapters.olapdb.incremental_mv.operations.table import table_lines
from dbt.adapters.olapdb.incremental_mv.operations.test_files import untested, write_tests
from dbt.adapters.olapdb.incremental_mv.progress import BackfillProgress
from dbt.adapters.olapdb.incremental_mv.reconcile import (
    FINDINGS_MAX,
    Finding,
    bounded,
    findings_sql,
)
from dbt.adapters.olapdb.incremental_mv.warehouse import _view
from dbt.adapters.olapdb.seeds import to_arrow
from dbt.adapters.olapdb.storage_clause import storage_clause
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from olapdb.views.jobs.job import ChunkEvent

pytestmark = pytest.mark.feature("dbt")


@pytest.mark.parametrize(
    ("type_name", "string", "integer", "float_", "numeric"),
    [
        ("String", True, False, False, False),
        ("LowCardinality(Nullable(String))", True, False, False, False),
        ("FixedString(3)", True, False, False, False),
        ("Nullable(UInt16)", False, True, False, False),
        ("SimpleAggregateFunction(sum, Int64)", False, True, False, False),
        ("Float32", False, False, True, False),
        ("Nullable(Decimal(10, 2))", False, False, False, True),
        ("DateTime64(3)", False, False, False, False),
        ("Array(String)", False, False, False, False),
    ],
)
def test_column_kinds(
    type_name: str, string: bool, integer: bool, float_: bool, numeric: bool
) -> None:
    column = OlapdbColumn("a b", type_name)
    kinds = (column.is_string(), column.is_integer(), column.is_float(), column.is_numeric())
    assert kinds == (string, integer, float_, numeric)
    assert column.data_type == type_name
    assert column.quoted == "`a b`"


def test_relations_have_two_levels_and_backquotes() -> None:
    relation = OlapdbRelation.create(database="olapdb", schema="a", identifier="b`c")
    assert relation.render() == "`a`.`b\\`c`"
    limited = OlapdbRelation.create(database="olapdb", schema="a", identifier="b", limit=0)
    assert str(limited) == "(select * from `a`.`b` where false limit 0)"


def test_credentials_are_checked() -> None:
    credentials = OlapdbCredentials(path="~/wh", schema="s", database="")
    assert credentials.location.startswith("/")
    assert credentials.type == "olapdb"
    with pytest.raises(DbtRuntimeError, match="two levels"):
        OlapdbCredentials(schema="s", database="d")
    with pytest.raises(DbtRuntimeError, match="in_process or spark"):
        OlapdbCredentials(path="wh", backfill_engine="flink")
    with pytest.raises(DbtRuntimeError, match="needs a warehouse in a folder"):
        OlapdbCredentials(backfill_engine="spark")


def test_an_unknown_key_of_the_profile_is_refused() -> None:
    with pytest.raises(DbtRuntimeError, match=r"key pth.* Maybe you meant path\."):
        OlapdbCredentials.validate({"pth": "warehouse", "schema": "s"})
    with pytest.raises(DbtRuntimeError, match="key password means nothing"):
        OlapdbCredentials.validate({"path": "warehouse", "schema": "s", "password": "x"})
    OlapdbCredentials.validate({"path": "warehouse", "schema": "s", "settings": {}})


def test_storage_clause() -> None:
    assert storage_clause({}) == "ENGINE = MergeTree ORDER BY tuple()"
    assert (
        storage_clause(
            {"order_by": ["a", "b"], "partition_by": "toYYYYMM(d)", "table_settings": {"x": True}}
        )
        == "ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY (a, b) SETTINGS x = 1"
    )
    with pytest.raises(CompilationError, match="means nothing for the engine Memory"):
        storage_clause({"engine": "Memory", "order_by": "a"})


def test_seed_types_and_arrow() -> None:
    early, late = datetime.datetime(2013, 1, 1, 5), datetime.datetime(1950, 1, 1)
    table = agate.Table(
        [[1, "a", early, None], [2, None, late, 2.5]],
        ["id", "name", "at", "x"],
        [agate.Number(), agate.Text(), agate.DateTime(), agate.Number()],
    )
    types = [OlapdbAdapter.convert_agate_type(table, i) for i in range(4)]
    assert types == ["Int64", "Nullable(String)", "DateTime64(6)", "Nullable(Float64)"]
    arrow = to_arrow(table, dict(zip(table.column_names, types)))
    assert arrow.schema.types[0] == pa.int64()
    assert arrow.column("x").to_pylist() == [None, 2.5]
    with pytest.raises(DbtRuntimeError, match="full-refresh"):
        to_arrow(table, {"id": "Int64"})


def node(name: str, *upstream: str, **more: object) -> dict[str, object]:
    return {
        "unique_id": f"model.p.{name}",
        "name": name,
        "alias": name,
        "schema": "an",
        "resource_type": "model",
        "config": {"materialized": "incremental_mv"},
        "depends_on": {"nodes": [f"model.p.{b}" for b in upstream]},
        **more,
    }


def test_generated_tests_are_kept_current(tmp_path: Path) -> None:
    tested = {
        "unique_id": "test.p.x",
        "resource_type": "test",
        "test_metadata": {"name": "reconciled"},
        "depends_on": {"nodes": ["model.p.a"]},
    }
    nodes = [node("a"), node("b"), tested]
    folder = tmp_path / "tests" / "reconciled"
    assert [n["name"] for n in untested(nodes)] == ["b"]
    assert write_tests(nodes, str(tmp_path), "tests/reconciled", "p") == [
        "Wrote tests/reconciled/reconciled_b.sql"
    ]
    generated = {
        "unique_id": "test.p.reconciled_b",
        "resource_type": "test",
        "original_file_path": "tests/reconciled/reconciled_b.sql",
        "raw_code": (folder / "reconciled_b.sql").read_text(),
        "depends_on": {"nodes": ["model.p.b"]},
    }
    assert generated["raw_code"].endswith("\n{{ olapdb_reconciled(ref('b')) }}\n")
    assert untested([*nodes, generated]) == []
    assert write_tests([*nodes, generated], str(tmp_path), "tests/reconciled", "p") == []

    # A changed file is rewritten, that of a model which is gone removed; a person's file stays.
    (folder / "reconciled_b.sql").write_text(generated["raw_code"] + "select 1\n")
    (folder / "reconciled_c.sql").write_text(generated["raw_code"].replace("'b'", "'c'"))
    (folder / "reconciled_d.sql").write_text("select 1 where 1 = 0\n")
    lines = write_tests([*nodes, node("d"), generated], str(tmp_path), "tests/reconciled", "p")
    assert lines == [
        "Removed tests/reconciled/reconciled_c.sql",
        "Rewrote tests/reconciled/reconciled_b.sql",
        "Left tests/reconciled/reconciled_d.sql as it is: it was not written by this.",
    ]
    assert (folder / "reconciled_b.sql").read_text() == generated["raw_code"]
    assert (folder / "reconciled_d.sql").read_text() == "select 1 where 1 = 0\n"


def test_findings_are_rows_and_those_beyond_the_limit_are_counted() -> None:
    finding = Finding("m", "201301", "DELETE: it's gone", "(1)", extra=1, repair="dbt …")
    assert "'DELETE: it\\'s gone' as cause" in findings_sql([finding])
    assert "where 1 = 0" in findings_sql([])
    assert "m, partition 201301" in finding.line()
    findings = [replace(finding, partition=str(n)) for n in range(FINDINGS_MAX + 36)]
    listed = bounded(findings)
    assert len(listed) == FINDINGS_MAX
    assert listed[-1].cause == "and 37 more partitions"
    assert sum(f.slices for f in listed) == len(findings)
    assert sum(f.extra for f in listed) == len(findings)


def test_a_table_of_an_operation() -> None:
    rows = [{"model": "a.b", "rows": 1200, "next": ""}, {"model": "a.long", "rows": 7, "next": ""}]
    assert table_lines(rows) == ["model    rows", "------  -----", "a.b     1,200", "a.long      7"]
    assert table_lines([]) == []


def test_progress_has_the_rate_and_the_time_left() -> None:
    """The start of Spark, before the first chunk is planned, is no part of the rate."""
    times = iter((0.0, 50.0, 52.0, 54.0))
    progress = BackfillProgress("d.m", lambda: next(times))
    events = [ChunkEvent("planned", "BACKFILL", "v", i, 2, "2013", rows=1000) for i in (0, 1)]
    first = ChunkEvent("published", "BACKFILL", "v", 0, 2, "2013", rows=1000, target_rows=7)
    for event in (*events, first):
        progress(event)
    assert progress.line(first) == (
        "d.m: chunk 1 of 2, partition 2013: 1000 rows -> 7, 500 rows/s, 2 s left"
    )
    last = replace(first, index=1)
    progress(last)
    assert progress.line(last).endswith("500 rows/s")
    response = progress.response()
    assert response["chunks"] == 2
    assert response["source_rows"] == 2000
    assert response["elapsed_ms"] == 4000


def test_many_small_chunks_have_a_line_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    levels: list[str] = []
    for level in ("info", "debug"):
        monkeypatch.setattr(
            progress_module.logger, level, lambda line, level=level: levels.append(level)
        )
    now = [0.0]
    progress = BackfillProgress("d.m", lambda: now[0])
    for phase in ("planned", "published"):
        for index in range(100):
            now[0] += 0.1 if phase == "published" else 0
            progress(ChunkEvent(phase, "BACKFILL", "v", index, 100, "2013", rows=10))
    assert (progress.rows_total, progress.source_rows) == (1000, 1000)
    assert levels[:10] == ["info"] * 10
    assert levels[-1] == "info"
    assert levels.count("info") == 10 + 90 // 10
    assert levels.count("debug") == 100 - levels.count("info")


def test_a_comment_that_dbt_did_not_write_is_ignored() -> None:
    row = {"database": "d", "name": "v", "target_database": "d", "target": "t", "comment": "{hi"}
    assert _view(row).model == ""
    body = {"olapdb": {"model": "x", "definition": "y", "columns": {"a": ["key", ""]}}}
    assert _view({**row, "comment": json.dumps(body)}).column_kinds == {"a": ("key", "")}
