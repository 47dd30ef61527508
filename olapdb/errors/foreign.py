"""Translation of exceptions of Python and Arrow into the tree.

The class decides, and the text where Arrow has one class for everything.
"""

from __future__ import annotations

from olapdb.errors.data import CannotConvertType, DecimalOverflow
from olapdb.errors.operational import MemoryLimitExceeded
from olapdb.errors.tree import Error, InternalError, NotSupportedError

FOREIGN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NotImplementedError,
    TypeError,
    ValueError,
)
"""Exception classes that a calculation may raise; Arrow's derive from them, except its capacity
error.  `system` has those of the operating system."""


def foreign_error(error: BaseException, doing: str) -> Error | None:
    """Return the error of the tree to raise instead of an exception of a calculation.

    `doing` names what failed ("Function round of (String)"). Returns None for other exceptions.
    """
    arrow = type(error).__module__.startswith("pyarrow")
    if not isinstance(error, FOREIGN) and not arrow:
        return None
    text = str(error)
    lowered = text.lower()
    if isinstance(error, MemoryError) or type(error).__name__ == "ArrowCapacityError":
        return MemoryLimitExceeded(
            f"{doing} needs more memory than there is: {text}.",
            hint="Compute it of fewer or of shorter values.",
        )
    if isinstance(error, UnicodeError) or (arrow and "utf8" in lowered.replace("-", "")):
        return CannotConvertType(
            f"{doing} met text that is not UTF-8: {text}.", hint="Give it hex(…) of the text."
        )
    if arrow and "does not fit in precision" in lowered:
        return DecimalOverflow(
            f"{doing} overflows: {text}.", hint="Convert an argument to a narrower Decimal first."
        )
    if isinstance(error, NotImplementedError):
        return NotSupportedError(
            f"{doing} is not there for these types: {text}.",
            hint="Convert the arguments to other types first.",
        )
    return InternalError(
        f"{doing} failed: {type(error).__name__}: {text}.",
        hint="This is a bug of olapdb: please report it with the statement.",
    )
