"""Prometheus: metrics in the text format that a Prometheus server reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cmp_to_key
from itertools import groupby
from typing import Any

import pyarrow as pa

from olapdb import errors, types
from olapdb.formats.base import Ending, Format, Header, Writer
from olapdb.formats.texts import shown
from olapdb.records import dataclass

_ALLOWED = ("name", "value", "help", "type", "timestamp", "labels")
_KINDS = ("counter", "gauge", "histogram", "summary", "untyped")
_BUCKET_LABELS = {"histogram": "le", "summary": "quantile"}
"""The label by whose number the samples of a metric type are ordered."""
_Row = dict[str, Any]
"""The texts of a row by column; its labels are pairs."""


@dataclass(frozen=True)
class _Sample:
    """A number of a metric: its labels, its value, and its time if known."""

    labels: Mapping[str, str]
    value: str
    timestamp: str | None


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
        self._rows: list[_Row] = []

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


def _metric(name: str, rows: list[_Row]) -> str:
    """Return the text of a metric, given its rows. Raises BadArguments for an unknown metric type."""
    lines = []
    if explained := _first_text(rows, "help"):
        lines.append(f"# HELP {name} {_escaped(explained)}")
    kind = _first_text(rows, "type")
    if kind:
        if kind not in _KINDS:
            raise errors.BadArguments(
                f"Unknown metric type {kind}.", hint=f"Types are {', '.join(_KINDS)}."
            )
        lines.append(f"# TYPE {name} {kind}")
    samples = [
        _Sample(dict(row.get("labels") or []), str(row["value"]), row.get("timestamp"))
        for row in rows
    ]
    grouped = kind in _BUCKET_LABELS
    if grouped:
        samples = _in_order_of_buckets(samples, _BUCKET_LABELS[kind])
    if kind == "histogram":
        samples += _missing_samples(samples)
    lines += [_line(name, sample, grouped=grouped) for sample in samples]
    return "\n".join(lines) + "\n\n"


def _first_text(rows: list[_Row], column: str) -> str:
    """Return the first text of a column that is not empty; an empty text if there is none."""
    return next((str(row[column]) for row in rows if row.get(column)), "")


def _in_order_of_buckets(samples: list[_Sample], label: str) -> list[_Sample]:
    """Return the samples ordered by the number in their `label`, then those of the sum and of the count.

    Samples without a number in the label keep their places."""

    def rank(sample: _Sample) -> int:
        """Return 0 for a bucket, 1 for the sum, 2 for the count."""
        return 2 if "count" in sample.labels else int("sum" in sample.labels)

    def compare(left: _Sample, right: _Sample) -> int:
        """Return a negative number if `left` comes first, a positive one if `right` does, else 0."""
        if rank(left) or rank(right):
            return rank(left) - rank(right)
        bounds = _bound(left, label), _bound(right, label)
        if bounds[0] is None or bounds[1] is None:
            return 0
        return (bounds[0] > bounds[1]) - (bounds[0] < bounds[1])

    return sorted(samples, key=cmp_to_key(compare))


def _bound(sample: _Sample, label: str) -> float | None:
    """Return the number in a sample's label; None without one."""
    try:
        return float(sample.labels[label])
    except (KeyError, ValueError):
        return None


def _missing_samples(samples: list[_Sample]) -> list[_Sample]:
    """Return what a histogram lacks of its count and its last bucket, which have the same value."""
    counts = [sample for sample in samples if "count" in sample.labels]
    last_buckets = [sample for sample in samples if sample.labels.get("le") == "+Inf"]
    if counts and not last_buckets:
        return [replace(counts[-1], labels={"le": "+Inf"})]
    if last_buckets and not counts:
        return [replace(last_buckets[-1], labels={"count": ""})]
    return []


def _line(name: str, sample: _Sample, *, grouped: bool) -> str:
    """Return the line of a sample; in a histogram or summary (`grouped`) a label says which number of it this is."""
    labels = dict(sorted(sample.labels.items()))
    if grouped:
        if "sum" in labels or "count" in labels:
            suffix = "sum" if "sum" in labels else "count"
            del labels[suffix]
            name = f"{name}_{suffix}"
        elif "le" in labels:
            name = f"{name}_bucket"
    pairs = ",".join(
        f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in labels.items()
    )
    written = f"{{{pairs}}}" if pairs else ""
    at = f" {sample.timestamp}" if sample.timestamp and sample.timestamp != "0" else ""
    return f"{name}{written} {_number(sample.value)}{at}"


def _escaped(text: str) -> str:
    """Escape a text so that it stays on one line."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(text: str) -> str:
    """Format a number as Prometheus writes it, such as +Inf or NaN."""
    return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(text, text)


FORMATS = (Format("Prometheus", "Metrics as a Prometheus server reads them.", PrometheusWriter),)
