"""The functions that read a dictionary, and the name of the dictionary in a call."""

from __future__ import annotations

from olapdb import types
from olapdb.errors import NotSupportedError
from olapdb.sql import nodes
from olapdb.sql.trees import walk

TYPED: dict[str, types.DataType] = {
    data_type.name: data_type
    for data_type in (
        *(types.Integer(bits, signed) for bits in (8, 16, 32, 64) for signed in (False, True)),
        types.Float(32),
        types.Float(64),
        types.DATE,
        types.DATETIME,
        types.UUID_TYPE,
        types.IPV4,
        types.IPV6,
        types.STRING,
    )
}
"""The types that stand in names such as dictGetUInt64."""

DICTIONARY_FUNCTIONS = frozenset(
    (
        "dictGet",
        "dictGetOrDefault",
        "dictGetOrNull",
        "dictGetAll",
        "dictHas",
        "dictGetHierarchy",
        "dictIsIn",
        "dictGetChildren",
        "dictGetDescendants",
        "dictGetRoot",
        "dictGetKeys",
        "joinGet",
        "joinGetOrNull",
        *(f"dictGet{name}{suffix}" for name in TYPED for suffix in ("", "OrDefault")),
    )
)


def dictionary_name(node: nodes.Function) -> nodes.TableName | None:
    """Return the dictionary that the first argument of a call names: 'd', 'database.d', d.

    None if the call is of another function, or the argument is another expression."""
    if node.name not in DICTIONARY_FUNCTIONS or not node.arguments:
        return None
    return _name_of(node.arguments[0])


def _name_of(first: nodes.Expression) -> nodes.TableName | None:
    """Return the name that an argument is, with or without quotes; None for other expressions."""
    if isinstance(first, nodes.Literal) and isinstance(first.value, str):
        database, _, name = first.value.rpartition(".")
        return nodes.TableName(name, database or None, position=first.position)
    if isinstance(first, nodes.Identifier) and len(first.parts) <= 2:
        database = first.parts[0] if len(first.parts) == 2 else ""
        return nodes.TableName(first.parts[-1], database or None, position=first.position)
    return None


def with_dictionary(node: nodes.Function, database: str, name: str) -> nodes.Function:
    """Return the call with another name of its dictionary, as a text."""
    first = nodes.Literal(f"{database}.{name}", position=node.arguments[0].position)
    return nodes.Function(
        node.name, (first, *node.arguments[1:]), database=node.database, position=node.position
    )


def dictionary_table(node: nodes.TableFunction) -> nodes.TableReference | None:
    """Return `dictionary('d')` in FROM as a reference to the dictionary by its name.

    None for another table function, and other arguments."""
    if node.name.lower() != "dictionary" or len(node.arguments) != 1:
        return None
    name = _name_of(node.arguments[0])
    if name is None:
        return None
    return nodes.TableReference(name, alias=node.alias, position=node.position)


def refuse_dictionaries(expression: nodes.Node, what: str) -> None:
    """Raise NotSupportedError if the expression calls a dictionary function; `what` is the clause,
    which is computed where no dictionary is read."""
    for node in walk(expression):
        if isinstance(node, nodes.Function) and node.name in DICTIONARY_FUNCTIONS:
            raise NotSupportedError(
                f"{node.name} in {what} is not supported.",
                hint="Call it in the query that reads or inserts the rows.",
                position=node.position,
            )
