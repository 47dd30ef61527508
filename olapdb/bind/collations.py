"""COLLATE 'language' behind a key of ORDER BY."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olapdb.errors import BadCollation
from olapdb.lazy import LazyModule
from olapdb.plan.expressions import Call, Expression
from olapdb.types import Array, DataType, String, Tuple, plain

if TYPE_CHECKING:
    from olapdb.functions.strings import collations
else:
    collations = LazyModule("olapdb.functions.strings.collations")


def collated(key: Expression, collation: str | None) -> Expression:
    """Return the expression to order by for a key with COLLATE: texts whose order in bytes is that of the language.

    The key itself without one. Raises BadCollation if the key holds no text, UnsupportedCollationLocale for an unknown
    language, NotSupportedError where ICU is not installed."""
    if collation is None:
        return key
    if not _holds_text(key.type):
        raise BadCollation(
            f"COLLATE is for texts and for arrays and tuples of them, and the key is a {key.type}.",
            hint="Leave COLLATE out.",
        )
    call = collations.collation_call(key.type, collation)
    return Call(call.type, call.name, (key,), call)


def _holds_text(data_type: DataType) -> bool:
    """Return whether the type is a String, or an array or tuple with one."""
    match plain(data_type):
        case String():
            return True
        case Array(inner):
            return _holds_text(inner)
        case Tuple(elements):
            return any(map(_holds_text, elements))
        case _:
            return False
