"""Shrinks a script that shows a finding: leaves out steps, then rows, columns and clauses.

A shorter script is accepted if its run ends in a finding of the same kind."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.definitions.run import Finding, run_script
from tests.definitions.steps import MEND, Script, Step, arrow_data, script_of

RUNS_MAX = 600
CLAUSES = (
    r" PARTITION BY (?:\([^()]*\)|[^ ]+(?: [%+] \d+)?)(?= ORDER)",
    r" TTL .*?(?= SETTINGS|$)",
    r", CONSTRAINT \w+ CHECK [^,]*(?=\) ENGINE)",
    r" SETTINGS max_insert_block_size = \d+",
    r" SETTINGS .*$",
    r" UNION ALL .*$",
    r" WHERE .*?(?= GROUP BY| LIMIT| UNION|\)|$)",
    r" HAVING .*?(?= UNION|\)|$)",
    r" (?:LEFT )?ARRAY JOIN arr AS el",
    r"DISTINCT ",
    r" FINAL",
    r" LIMIT .*$",
    r" ORDER BY ALL",
    r" AS s (?:\w+ )+JOIN .*? ON s\.\w+ = j\.\w+",
    r" (?:DEFAULT|MATERIALIZED|ALIAS) [^,()]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?[^,()]*(?=,|\))",
    r", (?:MODIFY|ADD) .*$",
)
REWRITES = (
    (
        r"(?:toString|ifNull|upper|toInt64|toFloat64|abs|negate|length)\(([\w.]+)(?:, '[^']*')?\)",
        r"\1",
    ),
    (r" \* 0\.5", ""),
    (r"SimpleAggregateFunction\(\w+, (\w+)\)", r"\1"),
    (r"Nullable\((\w+)\)", r"\1"),
    (r"LowCardinality\(String\)", "String"),
    (r"FixedString\(\d\)", "String"),
    (r"\b(?:anyLast|stddevPop|uniqExact|avg|median)State\(", "sumState("),
    (r"ReplacingMergeTree\(ver, gone\)", "ReplacingMergeTree(ver)"),
    (r"ReplacingMergeTree\(\w+\)", "ReplacingMergeTree"),
    (r"(?:INNER|LEFT|ANY LEFT|LEFT ANY) JOIN", "JOIN"),
    (r"\(SELECT \* FROM (\w+)[^()]*\)", r"\1"),
    (r"ENGINE = (?:Memory|Log)\b", "ENGINE = MergeTree ORDER BY tuple()"),
    (r" \+ [01]\b", ""),
    (r"ORDER BY \((\w+), \w+\)", r"ORDER BY \1"),
    (r"ORDER BY \(\w+, (\w+)\)", r"ORDER BY \1"),
    (r"ORDER BY \((\w+)\)", r"ORDER BY \1"),
)


class Shrinking:
    """A search: `best` is the shortest script so far, `finding` its finding, `left` the runs
    allowed."""

    def __init__(self, script: Script, finding: Finding, runs_max: int = RUNS_MAX) -> None:
        self.best = Script(script.steps[: finding.step + 1], script.seed)
        self.finding = finding
        self.left = runs_max

    def run(self) -> Finding:
        self._write_out_mending()
        for at, step in enumerate(self.best.steps):
            arrow = arrow_data(step.text)
            if arrow is not None and at < len(self.best.steps):
                self.holds(self.best.with_step(at, _as_values(*arrow)))
        while self.left > 0 and (self._steps() or self._inside()):
            pass
        return self.finding

    def holds(self, script: Script) -> bool:
        """Run the script; if it shows a finding of the same kind, make it the best and return
        True."""
        if self.left <= 0:
            return False
        self.left -= 1
        found = run_script(script)
        if found is None or found.kind != self.finding.kind:
            return False
        self.best = Script(script.steps[: found.step + 1], script.seed)
        self.finding = found
        return True

    def _write_out_mending(self) -> None:
        """Replace the mending directive by the statements that it ran, if these show the same
        finding."""
        at = next((n for n, s in enumerate(self.best.steps) if s.text == MEND), None)
        if at is None:
            return
        texts = [t for t in self.finding.said if not t.startswith("-- refused")]
        self.holds(script_of(texts, self.best.seed)) or self.holds(
            script_of([*texts, MEND], self.best.seed)
        )

    def _steps(self) -> bool:
        """Leave out runs of steps; return whether any could be left out."""
        went = False
        for size in (16, 8, 4, 2, 1):
            at = len(self.best.steps) - size
            while at >= 0:
                if at + size <= len(self.best.steps) and self.holds(self.best.without(at, size)):
                    went = True
                at -= size if size > 1 else 1
        return went

    def _inside(self) -> bool:
        went = False
        for shorter in (self._rows, self._columns, self._clauses):
            went = shorter() or went
        return went

    def _each(self, candidates: Iterator[Script]) -> bool:
        return any(self.holds(candidate) for candidate in candidates)

    def _rows(self) -> bool:
        went = False
        while self._each(_fewer_rows(self.best)):
            went = True
        return went

    def _columns(self) -> bool:
        went = False
        while self._each(_fewer_columns(self.best)):
            went = True
        return went

    def _clauses(self) -> bool:
        went = False
        while self._each(_fewer_clauses(self.best)):
            went = True
        return went


def shrunk(script: Script, finding: Finding, runs_max: int = RUNS_MAX) -> tuple[Script, Finding]:
    shrinking = Shrinking(script, finding, runs_max)
    return (shrinking.best, shrinking.finding) if shrinking.run() else (script, finding)


def _as_values(table: str, columns: dict[str, list[object]]) -> str:
    """Return the INSERT of Arrow data as SQL."""
    rows = zip(*columns.values(), strict=True)
    said = ", ".join(
        "(" + ", ".join("NULL" if v is None else repr(v) for v in row) + ")" for row in rows
    )
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {said}"


# --- candidates ----------------------------------------------------------------------------------


def _fewer_rows(script: Script) -> Iterator[Script]:
    for at, step in enumerate(script.steps):
        head, values, rows = step.text.partition(" VALUES ")
        if not values or not step.is_insert:
            continue
        several = split_list(rows, outer=True)
        for row in range(len(several)):
            if len(several) > 1:
                yield script.with_step(
                    at, f"{head} VALUES {', '.join(several[:row] + several[row + 1 :])}"
                )


def _fewer_columns(script: Script) -> Iterator[Script]:
    """Yield scripts without one column: in the table's CREATE, its INSERTs and queries into it."""
    for at, step in enumerate(script.steps):
        created = re.match(r"CREATE (?:OR REPLACE )?TABLE (\w+) \(", step.text)
        if created is None:
            continue
        table = created[1]
        start = created.end()
        end = _closing(step.text, start)
        columns = split_list(step.text[start:end])
        for n, column in enumerate(columns):
            name = column.split()[0]
            rest = columns[:n] + columns[n + 1 :]
            if not rest or name == "CONSTRAINT":
                continue
            text = step.text[:start] + ", ".join(rest) + step.text[end:]
            text = re.sub(
                rf"ORDER BY \((?:(.*), )?{name}(?:, (\w+))?\)",
                lambda m: f"ORDER BY ({', '.join(g for g in m.groups() if g)})".replace(
                    "()", "tuple()"
                ),
                text,
            )
            text = re.sub(rf"ORDER BY {name}\b", "ORDER BY tuple()", text)
            yield script_of(
                _without_column(s, table, name, text if i == at else "")
                for i, s in enumerate(script.steps)
            )


def _without_column(step: Step, table: str, name: str, replaced: str) -> str:
    if replaced:
        return replaced
    text = step.text
    insert = re.match(rf"INSERT INTO {table} \(([^()]*)\)(.*?) VALUES (.*)$", text)
    if insert is not None:
        names = insert[1].split(", ")
        if name not in names or len(names) == 1:
            return text
        at = names.index(name)
        rows = [split_list(row.strip()[1:-1]) for row in split_list(insert[3], outer=True)]
        kept = ", ".join(
            f"({', '.join(r[:at] + r[at + 1 :])})" for r in rows if len(r) == len(names)
        )
        return f"INSERT INTO {table} ({', '.join(names[:at] + names[at + 1 :])}){insert[2]} VALUES {kept}"
    if f" TO {table} AS" in text:
        return drop_output(text, name)
    return text


def drop_output(text: str, name: str) -> str:
    """Return the statement without the output `name` in its SELECTs and without that GROUP BY
    key."""

    def one(match: re.Match[str]) -> str:
        items = split_list(match[2])
        gone = [i for i in items if i == name or i.endswith((f" AS {name}", f".{name}"))]
        kept = [i for i in items if i not in gone]
        return f"{match[1]}{', '.join(kept or items)} FROM"

    before = text
    text = re.sub(r"((?:AS|ALL) SELECT (?:DISTINCT )?)(.*?) FROM", one, text)
    items = [
        i
        for m in re.finditer(r"(?:AS|ALL) SELECT (?:DISTINCT )?(.*?) FROM", before)
        for i in split_list(m[1])
    ]
    for item in items:
        if item == name or item.endswith(f" AS {name}"):
            expression = re.escape(item.removesuffix(f" AS {name}"))
            text = re.sub(rf" GROUP BY {expression}(?=$| |\))", "", text)
            text = re.sub(rf"( GROUP BY .*?), {expression}(?=$| |\))", r"\1", text)
            text = re.sub(rf" GROUP BY {expression}, ", " GROUP BY ", text)
    return text


def _fewer_clauses(script: Script) -> Iterator[Script]:
    for at, step in enumerate(script.steps):
        for pattern in CLAUSES:
            for found in reversed(list(re.finditer(pattern, step.text))):
                yield script.with_step(at, step.text[: found.start()] + step.text[found.end() :])
        for pattern, by in REWRITES:
            text = re.sub(pattern, by, step.text)
            if text != step.text:
                yield script.with_step(at, text)


def split_list(text: str, outer: bool = False) -> list[str]:
    """Split a list at commas that are outside brackets and quotes."""
    del outer
    found, depth, quoted, start = [], 0, False, 0
    for at, sign in enumerate(text):
        if sign == "'":
            quoted = not quoted
        elif not quoted and sign in "([":
            depth += 1
        elif not quoted and sign in ")]":
            depth -= 1
        elif not quoted and sign == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    return [*found, text[start:].strip()]


def _closing(text: str, start: int) -> int:
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return len(text)
