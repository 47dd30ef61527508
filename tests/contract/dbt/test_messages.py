"""What dbt shows of a mistake: the line of the statement, the name that was meant, the model it is about."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.olapdb.credentials import OlapdbCredentials
from dbt.adapters.olapdb.error_text import with_line
from dbt.tests.util import run_dbt_and_capture
from dbt_common.exceptions import DbtRuntimeError

import olapdb
from olapdb.errors import Position, SyntaxError

pytestmark = pytest.mark.feature("dbt")

WRONG = {
    "column.sql": "select\n  1 as delay,\n  dealy\nfrom (select 1 as delay)",
    "long_line.sql": "select " + "1, " * 100 + "wrong_name as n",
    "known_key.sql": "{{ config(materialized='incremental', uniqe_key='id') }} select 1 as id",
    "strategy.sql": "{{ config(materialized='incremental', incremental_strategy='merg', unique_key='id') }} "
    "select 1 as id",
    "versions.sql": "{{ config(materialized='snapshot') }} select 1 as id",
    "missing_key.sql": "{{ config(materialized='incremental', unique_key='idd') }} select 1 as id",
    "unused_key.sql": "{{ config(materialized='incremental', incremental_strategy='insert_overwrite', "
    "unique_key='id') }} select 1 as id",
}


class TestMistakesOfModels:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return WRONG

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {
            "named.csv": "id,since\n1,2024-01-01\n",
            "named.yml": "seeds: [{name: named, config: {column_types: {sinc: Date32}}}]",
        }

    def test_a_type_for_a_column_that_the_file_lacks_is_warned_of(self, project: Any) -> None:
        _, log = run_dbt_and_capture(["seed"])
        assert re.search(r"column_types of \S+named\S* names sinc\. Maybe you meant since\.", log)

    @pytest.fixture(scope="class")
    def run(self, project: Any) -> tuple[dict[str, str], str]:
        """Return the message of each model, and the log of the run."""
        results, log = run_dbt_and_capture(["run"], expect_pass=False)
        return {result.node.name: str(result.message) for result in results}, log

    def test_an_error_is_shown_with_its_line(self, run: Any, project: Any) -> None:
        message = run[0]["column"]
        (shown,) = re.findall(r"\(at line (\d+), column 3\)", message)
        assert re.search(
            rf"line {shown} \|   dealy\n {{{len(f'line {shown} | ') + 2},}}\^", message
        )
        written = Path(project.project_root, "target/run/test/models/column.sql").read_text()
        assert written.splitlines()[int(shown) - 1].strip() == "dealy"
        assert message.count("UNKNOWN_IDENTIFIER") == 1

    def test_a_long_line_is_cut_around_the_place(self, run: Any) -> None:
        lines = run[0]["long_line"].splitlines()
        (at,) = [number for number, line in enumerate(lines) if "wrong_name as n" in line]
        assert lines[at][lines[at + 1].index("^") :].startswith("wrong_name")
        assert max(map(len, lines[at:])) < 150

    def test_a_wrong_name_gets_the_one_that_was_meant(self, run: Any) -> None:
        messages = run[0]
        assert (
            "uniqe_key means nothing to an incremental. Maybe you meant unique_key."
            in (messages["known_key"])
        )
        assert (
            "There is no incremental_strategy 'merg'. Maybe you meant merge."
            in (messages["strategy"])
        )
        assert "materialized='snapshot' is of snapshots, not of models" in messages["versions"]

    def test_a_warning_names_its_model(self, run: Any) -> None:
        _, log = run
        assert re.search(r"The next run of \S+missing_key\S* will fail: unique_key 'idd'", log)
        assert re.search(
            r"unused_key\S* has a unique_key, which incremental_strategy='insert_overw", log
        )


def test_a_statement_is_counted_without_the_comment_above() -> None:
    error = SyntaxError("Wrong.", position=Position(3, 2, 9))
    text = with_line(error, "/* dbt */\na\n\tb", lines_above=1)
    assert text.splitlines() == [
        "Code: 62. Wrong. (at line 2, column 2) (SYNTAX_ERROR)",
        "line 2 |  b",
        "          ^",
    ]
    elsewhere = SyntaxError("Wrong.", position=Position(9, 2, 90))
    assert with_line(elsewhere, "a") == str(elsewhere)


@pytest.mark.parametrize("end", ["\x0c", "\u2028", "\x85", "\r"])
def test_other_ends_of_lines_are_blanks(end: str) -> None:
    with olapdb.connect() as connection, pytest.raises(olapdb.Error) as caught:
        connection.execute(f"SELECT 1,{end}\n  foo")
    assert with_line(caught.value, f"SELECT 1,{end}\n  foo").endswith(
        "\nline 2 |   foo\n           ^"
    )


def test_a_profile_for_a_server_is_told_what_a_warehouse_is() -> None:
    with pytest.raises(DbtRuntimeError) as raised:
        OlapdbCredentials.validate({"pth": "w", "thread": 4, "host": "h", "schema": "s"})
    text = str(raised.value)
    assert "pth means nothing to olapdb. Maybe you meant path." in text
    assert "thread means nothing to olapdb. Maybe you meant threads." in text
    assert "host means nothing to olapdb: a warehouse is a folder, with no server" in text
    assert text.count("The keys are schema, path") == 1
