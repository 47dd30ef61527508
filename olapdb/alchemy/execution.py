"""The execution of one statement."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exc
from sqlalchemy.engine.default import DefaultExecutionContext


class OlapExecutionContext(DefaultExecutionContext):
    """An execution that refuses an INSERT which leaves out a key that nothing counts up."""

    def get_insert_default(self, column: Any) -> Any:
        """Return the default of a column that the INSERT has no value for.

        Raises ArgumentError for an integer key without a default: its rows would all have 0."""
        if column.default is None and column is column.table._autoincrement_column:
            raise exc.ArgumentError(
                f"olapdb counts up no keys: give {column.table.name}.{column.name} a value or a "
                "default."
            )
        return super().get_insert_default(column)  # type: ignore[no-untyped-call]
