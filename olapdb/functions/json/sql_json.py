"""JSON_EXISTS, JSON_QUERY and JSON_VALUE: values at a path such as `$.a[0].b`, of SQL's JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, NotSupportedError
from olapdb.functions import scalar
from olapdb.functions.base import Argument, Column, Environment, ScalarCall
from olapdb.functions.kernels import columns
from olapdb.functions.registry import resolve_scalar
from olapdb.types import INT64, STRING, UINT8, DataType, String, plain

_STEP = re.compile(
    r"""\.(?P<name>[A-Za-z_][\w-]*)|\[\s*(?P<place>\d+)\s*\]|(?P<every>\[[^\]]*\])"""
)
_QUOTED = re.compile(r"""\."(?P<name>[^"]*)"|\[\s*["'](?P<key>[^"']*)["']\s*\]""")


def _steps(name: str, path: str) -> list[str | int]:
    """Return the keys and the places, from 0, of a path.

    Raises NotSupportedError for ranges and `[*]`, BadArguments for a text that is no path.
    """
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        match = _QUOTED.match(path, at) or _STEP.match(path, at)
        if match is None:
            break
        found = match.groupdict()
        if found.get("every"):
            raise NotSupportedError(
                f"{name}: {found['every']} in a path is not supported.",
                hint="Name one place, $.a[0], or take JSONExtractArrayRaw.",
            )
        place = found.get("place")
        steps.append(int(place) if place is not None else found["name"] or found.get("key") or "")
        at = match.end()
    if not path.startswith("$") or at < len(path):
        raise BadArguments(
            f"Unable to parse the JSONPath {path!r} of {name}.", hint="Write $.key[0].key."
        )
    return steps


class _Path:
    """A path's calls of the functions JSON…, on the same text."""

    def __init__(self, name: str, arguments: Sequence[Argument]) -> None:
        steps = _steps(name, scalar.constant_text(name, arguments, 1, "the path"))
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
        """Return the call of a function JSON… on the text with the first `length` steps."""
        return resolve_scalar(function, [text, *self._arguments[:length]])

    def run(
        self, call: ScalarCall, text: Column, environment: Environment, length: int | None = None
    ) -> pa.Array:
        """Return the results of a call of `call` for an array of texts."""
        values = [text, *self._values[:length]]
        result = call.kernel(values, len(text), environment)
        return columns.as_array(result, len(text))

    def reaches(self, text: pa.Array, source: Argument, environment: Environment) -> np.ndarray:
        """Return for which texts the path has a value, places being those of arrays only."""
        holds = columns.numpy_values(self.run(self.call("JSONHas", source), text, environment)) != 0
        for at in self._places:
            kinds = self.run(self.call("JSONType", source, at), text, environment, at)
            holds &= np.asarray(pc.equal(kinds, "Array"))
        return np.asarray(holds)


Extract = Callable[[_Path, pa.Array, Argument, Environment], pa.Array]


def _exists(path: _Path, text: pa.Array, source: Argument, environment: Environment) -> pa.Array:
    """Return whether there is a value."""
    return columns.from_values(path.reaches(text, source, environment), pa.uint8())


def _query(path: _Path, text: pa.Array, source: Argument, environment: Environment) -> pa.Array:
    """Return the JSON of the value in brackets, '' where there is none."""
    raw = path.run(path.call("JSONExtractRaw", source), text, environment)
    found = pa.array(path.reaches(text, source, environment))
    return pc.if_else(found, pc.binary_join_element_wise("[", raw, "]", ""), "")


def _value(path: _Path, text: pa.Array, source: Argument, environment: Environment) -> pa.Array:
    """Return the text of a string, number, truth value or null; '' for others."""
    raw = path.run(path.call("JSONExtractRaw", source), text, environment)
    strings = path.run(path.call("JSONExtractString", source), text, environment)
    found = np.asarray(pc.invert(pc.match_substring_regex(raw, r"^[\[{]")))
    found &= path.reaches(text, source, environment)
    shown = pc.if_else(pc.starts_with(raw, '"'), strings, raw)
    return pc.if_else(pa.array(found), shown, "")


def _definition(name: str, result: DataType, extract: Extract) -> scalar.ScalarDefinition:
    """Define a function (text, path)."""

    def resolve(spelt: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the call; the path is a constant."""
        scalar.require(spelt, [plain(arguments[0].type)], (String,), "a String")
        path, source = _Path(spelt, arguments), Argument(STRING)

        def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
            """Extract from each text the value at the path."""
            return extract(path, columns.text(arrays[0]), source, call.environment)

        return scalar.standard_call(spelt, arguments, result, kernel)

    return scalar.custom(name, resolve, count=2)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    _definition("JSON_EXISTS", UINT8, _exists),
    _definition("JSON_QUERY", STRING, _query),
    _definition("JSON_VALUE", STRING, _value),
)
