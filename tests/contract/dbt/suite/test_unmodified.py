"""The base classes whose set-up needs no translation, each subclassed as it is."""

from __future__ import annotations

import pytest

from tests.contract.dbt.suite.registry import base_classes

pytestmark = pytest.mark.feature("dbt")

for base in base_classes():
    if not base.translated:
        name = f"Test{base.name}"
        globals()[name] = type(name, (base.load(),), {"__module__": __name__, "__test__": True})
