/* The rows of each group that may be among its first by a key. `native/first_rows.py` calls it. */

#include "kernels.h"

/* Write the positions, ascending, of the rows whose key is at most the `count`-th least key of their group; with
 * `distinct` the `count`-th least different key. All rows of a group with fewer keys are written. Return their number.
 *
 * `least` has `count` numbers for each group, INT64_MAX at first: the least keys so far, ascending. */
EXPORT int64_t olapdb_first_of_groups(
    const int64_t *keys, const int64_t *groups, int64_t rows, int64_t count, int distinct, int64_t *least,
    int64_t *positions
) {
    for (int64_t row = 0; row < rows; row++) {
        int64_t key = keys[row], *held = least + groups[row] * count, at = count - 1;
        if (key >= held[at]) continue;
        while (at && held[at - 1] > key) at--;
        if (distinct && at && held[at - 1] == key) continue;
        memmove(held + at + 1, held + at, (size_t)(count - 1 - at) * sizeof *held);
        held[at] = key;
    }
    int64_t kept = 0;
    for (int64_t row = 0; row < rows; row++) {
        positions[kept] = row;
        kept += keys[row] <= least[groups[row] * count + count - 1];
    }
    return kept;
}
