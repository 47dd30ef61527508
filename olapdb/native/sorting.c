/* Stable sorting of rows by keys of up to 64 bits, least significant digits first. */

#include "kernels.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, PASSES_MAX = 6 };

typedef struct {
    uint64_t key;
    uint64_t row;
} Entry;

/* Add a column's digit to each row's key: its distance from `base` upwards, or downwards if `descending`,
 * plus `first`, shifted left by `shift`. A null has the digit `null_digit`. */
EXPORT void olapdb_pack_order(int type, const void *values, const uint8_t *validity, int64_t bit,
                              int64_t rows, uint64_t base, int descending, uint64_t first,
                              uint64_t null_digit, int shift, uint64_t *keys) {
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        if (validity == NULL && !descending)                                                        \
            for (int64_t row = 0; row < rows; row++)                                                \
                keys[row] |= ((uint64_t)typed[row] - base) << shift;                                \
        else                                                                                        \
            for (int64_t row = 0; row < rows; row++) {                                              \
                uint64_t value = (uint64_t)typed[row];                                              \
                uint64_t digit = (descending ? base - value : value - base) + first;                \
                keys[row] |= (is_valid(validity, bit, row) ? digit : null_digit) << shift;          \
            }                                                                                       \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
}

/* Sort `order`, row numbers, by the keys of the rows; rows with equal keys keep their order. Only the
 * lowest `bits` of the keys are not 0. `entries` and `others` have room for all rows. */
EXPORT void olapdb_sort_order(const uint64_t *keys, int64_t rows, int bits, uint64_t *order,
                              Entry *entries, Entry *others) {
    int64_t counts[PASSES_MAX][DIGITS]; /* 96 KiB of the stack */
    int passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    memset(counts, 0, sizeof counts);
    for (int64_t at = 0; at < rows; at++) {
        uint64_t key = keys[order[at]];
        entries[at] = (Entry){key, order[at]};
        for (int pass = 0; pass < passes; pass++)
            counts[pass][key >> (pass * DIGIT_BITS) & (DIGITS - 1)]++;
    }
    for (int pass = 0; pass < passes; pass++) {
        int shift = pass * DIGIT_BITS;
        int64_t *starts = counts[pass], start = 0;
        if (rows && starts[entries[0].key >> shift & (DIGITS - 1)] == rows) continue;
        for (int digit = 0; digit < DIGITS; digit++) {
            int64_t count = starts[digit];
            starts[digit] = start;
            start += count;
        }
        for (int64_t at = 0; at < rows; at++)
            others[starts[entries[at].key >> shift & (DIGITS - 1)]++] = entries[at];
        Entry *swapped = entries;
        entries = others;
        others = swapped;
    }
    for (int64_t at = 0; at < rows; at++) order[at] = entries[at].row;
}
