"""What makes a view provable: every part of its definition is known to be right.

    judge(Parts(...)) -> Judgement     each part of the definition: provable or not, and why
    check_definition(Parts(...))       the reason why a view is unproven; raises where it is refused

The rules are a whitelist: a plan node, an expression, an engine or a column that no rule knows is
not provable.  docs/invariants.md, "What makes a view provable", has the proof of each rule.

    parts.py        what is judged
    judgement.py    the answer
    expressions.py  functions, virtual columns, defaults that are computed at each read
    query.py        clauses, joins and the one GROUP BY on the way from the source to the target
    inputs.py       the tables and subqueries that are read beside the source
    rounding.py     conditions that the last bits of a sum of floats decide
    source.py       a source whose merges join rows
    target.py       how the target merges, and the columns that the query gives
    computed.py     what the target computes itself: defaults, keys, TTL, constraints
    own_columns.py  columns that the target fills, once an ALTER fills them otherwise
    circle.py       tables that are made of their own rows
    verdict.py      the door
"""

from olapdb.views.provability.circle import circle_of, downstream
from olapdb.views.provability.judgement import JudgedItem, Judgement
from olapdb.views.provability.own_columns import fills_otherwise
from olapdb.views.provability.parts import BoundDefinition
from olapdb.views.provability.verdict import check_definition, judge

RULES = 1
"""Raised with each rule that makes a view unproven: views that older rules judged are judged again
when the warehouse is opened."""

__all__ = [
    "RULES",
    "BoundDefinition",
    "JudgedItem",
    "Judgement",
    "check_definition",
    "circle_of",
    "downstream",
    "fills_otherwise",
    "judge",
]
