"""What a model declares of the tables that it reads: its dimensions, and the source's identity of rows."""

from __future__ import annotations

from olapdb.bind.analysis import referenced_tables, source_of
from olapdb.sql import nodes
from olapdb.sql.parser import parse_one

from .config import ModelConfig
from .errors import refuse
from .warehouse import TableInfo


def check_inputs(select: nodes.Select, source: TableInfo, config: ModelConfig) -> None:
    """Raise CompilationError if the model joins other tables than it declares (config dimensions),
    or if its source does not drop repeated rows by the declared columns (config deduplicate_by)."""
    if config.dimensions is not None:
        _check_dimensions(select, config.dimensions)
    if config.deduplicate_by:
        _check_deduplication(source, config.deduplicate_by)


def _check_dimensions(select: nodes.Select, declared: tuple[str, ...]) -> None:
    """Raise CompilationError unless the declared tables are those that the model joins."""
    source = source_of(select)
    joined = [name for name in referenced_tables(select) if name != source]
    names = {_bare(name) for name in declared}
    undeclared = [str(n) for n in joined if not names & {n.name, f"{n.database}.{n.name}"}]
    known = {n.name for n in joined} | {f"{n.database}.{n.name}" for n in joined}
    unused = sorted(names - known)
    problems = [f"it joins {', '.join(undeclared)}, which are not declared"] if undeclared else []
    problems += [f"it does not join {', '.join(unused)}"] if unused else []
    if problems:
        raise refuse(
            f"config dimensions lists {', '.join(declared) or 'none'}, but",
            f"{'; '.join(problems)}.",
            "A change of a dimension makes the rows of the model stale that used it; correct the "
            "list or the joins.",
        )


def _bare(name: str) -> str:
    """Return a name without quotes: `a`.`b` is a.b."""
    return name.replace("`", "").replace('"', "")


def _check_deduplication(source: TableInfo, declared: tuple[str, ...]) -> None:
    """Raise CompilationError unless the source drops rows that repeat the declared columns."""
    table = parse_one(f"CREATE TABLE t (x UInt8) ENGINE = {source.engine_full}")
    assert isinstance(table, nodes.CreateTable)
    settings = {setting.name: str(setting.value) for setting in table.storage.settings}
    columns = [c.strip() for c in settings.get("deduplicate_by", "").split(",") if c.strip()]
    if columns == list(declared):
        return
    name = f"{source.database}.{source.name}"
    has = f"drops rows by {', '.join(columns)}" if columns else "keeps all rows"
    raise refuse(
        f"config deduplicate_by is {', '.join(declared)}, but the source {name}",
        f"{has}: rows that are delivered twice have to be dropped before they reach a trigger.",
        f"ALTER TABLE {name} MODIFY SETTING deduplicate_by = '{', '.join(declared)}', or correct "
        "the config.",
    )
