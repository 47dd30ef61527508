"""The dbt project as the operations see it: its `incremental_mv` models, selected and compiled.

dbt's own code selects and compiles, so that `select` means what it means to `dbt run`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.compilation import Compiler, Linker
from dbt.contracts.graph.manifest import Manifest
from dbt.graph import NodeSelector
from dbt.graph.cli import parse_difference
from dbt_common.exceptions import DbtRuntimeError

from ...refreshable.config import is_refreshed
from ..names import ModelNames, selector_of
from ..shared_target import owner_of

MATERIALIZATIONS = ("incremental_mv", "materialized_view")
Names = str | Sequence[str] | None
"""Names or selectors as `--args` gives them: one, a list, or none."""


@dataclass(frozen=True)
class Model:
    """An `incremental_mv` model of the project. `node` is its node of dbt's manifest as a mapping."""

    unique_id: str
    name: str
    names: ModelNames
    node: Mapping[str, Any]

    def is_called(self, name: str) -> bool:
        """Return whether `name` is the model's name, that of a version (`daily.v2`), alias or unique id."""
        return name in (self.name, self.names.model, self.names.selected, self.unique_id)


class ManifestProject:
    """The models of a manifest. `config` is dbt's RuntimeConfig, for compiling."""

    def __init__(self, manifest: object, config: object) -> None:
        if not isinstance(manifest, Manifest):
            raise DbtRuntimeError(
                "This operation needs dbt's manifest, and dbt has not parsed the project. Run it by "
                "`dbt run-operation`."
            )
        self._manifest = manifest
        self._config = config

    def nodes(self) -> list[Mapping[str, Any]]:
        """Return all nodes of the project as mappings."""
        return [node.to_dict(omit_none=False) for node in self._manifest.nodes.values()]

    def models(self) -> dict[str, Model]:
        """Return the enabled `incremental_mv` models by unique id, each after those it reads."""
        return {model.unique_id: model for model in map(self._model, self._in_order())}

    def packages(self) -> frozenset[str]:
        """Return the names of the project and its packages."""
        nodes = {node.package_name for node in self._manifest.nodes.values()}
        return frozenset(nodes | {str(getattr(self._config, "project_name", ""))})

    def materialized_as(self, unique_id: str) -> str | None:
        """Return the materialization of a model, None if the project has no such enabled model."""
        node = self._manifest.nodes.get(unique_id)
        return None if node is None else str(node.config.materialized)

    def relations(self) -> set[tuple[str, str]]:
        """Return (schema, name) of every model, seed and snapshot."""
        kinds = ("model", "seed", "snapshot")
        nodes = self._manifest.nodes.values()
        return {(n.schema, n.alias) for n in nodes if str(n.resource_type) in kinds}

    def relation_of(self, unique_id: str) -> tuple[str, str] | None:
        """Return (schema, name) of the relation that a node builds, None if it builds none."""
        node = self._manifest.nodes.get(unique_id)
        if node is None or str(node.config.materialized) == "ephemeral":
            return None
        return (node.schema, node.alias)

    def read_by(self, model: Model) -> frozenset[str]:
        """Return the unique ids of the `incremental_mv` models that the model reads, itself or
        through views and ephemeral models."""
        models: set[str] = set()
        seen: set[str] = set()
        pending = list(self._manifest.nodes[model.unique_id].depends_on_nodes)
        while pending:
            unique_id = pending.pop()
            node = self._manifest.nodes.get(unique_id)
            if node is None or unique_id in seen:
                continue
            seen.add(unique_id)
            if is_model(node.to_dict(omit_none=False)):
                models.add(unique_id)
            elif str(node.config.materialized) in ("view", "ephemeral"):
                pending += node.depends_on_nodes
        return frozenset(models)

    def select(self, models: Names, select: Names, exclude: Names) -> list[Model]:
        """Return the chosen models, each after those it reads; all without `models` and `select`.

        `models` are names, aliases, unique ids or selectors; `select` and `exclude` selectors, as
        of `dbt run`. Raises DbtRuntimeError if a name or selector chooses no `incremental_mv`."""
        by_id = self.models()
        chosen: set[str] = set()
        selectors = listed(select)
        for name in listed(models):
            ids = {i for i, model in by_id.items() if model.is_called(name)}
            chosen |= ids
            selectors += [] if ids else [name]
        for selector in selectors:
            ids = self._selected([selector], []) & by_id.keys()
            if not ids:
                names = ", ".join(sorted(m.name for m in by_id.values())) or "none"
                raise DbtRuntimeError(f"{selector} is no incremental_mv model; there are: {names}.")
            chosen |= ids
        if not selectors and not models:
            chosen = set(by_id)
        excluded = self._selected(listed(exclude), []) if exclude else set()
        return [model for i, model in by_id.items() if i in chosen and i not in excluded]

    def compiled(self, model: Model) -> str:
        """Return the model's SQL as `dbt run` would compile it now, ephemeral models included."""
        node = self._manifest.nodes[model.unique_id]
        compiled = Compiler(self._config).compile_node(node, self._manifest, write=False)
        return str(compiled.compiled_code)

    def _selected(self, include: list[str], exclude: list[str]) -> set[str]:
        """Return the unique ids of the nodes that dbt's selectors choose."""
        linker = Linker()
        linker.link_graph(self._manifest)
        selector = NodeSelector(linker.get_graph(self._manifest), self._manifest)
        spec = parse_difference(include, exclude or None)
        return set(selector.get_selected(spec, warn_on_no_nodes=False))

    def _in_order(self) -> Iterator[Any]:
        """Yield the nodes of `incremental_mv` models, each after the nodes that it depends on."""
        seen: set[str] = set()

        def visit(unique_id: str) -> Iterator[Any]:
            """Yield the models that this node depends on, then the node if it is one."""
            node = self._manifest.nodes.get(unique_id)
            if node is None or unique_id in seen:
                return
            seen.add(unique_id)
            for below in node.depends_on_nodes:
                yield from visit(below)
            if is_model(node.to_dict(omit_none=False)):
                yield node

        for unique_id in sorted(self._manifest.nodes):
            yield from visit(unique_id)

    def _model(self, node: Any) -> Model:
        """Return the model of a manifest node."""
        values = node.to_dict(omit_none=False)
        owner, selector = owner_of(self._manifest.nodes, values), selector_of(node.unique_id)
        names = ModelNames(node.schema, node.alias, owner, selector)
        return Model(node.unique_id, node.name, names, values)


def is_model(node: Mapping[str, Any]) -> bool:
    """Return whether a manifest node is a model of this materialization."""
    config = node.get("config") or {}
    return (
        node.get("resource_type") == "model"
        and config.get("materialized") in MATERIALIZATIONS
        and not is_refreshed(config)
    )


def listed(names: Names) -> list[str]:
    """Return names as a list of texts; a text with spaces is several, as in `--select`."""
    if names is None:
        return []
    texts: Collection[str] = names.split() if isinstance(names, str) else names
    return [str(text) for text in texts]
