"""Writes ClickHouse's answers into the `*.slt` files:

    python -m tests.sql.record [FILE ...]

A record without an answer gets one; a changed answer is replaced, so look at the difference.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

from tests.harness.oracle import Oracle, OracleError
from tests.sql.logic import Record, answer_lines, read_records, sorted_rows

FILES = sorted(Path(__file__).parent.glob("*.slt"))
_PARENTHESES = re.compile(r"\([^()]*\)")


class Asked:
    """A ClickHouse in a database of its own. The end of the `with` drops it, temporary tables and functions too, and
    takes back settings: they would be those of the next file, as one process answers for all."""

    def __init__(self, oracle: Oracle, name: str) -> None:
        self._oracle = oracle
        self._name = f"slt_{name}"

    def __enter__(self) -> Oracle:
        self._oracle.execute(f"CREATE DATABASE {self._name} ENGINE = Atomic")
        self._oracle.execute(f"USE {self._name}")
        self._changed = self._changed_settings()
        return self._oracle

    def __exit__(self, *_: object) -> None:
        self._oracle.execute("USE t")
        self._oracle.execute(f"DROP DATABASE {self._name} SYNC")
        left = self._oracle.query(
            "SELECT 'TEMPORARY TABLE', name FROM system.tables WHERE is_temporary"
            " UNION ALL SELECT 'FUNCTION', name FROM system.functions WHERE origin != 'System'"
        )
        for kind, name in left.rows:
            self._oracle.execute(f"DROP {kind} `{name}`")
        for name in self._changed_settings() - self._changed:
            self._oracle.execute(f"SET {name} = DEFAULT")

    def _changed_settings(self) -> set[str | None]:
        """Return the names of the session's settings that have other values than ClickHouse's."""
        return {
            name
            for (name,) in self._oracle.query("SELECT name FROM system.settings WHERE changed").rows
        }


def answered(record: Record, oracle: Oracle) -> Record:
    """Run the record on ClickHouse and return it with ClickHouse's answer."""
    if record.kind == "statement":
        oracle.execute(record.sql)
        return record
    try:
        result = oracle.query(record.sql)
    except OracleError as error:
        return replace(record, kind="error", expected=(error.name,), rowsort=False)
    lines = answer_lines(result.names, result.types, result.rows)
    rowsort = record.rowsort or (len(lines) > 3 and _order_is_open(record.sql))
    return replace(
        record, kind="query", expected=sorted_rows(lines) if rowsort else lines, rowsort=rowsort
    )


def _order_is_open(sql: str) -> bool:
    """Tell whether ClickHouse may give the rows in any order: nothing orders them, or a UNION, whose
    sides run at once and whose ORDER BY belongs to its last SELECT alone."""
    sql = outside = sql.upper()
    while (shorter := _PARENTHESES.sub("", outside)) != outside:
        outside = shorter
    return "ORDER BY" not in sql or ("UNION" in outside and "|>" not in outside)


def main(paths: list[Path]) -> None:
    with Oracle() as oracle:
        for path in paths:
            with Asked(oracle, path.stem):
                records = [answered(record, oracle) for record in read_records(path)]
            path.write_text("".join(record.text() for record in records).rstrip("\n") + "\n")
            print(f"{path.name}: {len(records)} records")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]] or FILES)
