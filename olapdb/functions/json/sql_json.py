"""JSON_EXISTS, JSON_QUERY and JSON_VALUE: values at a path such as `$.a[0].b[*]`, of SQL's JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import TooFewArguments
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.json.sql_paths import Segment, Selector, parse_path
from olapdb.functions.kernels import columns
from olapdb.functions.registry import resolve_scalar
from olapdb.types import INT64, STRING, UINT8, DataType, Nullable, String, plain


class _Path:
    """A JSON path without selectors, and the calls of functions such as JSONExtractRaw with its keys and places."""

    def __init__(self, steps: Sequence[str | int]) -> None:
        """Keep the places of the path, and the steps as constant arguments of the calls."""
        self._values = [
            pa.scalar(step + 1, pa.int64()) if isinstance(step, int) else pa.scalar(step)
            for step in steps
        ]
        self._arguments = [
            Argument(INT64 if isinstance(step, int) else STRING, value)
            for step, value in zip(steps, self._values, strict=True)
        ]
        self._places = [at for at, step in enumerate(steps) if isinstance(step, int)]

    def call(self, function: str, text: Argument, length: int | None = None) -> ScalarCall:
        """Return the call of the function, such as JSONHas, on the text with the path's first `length` steps, all if
        None."""
        return resolve_scalar(function, [text, *self._arguments[:length]])

    def run(
        self, call: ScalarCall, text: Column, environment: Environment, length: int | None = None
    ) -> pa.Array:
        """Return the results of `call` for the texts, with the path's first `length` steps, all if None."""
        values = [text, *self._values[:length]]
        result = call.kernel(values, len(text), environment)
        return columns.as_array(result, len(text))

    def reaches(self, text: pa.Array, source: Argument, environment: Environment) -> np.ndarray:
        """Return a mask of the texts that have a value at the path. A place, unlike in JSONHas, must be one of an
        array."""
        holds = columns.numpy_values(self.run(self.call("JSONHas", source), text, environment)) != 0
        for at in self._places:
            kinds = self.run(self.call("JSONType", source, at), text, environment, at)
            holds &= np.asarray(pc.equal(kinds, ord("[")))
        return np.asarray(holds)


Extract = Callable[[_Path, pa.Array, Environment], pa.Array]
"""Returns the value of each text at a path, NULL where there is none."""
Gather = Callable[[pa.Array, np.ndarray, int], pa.Array]
"""Takes values without NULL, the row of each, ascending, and the number of rows."""
_TEXT = Argument(STRING)


def _elements(
    path: _Path, selector: Selector, text: pa.Array, environment: Environment
) -> tuple[np.ndarray, pa.Array]:
    """Return (row of `text`, raw JSON) of each element that a selector takes from the array at the path.

    A value that is no array has no elements."""
    raw = path.run(path.call("JSONExtractArrayRaw", _TEXT), text, environment)
    offsets, elements = columns.elements_of(raw)
    sizes = np.where(path.reaches(text, _TEXT, environment), np.diff(offsets), 0)
    bounds = [(begin, sizes if end is None else end) for begin, end in selector]
    begins = np.stack([np.minimum(begin, sizes) for begin, _ in bounds], axis=1)
    ends = np.stack([np.minimum(end, sizes) for _, end in bounds], axis=1)
    counts = (ends - begins).reshape(-1)
    starts = columns.offsets_from_counts(counts)
    pieces = columns.parents_of(starts)
    firsts = (begins + offsets[:-1][:, None]).reshape(-1)
    places = firsts[pieces] + np.arange(len(pieces)) - starts[pieces]
    return pieces // len(selector), elements.take(pa.array(places))


def _query(path: _Path, text: pa.Array, environment: Environment) -> pa.Array:
    """Return the JSON text of the value at the path; NULL if there is none."""
    raw = path.run(path.call("JSONExtractRaw", _TEXT), text, environment)
    return pc.if_else(pa.array(path.reaches(text, _TEXT, environment)), raw, None)


def _value(
    path: _Path, text: pa.Array, environment: Environment, complex_too: bool = False
) -> pa.Array:
    """Return the value at the path as text if it is a scalar, else NULL; with `complex_too` objects and arrays too,
    as JSON."""
    raw = _query(path, text, environment)
    strings = path.run(path.call("JSONExtractString", _TEXT), text, environment)
    shown = pc.if_else(pc.starts_with(raw, '"'), strings, raw)
    return (
        shown if complex_too else pc.if_else(pc.match_substring_regex(raw, r"^[\[{]"), None, shown)
    )


def _any_value(path: _Path, text: pa.Array, environment: Environment) -> pa.Array:
    """Return the value at the path as text, objects and arrays as JSON."""
    return _value(path, text, environment, complex_too=True)


def _any(values: pa.Array, owners: np.ndarray, rows: int) -> pa.Array:
    """Return for each of `rows` rows 1 if any value belongs to it, else 0; `owners` has each value's row."""
    return columns.from_values(np.bincount(owners, minlength=rows) > 0, pa.uint8())


def _all(values: pa.Array, owners: np.ndarray, rows: int) -> pa.Array:
    """Return the values of each row in brackets, joined by ", "; '' for a row without values."""
    counts = np.bincount(owners, minlength=rows)
    joined = pc.binary_join(columns.lists_from(columns.offsets_from_counts(counts), values), ", ")
    return pc.if_else(pa.array(counts > 0), pc.binary_join_element_wise("[", joined, "]", ""), "")


def _first(values: pa.Array, owners: np.ndarray, rows: int) -> pa.Array:
    """Return the first of each row's values; '' for a row without values."""
    present, first = np.unique(owners, return_index=True)
    places = np.full(rows, -1)
    places[present] = first
    first_places = pa.array(places, mask=places < 0)
    return pc.fill_null(values.take(first_places), "")


def _follow(
    segments: Sequence[Segment], text: pa.Array, environment: Environment
) -> tuple[np.ndarray, pa.Array]:
    """Return (row, raw JSON) of each value to which the segments, all of which have selectors, lead."""
    owners = np.arange(len(text))
    for steps, selector in segments:
        assert selector is not None
        rows, text = _elements(_Path(steps), selector, text, environment)
        owners = owners[rows]
    return owners, text


def _first_or_null(values: pa.Array, owners: np.ndarray, rows: int) -> pa.Array:
    """Return the first of each row's values; NULL for a row without values."""
    present, first = np.unique(owners, return_index=True)
    places = np.full(rows, -1)
    places[present] = first
    return values.take(pa.array(places, mask=places < 0))


def _definition(
    name: str, result: DataType, extract: Extract, gather: Gather
) -> scalar.ScalarDefinition:
    """Define a function of (text, path): `extract` finds the values, `gather` joins those of a row to a `result`."""
    return scalar.custom(name, _resolver(result, extract, gather), count=2)


def _value_by_settings(changed: frozenset[str]) -> scalar.Resolver:
    """Return the resolver of JSON_VALUE under its settings, function_json_value_return_type_allow_…, that `changed`
    names: they allow NULL, and objects and arrays."""
    prefix = "function_json_value_return_type_allow_"
    nullable = f"{prefix}nullable" in changed
    return _resolver(
        Nullable(STRING) if nullable else STRING,
        _any_value if f"{prefix}complex" in changed else _value,
        _first_or_null if nullable else _first,
    )


def _resolver(result: DataType, extract: Extract, gather: Gather) -> scalar.Resolver:
    """Return the resolver of a function of (text, path), see `_definition`."""

    def resolve(spelt: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; the path is a constant text. Raises BadArguments for a wrong path."""
        scalar.require(spelt, [plain(arguments[0].type)], (String,), "a String")
        path = scalar.constant_text(spelt, arguments, 1, "the path")
        *segments, (last, _) = parse_path(spelt, path)

        def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            """Extract from each text the values at the path."""
            text = columns.text(arrays[0])
            owners, leaves = _follow(segments, text, call.environment)
            values = extract(_Path(last), leaves, call.environment)
            present = np.asarray(values.is_valid())
            return gather(values.drop_null(), owners[present], len(text))

        return scalar.standard_call(spelt, arguments, result, kernel)

    return resolve


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = scalar.with_count_errors(
    (
        _definition("JSON_EXISTS", UINT8, _query, _any),
        _definition("JSON_QUERY", STRING, _query, _all),
        replace(_definition("JSON_VALUE", STRING, _value, _first), by_settings=_value_by_settings),
    ),
    few=TooFewArguments,
)
