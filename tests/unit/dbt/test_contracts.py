"""What contracts and snapshots make of columns, without a dbt project."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.adapters.olapdb import OlapdbAdapter, OlapdbColumn
from dbt.adapters.olapdb.constraints import Contract
from dbt.adapters.olapdb.snapshots import column_changes, nullable
from dbt_common.exceptions import CompilationError

pytestmark = pytest.mark.feature("dbt")


def contract(*columns: dict[str, Any], constraints: tuple[dict[str, Any], ...] = ()) -> Contract:
    return Contract.of(
        {"columns": {c["name"]: c for c in columns}, "constraints": list(constraints)}
    )


def test_elements_of_a_table() -> None:
    model = contract(
        {
            "name": "id",
            "data_type": "Nullable(Int64)",
            "constraints": [
                {"type": "not_null"},
                {"type": "check", "expression": "id > 0"},
                {"type": "check", "expression": "id < 9", "name": "small"},
                {"type": "check", "expression": "id != 5"},
                {"type": "custom", "expression": "CODEC(ZSTD)"},
                {"type": "unique", "warn_unsupported": False},
            ],
        },
        {"name": "from", "data_type": "LowCardinality(Nullable(String))"},
        constraints=(
            {"type": "primary_key", "columns": ["from"], "warn_unenforced": False},
            {"type": "check", "expression": "id = length(`from`)"},
            {
                "type": "foreign_key",
                "columns": ["id"],
                "expression": "t (id)",
                "warn_unsupported": False,
            },
        ),
    )
    assert model.elements(OlapdbAdapter.process_parsed_constraint) == [
        "`id` Int64 CODEC(ZSTD)",
        "`from` LowCardinality(String)",
        "CONSTRAINT `id_check` CHECK (id > 0)",
        "CONSTRAINT `small` CHECK (id < 9)",
        "CONSTRAINT `id_check3` CHECK (id != 5)",
        "CONSTRAINT `check_2` CHECK (id = length(`from`))",
    ]
    assert model.primary_key() == ["from"]


def test_codecs_and_ttls_of_columns() -> None:
    model = contract(
        {"name": "id", "data_type": "Int64", "codec": "Delta, ZSTD(3)"},
        {"name": "ip", "data_type": "String", "ttl": "ts + INTERVAL 1 DAY", "codec": "LZ4"},
        {"name": "ts", "data_type": "DateTime"},
    )
    assert model.elements(OlapdbAdapter.process_parsed_constraint) == [
        "`id` Int64 CODEC(Delta, ZSTD(3))",
        "`ip` String CODEC(LZ4) TTL ts + INTERVAL 1 DAY",
        "`ts` DateTime",
    ]
    assert model.stored_otherwise() == ["id", "ip"]


def test_a_contract_compares_meanings_of_types() -> None:
    not_null = [{"type": "not_null"}]
    model = contract(
        {"name": "a", "data_type": "text"},
        {"name": "b", "data_type": "Int8", "constraints": not_null},
        {"name": "c", "data_type": "Int8"},
    )
    query = [("a", "String"), ("b", "Nullable(Int8)"), ("c", "Nullable(Int8)")]
    promised, returned = model.compare([OlapdbColumn(*column) for column in query])
    assert [c["formatted"] for c in promised] == ["a String", "b Int8", "c Int8"]
    assert [c["formatted"] for c in returned] == ["a String", "b Int8", "c Nullable(Int8)"]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"name": "a"}, "no data_type of the column a"),
        ({"name": "a", "data_type": "Strng"}, "'Strng' of the column a is no type"),
    ],
)
def test_types_that_are_none(column: dict[str, Any], message: str) -> None:
    with pytest.raises(CompilationError, match=message):
        contract(column).compare([])


@pytest.mark.parametrize(
    ("data_type", "expected"),
    [
        ("String", "Nullable(String)"),
        ("Nullable(Int8)", "Nullable(Int8)"),
        ("LowCardinality(String)", "LowCardinality(Nullable(String))"),
        ("LowCardinality(Nullable(String))", "LowCardinality(Nullable(String))"),
        ("Array(String)", "Array(String)"),
        ("DateTime64(6, 'Asia/Tokyo')", "Nullable(DateTime64(6, 'Asia/Tokyo'))"),
    ],
)
def test_types_with_null(data_type: str, expected: str) -> None:
    assert nullable(data_type) == expected


def test_columns_of_a_snapshot_follow_its_query() -> None:
    snapshot = [
        ("id", "Int64"),
        ("gone", "String"),
        ("tags", "Array(String)"),
        ("dbt_scd_id", "String"),
    ]
    query = [("id", "Nullable(Int64)"), ("new", "LowCardinality(String)")]
    changes = column_changes(
        [OlapdbColumn(*c) for c in snapshot], [OlapdbColumn(*c) for c in query], ["dbt_scd_id"]
    )
    assert changes == [
        "ADD COLUMN `new` LowCardinality(Nullable(String))",
        "MODIFY COLUMN `id` Nullable(Int64)",
        "MODIFY COLUMN `gone` Nullable(String)",
    ]
