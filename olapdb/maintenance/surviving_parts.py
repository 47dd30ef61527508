"""Which parts hold each row once, of all whose files are there: what a rebuilt catalog consists of.

A footer names the parts whose rows its part holds now (a merge, a mutation); the note of a replay
does so for all parts that it wrote.  So the replaced go.  Two things blur that:

* A merge, a mutation or a replay that never came to be has left files too, and what it was to
  replace may have been replaced by others since.  Of two that stand for the same part the one goes
  whose own parts are still there (if both: the one of fewer), and they count again.
* Vacuum deletes in the order in which parts were dropped, so whoever is there without the parts
  that it names has replaced them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from olapdb.model.encoding import FooterFacts
from olapdb.storage.replay_manifest import ManifestFile, ReplacedSlice


def surviving_parts(found: list[FooterFacts], notes: Iterable[ManifestFile]) -> list[FooterFacts]:
    """Those that no other stands for, each row in one of them; in their order."""
    found, units = _swapped(found, notes)
    by_id = {facts.part.id: facts for facts in found}
    left_out: set[str] = set()
    while True:
        gone = {one for f in found if f.part.id not in left_out for one in f.replaces}
        kept = [f for f in found if f.part.id not in gone and f.part.id not in left_out]
        double = _double(kept, by_id)
        if double is None:
            return kept

        def order(facts: FooterFacts) -> tuple[bool, int]:
            there = all(one in by_id for one in facts.replaces)
            return not there, len(stands_for(facts, by_id))

        out = min(double, key=order).part.id
        left_out |= units.get(out, {out})


def _double(
    kept: list[FooterFacts], by_id: Mapping[str, FooterFacts]
) -> tuple[FooterFacts, FooterFacts] | None:
    """Two that stand for the same part."""
    owners: dict[str, FooterFacts] = {}
    for facts in kept:
        for one in stands_for(facts, by_id):
            if one in owners:
                return owners[one], facts
            owners[one] = facts
    return None


def stands_for(facts: FooterFacts, by_id: Mapping[str, FooterFacts]) -> frozenset[str]:
    """Ids of all parts that went into it, step by step, as far as footers tell."""
    reached: set[str] = set()
    waiting = list(facts.replaces)
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached.add(one)
            waiting += by_id[one].replaces if one in by_id else ()
    return frozenset(reached)


# --- replays --------------------------------------------------------------------------------------


def _swapped(
    found: list[FooterFacts], notes: Iterable[ManifestFile]
) -> tuple[list[FooterFacts], dict[str, frozenset[str]]]:
    """As if footers had said what the notes do; and for each part of a replay the ids of those that
    stay or go with it.  One of a slice's parts stands for all that the slice replaced."""
    by_path = {facts.part.path: facts for facts in found}
    known = {one for facts in found for one in facts.replaces}
    absent: set[str] = set()
    stands_for: dict[str, tuple[str, ...]] = {}
    units: dict[str, frozenset[str]] = {}
    for note in notes:
        if note.slices is None:
            absent |= {facts.part.id for facts in found if facts.swap == note.swap_id}
        for one in note.slices or ():
            new = [by_path[path].part.id for path in one.new if path in by_path]
            if _never_came(one, by_path, known):
                absent.update(new)
            elif new:
                stands_for[new[0]] = tuple(_id_of(path) for path in one.gone)
                units |= dict.fromkeys(new, frozenset(new))
    whole = [
        replace(facts, replaces=(*facts.replaces, *stands_for.get(facts.part.id, ())))
        for facts in found
        if facts.part.id not in absent
    ]
    return whole, units


def _never_came(
    one: ReplacedSlice, by_path: Mapping[str, FooterFacts], known: AbstractSet[str]
) -> bool:
    """All that it was to replace is there, and of its own parts one is missing that nothing has
    replaced: vacuum has begun to remove them, or they cannot be read."""
    missing = any(path not in by_path and _id_of(path) not in known for path in one.new)
    return missing and all(path in by_path for path in one.gone)


def _id_of(path: str) -> str:
    """Of the part that the file was written for."""
    return path.rpartition("-")[2].removesuffix(".parquet")
