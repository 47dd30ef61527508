"""Tuples and arrays of numbers as vectors: products, norms, distances; scores of ranked lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from olapdb.errors import ArgumentOutOfBound, BadArguments, SizesOfArraysDoNotMatch
from olapdb.functions import scalar
from olapdb.functions.arrays.type_rules import element_type
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.composition import Term, as_call, call, literal, parts_of
from olapdb.functions.kernels import columns
from olapdb.functions.kernels.by_value import define_by_value
from olapdb.functions.numeric.maths import floats
from olapdb.types import (
    FLOAT32,
    FLOAT64,
    UINT8,
    Array,
    Boolean,
    DataType,
    Enum,
    Float,
    Integer,
    Tuple,
    is_nullable,
    plain,
)


def _element(whole: Term, at: int) -> Term:
    """Compose the access to element `at`, from 1, of a tuple."""
    return call("tupleElement", whole, literal(at, UINT8))


def _elements(name: str, whole: Term) -> list[Term]:
    """Compose the list of a tuple's elements. Raises IllegalTypeOfArgument for another type."""
    data_type = plain(whole.type)
    if not isinstance(data_type, Tuple) or not data_type.elements:
        raise scalar.illegal(name, whole.type, "a Tuple of numbers")
    return [_element(whole, at) for at in range(1, len(data_type.elements) + 1)]


def _folded(name: str, parts: Sequence[Term]) -> Term:
    """Compose f(f(a, b), c) … of the parts, where f is the function `name`."""
    total = parts[0]
    for part in parts[1:]:
        total = call(name, total, part)
    return total


def _norm_of(kind: str, parts: Sequence[Term], power: Term | None) -> Term:
    """Compose the norm of the parts by `kind`: L1, L2, L2Squared, Linf, or Lp with `power`."""
    sizes = [call("abs", part) for part in parts]
    match kind:
        case "L1":
            return _folded("plus", sizes)
        case "Linf":
            return _folded("max2", sizes)
        case "L2Squared" | "L2":
            squares = _folded("plus", [call("multiply", part, part) for part in parts])
            return squares if kind == "L2Squared" else call("sqrt", squares)
    assert power is not None
    total = _folded("plus", [call("pow", size, power) for size in sizes])
    return call("pow", total, call("divide", literal(1, UINT8), power))


def _power(name: str, arguments: Sequence[Argument], parts: list[Term]) -> Term | None:
    """Return the power of an Lp function, its last argument; None for other functions. Raises ArgumentOutOfBound
    below 1."""
    if not name.startswith("Lp"):
        return None
    constant = arguments[-1].constant
    value = None if constant is None else constant.as_py()
    if not isinstance(plain(arguments[-1].type), Integer | Float) or value is None:
        raise scalar.illegal(name, arguments[-1].type, "a constant number")
    if not value >= 1:
        raise ArgumentOutOfBound(f"The power of {name} is at least 1.")
    return parts[-1]


def _norm(kind: str) -> scalar.Resolver:
    """Return the resolver of a norm of a tuple or an array."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the norm of the first argument."""
        parts = parts_of(arguments)
        power = _power(name, arguments, parts)
        if isinstance(plain(arguments[0].type), Array):
            return _array_call(name, arguments, kind, 1)
        return as_call(name, _norm_of(kind, _elements(name, parts[0]), power))

    return resolve


def _distance(kind: str) -> scalar.Resolver:
    """Return the resolver of a distance of two tuples or arrays: the norm of their difference."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the distance of the first two arguments."""
        parts = parts_of(arguments)
        power = _power(name, arguments, parts)
        if isinstance(plain(arguments[0].type), Array):
            return _array_call(name, arguments, kind, 2)
        pairs = _pairs(name, parts)
        return as_call(name, _norm_of(kind, [call("minus", a, b) for a, b in pairs], power))

    return resolve


def _pairs(name: str, parts: Sequence[Term]) -> list[tuple[Term, Term]]:
    """Return the pairs of corresponding elements of two tuples. Raises IllegalTypeOfArgument for tuples of different
    sizes."""
    left, right = _elements(name, parts[0]), _elements(name, parts[1])
    if len(left) != len(right):
        raise scalar.illegal(name, parts[1].type, f"a tuple of {len(left)} elements")
    return list(zip(left, right, strict=True))


def _normalize(kind: str) -> scalar.Resolver:
    """Return the resolver of a function that divides a tuple or array by its norm."""

    def resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
        """Resolve the division of each element."""
        parts = parts_of(arguments)
        power = _power(name, arguments, parts)
        if isinstance(plain(arguments[0].type), Array):
            return _normal_array(name, arguments, kind)
        elements = _elements(name, parts[0])
        norm = _norm_of(kind, elements, power)
        return as_call(name, call("tuple", *(call("divide", e, norm) for e in elements)))

    return resolve


def _dot(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve dotProduct of two tuples or arrays."""
    if isinstance(plain(arguments[0].type), Array):
        return _array_call(name, arguments, "dot", 2)
    pairs = _pairs(name, parts_of(arguments))
    return as_call(name, _folded("plus", [call("multiply", a, b) for a, b in pairs]))


def _cosine(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve cosineDistance(x, y): 1 - dot(x, y) / (norm(x) * norm(y))."""
    if isinstance(plain(arguments[0].type), Array):
        return _array_call(name, arguments, "cosine", 2)
    pairs = _pairs(name, parts_of(arguments))
    product = _folded("plus", [call("multiply", a, b) for a, b in pairs])
    lengths = [_norm_of("L2", [pair[side] for pair in pairs], None) for side in (0, 1)]
    ratio = call("divide", product, call("multiply", *lengths))
    return as_call(name, call("minus", literal(1, UINT8), ratio))


# --- arrays


def _array_result(name: str, kind: str, inners: Sequence[DataType]) -> DataType:
    """Return the result type of a norm, distance or product of arrays: Float32 or Float64, or an integer for a
    product of integers."""
    numbers = [plain(inner) for inner in inners]
    scalar.require(
        name, inners, (Integer, Float, Boolean), "an Array of numbers of 64 bits at most"
    )
    if kind == "dot" and all(isinstance(n, Integer | Boolean) for n in numbers):
        return _product_type(numbers)
    small = all(
        (isinstance(n, Float) and n.bits <= 32) or (isinstance(n, Integer) and n.bits <= 16)
        for n in numbers
    ) and any(isinstance(n, Float) for n in numbers)
    return FLOAT32 if small else FLOAT64


def _product_type(numbers: Sequence[DataType]) -> DataType:
    """Return the integer type of a sum of products of integers."""
    widths = [n.bits if isinstance(n, Integer) else 8 for n in numbers]
    signed = any(isinstance(n, Integer) and n.signed for n in numbers)
    return Integer(min(max(widths) * 2, 64), signed)


def _array_call(name: str, arguments: Sequence[Argument], kind: str, vectors: int) -> ScalarCall:
    """Build the call of a norm, distance or product (`kind`) over `vectors` arrays of numbers."""
    inners = [element_type(name, a.type) for a in arguments[:vectors]]
    result = _array_result(name, kind, inners)

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Compute each row's value. Raises SizesOfArraysDoNotMatch if the arrays of a row differ in length."""
        lists = [columns.elements_of(array) for array in arrays[:vectors]]
        if vectors == 2 and not np.array_equal(lists[0][0], lists[1][0]):
            raise SizesOfArraysDoNotMatch(f"The arrays given to {name} have different lengths.")
        offsets = lists[0][0]
        values = [floats(elements) for _, elements in lists]
        if kind == "dot" and isinstance(result, Integer):
            values = [columns.numpy_values(e).astype(np.int64) for _, e in lists]
        power = float(arrays[-1][0].as_py()) if name.startswith("Lp") and call.rows else 1.0
        with np.errstate(all="ignore"):
            return columns.from_values(_reduced(kind, offsets, values, power), result.arrow)

    return scalar.standard_call(name, arguments, result, kernel)


def _normal_array(name: str, arguments: Sequence[Argument], kind: str) -> ScalarCall:
    """Build the call that divides the numbers of each array by the array's norm."""
    result = _array_result(name, kind, [element_type(name, arguments[0].type)])

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Divide each array by its norm."""
        offsets, elements = columns.elements_of(arrays[0])
        values = floats(elements)
        power = float(arrays[-1][0].as_py()) if name.startswith("Lp") and call.rows else 1.0
        with np.errstate(all="ignore"):
            norms = _reduced(kind, offsets, [values], power)
            divided = values / norms[columns.parents_of(offsets)]
            return columns.lists_from(offsets, columns.from_values(divided, result.arrow))

    return scalar.standard_call(name, arguments, Array(result), kernel)


def _reduced(kind: str, offsets: np.ndarray, values: list[np.ndarray], power: float) -> np.ndarray:
    """Return the norm, distance or product (`kind`) of each row's numbers; `power` is that of Lp."""
    owners, rows = columns.parents_of(offsets), len(offsets) - 1

    def total(numbers: np.ndarray) -> np.ndarray:
        """Return the sum of each row's numbers; integers wrap."""
        if numbers.dtype.kind == "i":
            sums = np.concatenate(([0], np.cumsum(numbers)))
            return np.asarray(sums[offsets[1:]] - sums[offsets[:-1]])
        return np.bincount(owners, numbers, rows)

    if kind == "dot":
        return total(values[0] * values[1])
    if kind == "cosine":
        lengths = np.sqrt(total(values[0] ** 2)) * np.sqrt(total(values[1] ** 2))
        return np.asarray(1 - total(values[0] * values[1]) / lengths)
    x = np.abs(values[0] - values[1] if len(values) > 1 else values[0])
    match kind:
        case "L1":
            return total(x)
        case "L2":
            return np.asarray(np.sqrt(total(x * x)))
        case "L2Squared":
            return total(x * x)
        case "Linf":
            largest = np.zeros(rows)
            np.maximum.at(largest, owners, x)
            return largest
    return np.asarray(total(x**power) ** (1 / power))


# --- scores of ranked lists


def _scores_rule(offsets_at: int) -> scalar.TypeRule:
    """Return the type rule of a function of scores and labels, whose argument number `offsets_at`, from 0, may be the
    offsets of a part of the curve."""

    def rule(name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]) -> DataType:
        """Return Float64; raise IllegalTypeOfArgument unless two arrays of numbers, and one of integers as offsets."""
        offsets = types[offsets_at:]
        for data_type in types[:2] + offsets:
            inner = element_type(name, data_type)
            if is_nullable(inner):
                raise scalar.illegal(name, data_type, "an Array of numbers without NULL")
            inner = plain(inner)
            scalar.require(name, [inner], (Integer, Float, Boolean, Enum), "an Array of numbers")
        for data_type in offsets:
            scalar.require(
                name, [plain(element_type(name, data_type))], (Integer,), "offsets as integers"
            )
        return FLOAT64

    return rule


def _require_pairs(name: str, scores: Sequence[float], labels: Sequence[float]) -> None:
    """Raise BadArguments unless there are as many scores as labels."""
    if len(scores) != len(labels):
        raise BadArguments(f"{name} takes as many scores as labels.")


def _require_offsets(name: str, offsets: Sequence[int], count: int) -> None:
    """Raise BadArguments unless there are `count` offsets, none of them negative."""
    if len(offsets) != count or min(offsets) < 0:
        raise BadArguments(f"{name} takes {count} offsets, which are not negative.")


def _roc_area(
    scores: list[float],
    labels: list[float],
    scale: bool = True,
    offsets: Sequence[int] = (0, 0, 0, 0),
) -> float:
    """Return the area under the ROC curve; without `scale` not divided by the product of the numbers of positives and
    negatives.

    `offsets` are of a part of a curve: the positives and negatives of higher scores, and those of all parts."""
    _require_pairs("arrayROCAUC", scores, labels)
    _require_offsets("arrayROCAUC", offsets, 4)
    order = sorted(range(len(scores)), key=lambda at: -scores[at])
    true_hits, false_hits, positives, negatives = offsets
    area = 0.0
    last_false, last_true, last_score = false_hits, true_hits, float("nan")
    for at in order:
        if scores[at] != last_score:
            area += (false_hits - last_false) * (true_hits + last_true) / 2
            last_false, last_true, last_score = false_hits, true_hits, scores[at]
        true_hits += labels[at] > 0
        false_hits += not labels[at] > 0
    area += (false_hits - last_false) * (true_hits + last_true) / 2
    if not scale:
        return area
    product = (positives or true_hits) * (negatives or false_hits)
    return area / product if product else float("nan")


def _precision_area(
    scores: list[float], labels: list[float], offsets: Sequence[int] = (0, 0, 0)
) -> float:
    """Return the area under the curve of precision over recall.

    `offsets` are of a part of a curve: the positives and negatives of higher scores, and the positives of all parts."""
    _require_pairs("arrayAUCPR", scores, labels)
    _require_offsets("arrayAUCPR", offsets, 3)
    order = sorted(range(len(scores)), key=lambda at: -scores[at])
    true_hits, false_hits, all_positives = offsets
    positives = all_positives or sum(label > 0 for label in labels)
    if not positives:
        return 0.0
    area, last_true, before = 0.0, true_hits, true_hits + false_hits
    for seen, at in enumerate(order, 1):
        true_hits += labels[at] > 0
        last = seen == len(order)
        if last or scores[order[seen]] != scores[at]:
            area += true_hits / (before + seen) * (true_hits - last_true)
            last_true = true_hits
    return area / positives


_NORMS = ("L1", "L2", "L2Squared", "Linf", "Lp")

DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    *(
        scalar.custom(
            f"{kind}Norm",
            _norm(kind),
            count=2 if kind == "Lp" else 1,
            aliases=(f"norm{kind}",),
            insensitive=True,
        )
        for kind in _NORMS
    ),
    *(
        scalar.custom(
            f"{kind}Distance",
            _distance(kind),
            count=3 if kind == "Lp" else 2,
            aliases=(f"distance{kind}",),
            insensitive=True,
        )
        for kind in _NORMS
    ),
    *(
        scalar.custom(
            f"{kind}Normalize",
            _normalize(kind),
            count=2 if kind == "Lp" else 1,
            aliases=(f"normalize{kind}",),
            insensitive=True,
        )
        for kind in _NORMS
        if kind != "L2Squared"
    ),
    scalar.custom("dotProduct", _dot, count=2, aliases=("scalarProduct",), insensitive=True),
    scalar.custom("arrayDotProduct", _dot, count=2),
    scalar.custom(
        "cosineDistance", _cosine, count=2, aliases=("distanceCosine",), insensitive=True
    ),
    define_by_value("arrayROCAUC", _scores_rule(3), _roc_area, count=(2, 4), aliases=("arrayAUC",)),
    define_by_value(
        "arrayAUCPR", _scores_rule(2), _precision_area, count=(2, 3), aliases=("arrayPRAUC",)
    ),
)
