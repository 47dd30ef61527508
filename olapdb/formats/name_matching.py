"""Names of columns in data, and the wanted columns that they mean."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from olapdb import errors

SETTING = "input_format_column_name_matching_mode"


def matched_names(names: Sequence[str], wanted: Collection[str], mode: str) -> tuple[str, ...]:
    """Return for each name in the data the wanted column that it matches, or the name itself if it matches none. A
    column with the same spelling is preferred to one that differs in case only; `mode` is
    `input_format_column_name_matching_mode`. Raises IncorrectData for a name that matches several columns."""
    exact = () if mode == "ignore_case" else wanted
    if mode == "match_case" or all(name in exact for name in names):
        return tuple(names)
    folded: dict[str, list[str]] = {}
    for column in wanted:
        folded.setdefault(column.lower(), []).append(column)
    return tuple(name if name in exact else _folded_match(name, folded) for name in names)


def _folded_match(name: str, folded: dict[str, list[str]]) -> str:
    """Return the one column that differs from the name in case alone, the name if there is none. `folded` has the
    columns by their names in lower case. Raises IncorrectData for several."""
    columns = folded.get(name.lower(), [])
    if len(columns) > 1:
        raise errors.IncorrectData(
            f"The data have a column {name}, which may be any of {', '.join(columns)}.",
            hint="Write its name as the table does.",
        )
    return columns[0] if columns else name
