"""Writes the changed project beside the old one, which is never touched."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from .decide import Decision
from .dictionaries import names_of, with_dictionaries
from .project import DbtProject, ProjectError

_LEFT_OUT = shutil.ignore_patterns(
    "target", "dbt_packages", "logs", ".git", "*.pyc", "__pycache__", "profiles.yml", ".user.yml"
)
_PROFILE = """\
{profile}:
  target: dev
  outputs:
    dev:
      type: olapdb
      path: warehouse
      schema: analytics
      threads: 4
"""


def write_project(project: DbtProject, decisions: Sequence[Decision], out: Path) -> list[str]:
    """Write the project with its changed models and a profile to the new folder `out`.

    The folder appears when it is whole. Returns lines that say what to do next. Raises ProjectError
    if `out` exists or lies in the project."""
    source, target = project.root.resolve(), out.resolve()
    if target.exists():
        raise ProjectError(f"{out} exists; name a folder that does not.")
    if target.is_relative_to(source):
        raise ProjectError(f"{out} lies in the project itself; name a folder beside it.")
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(source, partial, ignore=_LEFT_OUT)
    maintained = {d.model.name for d in decisions if _needs_no_final(d)}
    for decision in decisions:
        text = changed_text(decision, maintained)
        if text != decision.model.text or decision.model.rewritten:
            (partial / decision.model.path).write_text(text, encoding="utf-8")
    _name_dictionaries(partial, names_of(project.models))
    profile = partial / "profiles.yml"
    profile.write_text(_PROFILE.format(profile=project.profile), encoding="utf-8")
    partial.rename(target)
    return [
        f"Written to {out}. Next: load the sources into the warehouse, then in that folder",
        "    dbt run-operation generate_reconciliation_tests",
        "    dbt build",
    ]


def _name_dictionaries(folder: Path, names: Sequence[str]) -> None:
    """Let each dictGet in the SQL files of the folder name the dictionaries over the tables."""
    for path in folder.rglob("*.sql") if names else ():
        text = path.read_text(encoding="utf-8")
        if (changed := with_dictionaries(text, names)) != text:
            path.write_text(changed, encoding="utf-8")


def _needs_no_final(decision: Decision) -> bool:
    """Return whether the model holds each key once: a view over it, or a table that is not merged."""
    if decision.becomes in ("incremental_mv", "view"):
        return True
    return (decision.config or {}).get("engine") == "'MergeTree'"


def changed_text(decision: Decision, maintained: set[str]) -> str:
    """Return the text of a model with its new config call; the rest of it stays, Jinja included.

    FINAL goes from refs of `maintained` models, which hold each key once."""
    model = decision.model
    text = model.text
    if decision.config is not None:
        arguments = ",\n".join(f"    {name}={value}" for name, value in decision.config.items())
        call = f"{{{{ config(\n{arguments}\n) }}}}"
        before, after = text[: model.call.start], text[model.call.end :]
        text = before + call + (after if model.call.end else f"\n{after}")
        if decision.becomes == "incremental_mv":
            text = re.sub(r"\b(\w+?)SimpleState(\s*\()", r"\1\2", text)

    def without_final(match: re.Match[str]) -> str:
        """Return the ref without FINAL if its model is maintained."""
        return match[1] if match[2] in maintained else match[0]

    return re.sub(
        r"(\{\{-?\s*ref\(\s*['\"]([^'\"]+)['\"]\s*\)\s*-?\}\}(?:\s+(?:as\s+)?(?!final\b)\w+)?)\s+final\b",
        without_final,
        text,
        flags=re.I,
    )
