"""The orders of languages, for ORDER BY … COLLATE 'language'.

The package PyICU, which holds ICU, computes for a text the key that has its place in the order; it is an optional
requirement. A key is computed once for each distinct text of a batch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import pyarrow as pa

from olapdb.errors import NotSupportedError, UnsupportedCollationLocale
from olapdb.functions.base import Column, Environment, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.types import DataType

_OPTIONS = re.compile(r"(?:_u_|@[a-z]+=).*")
"""What may follow the name of a language: `-u-ks-level2`, `@collation=phonebook`."""


@cache
def _library() -> ModuleType:
    """Return the package of ICU. Raises NotSupportedError where it is not installed."""
    try:
        return import_module("icu")
    except ImportError as error:
        raise NotSupportedError(
            "COLLATE needs ICU, as the package PyICU has it.",
            hint="Install it: pip install pyicu-wheels (or olapdb[icu]). Without it sort by lower(…).",
        ) from error


def collations() -> list[tuple[str, str]]:
    """Return the languages that have an order, each by its code and its name in English; [] without ICU."""
    try:
        icu = _library()
    except NotSupportedError:
        return []
    english = icu.Locale("en")
    locales = icu.Collator.getAvailableLocales()
    return sorted((name, locale.getDisplayLanguage(english)) for name, locale in locales.items())


@cache
def _collator(language: str) -> Any:  # the package has no types
    """Return the order of a language. Raises UnsupportedCollationLocale for one that has none."""
    icu = _library()
    plain = _OPTIONS.sub("", language.lower().replace("-", "_")).rstrip("_")
    if plain in {name.lower() for name, _ in collations()}:
        try:
            return icu.Collator.createInstance(icu.Locale(language.lower()))
        except icu.ICUError:
            pass  # an option that ICU does not know
    raise UnsupportedCollationLocale(
        f"There is no collation {language!r}.", hint="system.collations lists those there are."
    )


def collation_call(source: DataType, language: str) -> ScalarCall:
    """Return the call that gives keys of the same type, whose order in bytes is the values' order in the language.

    Raises NotSupportedError without ICU, UnsupportedCollationLocale for an unknown language. It is volatile: versions
    of ICU have orders of their own."""
    collator = _collator(language)

    def kernel(values: Sequence[Column], rows: int, environment: Environment) -> Column:
        """Return the values with the key of each text in its place."""
        keys = _keys(columns.single(values[0]), collator)
        return keys[0] if isinstance(values[0], pa.Scalar) else keys

    return ScalarCall(f"collate {language}", source, kernel, volatility="query")


def _keys(array: pa.Array, collator: Any) -> pa.Array:
    """Return the column with the key of each text in its place; numbers and NULL stay as they are."""
    if pa.types.is_list(array.type):
        offsets, elements = columns.elements_of(array)
        return columns.lists_from(offsets, _keys(elements, collator), columns.validity(array))
    if pa.types.is_struct(array.type):
        fields = [_keys(field, collator) for field in columns.struct_fields(array)]
        return columns.structs_from(fields, array.type, columns.validity(array), len(array))
    if not pa.types.is_string(array.type):
        return array
    encoded = columns.binary(array).dictionary_encode()
    keys = [
        collator.getSortKey(raw.decode("utf-8", "replace")).decode("latin-1")
        for raw in encoded.dictionary.to_pylist()
    ]  # in UTF-8, letters up to U+00FF have the order of their numbers
    return pa.array(keys, pa.string()).take(encoded.indices)
