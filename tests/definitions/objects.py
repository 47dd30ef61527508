"""Draws statements about whole objects: dictionaries that are exchanged or replaced, tables and views that are
dropped and come back, sources of other engines, chains through refreshed views, named collections. They have a
random source of their own: the other seeds keep their scripts."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.definitions.newest import DrawnDictionary
from tests.definitions.tables import Field, TableDraft

if TYPE_CHECKING:
    from tests.definitions.grammar import Definition

SOURCE_ENGINES = ("Set", "Join(ANY, LEFT, k)", "Join(ALL, INNER, k)", "Join(ALL, LEFT, k)")


class Objects:
    """A source of such statements for one script; a quarter of the scripts have some."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"objects {seed}")
        self.used = self.lot(0.25)
        self.has_dictionaries = self.used and self.lot(0.5)
        self.count = 0
        self.dropped: list[str] = []
        """Statements that bring back what was dropped."""
        self.others: list[tuple[str, str]] = []
        """Pairs of dictionaries that are exchanged."""
        self.chained: list[str] = []
        """Views that are refreshed, each after those that it reads."""

    def lot(self, share: float) -> bool:
        """Return True with the given probability."""
        return self.chance.random() < share

    def source(self, table: TableDraft) -> TableDraft:
        """Return the source with another engine; mostly the table itself."""
        if not self.used or table.engine != "MergeTree" or not self.lot(0.3):
            return table
        table = table.copy()
        table.engine = self.chance.choice(SOURCE_ENGINES)
        table.more_columns = table.more = ""
        table.fields = [f for f in table.fields if not f.ttl]
        return table

    def chain(self, definition: Definition) -> list[str]:
        """Return the statements for refreshed views in a chain, and for triggers that read them; mostly
        none. The first reads a target or a source, the second the first."""
        if not self.used or not self.lot(0.45):
            return []
        names = [*definition.targets, *definition.sources]
        below = definition.tables[self.chance.choice(names)]
        keys = [f for f in below.of_role("key") if not f.kind and "Nullable" not in f.type]
        if not keys:
            return []
        key = keys[0]
        self.chained = ["ra", "rb"]
        append = " APPEND" if self.lot(0.3) else ""
        final = " FINAL" if below.is_tree and below.engine != "MergeTree" and self.lot(0.5) else ""
        engine = self.chance.choice(("MergeTree", "SummingMergeTree", "ReplacingMergeTree"))
        said = [
            f"CREATE TABLE ta ({key.name} {key.type}, z UInt64) ENGINE = {engine} ORDER BY {key.name}",
            f"CREATE MATERIALIZED VIEW ra REFRESH EVERY 10 YEAR{append} TO ta AS"
            f" SELECT {key.name}, count() AS z FROM {below.name}{final} GROUP BY {key.name}",
            "SYSTEM WAIT VIEW ra",
            f"CREATE MATERIALIZED VIEW rb REFRESH EVERY 10 YEAR DEPENDS ON ra ENGINE = MergeTree"
            f" ORDER BY {key.name} AS SELECT {key.name}, sum(z) AS z FROM ta GROUP BY {key.name}",
            "SYSTEM REFRESH VIEW rb",
            "SYSTEM WAIT VIEW rb",
            *self._triggers(definition, key),
        ]
        definition.tables["ta"] = TableDraft(
            "ta", engine, [key, Field("z", "UInt64", ("1", "2"), role="number")], key.name
        )
        return said

    def _triggers(self, definition: Definition, key: Field) -> list[str]:
        """Return the statements for a view that fires on the refreshed rows, and one that joins them."""
        source = definition.tables[definition.sources[0]]
        said = [
            f"CREATE TABLE tra ({key.name} {key.type}, m UInt64) ENGINE = SummingMergeTree ORDER BY"
            f" {key.name}",
            f"CREATE MATERIALIZED VIEW vra TO tra AS SELECT {key.name}, sum(z) AS m FROM ta"
            f" GROUP BY {key.name}",
            "SYSTEM BACKFILL VIEW vra",
        ]
        if any(f.name == key.name and f.type == key.type for f in source.fields):
            said += [
                f"CREATE TABLE trb ({key.name} {key.type}, m UInt64) ENGINE = MergeTree ORDER BY"
                f" {key.name}",
                f"CREATE MATERIALIZED VIEW vrb TO trb AS SELECT s.{key.name} AS {key.name}, j.z AS m"
                f" FROM {source.name} AS s {self.chance.choice(('LEFT JOIN', 'JOIN'))} rb AS j"
                f" ON s.{key.name} = j.{key.name}",
                "SYSTEM BACKFILL VIEW vrb",
            ]
        return said

    def step(self, definition: Definition, dictionaries: list[DrawnDictionary]) -> list[str]:
        """Return the statements of a step; mostly none."""
        if not self.used or not self.lot(0.4):
            return []
        kinds = [self._dropped, self._dropped, self._collection]
        if dictionaries:
            kinds += [lambda _: self._exchanged(dictionaries)] * 3
            kinds += [lambda _: self._redefined(dictionaries)] * 2
        if self.chained:
            kinds += [self._refreshed] * 4
        return self.chance.choice(kinds)(definition)

    # --- dictionaries

    def _exchanged(self, dictionaries: list[DrawnDictionary]) -> list[str]:
        """Exchange a dictionary with one over other rows; or exchange the two again."""
        if self.others and self.lot(0.5):
            return [f"EXCHANGE DICTIONARIES {' AND '.join(self.chance.choice(self.others))}"]
        drawn = self.chance.choice(dictionaries)
        said, other = self._other_dictionary(drawn)
        self.others.append((drawn.name, other))
        return [*said, f"EXCHANGE DICTIONARIES {drawn.name} AND {other}"]

    def _other_dictionary(self, drawn: DrawnDictionary) -> tuple[list[str], str]:
        """Return the statements for a dictionary over some rows of the drawn one's table, and its name."""
        copy, other = f"{drawn.table}_o{self.count}", f"{drawn.name}_o{self.count}"
        self.count += 1
        rows = self.chance.choice(("", " LIMIT 1", " LIMIT 0"))
        names = ", ".join(drawn.given)
        return [
            f"CREATE TABLE {copy} AS {drawn.table}",
            f"INSERT INTO {copy} ({names}) SELECT {names} FROM {drawn.table}{rows}",
            drawn.ddl(other, copy),
        ], other

    def _redefined(self, dictionaries: list[DrawnDictionary]) -> list[str]:
        """Give a dictionary another source, or drop, rename or reload it."""
        drawn = self.chance.choice(dictionaries)
        lot = self.chance.random()
        if lot < 0.4:
            said, other = self._other_dictionary(drawn)
            copy = f"{drawn.table}_o{self.count - 1}"
            return [
                *said,
                f"DROP DICTIONARY {other}",
                drawn.ddl(drawn.name, copy).replace("CREATE", "CREATE OR REPLACE", 1),
            ]
        if lot < 0.6:
            return [f"DROP DICTIONARY {drawn.name}", drawn.ddl(drawn.name, drawn.table)]
        if lot < 0.8:
            there = f"{drawn.name}_r"
            return [
                f"RENAME DICTIONARY {drawn.name} TO {there}",
                f"RENAME DICTIONARY {there} TO {drawn.name}",
            ]
        return [f"SYSTEM RELOAD DICTIONARY {drawn.name}"]

    # --- what is dropped and comes back

    def _dropped(self, definition: Definition) -> list[str]:
        """Drop a table, or bring one back, with another thing of its name between or not. A table that a
        view needs is dropped after the view, which is made again at the end."""
        if self.dropped and self.lot(0.6):
            return [self.dropped.pop()]
        if definition.views and self.lot(0.6):
            return self._dropped_below(definition)
        name = self.chance.choice(list(definition.tables))
        gone, back = f"DROP TABLE {name}", f"UNDROP TABLE {name}"
        if self.lot(0.5):
            return [gone, back]
        if self.lot(0.3):
            return [gone, definition.tables[name].ddl, gone, back]
        self.dropped.append(back)
        return [gone]

    def _dropped_below(self, definition: Definition) -> list[str]:
        """Drop a view and its source or target, bring the table back, and make the view again."""
        view = self.chance.choice(list(definition.views))
        query, target = definition.views[view]
        name = self.chance.choice((query.source, target))
        between: list[str] = []
        given = ", ".join(f.name for f in definition.tables[name].fields if f.is_given)
        if given and self.lot(0.3):
            between = [
                definition.tables[name].ddl,
                f"INSERT INTO {name} ({given}) SELECT {given} FROM {query.source} LIMIT 1",
                f"DROP TABLE {name}",
            ]
        said = [
            f"DROP VIEW {view}",
            f"DROP TABLE {name}",
            *between,
            f"UNDROP TABLE {name}",
            f"CREATE MATERIALIZED VIEW {view} TO {target} AS {query.text}",
        ]
        mends = (f"SYSTEM BACKFILL VIEW {view}", f"SYSTEM ADOPT VIEW {view}")
        return [*said, self.chance.choice(mends)]

    # --- refreshed views

    def _refreshed(self, definition: Definition) -> list[str]:
        """Refresh one of the chain, or all of it in its order."""
        del definition
        names = self.chained if self.lot(0.5) else [self.chance.choice(self.chained)]
        said = [t for n in names for t in (f"SYSTEM REFRESH VIEW {n}", f"SYSTEM WAIT VIEW {n}")]
        if self.lot(0.2):
            said.append("OPTIMIZE TABLE ta FINAL")
        return said

    def _collection(self, definition: Definition) -> list[str]:
        """Create, change or drop a named collection, which no view reads."""
        del definition
        return [
            self.chance.choice(
                (
                    "CREATE NAMED COLLECTION IF NOT EXISTS nc AS k = 1, x = 'a'",
                    "ALTER NAMED COLLECTION IF EXISTS nc SET k = 2",
                    "DROP NAMED COLLECTION IF EXISTS nc",
                )
            )
        ]
