"""TTL … RECOMPRESS: parts whose rows are all past a time are written with another codec.

    TTL d + INTERVAL 1 MONTH RECOMPRESS CODEC(ZSTD(3)), d + INTERVAL 1 YEAR RECOMPRESS CODEC(ZSTD(12))

Of the rules whose time has passed for the last row of a part, the one that passed last gives its
codec, as in ClickHouse (selectTTLDescriptionForTTLInfos). It is the default of the part: a column
with a CODEC of its own keeps that. Each merge chooses the codec by the rows that it writes, and a
pass merges single parts that have another one. A merge changes no rows, so views are as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from olapdb.engine.expiry import Expiry, ttl_rules
from olapdb.model.part import Part
from olapdb.model.schema import Table
from olapdb.records import dataclass
from olapdb.runtime.services import Services
from olapdb.storage.codec import DEFAULT_CODEC, default_codec_text


@dataclass(frozen=True, slots=True)
class Recompression:
    """The rules of a table that recompress its parts, at one moment: each codec, and when."""

    rules: tuple[tuple[str, Expiry], ...]

    @staticmethod
    def of(table: Table, services: Services) -> Recompression:
        """Return the table's TTL … RECOMPRESS rules, to be judged at the present time."""
        return Recompression(
            tuple(
                (default_codec_text(rule.detail), Expiry.of(rule.expression, table, services))
                for rule in ttl_rules(table)
                if rule.action == "RECOMPRESS"
            )
        )

    @property
    def columns(self) -> frozenset[str]:
        """Return the columns that the rules read."""
        return frozenset[str]().union(*(expiry.columns for _, expiry in self.rules))

    def codec_of(self, rows: pa.Table) -> str:
        """Return the codec for a part of these rows, "" for the default. `rows` have all columns
        that the rules read."""
        if not rows.num_rows:
            return ""
        return _last_passed(
            [(expiry.latest_of(rows), codec) for codec, expiry in self.rules], self._now
        )

    def wants(self, part: Part, read: Callable[[Part], pa.Table]) -> bool:
        """Return whether a part in a file is to be written again, with another codec; False for a
        part without rows or in the catalog. `read` gives the part's rows if its bounds do not tell.
        """
        if not self.rules or not part.rows or part.inline:
            return False
        passing: list[tuple[float, str]] = []
        for codec, expiry in self.rules:
            latest = expiry.latest(part)
            if latest is None:
                return self.codec_of(read(part)) not in ("", part.codec or DEFAULT_CODEC)
            passing.append((latest, codec))
        return _last_passed(passing, self._now) not in ("", part.codec or DEFAULT_CODEC)

    @property
    def _now(self) -> float:
        """Return the moment of the rules in seconds since 1970; 0 without rules."""
        return self.rules[0][1].now.timestamp() if self.rules else 0.0


def _last_passed(passing: Sequence[tuple[float, str]], now: float) -> str:
    """Return the codec of the rule whose time passed last before `now`, of equal times the later
    rule; "" if none has passed. `passing` has (seconds since 1970, codec). The time 0 never passes,
    as in ClickHouse."""
    best, chosen = 0.0, ""
    for latest, codec in passing:
        if 0 < latest <= now and latest >= best:
            best, chosen = latest, codec
    return chosen
