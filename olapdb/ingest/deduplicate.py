"""Rows that were delivered before are dropped: `SETTINGS deduplicate_by = 'event_id'`.

A table remembers the keys of the rows that it accepted, as hashes, for a window; of an INSERT only
the rows with a new key go on, before anything is split, written or triggered.  The first row of a
key wins, within a block, across the blocks of an INSERT, and across INSERTs, processes and
restarts.  A row with NULL in a column of its key has no identity and always goes on.

    refresh what is known of the keys  ->  admit block after block  ->  commit, which requires
    that nobody accepted one of our keys since (KeysAreNew); else refresh and look again

The window is judged when an INSERT begins: the newest `deduplicate_window_rows` accepted keys,
and of those, where `deduplicate_window` is not 0, the ones accepted in the last so many seconds.
Keys of the INSERT itself are always in it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from olapdb.catalog.base import Catalog
from olapdb.config import SettingValue, is_deduplication
from olapdb.errors import (
    Aborted,
    ArgumentOutOfBound,
    BadArguments,
    BadTypeOfField,
    DuplicateColumn,
    IllegalColumn,
    NoSuchColumn,
    NotSupportedError,
)
from olapdb.ingest.arrays import one_array
from olapdb.ingest.key_hashes import row_keys
from olapdb.model.changes import Change, KeysAreNew, RecordKeys, Requirement
from olapdb.model.keys import KeyLedger, KeyRun, SortedKeys, keys_to_bytes, no_keys
from olapdb.model.schema import Column, Table
from olapdb.model.snapshot import Snapshot
from olapdb.transaction.services import Services
from olapdb.types import (
    UUID,
    Boolean,
    Date,
    Date32,
    DateTime,
    DateTime64,
    Decimal,
    FixedString,
    Integer,
    String,
    plain,
)

WINDOW_ROWS_DEFAULT = 10_000_000
WINDOW_ROWS_MAX = 100_000_000
"""Of a table: about 2 GB of memory in each process that inserts into it, 1.6 GB in the catalog."""
_NO_TIMES = np.zeros(0, np.int64)
_KEY_TYPES = (
    Integer, String, FixedString, UUID, Date, Date32, DateTime, DateTime64, Decimal, Boolean,
)  # fmt: skip


# --- the rule of a table --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyRule:
    """How a table tells rows that it had before. `definition` is equal where keys are hashed alike:
    columns by their ids, so that a renamed one is the same, with the form of their values."""

    columns: tuple[str, ...]
    definition: str
    window_rows: int
    window_ms: int


def key_rule(table: Table) -> KeyRule | None:
    """The rule of a table's settings; None where its rows have no identity.

    Raises NoSuchColumn, IllegalColumn and BadTypeOfField for columns that cannot be a key,
    BadArguments for settings that make no sense together, NotSupportedError for other engines.
    """
    settings = dict(table.settings)
    named = str(settings.get("deduplicate_by", ""))
    if not named.strip():
        lonely = next((n for n in settings if is_deduplication(n) and n != "deduplicate_by"), None)
        if lonely is not None:
            raise BadArguments(
                f"Setting {lonely} has no meaning without deduplicate_by.",
                hint="Name the columns that identify a row: SETTINGS deduplicate_by = 'event_id'.",
            )
        return None
    if not (table.engine.is_merge_tree or table.engine.name == "Null"):
        raise NotSupportedError(
            f"deduplicate_by is not supported by the engine {table.engine.name}.",
            hint="Use an engine of the MergeTree family, or Null.",
        )
    columns = [_key_column(table, name) for name in _names(named)]
    window_rows = int(settings.get("deduplicate_window_rows", WINDOW_ROWS_DEFAULT))
    if window_rows > WINDOW_ROWS_MAX:
        raise ArgumentOutOfBound(
            f"deduplicate_window_rows is at most {WINDOW_ROWS_MAX}, not {window_rows}.",
            hint="A key takes about 20 bytes of memory in each process that inserts.",
        )
    return KeyRule(
        tuple(column.name for column in columns),
        ",".join(f"{column.id}:{_form(column)}" for column in columns),
        window_rows,
        int(settings.get("deduplicate_window", 0)) * 1_000,
    )


def check_deduplication(table: Table, snapshot: Snapshot) -> None:
    """As `key_rule`; and refused where a view writes the table, whose rows are what the view makes
    of its source, with none left out."""
    if key_rule(table) is not None and snapshot.views_into(table.id):
        raise refused_target(table)


def refused_target(table: Table) -> NotSupportedError:
    return NotSupportedError(
        f"{table.database}.{table.name} drops rows by deduplicate_by, and cannot be the target of a"
        " view: it would not hold what the view makes of its source.",
        hint="Deduplicate the view's source instead.",
    )


def refuse_tasks(table: Table) -> None:
    """NotSupportedError where rows that tasks staged cannot be read back as they came."""
    if key_rule(table) is not None and (table.engine.combines or not table.engine.stores_rows):
        raise NotSupportedError(
            f"A cluster cannot insert into {table.database}.{table.name}, which has deduplicate_by"
            f" and the engine {table.engine.name}.",
            hint="Insert into a MergeTree table with deduplicate_by, or with connection.insert().",
        )


def renamed_key(
    settings: tuple[tuple[str, SettingValue], ...], old: str, new: str
) -> tuple[tuple[str, SettingValue], ...]:
    """A table's settings with one of its columns called otherwise; its keys stay known."""
    return tuple(
        (name, ", ".join(new if one == old else one for one in _names(str(value))))
        if name == "deduplicate_by"
        else (name, value)
        for name, value in settings
    )


def _names(text: str) -> list[str]:
    names = [one.strip().strip("`") for one in text.split(",")]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DuplicateColumn(f"deduplicate_by names {twice} twice.")
    return names


def _key_column(table: Table, name: str) -> Column:
    where = f"{table.database}.{table.name}"
    column = table.column(name)
    if column is None:
        raise NoSuchColumn(
            f"deduplicate_by names {name!r}, which is no column of {where}.",
            hint=f"It has {', '.join(c.name for c in table.columns)}.",
        )
    if not column.stored:
        raise IllegalColumn(
            f"deduplicate_by names {name} of {where}, which is {column.default_kind}.",
            hint="Name columns that are stored.",
        )
    if not isinstance(plain(column.type), _KEY_TYPES):
        raise BadTypeOfField(
            f"deduplicate_by names {name} of {where}, whose type {column.type} is no identity.",
            hint="Use whole numbers, strings, UUIDs, dates, times or decimals.",
        )
    return column


def _form(column: Column) -> str:
    """What its values are hashed as."""
    kind = plain(column.type)
    if isinstance(kind, Integer | Boolean):
        return "integer"
    if isinstance(kind, Date | Date32):
        return "date"
    return "string" if isinstance(kind, String) else str(kind.arrow)


# --- what is known of the keys --------------------------------------------------------------------


@dataclass(frozen=True)
class KeyHistory:
    """Accepted keys of a table at one moment: those of the ordinals up to `ledger.next`."""

    ledger: KeyLedger
    runs: tuple[KeyRun, ...] = ()

    def oldest(self, rule: KeyRule, now_ms: int) -> int:
        """The first ordinal in the window."""
        oldest = max(self.ledger.oldest, self.ledger.next - rule.window_rows)
        if not rule.window_ms:
            return oldest
        later = (run.oldest_after(now_ms - rule.window_ms) for run in self.runs)
        first = next((ordinal for ordinal in later if ordinal is not None), self.ledger.next)
        return max(oldest, first)

    def found(self, keys: SortedKeys, oldest: int) -> np.ndarray:
        """Whether each key is among those from the ordinal `oldest` on."""
        found = np.zeros(len(keys), bool)
        for run in self.runs:
            found |= run.found(keys, oldest)
        return found


@dataclass
class KeyIndex:
    """The keys of a table as this process knows them, read from the catalog by what is new.

    Thread-safe.  Memory: about 20 bytes a key of the window, twice that for a moment while runs
    are joined.
    """

    table_id: str
    _history: KeyHistory = field(default_factory=lambda: KeyHistory(KeyLedger()))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self, catalog: Catalog) -> KeyHistory:
        """All that is accepted by now."""
        with self._lock:
            known = self._history
            ledger, batches = catalog.accepted_keys(
                self.table_id, known.ledger.epoch, known.ledger.next
            )
            runs = list(known.runs) if ledger.epoch == known.ledger.epoch else []
            since = known.ledger.next if runs else ledger.oldest
            for batch in batches:
                _append(runs, batch.run_since(max(since, ledger.oldest)), ledger.oldest)
            runs = [run for run in runs if run.end > ledger.oldest]
            self._history = KeyHistory(ledger, tuple(runs))
            return self._history


def _append(runs: list[KeyRun], run: KeyRun, oldest: int) -> None:
    """Runs grow by doubling: there are few of them, and a key is moved a few times."""
    while runs and len(runs[-1]) < 2 * len(run):
        run = runs.pop().joined(run, oldest)
    runs.append(run)


# --- one INSERT -----------------------------------------------------------------------------------


@dataclass
class Admission:
    """Which rows of one INSERT are new; of one thread. `dropped` counts those that were not."""

    table: Table
    rule: KeyRule
    index: KeyIndex
    services: Services
    dropped: int = 0
    _history: KeyHistory = field(init=False)
    _oldest: int = field(init=False)
    _pending: list[np.ndarray] = field(default_factory=list)
    _own: list[KeyRun] = field(default_factory=list)
    _own_count: int = 0
    _known: int = 0
    """Rows dropped because of keys that were there before the INSERT."""

    def __post_init__(self) -> None:
        self._look()

    @classmethod
    def of(cls, services: Services, table: Table) -> Admission | None:
        """For an INSERT into the table; None where its rows have no identity."""
        rule = key_rule(table)
        if rule is None:
            return None
        index = services.cache.get_or_make(("keys", table.id), lambda: KeyIndex(table.id))
        return cls(table, rule, index, services)

    def admit(self, block: pa.Table) -> pa.Table:
        """The rows of the block that are new, in their order; the block itself where all are."""
        keys, whole = self.keys_of(block)
        fresh = SortedKeys.of(keys, None if whole.all() else np.flatnonzero(whole))
        known = self._history.found(fresh, self._oldest)
        self._known += int(known.sum())
        for run in self._own:
            known |= run.found(fresh)
        fresh = fresh.where(~known)
        fresh = fresh.where(fresh.first_of_each())
        self._accept(keys, fresh)
        stays = ~whole
        stays[fresh.rows] = True
        gone = len(stays) - int(stays.sum())
        self.dropped += gone
        return block.filter(pa.array(stays)) if gone else block

    def keys_of(self, block: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """The rows' keys, and whether each row has one."""
        arrays = [one_array(block.column(name)) for name in self.rule.columns]
        whole = np.ones(block.num_rows, bool)
        for array in arrays:
            if array.null_count:
                whole &= np.asarray(array.is_valid())
        return row_keys(arrays, block.num_rows), whole

    def again(self, table: Table) -> None:
        """Before the blocks that were admitted are admitted anew, against what is there now.

        Aborted where the rule is another one now, or rows were dropped because of keys that are
        forgotten: they are not at hand any more.
        """
        rule, epoch = key_rule(table), self._history.ledger.epoch
        self._look()
        if rule != self.rule or (self._known and epoch != self._history.ledger.epoch):
            raise Aborted(
                f"{table.database}.{table.name} forgot its keys, or has others, since the INSERT"
                " began.",
                hint="Nothing was inserted; run it again.",
            )
        self.table = table
        self._pending, self._own, self._own_count = [], [], 0

    def take(self, trial: Admission) -> None:
        """What another admission to the same table came to, as this one's."""
        self._history, self._oldest = trial._history, trial._oldest
        self._pending, self._own, self._own_count = trial._pending, trial._own, trial._own_count

    def requirements(self) -> list[Requirement]:
        ledger = self._history.ledger
        return [KeysAreNew(self.table.id, ledger.epoch, ledger.next, self._accepted())]

    def changes(self) -> list[Change]:
        rule = self.rule
        return [
            RecordKeys(
                self.table.id, rule.definition, self._accepted(), self.dropped, rule.window_rows,
                rule.window_ms,
            )
        ]  # fmt: skip

    def _look(self) -> None:
        history = self.index.refresh(self.services.catalog)
        if history.ledger.definition not in ("", self.rule.definition):
            history = KeyHistory(history.ledger)  # keys of other columns mean nothing
        self._history = history
        self._oldest = history.oldest(self.rule, self.services.clock_ms())

    def _accept(self, keys: np.ndarray, fresh: SortedKeys) -> None:
        if not len(fresh):
            return
        accepted = np.zeros(len(keys), bool)
        accepted[fresh.rows] = True
        self._pending.append(keys[accepted])
        before = self._own_count
        self._own_count += len(fresh)
        offsets = (np.cumsum(accepted) - 1)[fresh.rows].astype(np.uint32)
        run = KeyRun(before, self._own_count, fresh.high, fresh.low, offsets, _NO_TIMES, _NO_TIMES)
        _append(self._own, run, 0)

    def _accepted(self) -> bytes:
        return keys_to_bytes(np.concatenate((no_keys(), *self._pending)))
