"""Prometheus: metrics in the text format that a Prometheus server reads."""

from __future__ import annotations

import json
from itertools import groupby

import pyarrow as pa

from olapdb import errors, types
from olapdb.formats.base import Ending, Format, Header, Writer
from olapdb.formats.texts import shown

_ALLOWED = ("name", "value", "help", "type", "timestamp", "labels")
_KINDS = ("counter", "gauge", "histogram", "summary", "untyped")


class PrometheusWriter(Writer):
    """A writer of the Prometheus text format: consecutive rows of one name are one metric. Raises BadArguments if the
    columns are not those of a metric."""

    def __init__(self, header: Header) -> None:
        """Check that the columns are those of a metric."""
        super().__init__(header)
        known = dict(zip(header.names, header.types, strict=True))
        for name in ("name", "value"):
            if name not in known:
                raise errors.BadArguments(
                    f"Column '{name}' is required for output format 'Prometheus'.",
                    hint=f"Columns are {', '.join(_ALLOWED)}.",
                )
        if not isinstance(types.plain(known["name"]), types.String):
            raise errors.BadArguments("Column 'name' of Prometheus is a String.")
        if not types.is_number(types.plain(known["value"])):
            raise errors.BadArguments("Column 'value' of Prometheus is a number.")
        labels = types.plain(known.get("labels", types.Map(types.STRING, types.STRING)))
        if not isinstance(labels, types.Map):
            raise errors.BadArguments("Column 'labels' of Prometheus is a Map(String, String).")
        self._rows: list[dict[str, str | list[tuple[str, str]] | None]] = []

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Keep the rows; the text comes at the end, since a metric has all rows of its name."""
        by_column: dict[str, list[str | list[tuple[str, str]] | None]] = {}
        for name, kind, column in zip(
            self.header.names, self.header.types, batch.columns, strict=True
        ):
            if name == "labels":
                by_column[name] = column.to_pylist()
            elif name in _ALLOWED:
                by_column[name] = shown(column, kind, self.header).to_pylist()
        self._rows += [
            dict(zip(by_column, values, strict=True))
            for values in zip(*by_column.values(), strict=True)
        ]
        return b""

    def finish(self, ending: Ending) -> bytes:
        """Return the texts of all metrics, each followed by an empty line."""
        pieces = []
        for name, rows in groupby(self._rows, lambda row: row["name"]):
            pieces.append(_metric(str(name), list(rows)))
        return "".join(pieces).encode("utf-8", "surrogateescape")


def _metric(name: str, rows: list[dict[str, str | list[tuple[str, str]] | None]]) -> str:
    """Return the text of a metric, given its rows. Raises BadArguments for an unknown metric type."""
    lines = []
    if explained := rows[0].get("help"):
        lines.append(f"# HELP {name} {_escaped(str(explained))}")
    if kind := rows[0].get("type"):
        if kind not in _KINDS:
            raise errors.BadArguments(
                f"Unknown metric type {kind}.", hint=f"Types are {', '.join(_KINDS)}."
            )
        lines.append(f"# TYPE {name} {kind}")
    for row in rows:
        pairs = row.get("labels") or []
        assert isinstance(pairs, list)
        written = ",".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in pairs)
        labels = f"{{{written}}}" if written else ""
        stamp = row.get("timestamp")
        at = f" {stamp}" if stamp and stamp != "0" else ""
        lines.append(f"{name}{labels} {_number(str(row['value']))}{at}")
    return "\n".join(lines) + "\n\n"


def _escaped(text: str) -> str:
    """Escape a text so that it stays on one line."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(text: str) -> str:
    """Format a number as Prometheus writes it, such as +Inf or NaN."""
    return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(text, text)


FORMATS = (Format("Prometheus", "Metrics as a Prometheus server reads them.", PrometheusWriter),)
