"""The migration of a dbt-clickhouse project: the report, the written project, and dbt on it.

The project is that of docs/migrate.md, which shows each file before and after."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from dbt.adapters.factory import reset_adapters
from dbt.adapters.olapdb.migrate.__main__ import main
from dbt.cli.main import dbtRunner

import olapdb
from tests.contract.dbt.test_incremental_mv import flights

pytestmark = pytest.mark.feature("dbt")

DOCUMENT = Path(__file__).parents[3] / "docs" / "migrate.md"


def documented() -> dict[str, list[str]]:
    """Return the texts of each file that the document shows: before, and after if it changes."""
    _, *sections = re.split(r"^#### `(.+)`$", DOCUMENT.read_text(), flags=re.M)
    return {
        path: re.findall(r"^```\w+\n(.*?)^```", body, flags=re.M | re.S)
        for path, body in zip(sections[::2], sections[1::2], strict=True)
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path, texts in documented().items():
        (tmp_path / "clickhouse" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "clickhouse" / path).write_text(texts[0])
    return tmp_path / "clickhouse"


def test_the_documented_project_is_written_and_dbt_builds_it(
    project: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "olapdb"
    assert main([str(project), "--out", str(out)]) == 0
    report = capsys.readouterr().out
    for path, texts in documented().items():
        assert (out / path).read_text() == texts[-1], path
        assert (project / path).read_text() == texts[0], path
    for line in (
        "models/marts/daily_delays.sql: materialized_view → incremental_mv",
        "mean_delay: avg(delay) does not add up, and SummingMergeTree adds",
        "ORDER BY (carrier) lacks flight_date of GROUP BY (carrier, flight_date)",
        "catchup is off: the rows from before the view was made are missing",
        "departures: count() is stored as a number, and AggregatingMergeTree keeps one",
        "it joins raw.airlines as it is at each INSERT",
        "macros/correct.sql inserts into it directly",
        "An INSERT into it is refused, since it is a read view. In macros/correct.sql name the target",
        "models/marts/late.sql: materialized_view → table",
        "HAVING would be answered for each inserted block by itself",
        "models/history.sql: incremental, other config",
    ):
        assert line in report, report

    monkeypatch.chdir(out)
    with olapdb.connect(str(out / "warehouse")) as connection:
        connection.execute("create database raw")
        connection.execute(
            "create table raw.flights (ts DateTime, flight_date Date, origin String, "
            "carrier String, tail Nullable(String), delay Nullable(Int32)) engine = MergeTree "
            "partition by toYYYYMM(flight_date) order by (origin, ts)"
        )
        connection.execute(
            "create table raw.airlines (carrier String, name String) engine = MergeTree "
            "order by carrier"
        )
        connection.execute("insert into raw.airlines values ('AA', 'American')")
        connection.insert("raw.flights", flights(1))
        run("run-operation", "generate_reconciliation_tests")
        run("build")
        connection.insert("raw.flights", flights(2))
        run("test")
        for model, expected in (
            (
                "select carrier, flight_date, flights, total_delay, mean_delay from daily_delays",
                "select carrier, flight_date, count(), sum(delay), avg(delay) from raw.flights "
                "group by carrier, flight_date",
            ),
            (
                "select carrier, month, flights from monthly",
                "select carrier, toStartOfMonth(flight_date), count() from raw.flights group by 1, 2",
            ),
            (
                "select origin, tails from fleet",
                "select origin, uniq(tail) from raw.flights group by 1",
            ),
        ):
            ours = connection.execute(model.replace("from ", "from analytics.")).fetchall()
            assert sorted(ours) == sorted(connection.execute(expected).fetchall()), model


def run(*arguments: str) -> None:
    """Run dbt in the current folder, which has its profile.

    dbt keeps the adapter of its last command. Without the reset, the project of the next test would
    get this one, with its profile and warehouse."""
    try:
        result = dbtRunner().invoke([*arguments, "--profiles-dir", ".", "--project-dir", "."])
        assert result.success, result.exception or result.result
    finally:
        reset_adapters()


def write(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


PROJECT = {"dbt_project.yml": "name: p\nprofile: p\n"}
VIEW = "{{{{ config(materialized='materialized_view', {}) }}}}\n{}\n"


@pytest.mark.parametrize(
    ("config", "sql", "lines"),
    [
        (
            "engine='AggregatingMergeTree', order_by='k'",
            "select k, maxSimpleState(v) as v from {{ source('s', 't') }} group by k",
            ["materialized_view → incremental_mv", "-SimpleState is dropped"],
        ),
        (
            "engine='ReplacingMergeTree(v)', order_by='k'",
            "select k, v from {{ source('s', 't') }}",
            ["materialized_view → table", "argMax(column, version)"],
        ),
        (
            "engine='ReplacingMergeTree', order_by=['k', 'j']",
            "select k, count() as n from {{ source('s', 't') }} group by k",
            ["n: count() is that of one INSERT", "ORDER BY has j, which GROUP BY lacks"],
        ),
        (
            "refreshable={'interval': 'EVERY 5 MINUTE'}, catchup=False, order_by='k'",
            "select k from {{ source('s', 't') }}",
            ["materialized_view, other config", "have the warehouse open for writing"],
        ),
        (
            "order_by='k'",
            "--a:begin\nselect k from {{ source('s', 't') }}\n--a:end\nunion all\n"
            "--b:begin\nselect k from {{ source('s', 'u') }}\n--b:end",
            ["materialized_view → table", "several views into one target"],
        ),
        (
            "order_by=var('order'), schema='x'",
            "select {% for c in ['a', 'b'] %} {{ c }}, {% endfor %} k from {{ source('s', 't') }}",
            ["Not analysed, since its SQL is made by Jinja ({% for … %})"],
        ),
        (
            "order_by='k', post_hook='insert into {{ this }} values (1)'",
            "select k, uniqState(u) as users from {{ source('s', 't') }} group by k",
            ["is a state in a MergeTree", "m.sql inserts into it directly"],
        ),
        (
            "engine='AggregatingMergeTree', order_by='k'",
            "select k, anyLastState(v) as v, argMaxState(u, t) as w from {{ source('s', 't') }} "
            "group by k",
            [
                "materialized_view → table",
                "v: anyLastState(v) depends on the order in which blocks come",
            ],
        ),
    ],
)
def test_views(
    config: str, sql: str, lines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "p", {**PROJECT, "models/m.sql": VIEW.format(config, sql)})
    assert main([str(tmp_path / "p"), "--out", str(tmp_path / "out")]) == 0
    report = capsys.readouterr().out
    for line in lines:
        assert line in report, report
    text = (tmp_path / "out/models/m.sql").read_text()
    assert "SimpleState" not in text
    if "refreshable" in config:
        assert "refreshable={'interval': 'EVERY 5 MINUTE'}" in text
        assert "catchup=False" in text
    if "var(" in config:
        assert "order_by=var('order')" in text
        assert "schema='x'" in text
        assert "{% for c in ['a', 'b'] %}" in text


def test_keys_of_a_folder_and_strategies_without_a_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that a folder gives is taken back where it means nothing, and dbt runs the result."""
    rows = "select toInt64(number) as id from numbers(3)"
    folder = "models: {p: {+query_settings: {max_threads: 1}}}\n"
    project = write(
        tmp_path / "old",
        {
            "dbt_project.yml": PROJECT["dbt_project.yml"] + folder,
            "models/base.sql": "{{ config(materialized='table') }} " + rows,
            "models/kept.sql": "{{ config(materialized='materialized_view', order_by='id') }} "
            "select id, count() as n from {{ ref('base') }} group by id",
            "models/keyless.sql": "{{ config(materialized='incremental', "
            "incremental_strategy='delete_insert') }} " + rows,
            "models/whole.sql": "{{ config(materialized='incremental', unique_key='id', "
            "incremental_strategy='legacy') }} " + rows,
            "models/codes.sql": "{{ config(materialized='dictionary', primary_key='id', "
            "fields=[('id', 'Int64')], layout='FLAT()', lifetime='60') }} " + rows,
            "models/reads.sql": "select dictHas('{{ target.schema }}.codes', 1) as x",
        },
    )
    assert main([str(project), "--out", str(tmp_path / "new")]) == 0
    report = capsys.readouterr().out
    for line in (
        "delete_insert without a unique_key appends",
        "the dictionary codes__dictionary over it, which dictGet reads in models/reads.sql.",
        "models/base.sql: table, unchanged",
        "query_settings is dropped: a trigger runs with the settings of each INSERT",
    ):
        assert line in report, report
    monkeypatch.chdir(tmp_path / "new")
    for _ in range(2):
        run("build", "--exclude", "reads")
    with olapdb.connect(str(tmp_path / "new" / "warehouse")) as connection:
        for table, expected in (("kept", 3), ("keyless", 6), ("whole", 3), ("codes", 3)):
            query = f"select count() from analytics.{table}"
            assert connection.execute(query).fetchall() == [(expected,)], table


def test_a_chain_that_states_cannot_answer_is_a_view(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        **PROJECT,
        "models/a.sql": VIEW.format(
            "engine='SummingMergeTree', order_by='k'",
            "select k, count() as n, avg(v) as mean from {{ source('s', 't') }} group by k",
        ),
        "models/b.sql": VIEW.format(
            "engine='SummingMergeTree', order_by='n'",
            "select k, max(mean) as highest from {{ ref('a') }} group by k",
        ),
        "models/c.sql": "{{ config(materialized='incremental', unique_key='k', "
        "settings={'index_granularity': 1024}, sharding_key='k') }} select 1 as k",
    }
    write(tmp_path / "p", files)
    assert main([str(tmp_path / "p"), "--out", str(tmp_path / "out")]) == 0
    report = capsys.readouterr().out
    assert "models/b.sql: materialized_view → view" in report
    assert "mean is a state of avg: use avgMerge(mean)" in report
    text = (tmp_path / "out/models/c.sql").read_text()
    assert "incremental_strategy='delete+insert'" in text
    assert "table_settings={'index_granularity': 1024}" in text
    assert "sharding_key is dropped: there are no shards." in report


def test_the_command_and_its_exit_codes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dbt.adapters.olapdb.migrate"]
    folder = write(tmp_path / "p", {**PROJECT, "models/m.sql": "select 1 as a"})
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=True)
    assert "1 models, 0 become something else." in done.stdout
    for arguments, message in (
        ([str(tmp_path)], "has no dbt_project.yml"),
        ([str(folder), "--out", str(folder)], "exists; name a folder that does not"),
        ([str(folder), "--out", str(folder / "new")], "lies in the project itself"),
    ):
        assert message in refused(arguments)
    assert sorted(p.name for p in folder.iterdir()) == ["dbt_project.yml", "models"]


def refused(arguments: list[str]) -> str:
    """Return the error of a migration that ends with exit code 2."""
    command = [sys.executable, "-m", "dbt.adapters.olapdb.migrate", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    return done.stderr


STRANGER = {
    "dbt_project.yml": "name: shop\nprofile: shop\nmodels: {shop: {marts: "
    "{+materialized: materialized_view, +engine: SummingMergeTree()}}}\n",
    "models/sources.yml": "sources: [{name: raw, schema: raw, tables: [{name: web}, {name: app}]}]",
    "models/staged.sql": "select * from {{ source('raw', 'web') }}",
    "models/marts/visits.sql": "{{ config(materialized='table', engine='AggregatingMergeTree', "
    "order_by='day', repopulate_from_mvs_on_full_refresh=True) }}\nselect toDate(0) as day, 0 as n, 0 as later where 0",
    "models/marts/visits_app.sql": "{{ config(catchup=False) }}\n"
    "{{ materialization_target_table(ref('visits')) }}\n"
    "select day, count() as n from {{ source('raw', 'app') }} group by day",
    "models/marts/unit.yml": "unit_tests: [{name: of_app, model: visits_app, given: [{input: "
    "\"source('raw', 'app')\", rows: [{day: '2024-01-20'}]}, {input: ref('visits'), rows: []}], "
    "expect: {rows: [{day: '2024-01-20', n: 1}]}}]",
    "models/marts/web.yml": "models: [{name: visits_app, config: {external_target: visits}}]",
    "models/marts/visits_web.sql": "{{ materialization_target_table(ref('visits')) }}\n"
    "select day, count() as n from {{ source('raw', 'web') }} group by day",
    "models/marts/frequent.sql": "select user, count() as n from {{ source('raw', 'web') }} "
    "group by user having n > 8",
    "models/marts/of_a_view.sql": "{{ config(order_by='user') }}\n"
    "select user, count() as n from {{ ref('staged') }} group by user",
    "models/reader.sql": "select sum(f.n) as n from {{ ref('frequent') }} f final",
    "models/known.sql": "{{ config(materialized='dictionary', primary_key='user', fields=[], "
    "layout='HASHED()', lifetime='60') }}\nselect distinct user from {{ source('raw', 'web') }}",
}


def test_explicit_targets_inherited_engines_views_and_dictionaries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in STRANGER.items():
        (tmp_path / "old" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "old" / path).write_text(text)
    out = tmp_path / "new"
    assert main([str(tmp_path / "old"), "--out", str(out)]) == 0
    report = capsys.readouterr().out
    for line in (
        "later of the table is gone, since no view fills it",
        "Its unit test of_app is of SQL that is in models/marts/visits.sql now: set model: visits",
        "models/marts/visits.sql: table → incremental_mv",
        "models/marts/visits_app.sql: materialized_view → view",
        "models/marts/visits_web.sql: materialized_view → incremental_mv",
        "It writes into the target of visits, as one of several.",
        "it reads the view staged, which no INSERT goes to",
    ):
        assert line in report, report
    monkeypatch.chdir(out)
    with olapdb.connect(str(out / "warehouse")) as connection:
        connection.execute(
            "create database raw; create table raw.web (day Date, user String) engine = MergeTree "
            "order by day; create table raw.app (day Date, user String) engine = MergeTree "
            "partition by toYYYYMM(day) order by day"
        )
        for table in ("web", "app"):
            connection.execute(
                f"insert into raw.{table} select toDate('2024-01-20') + number, "
                "concat('u', toString(number % 5)) from numbers(43)"
            )
        # As the report says: a view fires nothing, and the SQL of a unit test is another model's.
        unit = out / "models" / "marts" / "unit.yml"
        unit.write_text(
            STRANGER["models/marts/unit.yml"]
            .replace("model: visits_app", "model: visits")
            .replace(", {input: ref('visits'), rows: []}", "")
        )
        (out / "models" / "staged.sql").write_text(
            "{{ config(materialized='ephemeral') }} " + STRANGER["models/staged.sql"]
        )
        run("build")
        connection.execute("insert into raw.app values ('2024-01-20', 'u9')")
        connection.execute("optimize table analytics.frequent final")
        for query, expected in (
            ("select sum(n) from analytics.visits", 87),
            ("select n from analytics.visits_app where day = '2024-01-20'", 3),
            ("select sum(n) from analytics.visits_web", 87),
            ("select n from analytics.reader", 27),
            ("select sum(n) from analytics.of_a_view", 43),
            ("select count() from analytics.known", 5),
        ):
            assert connection.execute(query).fetchall() == [(expected,)], query


CLUSTERED = {
    "dbt_project.yml": "name: p\nprofile: p\nseeds: {p: {+sharding_key: code}}\n",
    "models/schema.yml": "sources: [{name: raw, schema: raw, tables: [{name: events}, "
    "{name: clicks, config: {event_time: ts}}]}]\n"
    "models: [{name: lacking, config: {enabled: false}}]\n",
    "models/by_kind.sql": VIEW.format(
        "engine='SummingMergeTree', order_by='kind', ttl='ts + INTERVAL 1 DAY', indexes=[{'name': "
        "'i', 'definition': 'kind TYPE set(9)'}], projections=[{'name': 'q', 'query': 'select 1'}]",
        "select kind, count() as n, max(ts) as ts from {{ source('raw', 'events') }} group by kind",
    ),
    "models/secured.sql": "{{ config(materialized='view', sql_security='definer', definer='me') }}\n"
    "select kind from {{ source('raw', 'events') }}",
    "models/whole.sql": "{{ config(materialized='incremental', incremental_strategy='microbatch', "
    "event_time='ts', begin='2024-01-01', batch_size='year', order_by='ts') }}\n"
    "-- not read: {{ source('raw', 'clicks') }}\n"
    "select ts, kind from {{ source('raw', 'events') }}",
    "models/joined.sql": "{{ config(materialized='incremental', incremental_strategy='microbatch', "
    "event_time='ts', begin='2024-01-01', batch_size='year', order_by='ts') }}\n"
    "select c.ts as ts, e.kind as kind from {{ source('raw', 'clicks') }} as c "
    "left join {{ source('raw', 'events') }} as e on e.ts = c.ts",
    "models/lacking.sql": "{{ config(materialized='incremental', incremental_strategy='microbatch', "
    "order_by='ts') }} select ts from {{ source('raw', 'clicks') }}",
    "snapshots/kept.sql": "{% snapshot kept %}\n{{ config(target_schema='analytics', "
    "unique_key='kind', strategy='check', check_cols=['kind'], engine='ReplicatedMergeTree', "
    "sharding_key='kind') }}\nselect distinct kind from {{ source('raw', 'events') }}\n{% endsnapshot %}",
    "seeds/codes.csv": "code\na\n",
}


def test_microbatches_snapshots_and_keys_of_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report names each, and dbt builds all that it does not call wrong."""
    assert main([str(write(tmp_path / "old", CLUSTERED)), "--out", str(tmp_path / "new")]) == 0
    report = capsys.readouterr().out
    for line in (
        "its input raw.events has no event_time, so that each batch reads all rows of it",
        "its config lacks event_time, begin, batch_size; dbt runs a microbatch model only with",
        "here:  sql_security is dropped: the warehouse has one user.",
        "here:  projections is dropped: a table has them. Add them to the target by a post_hook",
        "here:  indexes is dropped: a table has them.",
        "Its ttl is dropped, so that all rows stay: only a key of the groups (kind)",
        "snapshots/kept.sql: snapshot, other config",
        "seeds/codes.csv: seed, unchanged",
        "Remove sharding_key from its YAML, since a run refuses what means nothing.",
        "5 models,",
    ):
        assert line in report, report
    assert "raw.clicks has no event_time" not in report
    assert report.count("has no event_time") == 1, "a joined table needs none"
    project = tmp_path / "new" / "dbt_project.yml"
    project.write_text("name: p\nprofile: p\n")
    monkeypatch.chdir(tmp_path / "new")
    with olapdb.connect(str(tmp_path / "new" / "warehouse")) as connection:
        connection.execute(
            "create database raw; "
            "create table raw.events (ts DateTime, kind String) engine = MergeTree order by ts; "
            "create table raw.clicks (ts DateTime) engine = MergeTree order by ts; "
            "insert into raw.events values ('2024-01-05 00:00:00', 'a'), ('2025-01-05 00:00:00', 'b');"
            "insert into raw.clicks select ts from raw.events"
        )
        run("build", "--exclude", "whole")
        for table, expected in (("by_kind", 2), ("secured", 2), ("joined", 2), ("kept", 2)):
            query = f"select count() from analytics.{table}"
            assert connection.execute(query).fetchall() == [(expected,)], table
