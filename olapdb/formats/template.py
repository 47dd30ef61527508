"""Template: rows, and the result around them, as texts with columns in them that settings give."""

from __future__ import annotations

import re
from typing import Never

import pyarrow as pa

from olapdb import errors
from olapdb.formats.base import Ending, Format, Header, Input, Reader, Writer
from olapdb.formats.custom import column_values
from olapdb.formats.texts import body, joined_rows
from olapdb.records import dataclass

_PLACE = re.compile(r"\$(?:\$|\{([^:}]*)(?::([^}]*))?\})")
_RULES = ("Escaped", "Quoted", "CSV", "JSON", "XML", "Raw")
_OF_RESULT = ("data", "totals", "min", "max", "rows", "rows_before_limit", "time", "rows_read")
_OF_RESULT_TEXTS = ("data", "totals", "min", "max")
"""What stands for rows, written as rows are; the others are numbers, written by a rule."""


@dataclass(frozen=True)
class _Template:
    """A parsed template. `texts` surround its places and are one more than these; each place has a name and an
    escaping rule."""

    texts: tuple[str, ...]
    places: tuple[tuple[str, str], ...]


def _parse(text: str) -> _Template:
    """Parse a template with places `${name:rule}`; `$$` is a dollar sign."""
    texts, places, at = [""], [], 0
    for match in _PLACE.finditer(text):
        texts[-1] += text[at : match.start()]
        at = match.end()
        if match[0] == "$$":
            texts[-1] += "$"
            continue
        places.append((match[1], match[2] or ""))
        texts.append("")
    texts[-1] += text[at:]
    return _Template(tuple(texts), tuple(places))


class TemplateWriter(Writer):
    """A writer of Template.

    Raises InvalidTemplate, BadArguments for an unknown rule, NotFoundColumnInBlock."""

    def __init__(self, header: Header) -> None:
        """Parse the templates of the settings and match their places to the columns."""
        super().__init__(header)
        settings = header.settings
        self._row = _parse(settings.text("format_template_row_format"))
        self._result = _parse(settings.text("format_template_resultset_format") or "${data}")
        self._between = settings.text("format_template_rows_between_delimiter")
        self._columns = [self._column(name) for name, _ in self._row.places]
        self._rules = [_checked_rule(name, rule) for name, rule in self._row.places]
        if not self._columns:
            raise errors.InvalidTemplate(
                "The template of a row names no column.",
                hint="SETTINGS format_template_row_format = '${column:CSV}' gives one.",
            )
        self._check_result()
        self._has_rows = False

    def start(self) -> bytes:
        """Return the text before the rows."""
        return self._result.texts[0].encode()

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows with the delimiter between them."""
        text = body(joined_rows([self.rows(batch)], "", self._between))
        is_first, self._has_rows = not self._has_rows, True
        return text[len(self._between.encode()) :] if is_first else text

    def finish(self, ending: Ending) -> bytes:
        """Return the text after the rows."""
        places = [b"", *(self._place(name, ending) for name, _ in self._result.places[1:])]
        texts = [text.encode() for text in self._result.texts[1:]]
        return b"".join(place + text for place, text in zip(places, texts, strict=True))

    def rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return each row, formatted by the row template."""
        texts: list[pa.Array | str] = [self._row.texts[0]]
        for at, rule, text in zip(self._columns, self._rules, self._row.texts[1:], strict=True):
            column, data_type = batch.column(at), self.header.types[at]
            texts += [column_values(rule, column, data_type, self.header), text]
        return joined_rows(texts, "")

    def _column(self, name: str) -> int:
        """Return the position of a column that a place gives by name, or by number from 0. Raises
        NotFoundColumnInBlock."""
        if name in self.header.names:
            return self.header.names.index(name)
        if name.isdigit() and int(name) < len(self.header.names):
            return int(name)
        raise errors.NotFoundColumnInBlock(
            f"Not found column {name} in block.", hint=f"There are {', '.join(self.header.names)}."
        )

    def _check_result(self) -> None:
        """Check the places of the result template. Raises InvalidTemplate unless its first place is `${data}`,
        SyntaxError for an unknown place, and the errors of `_checked_rule`."""
        names = [name for name, _ in self._result.places]
        for name, rule in self._result.places:
            if name not in _OF_RESULT:
                raise errors.SyntaxError(
                    f"A result has no {name}.", hint=f"It has {', '.join(_OF_RESULT)}."
                )
            if name not in _OF_RESULT_TEXTS:
                _checked_rule(name, rule)
        if names.index("data") if "data" in names else 1:
            raise errors.InvalidTemplate("${data} must be the first part of the result's template.")

    def _place(self, name: str, ending: Ending) -> bytes:
        """Return the text for a place of the result template, such as the totals or the number of rows."""
        limited = None if ending.statistics is None else ending.statistics.rows_before_limit
        match name:
            case "totals" if ending.totals is not None:
                return body(self.rows(ending.totals))
            case "min" if ending.extremes is not None:
                return body(self.rows(ending.extremes.slice(0, 1)))
            case "max" if ending.extremes is not None:
                return body(self.rows(ending.extremes.slice(1, 1)))
            case "rows":
                return str(ending.rows).encode()
            case "time":
                return repr(ending.elapsed_seconds).encode()
            case "rows_read" if ending.statistics is not None:
                return str(ending.statistics.rows_read).encode()
            case "rows_before_limit" if ending.statistics is not None and limited is not None:
                return str(limited).encode()
            case _:
                raise errors.InvalidTemplate(f"Cannot print {name} for this request.")


def _checked_rule(name: str, rule: str) -> str:
    """Return the rule unchanged. Raises InvalidTemplate if it is empty, BadArguments if it is unknown."""
    if not rule or rule == "None":
        raise errors.InvalidTemplate(
            f"Serialization type for column {name} is not specified.",
            hint=f"Write ${{{name}:rule}}; rules are {', '.join(_RULES)}.",
        )
    if rule not in _RULES:
        raise errors.BadArguments(
            f"Unknown escaping rule {rule!r}.", hint=f"There are {', '.join(_RULES)}."
        )
    return rule


def _refuse_input(source: Input) -> Never:
    """Raise BadArguments: ClickHouse reads Template only with template files, which olapdb does not support."""
    raise errors.BadArguments(
        "The format Template requires a schema, a file that format_template_row names.",
        hint="olapdb writes Template. Regexp and CustomSeparated read such data.",
    )


FORMATS = (
    Format(
        "Template",
        "Rows as the setting format_template_row_format says.",
        TemplateWriter,
        Reader(_refuse_input, _refuse_input),
    ),
)
