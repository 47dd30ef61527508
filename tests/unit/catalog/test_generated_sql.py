"""The texts that run are those that SQLAlchemy Core makes of the definitions."""

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

from olapdb.catalog.core import generate
from olapdb.catalog.core.base import CoreStatement
from olapdb.catalog.sqlite import statements
from olapdb.catalog.sqlite.statements.base import CatalogStatement
from olapdb.catalog.sqlite.statements.ddl import DDL_OF_TABLE
from olapdb.catalog.sqlite.tables import TABLES_OF_FORMAT_2

pytestmark = pytest.mark.feature("house")

REMEDY = "Run python -m olapdb.catalog.core.generate."


def definitions(subject: ModuleType) -> dict[str, object]:
    """Return what the generated module must hold, texts without their line breaks."""

    def described(statement: CoreStatement) -> tuple[str, tuple[str, ...]]:
        text, names = statement.compiled()
        return text.replace("\n", " "), names

    statements = {
        name: described(value)
        if isinstance(value, CoreStatement)
        else tuple(described(v) for v in value)
        for name, value in generate.statements_of(subject).items()
    }
    return {**statements, **generate.names_of(subject)}


def written(module: ModuleType) -> dict[str, object]:
    """Return what the generated module holds."""

    def described(value: object) -> object:
        if isinstance(value, CatalogStatement):
            return value.text, value.names
        return tuple(described(v) for v in value) if isinstance(value, tuple) else value

    return {
        name: described(value)
        for name, value in vars(module).items()
        if isinstance(value, CatalogStatement | tuple) and not name.startswith("__")
    }


@pytest.mark.parametrize("subject", generate.SUBJECTS, ids=generate.name_of)
def test_statements_are_those_of_core(subject: ModuleType) -> None:
    module = importlib.import_module(
        f"olapdb.catalog.sqlite.statements.{generate.name_of(subject)}"
    )
    assert written(module) == definitions(subject), REMEDY


def test_tables_are_those_of_core() -> None:
    assert generate.texts_of_tables() == DDL_OF_TABLE, REMEDY
    assert set(TABLES_OF_FORMAT_2) <= set(DDL_OF_TABLE)


def test_all_subjects_are_generated() -> None:
    package = inspect.getfile(generate).rpartition("/")[0]
    names = {info.name for info in pkgutil.iter_modules([package])}
    assert names - {"base", "generate", "tables"} == set(map(generate.name_of, generate.SUBJECTS))
    for subject in generate.SUBJECTS:
        for name in generate.statements_of(subject):
            assert hasattr(statements, name)
