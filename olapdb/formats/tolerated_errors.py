"""Rows of data that a reader of a format leaves out: input_format_allow_errors_num and …_ratio."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.config import Settings
from olapdb.formats.base import Rows
from olapdb.functions import cast_or_null
from olapdb.functions.base import Environment
from olapdb.types import DataType, String, make_nullable, plain


class Tolerance:
    """The tolerance of an INSERT, of file() or of format() for rows whose values do not fit their columns: it leaves out up to `count` of
    them, or up to `ratio` of the rows so far, if these are more."""

    def __init__(
        self, settings: Settings, columns: Mapping[str, DataType], environment: Environment
    ) -> None:
        """Read the limits from the settings; `columns` are the types that the values must fit."""
        self._count = settings.integer("input_format_allow_errors_num")
        self._ratio = settings.number("input_format_allow_errors_ratio")
        self._types = columns
        self._environment = environment
        self._rows = self._errors = 0

    @property
    def any(self) -> bool:
        """Return whether the settings allow any row to be left out."""
        return bool(self._count or self._ratio)

    def kept(self, rows: Rows) -> Rows:
        """Return the rows without the bad ones that are left out. Once a bad row exceeds the tolerance, all rows from
        it on stay, so that it fails as without the settings."""
        bad = self._bad(rows) if self.any else None
        if bad is None:
            self._rows += rows.rows
            return rows
        so_far = self._errors + np.cumsum(bad)
        number = self._rows + np.arange(1, rows.rows + 1)
        too_many = bad & (so_far > self._count) & (so_far > self._ratio * number)
        left_out = bad.copy()
        if too_many.any():
            left_out[int(np.argmax(too_many)) :] = False
        self._rows += rows.rows
        self._errors += int(bad.sum())
        keep = pa.array(~left_out)
        arrays = tuple(array.filter(keep) for array in rows.arrays)
        return replace(rows, arrays=arrays, rows=int((~left_out).sum()))

    def _bad(self, rows: Rows) -> np.ndarray | None:
        """Return a mask of the rows with a text that its column cannot hold; None if there are none."""
        bad = np.zeros(rows.rows, bool)
        for name, kind, array in zip(rows.names, rows.types, rows.arrays, strict=True):
            target = self._types.get(name)
            if target is None or not isinstance(plain(kind), String):
                continue
            if isinstance(plain(target), String):
                continue
            wanted = make_nullable(plain(target))
            converted = cast_or_null(array, make_nullable(kind), wanted, self._environment)
            lost = pc.and_(pc.is_null(pa.array(converted)), pc.is_valid(array))
            bad |= lost.to_numpy(zero_copy_only=False)
        return bad if bad.any() else None
