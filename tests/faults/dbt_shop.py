"""The dbt project that tests kill: a chain of views, a seed, a snapshot, an incremental model.

Each kind of node that writes is there, with a view over it: the next run must make all of them
equal to their inputs again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import olapdb
from olapdb.dbapi.connection import Connection
from olapdb.maintenance.check import check_database

HOURLY = """
{{ config(on_definition_change='rebuild') }}
select shop, toStartOfHour(at) as hour, count() as sold, sum(amount) as amount
from {{ source('raw', 'orders') }} group by shop, hour
"""
DAILY = """
select shop, toDate(hour) as day, sum(sold) as sold, sum(amount) as amount
from {{ ref('hourly') }} group by shop, day
"""
SHOPS = "{{ config(materialized='incremental', unique_key='id') }}\nselect * from {{ source('raw', 'shops') }}\n"
PER_CITY = "select city, count() as shops from {{ ref('shops') }} group by city\n"
PER_GRADE = "select grade, sum(bonus) as bonus from {{ ref('grades') }} group by grade\n"
GRADES = "grade,bonus\na,1\nb,2\nb,3\n"
SCHEMA = """
sources: [{name: raw, schema: raw, tables: [{name: orders}, {name: shops}]}]
snapshots:
  - name: shops_history
    relation: source('raw', 'shops')
    config: {unique_key: id, strategy: check, check_cols: all, hard_deletes: invalidate}
"""
FILES = {
    "dbt_project.yml": "name: shop\nversion: 1.0.0\nprofile: shop\n"
    "models: {shop: {+materialized: incremental_mv}}\n"
    "flags: {send_anonymous_usage_stats: false}\n",
    "profiles.yml": "shop: {target: dev, outputs: {dev: {type: olapdb, schema: dev, threads: 1,"
    " path: \"{{ env_var('SHOP_WAREHOUSE') }}\"}}}\n",
    "models/hourly.sql": HOURLY,
    "models/daily.sql": DAILY,
    "models/shops.sql": SHOPS,
    "models/per_city.sql": PER_CITY,
    "models/per_grade.sql": PER_GRADE,
    "models/schema.yml": SCHEMA,
    "seeds/grades.csv": GRADES,
}
ARGUMENTS = {
    "first": ["build"],
    "rerun": ["build"],
    "refresh": ["build", "--full-refresh"],
    "change": ["build"],
    "seed": ["seed"],
    "seed columns": ["seed"],
    "snapshot": ["snapshot"],
}
"""The command that is killed, by what the project is about to do."""
VIEWS = {
    "hourly": "SELECT shop, toStartOfHour(at), count(), sum({factor} * amount) FROM raw.orders"
    " GROUP BY 1, 2 ORDER BY 1, 2",
    "daily": "SELECT shop, toDate(at), count(), sum({factor} * amount) FROM raw.orders"
    " GROUP BY 1, 2 ORDER BY 1, 2",
    "per_city": "SELECT city, count() FROM dev.shops GROUP BY 1 ORDER BY 1",
    "per_grade": "SELECT grade, sum(bonus) FROM dev.grades GROUP BY 1 ORDER BY 1",
}
"""What each `incremental_mv` must answer."""
RELATIONS = {"grades", "shops", "shops_history"} | {
    f"{view}{part}" for view in VIEWS for part in ("", "__mv", "__target")
}


def write_project(folder: Path) -> None:
    """Write the project and a warehouse with its sources."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    with olapdb.connect(str(folder / "db")) as connection:
        connection.execute("CREATE DATABASE raw")
        connection.execute(
            "CREATE TABLE raw.orders (at DateTime, shop String, amount Int64) ENGINE = MergeTree"
            " PARTITION BY toYYYYMM(at) ORDER BY at"
        )
        for month in (1, 2, 3):
            connection.execute(
                f"INSERT INTO raw.orders SELECT toDateTime('2024-0{month}-01 00:00:00')"
                " + number * 5000, concat('s', toString(number % 3)), number FROM numbers(40)"
            )
        connection.execute(
            "CREATE TABLE raw.shops (id String, city String) ENGINE = MergeTree ORDER BY id"
        )
        connection.execute("INSERT INTO raw.shops VALUES ('s0', 'Ulm'), ('s1', 'Ulm')")


def prepare(project: Path, work: str) -> None:
    """Change what the command of this work is to notice."""
    if work in ("rerun", "snapshot"):
        with olapdb.connect(str(project / "db")) as connection:
            connection.execute("DELETE FROM raw.orders WHERE at < '2024-01-01 10:00:00'")
            connection.execute(
                "INSERT INTO raw.shops REPLACE USING (id) VALUES ('s0', 'Bonn'), ('s2', 'Bonn')"
            )
    if work == "change":
        changed = HOURLY.replace("sum(amount)", "sum(2 * amount)")
        (project / "models" / "hourly.sql").write_text(changed)
    if work == "seed":
        (project / "seeds" / "grades.csv").write_text("grade,bonus\na,5\nb,2\nc,7\n")
    if work == "seed columns":
        (project / "seeds" / "grades.csv").write_text("grade,bonus,note\na,5,x\nb,2,y\n")


def check(connection: Connection, work: str) -> None:
    """Assert that every relation equals its inputs, is trusted, and that nothing is left behind."""

    def rows(sql: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in connection.execute(sql).fetchall()]

    factor = 2 if work == "change" else 1
    for view, truth in VIEWS.items():
        columns = len(connection.describe(truth.format(factor=factor)))
        order = ", ".join(str(number + 1) for number in range(columns // 2))
        live = rows(f"SELECT * FROM dev.{view} ORDER BY {order}")
        assert live == rows(truth.format(factor=factor)), view
        compared = connection.execute(f"SYSTEM RECONCILE VIEW dev.{view}__mv").fetch_arrow_table()
        assert set(compared["verdict"].to_pylist()) == {"equal"}, view
    assert rows("SELECT id, city FROM dev.shops ORDER BY 1") == rows(
        "SELECT id, city FROM raw.shops ORDER BY 1"
    )
    assert rows("SELECT grade, bonus FROM dev.grades ORDER BY 1, 2") == GRADES_AFTER.get(
        work, [("a", 1), ("b", 2), ("b", 3)]
    )
    history = "SELECT id, city, dbt_valid_to IS NULL FROM dev.shops_history ORDER BY 1, 3"
    assert rows(history) == HISTORY_AFTER.get(work, [("s0", "Ulm", 1), ("s1", "Ulm", 1)])
    assert left_behind(connection) == set()
    services = connection.database.services
    assert check_database(services.catalog, services.store) == []


GRADES_AFTER: Mapping[str, list[tuple[object, ...]]] = {
    "seed": [("a", 5), ("b", 2), ("c", 7)],
    "seed columns": [("a", 5), ("b", 2)],
}
CHANGED_SHOPS: list[tuple[object, ...]] = [
    ("s0", "Ulm", 0),
    ("s0", "Bonn", 1),
    ("s1", "Ulm", 1),
    ("s2", "Bonn", 1),
]
HISTORY_AFTER = {"rerun": CHANGED_SHOPS, "snapshot": CHANGED_SHOPS}


def left_behind(connection: Connection) -> set[str]:
    """Return the tables of the schema that are neither the project's nor a version that is kept."""
    names = connection.execute("SELECT name FROM system.tables WHERE database = 'dev'").fetchall()
    standing = "SELECT name, target_table FROM system.views WHERE standing = 'previous'"
    previous = {name for row in connection.execute(standing).fetchall() for name in row}
    listed = {name for (name,) in names}
    assert listed >= RELATIONS
    return listed - RELATIONS - previous
