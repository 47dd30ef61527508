"""The classes of PEP 249: every error has a ClickHouse name and code, a hint and a position."""

from __future__ import annotations

from typing import ClassVar

from olapdb.records import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """A place in SQL text; line and column count from 1, offset from 0 (in characters)."""

    line: int
    column: int
    offset: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class Warning(Exception):  # the name is fixed by PEP 249
    """A notice about an action that succeeded, but may surprise the user."""


class Error(Exception):
    """The base of all errors that olapdb raises.

    `code` and `name` are ClickHouse's (`60`, `"UNKNOWN_TABLE"`), `position` is the place in the
    SQL text or None, `hint` says what to do next.
    """

    code: ClassVar[int] = 1001
    name: ClassVar[str] = "STD_EXCEPTION"

    def __init_subclass__(cls, *, name: str = "", code: int = 0) -> None:
        """Set the ClickHouse name and code of a class; without them it inherits its base's."""
        super().__init_subclass__()
        if name:
            cls.name, cls.code = name, code

    def __init__(self, message: str, *, hint: str = "", position: Position | None = None) -> None:
        super().__init__(message, hint, position)
        self.message = message
        self.hint = hint
        self.position = position

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.hint, self.position)

    def __str__(self) -> str:
        text = f"Code: {self.code}. {self.message}"
        if self.position is not None:
            text += f" (at {self.position})"
        if self.hint:
            text += f" {self.hint}"
        return f"{text} ({self.name})"

    def at(self, position: Position | None) -> Error:
        """Set the position unless the error has one; return the error for `raise error.at(p)`."""
        if self.position is None:
            self.position = position
            self.args = (self.message, self.hint, position)
        return self


def _rebuild(cls: type[Error], message: str, hint: str, position: Position | None) -> Error:
    """Return an error of the class as it was pickled."""
    return cls(message, hint=hint, position=position)


class InterfaceError(Error, name="BAD_ARGUMENTS", code=36):
    """A wrong use of the Python interface (a closed cursor, an unknown parameter)."""


class DatabaseError(Error):
    """The base of errors of the database, rather than of the Python interface."""


class DataError(DatabaseError):
    """A value that does not fit: it does not parse, convert, or lie in the range.

    `row` is the index, from 0, of the first bad row of the column that was converted, or None.
    `column` is the name of the column of a table, where the error says it.
    """

    row: int | None = None
    column: str | None = None

    def at_row(self, row: int) -> DataError:
        """Set `row` (from 0) and return the error for `raise error.at_row(5)`."""
        self.row = row
        return self

    def __reduce__(self) -> tuple[object, ...]:
        rebuild, arguments, *_ = super().__reduce__()
        return rebuild, arguments, {"row": self.row, "column": self.column}


class OperationalError(DatabaseError):
    """A failure of the environment: files, memory, locks, time, limits, other statements."""


class IntegrityError(DatabaseError):
    """A violation of relational or view integrity that was prevented."""


class InternalError(DatabaseError, name="LOGICAL_ERROR", code=49):
    """A bug of olapdb: one of its invariants does not hold."""


class ProgrammingError(DatabaseError):
    """A wrong statement: syntax, names, types, arguments."""


class NotSupportedError(DatabaseError, name="NOT_IMPLEMENTED", code=48):
    """A feature of ClickHouse or SQL that olapdb does not have; the message names it."""
