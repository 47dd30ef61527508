"""Translation of errors of the operating system into the tree: errno decides, never the text."""

from __future__ import annotations

import errno

from olapdb.errors.operational import NotEnoughSpace, ReadOnly
from olapdb.errors.tree import OperationalError


def system_error(error: OSError, place: str) -> OperationalError:
    """Return the error to raise instead of `error`; `place` is the file or folder concerned."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return NotEnoughSpace(
                f"No space left to write {place}.",
                hint="Nothing was changed; free some space and run the statement again.",
            )
        case errno.EROFS | errno.EACCES | errno.EPERM:
            return ReadOnly(
                f"Not permitted to write {place}.",
                hint="Nothing was changed; check who owns the warehouse's folder, or open it with"
                " read_only=True.",
            )
        case _:
            return OperationalError(f"{error.strerror or error} on {place}.")
