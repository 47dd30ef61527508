"""Lengths of nested columns: `n.a` and `n.b` have arrays of one length in each row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import numpy as np
import pyarrow as pa

from olapdb.errors import SizesOfArraysDoNotMatch
from olapdb.model.schema import Table
from olapdb.types import Array


def check_nested_sizes(table: Table, columns: Mapping[str, pa.Array], first_row: int) -> None:
    """Raise SizesOfArraysDoNotMatch if arrays of one nested structure differ in length.

    As ClickHouse does at INSERT and UPDATE.  `first_row` is the number of the first row, for the
    error message."""
    first_of: dict[str, tuple[str, np.ndarray]] = {}
    for column in table.stored_columns:
        structure, dot, _ = column.name.partition(".")
        if not dot or not isinstance(column.type, Array):
            continue
        lengths: np.ndarray = columns[column.name].value_lengths().to_numpy(zero_copy_only=False)
        other, expected = first_of.setdefault(structure, (column.name, lengths))
        differing = np.flatnonzero(lengths != expected)
        if differing.size:
            row = int(differing[0])
            _refuse(other, int(expected[row]), column.name, int(lengths[row]), first_row + row)


def _refuse(first: str, first_size: int, second: str, second_size: int, row: int) -> NoReturn:
    """Raise SizesOfArraysDoNotMatch for two arrays of one nested structure; `row` is its number."""
    raise SizesOfArraysDoNotMatch(
        f"Row {row}: {first} has {first_size} elements, {second} has {second_size}; they are columns"
        f" of one nested structure, {first.partition('.')[0]}.",
        hint="Give arrays of one length, for all columns of the structure.",
    )
