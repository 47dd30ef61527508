"""What each model of a dbt-clickhouse project becomes here, with its config and the reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dbt_common.exceptions import CompilationError

from olapdb.bind.analysis import source_of
from olapdb.bind.syntax import walk
from olapdb.sql import nodes
from olapdb.sql.format import to_sql
from olapdb.sql.parser import parse_expression

from ..incremental_mv.chain import Upstream, attach_to_target
from ..incremental_mv.model_sql import read_model
from ..incremental_mv.query_split import SplitQuery, split_query
from ..incremental_mv.refusals import refuse_clauses
from . import dictionaries
from .diagnose import engine_of, order_names, ordered_columns, problems
from .explicit_targets import READER, SHARED, with_own_targets
from .microbatch import microbatch_problems
from .model_text import REF_DATABASE, parsed
from .new_config import dropped_keys, dropped_notes, keys_without_meaning, new_config
from .project import DbtProject, ModelFile

_VIEWS = ("materialized_view", "materializedview")
_STRATEGIES = {"delete_insert": "delete+insert"}
_OF_REFRESHED = ("refreshable", "catchup", "query_settings")
"""Keys that a view which is refreshed on a schedule keeps."""
_MERGING = ("SummingMergeTree", "AggregatingMergeTree")
_OF_TARGET = "Its readers may read that one."
_INSERT = re.compile(
    r"insert\s+into\s+(?:table\s+)?\{\{-?\s*(?:(this)|ref\(\s*['\"]([^'\"]+)['\"]\s*\))", re.I
)


@dataclass(frozen=True)
class Decision:
    """The decision what a model becomes. `config` are the arguments of its new config call as texts, None if
    the file stays as it is. `today` is what is wrong with it now, `notes` what changes."""

    model: ModelFile
    becomes: str
    config: Mapping[str, str] | None = None
    today: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    split: SplitQuery | None = field(default=None, repr=False)

    @property
    def changed(self) -> bool:
        """Return whether the model's file is written anew."""
        return self.config is not None


def decide_all(project: DbtProject) -> list[Decision]:
    """Return the decisions on all models, each after those that it reads, then on the snapshots and
    seeds that change."""
    project = with_own_targets(project)
    writers = _writers(project)
    decisions: dict[str, Decision] = {}

    def visit(name: str, above: frozenset[str]) -> None:
        """Decide on the models that this one reads, then on it; a circle is left to dbt."""
        model = project.models.get(name)
        if model is None or name in decisions or name in above:
            return
        query, reason = _query(model)
        for below in sorted(_refs(query)):
            visit(below, above | {name})
        decision = _decide(model, query, reason, writers, decisions)
        if model.config.get("incremental_strategy") == "microbatch":
            today = (*decision.today, *microbatch_problems(model, query, project))
            decision = replace(decision, today=today)
        notes = (
            *decision.notes,
            *_unit_tests(decision, project),
            *_callers(decision, writers, project),
        )
        decisions[name] = replace(decision, notes=notes)

    for name in sorted(project.models):
        visit(name, frozenset())
    others = (_decide_other(node) for _, node in sorted(project.others.items()))
    return [*decisions.values(), *(other for other in others if other.changed or other.notes)]


def _query(model: ModelFile) -> tuple[nodes.Query | None, str]:
    """Return the model's query, or None and why it cannot be analysed."""
    if model.problem:
        return None, model.problem
    try:
        return parsed(model.text, model.call), ""
    except ValueError as error:
        return None, str(error)


def _refs(query: nodes.Query | None) -> set[str]:
    """Return the names of the models that the query reads."""
    if query is None:
        return set()
    tables = (n.table for n in walk(query) if isinstance(n, nodes.TableReference))
    return {t.name for t in tables if t.database == REF_DATABASE}


def _decide(
    model: ModelFile,
    query: nodes.Query | None,
    reason: str,
    writers: Mapping[str, str],
    decisions: Mapping[str, Decision],
) -> Decision:
    """Return the decision on one model; `decisions` has those on the models that it reads."""
    if model.problem:
        return Decision(model, model.materialized, None, (), (f"left as it is: {model.problem}.",))
    materialized = model.materialized
    if model.rewritten == READER:
        note = f"It wrote into another model's table, which is the incremental_mv now. {_OF_TARGET}"
        config = new_config(model, "view", drop=("ttl",))
        return Decision(model, "view", config, (), (note, *dropped_notes(model, "view")))
    if materialized in _VIEWS or model.rewritten:
        return _decide_view(model, query, reason, writers, decisions)
    if materialized in ("incremental", "distributed_incremental"):
        return _decide_incremental(model)
    if materialized in ("table", "distributed_table", "dictionary"):
        return _decide_table(model)
    if materialized == "view" and dropped_notes(model, "view"):
        return Decision(
            model, "view", new_config(model, "view", drop=()), (), dropped_notes(model, "view")
        )
    return Decision(model, materialized)


def _decide_other(node: ModelFile) -> Decision:
    """Return the decision on a snapshot or seed: the same, without keys that only a cluster has.

    Only the config call of a snapshot's file is written anew; keys of YAML are named."""
    kind = node.materialized
    dropped = dropped_notes(node, kind)
    if not dropped:
        return Decision(node, kind)
    by_yaml = [name for name in dropped_keys(kind) if node.inherited.get(name) is not None]
    notes = [*dropped]
    if by_yaml and not node.call.end:
        notes.append(
            f"Remove {' and '.join(by_yaml)} from its YAML, since a run refuses what means nothing."
        )
        return Decision(node, kind, None, (), tuple(notes))
    if node.problem:
        notes.append(f"Remove it by hand: {node.problem}.")
        return Decision(node, kind, None, (), tuple(notes))
    config = new_config(node, kind, drop=())
    del config["materialized"]
    return Decision(node, kind, config, (), tuple(notes))


# --- materialized views


def _decide_view(
    model: ModelFile,
    query: nodes.Query | None,
    reason: str,
    writers: Mapping[str, str],
    decisions: Mapping[str, Decision],
) -> Decision:
    """Return the decision on a materialized view: an incremental_mv wherever one stays right."""
    if model.config.get("refreshable"):
        return _refreshed(model)
    if ":begin" in model.text:
        note = "It has several views into one target: make an incremental_mv of each, and a view of them."
        return _as_table(model, (), note)
    if query is None:
        note = f"Not analysed, since {reason}. The first dbt run says what is wrong, if anything."
        config = new_config(model, "incremental_mv", drop=("engine",))
        return Decision(
            model, "incremental_mv", config, (), (note, *dropped_notes(model, "incremental_mv"))
        )
    today = (*problems(model, query, writers), *_reads_a_view(query, decisions))
    try:
        select = read_model(to_sql(query))
        refuse_clauses(select)
    except CompilationError as error:
        return _as_table(model, today, f"A trigger cannot maintain it. {_message(error)}")
    try:
        attached = attach_to_target(select, lambda name: _upstream(name, decisions))
    except CompilationError as error:
        note = f"A trigger on the other model's states cannot maintain it. {_message(error)}"
        config = new_config(model, "view", drop=_STORAGE)
        return Decision(model, "view", config, today, (note, *dropped_notes(model, "view")))
    try:
        split = split_query(attached)
    except CompilationError as error:
        return _as_table(model, today, f"A trigger cannot maintain it. {_message(error)}")
    if not split.aggregated and engine_of(model) not in ("MergeTree", "Null"):
        note = (
            f"{engine_of(model)} drops rows of one key, which a trigger's rows may not be. To keep "
            "the newest row of a key by INSERT: select the key, argMax(column, version) … group "
            "by the key, as incremental_mv."
        )
        return _as_table(model, today, note)
    if ordered := ordered_columns(split):
        note = (
            f"A trigger cannot maintain it. {'; '.join(ordered)} depends on the order in which blocks "
            "come. Use argMin or argMax over a column that orders the rows, or groupUniqArray for a set."
        )
        return _as_table(model, today, note)
    return _maintained(model, split, today)


def _reads_a_view(query: nodes.Query, decisions: Mapping[str, Decision]) -> Iterator[str]:
    """Yield a sentence if the query's first FROM is a plain view: no INSERT goes there."""
    source = source_of(query) if isinstance(query, nodes.Select) else None
    decision = decisions.get(source.name) if source and source.database == REF_DATABASE else None
    if decision is not None and decision.model.materialized == "view":
        yield (
            f"it reads the view {decision.model.name}, which no INSERT goes to, so that nothing fires "
            f"it after its fill. Make {decision.model.path} ephemeral, whose SQL is then part of this "
            "model, or select from the table below it."
        )


_STORAGE = ("engine", "order_by", "partition_by", "primary_key", "ttl", "settings")


def _maintained(model: ModelFile, split: SplitQuery, today: tuple[str, ...]) -> Decision:
    """Return the decision that a view becomes an incremental_mv."""
    notes: list[str] = []
    drop = ["engine", "primary_key"]
    keys = [k.name for k in split.keys]
    if split.aggregated:
        notes.append(
            f"The target's engine and its order ({', '.join(keys) or 'one row'}) follow from the "
            "SELECT. Aggregates are stored as states, and the model's name reads them finished."
        )
        if sorted(order_names(model.config.get("order_by"))) != sorted(keys):
            drop.append("order_by")
        if not _columns(model.config.get("partition_by")) <= set(keys):
            drop.append("partition_by")
        if model.config.get("ttl") and not _columns(model.config["ttl"]) <= set(keys):
            drop.append("ttl")
            notes.append(
                f"Its ttl is dropped, so that all rows stay: only a key of the groups "
                f"({', '.join(keys)}) can say when a group leaves."
            )
    elif not model.config.get("order_by"):
        notes.append("It aggregates nothing: give config order_by.")
    if model.config.get("catchup") is False:
        notes.append("It is filled with the rows from before, too: each partition one commit.")
    if re.search(r"SimpleState\s*\(", model.text):
        notes.append(
            "-SimpleState is dropped from the aggregates: plain ones are stored like that."
        )
    if model.rewritten == SHARED:
        drop += [*_STORAGE]
        notes = [
            f"It writes into the target of {model.target}, as one of several. Its columns have the "
            "types of that one: where they differ, the run says so, and CAST(x AS T) AS x converts."
        ]
    elif model.rewritten:
        notes.append("It is the view and its table in one: the view that wrote into it is its SQL.")
        if model.unfilled:
            notes.append(
                f"{', '.join(model.unfilled)} of the table is gone, since no view fills it: add it to the "
                "SELECT if readers need it."
            )
    config = new_config(model, "incremental_mv", drop=tuple(drop))
    if model.rewritten == SHARED:
        config["target"] = repr(model.target)
    everything = (*notes, *dropped_notes(model, "incremental_mv"))
    return Decision(model, "incremental_mv", config, today, everything, split)


def _refreshed(model: ModelFile) -> Decision:
    """Return the decision on a view that is refreshed on a schedule: it stays one."""
    config = new_config(model, "materialized_view", drop=())
    for name in _OF_REFRESHED:
        if name in model.call.texts:
            config[name] = model.call.texts[name]
        elif config.get(name) == "none":
            del config[name]
    note = (
        "It is refreshed by the processes that have the warehouse open for writing, as by a server."
    )
    dropped = tuple(
        n for n in dropped_notes(model, "materialized_view") if n.split()[0] not in _OF_REFRESHED
    )
    return Decision(model, "materialized_view", config, (), (note, *dropped))


def _as_table(model: ModelFile, today: tuple[str, ...], note: str) -> Decision:
    """Return the decision that a view becomes a table, which each dbt run computes anew."""
    config = new_config(model, "table", drop=())
    if ":begin" not in model.text and engine_of(model) in _MERGING:
        # The SELECT has each key once; merges could only join rows of different keys.
        config["engine"] = "'MergeTree'"
    notes = (
        note,
        "Until then it is a table, right after each dbt run.",
        *dropped_notes(model, "table"),
    )
    return Decision(model, "table", config, today, notes)


def _upstream(name: nodes.TableName, decisions: Mapping[str, Decision]) -> Upstream | None:
    """Return the incremental_mv that a ref reads, None for anything else."""
    decision = decisions.get(name.name) if name.database == REF_DATABASE else None
    if decision is None or decision.split is None:
        return None
    target = replace(name, name=f"{name.name}__target")
    return Upstream(name.name, target, decision.split.column_kinds())


def _message(error: CompilationError) -> str:
    """Return the refusal's text without its prefix."""
    return str(error.msg).removeprefix("incremental_mv: ")


def _columns(expression: object) -> set[str]:
    """Return the columns that a config's expression, or list of them, names, without their tables; none for None.
    Raises SyntaxError for text that is no expression."""
    listed = [expression] if isinstance(expression, str) else list(expression or ())  # type: ignore[call-overload]
    return {
        n.parts[-1]
        for text in listed
        for n in walk(parse_expression(f"({text})"))
        if isinstance(n, nodes.Identifier)
    }


# --- tables


def _decide_incremental(model: ModelFile) -> Decision:
    """Return the decision on an incremental model: the same, with our names of strategies."""
    strategy = model.config.get("incremental_strategy")
    notes: list[str] = []
    changes: dict[str, str] = {}
    if model.config.get("inserts_only"):
        changes["incremental_strategy"] = "'append'"
        notes.append("inserts_only is the strategy append.")
    elif strategy in ("legacy", "delete_insert") and not model.config.get("unique_key"):
        changes["incremental_strategy"] = "'append'"
        notes.append(f"{strategy} without a unique_key appends, and says so now.")
    elif strategy in ("legacy", None) and model.config.get("unique_key"):
        changes["incremental_strategy"] = "'delete+insert'"
        said = "legacy" if strategy else "A unique_key without a strategy"
        notes.append(f"{said} is delete+insert, and says so now.")
    elif strategy in _STRATEGIES:
        changes["incremental_strategy"] = repr(_STRATEGIES[str(strategy)])
        notes.append(f"The strategy {strategy} is called {_STRATEGIES[str(strategy)]}.")
    return _stored(model, "incremental", changes, notes)


def _decide_table(model: ModelFile) -> Decision:
    """Return the decision on a table: the same, without what only a cluster has."""
    notes: list[str] = []
    if model.materialized == dictionaries.MATERIALIZED:
        notes += dictionaries.dictionary_notes(model)
    return _stored(model, "table", {}, notes)


def _stored(model: ModelFile, becomes: str, changes: dict[str, str], notes: list[str]) -> Decision:
    """Return the decision on a model that stays a stored table; no new text if nothing changes."""
    dropped = dropped_notes(model, becomes)
    engine = str(model.config.get("engine") or "")
    renamed = becomes != model.materialized or re.match(r"Replicated|Shared|Distributed", engine)
    without_meaning = keys_without_meaning(model)
    if without_meaning:
        notes.append(f"{' and '.join(without_meaning)} is dropped: {engine} has no such key.")
    if not (changes or dropped or renamed or without_meaning) and "settings" not in model.config:
        return Decision(model, becomes, None, (), tuple(notes))
    is_dictionary = model.materialized == dictionaries.MATERIALIZED
    drop = (*without_meaning, *(dictionaries.KEYS if is_dictionary else ()))
    config = {**new_config(model, becomes, drop=drop), **changes}
    if is_dictionary and (hook := dictionaries.post_hook(model)):
        config.pop("post-hook", None)
        config["post_hook"] = hook
    return Decision(model, becomes, config, (), (*notes, *dropped))


def _unit_tests(decision: Decision, project: DbtProject) -> Iterator[str]:
    """Yield a note that says how to change the unit tests of a view whose SQL has moved to its
    table's model."""
    names = project.unit_tests.get(decision.model.name, ())
    if decision.model.rewritten != READER or not names:
        return
    owner = project.models[decision.model.target]
    listed = f"Its unit test{'s' if len(names) > 1 else ''} {', '.join(names)}"
    yield (
        f"{listed} {'are' if len(names) > 1 else 'is'} of SQL that is in {owner.path} now: set model: "
        f"{owner.name} there, and remove the input ref('{owner.name}')."
    )


# --- direct writes, and what calls a dictionary


def _callers(decision: Decision, writers: Mapping[str, str], project: DbtProject) -> Iterator[str]:
    """Yield notes about statements in other files that must be changed, now that the model is
    another kind of relation: an INSERT into it, calls of a dictionary."""
    name = decision.model.name
    by = writers.get(name)
    if decision.becomes == "incremental_mv" and by not in (None, str(decision.model.path)):
        yield (
            f"An INSERT into it is refused, since it is a read view. In {by} name the target: insert "
            f"into {{{{ ref('{name}').incorporate(path={{'identifier': '{name}__target'}}) }}}}."
        )
    if decision.model.materialized == dictionaries.MATERIALIZED:
        paths = dictionaries.callers(name, ((path, text) for path, _, text in _texts(project)))
        if paths:
            yield dictionaries.callers_note(decision.model, paths)


def _writers(project: DbtProject) -> dict[str, str]:
    """Return, by model, the path of a file with an INSERT into its relation, which may be the
    model's own."""
    return {name: path for path, owner, text in _texts(project) for name in _written(text, owner)}


def _texts(project: DbtProject) -> Iterator[tuple[str, str, str]]:
    """Yield (path, model or "", text) of every file that can hold a statement."""
    for model in project.models.values():
        yield str(model.path), model.name, model.text
    for folder in project.settings.get("macro-paths") or ["macros"]:
        for path in sorted((project.root / str(folder)).rglob("*.sql")):
            yield str(path.relative_to(project.root)), "", path.read_text(encoding="utf-8")
    hooks: Any = [project.settings.get(name) for name in ("on-run-start", "on-run-end")]
    yield "dbt_project.yml", "", str(hooks)


def _written(text: str, owner: str) -> set[str]:
    """Return the names of the models that a text inserts into; `this` means the model `owner`."""
    return {owner if match[1] else match[2] for match in _INSERT.finditer(text)} - {""}
