"""COLLATE, which olapdb refuses: it has no tables of the orders of languages."""

from __future__ import annotations

from olapdb.errors import BadCollation, NotSupportedError
from olapdb.plan.expressions import Expression
from olapdb.types import String, any_part


def refuse_collation(key: Expression, collation: str | None) -> None:
    """Raise NotSupportedError for COLLATE 'language' of a key, BadCollation if the key holds no text."""
    if collation is None:
        return
    if not any_part(key.type, (String,)):
        raise BadCollation(
            f"COLLATE is for texts and for arrays and tuples of them, and the key is a {key.type}.",
            hint="Leave COLLATE out.",
        )
    raise NotSupportedError(
        f"COLLATE {collation!r} is not supported: texts are compared by their bytes.",
        hint="Sort by lower(…), or by a column made for the order of the language.",
    )
