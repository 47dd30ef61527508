"""Entry points of the rules: `judge` and `check_definition` apply all of them to a definition."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.config import Settings
from olapdb.errors import QueryNotSupportedInMaterializedView, ViewNotProvable
from olapdb.plan import nodes
from olapdb.plan.tree import all_scans
from olapdb.views.definition.query_shape import leftmost
from olapdb.views.provability.circle import circle_of
from olapdb.views.provability.computed import computed_items
from olapdb.views.provability.expressions import expression_items
from olapdb.views.provability.inputs import input_items
from olapdb.views.provability.judgement import JudgedItem, Judgement, unproven_item
from olapdb.views.provability.parts import BoundDefinition, full_name
from olapdb.views.provability.query import query_items
from olapdb.views.provability.rounding import rounding_items
from olapdb.views.provability.source import source_items
from olapdb.views.provability.target import target_items


def judge(parts: BoundDefinition) -> Judgement:
    """Return an item for each part of the definition; refuse nothing.

    Raises QueryNotSupportedInMaterializedView if the query cannot be a trigger at all.
    """
    return Judgement(tuple(dict.fromkeys(_items(parts))))


def check_definition(parts: BoundDefinition) -> str:
    """Return the reason why the view is unproven, "" for a provable view.

    Raises ViewNotProvable, with the reason and the fix, if merges would corrupt its target. Raises
    QueryNotSupportedInMaterializedView if the query cannot be a trigger at all.
    """
    reasons: list[str] = []
    for item in _items(parts):
        if item.refused:
            raise ViewNotProvable(
                f"View {parts.name} would go wrong: {item.because}", hint=item.fix
            )
        if not item.provable:
            reasons.append(item.because)
    return reasons[0] if reasons else ""


def _items(parts: BoundDefinition) -> Iterator[JudgedItem]:
    """Yield the items of all rules; one item may occur several times."""
    for branch, _ in parts.branches:
        _check_trigger(parts, branch)
    yield from expression_items(parts)
    for branch, shape in parts.branches:
        yield from query_items(parts, branch, shape)
        yield from target_items(parts, branch, shape)
        yield from source_items(parts, branch, shape)
    yield from input_items(parts)
    yield from rounding_items(parts)
    yield from computed_items(parts)
    yield from _dimensions(parts)


def _check_trigger(parts: BoundDefinition, branch: nodes.Plan) -> None:
    """Raise QueryNotSupportedInMaterializedView if the branch does not read the source first."""
    leaf = leftmost(branch.root)
    if not isinstance(leaf, nodes.Scan) or leaf.table.id != parts.source.id:
        raise QueryNotSupportedInMaterializedView(
            f"View {parts.name}: every branch of its UNION ALL must read {parts.source_name} first,"
            " since only INSERTs into it fire the view.",
            hint="Create one view for each source, all TO the same target.",
        )


def _dimensions(parts: BoundDefinition) -> Iterator[JudgedItem]:
    """Yield items about all dimensions together: a circle, and reading at_insert."""
    dimensions = {
        scan.table.id: scan.table
        for scan in all_scans(parts.plan.root)
        if scan.table.id != parts.source.id
    }
    circle = circle_of(parts.snapshot, [parts.source, *dimensions.values()], parts.target)
    if circle:
        yield unproven_item(
            f"target {full_name(parts.target)}",
            f"It is made of its own rows: {' -> '.join(circle)}.",
            "Use another target.",
        )
    if dimensions and Settings.of(parts.settings).text("dimensions") == "at_insert":
        yield unproven_item(
            "SETTINGS dimensions",
            "its dimensions are read at_insert: what they held then is not kept.",
            "SETTINGS dimensions = 'current'.",
        )
