"""Conversion of a view's column to its target's type: one table of types for every check.

A trigger stores values as an INSERT does (`olapdb.functions.casts.lossless`). So a stored value is
the value that the query gave, except for rounding to a float:

| kind    | meaning |
|---------|---------|
| exact   | every value of the source's type is a value of the target's |
| checked | each value survives, or is an error of the INSERT that names column and value |
| rounded | each value becomes the nearest float |
| refused | the target would hold another answer than the query's, and no INSERT would fail |

What happens to stored values depends on how the target uses the column, its `use`:

- `row`: rows stay as they are.  One value gives one stored value, however rows are cut into blocks.
- `group`: a key of the query's GROUP BY, by which the target joins rows.  Two keys that are stored
  as one would join two groups, so the conversion has to keep distinct values distinct.
- a merging function, such as `sum` for a column that SummingMergeTree adds up.  Merging stored
  values has to give what storing the merged value would give.  A sum outgrows its terms, so its
  column has to have a type that sums have, and hold every sum of the query.  For minima and maxima
  the conversion has to keep the order.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from olapdb import types
from olapdb.errors import Error
from olapdb.functions import resolve_aggregate
from olapdb.functions.casts.lossless import keeps_all, rounds
from olapdb.records import dataclass

Kind: TypeAlias = Literal["exact", "checked", "rounded", "refused"]

_GROWING = ("sum", "sumWithOverflow", "sumMap")
"""Merging functions whose result may be a value that none of their arguments has."""
_NUMBERS = (types.Integer, types.Enum, types.Float, types.Decimal, types.Boolean)
_MOMENTS = (types.Date, types.Date32, types.DateTime, types.DateTime64)


@dataclass(frozen=True, slots=True)
class Conversion:
    """The conversion of one type to another; `reason` and `fix` are empty unless it is refused."""

    kind: Kind
    reason: str = ""
    fix: str = ""

    @property
    def refused(self) -> bool:
        """Return whether a view must not store the column so."""
        return self.kind == "refused"


def conversion(
    source: types.DataType, target: types.DataType, use: str = "row", *, summed: bool = False
) -> Conversion:
    """Return how values of the query's type `source` are stored in a column of type `target`. `use`
    is "row", "group", or the name of the function that merges the column. `summed`: the query adds
    up the values itself, as the merging function does.

    Types without any conversion are not distinguished here: `check_columns` refuses them.
    """
    kind = _kind(source, target)
    if use == "row":
        return Conversion(kind)
    if use == "group":
        if kind == "rounded" or not _keeps_distinct(source, target):
            return Conversion(
                "refused",
                f"it groups by {source}, of which several values may be stored as one {target}: their"
                " groups would be one.",
                f"Make the column {source.name}, or group by a value of type {target}.",
            )
        return Conversion(kind)
    if use in _GROWING:
        converted = _sum_conversion(source, target, use, kind)
        if summed and not converted.refused and not _wraps_alike(source, target):
            return Conversion(
                "refused",
                f"it is {source}, whose sums wrap or round where those of {target} do not: the sum of"
                " all rows would differ from what merges add up.",
                f"Make the column {types.plain(source).name}, or cast what is summed.",
            )
        return converted
    if not _keeps_order(source, target):
        return Conversion(
            "refused",
            f"merges take the {use} of {target}, which orders values otherwise than {source}.",
            f"Make the column {source.name}.",
        )
    return Conversion(kind)


def _holds_merged(data_type: types.DataType, merged: str = "sum") -> bool:
    """Return whether merging by this function keeps values within the type. It does not for a
    UInt8, which wraps at 256, or a Float32, which each merge rounds."""
    try:
        result_type = resolve_aggregate(merged, (), (data_type,)).result_type
    except Error:  # no such function of the type: a check of the engine reports it
        return False
    return types.plain(result_type) == types.plain(data_type) and not _has_narrow_floats(data_type)


def _sum_conversion(
    source: types.DataType, target: types.DataType, merged: str, kind: Kind
) -> Conversion:
    """Return the conversion of a column that merges add up: its type must hold every sum."""
    if not _holds_merged(target, merged):
        wide = _sum_type(source, merged)
        return Conversion(
            "refused",
            f"sums of {target} outgrow it: a merge of the target would wrap or round them, and"
            " nobody would see it.",
            f"Make the column {wide}.",
        )
    if _plain_kind(types.plain(source), types.plain(target)) != "exact":
        return Conversion(
            "refused",
            f"it is {source}, which {target} cannot hold: a sum may not fit, or be rounded in each"
            " block.",
            f"Make the column {_sum_type(source, merged)}, or cast what is summed.",
        )
    return Conversion(kind)


def _wraps_alike(source: types.DataType, target: types.DataType) -> bool:
    """Return whether sums in both types wrap at one number of bits and round alike.

    The query's sum of a block wraps in `source`, the merge of such sums in `target`."""
    plain_source, plain_target = types.plain(source), types.plain(target)
    match plain_source, plain_target:
        case types.Map(), types.Map():
            return _wraps_alike(plain_source.value, plain_target.value)
        case types.Tuple(), types.Tuple():  # sumMap of arrays: the keys, then the values
            pairs = zip(plain_source.elements[1:], plain_target.elements[1:], strict=False)
            return all(_wraps_alike(*pair) for pair in pairs)
        case types.Array(), types.Array():
            return _wraps_alike(plain_source.inner, plain_target.inner)
        case types.Integer(bits=bits), types.Integer(bits=target_bits):
            return bits == target_bits
        case types.Integer(), types.Decimal():
            return False
        case types.Float(bits=bits), types.Float(bits=target_bits):
            return bits == target_bits
        case _:
            return True


def _sum_type(source: types.DataType, merged: str) -> str:
    """Return the name of the type that sum, or sumMap if `merged` says so, gives for `source`; that
    of `source` if it has no sum."""
    try:
        return resolve_aggregate(
            "sum" if merged != "sumMap" else merged, (), (source,)
        ).result_type.name
    except Error:  # no such function of the type
        return source.name


def _has_narrow_floats(data_type: types.DataType) -> bool:
    """Return whether the type is Float32, or a container of Float32 values."""
    inner = types.plain(data_type)
    if isinstance(inner, types.Map):
        return _has_narrow_floats(inner.value)
    if isinstance(inner, types.Array):
        return _has_narrow_floats(inner.inner)
    return inner == types.Float(32)


# --- the table -----------------------------------------------------------------------------------


def _kind(source: types.DataType, target: types.DataType) -> Kind:
    """Return the kind of the conversion; "checked" if only NULL has no place in the target."""
    kind = _plain_kind(types.plain(source), types.plain(target))
    if kind == "exact" and types.is_nullable(source) and not types.is_nullable(target):
        return "checked"
    return kind


def _plain_kind(source: types.DataType, target: types.DataType) -> Kind:
    """Return the kind of the conversion, NULLs apart; of a container, its elements' worst."""
    if source == target or isinstance(source, types.Nothing):
        return "exact"
    pairs = _inner_pairs(source, target)
    if pairs is not None:
        kinds = {_kind(inner_source, inner_target) for inner_source, inner_target in pairs}
        return next((kind for kind in _WORST_FIRST if kind in kinds), "exact")
    if isinstance(source, types.AggregateFunction) or isinstance(target, types.AggregateFunction):
        return "refused"
    if isinstance(source, types.Tuple) and isinstance(target, types.Tuple):
        return "refused"
    if keeps_all(source, target):
        return "exact"
    return "rounded" if rounds(source, target) else "checked"


_WORST_FIRST: tuple[Kind, ...] = ("refused", "rounded", "checked")


def _inner_pairs(
    source: types.DataType, target: types.DataType
) -> list[tuple[types.DataType, types.DataType]] | None:
    """Return the pairs of types within two containers of one kind; None for other types."""
    match source, target:
        case (types.Array(), types.Array()):
            return [(source.inner, target.inner)]
        case (types.Map(), types.Map()):
            return [(source.key, target.key), (source.value, target.value)]
        case (types.Tuple(), types.Tuple()) if _have_one_form(source, target):
            if source.goes_by_name(target):
                kinds = dict(zip(source.names, source.elements, strict=True))
                return [(kinds[n], t) for n, t in zip(target.names, target.elements, strict=True)]
            return list(zip(source.elements, target.elements, strict=True))
        case _:
            return None


def _have_one_form(source: types.Tuple, target: types.Tuple) -> bool:
    """Return whether each element of one tuple belongs to one of the other: by name if the conversion
    goes by names, else by position."""
    if source.goes_by_name(target):
        return set(source.names) == set(target.names)
    return len(source.elements) == len(target.elements)


def _keeps_distinct(source: types.DataType, target: types.DataType) -> bool:
    """Return whether distinct values, if stored at all, are stored as distinct values."""
    plain_source, plain_target = types.plain(source), types.plain(target)
    if plain_source == plain_target or isinstance(plain_source, types.Nothing):
        return True
    pairs = _inner_pairs(plain_source, plain_target)
    if pairs is not None:
        return all(_keeps_distinct(*pair) for pair in pairs)
    if isinstance(plain_target, types.String):
        # Two moments give one text when clocks are set back; zero bytes at the end are cut off.
        return isinstance(
            plain_source,
            types.Integer
            | types.Enum
            | types.Boolean
            | types.Decimal
            | types.Date
            | types.Date32
            | types.Time
            | types.Time64,
        )
    return _of_one_family(plain_source, plain_target) and not rounds(plain_source, plain_target)


def _keeps_order(source: types.DataType, target: types.DataType) -> bool:
    """Return whether stored values have the order of the values that the query gave."""
    plain_source, plain_target = types.plain(source), types.plain(target)
    if plain_source == plain_target or isinstance(plain_source, types.Nothing):
        return True
    pairs = _inner_pairs(plain_source, plain_target)
    if (
        isinstance(plain_source, types.Tuple)
        and isinstance(plain_target, types.Tuple)
        and plain_source.goes_by_name(plain_target)
    ):
        return False
    if pairs is not None:
        return all(_keeps_order(*pair) for pair in pairs)
    if isinstance(plain_source, types.FixedString) and isinstance(plain_target, types.FixedString):
        return True
    return _of_one_family(plain_source, plain_target)


def _of_one_family(source: types.DataType, target: types.DataType) -> bool:
    """Return whether both are numbers or both moments, so that a stored value equals the
    query's."""
    return any(
        isinstance(source, family) and isinstance(target, family) for family in (_NUMBERS, _MOMENTS)
    )
