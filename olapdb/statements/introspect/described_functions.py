"""What DESCRIBE shows of a table function beyond the columns of its rows."""

from __future__ import annotations

from olapdb.bind.sources import looped_source
from olapdb.bind.structures import structure_defaults
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.literals import show_names

_STRUCTURES = {"values": 0, "null": 0, "generaterandom": 0, "file": 2}
"""The place of the structure among the arguments of a table function, by its name in lower case."""


def described_source(query: nodes.Query | None) -> nodes.Query | nodes.TableName | None:
    """Return what DESCRIBE is about: the table of `loop(table)`, else the query itself."""
    source = _called(query)
    while source is not None and source.name.lower() == "loop":
        looped = looped_source(source)
        if isinstance(looped, nodes.TableReference):
            return looped.table
        source = looped if isinstance(looped, nodes.TableFunction) else None
        query = nodes.Select((nodes.Star(),), source=looped, position=looped.position)
    return query


def function_defaults(query: nodes.Query) -> dict[str, tuple[str, str]]:
    """Return the kind and the text of each DEFAULT in the structure of a table function."""
    source = _called(query)
    structure = None if source is None else _structure(source)
    if structure is None:
        return {}
    return {
        name: ("DEFAULT", show_names(to_sql(default)))
        for name, default in structure_defaults(structure).items()
    }


def _called(query: nodes.Query | None) -> nodes.TableFunction | None:
    """Return f(…) of `SELECT * FROM f(…)`, as DESCRIBE f(…) is read; None for another query."""
    match query:
        case nodes.Select(
            columns=(nodes.Star(),), source=nodes.TableFunction() as source, where=None
        ):
            return source
        case _:
            return None


def _structure(source: nodes.TableFunction) -> str | None:
    """Return the structure among the arguments, None where there is none that is written as a text."""
    name, arguments = source.name.lower(), source.arguments
    place = _STRUCTURES.get(name)
    if name == "format" and len(arguments) > 2:
        place = 1
    if place is None or place >= len(arguments):
        return None
    if name == "values" and len(arguments) == 1:
        return None
    argument = arguments[place]
    return (
        argument.value
        if isinstance(argument, nodes.Literal) and isinstance(argument.value, str)
        else None
    )
