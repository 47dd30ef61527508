"""Choose the parts of a rebuilt catalog: of all part files, those that hold each row exactly once.

A footer lists the parts whose rows its part replaced (a merge, a mutation); the manifest of a
replay does so for all parts that it wrote.  Replaced parts are left out.  Two things complicate
that:

* A merge, a mutation or a replay that was never committed has left files too, and the parts that it
  would have replaced may have been replaced by another since.  Of two parts that replace the same
  part, drop the one whose own inputs all exist (if both: that with fewer), so that its inputs
  count.
* Vacuum deletes files in the order in which parts were dropped, so a part whose inputs are missing
  has replaced them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from olapdb.model.encoding import FooterFacts
from olapdb.storage.replay_manifest import ManifestFile, ReplacedSlice


def surviving_parts(
    footers: list[FooterFacts], manifests: Iterable[ManifestFile]
) -> list[FooterFacts]:
    """Return the parts to keep so that every row appears exactly once: drop parts that a merge,
    mutation or replay replaced, and those of operations that were not committed. Keeps the input
    order."""
    footers, units = _with_manifests(footers, manifests)
    by_id = {facts.part.id: facts for facts in footers}
    excluded: set[str] = set()
    while True:
        replaced = {
            part_id
            for facts in footers
            if facts.part.id not in excluded
            for part_id in facts.replaces
        }
        remaining = [
            facts
            for facts in footers
            if facts.part.id not in replaced and facts.part.id not in excluded
        ]
        conflict = _conflict(remaining, by_id)
        if conflict is None:
            return remaining

        def preference(facts: FooterFacts) -> tuple[bool, int]:
            """Return a sort key: parts whose inputs all exist come first, then fewer inputs."""
            has_inputs = all(part_id in by_id for part_id in facts.replaces)
            return not has_inputs, len(inputs_of(facts, by_id))

        loser = min(conflict, key=preference).part.id
        excluded |= units.get(loser, {loser})


def _conflict(
    candidates: list[FooterFacts], by_id: Mapping[str, FooterFacts]
) -> tuple[FooterFacts, FooterFacts] | None:
    """Return two parts that replace the same part, None if there are none."""
    owners: dict[str, FooterFacts] = {}
    for facts in candidates:
        for part_id in inputs_of(facts, by_id):
            if part_id in owners:
                return owners[part_id], facts
            owners[part_id] = facts
    return None


def inputs_of(facts: FooterFacts, by_id: Mapping[str, FooterFacts]) -> frozenset[str]:
    """Return the ids of all parts that were merged into this one, transitively, as far as footers
    say."""
    inputs: set[str] = set()
    waiting = list(facts.replaces)
    while waiting:
        part_id = waiting.pop()
        if part_id not in inputs:
            inputs.add(part_id)
            waiting += by_id[part_id].replaces if part_id in by_id else ()
    return frozenset(inputs)


# --- replays --------------------------------------------------------------------------------------


def _with_manifests(
    footers: list[FooterFacts], manifests: Iterable[ManifestFile]
) -> tuple[list[FooterFacts], dict[str, frozenset[str]]]:
    """Apply the manifests: return the parts with the replacements that manifests list, and for each
    part of a replay the ids that must be kept or dropped together. The first new part of a slice
    lists all parts that the slice replaced."""
    by_path = {facts.part.path: facts for facts in footers}
    replaced_ids = {part_slice for facts in footers for part_slice in facts.replaces}
    ignored: set[str] = set()
    replacements: dict[str, tuple[str, ...]] = {}
    units: dict[str, frozenset[str]] = {}
    for manifest in manifests:
        if manifest.slices is None:
            ignored |= {facts.part.id for facts in footers if facts.swap == manifest.swap_id}
        for part_slice in manifest.slices or ():
            new = [by_path[path].part.id for path in part_slice.new if path in by_path]
            if _was_not_committed(part_slice, by_path, replaced_ids):
                ignored.update(new)
            elif new:
                replacements[new[0]] = tuple(_id_of(path) for path in part_slice.replaced_paths)
                units |= dict.fromkeys(new, frozenset(new))
    completed = [
        replace(facts, replaces=(*facts.replaces, *replacements.get(facts.part.id, ())))
        for facts in footers
        if facts.part.id not in ignored
    ]
    return completed, units


def _was_not_committed(
    part_slice: ReplacedSlice, by_path: Mapping[str, FooterFacts], replaced_ids: AbstractSet[str]
) -> bool:
    """Return whether the replay was not committed: all files that it would replace exist, and
    one of its own is missing although no part replaced it. Vacuum has then begun to delete them,
    or it is unreadable."""
    missing = any(
        path not in by_path and _id_of(path) not in replaced_ids for path in part_slice.new
    )
    return missing and all(path in by_path for path in part_slice.replaced_paths)


def _id_of(path: str) -> str:
    """Return the id of the part for which the file was written."""
    return path.rpartition("-")[2].removesuffix(".parquet")
