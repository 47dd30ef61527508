"""Drops rows that were delivered before: `SETTINGS deduplicate_by = 'event_id'`.

A table remembers the keys of the rows that it accepted, as hashes, for a window. Only an INSERT's
rows with a new key go on, before anything is split, written or triggered.  The first row of a key
wins, within a block, across the blocks of an INSERT, and across INSERTs, processes and restarts.  A
row with NULL in a column of its key has no identity and always goes on.

    refresh the keys  ->  admit block after block  ->  commit, which requires that no concurrent
    commit accepted one of the INSERT's keys (KeysAreNew); else refresh and look again

The window is fixed when an INSERT begins: the newest `deduplicate_window_rows` accepted keys, and
of those, where `deduplicate_window` is not 0, the ones accepted in the last so many seconds.  The
INSERT's own keys are always in it.
"""

from __future__ import annotations

import threading
from dataclasses import field

import numpy as np
import pyarrow as pa

from olapdb.catalog.protocol import Catalog
from olapdb.compute.batches import single_chunk
from olapdb.errors import TableAltered
from olapdb.ingest.deduplication_key import KeyRule, key_rule
from olapdb.ingest.key_hash import row_keys
from olapdb.model.changes import Change, RecordKeys
from olapdb.model.keys import KeyLedger, KeyRun, SortedKeys, keys_to_bytes, no_keys
from olapdb.model.requirements import KeysAreNew, Requirement
from olapdb.model.schema import Table
from olapdb.records import dataclass
from olapdb.runtime.services import Services
from olapdb.types.arrow_values import from_numpy

_NO_TIMES = np.zeros(0, np.int64)


# --- the keys of a table --------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyHistory:
    """Accepted keys of a table at one moment: those of the ordinals up to `ledger.next`."""

    ledger: KeyLedger
    runs: tuple[KeyRun, ...] = ()

    def oldest(self, rule: KeyRule, now_ms: int) -> int:
        """Return the first ordinal in the rule's window; keys before it count as new."""
        oldest = max(self.ledger.oldest, self.ledger.next - rule.window_rows)
        if not rule.window_ms:
            return oldest
        later = (run.oldest_after(now_ms - rule.window_ms) for run in self.runs)
        first = next((ordinal for ordinal in later if ordinal is not None), self.ledger.next)
        return max(oldest, first)

    def accepted_mask(self, keys: SortedKeys, oldest: int) -> np.ndarray:
        """Return for each key whether it was accepted with an ordinal of at least `oldest`."""
        is_accepted = np.zeros(len(keys), bool)
        for run in self.runs:
            is_accepted |= run.accepted_mask(keys, oldest)
        return is_accepted


@dataclass
class KeyIndex:
    """This process's copy of a table's accepted keys; a refresh reads only new ones of the catalog.

    Thread-safe.  Memory: about 20 bytes a key of the window, twice that for a moment while runs
    are joined.
    """

    table_id: str
    _history: KeyHistory = field(default_factory=lambda: KeyHistory(KeyLedger()))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self, catalog: Catalog) -> KeyHistory:
        """Read the keys accepted since the last refresh, and return all keys of the current window.

        Drops runs of keys that left the window. Reads all keys if the ledger's epoch changed.
        """
        with self._lock:
            history = self._history
            ledger, batches = catalog.accepted_keys(
                self.table_id, history.ledger.epoch, history.ledger.next
            )
            runs = list(history.runs) if ledger.epoch == history.ledger.epoch else []
            since = history.ledger.next if runs else ledger.oldest
            for batch in batches:
                _append(runs, batch.run_since(max(since, ledger.oldest)), ledger.oldest)
            runs = [run for run in runs if run.end > ledger.oldest]
            self._history = KeyHistory(ledger, tuple(runs))
            return self._history


@dataclass
class KeyIndexes:
    """The key indexes of a process, by table id. Those of dropped tables are removed."""

    _by_table: dict[str, KeyIndex] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, table_id: str, catalog: Catalog) -> KeyIndex:
        """Return the table's index, a new one at its first use."""
        with self._lock:
            index = self._by_table.get(table_id)
        if index is not None:
            return index
        snapshot = catalog.snapshot()
        with self._lock:
            for gone_id in [
                known_id for known_id in self._by_table if snapshot.by_id(known_id) is None
            ]:
                del self._by_table[gone_id]
            return self._by_table.setdefault(table_id, KeyIndex(table_id))


def _append(runs: list[KeyRun], run: KeyRun, oldest: int) -> None:
    """Append a run of keys to `runs`; first join it with the last runs that are not twice as long.

    So there are few runs, and a key is moved only a few times. Joining drops keys before ordinal
    `oldest`.
    """
    while runs and len(runs[-1]) < 2 * len(run):
        run = runs.pop().joined(run, oldest)
    runs.append(run)


# --- one INSERT -----------------------------------------------------------------------------------


@dataclass
class Admission:
    """The admission of one INSERT's rows: rows of known keys are dropped and counted in `dropped`.

    Not thread-safe."""

    table: Table
    rule: KeyRule
    index: KeyIndex
    services: Services
    dropped: int = 0
    _history: KeyHistory = field(init=False)
    _oldest: int = field(init=False)
    _seen: int = field(init=False)
    """No key of this INSERT is among the accepted ones of earlier ordinals in the window."""
    _pending: list[np.ndarray] = field(default_factory=list)
    _own_runs: list[KeyRun] = field(default_factory=list)
    _own_count: int = 0
    _accepted_bytes: bytes | None = None
    _rejected_rows: int = 0
    """Rows dropped because of keys that were accepted before the INSERT."""

    def __post_init__(self) -> None:
        self._begin_window()

    @classmethod
    def of(cls, services: Services, table: Table) -> Admission | None:
        """Return the admission of an INSERT into the table, None if its rows have no identity."""
        rule = key_rule(table)
        if rule is None:
            return None
        indexes = services.cache.get_or_make(("keys of rows",), KeyIndexes)
        return cls(table, rule, indexes.of(table.id, services.catalog), services)

    def admit(self, block: pa.Table) -> pa.Table:
        """Return the rows of the block with new keys, in their order; of rows with equal keys the
        first. Rows without a key, which have a NULL in it, stay. Return the block itself if no row
        is dropped."""
        keys, has_key = self.block_keys(block)
        fresh = SortedKeys.of(keys, None if has_key.all() else np.flatnonzero(has_key))
        is_known = self._history.accepted_mask(fresh, self._oldest)
        self._rejected_rows += int(is_known.sum())
        for run in self._own_runs:
            is_known |= run.accepted_mask(fresh)
        fresh = fresh.where(~is_known)
        fresh = fresh.where(fresh.first_of_each())
        self._accept(keys, fresh)
        admitted = ~has_key
        admitted[fresh.rows] = True
        dropped = len(admitted) - int(admitted.sum())
        self.dropped += dropped
        return block.filter(from_numpy(admitted)) if dropped else block

    def block_keys(self, block: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows' keys, shape (rows, 2), and a mask of the rows that have one: rows with a
        NULL in a key column have none."""
        arrays = [single_chunk(block.column(name)) for name in self.rule.columns]
        has_key = np.ones(block.num_rows, bool)
        for array in arrays:
            if array.null_count:
                has_key &= np.asarray(array.is_valid())
        return row_keys(arrays, block.num_rows), has_key

    def restart(self, table: Table) -> None:
        """Forget the admitted blocks and refresh the keys, before the INSERT admits them again.

        Raises TableAltered if the table's rule has changed, or where rows were dropped because
        of keys that the table has forgotten since: these rows are not in memory any more.
        """
        rule, epoch = key_rule(table), self._history.ledger.epoch
        self._begin_window()
        if rule != self.rule or (self._rejected_rows and epoch != self._history.ledger.epoch):
            raise TableAltered(
                f"{table.database}.{table.name} forgot its keys, or has others, since the INSERT"
                " began.",
                hint="Nothing was inserted; run it again.",
            )
        self.table = table
        self._pending, self._own_runs, self._own_count = [], [], 0
        self._accepted_bytes = None

    def take_over(self, trial: Admission) -> None:
        """Take over the outcome of another admission to the same table."""
        self._history, self._oldest, self._seen = trial._history, trial._oldest, trial._seen
        self._pending, self._own_runs, self._own_count = (
            trial._pending,
            trial._own_runs,
            trial._own_count,
        )

    def requirements(self) -> list[Requirement]:
        """Return the requirement that no other commit has accepted one of the keys."""
        self._check_newer_keys()
        epoch = self._history.ledger.epoch
        return [KeysAreNew(self.table.id, epoch, self._seen, self._accepted())]

    def changes(self) -> list[Change]:
        """Return the change that records the accepted keys."""
        rule = self.rule
        return [
            RecordKeys(
                self.table.id,
                rule.definition,
                self._accepted(),
                self.dropped,
                rule.window_rows,
                rule.window_ms,
            )
        ]

    def _check_newer_keys(self) -> None:
        """Compare with the keys that were accepted while the INSERT ran.

        Other writers wait for the commit, which then compares only the newest keys.  The commit
        decides: it also sees a key that is found here."""
        now = self.index.refresh(self.services.catalog)
        if now.ledger.next == self._seen or now.ledger.epoch != self._history.ledger.epoch:
            return
        keys = SortedKeys.of(np.concatenate((no_keys(), *self._pending)))
        if not now.accepted_mask(keys, self._seen).any():
            self._seen = now.ledger.next

    def _begin_window(self) -> None:
        """Refresh the accepted keys, and set the first ordinal of this INSERT's window."""
        history = self.index.refresh(self.services.catalog)
        if history.ledger.definition not in ("", self.rule.definition):
            history = KeyHistory(history.ledger)  # keys of other columns mean nothing
        self._history, self._seen = history, history.ledger.next
        self._oldest = history.oldest(self.rule, self.services.clock_ms())

    def _accept(self, keys: np.ndarray, fresh: SortedKeys) -> None:
        """Add the fresh keys to those of this INSERT."""
        if not len(fresh):
            return
        accepted = np.zeros(len(keys), bool)
        accepted[fresh.rows] = True
        self._pending.append(keys[accepted])
        self._accepted_bytes = None
        before = self._own_count
        self._own_count += len(fresh)
        offsets = (np.cumsum(accepted) - 1)[fresh.rows].astype(np.uint32)
        run = KeyRun(before, self._own_count, fresh.high, fresh.low, offsets, _NO_TIMES, _NO_TIMES)
        _append(self._own_runs, run, 0)

    def _accepted(self) -> bytes:
        """Return the accepted keys as bytes, from a cache until another block is admitted."""
        if self._accepted_bytes is None:
            self._accepted_bytes = keys_to_bytes(np.concatenate((no_keys(), *self._pending)))
        return self._accepted_bytes
