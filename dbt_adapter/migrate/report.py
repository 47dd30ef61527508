"""The report of a migration: model by model what it becomes, and what is wrong with it today."""

from __future__ import annotations

from collections.abc import Sequence

from .decide import Decision


def report_lines(decisions: Sequence[Decision]) -> list[str]:
    """Return the report as lines of Markdown, the models by path."""
    lines: list[str] = []
    for decision in sorted(decisions, key=lambda d: str(d.model.path)):
        before, after = decision.model.materialized, decision.becomes
        change = f"{before} → {after}" if before != after else f"{before}, unchanged"
        if before == after and decision.changed:
            change = f"{before}, other config"
        lines.append(f"{decision.model.path}: {change}")
        lines += [f"    today: {problem}" for problem in decision.today]
        lines += [f"    here:  {note}" for note in decision.notes]
    views = [d for d in decisions if d.model.materialized != d.becomes]
    wrong = [d for d in decisions if d.today]
    models = [d for d in decisions if d.model.materialized not in ("seed", "snapshot")]
    summary = f"{len(models)} models, {len(views)} become something else"
    if wrong:
        count = sum(len(d.today) for d in wrong)
        summary += f"; {count} findings in {len(wrong)} of them today"
    return [*lines, summary + "."]
