"""Views that write into a table model of their own choice: `materialization_target_table(ref('t'))`.

There the table is one model and each view that fills it another, upside down in the DAG. Here the
table's model becomes the incremental_mv, with the SQL of the first view, so that all that reads the
table goes on. The first view becomes a plain view of it, and each other one writes into its target:

    t.sql       table              incremental_mv, the SQL of `first`
    first.sql   materialized_view  view: select * from t
    other.sql   materialized_view  incremental_mv with target='t'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from olapdb.sql import nodes

from ..incremental_mv.model_sql import output_name
from .model_text import ConfigCall, parsed
from .project import DbtProject, ModelFile

OWNER, SHARED, READER = "owner", "shared", "view"

_CALL = re.compile(
    r"\{\{-?\s*materialization_target_table\(\s*ref\(\s*['\"]([^'\"]+)['\"]\s*\)\s*\)\s*-?\}\}\s*"
)
_OF_VIEW = ("catchup", "on_schema_change", "query_settings")
_STORAGE = ("engine", "order_by", "partition_by", "primary_key", "ttl", "settings")


def with_own_targets(project: DbtProject) -> DbtProject:
    """Return the project with each table of explicit targets merged with its first view, as the
    module describes; unchanged if it has none."""
    views: dict[str, list[ModelFile]] = {}
    for name in sorted(project.models):
        model = project.models[name]
        match = None if model.problem else _CALL.search(model.text)
        if match is not None and match[1] in project.models:
            views.setdefault(match[1], []).append(model)
    models = dict(project.models)
    for target, (first, *others) in views.items():
        table = project.models[target]
        models[target] = _owner(table, first)
        models[first.name] = _reader(first, target)
        models |= {view.name: _shared(view, table) for view in others}
    return replace(project, models=models)


def _owner(table: ModelFile, view: ModelFile) -> ModelFile:
    """Return the table's model with the SQL of the view and the storage of the table."""
    of_view = {name: view.config[name] for name in _OF_VIEW if name in view.config}
    return replace(
        table,
        text=_sql(view),
        call=_without_position(table.call),
        config={**table.config, **of_view},
        rewritten=OWNER,
        unfilled=_unfilled(table, view),
    )


def _unfilled(table: ModelFile, view: ModelFile) -> tuple[str, ...]:
    """Return the columns of the table that the view does not fill; none if either query's columns
    cannot be told."""
    filled = _columns(view)
    return tuple(name for name in _columns(table) if filled and name not in filled)


def _columns(model: ModelFile) -> list[str]:
    """Return the names of the columns of the model's SELECT; [] if it does not parse, is no plain
    SELECT, or has a star."""
    try:
        query = parsed(_sql(model), ConfigCall(0, 0, {}, {}))
    except ValueError:
        return []
    if not isinstance(query, nodes.Select) or any(isinstance(c, nodes.Star) for c in query.columns):
        return []
    return [output_name(column) for column in query.columns]


def _reader(view: ModelFile, target: str) -> ModelFile:
    """Return the view's model, rewritten to a plain view that selects all of the target's model."""
    return replace(
        view,
        text=f"select * from {{{{ ref('{target}') }}}}\n",
        call=ConfigCall(0, 0, {}, {}),
        rewritten=READER,
        target=target,
    )


def _shared(view: ModelFile, table: ModelFile) -> ModelFile:
    """Return the view's model changed to one that writes into the target of the table's model, with
    the table's storage."""
    own = {name: value for name, value in view.config.items() if name not in _STORAGE}
    storage = {name: table.config[name] for name in _STORAGE if name in table.config}
    return replace(
        view,
        text=f"-- depends_on: {{{{ ref('{table.name}') }}}}\n{_sql(view)}",
        call=_without_position(view.call),
        config={**own, **storage},
        rewritten=SHARED,
        target=table.name,
    )


def _sql(view: ModelFile) -> str:
    """Return the view's text without its config call and the call that names the target."""
    text = view.text[: view.call.start] + view.text[view.call.end :]
    return _CALL.sub("", text).lstrip()


def _without_position(call: ConfigCall) -> ConfigCall:
    """Return the config call with its arguments but without a place in the text."""
    texts: Mapping[str, str] = call.texts
    return ConfigCall(0, 0, texts, call.values)
