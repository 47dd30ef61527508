"""Values of a seed that its column cannot hold: refused with column, row and value, and the rows of
the seed before stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

import olapdb

pytestmark = pytest.mark.feature("dbt")

GOOD = "id,n\n1,5\n3,7\n"


class TestNarrowSeeds:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"small.csv": GOOD, "whole.csv": GOOD, "days.csv": "d\n2024-01-01\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, object]:
        types = {"small": {"n": "UInt8"}, "whole": {"n": "Int32"}, "days": {"d": "Date"}}
        return {"seeds": {"test": {name: {"+column_types": of} for name, of in types.items()}}}

    def test_what_does_not_fit_is_refused(
        self, project: Any, project_root: Path, dbt_profile_target: dict[str, object]
    ) -> None:
        run_dbt(["seed"])
        write_file(GOOD + "2,300\n", project_root, "seeds", "small.csv")
        write_file(GOOD + "2,1.5\n", project_root, "seeds", "whole.csv")
        write_file("d\n2024-01-01\n1960-01-01\n", project_root, "seeds", "days.csv")
        for flags in ([], ["--full-refresh"]):
            _, log = run_dbt_and_capture(["seed", *flags], expect_pass=False)
            for name, column, says in (
                ("small", "n", "row 3: Cannot convert '300' to UInt8"),
                ("whole", "n", "row 3: Cannot parse '1.5' as Int32"),
                ("days", "d", "row 2: Cannot convert '1960-01-01' to Date"),
            ):
                table = f"{name}__dbt_tmp" if flags else name
                assert f"Column {column} of {project.test_schema}.{table}, {says}" in log
        with olapdb.connect(str(dbt_profile_target["path"])) as connection:
            for name in ("small", "whole"):
                found = connection.execute(f"SELECT n FROM {project.test_schema}.{name} ORDER BY n")
                assert found.fetchall() == [(5,), (7,)]


class TestResultOfASeed:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"small.csv": GOOD}

    def test_it_says_whether_anything_changed(self, project: Any, project_root: Path) -> None:
        def result() -> tuple[str, int]:
            response = run_dbt(["seed"])[0].adapter_response
            return response["_message"], response["rows_affected"]

        assert result() == ("INSERT 2", 2)
        assert result() == ("NO CHANGE", 0)
        write_file(GOOD + "5,9\n", project_root, "seeds", "small.csv")
        assert result() == ("INSERT 3", 3)
        write_file("id,n\n1,5\n", project_root, "seeds", "small.csv")
        assert result() == ("INSERT 1", 1)  # rows that left are a change
        assert result() == ("NO CHANGE", 0)


class TestConfiguredTypesWithNulls:
    """A configured type is Nullable if the file has an empty value, LowCardinality inside."""

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"tags.csv": "id,tag,kind,price\n1,a,x,1.5\n2,,y,\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, object]:
        types = {"tag": "LowCardinality(String)", "kind": "LowCardinality(String)"}
        return {"seeds": {"+column_types": {**types, "price": "Decimal(10, 2)"}}}

    def test_null_has_a_place(self, project: Any, dbt_profile_target: dict[str, object]) -> None:
        run_dbt(["seed"])
        assert run_dbt(["seed"])[0].adapter_response["_message"] == "NO CHANGE"
        with olapdb.connect(str(dbt_profile_target["path"])) as connection:
            table = f"{project.test_schema}.tags"
            types = connection.execute(f"SELECT * FROM {table} LIMIT 0").description
            assert [str(column[1]) for column in types or ()] == [
                "Int64",
                "LowCardinality(Nullable(String))",
                "LowCardinality(String)",
                "Nullable(Decimal(10, 2))",
            ]
            tags = connection.execute(f"SELECT tag FROM {table} ORDER BY id").fetchall()
            assert tags == [("a",), (None,)]
