"""Wrong statements of all kinds raise ClickHouse's error, by name and code."""

from __future__ import annotations

from pathlib import Path

import pytest

import olapdb
from olapdb.errors import Error
from tests.harness.oracle import Oracle, OracleError

pytestmark = pytest.mark.feature("sql")

TEXT = Path(__file__).with_name("wrong_statements.sql").read_text(encoding="utf-8")


def sections() -> dict[str, list[str]]:
    """Return the lines of the file by the title above them."""
    found: dict[str, list[str]] = {}
    for line in TEXT.splitlines()[1:]:
        if line.startswith("-- "):
            found[line[3:]] = []
        elif line:
            found[next(reversed(found))].append(line)
    return found


@pytest.mark.parametrize("title", list(sections()))
def test_the_error_is_clickhouses(title: str, oracle: Oracle) -> None:
    oracle.execute("DROP DATABASE IF EXISTS wrong")
    oracle.execute("CREATE DATABASE wrong")
    oracle.execute("USE wrong")
    different = []
    try:
        with olapdb.connect() as connection:
            connection.execute("CREATE DATABASE wrong")
            connection.execute("USE wrong")
            for line in sections()[title]:
                if line.startswith("!"):
                    connection.execute(line[1:])
                    oracle.execute(line[1:])
                    continue
                expected = "none"
                try:
                    oracle.query(line)
                except OracleError as error:
                    expected = f"{error.code} {error.name}"
                try:
                    cursor = connection.execute(line)
                    found = "none"
                    if cursor.description:
                        cursor.fetchall()
                except Error as error:
                    found = f"{error.code} {error.name}"
                if found != expected or found == "none":
                    different.append(f"{line}\n  olapdb     {found}\n  ClickHouse {expected}")
    finally:
        oracle.execute("USE t")
        oracle.execute("DROP DATABASE wrong")
    assert not different, "\n".join(different)
