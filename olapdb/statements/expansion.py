"""The first step of every statement: calls of functions that users made are written out."""

from __future__ import annotations

from typing import TypeVar

from olapdb.bind.syntax import walk
from olapdb.bind.user_functions import calls_of_users, expand, is_storage_call
from olapdb.errors import NotSupportedError
from olapdb.sql import nodes
from olapdb.statements.context import StatementContext

StatementT = TypeVar("StatementT", bound=nodes.Statement)

_KNOWN_MAX = 512
_KNOWN_TEXT_MAX = 16_384
"""Characters of a text that is worth keeping; a longer one holds values and does not come again."""

_known: dict[int, tuple[nodes.Statement, bool]] = {}
"""Whether a statement has calls that the engine does not answer itself, by the statement's identity:
parsed texts are cached, so a statement comes again as the same object. An entry keeps its statement,
so that no other gets its identity."""


def with_functions(statement: StatementT, context: StatementContext) -> StatementT:
    """Return the statement with the calls of users' functions written out, as of the newest commit.

    Python functions cannot be written out: their calls stay in queries and in plain views. Raises
    NotSupportedError for one in another definition or in a mutation, which other processes compute."""
    if not _may_call(statement, context.text) or isinstance(statement, nodes.CreateFunction):
        return statement
    functions = context.functions()
    expanded = expand(statement, functions)
    _refuse_local(expanded, context)
    for call in _calls_outside_queries(expanded):
        function = functions.get((call.database or "", call.name))
        if function is not None and function.language == "python":
            raise NotSupportedError(
                f"The Python function {function.full_name} cannot be used here: what a statement "
                "stores or mutates is computed by any process that opens the warehouse.",
                hint="Use it in a SELECT, a plain view, or INSERT … SELECT; or write it in SQL.",
                position=call.position,
            )
    return expanded


def _refuse_local(statement: nodes.Statement, context: StatementContext) -> None:
    """Raise NotSupportedError for a plain view that calls a function of the connection alone."""
    if not context.local_functions or not isinstance(statement, nodes.CreateView):
        return
    for node in walk(statement):
        if isinstance(node, nodes.Function) and (
            (node.database or "", node.name) in context.local_functions
        ):
            raise NotSupportedError(
                f"The function {node.name} belongs to this connection, the view to all.",
                hint="CREATE FUNCTION … LANGUAGE python stores a function.",
                position=node.position,
            )


def _may_call(statement: nodes.Statement, text: str) -> bool:
    """Return whether the statement has calls that the engine does not answer itself."""
    entry = _known.get(id(statement))
    if entry is not None and entry[0] is statement:
        return entry[1]
    answer = calls_of_users(statement)
    if len(text) > _KNOWN_TEXT_MAX:
        return answer
    if len(_known) >= _KNOWN_MAX:
        _known.clear()
    _known[id(statement)] = (statement, answer)
    return answer


def _calls_outside_queries(statement: nodes.Node) -> list[nodes.Function]:
    """Return the calls that are not in a query which runs once, or is the text of a plain view."""
    match statement:
        case nodes.Query() | nodes.CreateView() | nodes.Insert() | nodes.OutFile():
            return []
        case nodes.Explain():
            return _calls_outside_queries(statement.statement)
        case nodes.CreateTable():
            below = walk(statement, lambda node: not isinstance(node, nodes.Query))
        case _:
            below = walk(statement)
    return [n for n in below if isinstance(n, nodes.Function) and not is_storage_call(n, statement)]
