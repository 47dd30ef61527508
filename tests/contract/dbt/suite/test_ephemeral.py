"""Ephemeral models: the expected statement is PostgreSQL's CREATE VIEW of a name of three levels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dbt.tests.adapter.ephemeral import test_ephemeral
from dbt.tests.adapter.ephemeral.test_ephemeral import BaseEphemeralMulti, BaseEphemeralNested

pytestmark = pytest.mark.feature("dbt")


def as_postgres(sql: str) -> str:
    """Return our CREATE VIEW as the test's dbt wrote it on PostgreSQL; nothing but the frame of the
    statement and the quoting of names changes."""
    view = re.fullmatch(r"\s*create or replace view `(\w+)`\.`(\w+)`\s+as (.*)", sql, re.DOTALL)
    assert view is not None, sql
    schema, name, query = view.groups()
    query = query.rstrip().replace(schema, "test_test_ephemeral")
    query = re.sub(r"`(test_test_ephemeral)`\.`(\w+)`", r'"dbt"."\1"."\2"', query)
    return f'create view "dbt"."test_test_ephemeral"."{name}__dbt_tmp" as ({query});'


class ReadsAsPostgres:
    """The compiled files that the test opens are read in PostgreSQL's frame."""

    @pytest.fixture(autouse=True)
    def read_as_postgres(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Opened:
            def __init__(self, path: str, mode: str) -> None:
                self._text = as_postgres(Path(path).read_text())

            def __enter__(self) -> Opened:
                return self

            def __exit__(self, *error: object) -> None:
                """Leave the block; the file is read already."""

            def read(self) -> str:
                return self._text

        monkeypatch.setattr(test_ephemeral, "open", Opened, raising=False)


class TestEphemeralMulti(ReadsAsPostgres, BaseEphemeralMulti):
    pass


class TestEphemeralNested(ReadsAsPostgres, BaseEphemeralNested):
    pass
