"""Ratios as a table and as JSON: never seconds, which say nothing about another machine."""

from __future__ import annotations

import json
import math
import statistics
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

TITLES = {"chdb": "chDB", "duckdb": "DuckDB"}
NAME_WIDTH, RATIO_WIDTH = 40, 24


@dataclass(frozen=True)
class Ratio:
    """olapdb's time over another engine's: the median of the rounds, the smallest, the largest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, ratios: Sequence[float]) -> Ratio:
        return cls(statistics.median(ratios), min(ratios), max(ratios))

    def as_json(self) -> dict[str, float | None]:
        """What cannot be known, since nothing was left to divide by, is null."""
        return {k: None if math.isnan(v) else round(v, 4) for k, v in vars(self).items()}

    def __str__(self) -> str:
        spread = f"({_short(self.low)} to {_short(self.high)})"
        return f"{_short(self.median):>7} {spread:<{RATIO_WIDTH - 8}}"


@dataclass
class Report:
    """Prints each row as it is known; `write` gives the whole as JSON."""

    others: Sequence[str]
    head: dict[str, object]
    groups: list[dict[str, object]] = field(default_factory=list)
    rows: list[dict[str, object]] = field(default_factory=list)

    def begin(self, about: str) -> None:
        """`about`: what is measured and how, a line or more."""
        print(textwrap.fill(about, 110))
        print(
            "A number is olapdb's time over the other's, the median of the rounds and the spread;"
        )
        print("below 1 olapdb is faster. Answers are compared before anything counts.", flush=True)

    def group(self, name: str, about: str, others: Sequence[str]) -> None:
        self.rows = []
        self.groups.append({"group": name, "about": about, "measurements": self.rows})
        print(f"\n{name}")
        print(textwrap.fill(about, 110, initial_indent="  ", subsequent_indent="  "))
        titles = "".join(f"{'to ' + TITLES[other]:>{RATIO_WIDTH - 12}}{'':12}" for other in others)
        print(f"  {'':<{NAME_WIDTH}}{titles}".rstrip(), flush=True)

    def row(self, name: str, ratios: dict[str, Ratio]) -> None:
        self.rows.append(
            {"name": name, **{other: ratio.as_json() for other, ratio in ratios.items()}}
        )
        progress("")
        shown = "".join(str(ratios[other]) for other in self.others if other in ratios)
        print(f"  {name:<{NAME_WIDTH}}{shown}".rstrip(), flush=True)

    def summary(self) -> None:
        """Prints the geometric mean of the group's medians so far, and the largest with its name."""
        for other in self.others:
            medians = {
                str(row["name"]): float(ratio["median"])
                for row in self.rows
                if isinstance(ratio := row.get(other), dict) and ratio["median"]
            }
            if medians:
                worst = max(medians, key=lambda name: medians[name])
                mean = statistics.geometric_mean(medians.values())
                print(
                    f"  to {TITLES[other]}: geometric mean {_short(mean)}, worst {worst} with "
                    f"{_short(medians[worst])}",
                    flush=True,
                )

    def write(self, file: Path) -> None:
        file.write_text(json.dumps({**self.head, "groups": self.groups}, indent=1) + "\n")


def progress(text: str) -> None:
    """What runs now, on stderr: one line that is written over, or a line each in a file."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()
    elif text:
        print(text, file=sys.stderr, flush=True)


def _short(value: float) -> str:
    return (
        f"{value:.0f}"
        if abs(value) >= 100
        else f"{value:.1f}"
        if abs(value) >= 10
        else f"{value:.2f}"
    )
