"""Calls that an expression of a table's definition cannot have: what it reads is not of its row.

A table computes its keys, defaults and conditions wherever rows are written or read: in an INSERT,
a merge, a trigger, a recomputation. These have no session whose settings they could ask.
"""

from __future__ import annotations

from olapdb.errors import NotSupportedError
from olapdb.sql import nodes
from olapdb.sql.dictionary_functions import refuse_dictionaries
from olapdb.sql.trees import walk

SETTING_FUNCTIONS = ("getSetting", "getSettingOrDefault")


def refuse_outside_values(expression: nodes.Node, what: str) -> None:
    """Raise NotSupportedError if the expression calls a dictionary function, or reads a setting of the
    session; `what` is the clause that it stands in."""
    refuse_dictionaries(expression, what)
    call = setting_call(expression)
    if call is not None:
        raise NotSupportedError(
            f"{call.name} in {what} is not supported: each session may set another value.",
            hint="Write the value of the setting, or call it in the query that reads or inserts the"
            " rows. A column that has it already: ALTER TABLE … MODIFY COLUMN … DEFAULT <value>.",
            position=call.position,
        )


def setting_call(expression: nodes.Node) -> nodes.Function | None:
    """Return the first call in the expression that reads a setting of the session, None without one."""
    return next(
        (
            node
            for node in walk(expression)
            if isinstance(node, nodes.Function) and node.name in SETTING_FUNCTIONS
        ),
        None,
    )
