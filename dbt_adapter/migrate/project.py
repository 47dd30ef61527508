"""A dbt project in its folder: its models with the config that dbt would give them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from .model_text import ConfigCall, config_call

_NO_CALL = ConfigCall(0, 0, {}, {})
_SNAPSHOT = re.compile(r"\{%-?\s*snapshot\s+(\w+)\s*-?%\}")


class ProjectError(Exception):
    """A project that cannot be read or written, with the reason."""


@dataclass(frozen=True)
class ModelFile:
    """A SQL model. `config` is the merged config of dbt_project.yml, YAML files and the call, of
    which `call` is the last; `problem` says why the call could not be read, "" if it could.

    `inherited` is what YAML gives. `rewritten` says what `explicit_targets` made of the text, ""
    for the file's own; `target` is then the model whose table it wrote into, and `unfilled` are
    columns of a table that its view does not fill."""

    name: str
    path: Path
    text: str
    call: ConfigCall
    config: Mapping[str, Any]
    problem: str = ""
    inherited: Mapping[str, Any] = field(default_factory=dict)
    rewritten: str = ""
    target: str = ""
    unfilled: tuple[str, ...] = ()

    @property
    def materialized(self) -> str:
        """The model's materialization; dbt's default is view."""
        return str(self.config.get("materialized") or "view")


@dataclass(frozen=True)
class DbtProject:
    """A project: its folder, dbt_project.yml, and its SQL models by name.

    `others` are its snapshots and seeds. `event_times` names what has an `event_time`: models, seeds
    and snapshots by name, sources as `source.table`. `unit_tests` are the names of the unit tests of
    a model, by its name."""

    root: Path
    settings: Mapping[str, Any]
    models: Mapping[str, ModelFile]
    others: Mapping[str, ModelFile] = field(default_factory=dict)
    event_times: frozenset[str] = frozenset()
    unit_tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def profile(self) -> str:
        """The profile that the project names."""
        return str(self.settings.get("profile") or self.settings.get("name"))


def read_project(root: Path) -> DbtProject:
    """Read the project of a folder. Raises ProjectError if it holds none."""
    settings = _yaml(root / "dbt_project.yml")
    if not settings:
        raise ProjectError(f"{root} has no dbt_project.yml, so it is no dbt project.")
    folders = _folders(root, settings, "model-paths", "models")
    properties = Properties.read(
        (
            *folders,
            *_folders(root, settings, "seed-paths", "seeds"),
            *_folders(root, settings, "snapshot-paths", "snapshots"),
        )
    )
    models: dict[str, ModelFile] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.sql")):
            tree = _tree_config(settings, "models", path.relative_to(folder))
            own = properties.of("models", path.stem)
            models[path.stem] = _model(root, path, {**tree, **own})
    others = {node.name: node for node in _others(root, settings, properties)}
    timed = {n.name for n in (*models.values(), *others.values()) if n.config.get("event_time")}
    event_times = frozenset(timed | properties.timed_sources)
    return DbtProject(root, settings, models, others, event_times, properties.unit_tests)


def _folders(root: Path, settings: Mapping[str, Any], key: str, default: str) -> list[Path]:
    """Return the folders of a key of dbt_project.yml, such as model-paths."""
    return [root / str(p) for p in settings.get(key) or [default]]


def _others(root: Path, settings: Mapping[str, Any], properties: Properties) -> Iterator[ModelFile]:
    """Yield the seeds and snapshots of the project, those of YAML files alone too."""
    for folder in _folders(root, settings, "seed-paths", "seeds"):
        for path in sorted(folder.rglob("*.csv")):
            tree = _tree_config(settings, "seeds", path.relative_to(folder))
            own = properties.of("seeds", path.stem)
            inherited = {**tree, **own, "materialized": "seed"}
            place = path.relative_to(root)
            yield ModelFile(path.stem, place, "", _NO_CALL, inherited, inherited=inherited)
    in_files: set[str] = set()
    for folder in _folders(root, settings, "snapshot-paths", "snapshots"):
        for path in sorted(folder.rglob("*.sql")):
            names = _SNAPSHOT.findall(path.read_text(encoding="utf-8"))
            in_files.update(names)
            for name in names[:1]:
                tree = _tree_config(settings, "snapshots", path.relative_to(folder))
                own = properties.of("snapshots", name)
                node = _model(root, path, {**tree, **own, "materialized": "snapshot"})
                several = "it has several snapshots" if len(names) > 1 else node.problem
                yield replace(node, name=name, problem=several)
    for (kind, name), place in properties.places.items():
        if kind == "snapshots" and name not in in_files:
            tree = _tree_config(settings, "snapshots", Path(name))
            inherited = {**tree, **properties.of(kind, name), "materialized": "snapshot"}
            place = place.relative_to(root)
            yield ModelFile(name, place, "", _NO_CALL, inherited, inherited=inherited)


@dataclass(frozen=True)
class Properties:
    """The properties in a project's YAML files: the config of each node by section and name, its file, the
    sources that have an `event_time`, and the names of the unit tests by model."""

    configs: Mapping[tuple[str, str], Mapping[str, Any]]
    places: Mapping[tuple[str, str], Path]
    timed_sources: frozenset[str]
    unit_tests: Mapping[str, tuple[str, ...]]

    @classmethod
    def read(cls, folders: Iterable[Path]) -> Properties:
        """Read all YAML files of the folders. Raises ProjectError."""
        configs: dict[tuple[str, str], Mapping[str, Any]] = {}
        places: dict[tuple[str, str], Path] = {}
        timed: set[str] = set()
        unit_tests: dict[str, tuple[str, ...]] = {}
        for folder in dict.fromkeys(folders):
            for path in sorted([*folder.rglob("*.yml"), *folder.rglob("*.yaml")]):
                content = _yaml(path)
                for section in ("models", "seeds", "snapshots"):
                    for node in _mappings(content.get(section)):
                        key = (section, str(node.get("name")))
                        configs[key], places[key] = node.get("config") or {}, path
                for source in _mappings(content.get("sources")):
                    timed.update(_timed_tables(source))
                for test in _mappings(content.get("unit_tests")):
                    model = str(test.get("model"))
                    unit_tests[model] = (*unit_tests.get(model, ()), str(test.get("name")))
        return cls(configs, places, frozenset(timed), unit_tests)

    def of(self, section: str, name: str) -> Mapping[str, Any]:
        """Return the config that YAML gives a node."""
        return self.configs.get((section, name), {})


def _timed_tables(source: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tables of a source that have an `event_time`, their own or the source's."""
    whole = (source.get("config") or {}).get("event_time")
    for table in _mappings(source.get("tables")):
        if (table.get("config") or {}).get("event_time", whole):
            yield f"{source.get('name')}.{table.get('name')}"


def _mappings(listed: object) -> Iterator[Mapping[str, Any]]:
    """Yield the mappings of a list of a YAML file."""
    yield from (
        entry
        for entry in (listed if isinstance(listed, list) else ())
        if isinstance(entry, Mapping)
    )


def _model(root: Path, path: Path, inherited: Mapping[str, Any]) -> ModelFile:
    """Return the model of a file; `inherited` is the config that YAML gives it."""
    text, problem = path.read_text(encoding="utf-8"), ""
    try:
        call = config_call(text)
    except ValueError as error:
        call, problem = ConfigCall(0, 0, {}, {}), str(error)
    config = {**inherited, **call.texts, **call.values}
    return ModelFile(path.stem, path.relative_to(root), text, call, config, problem, inherited)


def _tree_config(settings: Mapping[str, Any], section: str, path: Path) -> dict[str, Any]:
    """Return the config that a tree of dbt_project.yml, such as `models:`, gives a node."""
    tree = settings.get(section) or {}
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
