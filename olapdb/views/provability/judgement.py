"""The judgement of a definition: one item for each of its parts."""

from __future__ import annotations

from dataclasses import replace

from olapdb.records import dataclass


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """The judgement of one part of a definition: its `name`, and `because`, why it is provable or
    not.

    `refused` items would corrupt the target when its rows are merged; other items only leave the
    view unproven. `fix` says what to write instead; it is empty for provable items.
    """

    name: str
    provable: bool
    because: str
    fix: str = ""
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """The items of a definition, in the order in which they were judged."""

    items: tuple[JudgedItem, ...]

    @property
    def provable(self) -> bool:
        """Return whether every item is provable."""
        return all(item.provable for item in self.items)

    @property
    def reason(self) -> str:
        """Return the reason of the first item that is not provable, or ""."""
        return next((item.because for item in self.items if not item.provable), "")


def provable_item(name: str, because: str) -> JudgedItem:
    """Return the item of a provable part."""
    return JudgedItem(name, True, because)


def unproven_item(name: str, because: str, fix: str = "") -> JudgedItem:
    """Return the item of a part that leaves the view unproven."""
    return JudgedItem(name, False, because, fix)


def refused(name: str, because: str, fix: str) -> JudgedItem:
    """Return the item of a part for which CREATE refuses the view."""
    return JudgedItem(name, False, because, fix, refused=True)


def allowed(item: JudgedItem) -> JudgedItem:
    """Return the item, which leaves the view unproven where it would be refused."""
    return replace(item, refused=False)


def refused_if_merging(merges: bool, name: str, because: str, fix: str) -> JudgedItem:
    """Return the item of a part that is refused if the target merges rows, else unproven."""
    return JudgedItem(name, False, because, fix, refused=merges)
