/* Aggregates over frames of rows: a tree whose level k has one node for each 2^k rows. `native/frames.py` calls them;
 * `execute/operators/frame_aggregates.py` has the other form, and says why. */

#include "kernels.h"

#define LEVELS_MAX 64

/* Fill the levels above the first one, which has `rows` leaves; write where each level begins. JOIN makes a node of
 * its two children. */
#define BUILD_TREE(JOIN)                                                                            \
    int64_t begins[LEVELS_MAX];                                                                     \
    int64_t levels = 0;                                                                             \
    for (int64_t at = 0, length = rows;; length = (length + 1) / 2) {                               \
        begins[levels++] = at;                                                                      \
        if (length <= 1) break;                                                                     \
        int64_t next = at + length;                                                                 \
        for (int64_t pair = 0; pair < length / 2; pair++)                                           \
            tree[next + pair] = JOIN(tree[at + 2 * pair], tree[at + 2 * pair + 1]);                 \
        if (length & 1) tree[next + length / 2] = tree[next - 1];                                   \
        at = next;                                                                                  \
    }

/* Write for each frame the join of its rows' nodes, from left to right, beginning with `EMPTY`. */
#define JOIN_FRAMES(T, JOIN, EMPTY)                                                                 \
    for (int64_t frame = 0; frame < frames; frame++) {                                              \
        int64_t low = starts[frame], high = ends[frame], held = 0;                                  \
        T joined = EMPTY, right[LEVELS_MAX];                                                        \
        for (int64_t level = 0; low < high; level++, low >>= 1, high >>= 1) {                       \
            if (low & 1) {                                                                          \
                joined = JOIN(joined, tree[begins[level] + low]);                                   \
                low++;                                                                              \
            }                                                                                       \
            if (high & 1 && low < high) right[held++] = tree[begins[level] + --high];               \
        }                                                                                           \
        while (held) {                                                                              \
            held--;                                                                                 \
            joined = JOIN(joined, right[held]);                                                     \
        }                                                                                           \
        results[frame] = joined;                                                                    \
    }

/* Write the sum of each frame [start, end) of rows. The tree has room for 2 * rows + 64 floats; its first `rows` are
 * the values, 0 for NULL. */
EXPORT void olapdb_frame_sums(
    double *tree, int64_t rows, const int64_t *starts, const int64_t *ends, int64_t frames, double *results
) {
#define ADD(left, right) ((left) + (right))
    BUILD_TREE(ADD)
    JOIN_FRAMES(double, ADD, 0.0)
#undef ADD
}

static ALWAYS_INLINE int64_t lesser(const int64_t *keys, int64_t left, int64_t right) {
    if (left < 0) return right;
    return right >= 0 && keys[right] < keys[left] ? right : left;
}

/* Write the row with the least key of each frame [start, end), the first one of equal keys; -1 for a frame without
 * values. The tree has room for 2 * rows + 64 numbers; its first `rows` are the rows, -1 for NULL. */
EXPORT void olapdb_frame_extremes(
    const int64_t *keys, int64_t *tree, int64_t rows, const int64_t *starts, const int64_t *ends, int64_t frames,
    int64_t *results
) {
#define LESSER(left, right) lesser(keys, left, right)
    BUILD_TREE(LESSER)
    JOIN_FRAMES(int64_t, LESSER, -1)
#undef LESSER
}
