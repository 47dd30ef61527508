"""The source tables: their DDL, and the columns of their CSV files."""

from __future__ import annotations

import olapdb

DATABASE = "raw"

STATEMENTS = (
    f"CREATE DATABASE IF NOT EXISTS {DATABASE}",
    f"""
    CREATE TABLE IF NOT EXISTS {DATABASE}.flights (
        flight_date Date,
        hour UInt8,
        minute UInt8,
        sched_dep_time UInt16,
        dep_time Nullable(UInt16),
        dep_delay Nullable(Int16),
        sched_arr_time UInt16,
        arr_time Nullable(UInt16),
        arr_delay Nullable(Int16),
        carrier LowCardinality(String),
        flight UInt16,
        tailnum Nullable(String),
        origin LowCardinality(String),
        dest LowCardinality(String),
        air_time Nullable(UInt16),
        distance UInt16,
        scheduled_at DateTime
    )
    ENGINE = MergeTree
    PARTITION BY toYYYYMM(flight_date)
    ORDER BY (origin, flight_date, hour, carrier, flight)
    """,
    f"""
    CREATE TABLE IF NOT EXISTS {DATABASE}.airlines (carrier String, name String)
    ENGINE = MergeTree ORDER BY carrier
    """,
    f"""
    CREATE TABLE IF NOT EXISTS {DATABASE}.airports (
        faa String, name String, lat Float64, lon Float64, alt Int32, tz Int8, dst String,
        tzone Nullable(String)
    )
    ENGINE = MergeTree ORDER BY faa
    """,
    f"""
    CREATE TABLE IF NOT EXISTS {DATABASE}.planes (
        tailnum String, year Nullable(UInt16), type String, manufacturer String, model String,
        engines UInt8, seats UInt16, speed Nullable(UInt16), engine String
    )
    ENGINE = MergeTree ORDER BY tailnum
    """,
    f"""
    CREATE TABLE IF NOT EXISTS {DATABASE}.weather (
        origin String, weather_date Date, hour UInt8, temp Nullable(Float64),
        dewp Nullable(Float64), humid Nullable(Float64), wind_dir Nullable(UInt16),
        wind_speed Nullable(Float64), wind_gust Nullable(Float64), precip Nullable(Float64),
        pressure Nullable(Float64), visib Nullable(Float64), observed_at DateTime
    )
    ENGINE = MergeTree ORDER BY (origin, weather_date, hour)
    """,
)

CSV_SCHEMAS = {
    "flights": "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int,"
    " arr_time int, sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string,"
    " origin string, dest string, air_time int, distance int, hour int, minute int,"
    " time_hour timestamp",
    "airlines": "carrier string, name string",
    "airports": "faa string, name string, lat double, lon double, alt int, tz int, dst string,"
    " tzone string",
    "planes": "tailnum string, year int, type string, manufacturer string, model string,"
    " engines int, seats int, speed int, engine string",
    "weather": "origin string, year int, month int, day int, hour int, temp double, dewp double,"
    " humid double, wind_dir int, wind_speed double, wind_gust double, precip double,"
    " pressure double, visib double, time_hour timestamp",
}
"""Column types in Spark's syntax; a value that does not fit fails the job."""


def create_tables(connection: olapdb.Connection) -> None:
    for statement in STATEMENTS:
        connection.execute(statement)
