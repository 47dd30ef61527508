"""Guardrails: the most that one view may cost an INSERT.

Every `max_view_…` setting is off at 0.  In mode `view_limits_mode = 'throw'` a view that exceeds
one fails like a view that raises: nothing of the INSERT is inserted, or its block is the view's
gap, as `materialized_views_ignore_errors` says.  In mode `'warn'` the INSERT only gets a warning.
Time is checked after a block, memory while the view runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from olapdb.config import Settings
from olapdb.errors import MemoryLimitExceeded, ViewLimitExceeded
from olapdb.model.schema import MaterializedView
from olapdb.records import dataclass

SETTINGS = (
    "max_view_milliseconds",
    "max_view_rows_expansion",
    "max_view_parts",
    "max_view_memory_usage",
)
HINT = (
    "Let the view make less of a block, raise the setting (0 is no limit), or set view_limits_mode"
    " = 'warn'."
)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one view in an INSERT so far; `expansion` is its output rows per input row of
    the last block."""

    elapsed_ns: int
    expansion: float
    parts: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class ViewLimits:
    """The guardrails of one INSERT, 0 for none; `throws` False only warns."""

    milliseconds: int = 0
    rows_expansion: float = 0.0
    parts: int = 0
    memory_bytes: int = 0
    throws: bool = True

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> ViewLimits:
        """Return the guardrails in the settings."""
        values = Settings.of(settings)
        return cls(
            values.integer("max_view_milliseconds"),
            values.number("max_view_rows_expansion"),
            values.integer("max_view_parts"),
            values.integer("max_view_memory_usage"),
            values.text("view_limits_mode") != "warn",
        )

    @property
    def memory_cap_bytes(self) -> int:
        """Return the bytes at which the view's query is ended while it runs; 0 where they are only
        checked after it."""
        return self.memory_bytes if self.throws else 0

    def check(self, view: MaterializedView, cost: Cost) -> tuple[str, ...]:
        """Return the warnings of the view's cost; raise ViewLimitExceeded for the first in mode
        throw."""
        warnings = tuple(self._exceeded(f"{view.database}.{view.name}", cost))
        if warnings and self.throws:
            raise ViewLimitExceeded(f"{warnings[0]}", hint=HINT)
        return warnings

    def _exceeded(self, name: str, cost: Cost) -> list[str]:
        """Return a warning for each guardrail that the cost exceeds."""
        warnings: list[str] = []
        elapsed_ms = cost.elapsed_ns / 1_000_000
        if self.milliseconds and elapsed_ms > self.milliseconds:
            warnings.append(
                f"View {name} has taken {elapsed_ms:.1f} ms of the INSERT; max_view_milliseconds is"
                f" {self.milliseconds}."
            )
        if self.rows_expansion and cost.expansion > self.rows_expansion:
            warnings.append(
                f"View {name} made {cost.expansion:.2f} rows of each row of its block;"
                f" max_view_rows_expansion is {self.rows_expansion:g}."
            )
        if self.parts and cost.parts > self.parts:
            warnings.append(
                f"View {name} has written {cost.parts} parts in the INSERT; max_view_parts is"
                f" {self.parts}."
            )
        if self.memory_bytes and cost.peak_bytes > self.memory_bytes:
            warnings.append(
                f"View {name} held {cost.peak_bytes:,} bytes; max_view_memory_usage is"
                f" {self.memory_bytes:,}."
            )
        return warnings


def memory_limit_error(
    view: MaterializedView, limits: ViewLimits, error: MemoryLimitExceeded
) -> ViewLimitExceeded:
    """Return the error of a view that exceeded max_view_memory_usage, naming the view."""
    return ViewLimitExceeded(
        f"View {view.database}.{view.name} would hold more than {limits.memory_bytes:,} bytes;"
        f" max_view_memory_usage is that. {error.message}",
        hint=HINT,
    )
