"""The answer about a definition: one item for each of its parts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """One part of a definition: `name` says which, `because` why it is provable or is not.

    `refused` items corrupt the target when its rows are merged; the others only leave the view
    unproven.  `fix` says what to write instead; it is empty for provable items."""

    name: str
    provable: bool
    because: str
    fix: str = ""
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """All items, in the order in which they were judged."""

    items: tuple[JudgedItem, ...]

    @property
    def provable(self) -> bool:
        return all(item.provable for item in self.items)

    @property
    def reason(self) -> str:
        """The reason of the first item that is not provable; "" where all are."""
        return next((item.because for item in self.items if not item.provable), "")


def known(name: str, because: str) -> JudgedItem:
    """Return the item of a provable part."""
    return JudgedItem(name, True, because)


def unknown(name: str, because: str, fix: str = "") -> JudgedItem:
    """Return the item of a part that leaves the view unproven."""
    return JudgedItem(name, False, because, fix)


def refused(name: str, because: str, fix: str) -> JudgedItem:
    """Return the item of a part for which CREATE refuses the view."""
    return JudgedItem(name, False, because, fix, refused=True)


def refused_or_unknown(merges: bool, name: str, because: str, fix: str) -> JudgedItem:
    """Return the item of a part that is refused where the target merges rows, and leaves the view
    unproven else."""
    return JudgedItem(name, False, because, fix, refused=merges)
