"""A dbt project in its folder: its models with the config that dbt would give them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .model_text import ConfigCall, config_call


class ProjectError(Exception):
    """A project that cannot be read or written, with the reason."""


@dataclass(frozen=True)
class ModelFile:
    """A SQL model. `config` is the merged config of dbt_project.yml, YAML files and the call, of
    which `call` is the last; `problem` says why the call could not be read, "" if it could.

    `inherited` is what YAML gives. `rewritten` says what `explicit_targets` made of the text, "" for the file's own; `target` is
    then the model whose table it wrote into."""

    name: str
    path: Path
    text: str
    call: ConfigCall
    config: Mapping[str, Any]
    problem: str = ""
    inherited: Mapping[str, Any] = field(default_factory=dict)
    rewritten: str = ""
    target: str = ""

    @property
    def materialized(self) -> str:
        """The model's materialization; dbt's default is view."""
        return str(self.config.get("materialized") or "view")


@dataclass(frozen=True)
class DbtProject:
    """A project: its folder, dbt_project.yml, and its SQL models by name."""

    root: Path
    settings: Mapping[str, Any]
    models: Mapping[str, ModelFile]

    @property
    def profile(self) -> str:
        """The profile that the project names."""
        return str(self.settings.get("profile") or self.settings.get("name"))


def read_project(root: Path) -> DbtProject:
    """Read the project of a folder. Raises ProjectError if it holds none."""
    settings = _yaml(root / "dbt_project.yml")
    if not settings:
        raise ProjectError(f"{root} has no dbt_project.yml, so it is no dbt project.")
    folders = [root / str(p) for p in settings.get("model-paths") or ["models"]]
    properties: dict[str, Mapping[str, Any]] = {}
    for folder in folders:
        for path in sorted([*folder.rglob("*.yml"), *folder.rglob("*.yaml")]):
            for model in _yaml(path).get("models") or []:
                properties[str(model.get("name"))] = model.get("config") or {}
    models: dict[str, ModelFile] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.sql")):
            tree = _tree_config(settings, path.relative_to(folder))
            models[path.stem] = _model(root, path, {**tree, **properties.get(path.stem, {})})
    return DbtProject(root, settings, models)


def _model(root: Path, path: Path, inherited: Mapping[str, Any]) -> ModelFile:
    """Return the model of a file; `inherited` is the config that YAML gives it."""
    text, problem = path.read_text(encoding="utf-8"), ""
    try:
        call = config_call(text)
    except ValueError as error:
        call, problem = ConfigCall(0, 0, {}, {}), str(error)
    config = {**inherited, **call.texts, **call.values}
    return ModelFile(path.stem, path.relative_to(root), text, call, config, problem, inherited)


def _tree_config(settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the config that the tree `models:` of dbt_project.yml gives a model."""
    tree = settings.get("models") or {}
    config: dict[str, Any] = {}
    for level in _levels(tree, (str(settings.get("name")), *path.parts[:-1], path.stem)):
        plain = {k: v for k, v in level.items() if not isinstance(v, Mapping)}
        config |= {str(k).removeprefix("+"): v for k, v in plain.items()}
        config |= {str(k)[1:]: v for k, v in level.items() if str(k).startswith("+")}
    return config


def _levels(tree: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    """Yield the levels of a config tree that apply to a model, the outermost first."""
    level: object = tree
    for name in (None, *names):
        level = level.get(name) if name is not None and isinstance(level, Mapping) else level
        if not isinstance(level, Mapping):
            return
        yield level


def _yaml(path: Path) -> Mapping[str, Any]:
    """Return the mapping of a YAML file, empty if there is no file. Raises ProjectError."""
    if not path.exists():
        return {}
    try:
        # Jinja in YAML is text here: only its constants matter.
        read = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise ProjectError(f"{path} cannot be read: {error}") from error
    return read if isinstance(read, Mapping) else {}
