"""What a microbatch model lacks: configs of its own, and an input that dbt can cut into batches.

dbt limits a ref or source to the rows of a batch by the `event_time` of that input. One without it is
read as a whole for every batch, which is right for a small table that is joined, and wrong for the
table of the events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from olapdb.bind.analysis import source_of
from olapdb.sql import nodes

from .model_text import REF_DATABASE
from .project import DbtProject, ModelFile

_OWN = ("event_time", "begin", "batch_size")
_COMMENTS = re.compile(r"\{#.*?#\}|--[^\n]*|/\*.*?\*/", re.S)
_INPUT = re.compile(
    r"\{\{-?\s*(?:ref\(\s*(?:['\"][^'\"]+['\"]\s*,\s*)?['\"](?P<ref>[^'\"]+)['\"][^)]*\)"
    r"|source\(\s*['\"](?P<source>[^'\"]+)['\"]\s*,\s*['\"](?P<table>[^'\"]+)['\"]\s*\))\s*-?\}\}"
)
"""A ref or source alone in its braces: `ref('a').render()` asks for all rows."""


def microbatch_problems(
    model: ModelFile, query: nodes.Query | None, project: DbtProject
) -> Iterator[str]:
    """Yield what is wrong with a microbatch model today, a sentence each."""
    lacking = [name for name in _OWN if not model.config.get(name)]
    if lacking:
        listed = ", ".join(lacking)
        yield f"its config lacks {listed}; dbt runs a microbatch model only with all of {', '.join(_OWN)}."
    inputs = _inputs(model.text)
    events = _first_input(query)
    untimed = [name for name in inputs if name not in project.event_times]
    if events in untimed:
        untimed = [events]
    elif len(untimed) < len(inputs):
        return  # the others are joined
    for name in untimed:
        yield (
            f"its input {name} has no event_time, so that each batch reads all rows of it, and adds "
            f"those of other batches again. Give {name} the config event_time in its YAML; here a "
            "batch with rows of another time is refused."
        )


def _inputs(text: str) -> list[str]:
    """Return the inputs that dbt would limit: models by name, sources as `source.table`."""
    calls = _INPUT.finditer(_COMMENTS.sub(" ", text))
    return list(dict.fromkeys(m["ref"] or f"{m['source']}.{m['table']}" for m in calls))


def _first_input(query: nodes.Query | None) -> str:
    """Return the first table of FROM, as `_inputs` names it; "" if there is none."""
    name = source_of(query) if isinstance(query, nodes.Select) else None
    if name is None:
        return ""
    return name.name if name.database == REF_DATABASE else f"{name.database}.{name.name}"
