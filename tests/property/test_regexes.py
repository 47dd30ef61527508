"""Regular expressions in the kernel's form give what RE2 gives, whatever the pattern and the texts."""

from __future__ import annotations

import re
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olapdb.functions.kernels import regexes
from olapdb.functions.kernels.regex_programs import program_of
from olapdb.native.library import library

pytestmark = [
    pytest.mark.feature("functions"),
    pytest.mark.skipif(library() is None, reason="There are no compiled kernels to compare."),
]

CLASSES = (
    *("[abc]", "[^a]", "[^/]", r"\d", r"\w", ".", "[a-c1]", r"\s", r"\W", r"[^ab\d]", "[]a]"),
    *("[a-]", r"\.", r"\x", r"\x61", r"[\x00-\x41]", "[[:alpha:]]", r"\b", "(?i:a)", "é"),
)
REPEATS = (*[""] * 6, "*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{2,}", "{0}")
ALPHABET = "abcA/.:1 \n"


def alternatives(random: Random, depth: int) -> str:
    return "|".join(sequence(random, depth) for _ in range(random.randint(1, 3)))


def sequence(random: Random, depth: int) -> str:
    return "".join(part(random, depth) for _ in range(random.randint(1, 4)))


def part(random: Random, depth: int) -> str:
    kind = random.random()
    if kind < 0.05:
        return random.choice("^$")
    if kind < 0.15 and depth < 3:
        text = f"({sequence(random, depth + 1)})"
    elif kind < 0.25 and depth < 3:
        text = f"(?:{alternatives(random, depth + 1)})"
    elif kind < 0.45:
        text = random.choice(CLASSES)
    else:
        text = re.escape(random.choice(ALPHABET))
    return text + random.choice(REPEATS)


def drawn_texts(random: Random) -> pa.Array:
    """Return texts of few characters, some of them NULL, and some with a character that is not ASCII."""
    texts: list[str | None] = [
        "".join(random.choice(ALPHABET) for _ in range(random.randint(0, 14))) for _ in range(120)
    ]
    for at in range(random.randrange(9), 120, random.choice([5, 50, 200])):
        texts[at] = None
    for at in range(random.randrange(9), 120, random.choice([2, 7, 60, 200])):
        texts[at] = f"{texts[at] or ''}éab"
    return pa.array(texts, pa.string()).slice(random.randint(0, 3))


@given(seed=st.integers(0, 2**32 - 1))
def test_groups_and_replacements_are_those_of_re2(seed: int) -> None:
    random = Random(seed)
    numbers = iter(range(1, 100))
    drawn = random.choice(["", "(?s)", "(?i)", "(?is)"]) + alternatives(random, 0)
    pattern = re.sub(r"(?<!\\)\((?!\?)", lambda _: f"(?P<g{next(numbers)}>", drawn)
    groups = next(numbers) - 1
    texts = drawn_texts(random)
    try:
        expected = pc.replace_substring_regex(texts, pattern, r"<\0>")
    except pa.ArrowInvalid:
        assert program_of(pattern) is None
        return
    assert regexes.replaced(texts, pattern, r"<\0>").equals(expected)
    if groups:
        rewrite = rf"\{min(groups, 9)}-\\\1"
        expected = pc.replace_substring_regex(texts, pattern, rewrite)
        assert regexes.replaced(texts, pattern, rewrite).equals(expected)
        extracted = regexes.extracted(texts, pattern)
        assert extracted.to_pylist() == pc.extract_regex(texts, pattern).to_pylist()


@pytest.mark.parametrize(
    ("pattern", "is_read"),
    [
        ("//([^/]+)", True),
        (r"^https?://(?:www\.)?([^/]+)/.*$", True),
        (r"(?i)[a-z]+\d{2,4}?", True),
        ("a|b|^c", True),
        (r"\bword\b", False),
        (r"\pL+", False),
        ("(a*)*", False),
        ("[[:alpha:]]", False),
        ("é", False),
        ("a^b", True),
        ("a{1001}", False),
        ("(?m)^a", False),
        ("(", False),
        ("a**", False),
    ],
)
def test_patterns_that_the_kernel_reads(pattern: str, is_read: bool) -> None:
    assert (program_of(pattern) is not None) is is_read


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("end", ["", "é"])
def test_what_stands_behind_a_match_decides_it(rows: int, end: str) -> None:
    texts = pa.array([f"ba \nc.{end}"] * rows)
    (new,) = set(regexes.replaced(texts, r"(\s\s)$|[^a]\s", r"[\1]", 1).to_pylist())
    assert new == f"ba[]c.{end}"  # Arrow looks at the match alone, where $ holds


@given(seed=st.integers(0, 2**32 - 1))
def test_the_first_match_is_replaced_alike_for_few_texts_and_many(seed: int) -> None:
    random = Random(seed)
    pattern = random.choice(["", "(?s)", "(?i)"]) + alternatives(random, 0)
    texts = drawn_texts(random)
    try:
        one_by_one = [regexes.replaced(texts.slice(at, 1), pattern, r"<\0>", 1) for at in range(40)]
    except pa.ArrowInvalid:
        return
    assert (
        regexes.replaced(texts, pattern, r"<\0>", 1)
        .slice(0, 40)
        .equals(pa.concat_arrays(one_by_one))
    )


def test_a_search_of_many_steps_is_left_to_re2() -> None:
    texts = pa.array(["a" * 3_000 + "b", "c" * 50] * 100)
    pattern = "(?P<x>(?:a|aa)+)+c"
    assert regexes.extracted(texts, pattern).equals(pc.extract_regex(texts, pattern))
    assert regexes.replaced(texts, pattern, "x").equals(texts)


def test_what_replaces_may_be_larger_than_the_text() -> None:
    texts = pa.array(["ab" * 100] * 100)
    new = regexes.replaced(texts, "(?:a)", r"<\0\0\0\0\0\0\0\0\0>")
    assert new.equals(pc.replace_substring_regex(texts, "(?:a)", r"<\0\0\0\0\0\0\0\0\0>"))
