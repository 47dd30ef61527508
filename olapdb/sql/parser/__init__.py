"""SQL text to syntax tree: a hand-written recursive-descent parser of ClickHouse's grammar.

Each module holds the functions of one part of the grammar, `parse_x(cursor)`: they take a
`TokenCursor`, step over what they parse and return its node, or raise SyntaxError at the token
that does not fit.  Expressions and queries contain each other, so their modules import each other
as modules and call through them.

* `text` splits a whole text into statements; `statements` chooses a parser by the first word.
* `cursor` and `lookahead` are the steps, `keywords` and `precedence` the tables.
* `expressions`, `operands`, `calls`, `stars`, `windows`, `type_names` parse values;
  `queries`, `relations`, `sorting` SELECT; `columns`, `storage`, `clauses` parts of definitions.
* `create`, `refresh`, `alter`, `objects`, `data`, `show`, `system`, `administration` parse statements.
"""

from __future__ import annotations

from olapdb.sql.parser.text import (
    parse,
    parse_expression,
    parse_one,
    parse_query,
    parse_refresh,
    parse_replacing,
    parse_table_name,
)

__all__ = [
    "parse",
    "parse_expression",
    "parse_one",
    "parse_query",
    "parse_refresh",
    "parse_replacing",
    "parse_table_name",
]
