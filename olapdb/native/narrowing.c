/* Integers in fewer bytes: their distances from the least of them. `compute/spill/narrowing.py` and
 * `compute/spill/fixed_rows.py` have the other forms. */

#include "kernels.h"

/* Run LOOP for the type of `width` bytes. */
#define BY_WIDTH(T)                                                                                 \
    switch (width) {                                                                                \
        case 1: LOOP(T, uint8_t) break;                                                             \
        case 2: LOOP(T, uint16_t) break;                                                            \
        case 4: LOOP(T, uint32_t) break;                                                            \
        default: LOOP(T, uint64_t)                                                                  \
    }

/* Write the distances of integers from `low`, with `width` bytes each: 1, 2, 4 or 8. */
EXPORT void olapdb_narrow(int type, const void *values, int64_t rows, uint64_t low, int width, void *distances) {
    switch (type) {
#define LOOP(T, D)                                                                                  \
    for (int64_t row = 0; row < rows; row++) ((D *)distances)[row] = (D)((uint64_t)((const T *)values)[row] - low);
#define CASE(NAME, T)                                                                               \
    case NAME: BY_WIDTH(T) return;
        FOR_INTEGERS(CASE)
#undef CASE
#undef LOOP
    }
}

/* Write the integers of several pieces one after the other. Each piece has four numbers: the address of its
 * distances, their number, `low` and their width: 1, 2, 4 or 8 bytes. */
EXPORT void olapdb_widen(int type, const int64_t *pieces, int64_t count, void *values) {
    for (int64_t written = 0; count > 0; count--, written += pieces[1], pieces += 4) {
        const void *distances = (const void *)(intptr_t)pieces[0];
        int64_t rows = pieces[1];
        uint64_t low = (uint64_t)pieces[2];
        int width = (int)pieces[3];
        switch (type) {
#define LOOP(T, D)                                                                                  \
    for (int64_t row = 0; row < rows; row++)                                                        \
    ((T *)values)[written + row] = (T)(((const D *)distances)[row] + low);
#define CASE(NAME, T)                                                                               \
    case NAME: BY_WIDTH(T) break;
            FOR_INTEGERS(CASE)
#undef CASE
#undef LOOP
        }
    }
}

/* Count the rows of each partition. */
EXPORT void olapdb_partition_counts(const uint8_t *numbers, int64_t rows, int64_t *counts) {
    for (int64_t row = 0; row < rows; row++) counts[numbers[row]]++;
}

/* Write the distances of integers from `low`, `width` bytes each, into the places of their partitions: the next
 * one of partition p is `next[p]` bytes from `places`. Updates `next`. */
EXPORT void olapdb_divide_values(int type, const void *values, const uint8_t *numbers, int64_t rows, uint64_t low,
                                 int width, int64_t *next, uint8_t *places) {
    switch (type) {
#define LOOP(T, D)                                                                                  \
    for (int64_t row = 0; row < rows; row++) {                                                      \
        int64_t *at = next + numbers[row];                                                          \
        if (row % 64 == 0) PREFETCH_AFTER((const T *)values + row);                                 \
        *(D *)(places + *at) = (D)((uint64_t)((const T *)values)[row] - low);                       \
        *at += (int64_t)sizeof(D);                                                                  \
    }
#define CASE(NAME, T)                                                                               \
    case NAME: BY_WIDTH(T) return;
        FOR_INTEGERS(CASE)
#undef CASE
#undef LOOP
    }
}
