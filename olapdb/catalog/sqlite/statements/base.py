"""A statement of the catalog: the text that SQLAlchemy Core made, run as it is.

Running Core itself costs more than a whole commit; its text on the driver's connection does not
(0.17 ms against 1.2 ms for a durable commit of a source and a view). Importing it costs more than
a first query, so the texts are generated, see `olapdb.catalog.core`.
"""

from __future__ import annotations

import sqlite3
from typing import Any


class CatalogStatement:
    """A statement with named parameters; calling it runs it on a driver's connection."""

    __slots__ = ("names", "text")

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        """Take the text, and the names of its parameters in their order."""
        self.text = text
        self.names = names

    def __call__(self, connection: sqlite3.Connection, **values: object) -> sqlite3.Cursor:
        """Run the statement with these values of its parameters; return the cursor."""
        return connection.execute(self.text, [values[name] for name in self.names])

    def value(self, connection: sqlite3.Connection, **values: object) -> Any:
        """Return the first column of the first row, None without rows; read no further."""
        row = self(connection, **values).fetchone()
        return None if row is None else row[0]
