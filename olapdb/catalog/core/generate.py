"""Write the catalog's SQL as modules of `olapdb.catalog.sqlite.statements`.

    python -m olapdb.catalog.core.generate

Each module of this package that has statements becomes the module of the same name there, with the
text of each statement and the names of its parameters.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

from olapdb.catalog.core import (
    blocks,
    commits,
    damage,
    deliveries,
    history,
    jobs,
    leases,
    parts,
    schema,
    tables,
    views,
)
from olapdb.catalog.core.base import CoreStatement

SUBJECTS: tuple[ModuleType, ...] = (
    *(blocks, commits, damage, deliveries, history),
    *(jobs, leases, parts, schema, views),
)
_TARGET = Path(__file__).parent.parent / "sqlite" / "statements"
_NOTE = (
    "\n\nGenerated from `olapdb.catalog.core.{name}` by `python -m olapdb.catalog.core.generate`.\n"
)


def name_of(module: ModuleType) -> str:
    """Return the module's name without its package."""
    return module.__name__.rpartition(".")[2]


def statements_of(subject: ModuleType) -> Mapping[str, CoreStatement | tuple[CoreStatement, ...]]:
    """Return the public statements, and tuples of statements, of a module by name."""
    return {
        name: value
        for name, value in vars(subject).items()
        if not name.startswith("_")
        and (isinstance(value, CoreStatement) or _holds(value, CoreStatement))
    }


def names_of(subject: ModuleType) -> Mapping[str, tuple[str, ...]]:
    """Return the public tuples of names of a module."""
    named = vars(subject).items()
    return {n: value for n, value in named if not n.startswith("_") and _holds(value, str)}


def texts_of_tables() -> Mapping[str, tuple[str, ...]]:
    """Return the DDL of each table and its indexes, by the name of the table."""
    return {table.name: tuple(tables.ddl_of(table)) for table in tables.metadata.sorted_tables}


def _holds(value: object, kind: type) -> bool:
    """Return whether the value is a tuple, not empty, of objects of one kind."""
    return isinstance(value, tuple) and bool(value) and all(isinstance(v, kind) for v in value)


def _constructed(statement: CoreStatement) -> str:
    """Return the Python source that constructs the statement: CatalogStatement(text, parameter
    names)."""
    text, parameters = statement.compiled()
    lines = [repr(f"{line} ") for line in text.split("\n")[:-1]]
    lines.append(repr(text.split("\n")[-1]))
    return f"CatalogStatement({' '.join(lines)}, {parameters!r})"


def _module_of(subject: ModuleType) -> Iterator[str]:
    """Yield the lines of the generated module."""
    summary = (subject.__doc__ or "").partition("\n\n")[0].strip()
    yield f'"""{summary}{_NOTE.format(name=name_of(subject))}"""'
    yield "from olapdb.catalog.sqlite.statements.base import CatalogStatement"
    for name, names in names_of(subject).items():
        yield f"{name} = {names!r}"
    for name, value in statements_of(subject).items():
        if isinstance(value, CoreStatement):
            yield f"{name} = {_constructed(value)}"
        else:
            yield f"{name} = ({' '.join(f'{_constructed(v)},' for v in value)})"


def generate() -> None:
    """Write all modules, formatted."""
    for subject in SUBJECTS:
        (_TARGET / f"{name_of(subject)}.py").write_text("\n".join(_module_of(subject)) + "\n")
    summary = f'"""The DDL of the catalog\'s tables.{_NOTE.format(name="tables")}"""'
    (_TARGET / "ddl.py").write_text(f"{summary}\nDDL_OF_TABLE = {dict(texts_of_tables())!r}\n")
    for command in (("check", "--fix", "-q"), ("format", "-q")):
        subprocess.run([sys.executable, "-m", "ruff", *command, str(_TARGET)], check=True)


if __name__ == "__main__":
    generate()
