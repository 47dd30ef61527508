"""Runs the SQL logic tests under five configurations (test_tuning.py runs the sixth) and on ClickHouse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import olapdb
from olapdb.functions import display
from olapdb.types import DataType
from tests.harness.icu import packages_for
from tests.harness.oracle import Oracle
from tests.sql.configurations import KERNELS_OFF, Warehouse, configurations_of
from tests.sql.logic import Record, answer_lines, read_records, sorted_rows
from tests.sql.record import FILES, Asked, answered

pytestmark = pytest.mark.feature("select")


def answer(connection: olapdb.Connection, sql: str) -> tuple[str, ...]:
    """Run a query and return its answer as the lines of a record, or its error's name alone."""
    try:
        result = connection.session.execute(sql)
        table = result.read_all()
    except olapdb.Error as error:
        return (error.name,)
    zone = result.zone or "UTC"
    rows = _texts(table, result.types, zone)
    if result.totals is not None:  # behind an empty line, as in TabSeparated
        totals = pa.Table.from_batches([result.totals])
        rows += [("",), *_texts(totals, result.types, zone)]
    types = tuple(str(data_type) for data_type in result.types)
    return answer_lines(result.names, types, rows)


def _texts(table: pa.Table, types: Sequence[DataType], zone: str) -> list[tuple[str | None, ...]]:
    """Return the rows as texts in the zone, NULL as None."""
    columns = []
    for chunked, data_type in zip(table.columns, types, strict=True):
        column = chunked.combine_chunks()
        texts = zip(display(column, data_type, zone), column.is_valid().to_pylist(), strict=True)
        columns.append([text if valid else None for text, valid in texts])
    return list(zip(*columns, strict=True))


def difference(record: Record, warehouse: Warehouse) -> str:
    """Run a record and return how its answer differs from the expected one, "" if it does not."""
    sql = warehouse.prepared(record.sql)
    if record.kind == "statement":
        warehouse.connection.execute(sql)
        return ""
    lines = answer(warehouse.connection, sql)
    lines = sorted_rows(lines) if record.rowsort else lines
    if lines == record.expected:
        return ""
    return "\n".join([f"line {record.line}: {sql}", "expected", *record.expected, "got", *lines])


@pytest.mark.parametrize(
    ("path", "configuration"),
    [
        pytest.param(path, configuration, id=f"{path.stem}-{configuration}")
        for path in FILES
        for configuration in configurations_of(read_records(path))
    ],
)
def test_answers(path: Path, configuration: str, tmp_path: Path) -> None:
    with packages_for(path):
        _check_answers(path, configuration, tmp_path)


def _check_answers(path: Path, configuration: str, tmp_path: Path) -> None:
    """Run the records of a file under a configuration; assert that all answers are those that it has."""
    warehouse = Warehouse(configuration, tmp_path)
    differences = []
    for record in read_records(path):
        if configuration in record.skipped:
            continue
        if found := difference(record, warehouse):
            differences.append(found)
        if record.kind == "statement":
            warehouse.after_statement()
    warehouse.close()
    assert not differences, f"{len(differences)} differ:\n" + "\n\n".join(differences[:5])


@pytest.mark.skipif(KERNELS_OFF, reason="ClickHouse has no use of the kernels")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_answers_are_those_of_clickhouse(path: Path, oracle: Oracle) -> None:
    with Asked(oracle, path.stem):
        for record in read_records(path):
            theirs = answered(record, oracle)
            assert (theirs.kind, theirs.expected) == (record.kind, record.expected), record.sql
