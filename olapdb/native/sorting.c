/* Stable sorting of rows by keys of up to 64 bits, least significant digits first. */

#include "kernels.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, PASSES_MAX = 6, RUNS_MAX = 64 };

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

/* Merge two ascending runs of different words, without a branch on how they compare. */
static void merge(const uint64_t *left, const uint64_t *left_end, const uint64_t *right,
                  const uint64_t *right_end, uint64_t *merged) {
    while (left < left_end && right < right_end) {
        uint64_t first = *left, second = *right;
        int is_first = first < second;
        *merged++ = is_first ? first : second;
        left += is_first;
        right += !is_first;
    }
    memcpy(merged, left, (size_t)(left_end - left) * sizeof *left);
    memcpy(merged + (left_end - left), right, (size_t)(right_end - right) * sizeof *right);
}

/* Merge runs pair by pair until one is left: run i begins at starts[i], and starts[runs] is the number of
 * words. Return where the words are then, `words` or `others`. */
static uint64_t *merge_runs(uint64_t *words, uint64_t *others, int64_t *starts, int64_t runs) {
    int64_t rows = starts[runs];
    while (runs > 1) {
        int64_t merged_runs = 0;
        for (int64_t run = 0; run < runs; run += 2) {
            int64_t middle = starts[run + 1], end = run + 2 <= runs ? starts[run + 2] : middle;
            int64_t start = starts[run];
            merge(words + start, words + middle, words + middle, words + end, others + start);
            starts[merged_runs++] = start;
        }
        starts[merged_runs] = rows;
        runs = merged_runs;
        uint64_t *swapped = words;
        words = others;
        others = swapped;
    }
    return words;
}

/* Sort words by their `bits` bits from bit `low` on, digit by digit. Return where they are then. */
static uint64_t *sort_digits(uint64_t *words, uint64_t *others, int64_t rows, int bits, int low) {
    int64_t counts[PASSES_MAX][DIGITS];
    int passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    memset(counts, 0, sizeof counts);
    for (int64_t at = 0; at < rows; at++)
        for (int pass = 0; pass < passes; pass++)
            counts[pass][words[at] >> (low + pass * DIGIT_BITS) & (DIGITS - 1)]++;
    for (int pass = 0; pass < passes; pass++) {
        int shift = low + pass * DIGIT_BITS;
        int64_t *starts = counts[pass], start = 0;
        if (rows && starts[words[0] >> shift & (DIGITS - 1)] == rows) continue;
        for (int digit = 0; digit < DIGITS; digit++) {
            int64_t count = starts[digit];
            starts[digit] = start;
            start += count;
        }
        for (int64_t at = 0; at < rows; at++) others[starts[words[at] >> shift & (DIGITS - 1)]++] = words[at];
        uint64_t *swapped = words;
        words = others;
        others = swapped;
    }
    return words;
}

/* Put into `keys` the numbers of the rows in the order of their keys; rows with equal keys keep their
 * order. Only the lowest `bits` of the keys are not 0; a row number has `row_bits` bits, and both fit a
 * word. `others` has room for all rows. Rows that come in a few ascending runs, as parts that merge do,
 * are merged. */
EXPORT void olapdb_sort_packed(uint64_t *keys, int64_t rows, int bits, int row_bits, uint64_t *others) {
    int64_t starts[RUNS_MAX + 1], runs = 1, merges = 0;
    uint64_t previous = 0, row_mask = row_bits ? ~(uint64_t)0 >> (64 - row_bits) : 0;
    starts[0] = 0;
    for (int64_t at = 0; at < rows; at++) {
        uint64_t key = keys[at];
        if (key < previous && runs <= RUNS_MAX) starts[runs++] = at;
        previous = key;
        keys[at] = key << row_bits | (uint64_t)at;
    }
    if (runs <= RUNS_MAX) starts[runs] = rows;
    while ((int64_t)1 << merges < runs) merges++;
    int has_few_runs = runs <= RUNS_MAX && merges <= (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    const uint64_t *sorted = has_few_runs ? merge_runs(keys, others, starts, runs)
                                          : sort_digits(keys, others, rows, bits, row_bits);
    for (int64_t at = 0; at < rows; at++) keys[at] = sorted[at] & row_mask;
}
