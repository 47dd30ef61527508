"""Ratios as a table and as JSON: never seconds, which say nothing about another machine."""

from __future__ import annotations

import json
import math
import statistics
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TITLES = {"chdb": "chDB", "duckdb": "DuckDB"}
BETTER = "the better of both"
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
        """Return the results as JSON; a ratio to nothing is null."""
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
    notes: list[dict[str, str]] = field(default_factory=list)

    def begin(self, about: str) -> None:
        """`about`: what is measured and how, a line or more."""
        print(textwrap.fill(about, 110))
        print(
            "A number is olapdb's time over the other's, the median of the rounds and the spread;"
        )
        print("below 1 olapdb is faster. Answers are compared before anything counts.", flush=True)

    def group(self, name: str, about: str, others: Sequence[str]) -> None:
        self.rows, self.notes = [], []
        self.groups.append(
            {"group": name, "about": about, "measurements": self.rows, "notes": self.notes}
        )
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

    def note(self, name: str, text: str) -> None:
        """Add what is known of olapdb alone."""
        self.notes.append({"name": name, "note": text})
        progress("")
        print(textwrap.fill(f"{name}: {text}", 110, initial_indent="  ", subsequent_indent="    "))
        sys.stdout.flush()

    def summary(self) -> None:
        """Prints the geometric mean of the group's medians so far, and the largest with its name:
        to each other engine, then to the better one of each measurement."""
        for title, mean, worst, largest in self._means(self.rows):
            print(
                f"  to {title}: geometric mean {_short(mean)}, worst {worst} with {_short(largest)}",
                flush=True,
            )

    def _means(self, rows: Sequence[dict[str, object]]) -> Iterator[tuple[str, float, str, float]]:
        """Return for each other engine, and the better one: its title, the geometric mean, the worst
        measurement and its ratio."""
        by_title: dict[str, dict[str, float]] = {}
        for row in rows:
            medians = {
                TITLES[other]: float(ratio["median"])
                for other in self.others
                if isinstance(ratio := row.get(other), dict) and ratio["median"]
            }
            if len(self.others) > 1 and medians:
                medians[BETTER] = max(medians.values())
            for title, median in medians.items():
                by_title.setdefault(title, {})[str(row["name"])] = median
        for title, of_rows in by_title.items():
            worst = max(of_rows, key=lambda name: of_rows[name])
            positive = [median for median in of_rows.values() if median > 0]
            if positive:
                yield title, statistics.geometric_mean(positive), worst, of_rows[worst]

    def write(self, file: Path) -> None:
        file.write_text(json.dumps({**self.head, "groups": self.groups}, indent=1) + "\n")

    def write_markdown(self, file: Path) -> None:
        """Write a table for each group, its geometric means and worst ratios below it."""
        file.write_text("\n".join(self._markdown()) + "\n", encoding="utf-8")

    def _markdown(self) -> Iterator[str]:
        yield "olapdb's time over the other's: the median of the rounds, and the spread."
        yield ""
        yield from (f"- {key}: {_listed(value)}" for key, value in self.head.items())
        for group in self.groups:
            rows, notes = group["measurements"], group["notes"]
            assert isinstance(rows, list)
            assert isinstance(notes, list)
            others = [other for other in self.others if any(other in row for row in rows)]
            titles = [TITLES[other] for other in others]
            yield from ("", f"## {group['group']}", "", str(group["about"]), "")
            if rows:
                yield f"| measurement | {' | '.join(f'to {title}' for title in titles)} |"
                yield "|---" * (1 + len(others)) + "|"
            for row in rows:
                cells = [_cell(row.get(other)) for other in others]
                yield f"| {str(row['name']).replace('|', chr(92) + '|')} | {' | '.join(cells)} |"
            if rows:
                yield ""
            for title, mean, worst, largest in self._means(rows):
                yield (
                    f"- to {title}: geometric mean {_short(mean)}, worst {worst} "
                    f"with {_short(largest)}"
                )
            yield from (f"- {note['name']}: {note['note']}" for note in notes)


def progress(text: str) -> None:
    """Show what runs now, on stderr: one line that is written over, or a line each in a file."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()
    elif text:
        print(text, file=sys.stderr, flush=True)


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _cell(ratio: object) -> str:
    """Return a ratio as JSON has it; empty where the engine does not take part."""
    if not isinstance(ratio, dict):
        return ""
    if ratio["median"] is None:
        return "unknown"
    return f"{_short(ratio['median'])} ({_short(ratio['low'])} to {_short(ratio['high'])})"


def _short(value: float) -> str:
    return (
        f"{value:.0f}"
        if abs(value) >= 100
        else f"{value:.1f}"
        if abs(value) >= 10
        else f"{value:.2f}"
    )
