"""Answers of olapdb and of the oracle in one form, so that they compare with ==."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import olapdb
from olapdb.functions import display
from tests.harness.oracle import Oracle, OracleError

Answer: TypeAlias = tuple[object, ...]
"""(names, types, rows of text) of a result, or ("error", its ClickHouse name)."""


def answer_of(connection: olapdb.Connection, statement: str) -> Answer:
    """Run a statement on olapdb; values as ClickHouse prints them, NULL at top level as None."""
    try:
        result = connection.session.execute(statement)
        table = result.read_all()
    except olapdb.Error as error:
        return "error", error.name
    columns = []
    for chunked, data_type in zip(table.columns, result.types, strict=True):
        column = chunked.combine_chunks()
        shown = zip(display(column, data_type), column.is_valid().to_pylist(), strict=True)
        columns.append([text if valid else None for text, valid in shown])
    rows = list(zip(*columns, strict=True))
    return result.names, tuple(str(t) for t in result.types), rows


def oracle_answer(oracle: Oracle, statement: str) -> Answer:
    """Run the same statement on ClickHouse."""
    try:
        result = oracle.query(statement)
    except OracleError as error:
        return "error", error.name
    return result.names, result.types, result.rows


def statements_of(path: Path) -> tuple[str, ...]:
    """Read the statements of a file, each of which ends with `;` at the end of a line."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("--")]
    return tuple(s.strip() for s in "\n".join(lines).split(";\n") if s.strip())
