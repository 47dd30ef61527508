"""Views that are called with values: `CREATE VIEW v AS … {p:UInt32} …`, then `FROM v(p = 5)`."""

from __future__ import annotations

from olapdb.sql import nodes
from olapdb.sql.trees import walk
from olapdb.types import DataType


def parameters_of(query: nodes.Node) -> dict[str, DataType]:
    """Return the types of the `{name:Type}` of a query by name, in the order of the text."""
    mentioned = (n for n in walk(query) if isinstance(n, nodes.Parameter))
    parameters: dict[str, DataType] = {}
    for parameter in mentioned:
        if parameter.name is not None and parameter.type is not None:
            parameters.setdefault(parameter.name, parameter.type)
    return parameters


def called_name(node: nodes.TableFunction) -> nodes.TableName | None:
    """Return the view that a call in FROM names with its database, as stored queries do.

    None for a call without a database, which may be a table function."""
    database, _, name = node.name.rpartition(".")
    return nodes.TableName(name, database, position=node.position) if database else None
