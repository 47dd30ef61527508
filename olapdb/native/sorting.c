/* Stable sorting of rows by keys of up to 64 bits, least significant digits first. */

#include "kernels.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, PASSES_MAX = 6, RUNS_MAX = 64 };

/* Many rows are divided by their uppermost bits first, into about so many rows that a processor's first cache
 * has them and their copy: the digits of each part are then sorted there. */
enum { DIVIDED_ROWS_MIN = 1 << 15, PART_ROW_BITS = 10, PART_ROWS_MAX = 1 << 15, BYTES = 256, FEW_WORDS = 48 };

/* Rows that share the upper bits of their keys and are sorted one by one. */
enum { TIED_ROWS_MAX = 64 };

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

/* Merge two runs of entries that ascend by key; among equal keys those of the left run come first. */
static void merge_entries(const Entry *left, const Entry *left_end, const Entry *right, const Entry *right_end,
                          Entry *merged) {
    while (left < left_end && right < right_end) {
        int is_first = left->key <= right->key;
        *merged++ = is_first ? *left : *right;
        left += is_first;
        right += !is_first;
    }
    memcpy(merged, left, (size_t)(left_end - left) * sizeof *left);
    memcpy(merged + (left_end - left), right, (size_t)(right_end - right) * sizeof *right);
}

/* Merge two ascending runs of different words, without a branch on how they compare. It goes from both ends, since
 * each step waits for the one before. */
static void merge_words(const uint64_t *left, const uint64_t *left_end, const uint64_t *right,
                        const uint64_t *right_end, uint64_t *merged) {
    uint64_t *merged_end = merged + (left_end - left) + (right_end - right);
    while (left_end - left > 1 && right_end - right > 1) {
        uint64_t first = *left, second = *right, last = left_end[-1], other_last = right_end[-1];
        int is_first = first < second, is_last = last > other_last;
        *merged++ = is_first ? first : second;
        *--merged_end = is_last ? last : other_last;
        left += is_first;
        right += !is_first;
        left_end -= is_last;
        right_end -= !is_last;
    }
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

/* Define a function that merges ascending runs pair by pair until one is left: run i begins at starts[i], and
 * starts[runs] is the number of items. It returns where the items are then, `items` or `others`. */
#define DEFINE_MERGE_RUNS(NAME, T, MERGE)                                                               \
    static T *NAME(T *items, T *others, int64_t *starts, int64_t runs) {                                \
        int64_t rows = starts[runs];                                                                    \
        while (runs > 1) {                                                                              \
            int64_t merged_runs = 0;                                                                    \
            for (int64_t run = 0; run < runs; run += 2) {                                               \
                int64_t middle = starts[run + 1], end = run + 2 <= runs ? starts[run + 2] : middle;     \
                int64_t start = starts[run];                                                            \
                MERGE(items + start, items + middle, items + middle, items + end, others + start);      \
                starts[merged_runs++] = start;                                                          \
            }                                                                                           \
            starts[merged_runs] = rows;                                                                 \
            runs = merged_runs;                                                                         \
            T *swapped = items;                                                                         \
            items = others;                                                                             \
            others = swapped;                                                                           \
        }                                                                                               \
        return items;                                                                                   \
    }

DEFINE_MERGE_RUNS(merge_word_runs, uint64_t, merge_words)
DEFINE_MERGE_RUNS(merge_entry_runs, Entry, merge_entries)
#undef DEFINE_MERGE_RUNS

/* Sort entries by the lowest `bits` bits of their keys, digit by digit. Return where they are then. */
static const Entry *sort_entry_digits(Entry *entries, Entry *others, int64_t rows, int bits) {
    int64_t counts[PASSES_MAX][DIGITS]; /* 96 KiB of the stack */
    int passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    memset(counts, 0, sizeof counts);
    for (int64_t at = 0; at < rows; at++)
        for (int pass = 0; pass < passes; pass++)
            counts[pass][entries[at].key >> (pass * DIGIT_BITS) & (DIGITS - 1)]++;
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
    return entries;
}

/* Sort different words by their bits from `low` on, `bits` of them; the words ascend by the bits below. Return
 * where they are then. */
static const uint64_t *sort_words(uint64_t *words, uint64_t *others, int64_t rows, int bits, int low) {
    int32_t counts[8][BYTES];
    int passes = (bits + 7) / 8;
    if (rows <= FEW_WORDS) {
        for (int64_t at = 1; at < rows; at++) {
            uint64_t word = words[at];
            int64_t before = at;
            for (; before > 0 && words[before - 1] > word; before--) words[before] = words[before - 1];
            words[before] = word;
        }
        return words;
    }
    memset(counts, 0, (size_t)passes * sizeof counts[0]);
    for (int64_t at = 0; at < rows; at++)
        for (int pass = 0; pass < passes; pass++) counts[pass][words[at] >> (low + 8 * pass) & (BYTES - 1)]++;
    for (int pass = 0; pass < passes; pass++) {
        int shift = low + 8 * pass;
        int32_t *starts = counts[pass], start = 0;
        if (starts[words[0] >> shift & (BYTES - 1)] == rows) continue;
        for (int byte = 0; byte < BYTES; byte++) {
            int32_t count = starts[byte];
            starts[byte] = start;
            start += count;
        }
        for (int64_t at = 0; at < rows; at++) others[starts[words[at] >> shift & (BYTES - 1)]++] = words[at];
        uint64_t *swapped = words;
        words = others;
        others = swapped;
    }
    return words;
}

/* Write the row numbers of entries in the order of the lowest `bits` bits of their keys. `spare` has room for
 * the entries. */
static void sort_part(Entry *entries, Entry *spare, int64_t rows, int bits, uint64_t *order) {
    int row_bits = rows > 1 ? 64 - __builtin_clzll((uint64_t)rows - 1) : 0;
    uint64_t *words = (uint64_t *)spare, row_mask = ((uint64_t)1 << row_bits) - 1;
    if (rows > PART_ROWS_MAX || bits + row_bits > 64) {
        const Entry *sorted = sort_entry_digits(entries, spare, rows, bits);
        for (int64_t at = 0; at < rows; at++) order[at] = sorted[at].row;
        return;
    }
    uint64_t key_mask = ((uint64_t)1 << bits) - 1;
    for (int64_t at = 0; at < rows; at++) words[at] = (entries[at].key & key_mask) << row_bits | (uint64_t)at;
    const uint64_t *sorted = sort_words(words, words + rows, rows, bits, row_bits);
    for (int64_t at = 0; at < rows; at++) order[at] = entries[sorted[at] & row_mask].row;
}

/* Sort entries whose keys have `bits` bits, more than DIGIT_BITS: divide them by the uppermost bits, then sort
 * each part. */
static void sort_by_parts(Entry *entries, Entry *others, int64_t rows, int bits, uint64_t *order) {
    int64_t starts[DIGITS + 1];
    int divided_bits = 64 - __builtin_clzll((uint64_t)rows) - PART_ROW_BITS, shift;
    divided_bits = divided_bits > DIGIT_BITS ? DIGIT_BITS : divided_bits;
    shift = bits - divided_bits;
    memset(starts, 0, sizeof starts);
    for (int64_t at = 0; at < rows; at++) starts[(entries[at].key >> shift) + 1]++;
    for (int part = 0; part < 1 << divided_bits; part++) starts[part + 1] += starts[part];
    for (int64_t at = 0; at < rows; at++) others[starts[entries[at].key >> shift]++] = entries[at];
    for (int64_t start = 0, part = 0; part < 1 << divided_bits; part++) {
        int64_t end = starts[part]; /* where the next part began */
        if (end > start) sort_part(others + start, entries + start, end - start, shift, order + start);
        start = end;
    }
}

/* Sort `order`, row numbers, by the keys of the rows; rows with equal keys keep their order. Only the
 * lowest `bits` of the keys are not 0. `entries` and `others` have room for all rows. Rows that come in a few
 * ascending runs, as blocks of sorted runs do, are merged. */
EXPORT void olapdb_sort_order(const uint64_t *keys, int64_t rows, int bits, uint64_t *order,
                              Entry *entries, Entry *others) {
    int64_t starts[RUNS_MAX + 1], runs = 1, merges = 0;
    int passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    uint64_t previous = 0;
    starts[0] = 0;
    for (int64_t at = 0; at < rows; at++) {
        uint64_t key = keys[order[at]];
        if (key < previous && runs <= RUNS_MAX) starts[runs++] = at;
        previous = key;
        entries[at] = (Entry){key, order[at]};
    }
    if (runs <= RUNS_MAX) starts[runs] = rows;
    while ((int64_t)1 << merges < runs) merges++;
    const Entry *sorted;
    if (runs <= RUNS_MAX && merges <= passes) {
        sorted = merge_entry_runs(entries, others, starts, runs);
    } else if (rows >= DIVIDED_ROWS_MIN && passes > 2) {
        sort_by_parts(entries, others, rows, bits, order);
        return;
    } else {
        sorted = sort_entry_digits(entries, others, rows, bits);
    }
    for (int64_t at = 0; at < rows; at++) order[at] = sorted[at].row;
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

/* Sort words whose upper `bits` bits, above `row_bits` bits of row numbers, are keys: divide them by the keys'
 * uppermost bits, then sort each part. Return where they are then. */
static uint64_t *sort_words_by_parts(uint64_t *words, uint64_t *others, int64_t rows, int bits, int row_bits) {
    int64_t starts[DIGITS + 1];
    int divided_bits = 64 - __builtin_clzll((uint64_t)rows) - PART_ROW_BITS;
    divided_bits = divided_bits > DIGIT_BITS ? DIGIT_BITS : divided_bits;
    int shift = bits + row_bits - divided_bits;
    memset(starts, 0, sizeof starts);
    for (int64_t at = 0; at < rows; at++) starts[(words[at] >> shift) + 1]++;
    for (int part = 0; part < 1 << divided_bits; part++) starts[part + 1] += starts[part];
    for (int64_t at = 0; at < rows; at++) others[starts[words[at] >> shift]++] = words[at];
    for (int64_t start = 0, part = 0; part < 1 << divided_bits; part++) {
        int64_t end = starts[part], size = end - start; /* where the next part began */
        if (size > PART_ROWS_MAX) {
            uint64_t *sorted = sort_digits(others + start, words + start, size, bits - divided_bits, row_bits);
            if (sorted == words + start) memcpy(others + start, sorted, (size_t)size * sizeof *sorted);
        } else if (size > 1) {
            const uint64_t *sorted = sort_words(others + start, words + start, size, bits - divided_bits, row_bits);
            if (sorted == words + start) memcpy(others + start, sorted, (size_t)size * sizeof *sorted);
        }
        start = end;
    }
    return others;
}

/* Sort words whose upper bits are the keys, of `bits` bits, of rows, and whose lower `row_bits` bits the rows'
 * numbers, which ascend. Words that come in a few ascending runs, as parts that merge do, are merged. Return
 * where they are then. */
static uint64_t *sort_numbered(uint64_t *words, uint64_t *others, int64_t rows, int bits, int row_bits) {
    int64_t starts[RUNS_MAX + 1], runs = 1, merges = 0;
    uint64_t previous = 0;
    int passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    starts[0] = 0;
    for (int64_t at = 0; at < rows; at++) {
        if (words[at] < previous && runs <= RUNS_MAX) starts[runs++] = at;
        previous = words[at];
    }
    if (runs <= RUNS_MAX) starts[runs] = rows;
    while ((int64_t)1 << merges < runs) merges++;
    if (runs <= RUNS_MAX && merges <= passes) return merge_word_runs(words, others, starts, runs);
    if (rows >= DIVIDED_ROWS_MIN && passes > 2) return sort_words_by_parts(words, others, rows, bits, row_bits);
    return sort_digits(words, others, rows, bits, row_bits);
}

/* Put into `keys` the numbers of the rows in the order of their keys; rows with equal keys keep their
 * order. Only the lowest `bits` of the keys are not 0; a row number has `row_bits` bits, and both fit a
 * word. `others` has room for all rows. */
EXPORT void olapdb_sort_packed(uint64_t *keys, int64_t rows, int bits, int row_bits, uint64_t *others) {
    uint64_t row_mask = row_bits ? ~(uint64_t)0 >> (64 - row_bits) : 0;
    for (int64_t at = 0; at < rows; at++) keys[at] = keys[at] << row_bits | (uint64_t)at;
    const uint64_t *sorted = sort_numbered(keys, others, rows, bits, row_bits);
    for (int64_t at = 0; at < rows; at++) keys[at] = sorted[at] & row_mask;
}

/* Sort row numbers whose keys are equal in their upper bits, few at a time, by whole keys; rows with equal keys
 * keep their order. */
static void sort_tied(const uint64_t *keys, uint64_t *order, int64_t rows) {
    for (int64_t at = 1; at < rows; at++) {
        uint64_t row = order[at], key = keys[row];
        int64_t before = at;
        for (; before > 0 && keys[order[before - 1]] > key; before--) order[before] = order[before - 1];
        order[before] = row;
    }
}

/* Write the numbers of the rows in the order of their keys into `words`, as `olapdb_sort_packed` does, where keys,
 * of `bits` bits, and row numbers do not fit a word together: the keys' upper bits that do decide most often.
 * Return 0 where they do not, because too many rows have the same ones. */
EXPORT int olapdb_sort_prefixes(const uint64_t *keys, int64_t rows, int bits, int row_bits, uint64_t *words,
                                uint64_t *others) {
    int dropped = bits + row_bits - 64;
    uint64_t row_mask = ~(uint64_t)0 >> (64 - row_bits);
    for (int64_t at = 0; at < rows; at++) words[at] = keys[at] >> dropped << row_bits | (uint64_t)at;
    uint64_t *sorted = sort_numbered(words, others, rows, 64 - row_bits, row_bits);
    for (int64_t start = 0, end; start < rows; start = end) {
        uint64_t prefix = sorted[start] >> row_bits;
        for (end = start + 1; end < rows && sorted[end] >> row_bits == prefix; end++) {}
        if (end - start > TIED_ROWS_MAX) return 0;
        for (int64_t at = start; at < end; at++) words[at] = sorted[at] & row_mask;
        if (end - start > 1) sort_tied(keys, words + start, end - start);
    }
    return 1;
}

/* Hashes are divided by their uppermost bits into parts of about so many rows, which a processor's second cache
 * has; a part is then divided until each bucket has about one row. Rows of a fuller bucket have equal hashes most
 * often, in any order with few others: then the part is sorted digit by digit. */
enum { HASHED_PART_BITS = 12, FINE_BITS_MAX = 14, FULL_BUCKET = 32 };

/* Sort the hashes of a part, whose entries have the same `known` uppermost bits, into `hashes` and `order`. */
static void sort_hashed_part(Entry *entries, Entry *others, int64_t rows, int known, uint64_t *hashes,
                             int32_t *order) {
    int32_t starts[1 << FINE_BITS_MAX];
    int bits = 64 - __builtin_clzll((uint64_t)rows), is_full = 0;
    bits = bits > FINE_BITS_MAX ? FINE_BITS_MAX : bits;
    int shift = 64 - bits;
    memset(starts, 0, sizeof *starts << bits);
    for (int64_t at = 0; at < rows; at++) starts[entries[at].key << known >> shift]++;
    for (int32_t bucket = 0, start = 0; bucket < 1 << bits; bucket++) {
        int32_t count = starts[bucket];
        is_full |= count > FULL_BUCKET;
        starts[bucket] = start;
        start += count;
    }
    if (is_full) {
        const Entry *sorted = sort_entry_digits(entries, others, rows, 64 - known);
        for (int64_t at = 0; at < rows; at++) {
            hashes[at] = sorted[at].key;
            order[at] = (int32_t)sorted[at].row;
        }
        return;
    }
    for (int64_t at = 0; at < rows; at++) {
        int32_t to = starts[entries[at].key << known >> shift]++;
        hashes[to] = entries[at].key;
        order[to] = (int32_t)entries[at].row;
    }
    for (int64_t at = 1; at < rows; at++) {
        uint64_t hash = hashes[at];
        int32_t row = order[at];
        int64_t before = at;
        if (hashes[at - 1] <= hash) continue;
        for (; before > 0 && hashes[before - 1] > hash; before--) {
            hashes[before] = hashes[before - 1];
            order[before] = order[before - 1];
        }
        hashes[before] = hash;
        order[before] = row;
    }
}

/* Sort hashes in place, and write the numbers of their rows in that order; equal hashes keep the order of their
 * rows. Hashes are spread over all 64 bits. `entries` and `others` have room for all rows, fewer than 2^31. */
EXPORT void olapdb_sort_hashes(uint64_t *hashes, int64_t rows, int32_t *order, Entry *entries, Entry *others) {
    int64_t starts[DIGITS + 1], start = 0;
    int bits = rows ? 64 - __builtin_clzll((uint64_t)rows) - HASHED_PART_BITS : 0;
    bits = bits < 1 ? 1 : bits > DIGIT_BITS ? DIGIT_BITS : bits;
    memset(starts, 0, sizeof starts);
    for (int64_t row = 0; row < rows; row++) starts[(hashes[row] >> (64 - bits)) + 1]++;
    for (int part = 0; part < 1 << bits; part++) starts[part + 1] += starts[part];
    for (int64_t row = 0; row < rows; row++) {
        if (row % 64 == 0) PREFETCH_AFTER(hashes + row);
        entries[starts[hashes[row] >> (64 - bits)]++] = (Entry){hashes[row], (uint64_t)row};
    }
    for (int part = 0; part < 1 << bits; part++) {
        int64_t end = starts[part]; /* where the next part began */
        if (end > start)
            sort_hashed_part(entries + start, others + start, end - start, bits, hashes + start, order + start);
        start = end;
    }
}

/* Write where each bucket of ascending hashes begins, and the end of the last one. The bucket of a hash is its
 * uppermost `bits` bits. */
EXPORT void olapdb_hash_buckets(const uint64_t *hashes, int64_t count, int bits, int32_t *buckets) {
    uint64_t bucket = 0, end = (uint64_t)1 << bits;
    for (int64_t at = 0; at < count; at++)
        for (uint64_t own = hashes[at] >> (64 - bits); bucket <= own; bucket++) buckets[bucket] = (int32_t)at;
    for (; bucket <= end; bucket++) buckets[bucket] = (int32_t)count;
}
