"""The call of the kernel that turns a mask into positions. It needs the library.

The form in numpy is `functions/kernels/columns.true_positions`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from olapdb.native.library import kernels
from olapdb.native.memory import empty
from olapdb.native.values import validity_of


def positions(mask: pa.BooleanArray) -> np.ndarray:
    """Return the positions of the rows that are true, ascending; NULL counts as false. int64."""
    kept = empty(mask.true_count, np.int64)
    if len(kept):
        address = mask.buffers()[1].address
        validity, _ = validity_of(mask)
        kernels().olapdb_positions(address, validity, mask.offset, len(mask), kept)
    return kept
