"""The SQL logic tests without any fast path, and with each fast path from the first rows on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

import pytest

from olapdb.config import tuning
from tests.harness.icu import packages_for
from tests.sql.configurations import Warehouse
from tests.sql.logic import read_records
from tests.sql.record import FILES
from tests.sql.test_sql import difference

pytestmark = pytest.mark.feature("select", "functions")

TABLES = {"off": tuning.OFF, "eager": tuning.EAGER}


@pytest.mark.parametrize("values", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_answers_do_not_depend_on_sizes(
    path: Path, values: Mapping[str, int], tmp_path: Path
) -> None:
    with packages_for(path), patch.multiple(tuning, **values):
        warehouse = Warehouse("files", tmp_path)
        records = [listed for listed in read_records(path) if "files" not in listed.skipped]
        differences = [text for record in records if (text := difference(record, warehouse))]
        warehouse.close()
    assert not differences, f"{len(differences)} differ:\n" + "\n\n".join(differences[:5])


def test_the_tables_name_known_values_and_change_them() -> None:
    for values in TABLES.values():
        for name, value in values.items():
            assert getattr(tuning, name) != value, name
