"""The base classes of dbt-tests-adapter that the adapter has to pass, and how the suite runs each.

`base_classes.tsv` has a line for each class: module below `dbt.tests.adapter`, class, rank (MUST or
SHOULD), what of its set-up is translated and why, and what fails still. A class whose set-up is not
translated runs as it is, from `test_unmodified.py`; another one has a subclass in the file of its
area. "Fails still" names tests, or all of the class if it names none:

    test_a, test_b[parameter]: the engine has no Python functions
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = "dbt.tests.adapter"
FILE = Path(__file__).with_name("base_classes.tsv")
RANKS = ("MUST", "SHOULD")


@dataclass(frozen=True)
class BaseClass:
    """A base class: where it is, its rank, what is translated, and what fails still."""

    module: str
    name: str
    rank: str
    translated: str
    failing: str

    @property
    def area(self) -> str:
        """Return the folder of the class in dbt-tests-adapter."""
        return self.module.split(".")[0]

    def load(self) -> type:
        """Import the class."""
        base: type = getattr(importlib.import_module(f"{PACKAGE}.{self.module}"), self.name)
        return base

    def failure_of(self, test: str) -> str:
        """Return why this test fails still, "" if it passes."""
        tests, colon, reason = self.failing.partition(": ")
        if not colon:
            return self.failing
        names = tests.split(", ")
        return reason if test in names or test.split("[")[0] in names else ""


@cache
def base_classes() -> Sequence[BaseClass]:
    """Read the classes, in the order of the file."""
    lines = FILE.read_text().splitlines()
    return [BaseClass(*line.split("\t")) for line in lines[1:]]


@cache
def _by_class() -> dict[type, BaseClass]:
    return {base.load(): base for base in base_classes()}


def base_of(test_class: type | None) -> BaseClass | None:
    """Return the nearest listed base class of a test class, None if it has none."""
    known = _by_class()
    return next((known[base] for base in (test_class or object).__mro__ if base in known), None)
