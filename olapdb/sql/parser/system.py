"""SYSTEM: the commands for materialized views, and the others."""

from __future__ import annotations

from typing import Literal

from olapdb.errors import SyntaxError
from olapdb.sql.nodes import Expression, PartitionReference, Setting, System, SystemView
from olapdb.sql.parser.definitions import DefinitionParser

Action = Literal[
    "BACKFILL",
    "REPLAY",
    "RECONCILE",
    "ADOPT",
    "REBUILD",
    "ROLLBACK",
    "STOP",
    "START",
    "CANCEL",
    "CANCEL REBUILD",
]
_ACTIONS: dict[str, Action] = {
    "BACKFILL": "BACKFILL",
    "REPLAY": "REPLAY",
    "RECONCILE": "RECONCILE",
    "ADOPT": "ADOPT",
    "REBUILD": "REBUILD",
    "ROLLBACK": "ROLLBACK",
    "STOP": "STOP",
    "START": "START",
    "CANCEL": "CANCEL",
}
_CLAUSES: dict[str, tuple[str, ...]] = {
    "BACKFILL": ("PARTITION", "DISCARD", "DRY"),
    "REPLAY": ("PARTITION", "WHERE", "FROM", "STALE", "DISCARD"),
    "RECONCILE": ("PARTITION", "SAMPLE", "OLDEST", "STALE", "METADATA"),
    "CANCEL": ("JOB",),
}
"""What may stand behind the view's name; SETTINGS always may."""
_CLAUSE_NAMES = {"DISCARD": "DISCARD BYPASS", "DRY": "DRY RUN"}

_STORAGE = frozenset({"ENGINE", "PARTITION", "PRIMARY", "ORDER"})
"""What may describe the new target of a REBUILD."""

_EXCLUSIVE = frozenset({"PARTITION", "WHERE", "FROM", "STALE", "SAMPLE", "OLDEST", "METADATA"})

_COMMANDS: dict[
    tuple[str, ...], Literal["", "table", "optional table", "argument", "argument on table"]
] = {
    ("QUARANTINE", "PART"): "argument on table",
    ("BACKUP", "TO"): "argument",
    ("RESTORE", "FROM"): "argument",
    ("FLUSH", "LOGS"): "",
    ("FLUSH", "ASYNC", "INSERT", "QUEUE"): "",
    ("STOP", "MERGES"): "optional table",
    ("START", "MERGES"): "optional table",
    ("STOP", "TTL", "MERGES"): "optional table",
    ("START", "TTL", "MERGES"): "optional table",
    ("STOP", "MOVES"): "optional table",
    ("START", "MOVES"): "optional table",
    ("STOP", "FETCHES"): "optional table",
    ("START", "FETCHES"): "optional table",
    ("STOP", "REPLICATED", "SENDS"): "optional table",
    ("START", "REPLICATED", "SENDS"): "optional table",
    ("STOP", "REPLICATION", "QUEUES"): "optional table",
    ("START", "REPLICATION", "QUEUES"): "optional table",
    ("STOP", "DISTRIBUTED", "SENDS"): "optional table",
    ("START", "DISTRIBUTED", "SENDS"): "optional table",
    ("FLUSH", "DISTRIBUTED"): "table",
    ("SYNC", "REPLICA"): "table",
    ("SYNC", "DATABASE", "REPLICA"): "table",
    ("RESTART", "REPLICA"): "table",
    ("RESTART", "REPLICAS"): "",
    ("RESTORE", "REPLICA"): "table",
    ("WAIT", "LOADING", "PARTS"): "table",
    ("REFRESH", "VIEW"): "table",
    ("WAIT", "VIEW"): "table",
    ("STOP", "VIEWS"): "",
    ("START", "VIEWS"): "",
    ("RELOAD", "CONFIG"): "",
    ("RELOAD", "DICTIONARIES"): "",
    ("RELOAD", "DICTIONARY"): "table",
    ("RELOAD", "FUNCTIONS"): "",
    ("DROP", "DNS", "CACHE"): "",
    ("DROP", "MARK", "CACHE"): "",
    ("DROP", "UNCOMPRESSED", "CACHE"): "",
    ("DROP", "QUERY", "CACHE"): "",
    ("DROP", "COMPILED", "EXPRESSION", "CACHE"): "",
    ("DROP", "FILESYSTEM", "CACHE"): "",
    ("UNFREEZE", "WITH", "NAME"): "argument",
    ("ENABLE", "FAILPOINT"): "argument",
    ("DISABLE", "FAILPOINT"): "argument",
    ("WAIT", "FAILPOINT"): "argument",
    ("SHUTDOWN",): "",
    ("KILL",): "",
}
_SYNC_MODES = ("STRICT", "LIGHTWEIGHT", "PULL")


class SystemParser(DefinitionParser):
    """Everything that begins with SYSTEM."""

    def system(self) -> SystemView | System:
        start = self.at
        self.expect("SYSTEM")
        action = _ACTIONS.get(self.keys[self.at])
        if action is not None and self.key_after(1) == "VIEW":
            self.at += 2
            return self._view_command(action, start)
        if self.take("CANCEL", "REBUILD", "VIEW"):
            return self._view_command("CANCEL REBUILD", start)
        for words, what in _COMMANDS.items():
            if self.take(*words):
                return self._command(" ".join(words), what, start)
        words_written = self.source.text[self.token.start :].split()[:3]
        if not words_written:
            raise self.expected("a command of SYSTEM")
        raise self.refused(
            f"SYSTEM {' '.join(words_written)}",
            "For views there are SYSTEM BACKFILL, REPLAY, RECONCILE and ADOPT VIEW.",
        )

    def _command(self, command: str, what: str, start: int) -> System:
        position = self.position(self.tokens[start])
        self.refuse_on_cluster()
        if what == "argument":
            name = self.string() if self.token.kind == "string" else self.identifier()
            return System(command, None, name, position=position)
        if what == "argument on table":
            name = self.string()
            self.expect("ON")
            return System(command, self.table_name(), name, position=position)
        named = self.token.kind in ("word", "name")
        if what == "table" or (what == "optional table" and named):
            table = self.table_name()
            mode = self.take_one_of(*_SYNC_MODES) if command.startswith("SYNC") else ""
            return System(command, table, mode or None, position=position)
        return System(command, position=position)

    def _view_command(self, action: Action, start: int) -> SystemView:
        """`v [PARTITION p | WHERE c | FROM x | STALE | SAMPLE n | OLDEST n | METADATA]
        [DISCARD BYPASS] [DRY RUN] [JOB 'id']`."""
        position = self.position(self.tokens[start])
        view = self.table_name()
        partition: PartitionReference | None = None
        where: Expression | None = None
        from_value: Expression | None = None
        sample: int | None = None
        oldest: int | None = None
        job: str | None = None
        settings: tuple[Setting, ...] = ()
        storage, query = None, None
        seen: set[str] = set()
        while not self.ended:
            clause = self.keys[self.at]
            if action == "REBUILD" and clause in _STORAGE and storage is None:
                storage, _ = self.storage_clause(with_settings=False)
                continue
            if action == "REBUILD" and self.take("AS"):
                query = self.query()
                settings += getattr(query, "settings", ())
                break
            if clause == "SETTINGS":
                self.advance()
                settings += self.settings()
                continue
            if clause not in _CLAUSES.get(action, ()):
                break
            self._check_exclusive(action, clause, seen)
            seen.add(clause)
            if clause == "PARTITION":
                partition = self.partition_reference()
                continue
            self.advance()
            match clause:
                case "WHERE":
                    where = self.expression()
                case "FROM":
                    from_value = self.expression()
                case "SAMPLE":
                    sample = self.integer("the number of slices")
                case "OLDEST":
                    oldest = self.integer("the number of slices")
                case "DISCARD":
                    self.expect("BYPASS")
                case "DRY":
                    self.expect("RUN")
                case "JOB":
                    job = self.string()
        if not self.ended:
            names = (_CLAUSE_NAMES.get(one, one) for one in _CLAUSES.get(action, ()))
            allowed = ", ".join((*names, "SETTINGS"))
            if action == "REBUILD":
                allowed = f"ENGINE, PARTITION BY, ORDER BY, {allowed}, AS SELECT"
            raise self.expected(f"{allowed} or the end of SYSTEM {action} VIEW")
        return SystemView(
            action,
            view,
            partition,
            where,
            from_value,
            "STALE" in seen,
            sample,
            "METADATA" in seen,
            "DISCARD" in seen,
            settings,
            query,
            storage,
            oldest,
            "DRY" in seen,
            job,
            position=position,
        )

    def _check_exclusive(self, action: str, clause: str, seen: set[str]) -> None:
        if clause in seen or (clause in _EXCLUSIVE and seen & _EXCLUSIVE):
            raise SyntaxError(
                f"SYSTEM {action} VIEW takes one of "
                f"{', '.join(c for c in _CLAUSES[action] if c in _EXCLUSIVE)}, once.",
                position=self.position(),
            )
