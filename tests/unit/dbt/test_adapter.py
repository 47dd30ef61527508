"""Columns, relations, credentials, seeds and clauses, without a dbt project."""

from __future__ import annotations

import datetime
import json

import agate
import pyarrow as pa
import pytest
from dbt.adapters.olapdb import OlapdbAdapter, OlapdbColumn, OlapdbCredentials, OlapdbRelation
from dbt.adapters.olapdb.incremental_mv.names import ModelNames
from dbt.adapters.olapdb.incremental_mv.operations import choose, untested, write_tests
from dbt.adapters.olapdb.incremental_mv.reconcile import Finding, findings_sql
from dbt.adapters.olapdb.incremental_mv.warehouse import _view
from dbt.adapters.olapdb.seeds import to_arrow
from dbt.adapters.olapdb.storage_clause import storage_clause
from dbt_common.exceptions import CompilationError, DbtRuntimeError

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


def test_chained_models_come_after_their_upstreams() -> None:
    nodes = [node("a", "c"), node("b", "a"), node("c")]
    assert [n.model for n in choose(nodes, None)] == ["c", "a", "b"]
    assert choose(nodes, "a") == [ModelNames("an", "a")]
    with pytest.raises(DbtRuntimeError, match="there are: a, b, c"):
        choose(nodes, ["z"])


def test_untested_models_get_a_test_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    tested = {
        "unique_id": "test.p.x",
        "resource_type": "test",
        "test_metadata": {"name": "reconciled"},
        "depends_on": {"nodes": ["model.p.a"]},
    }
    nodes = [node("a"), node("b"), tested]
    assert [n["name"] for n in untested(nodes)] == ["b"]
    assert write_tests(nodes, str(tmp_path), "tests/reconciled") == [
        "tests/reconciled/reconciled_b.sql"
    ]
    text = (tmp_path / "tests/reconciled/reconciled_b.sql").read_text()
    assert text == "{{ olapdb_reconciled(ref('b')) }}\n"


def test_findings_are_rows() -> None:
    finding = Finding("m", "201301", "DELETE: it's gone", "(1)", 0, 1, 0, 0, 0, "dbt …")
    assert "'DELETE: it\\'s gone' as cause" in findings_sql([finding])
    assert "where 1 = 0" in findings_sql([])
    assert "m, partition 201301" in finding.line()


def test_a_comment_that_dbt_did_not_write_is_ignored() -> None:
    row = {"database": "d", "name": "v", "target_database": "d", "target": "t", "comment": "{hi"}
    assert _view(row).model == ""
    body = {"olapdb": {"model": "x", "definition": "y", "columns": {"a": ["key", ""]}}}
    assert _view({**row, "comment": json.dumps(body)}).column_kinds == {"a": ("key", "")}
