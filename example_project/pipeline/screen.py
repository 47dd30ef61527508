"""The demo's output: headings, tables and progress bars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table


class Screen:
    def __init__(self) -> None:
        self.console = Console(highlight=False)

    def step(self, number: int, title: str) -> None:
        self.console.print()
        self.console.rule(f"[bold]{number}. {title}", align="left")

    def say(self, text: str) -> None:
        self.console.print(text, markup=True)

    def plain(self, text: str, style: str = "") -> None:
        """Print text literally: brackets in it are no markup."""
        self.console.print(text, style=style, markup=False, soft_wrap=True)

    def table(self, title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table, with numbers right-aligned and thousands separated."""
        listed = [list(row) for row in rows]
        table = Table(
            title=title,
            title_justify="left",
            title_style="bold",
            header_style="dim",
            box=SIMPLE_HEAD,
        )
        for at, heading in enumerate(headings):
            numeric = bool(listed) and all(isinstance(row[at], int | float) for row in listed)
            justify = "right" if numeric else "left"
            table.add_column(heading, justify=justify, overflow="fold", no_wrap=at == 0)
        for row in listed:
            table.add_row(*(_shown(value) for value in row))
        self.console.print(table)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Show progress bars, which stay on the screen when they are done."""
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self.console) as bars:
            yield bars


def _shown(value: object) -> str:
    from rich.markup import escape

    match value:
        case bool():
            return "[green]yes" if value else "[bold red]NO"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"
        case _:
            return escape(str(value))
