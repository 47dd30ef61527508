"""The models computed by pandas over the CSV file: the expected value of every number of the demo."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

import olapdb

FLOAT_TOLERANCE = 1e-9
UNIQ_TOLERANCE = 0.01


@dataclass(frozen=True)
class Deleted:
    """Flights that the demo deletes from the source."""

    origin: str
    carrier: str
    date: str

    @property
    def condition(self) -> str:
        return (
            f"origin = '{self.origin}' AND carrier = '{self.carrier}'"
            f" AND flight_date = '{self.date}'"
        )


@dataclass(frozen=True)
class Model:
    """A model's keys, and its expected rows by pandas; `estimates` are columns computed by `uniq`."""

    name: str
    keys: tuple[str, ...]
    expected: pd.DataFrame
    estimates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """A figure of a model by olapdb and by pandas. `equal` allows for estimates and float rounding."""

    model: str
    figure: str
    olapdb: float
    pandas: float
    equal: bool


def read_flights(flights_csv: Path, deleted: Deleted | None = None) -> pd.DataFrame:
    flights = pd.read_csv(flights_csv, keep_default_na=False, na_values=["NA"])
    flights["flight_date"] = pd.to_datetime(flights[["year", "month", "day"]])
    if deleted is None:
        return flights
    is_deleted = (
        (flights["origin"] == deleted.origin)
        & (flights["carrier"] == deleted.carrier)
        & (flights["flight_date"] == pd.Timestamp(deleted.date))
    )
    return flights[~is_deleted]


def models(flights: pd.DataFrame, airlines: pd.DataFrame) -> list[Model]:
    """Return every incremental_mv model and mart of the project with its expected rows."""
    hourly = _departures(flights, ["origin", "flight_date", "hour"])
    daily = _departures(flights, ["origin", "flight_date"])
    arrived = flights.dropna(subset=["arr_delay"]).groupby(["carrier", "flight_date"])["arr_delay"]
    delay = arrived.agg(
        arrived="count",
        arr_delay_mean="mean",
        arr_delay_p90=lambda s: s.quantile(0.9),
        arr_delay_max="max",
    ).reset_index()
    month = flights["flight_date"].dt.to_period("M").dt.start_time
    aircraft = (
        flights.assign(month=month)
        .groupby(["carrier", "month"])["tailnum"]
        .nunique()
        .reset_index(name="aircraft_exact")
    )
    aircraft["aircraft"] = aircraft["aircraft_exact"]
    named = flights.dropna(subset=["dep_time"]).merge(airlines, on="carrier", how="left")
    named = named.rename(columns={"name": "airline"})
    fleet = (
        aircraft.groupby("carrier")
        .agg(aircraft_in_best_month=("aircraft_exact", "max"), months=("aircraft_exact", "size"))
        .reset_index()
        .merge(airlines, on="carrier")
        .rename(columns={"name": "airline"})
    )
    by_weekday = daily.assign(weekday=daily["flight_date"].dt.dayofweek + 1)
    weekdays = by_weekday.groupby("weekday")[["scheduled", "departed"]].sum().reset_index()
    in_months = daily.assign(month=daily["flight_date"].dt.to_period("M").dt.start_time)
    totals = ["scheduled", "departed", "dep_delay_minutes"]
    monthly = in_months.groupby(["origin", "month"])[totals].sum().reset_index()
    cancelled = daily.assign(cancelled=daily["scheduled"] - daily["departed"])
    flown = flights.dropna(subset=["dep_time", "tailnum"]).groupby("tailnum")
    aircraft_use = flown.agg(
        flights=("flight", "size"), miles=("distance", "sum"), carriers=("carrier", "nunique")
    ).reset_index()
    named_keys = ("flight_date", "hour", "origin", "dest", "flight", "airline")
    return [
        Model("hourly_departures", ("origin", "flight_date", "hour"), hourly),
        Model("daily_departures", ("origin", "flight_date"), daily.drop(columns="miles")),
        Model("monthly_departures", ("origin", "month"), monthly),
        Model("daily_carrier_delay", ("carrier", "flight_date"), delay),
        Model("monthly_carrier_aircraft", ("carrier", "month"), aircraft, ("aircraft",)),
        Model("departures_named", named_keys, named[[*named_keys, "dep_delay"]]),
        Model("airline_fleet", ("carrier", "airline"), fleet),
        Model("weekday_departures", ("weekday",), weekdays),
        Model(
            "cancellations",
            ("origin", "flight_date"),
            cancelled[["origin", "flight_date", "scheduled", "cancelled"]],
        ),
        Model("aircraft_utilisation", ("tailnum",), aircraft_use),
    ]


def compare(connection: olapdb.Connection, schema: str, model: Model) -> list[Comparison]:
    """Compare a model's number of rows and the sum of each column with pandas.

    `equal` is about every value of the column, not only about the sum."""
    columns = list(model.expected.columns)
    sql = f"SELECT {', '.join(columns)} FROM {schema}.{model.name}"
    actual = connection.execute(sql).fetch_arrow_table().to_pandas()
    actual, expected = _sorted(actual, model), _sorted(model.expected, model)
    rows = Comparison(
        model.name,
        "rows",
        len(actual),
        len(expected),
        len(actual) == len(expected) and _same_keys(actual, expected, model),
    )
    comparisons = [rows]
    for name in columns:
        if name in model.keys:
            continue
        ours, reference = actual[name].astype(float), expected[name].astype(float)
        equal = rows.equal and _equal(ours, reference, estimate=name in model.estimates)
        comparisons.append(Comparison(model.name, name, ours.sum(), reference.sum(), equal))
    return comparisons


def _departures(flights: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    grouped = flights.groupby(keys)
    return pd.DataFrame(
        {
            "scheduled": grouped.size(),
            "departed": grouped["dep_time"].count(),
            "dep_delay_minutes": grouped["dep_delay"].sum(min_count=1),
            "miles": grouped["distance"].sum(),
        }
    ).reset_index()


def _sorted(frame: pd.DataFrame, model: Model) -> pd.DataFrame:
    """Return the rows sorted by the keys, then by the rest. Keys become text, so that dates of any
    type compare."""
    keys = {name: frame[name].map(_text) for name in model.keys}
    values = [name for name in frame.columns if name not in model.keys]
    return frame.assign(**keys).sort_values([*model.keys, *values], ignore_index=True)


def _text(value: object) -> str:
    return str(value)[:10] if hasattr(value, "year") else str(value)


def _same_keys(actual: pd.DataFrame, expected: pd.DataFrame, model: Model) -> bool:
    keys = list(model.keys)
    return bool((actual[keys].to_numpy() == expected[keys].to_numpy()).all())


def _equal(ours: pd.Series, reference: pd.Series, *, estimate: bool) -> bool:
    tolerance = UNIQ_TOLERANCE if estimate else FLOAT_TOLERANCE
    close = (ours - reference).abs() <= tolerance * reference.abs().clip(lower=1.0)
    return bool((close | (ours.isna() & reference.isna())).all())
