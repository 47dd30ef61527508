/* Values of groups for quantiles: counts of each value, buckets of floats, sorted values. */

#include "kernels.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, FEW = 32, RUN = 8, WORD_BITS = 64 };

/* Count the rows of each group with each value, from `low` on: cells[group * span + value - low]. Values
 * lie below low + span; null rows do not count. */
EXPORT void olapdb_count_cells(int type, const void *values, const uint8_t *validity, int64_t bit,
                               const int64_t *codes, int64_t rows, uint64_t low, int64_t span,
                               int64_t *cells) {
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        if (codes == NULL && validity == NULL)                                                      \
            for (int64_t row = 0; row < rows; row++) cells[(uint64_t)typed[row] - low]++;           \
        else if (validity == NULL)                                                                  \
            for (int64_t row = 0; row < rows; row++)                                                \
                cells[(uint64_t)(codes[row] * span) + (uint64_t)typed[row] - low]++;                \
        else                                                                                        \
            for (int64_t row = 0; row < rows; row++)                                                \
                if (is_valid(validity, bit, row))                                                   \
                    cells[(uint64_t)(codes == NULL ? 0 : codes[row] * span) + (uint64_t)typed[row] - low]++; \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
}

/* Count the values of sorted lists as `olapdb_count_cells` does: list l has those from starts[l] up to starts[l + 1],
 * and counts for group codes[l]. The end of a run of equal values is found in steps that double. Return 0 where a list
 * is not ascending or has values outside of low ... low + span - 1, 1 otherwise. */
EXPORT int olapdb_count_runs(int type, const void *values, const int64_t *starts, int64_t lists, const int64_t *codes,
                             uint64_t low, int64_t span, int64_t *cells) {
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        for (int64_t list = 0; list < lists; list++) {                                              \
            int64_t *own = cells + (codes == NULL ? 0 : codes[list] * span);                        \
            int64_t at = starts[list], stop = starts[list + 1], descents = 0;                       \
            for (int64_t next = at + 1; next < stop; next++) descents += typed[next - 1] > typed[next]; \
            if (descents) return 0;                                                                 \
            if (at < stop && ((uint64_t)typed[at] - low >= (uint64_t)span ||                        \
                              (uint64_t)typed[stop - 1] - low >= (uint64_t)span))                   \
                return 0;                                                                           \
            while (at < stop) {                                                                     \
                int64_t inside = at, beyond = at + 1, step = 1;                                     \
                while (beyond < stop && typed[beyond] == typed[at]) {                               \
                    inside = beyond;                                                                \
                    beyond = stop - beyond > step ? beyond + step : stop;                           \
                    step *= 2;                                                                      \
                }                                                                                   \
                while (beyond - inside > 1) {                                                       \
                    int64_t middle = inside + (beyond - inside) / 2;                                \
                    if (typed[middle] == typed[at])                                                 \
                        inside = middle;                                                            \
                    else                                                                            \
                        beyond = middle;                                                            \
                }                                                                                   \
                own[(uint64_t)typed[at] - low] += beyond - at;                                      \
                at = beyond;                                                                        \
            }                                                                                       \
        }                                                                                           \
        return 1;                                                                                   \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
    return 0;
}

/* Write each value as often as its group has it, group after group: what `olapdb_count_cells` counted. */
EXPORT void olapdb_repeat_cells(int type, const int64_t *cells, int64_t groups, int64_t span, uint64_t low,
                                void *values) {
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        T *typed = values;                                                                          \
        for (int64_t group = 0; group < groups; group++)                                            \
            for (int64_t at = 0; at < span; at++)                                                   \
                for (int64_t left = *cells++; left > 0; left--) *typed++ = (T)(low + (uint64_t)at); \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
}

/* The buckets of `functions/aggregates/quantile.py`: 64 to each power of two. */
enum {
    PER_OCTAVE = 64,
    EXPONENT_SHIFT = 1100,
    BELOW_BUCKET_BITS = 46,
    NOT_FINITE = 0x7FF * PER_OCTAVE,
    OF_BITS = (EXPONENT_SHIFT - 1022) * PER_OCTAVE + 1,
    INFINITE = (EXPONENT_SHIFT + 1030) * PER_OCTAVE
};

static inline int32_t bucket_of(double value) {
    uint64_t bits;
    double size = value < 0 ? -value : value;
    int32_t number;
    memcpy(&bits, &size, sizeof bits);
    int32_t top = (int32_t)(bits >> BELOW_BUCKET_BITS & (((uint64_t)1 << 17) - 1));
    if (top >= PER_OCTAVE && top < NOT_FINITE) {
        number = top + OF_BITS;
    } else if (size == 0) {
        return 0;
    } else if (top >= NOT_FINITE) {
        number = INFINITE;
    } else { /* a denormal number: 2^64 times it is normal, and that is exact */
        size *= 18446744073709551616.0;
        memcpy(&bits, &size, sizeof bits);
        number = (int32_t)(bits >> BELOW_BUCKET_BITS) + OF_BITS - WORD_BITS * PER_OCTAVE;
    }
    return value < 0 ? -number : number;
}

/* Write the bucket of each of `rows` floats, none of which is NaN. */
EXPORT void olapdb_buckets(const double *values, int64_t rows, int32_t *buckets) {
    for (int64_t row = 0; row < rows; row++) buckets[row] = bucket_of(values[row]);
}

static void sort_few(uint64_t *words, int64_t count) {
    for (int64_t at = 1; at < count; at++) {
        uint64_t word = words[at];
        int64_t place = at;
        for (; place > 0 && words[place - 1] > word; place--) words[place] = words[place - 1];
        words[place] = word;
    }
}

static void sort_by_digits(uint64_t *words, int64_t count, uint64_t low, uint64_t span, uint64_t *others) {
    uint64_t *sorted = sorted_by_digits(words, count, low, span, DIGIT_BITS, others);
    if (sorted != words) memcpy(words, sorted, (size_t)count * sizeof *words);
}

/* Merge two sorted runs that lie side by side in `words`, `left` and `right` words long, into `merged`. Which of two words
 * is less is no branch: in random order a processor would guess half of them wrong. */
static void merge_runs(const uint64_t *words, int64_t left, int64_t right, uint64_t *merged) {
    const uint64_t *low = words, *high = words + left, *middle = high, *stop = high + right;
    while (low < middle && high < stop) {
        int is_right = *high < *low;
        *merged++ = is_right ? *high : *low;
        high += is_right;
        low += !is_right;
    }
    memcpy(merged, low, (size_t)(middle - low) * sizeof *low);
    memcpy(merged + (middle - low), high, (size_t)(stop - high) * sizeof *high);
}

/* Sort groups that are small beside the table of digits: sorted runs of RUN words are merged. `others` has room for
 * `count` words. */
static void sort_some(uint64_t *words, int64_t count, uint64_t *others) {
    uint64_t *from = words, *to = others;
    for (int64_t at = 0; at < count; at += RUN) sort_few(words + at, count - at < RUN ? count - at : RUN);
    for (int64_t run = RUN; run < count; run *= 2) {
        for (int64_t at = 0; at < count; at += 2 * run) {
            int64_t left = count - at < run ? count - at : run;
            int64_t right = count - at - left < run ? count - at - left : run;
            merge_runs(from + at, left, right, to + at);
        }
        uint64_t *merged = to;
        to = from;
        from = merged;
    }
    if (from != words) memcpy(words, from, (size_t)count * sizeof *words);
}

/* Sort the words of each group; group g has those from starts[g] up to starts[g + 1]. `workspace` has room
 * for the words of the largest group. */
EXPORT void olapdb_sort_groups(uint64_t *words, int64_t groups, const int64_t *starts, uint64_t *workspace) {
    for (int64_t group = 0; group < groups; group++) {
        uint64_t *own = words + starts[group], low, high, is_ascending = 1;
        int64_t count = starts[group + 1] - starts[group];
        if (count <= 1) continue;
        if (count <= FEW) {
            sort_few(own, count);
            continue;
        }
        low = high = own[0];
        for (int64_t at = 1; at < count; at++) {
            is_ascending &= own[at - 1] <= own[at];
            low = own[at] < low ? own[at] : low;
            high = own[at] > high ? own[at] : high;
        }
        if (is_ascending) continue;
        if (count < DIGITS / 4)
            sort_some(own, count, workspace);
        else
            sort_by_digits(own, count, low, high - low, workspace);
    }
}
