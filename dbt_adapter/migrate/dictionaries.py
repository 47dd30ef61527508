"""Models that are dictionaries: here a table, and a dictionary `<model>__dictionary` over it.

A model is a relation that others select from, so its name is the table's. The dictionary is created
by a post_hook of the model, with the columns, layout and lifetime that its config had, and each
dictGet of the project that named the model names the dictionary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from .project import ModelFile

MATERIALIZED = "dictionary"
SUFFIX = "__dictionary"
KEYS = (
    "layout",
    "lifetime",
    "range",
    "source_type",
    "fields",
    "table",
    "url",
    "format",
    "connection_overrides",
)
"""Keys of CREATE DICTIONARY, which a table has not."""


def dictionary_notes(model: ModelFile) -> Iterator[str]:
    """Yield notes about what becomes of a dictionary, and about what a person has to do."""
    yield "A dictionary is a table here; join it, and a view's rows follow its changes."
    config = model.config
    if config.get("source_type") == "http":
        yield (
            "It reads a file by HTTP, and its SQL is not used: make its SQL a SELECT from "
            f"file('…', '{config.get('format') or 'CSV'}') of a downloaded copy."
        )
    elif config.get("table"):
        yield f"It reads the table {config['table']}, and its SQL is not used: select from that table."


def post_hook(model: ModelFile) -> str:
    """Return the argument post_hook that creates the dictionary over the table, after the hooks that
    the model has; "" if the config does not say its columns, layout and lifetime."""
    config = model.config
    fields, keys = config.get("fields"), config.get("primary_key")
    if not (isinstance(fields, list | tuple) and fields and keys and config.get("layout")):
        return ""
    columns = ", ".join(f"{name} {data_type}" for name, data_type in fields)
    key = keys if isinstance(keys, str) else ", ".join(map(str, keys))
    clauses = [
        f"create or replace dictionary {{{{ this.schema }}}}.{{{{ this.identifier }}}}{SUFFIX} ({columns})",
        f"primary key {key}",
        "source(clickhouse(db '{{ this.schema }}' table '{{ this.identifier }}'))",
        f"layout({config['layout']})",
        f"lifetime({config.get('lifetime') or 0})",
    ]
    if config.get("range"):
        clauses.append(f"range({config['range']})")
    hook = repr(" ".join(clauses))
    before = next(
        (model.call.texts[n] for n in ("post_hook", "post-hook") if n in model.call.texts), ""
    )
    if not before:
        return hook
    return f"{before} + [{hook}]" if before.startswith("[") else f"[{before}, {hook}]"


def callers(name: str, texts: Iterable[tuple[str, str]]) -> list[str]:
    """Return the paths of those files (path, text) that read the dictionary by dictGet or a related
    function."""
    return [path for path, text in texts if with_dictionaries(text, (name,)) != text]


def callers_note(model: ModelFile, paths: Iterable[str]) -> str:
    """Return the note about the files that read the dictionary by dictGet: what becomes of their
    calls."""
    listed, name = ", ".join(paths), f"{model.name}{SUFFIX}"
    if post_hook(model):
        return (
            f"Its post_hook makes the dictionary {name} over it, which dictGet reads in {listed}."
        )
    return (
        f"{listed}: dictGet reads a dictionary there, and what fields, primary_key and layout are is not "
        f"plain text in the config. Make one by a post_hook (CREATE OR REPLACE DICTIONARY {name} …) and "
        "name it there, or join the table."
    )


def with_dictionaries(text: str, names: Iterable[str]) -> str:
    """Return the text with each dictGet of these models naming the dictionary over the table."""
    for name in names:
        by_ref = (
            r"(\bdict[A-Z]\w*\(\s*)(['\"`]?)\{\{-?\s*ref\(\s*['\"]"
            + re.escape(name)
            + r"['\"]\s*\)\s*-?\}\}\2(?=\s*,)"
        )
        ref = f'{{{{ ref("{name}")'
        named = f"'{ref}.schema }}}}.{ref}.identifier }}}}{SUFFIX}'"
        text = re.sub(by_ref, rf"\g<1>{named}", text)
        by_name = (
            rf"(\bdict[A-Z]\w*\(\s*['\"`]?(?:[^,'\"()]*[.`])?){re.escape(name)}(?=['\"`]?\s*,)"
        )
        text = re.sub(by_name, rf"\g<1>{name}{SUFFIX}", text)
    return text


def names_of(models: Mapping[str, ModelFile]) -> tuple[str, ...]:
    """Return the names of the models that are dictionaries with a hook that makes one here."""
    return tuple(
        name
        for name, model in models.items()
        if model.materialized == MATERIALIZED and not model.problem and post_hook(model)
    )
