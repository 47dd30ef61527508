"""Seeds: PostgreSQL's types in the table of expected rows and in the types of columns."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, ClassVar

import dbt.tests.adapter.simple_seed
import pytest
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
    BaseSeedConfigFullRefreshOff,
    BaseSeedConfigFullRefreshOn,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedSpecificFormats,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedWithBOM,
)
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride

from tests.contract.dbt.suite.translation import Rules

pytestmark = pytest.mark.feature("dbt")

SEED_SQL: Rules = (
    (r"seed_id INTEGER", "seed_id Int64"),
    (r"first_name TEXT", "first_name Nullable(String)"),
    (r"TIMESTAMP WITHOUT TIME ZONE", "DateTime"),
    (r"\bTEXT\b", "String"),
)


class Translated:
    rules: ClassVar[Rules] = SEED_SQL


class ViewsStay(Translated):
    """A full refresh replaces the seed's table; PostgreSQL drops the views over it with the old one,
    here they go on and show the new rows."""

    def _check_relation_end_state(self, run_result: Any, project: Any, exists: bool) -> None:
        super()._check_relation_end_state(run_result, project, exists=True)  # type: ignore[misc]


class TestBasicSeeds(ViewsStay, BaseBasicSeedTests):
    pass


class TestFullRefreshOn(ViewsStay, BaseSeedConfigFullRefreshOn):
    pass


class TestFullRefreshOff(Translated, BaseSeedConfigFullRefreshOff):
    pass


class TestCustomSchema(Translated, BaseSeedCustomSchema):
    pass


class TestUniqueDelimiter(Translated, BaseSeedWithUniqueDelimiter):
    pass


class TestWrongDelimiter(Translated, BaseSeedWithWrongDelimiter):
    pass


class TestEmptyDelimiter(Translated, BaseSeedWithEmptyDelimiter):
    pass


class TestParsing(Translated, BaseSeedParsing):
    pass


class TestWithBOM(Translated, BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:
        """Take the file from dbt-tests-adapter; the test looks for it beside itself."""
        project.run_sql(dbt.tests.adapter.simple_seed.seeds.seeds__expected_sql)
        file = Path(dbt.tests.adapter.simple_seed.__path__[0]) / "seed_bom.csv"
        shutil.copy(file, Path(project.project_root) / "seeds")


class TestSpecificFormats(BaseSeedSpecificFormats):
    """`test_data_dir` exists already in the test's eyes: it makes the folder and removes it."""

    @pytest.fixture(scope="class")
    def test_data_dir(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("data") / "made by the test"


class TestColumnOverride(BaseSimpleSeedColumnOverride):
    rules: ClassVar[Rules] = (
        (r"type: integer", "type: Int64"),
        (r"type: boolean", "type: Bool"),
        (r"type: timestamp without time zone", "type: DateTime"),
        (r"type: text", "type: String"),
        (r"type: date\b", "type: Date"),
    )

    @staticmethod
    def seed_enabled_types() -> dict[str, str]:
        return {"seed_id": "String", "birthday": "Date"}

    @staticmethod
    def seed_tricky_types() -> dict[str, str]:
        return {
            "seed_id_str": "String",
            "looks_like_a_bool": "String",
            "looks_like_a_date": "String",
        }
