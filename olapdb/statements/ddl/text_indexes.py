"""Text indexes: the arguments of `INDEX i s TYPE text(tokenizer = ngrams(3), …)`."""

from __future__ import annotations

from collections.abc import Mapping

from olapdb import types
from olapdb.bind.syntax import walk as walk_syntax
from olapdb.engine.text_preprocessing import preprocessed
from olapdb.errors import BadArguments, IncorrectNumberOfColumns, IncorrectQuery, NotSupportedError
from olapdb.functions.kernels.by_value import bytes_of_text
from olapdb.functions.strings.tokenizers import Tokenizer
from olapdb.model.schema import SkipIndex, Table
from olapdb.plan.expressions import Expression, columns_of, is_pure
from olapdb.sql import nodes
from olapdb.sql.format import to_sql

GRANULARITY = 100_000_000
"""The GRANULARITY of each text index, whatever was said: it spans its part, as in ClickHouse."""
_NUMBERS = (
    "dictionary_block_size",
    "posting_list_block_size",
    "dictionary_block_frontcoding_compression",
)
_POSTING_CODECS = ("none", "bitpacking")
_REFUSED = ("postprocessor", "support_phrase_search")


def check_indexed_text(definition: nodes.IndexDefinition, data_type: types.DataType) -> None:
    """Raise an error as ClickHouse's for an expression that is neither a text nor an array of
    texts."""
    inner = types.plain(data_type)
    if isinstance(definition.expression, nodes.TupleLiteral):
        raise IncorrectNumberOfColumns(
            f"Text index {definition.name} must be created on a single column.",
            position=definition.position,
        )
    if isinstance(inner, types.Array):
        inner = types.plain(inner.inner)
    if not isinstance(inner, types.String | types.FixedString):
        raise BadArguments(
            f"Text index {definition.name} must be created on String or FixedString, or an Array of"
            f" them, not {data_type}.",
            position=definition.position,
        )


def text_index(definition: nodes.IndexDefinition, bound: Expression) -> SkipIndex:
    """Return the text index of the definition, over the bound expression.

    Raises BadArguments for missing, unknown and unsuitable arguments, NotSupportedError for those
    that olapdb lacks, IncorrectQuery and the binder's errors for a preprocessor.
    """
    given = _arguments(definition)
    tokenizer = given.get("tokenizer")
    if tokenizer is None:
        raise BadArguments(
            f"Text index {definition.name} requires an argument tokenizer.",
            hint="For example TYPE text(tokenizer = splitByNonAlpha).",
            position=definition.position,
        )
    _check_options(definition, given)
    preprocessor = given.get("preprocessor")
    index = SkipIndex(
        definition.name,
        to_sql(definition.expression),
        "text",
        tuple(sorted(columns_of(bound))),
        granularity=GRANULARITY,
        tokenizer=_tokenizer(tokenizer).text,
        preprocessor="" if preprocessor is None else to_sql(preprocessor),
        definition=", ".join(f"{name} = {_shown(value)}" for name, value in given.items()),
    )
    if preprocessor is not None:
        _check_preprocessor(definition, index, preprocessor, bound.type)
    return index


def _check_preprocessor(
    definition: nodes.IndexDefinition,
    index: SkipIndex,
    preprocessor: nodes.Expression,
    data_type: types.DataType,
) -> None:
    """Raise IncorrectQuery for a preprocessor that is no pure function of a text to a text, and the
    binder's errors."""
    if any(isinstance(node, nodes.Subquery | nodes.Query) for node in walk_syntax(preprocessor)):
        raise IncorrectQuery(
            "The preprocessor of a text index reads no table.", position=definition.position
        )
    expression = preprocessed(index, data_type)
    is_call = isinstance(preprocessor, nodes.Function) and preprocessor != definition.expression
    if expression is None or not columns_of(expression) or not is_call:
        raise IncorrectQuery(
            f"The preprocessor {index.preprocessor} must be a function of {index.expression}.",
            position=definition.position,
        )
    if not is_pure(expression):
        raise IncorrectQuery(
            f"The preprocessor {index.preprocessor} gives another value each time.",
            position=definition.position,
        )
    source, result = types.plain(data_type), types.plain(expression.type)
    if isinstance(source, types.Array) and isinstance(result, types.Array):
        result = types.plain(result.inner)
    if not isinstance(result, types.String | types.FixedString):
        raise IncorrectQuery(
            f"The preprocessor {index.preprocessor} gives {expression.type}, not a text.",
            position=definition.position,
        )


def refuse_second_text_index(
    index: SkipIndex, table: Table, definition: nodes.IndexDefinition
) -> None:
    """Raise BadArguments if the table has a text index over the same expression."""
    if index.type == "text" and any(
        other.type == "text" and other.expression == index.expression for other in table.indexes
    ):
        raise BadArguments(
            f"{index.expression} must not have more than one text index.",
            hint="Drop the other one.",
            position=definition.position,
        )


def _arguments(definition: nodes.IndexDefinition) -> Mapping[str, nodes.Expression]:
    """Return the arguments `name = value` by name. Raise BadArguments for an argument of another
    form, and for a name that occurs twice."""
    given: dict[str, nodes.Expression] = {}
    for argument in definition.type.arguments:
        match argument:
            case nodes.Function(
                name="equals", arguments=(nodes.Identifier(parts=(str(name),)), value)
            ):
                if name in given:
                    raise BadArguments(
                        f"Text index argument {name} is given more than once.",
                        position=definition.position,
                    )
                given[name] = value
            case _:
                raise BadArguments(
                    f"{to_sql(argument)} is no argument of a text index.",
                    hint="Each is name = value, as in text(tokenizer = ngrams(3)).",
                    position=definition.position,
                )
    return given


def _check_options(
    definition: nodes.IndexDefinition, given: Mapping[str, nodes.Expression]
) -> None:
    """Raise NotSupportedError or BadArguments for options that olapdb lacks or does not know, and
    for values that ClickHouse refuses. Options about the layout of ClickHouse's files are checked
    but have no effect."""
    for name, expression in given.items():
        value = _value(expression)
        if name in _REFUSED:
            raise NotSupportedError(
                f"Text index argument {name} is not supported.",
                hint="A preprocessor changes a text before it is split.",
                position=definition.position,
            )
        if name in _NUMBERS:
            is_flag = name.endswith("compression")
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not whole or (value not in (0, 1) if is_flag else value < 1):  # type: ignore[operator]
                raise BadArguments(
                    f"Text index argument {name} is {'0 or 1' if is_flag else 'a number above 0'}.",
                    position=definition.position,
                )
        elif name == "posting_list_codec":
            if value not in _POSTING_CODECS:
                raise BadArguments(
                    f"Unknown posting list codec of index {definition.name}: {to_sql(expression)}.",
                    hint=f"It is one of {', '.join(_POSTING_CODECS)}.",
                    position=definition.position,
                )
        elif name not in ("tokenizer", "preprocessor"):
            raise BadArguments(
                f"Unexpected text index argument {name}.", position=definition.position
            )


def _tokenizer(expression: nodes.Expression) -> Tokenizer:
    """Return the tokenizer that `ngrams(3)`, `ngrams` or 'ngrams' names; raise BadArguments for
    anything else."""
    match expression:
        case nodes.Identifier(parts=(str(name),)):
            return Tokenizer.of(name)
        case nodes.Literal(value=str(name)):
            return Tokenizer.of(name)
        case nodes.Function(name=name, arguments=arguments):
            return Tokenizer.of(name, [_option(argument) for argument in arguments])
    raise BadArguments(
        f"The name of a tokenizer is a text, not {to_sql(expression)}.",
        position=expression.position,
    )


def _option(expression: nodes.Expression) -> object:
    """Return the value of a tokenizer's argument: texts as bytes, arrays as lists."""
    if isinstance(expression, nodes.ArrayLiteral):
        return [_option(element) for element in expression.elements]
    value = _value(expression)
    return bytes_of_text(value) if isinstance(value, str) else value


def _shown(expression: nodes.Expression) -> str:
    """Return an argument's value as SQL; the name of a tokenizer stands alone, `array` too."""
    if isinstance(expression, nodes.Identifier):
        return ".".join(expression.parts)
    return to_sql(expression)


def _value(expression: nodes.Expression) -> object:
    """Return the value of a literal; None for another expression."""
    return expression.value if isinstance(expression, nodes.Literal) else None
