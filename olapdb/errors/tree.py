"""The classes of PEP 249, and what all errors have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Position:
    """A place in SQL text; line and column count from 1, offset from 0 (in characters)."""

    line: int
    column: int
    offset: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class Warning(Exception):  # the name is fixed by PEP 249
    """Something that was done, but that the user should know about."""


class Error(Exception):
    """Base of everything that olapdb raises.

    `code` and `name` are ClickHouse's (`60`, `"UNKNOWN_TABLE"`), `position` is the place in the
    SQL text where there is one, `hint` says what to do next.
    """

    code: ClassVar[int] = 1001
    name: ClassVar[str] = "STD_EXCEPTION"

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
        """The same error with a position, where it had none; returned for `raise error.at(p)`."""
        if self.position is None:
            self.position = position
            self.args = (self.message, self.hint, position)
        return self


def _rebuild(cls: type[Error], message: str, hint: str, position: Position | None) -> Error:
    return cls(message, hint=hint, position=position)


class InterfaceError(Error):
    """The Python interface was used wrongly (a closed cursor, an unknown parameter)."""

    name = "BAD_ARGUMENTS"
    code = 36


class DatabaseError(Error):
    """Base of what the database itself reports."""


class DataError(DatabaseError):
    """A value does not fit: parsing, range, conversion.

    `row` is the index, from 0, of the first bad row of the column that was converted, or None.
    """

    row: int | None = None

    def at_row(self, row: int) -> DataError:
        """The same error about a row; returned for `raise error.at_row(5)`."""
        self.row = row
        return self

    def __reduce__(self) -> tuple[object, ...]:
        rebuild, arguments, *_ = super().__reduce__()
        return rebuild, arguments, {"row": self.row}


class OperationalError(DatabaseError):
    """The environment got in the way: files, memory, locks, time."""


class IntegrityError(DatabaseError):
    """Relational or protocol integrity would be violated."""


class InternalError(DatabaseError):
    """A bug of olapdb: an invariant of ours does not hold."""

    name = "LOGICAL_ERROR"
    code = 49


class ProgrammingError(DatabaseError):
    """The statement is wrong: syntax, names, types, arguments."""


class NotSupportedError(DatabaseError):
    """A real feature of ClickHouse or SQL that olapdb does not have; the message names it."""

    name = "NOT_IMPLEMENTED"
    code = 48
