"""Hooks of `incremental_mv`: which table name of a statement becomes the target."""

from __future__ import annotations

import pytest
from dbt.adapters.olapdb.incremental_mv.hook_writes import writes_to_target
from dbt.adapters.olapdb.incremental_mv.names import ModelNames

pytestmark = pytest.mark.feature("dbt")

NAMES = ModelNames("an", "m")
THIS, TARGET = "`an`.`m`", "`an`.`m__target`"


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO {} (k) VALUES (1)",
        "INSERT INTO {} (k) SELECT max(k) FROM `an`.`m` WHERE k IN (SELECT k FROM `an`.`m`)",
        "DELETE FROM {} WHERE k = '`an`.`m`'",
        "UPDATE {} SET k = 1 WHERE k = 2",
        "OPTIMIZE TABLE {} FINAL",
        "TRUNCATE TABLE {}",
        "ALTER TABLE {} DROP PARTITION '1' SETTINGS retain = 1",
        "ALTER TABLE {} DELETE WHERE k IN (SELECT k FROM `an`.`m`)",
        "INSERT INTO log SELECT count() FROM `an`.`m`; INSERT INTO {} VALUES (1); OPTIMIZE TABLE {}",
    ],
)
def test_the_written_table_alone_becomes_the_target(sql: str) -> None:
    assert writes_to_target(sql.replace("{}", THIS), NAMES) == sql.replace("{}", TARGET)


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "SELECT count() FROM `an`.`m`",
        "INSERT INTO log SELECT count() FROM `an`.`m`",
        "INSERT INTO `an`.`m2` VALUES (1)",
        "ALTER TABLE `an`.`m` MODIFY COMMENT 'x'",
        "INSERT INTO `an`.`m` SELEKT",
        "DROP VIEW `an`.`m`",
    ],
)
def test_everything_else_stays(sql: str) -> None:
    assert writes_to_target(sql, NAMES) == sql


def test_a_model_that_shares_a_target_writes_into_that_one() -> None:
    names = ModelNames("an", "m", shares="owner")
    assert writes_to_target(f"INSERT INTO {THIS} VALUES (1)", names) == (
        "INSERT INTO `an`.`owner__target` VALUES (1)"
    )
