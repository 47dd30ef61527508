"""Rules of provability: a view is provable if every part of its definition is known to be right.

    judge(BoundDefinition(...))              -> an item for each part: provable or not, and why
    check_definition(BoundDefinition(...))   -> why the view is unproven; raises if it is refused

The rules are a whitelist: a plan node, an expression, an engine or a column that no rule knows is
not provable. docs/invariants.md, "What makes a view provable", has the proof of each rule.

    parts.py        the input: a bound definition and its tables
    judgement.py    the result: an item for each part
    expressions.py  functions, virtual columns, defaults that are computed at each read
    query.py        clauses, joins and the one GROUP BY on the path from the source to the target
    inputs.py       the tables and subqueries that are read beside the source
    rounding.py     conditions that the last bits of a sum of floats decide
    source.py       a source whose merges join rows
    merging.py      aggregates and expressions that a merge of their table does not change
    target.py       how the target merges, and the columns that the query gives
    computed.py     what the target computes itself: defaults, keys, TTL, constraints
    own_columns.py  ALTERs that change how the target fills its own columns, and its added keys
    circle.py       tables that are made of their own rows
    verdict.py      the entry points
"""

from olapdb.views.provability.circle import circle_of, downstream
from olapdb.views.provability.judgement import JudgedItem, Judgement
from olapdb.views.provability.own_columns import added_keys, fills_otherwise
from olapdb.views.provability.parts import BoundDefinition
from olapdb.views.provability.verdict import check_definition, judge

RULES = 13
"""The version of the rules, raised with each rule that makes a view unproven, and with each function
whose answers change (`olapdb.views.definition.changed_answers`). Opening a warehouse judges the
views again that an older version judged."""

__all__ = [
    "RULES",
    "BoundDefinition",
    "JudgedItem",
    "Judgement",
    "added_keys",
    "check_definition",
    "circle_of",
    "downstream",
    "fills_otherwise",
    "judge",
]
