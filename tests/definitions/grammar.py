"""Draws a whole script from a seed: tables, views that read each other, and a history."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.definitions.forms import Forms
from tests.definitions.handles import Handles
from tests.definitions.history import History
from tests.definitions.later import Later
from tests.definitions.objects import Objects
from tests.definitions.queries import QueryDraft, draw_query
from tests.definitions.steps import Script, script_of
from tests.definitions.swaps import Swaps
from tests.definitions.tables import KEY_TYPES, Field, TableDraft, draw_dimension, draw_source
from tests.definitions.targets import draw_target


@dataclass
class Definition:
    """The tables and views that the script creates, assuming that no statement is refused."""

    tables: dict[str, TableDraft] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    dimensions: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    views: dict[str, tuple[QueryDraft, str]] = field(default_factory=dict)
    plain: list[tuple[str, TableDraft]] = field(default_factory=list)


def draw_script(seed: int) -> Script:
    """Draw the script of a seed."""
    chance = random.Random(seed)
    drawing = _Drawing(chance, Forms(seed), Later(seed), Swaps(seed), Handles(seed), Objects(seed))
    return script_of(drawing.texts(), seed)


class _Drawing:
    def __init__(
        self,
        chance: random.Random,
        forms: Forms,
        later: Later,
        swaps: Swaps,
        handles: Handles,
        objects: Objects,
    ) -> None:
        self.chance, self.forms, self.later, self.swaps = chance, forms, later, swaps
        self.handles, self.objects = handles, objects
        if objects.has_dictionaries:
            forms.newest.has_dictionaries = True
        self.definition = Definition()
        self.said: list[str] = []

    def texts(self) -> list[str]:
        chance, definition = self.chance, self.definition
        key_type = chance.choice(list(KEY_TYPES))
        for at in range(chance.choices((1, 2), (80, 20))[0]):
            table = self.later.table(draw_source(chance, ("s", "r")[at], key_type))
            table = self.forms.documents.table(self.forms.latest.table(table))
            table = self.objects.source(table)
            self._create(table)
            definition.sources.append(table.name)
        for at in range(chance.choices((0, 1, 2), (25, 60, 15))[0]):
            drawn = draw_dimension(chance, ("d", "e")[at], key_type)
            table = self.later.table(drawn, is_dimension=True)
            self._create(table)
            definition.dimensions.append(table.name)
        for name in [*definition.sources, *definition.dimensions]:
            if chance.random() < 0.12:
                self.said.append(f"CREATE VIEW pv_{name} AS SELECT * FROM {name}")
                definition.plain.append((f"pv_{name}", definition.tables[name]))
        self.said += self.forms.functions()
        self.said += self.forms.newest.dictionaries(
            [definition.tables[name] for name in definition.dimensions]
        )
        history = History(chance, definition)
        for _ in definition.dimensions:
            self.said += [
                t for _ in range(chance.randint(0, 2)) for t in history.insert_dimension()
            ]
        if chance.random() < 0.7:
            self.said += [t for _ in range(chance.randint(1, 3)) for t in history.insert()]
        for at in range(chance.choices((1, 2, 3, 4), (25, 35, 25, 15))[0]):
            self._view(f"v{at + 1}", f"t{at + 1}")
            if chance.random() < 0.4:
                self.said += history.insert()
        self.said += history.insert()
        self.said += self.swaps.refreshed_view(definition.tables[definition.sources[0]])
        self.said += self.objects.chain(definition)
        for _ in range(chance.randint(5, 12)):
            self.said += self.forms.latest.with_settings(history.step())
            self.said += self.forms.latest.step(
                [definition.tables[n] for n in (*definition.sources, *definition.dimensions)]
            )
            self.said += self.forms.documents.step(
                [definition.tables[n] for n in definition.sources]
            )
            self.said += self.swaps.step(definition)
            self.said += self.objects.step(definition, self.forms.newest.drawn)
            self.said += self.handles.step(
                [(name, query.text) for name, (query, _) in definition.views.items()]
            )
            self.said += self.forms.step(
                [definition.tables[n] for n in (*definition.sources, *definition.dimensions)]
            )
        if chance.random() < 0.5:
            self.said.append("-- mend")
        return self.said

    def _create(self, table: TableDraft) -> None:
        self.said.append(table.ddl)
        self.definition.tables[table.name] = table

    def _view(self, name: str, target_name: str) -> None:
        chance, definition = self.chance, self.definition
        pool = [*definition.sources]
        if definition.targets and chance.random() < 0.3:
            pool = [chance.choice(definition.targets)]
        source = definition.tables[chance.choice(pool)]
        again = [v for v in definition.views.values() if v[0].source == source.name]
        if again and chance.random() < 0.12:
            # Another view writes the same target: the same columns of other rows.
            query, target_name = chance.choice(again)
            where = chance.choice(("g = 1", "x > 0", "g IN (0, 2)", "1", "rand() >= 0", "x != 1"))
            text = _filtered(query, where)
            if text:
                text = self.later.second_writer(text, definition.tables[target_name])
                self.said.append(f"CREATE MATERIALIZED VIEW {name} TO {target_name} AS {text}")
                definition.views[name] = (query, target_name)
                return
        merging = chance.random() < 0.66
        others = [definition.tables[n] for n in definition.dimensions]
        others += [
            definition.tables[n]
            for n in definition.targets
            if n != source.name and chance.random() < 0.5
        ]
        if source.name not in definition.sources and chance.random() < 0.4:
            others += [definition.tables[n] for n in definition.sources]
        query = draw_query(chance, source, others, definition.plain, merging, self.forms)
        own = chance.random() < 0.04
        target = draw_target(chance, target_name, query, merging and query.grouped)
        target = self.later.target(target, query)
        if own:
            key = next((o.name for o in query.outputs if o.is_key), query.outputs[0].name)
            first = next((o.expression for o in query.outputs if o.is_key), "g")
            query.text = query.text.replace(
                " GROUP BY", f" WHERE {first} NOT IN (SELECT {key} FROM {target_name}) GROUP BY", 1
            )
        options = (
            " SETTINGS dimensions = 'at_insert'" if query.reads and chance.random() < 0.04 else ""
        )
        setting = self.forms.latest.of_query()
        if setting:
            options = f"{options}, {setting}" if options else f" SETTINGS {setting}"
        lot = chance.random()
        self._create(target)
        populate = ""
        self.said.append(
            f"CREATE MATERIALIZED VIEW {name} TO {target_name}{populate} AS {query.text}{options}"
        )
        if lot < 0.35:
            self.said.append(f"SYSTEM BACKFILL VIEW {name}")
        definition.targets.append(target_name)
        definition.views[name] = (query, target_name)
        reading = self.forms.read_view(target)
        if reading is not None:
            self.said.append(reading[0])
            definition.plain.append((reading[1].name, reading[1]))


def _filtered(query: QueryDraft, where: str) -> str:
    """Return the query with the condition `where` added; "" if its text has no place for one."""
    if (
        "UNION ALL" in query.text
        or "JOIN" in query.text
        or " WHERE " in query.text
        or "WITH" in query.text
    ):
        return ""
    if " GROUP BY" in query.text:
        return query.text.replace(" GROUP BY", f" WHERE {where} GROUP BY", 1)
    return "" if " LIMIT" in query.text else f"{query.text} WHERE {where}"


def fields_of(table: TableDraft) -> list[Field]:
    return table.fields
