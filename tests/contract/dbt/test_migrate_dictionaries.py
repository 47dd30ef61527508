"""Dictionaries of a dbt-clickhouse project: written as tables with a dictionary over each, and built."""

from __future__ import annotations

from pathlib import Path

import pytest
from dbt.adapters.olapdb.migrate.__main__ import main

import olapdb
from tests.contract.dbt.test_migrate import run

pytestmark = pytest.mark.feature("dbt")

SITES = "fields=[('site', 'String'), ('region', 'String')], primary_key='site', layout='COMPLEX_KEY_HASHED()'"
PRICES = (
    "fields=[('id', 'UInt64'), ('since', 'Date'), ('until', 'Date'), ('price', 'Float64')], "
    "primary_key=['id'], layout='RANGE_HASHED()', range='MIN since MAX until', lifetime='0'"
)
PROJECT = {
    "dbt_project.yml": "name: p\nprofile: p\nmodels: {+materialized: table}\n",
    "models/sources.yml": "sources: [{name: raw, schema: raw, tables: [{name: devices}]}]\n",
    "models/sites.sql": "{{ config(materialized='dictionary', "
    + SITES
    + ", lifetime='300', post_hook='select 1') }}\n"
    "select site, any(concat('in ', site)) as region from {{ source('raw', 'devices') }} group by site",
    "models/prices.sql": "{{ config(materialized='dictionary', " + PRICES + ") }}\n"
    "select id, toDate('2024-01-01') as since, toDate('2030-01-01') as until, id / 2 as price "
    "from {{ source('raw', 'devices') }}",
    "models/by_var.sql": "{{ config(materialized='dictionary', fields=var('fields', []), "
    "primary_key='id', layout='FLAT()') }}\nselect id from {{ source('raw', 'devices') }}",
    "models/reader.sql": "select id, dictGet('{{ ref('sites') }}', 'region', tuple(site)) as region,\n"
    "dictGetOrDefault('{{ target.schema }}.prices', 'price', id, toDate('2024-02-01'), 0.) as price,\n"
    "{{ region_of('site') }} as same from {{ source('raw', 'devices') }}\n"
    "-- depends_on: {{ ref('prices') }}",
    "models/live.sql": "{{ config(materialized='materialized_view', engine='MergeTree', order_by='id') }}\n"
    "select id, dictGet('{{ target.schema }}.sites', 'region', tuple(site)) as region\n"
    "from {{ source('raw', 'devices') }} -- depends_on: {{ ref('sites') }}",
    "models/logged.sql": "{{ config(materialized='incremental', inserts_only=true, engine='Log', "
    "order_by='tuple()') }} select id from {{ source('raw', 'devices') }}",
    "macros/region.sql": "{% macro region_of(column) %}dictGet({{ ref('sites') }}, 'region', "
    "tuple({{ column }})){% endmacro %}",
}


def test_a_dictionary_is_a_table_with_a_dictionary_over_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in PROJECT.items():
        (tmp_path / "old" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "old" / path).write_text(text)
    out = tmp_path / "new"
    assert main([str(tmp_path / "old"), "--out", str(out)]) == 0
    report = capsys.readouterr().out
    for line in (
        "models/sites.sql: dictionary → table",
        "makes the dictionary sites__dictionary over it, which dictGet reads in models/live.sql, "
        "models/reader.sql, macros/region.sql.",
        "order_by is dropped: Log has no such key.",
    ):
        assert line in report, report
    monkeypatch.chdir(out)
    with olapdb.connect(str(out / "warehouse")) as connection:
        connection.execute(
            "create database raw; create table raw.devices (id UInt64, site String) "
            "engine = MergeTree order by id"
        )
        connection.execute("insert into raw.devices values (1, 'a'), (2, 'b')")
        run("build")
        run("build")
        connection.execute("insert into raw.devices values (3, 'a')")
        for query, expected in (
            (
                "select id, region, price, same from analytics.reader order by id",
                [(1, "in a", 0.5, "in a"), (2, "in b", 1.0, "in b")],
            ),
            ("select count() from analytics.sites", [(2,)]),
            ("select region from analytics.live order by id", [("in a",), ("in b",), ("in a",)]),
            ("select count() from analytics.logged", [(4,)]),
        ):
            assert connection.execute(query).fetchall() == expected, query
