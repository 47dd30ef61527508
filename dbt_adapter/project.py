"""What the adapter reads of dbt-core's objects: the project's folder, and nodes of its manifest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from .config_check import MV_MATERIALIZATIONS, NamedNode, NodeConfig, inherited_keys

_SECTIONS = {"model": "models", "seed": "seeds", "snapshot": "snapshots"}
_HOOKS = frozenset({"pre-hook", "post-hook"})


def project_folder(config: Any) -> str:
    """Return the folder of the dbt project as an absolute path, "" if dbt does not tell.

    `dbt debug` has a profile only; its flags name the folder."""
    root = getattr(config, "project_root", None)
    if root is None:
        from dbt.flags import get_flags  # dbt-core, which loads the adapter itself

        root = getattr(get_flags(), "PROJECT_DIR", None)
    return str(root or "")


def node_config(node: Any, config: Any) -> NodeConfig:
    """Return the config of a model, seed or snapshot, as `config_check.mistakes` reads it.

    `node` is the manifest's node, `config` the config of the project. The result tells the keys
    that the node sets itself from those that dbt_project.yml sets for its folder."""
    # `key=none` in the config call of a model takes back what its folder gives it.
    values = {k: v for k, v in node.config.to_dict(omit_none=True).items() if v is not None}
    known = {f.name for f in fields(node.config)} | _HOOKS
    own = frozenset(getattr(node, "config_call_dict", None) or {})
    tree = getattr(config, _SECTIONS[str(node.resource_type)], None) or {}
    unrendered = frozenset(getattr(node, "unrendered_config", None) or {})
    inherited, meant = inherited_keys(tree, node.fqn, str(node.config.materialized))
    # A model that says what it is may stand in a folder for models that are something else.
    given = own | (unrendered - inherited)
    if "materialized" in given:
        meant = frozenset()
    elif str(node.resource_type) != "model":
        meant = inherited  # all seeds are seeds
    return NodeConfig(
        materialized=str(node.config.materialized),
        language=str(getattr(node, "language", "sql")),
        values=values,
        extra=frozenset(values) - known,
        own=given,
        inherited=inherited,
        meant=meant,
    )


def named_node(node: Any) -> NamedNode:
    """Return the node's name and file, and the names of its relation."""
    return NamedNode(
        unique_id=node.unique_id,
        name=node.name,
        path=node.original_file_path,
        schema=node.schema or "",
        identifier=node.alias or node.name,
        materialized=str(node.config.materialized),
    )


def maintained_models(manifest: Any) -> Iterator[Any]:
    """Yield the nodes of the manifest's `incremental_mv` models; none without a manifest."""
    for node in getattr(manifest, "nodes", {}).values():
        if (
            str(node.resource_type) == "model"
            and str(node.config.materialized) in MV_MATERIALIZATIONS
        ):
            yield node


def project_relations(manifest: Any) -> Iterator[tuple[str, str]]:
    """Yield schema and name of each `incremental_mv` model, and of what these models read."""
    read: set[str] = set()
    for node in maintained_models(manifest):
        yield node.schema, node.alias
        read.update(node.depends_on_nodes)
    for unique_id in sorted(read):
        if source := getattr(manifest, "sources", {}).get(unique_id):
            yield source.schema, source.identifier
        elif (other := manifest.nodes.get(unique_id)) and getattr(other, "alias", None):
            yield other.schema, other.alias
