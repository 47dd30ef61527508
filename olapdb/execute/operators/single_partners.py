"""Joins in which a left row has one partner at most, as with a dimension: its row on the right side is looked up by its
code at once, without counting and spreading candidates."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.compute.hash_table import Lookup
from olapdb.functions.kernels.columns import coded_rows
from olapdb.records import dataclass
from olapdb.types.arrow_values import from_numpy


@dataclass(frozen=True)
class SinglePartners:
    """The right side of such a join. `rows` has the row of each code, and behind them that for "no partner" where the
    join keeps left rows without one; None where `right` has its rows in that order."""

    right: pa.RecordBatch
    rows: np.ndarray | None
    no_partner: int | None

    @staticmethod
    def of(
        lookup: Lookup, right: pa.RecordBatch, no_partner: int | None, *, takes_one: bool
    ) -> SinglePartners | None:
        """Return the right side of a join whose conditions are the keys of `lookup` alone; None where a left row may
        have several partners. `takes_one`: one of them is enough. `no_partner` is the row for left rows that are kept
        without a partner, None where they are dropped."""
        starts, rows = lookup.starts, lookup.order
        if rows is None or not lookup.count:
            return None
        if starts is not None:
            if not takes_one and int(starts[-1]) > lookup.count:
                return None
            rows = np.take(rows, starts[:-1])
        if no_partner is not None:
            rows = np.append(rows, rows.dtype.type(no_partner))
            no_partner = lookup.count
        if all(map(_is_narrow, right.schema.types)):
            return SinglePartners(right.take(from_numpy(rows)), None, no_partner)
        return SinglePartners(right, rows, no_partner)

    def find(self, codes: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """Return the pairs of some left rows: the places of the left rows, None where all of them are in pairs, and
        the row of `right` beside each. `codes` has one code for each left row, -1 where no key is equal to its own:
        it is then beside the row for "no partner", or is left out where there is none."""
        left = None
        if len(codes) and codes.min() < 0:
            if self.no_partner is not None:
                codes = np.where(codes < 0, self.no_partner, codes)
            else:
                left, codes = coded_rows(codes)
        return left, codes if self.rows is None else np.take(self.rows, codes)


def _is_narrow(arrow: pa.DataType) -> bool:
    """Return whether rows of a type are cheap to put in another order."""
    return bool(pa.types.is_primitive(arrow) or pa.types.is_dictionary(arrow))
