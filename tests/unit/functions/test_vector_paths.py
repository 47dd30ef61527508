"""Vectorised paths compared with plain Python, one value at a time."""

from __future__ import annotations

import json
import random
from decimal import Decimal as PythonDecimal

import numpy as np
import pyarrow as pa
import pytest

from olapdb.functions import Argument, Environment, cast_column, parse_type, resolve_scalar
from olapdb.functions.datetime import fixed_format
from olapdb.functions.kernels import columns, slices
from olapdb.types import STRING

pytestmark = pytest.mark.feature("functions")

ROWS = 3_000


@pytest.mark.parametrize("places", [1, 7, slices.PLACES_AT_ONCE])
def test_find_with_a_needle_for_each_row(monkeypatch: pytest.MonkeyPatch, places: int) -> None:
    """Rows are searched all at once, a few at a time, or long ones one by one."""
    monkeypatch.setattr(slices, "PLACES_AT_ONCE", places)
    generator = random.Random(2)
    texts = ["".join(generator.choices("abü", k=generator.randint(0, 12))) for _ in range(ROWS)]
    needles = ["".join(generator.choices("abü", k=generator.randint(0, 4))) for _ in range(ROWS)]
    positions = slices.find(pa.array(texts).slice(5), pa.array(needles).slice(5))
    pairs = zip(texts[5:], needles[5:], strict=True)
    assert positions.tolist() == [text.encode().find(needle.encode()) for text, needle in pairs]


def test_find_with_one_needle_and_with_empty_ones() -> None:
    texts = pa.array(["abc", "", "bc"])
    assert slices.find(texts, pa.array(["bc"] * 3)).tolist() == [1, -1, 0]
    assert slices.find(texts, pa.array(["", "", "c"])).tolist() == [0, 0, 1]
    assert slices.find(texts.slice(0, 0), pa.array([], pa.string())).tolist() == []


@pytest.mark.parametrize(
    "template",
    ["%Y-%m-%d %H:%i:%S", "%F %T", "%D|%R|%y|%j", "%I:%h %%ü%s", "%d", "%a, %d %b %Y %I:%i %p"],
)
def test_fixed_layouts_write_as_arrow_does(template: str) -> None:
    generator = np.random.default_rng(1)
    seconds = np.concatenate(
        (generator.integers(-(2**33), 2**33, ROWS), np.arange(-3, 90_000, 1_801))
    )
    layout = fixed_format.layout_of(template)
    assert layout is not None
    written = fixed_format.write(seconds, layout)
    wall = pa.array(seconds).cast(pa.timestamp("s"))
    arrow = {"%i": "%M", "%h": "%I", "%s": "%S", "%F": "%Y-%m-%d", "%T": "%H:%M:%S"}
    spelt = template.replace("%%", "\0").replace("%D", "%m/%d/%y").replace("%R", "%H:%M")
    for ours, theirs in arrow.items():
        spelt = spelt.replace(ours, theirs)
    assert written == pa.compute.strftime(wall, format=spelt.replace("\0", "%%"))


def test_formats_without_a_fixed_layout() -> None:
    for template in ("%M", "%Y %W", "%e", "%f", "%", "%x"):
        assert fixed_format.layout_of(template) is None
    years = np.array([-62_200_000_000, 0])
    assert fixed_format.write(years, ("Y",)) is None


@pytest.mark.parametrize(
    "type_name", ["Decimal(9, 2)", "Decimal(18, 4)", "Decimal(38, 10)", "Decimal(76, 30)"]
)
def test_both_parsers_of_decimals_agree(type_name: str) -> None:
    """A column with one exponent parses like a column without."""
    generator = random.Random(4)
    target = parse_type(type_name)
    scale = target.arrow.scale
    texts = []
    for _ in range(500):
        whole, places = generator.randint(-999_999, 999_999), generator.randint(0, scale)
        texts.append(f"{whole}." + "".join(generator.choices("0123456789", k=places)))
    texts += ["-0.5", ".5", "5.", "-0", "007"]
    plain = cast_column(pa.array(texts), STRING, target, Environment(), strict=True)
    mixed = cast_column(pa.array([*texts, "+1e0"]), STRING, target, Environment(), strict=True)
    assert plain == mixed.slice(0, len(texts))
    assert plain.to_pylist()[:300] == [PythonDecimal(text) for text in texts[:300]]


def test_long_texts_of_decimals_do_not_wrap() -> None:
    target = parse_type("Decimal(38, 10)")
    texts = pa.array(["99999999999999999999999999999999999"])
    with pytest.raises(Exception, match="too many digits"):
        cast_column(texts, STRING, target, Environment(), strict=True)


def test_escapes_in_json() -> None:
    generator = random.Random(3)
    pieces = (
        "a",
        "\\n",
        "\\t",
        "\\\\",
        '\\"',
        "\\/",
        "\\u0041",
        "\\u00e4",
        "ü",
        "\\b",
        "\\f",
        "\\r",
        "n",
        "/",
    )
    bodies = ["".join(generator.choices(pieces, k=generator.randint(0, 6))) for _ in range(ROWS)]
    call = resolve_scalar(
        "simpleJSONExtractString", [Argument(STRING), Argument(STRING, pa.scalar("a"))]
    )
    documents = pa.array([f'{{"a":"{body}"}}' for body in bodies])
    result = call.kernel([documents, pa.scalar("a")], len(documents), Environment())
    assert columns.as_array(result, ROWS).to_pylist() == [json.loads(f'"{b}"') for b in bodies]
