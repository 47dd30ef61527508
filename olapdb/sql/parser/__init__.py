"""SQL text to syntax tree: a hand-written parser of ClickHouse's grammar.

A chain of classes, each a part of the grammar on top of the ones it needs: `cursor` (steps),
`type_names`, `operands`, `expressions`, `stars`, `windows`, `calls`, `relations`, `sorting`,
`queries`, `definitions`, then side by side `create`, `alter`, `insert`, `system`, `show`, and all
of them in `statements`.  `text` splits a whole text and keeps the data of INSERT away from the
tokenizer.
"""

from __future__ import annotations

from olapdb.sql.parser.text import parse, parse_expression, parse_one, parse_query, parse_table_name

__all__ = ["parse", "parse_expression", "parse_one", "parse_query", "parse_table_name"]
