"""Functions of strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olapdb.functions.scalar import ScalarDefinition


def definitions() -> tuple[ScalarDefinition, ...]:
    """Return the definitions of all functions of this package.

    The modules are imported at the first call: `import olapdb` and a process that only inserts do
    not need them.
    """
    from olapdb.functions.casts.enums import reading_enums
    from olapdb.functions.strings import (
        bars,
        byte_codes,
        charsets,
        concat,
        distances,
        encodings,
        ip_addresses,
        iso_durations,
        key_values,
        keyed_hashes,
        letters,
        machine_ids,
        padding,
        pieces,
        query_texts,
        regex_position,
        registered_domains,
        search_many,
        search_replace,
        sim_hashes,
        similarity,
        simple_json,
        sparse_grams,
        split,
        substring,
        text_search,
        time_deltas,
        tokens,
        unicode_text,
        url_hosts,
        urls,
    )

    modules = (
        substring,
        letters,
        machine_ids,
        padding,
        concat,
        search_replace,
        byte_codes,
        charsets,
        split,
        tokens,
        simple_json,
        urls,
        registered_domains,
        url_hosts,
        bars,
        distances,
        ip_addresses,
        iso_durations,
        keyed_hashes,
        key_values,
        regex_position,
        encodings,
        unicode_text,
        sim_hashes,
        similarity,
        search_many,
        pieces,
        query_texts,
        sparse_grams,
        text_search,
        time_deltas,
    )
    return tuple(
        reading_enums(definition) if definition.name in _READ_ENUMS else definition
        for module in modules
        for definition in module.DEFINITIONS
    )


_READ_ENUMS = frozenset(
    {
        *("substring", "position", "positionUTF8", "positionCaseInsensitive", "locate"),
        *("like", "notLike", "ilike", "notILike", "match", "countSubstrings"),
        *("concat", "concatWithSeparator", "format"),
        *("hasToken", "hasTokenOrNull"),
        *("hasTokenCaseInsensitive", "hasTokenCaseInsensitiveOrNull"),
    }
)
"""The functions of texts that take an Enum as its text; ClickHouse's others refuse it too."""
