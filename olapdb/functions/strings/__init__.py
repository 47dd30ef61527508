"""Functions of strings."""

from __future__ import annotations

MODULES = (
    "substring",
    "letters",
    "machine_ids",
    "padding",
    "concat",
    "affixes",
    "search_replace",
    "byte_codes",
    "charsets",
    "ciphers",
    "split",
    "tokens",
    "simple_json",
    "urls",
    "registered_domains",
    "url_hosts",
    "bars",
    "distances",
    "jaro",
    "ngram_distances",
    "ip_addresses",
    "iso_durations",
    "keyed_hashes",
    "key_values",
    "regex_position",
    "encodings",
    "unicode_text",
    "sim_hashes",
    "similarity",
    "search_many",
    "pieces",
    "query_texts",
    "query_tokens",
    "sparse_grams",
    "naive_bayes",
    "prometheus",
    "sqids",
    "text_search",
    "text_parts",
    "time_deltas",
)
"""The modules with `DEFINITIONS`, in their order."""

READ_ENUMS = frozenset(
    {
        *("substring", "position", "positionUTF8", "positionCaseInsensitive", "locate"),
        *("like", "notLike", "ilike", "notILike", "match", "countSubstrings"),
        *("concat", "concatWithSeparator", "format"),
        *("hasToken", "hasTokenOrNull"),
        *("hasTokenCaseInsensitive", "hasTokenCaseInsensitiveOrNull"),
    }
)
"""The functions of texts that take an Enum as its text; ClickHouse's others refuse it too."""
