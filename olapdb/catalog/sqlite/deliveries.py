"""Accepted keys and source offsets, by which duplicate deliveries are recognized (rule 12).

Keys are stored in rows of many, in the order of acceptance.  An INSERT adds a row; once 16 rows of
one tier are at the end they are joined to one of the next tier, so that the rows stay few and each
key is rewritten a few times at most.  A row is deleted once all of its keys have left the window;
`oldest` of the ledger cuts through the rows that remain.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import numpy as np

from olapdb.catalog.sqlite import statements as sql
from olapdb.model.keys import (
    KEY_BYTES,
    SEGMENT,
    KeyBatch,
    KeyLedger,
    SortedKeys,
    keys_of_bytes,
    segments_to_bytes,
)

if TYPE_CHECKING:
    from olapdb.model.changes import RecordKeys, RecordOffset
    from olapdb.model.requirements import KeysAreNew, OffsetIs

ROW_KEYS_MAX = 1 << 20
"""Keys of a row as an INSERT writes it; more keys make several rows."""
JOINED_KEYS_MAX = 1 << 16
"""Keys of a row that smaller ones are joined to: 1 MiB."""
JOINED_ROWS = 16
TIER_LAST = 99
"""The tier of rows that are not joined any more."""


# --- source offsets -------------------------------------------------------------------------------


def offset_is(connection: sqlite3.Connection, requirement: OffsetIs) -> bool:
    """Return whether the stream's stored position equals the required one."""
    position = sql.offset_of_stream.value(
        connection, of_table=requirement.table_id, of_stream=requirement.stream
    )
    return bool(position == requirement.position)


def record_offset(
    connection: sqlite3.Connection, change: RecordOffset, number: int, now_ms: int
) -> None:
    """Store the stream's new position in the commit `number`."""
    sql.drop_offset(connection, of_table=change.table_id, of_stream=change.stream, number=number)
    sql.insert_offset(
        connection,
        table_id=change.table_id,
        stream=change.stream,
        position=change.position,
        token=change.token,
        time_ms=now_ms,
        created_commit=number,
        dropped_commit=None,
    )


# --- accepted keys --------------------------------------------------------------------------------


def key_ledger(connection: sqlite3.Connection, table_id: str) -> KeyLedger | None:
    """Return the table's ledger, None if it never accepted a key."""
    row = sql.key_ledger(connection, of_table=table_id).fetchone()
    return None if row is None else KeyLedger(*row)


def key_batches(connection: sqlite3.Connection, table_id: str, since: int) -> tuple[KeyBatch, ...]:
    """Return the rows with the ordinals from `since` on; the first row may begin before it."""
    rows = sql.keys_since(connection, of_table=table_id, since=since)
    return tuple(KeyBatch(*row) for row in rows)


def keys_are_new(connection: sqlite3.Connection, requirement: KeysAreNew) -> bool:
    """Return whether none of the keys was accepted since the INSERT read the ledger. False also if
    the keys' epoch has changed."""
    ledger = key_ledger(connection, requirement.table_id) or KeyLedger()
    if ledger.epoch != requirement.epoch:
        return False
    if ledger.next == requirement.seen or not requirement.keys:
        return True
    keys = SortedKeys.of(keys_of_bytes(requirement.keys))
    since = max(requirement.seen, ledger.oldest)
    return not any(
        batch.run_since(since).accepted_mask(keys).any()
        for batch in key_batches(connection, requirement.table_id, since)
    )


def record_keys(connection: sqlite3.Connection, change: RecordKeys, now_ms: int) -> None:
    """Add the keys and join small rows. Delete keys that are no longer among the newest
    `window_rows` or are older than `window_ms`."""
    before = key_ledger(connection, change.table_id) or KeyLedger(change.definition)
    if before.definition != change.definition:
        before = _new_epoch(connection, change.table_id, before)
    now_ms = max(now_ms, before.newest_ms)  # the clock may have been set back
    keys = change.keys[-change.window_rows * KEY_BYTES :]
    count = len(change.keys) // KEY_BYTES
    ordinal = before.next + count - len(keys) // KEY_BYTES
    _add_rows(connection, change.table_id, ordinal, keys, now_ms)
    _join_rows(connection, change.table_id)
    after = before.next + count
    oldest = max(before.oldest, after - change.window_rows)
    if change.window_ms or oldest > before.oldest:
        cutoff_ms = now_ms - change.window_ms if change.window_ms else -1
        sql.delete_expired_keys(
            connection, of_table=change.table_id, oldest=oldest, cutoff_ms=cutoff_ms
        )
        oldest, _ = oldest_key(connection, change.table_id, oldest, cutoff_ms, after)
    _put_ledger(
        connection,
        change.table_id,
        KeyLedger(
            change.definition,
            before.epoch,
            oldest,
            after,
            now_ms if count else before.newest_ms,
            before.dropped + change.dropped,
        ),
    )


def forget_deliveries(connection: sqlite3.Connection, table_id: str, number: int) -> None:
    """Delete the table's keys, tokens and offsets."""
    sql.forget_tokens(connection, of_table=table_id)
    sql.drop_all_offsets(connection, of_table=table_id, number=number)
    ledger = key_ledger(connection, table_id)
    if ledger is not None:
        _put_ledger(connection, table_id, _new_epoch(connection, table_id, ledger))


def _new_epoch(connection: sqlite3.Connection, table_id: str, ledger: KeyLedger) -> KeyLedger:
    """Delete all keys and return a ledger of the next epoch. Its ordinals continue, so that none is
    used twice."""
    sql.delete_keys_from(connection, of_table=table_id, first=0)
    return KeyLedger(
        ledger.definition,
        ledger.epoch + 1,
        ledger.next,
        ledger.next,
        ledger.newest_ms,
        ledger.dropped,
    )


def _put_ledger(connection: sqlite3.Connection, table_id: str, ledger: KeyLedger) -> None:
    """Write the ledger row of a table's keys, replacing the former one."""
    sql.put_key_ledger(
        connection,
        table_id=table_id,
        definition=ledger.definition,
        epoch=ledger.epoch,
        oldest=ledger.oldest,
        next=ledger.next,
        newest_ms=ledger.newest_ms,
        dropped=ledger.dropped,
    )


def _add_rows(
    connection: sqlite3.Connection, table_id: str, ordinal: int, keys: bytes, now_ms: int
) -> None:
    """Write new keys in rows of at most ROW_KEYS_MAX; the first key gets `ordinal`. Rows with few
    keys get tier 0, so that `_join_rows` joins them later."""
    for start in range(0, len(keys), ROW_KEYS_MAX * KEY_BYTES):
        piece = keys[start : start + ROW_KEYS_MAX * KEY_BYTES]
        count = len(piece) // KEY_BYTES
        tier = 0 if count < JOINED_KEYS_MAX // JOINED_ROWS else TIER_LAST
        batch = KeyBatch(ordinal, segments_to_bytes([(count, now_ms)]), piece)
        _insert_row(connection, table_id, batch, tier, now_ms)
        ordinal += count


def _join_rows(connection: sqlite3.Connection, table_id: str) -> None:
    """Join the newest JOINED_ROWS rows of equal tier into one row of the next tier, repeatedly.
    Stops at rows of the last tier and at gaps between ordinals."""
    while True:
        newest = sql.newest_key_tiers(connection, of_table=table_id).fetchmany(JOINED_ROWS)
        tiers = {tier for _, _, tier in newest}
        if len(newest) < JOINED_ROWS or len(tiers) > 1 or tiers == {TIER_LAST}:
            return
        first, after = newest[-1][0], newest[0][1]
        batches = key_batches(connection, table_id, first)
        # A new epoch leaves gaps between ordinals; only adjacent rows are joined.
        if sum(len(batch.keys) for batch in batches) != (after - first) * KEY_BYTES:
            return
        tier = newest[0][2] + 1 if after - first < JOINED_KEYS_MAX // JOINED_ROWS else TIER_LAST
        segments = b"".join(batch.segments for batch in batches)
        newest_ms = int(np.frombuffer(segments, SEGMENT)["accepted_ms"][-1])
        sql.delete_keys_from(connection, of_table=table_id, first=first)
        joined = KeyBatch(first, segments, b"".join(batch.keys for batch in batches))
        _insert_row(connection, table_id, joined, tier, newest_ms)


def _insert_row(
    connection: sqlite3.Connection, table_id: str, batch: KeyBatch, tier: int, newest_ms: int
) -> None:
    """Write one batch of keys as a row. `newest_ms` is when its newest key was accepted."""
    sql.insert_keys(
        connection,
        table_id=table_id,
        first_ordinal=batch.first,
        next_ordinal=batch.first + len(batch.keys) // KEY_BYTES,
        tier=tier,
        newest_ms=newest_ms,
        segments=batch.segments,
        hashes=batch.keys,
    )


def oldest_key(
    connection: sqlite3.Connection, table_id: str, oldest: int, cutoff_ms: int, after: int
) -> tuple[int, int]:
    """Return (ordinal, time in ms) of the first stored key not before `oldest` and accepted after
    the cutoff; (`after`, 0) if there is none."""
    for row in sql.oldest_keys(connection, of_table=table_id):
        first, segments = int(row[0]), np.frombuffer(row[1], SEGMENT)
        ends = first + np.cumsum(segments["count"])
        live = (ends > oldest) & (segments["accepted_ms"] > cutoff_ms)
        if live.any():
            at = int(np.argmax(live))
            start = int(ends[at] - segments["count"][at])
            return max(oldest, start), int(segments["accepted_ms"][at])
    return after, 0
