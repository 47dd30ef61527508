"""Dynamic and JSON: types whose values say themselves of which type they are."""

from __future__ import annotations

from dataclasses import replace

from olapdb.records import dataclass
from olapdb.types.base import DataType, quote_identifier, quote_string

TYPES_MAX = 32
PATHS_MAX = 1024
"""How many types and paths a column has in columns of their own in ClickHouse, where the type does not say."""


@dataclass(frozen=True)
class Dynamic(DataType):
    """A type each value of which has a type of its own, or is NULL. In Arrow a column is a struct (decision 020):
    `type`, the name of the row's type, and `value`, its value as text; a NULL row is a NULL struct. `types_max`
    bounds ClickHouse's storage and is only part of the name here."""

    types_max: int = TYPES_MAX

    @property
    def name(self) -> str:
        """The name: "Dynamic" or "Dynamic(max_types=16)"."""
        return "Dynamic" if self.types_max == TYPES_MAX else f"Dynamic(max_types={self.types_max})"


@dataclass(frozen=True)
class Json(DataType):
    """A JSON object, stored as the values of its paths. In Arrow a column is a list of structs `path`, `type`,
    `value`, sorted by path, without repetition (decision 020). `typed` are the paths with a declared type, sorted;
    each row has all of them. Paths in `skipped`, below one of these, or matched by a pattern of `skipped_patterns`
    are left out."""

    typed: tuple[tuple[str, DataType], ...] = ()
    skipped: tuple[str, ...] = ()
    skipped_patterns: tuple[str, ...] = ()
    types_max: int = TYPES_MAX
    paths_max: int = PATHS_MAX

    @property
    def name(self) -> str:
        """The name: "JSON" or "JSON(max_dynamic_types=8, `a.b` UInt32, SKIP c, SKIP REGEXP '^x')"."""
        parts = []
        if self.types_max != TYPES_MAX:
            parts.append(f"max_dynamic_types={self.types_max}")
        if self.paths_max != PATHS_MAX:
            parts.append(f"max_dynamic_paths={self.paths_max}")
        parts += [f"{quote_identifier(path)} {t.name}" for path, t in self.typed]
        parts += [f"SKIP {quote_identifier(path)}" for path in self.skipped]
        parts += [f"SKIP REGEXP {quote_string(pattern)}" for pattern in self.skipped_patterns]
        return f"JSON({', '.join(parts)})" if parts else "JSON"

    @property
    def element(self) -> Dynamic:
        """Return the type of values on paths without a declared type."""
        return Dynamic(self.types_max)

    @property
    def nested(self) -> Json:
        """Return the JSON type of objects inside arrays, for which ClickHouse has lower limits of paths and types."""
        return Json(types_max=self.types_max // 2, paths_max=self.paths_max // 4)

    @property
    def untyped(self) -> Json:
        """Return the type with the same limits but without typed and skipped paths."""
        return Json(types_max=self.types_max, paths_max=self.paths_max)

    def type_of(self, path: str) -> DataType:
        """Return the type of the values on a path: its declared type, else `element`."""
        return dict(self.typed).get(path, self.element)

    def below(self, path: str) -> Json:
        """Return the JSON type of the object at a path: its typed paths, with the path's prefix removed."""
        start = f"{path}."
        typed = [(name[len(start) :], t) for name, t in self.typed if name.startswith(start)]
        return replace(self.untyped, typed=tuple(typed))
