"""formatRow and formatRowNoNewline: the text of each row in a format."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import errors
from olapdb.bind.contracts import Binder
from olapdb.bind.result_names import result_name
from olapdb.config import Settings
from olapdb.formats.base import Ending, Header
from olapdb.formats.registry import find_format, writer_of
from olapdb.functions.base import Environment, ScalarCall
from olapdb.functions.kernels import columns, regexes
from olapdb.plan.expressions import Call, Constant, Expression
from olapdb.records import dataclass
from olapdb.sql import nodes as sql
from olapdb.types import STRING, DataType


def bind_format_row(binder: Binder, node: sql.Function) -> Expression:
    """Bind `formatRow('format', x, …)`; formatRowNoNewline leaves out the line feed at the end.

    The columns have the names that a result would have. Raises NumberOfArgumentsDoesntMatch,
    IllegalTypeOfArgument if the format is no constant text, UnknownFormat, FormatNotForOutput, and
    BadArguments for a format that does not write row by row."""
    arguments = tuple(binder.bind(argument) for argument in node.arguments)
    if len(arguments) < _ARGUMENTS_MIN:
        raise errors.NumberOfArgumentsDoesntMatch(
            f"{node.name} takes the name of a format and at least one value."
        )
    first = arguments[0]
    name = first.value.as_py() if isinstance(first, Constant) else None
    if not isinstance(name, str):
        raise errors.IllegalTypeOfArgument(f"{node.name} begins with the name of a format.")
    kernel = _FormatRow(
        find_format(name).name,
        tuple(result_name(binder, argument) for argument in node.arguments[1:]),
        tuple(argument.type for argument in arguments[1:]),
        Settings.of(binder.queries.scope.settings),
        node.name == "formatRow",
    )
    kernel.check(binder.queries.scope.environment)
    return Call(STRING, node.name, arguments, ScalarCall(node.name, STRING, kernel, "query"))


_ARGUMENTS_MIN = 2


@dataclass(frozen=True)
class _FormatRow:
    """The kernel of formatRow for a format and columns of these names and types."""

    format: str
    names: tuple[str, ...]
    types: tuple[DataType, ...]
    settings: Settings
    ends_line: bool

    def check(self, environment: Environment) -> None:
        """Format zero rows, to raise the errors of the format at binding."""
        self([None, *(pa.nulls(0, kind.arrow) for kind in self.types)], 0, environment)

    def __call__(
        self, arguments: Sequence[pa.Array | pa.Scalar | None], rows: int, environment: Environment
    ) -> pa.Array:
        """Return the text of each row, with what the format has before and behind all rows."""
        header = Header(self.names, self.types, self.settings, environment)
        writer = writer_of(self.format, header)
        arrays = [columns.as_array(argument, rows) for argument in arguments[1:]]
        fields = [pa.field(f"{at}", array.type) for at, array in enumerate(arrays)]
        start = columns.text(pa.array([writer.start()], pa.binary()))[0]
        texts = writer.rows(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))
        end = columns.text(pa.array([writer.finish(Ending(rows=1))], pa.binary()))[0]
        texts = pc.binary_join_element_wise(start, columns.text(texts), end, "")
        if self.ends_line:
            return texts
        return pc.if_else(pc.ends_with(texts, "\n"), _without_last(texts), texts)


def _without_last(texts: pa.Array) -> pa.Array:
    """Return the texts without the line feed at their end."""
    return regexes.replaced(texts, r"\n\z", "")
