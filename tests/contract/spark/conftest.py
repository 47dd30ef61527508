"""One Spark session for the folder, made by the factory that is under test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from olapdb.spark import spark_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = spark_session("olapdb tests", "local[2]", memory="1g")
    yield session
    stop_session(session)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """pytest resets the filter that the session factory set, and pyspark warns at every call."""
    ignored = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(ignored)
