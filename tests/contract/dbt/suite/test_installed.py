"""The suite tests what users install: the wheel, not the sources of this folder."""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

import dbt.adapters.olapdb
import dbt.include.olapdb
import pytest

import olapdb
from tests.harness.wheel import FOLDER

pytestmark = pytest.mark.feature("dbt")


def test_adapter_and_engine_come_from_the_wheel(pytestconfig: pytest.Config) -> None:
    installed = pytestconfig.stash.get(FOLDER, None)
    assert installed is not None, "The suite tests the wheel: run it with -p tests.harness.wheel."
    for package in (olapdb, dbt.adapters.olapdb, dbt.include.olapdb):
        assert package.__file__ is not None
        assert installed in Path(package.__file__).parents
    assert Path(str(distribution("olapdb").locate_file(""))) == installed
