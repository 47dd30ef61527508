"""Leases and pins of the catalog: which processes are alive, and which snapshots they read."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from olapdb import errors
from olapdb.catalog.protocol import LeaseInfo
from olapdb.catalog.sqlite import statements as sql
from olapdb.catalog.sqlite.catalog_reader import CatalogReader, without_extension
from olapdb.catalog.sqlite.process_registry import living
from olapdb.catalog.sqlite.snapshot import SqliteSnapshot
from olapdb.catalog.sqlite.vacuum_mark import refuse_vacuumed
from olapdb.errors import Error as OlapdbError


class LeaseCatalog(CatalogReader):
    """The part of `SqliteCatalog` that keeps leases and pins, and ends them at `close`."""

    def living_leases(self) -> frozenset[str]:
        """Return the ids of the live leases whose process still runs; all live ones if the catalog
        is in memory."""
        live = [lease for lease in self.leases() if lease.state == "live"]
        if self.connections.in_memory:
            return frozenset(lease.id for lease in live)
        owners = living(
            f"{without_extension(self.path)}.processes", {lease.owner for lease in live}
        )
        return frozenset(lease.id for lease in live if lease.owner in owners)

    def open_lease(self, purpose: str) -> str:
        """Record a live lease of this process; return its new id, 32 hexadecimal digits."""
        lease_id = uuid.uuid4().hex
        now_ms = self._clock_ms()
        with self._writer.housekeeping("open a lease") as connection:
            sql.insert_lease(
                connection,
                id=lease_id,
                purpose=purpose,
                owner=self._registration.ensure(),
                process_id=os.getpid(),
                state="live",
                opened_ms=now_ms,
                renewed_ms=now_ms,
            )
        self._own_leases.add(lease_id)
        return lease_id

    def renew_lease(self, lease_id: str) -> None:
        """Record now as the time when the lease's process was last alive. Do nothing if no such
        lease exists."""
        with self._writer.housekeeping("renew a lease") as connection:
            sql.renew_lease(connection, lease_id=lease_id, now_ms=self._clock_ms())

    def close_lease(self, lease_id: str) -> None:
        """End the lease; commits that require it fail from now on."""
        self._end_leases([lease_id], "closed")
        self._own_leases.discard(lease_id)

    def leases(self) -> tuple[LeaseInfo, ...]:
        """Return all leases of the warehouse, revoked and closed ones included."""
        self._notice_fork()
        with self.connections.reading() as connection:
            return tuple(LeaseInfo(*row) for row in sql.all_leases(connection))

    def revoke_dead_leases(self) -> tuple[str, ...]:
        """Revoke the live leases of processes that have ended; return their ids."""
        alive, _ = self._registration.living_and_lowest_pin()
        dead = [
            lease.id
            for lease in self.leases()
            if lease.state == "live" and lease.owner not in alive
        ]
        if dead:
            self._end_leases(dead, "revoked")
        return tuple(dead)

    def _end_leases(self, lease_ids: Sequence[str], state: str) -> None:
        """Set the state of leases to "closed" or "revoked"."""
        with self._writer.housekeeping("end a lease") as connection:
            sql.set_lease_state(connection, lease_ids=json.dumps(lease_ids), new_state=state)

    def pin(self, number: int) -> None:
        """Keep the snapshot's parts from vacuum until `unpin`. Raises SnapshotTooOld if vacuum has
        purged any."""
        self._notice_fork()
        self._registration.pin(number)
        # The pin is written, then the mark is read; vacuum writes the mark, then reads the pins.
        # So one of the two sees the other.
        try:
            with self.connections.reading() as connection:
                refuse_vacuumed(connection, number)
        except BaseException:
            self._registration.unpin(number)
            raise

    def unpin(self, number: int) -> None:
        """Remove one pin of the snapshot; do nothing after `close`."""
        if not self._closed:
            self._registration.unpin(number)

    @contextmanager
    def pinned(self, number: int | None = None) -> Iterator[SqliteSnapshot]:
        """Yield the snapshot of commit `number` (None: the newest), pinned inside the `with`."""
        snapshot = self._pin_newest() if number is None else self.snapshot(number)
        if number is not None:
            self.pin(number)
        try:
            yield snapshot
        finally:
            self.unpin(snapshot.number)

    def _pin_newest(self) -> SqliteSnapshot:
        """Pin and return the newest snapshot. If vacuum purges it before the pin is written, take
        the then newest one."""
        snapshot = self.snapshot()
        try:
            self.pin(snapshot.number)
        except errors.SnapshotTooOld:  # vacuum came between; the now newest snapshot is safe
            snapshot = self.snapshot()
            self.pin(snapshot.number)
        return snapshot

    def oldest_pin(self) -> int:
        """Return the smallest commit number that any process has pinned; the newest commit without
        pins."""
        newest = self.snapshot().number
        _, lowest = self._registration.living_and_lowest_pin()
        return min(lowest or newest, newest)

    def close(self) -> None:
        """Close the catalog once: end this process's leases, unregister it and close its files."""
        if self._closed:
            return
        if not self._notice_fork() and self._own_leases:
            # If the catalog cannot be written, they stay as after a kill, and vacuum revokes them.
            with suppress(OlapdbError):
                self._end_leases(sorted(self._own_leases), "closed")
        self._closed = True
        self._registration.close()
        self._writer.close()
        self.connections.close()
