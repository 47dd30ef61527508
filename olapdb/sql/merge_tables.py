"""The tables that `Merge(db, 'regexp')` and `merge([db,] 'regexp')` read together."""

from __future__ import annotations

from olapdb.errors import BadArguments, NumberOfArgumentsDoesntMatch, Position
from olapdb.records import dataclass
from olapdb.sql import nodes
from olapdb.sql.literals import quote_string
from olapdb.sql.trees import is_current_database


@dataclass(frozen=True, slots=True)
class MergedTables:
    """The tables of a database whose name has a match of `tables`; with `matches`, of all databases
    whose name has a match of `database`."""

    database: str
    tables: str
    matches: bool = False

    @property
    def arguments(self) -> tuple[nodes.Expression, nodes.Expression]:
        """The arguments as SHOW CREATE shows them."""
        database: nodes.Expression = nodes.Literal(self.database)
        if self.matches:
            database = nodes.Function("REGEXP", (database,))
        return database, nodes.Literal(self.tables)

    @property
    def engine(self) -> str:
        """The engine as SQL text."""
        database = quote_string(self.database)
        return f"Merge({f'REGEXP({database})' if self.matches else database}, {quote_string(self.tables)})"


def merged_tables(
    arguments: tuple[nodes.Expression, ...], current: str | None, position: Position | None
) -> MergedTables:
    """Return the tables that the arguments name; `current` is the database where none is given.

    Raises NumberOfArgumentsDoesntMatch, also for one argument if `current` is None: the engine needs
    both; BadArguments unless it is a text."""
    if len(arguments) == 1 and current is not None:
        return MergedTables(current, _text(arguments[0], None))
    if len(arguments) != 2:
        raise NumberOfArgumentsDoesntMatch(
            f"Merge takes a database and a regular expression, not {len(arguments)} arguments.",
            hint="Say Merge('database', '^prefix_'); merge('^prefix_') reads the current one.",
            position=position,
        )
    database, tables = arguments
    match database:
        case nodes.Function(name=name, arguments=(pattern,)) if name.upper() == "REGEXP":
            return MergedTables(_text(pattern, None), _text(tables, None), matches=True)
        case _:
            return MergedTables(_text(database, current), _text(tables, None))


def _text(node: nodes.Expression, current: str | None) -> str:
    """Return a text, a name without quotes, or `currentDatabase()` where `current` is given.

    Raises BadArguments."""
    match node:
        case nodes.Literal(value=str() as text):
            return text
        case nodes.Identifier(parts=(name,)):
            return name
        case _ if current is not None and is_current_database(node):
            return current
    raise BadArguments(
        "The arguments of Merge are a database and a regular expression, as texts.",
        position=node.position,
    )
