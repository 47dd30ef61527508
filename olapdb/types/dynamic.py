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
    """A type whose every value has a type of its own, or is NULL.

    In Arrow a column is a struct (decision 020): `type`, the name of the row's type, and `value`, its value as
    text. A row that is NULL is a NULL struct. `types_max` bounds ClickHouse's storage; here it is only part of
    the name."""

    types_max: int = TYPES_MAX

    @property
    def name(self) -> str:
        """The name: "Dynamic" or "Dynamic(max_types=16)"."""
        return "Dynamic" if self.types_max == TYPES_MAX else f"Dynamic(max_types={self.types_max})"


@dataclass(frozen=True)
class Json(DataType):
    """A JSON object as the values of its paths.

    In Arrow a column is a list of structs `path`, `type`, `value`, sorted by path, without repetition (decision
    020). `typed` has the paths whose type the column says, sorted; each row has all of them. Paths that are one
    of `skipped`, lie below one, or are found by one of the patterns `skipped_patterns`, are left out."""

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
        """The type of a path without a type of its own."""
        return Dynamic(self.types_max)

    @property
    def nested(self) -> Json:
        """The type of the objects in an array: ClickHouse gives them fewer columns of their own."""
        return Json(types_max=self.types_max // 2, paths_max=self.paths_max // 4)

    @property
    def untyped(self) -> Json:
        """The type with these bounds, without paths."""
        return Json(types_max=self.types_max, paths_max=self.paths_max)

    def type_of(self, path: str) -> DataType:
        """Return the type of the values at a path."""
        return dict(self.typed).get(path, self.element)

    def below(self, path: str) -> Json:
        """Return the type of the object at a path: its typed paths without the path in front."""
        start = f"{path}."
        typed = [(name[len(start) :], t) for name, t in self.typed if name.startswith(start)]
        return replace(self.untyped, typed=tuple(typed))
