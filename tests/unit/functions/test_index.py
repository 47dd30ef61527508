"""The index of functions names every function, and names load only the modules that they need."""

import subprocess
import sys

import pytest

from olapdb.functions import generate_index, registry
from olapdb.functions.aggregates import (
    contingency,
    counted_quantiles,
    factories,
    families,
    matrices,
    regression,
)
from olapdb.functions.aggregates.deferred import DeferredFactory
from olapdb.functions.arrays.lambda_functions import LAMBDA_DEFINITIONS
from olapdb.functions.index import CASE_INSENSITIVE, LAMBDAS, NAMES
from olapdb.functions.modules import all_modules

pytestmark = pytest.mark.feature("functions")

REMEDY = "Run python -m olapdb.functions.generate_index."


def test_index_is_complete() -> None:
    found = generate_index.places()
    exact = {name: module for module, names in NAMES.items() for name in names.split()}
    caseless = {
        f"\0{name}": module for module, names in CASE_INSENSITIVE.items() for name in names.split()
    }
    assert {**exact, **caseless} == found, REMEDY
    assert set(LAMBDA_DEFINITIONS) == LAMBDAS, REMEDY


def test_every_name_finds_the_same_definition_by_the_index_and_without_it() -> None:
    for definition in registry.definitions():
        found = registry.find(definition.name)
        assert found is not None
        assert (found.name, found.aliases) == (definition.name, definition.aliases)
    for name in LAMBDAS:
        assert registry.find_lambda(name) is LAMBDA_DEFINITIONS[name]


def test_a_name_that_the_index_lacks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    module = next(module for module, names in NAMES.items() if "geohashEncode" in names)
    monkeypatch.delitem(NAMES, module)
    registry._place.cache_clear()
    try:
        found = registry.find("geohashEncode")
        assert found is not None
        assert found.name == "geohashEncode"
    finally:
        monkeypatch.undo()
        registry._place.cache_clear()


def test_modules_with_definitions_are_all_listed() -> None:
    listed = set(all_modules())
    assert len(listed) == len(list(all_modules()))
    for package in ("numeric", "introspection", "casts", "datetime", "strings", "arrays", "json"):
        for path in (generate_index._TARGET.parent / package).glob("*.py"):
            if "\nDEFINITIONS" in path.read_text():
                assert f"{package}.{path.stem}" in listed


def test_factories_of_aggregates_are_there() -> None:
    for name, factory in factories.FACTORIES.items():
        assert isinstance(factory, DeferredFactory), name
        assert callable(factory.function), name
    assert factories.REGRESSIONS == regression.REGRESSIONS
    assert families.DEPENDENCES == contingency.DEPENDENCES
    assert families.MATRICES == matrices.MATRICES
    assert tuple(counted_quantiles.KINDS) == families.QUANTILE_KINDS


def test_a_name_loads_only_its_module() -> None:
    script = """
import sys
from olapdb.functions import is_aggregate, is_scalar, registry
assert is_scalar("plus") and is_scalar("COALESCE")
assert is_aggregate("sumIf") and not is_scalar("sumIf") and not is_scalar("uniq")
def loaded():
    return {m.partition("functions.")[2] for m in sys.modules if m.startswith("olapdb.functions.")}
assert "numeric.arithmetic" not in loaded()
assert registry.find("plus") is not None
families = loaded()
assert "numeric.arithmetic" in families
assert families.isdisjoint({"strings.urls", "json.extract", "aggregates.regression"}), families
"""
    subprocess.run([sys.executable, "-c", script], check=True)
