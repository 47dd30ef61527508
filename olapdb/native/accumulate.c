/* Accumulators of groups: each kernel adds the rows of a column to the states of their groups.
 *
 * `codes[row]` is the group of a row; without codes (NULL) all rows are in group 0, and the loop has no
 * scatter, so that the compiler vectorises it. Rows that are null are skipped. */

#include "kernels.h"

typedef unsigned __int128 uint128_t;

/* Count the rows of each group that are not null. */
EXPORT void olapdb_count(const uint8_t *validity, int64_t bit, const int64_t *codes, int64_t rows,
                         int64_t *counts) {
    if (validity == NULL)
        for (int64_t row = 0; row < rows; row++) counts[codes[row]]++;
    else if (codes == NULL)
        for (int64_t row = 0; row < rows; row++) counts[0] += is_valid(validity, bit, row);
    else
        for (int64_t row = 0; row < rows; row++) counts[codes[row]] += is_valid(validity, bit, row);
}

/* All bits of a word if the row is valid, else none: nulls add 0 without a branch, which a condition
 * true for half of the rows would mispredict. */
#define WHERE_VALID(validity, bit, row) (-(uint64_t)is_valid(validity, bit, row))

/* Add integers up in 64 bits; sums wrap around. */
EXPORT void olapdb_sum_integers(int type, const void *values, const uint8_t *validity, int64_t bit,
                                const int64_t *codes, int64_t rows, uint64_t *sums) {
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        if (codes == NULL && validity == NULL) {                                                    \
            uint64_t sum = 0;                                                                       \
            for (int64_t row = 0; row < rows; row++) sum += (uint64_t)typed[row];                   \
            sums[0] += sum;                                                                         \
        } else if (validity == NULL) {                                                              \
            for (int64_t row = 0; row < rows; row++) sums[codes[row]] += (uint64_t)typed[row];      \
        } else if (codes == NULL) {                                                                 \
            uint64_t sum = 0;                                                                       \
            for (int64_t row = 0; row < rows; row++)                                                \
                sum += (uint64_t)typed[row] & WHERE_VALID(validity, bit, row);                      \
            sums[0] += sum;                                                                         \
        } else {                                                                                    \
            for (int64_t row = 0; row < rows; row++)                                                \
                sums[codes[row]] += (uint64_t)typed[row] & WHERE_VALID(validity, bit, row);         \
        }                                                                                           \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
}

/* Add numbers up as Float64, in row order, so that the result is the same as numpy's bincount. Adding 0
 * for a null changes no sum: a sum that begins with 0 is never -0. */
EXPORT void olapdb_sum_floats(int type, const void *values, const uint8_t *validity, int64_t bit,
                              const int64_t *codes, int64_t rows, double *sums) {
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        if (codes == NULL) {                                                                        \
            double sum = sums[0];                                                                   \
            for (int64_t row = 0; row < rows; row++)                                                \
                sum += is_valid(validity, bit, row) ? (double)typed[row] : 0.0;                     \
            sums[0] = sum;                                                                          \
            return;                                                                                 \
        }                                                                                           \
        for (int64_t row = 0; row < rows; row++)                                                    \
            sums[codes[row]] += is_valid(validity, bit, row) ? (double)typed[row] : 0.0;            \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
        CASE(FLOAT32, float)
        CASE(FLOAT64, double)
#undef CASE
    }
}

/* Add decimals of 128 bits up; sums wrap around. Arrow aligns values by 8 bytes only. */
EXPORT void olapdb_sum_decimals128(const uint64_t *values, const uint8_t *validity, int64_t bit,
                                   const int64_t *codes, int64_t rows, uint64_t *sums) {
    for (int64_t row = 0; row < rows; row++) {
        if (!is_valid(validity, bit, row)) continue;
        uint64_t *sum = sums + 2 * (codes == NULL ? 0 : codes[row]);
        uint128_t total = ((uint128_t)sum[1] << 64) | sum[0];
        total += ((uint128_t)values[2 * row + 1] << 64) | values[2 * row];
        sum[0] = (uint64_t)total;
        sum[1] = (uint64_t)(total >> 64);
    }
}

/* Keep the least (`largest`: the largest) value of each group in `best`, of the values' type, which
 * starts at the other end of the type's range; `seen[group]` becomes 1 for a group with a value. */
EXPORT void olapdb_extremes(int type, const void *values, const uint8_t *validity, int64_t bit,
                            const int64_t *codes, int64_t rows, int largest, void *best, uint8_t *seen) {
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        T *kept = best;                                                                             \
        if (codes == NULL && validity == NULL) {                                                    \
            T extreme = kept[0];                                                                    \
            if (largest)                                                                            \
                for (int64_t row = 0; row < rows; row++)                                            \
                    extreme = typed[row] > extreme ? typed[row] : extreme;                          \
            else                                                                                    \
                for (int64_t row = 0; row < rows; row++)                                            \
                    extreme = typed[row] < extreme ? typed[row] : extreme;                          \
            kept[0] = extreme;                                                                      \
            seen[0] |= rows > 0;                                                                    \
            return;                                                                                 \
        }                                                                                           \
        for (int64_t row = 0; row < rows; row++) {                                                  \
            if (!is_valid(validity, bit, row)) continue;                                            \
            int64_t group = codes == NULL ? 0 : codes[row];                                         \
            T value = typed[row];                                                                   \
            if (largest ? value > kept[group] : value < kept[group]) kept[group] = value;           \
            seen[group] = 1;                                                                        \
        }                                                                                           \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
}

/* Write for each group the last row that has its least (`largest`: largest) key. `rows_of` starts at -1;
 * `best` needs no start. */
EXPORT void olapdb_extreme_rows(const int64_t *keys, const int64_t *codes, int64_t rows, int largest,
                                int64_t *best, int64_t *rows_of) {
    for (int64_t row = 0; row < rows; row++) {
        int64_t group = codes == NULL ? 0 : codes[row], key = keys[row];
        if (rows_of[group] < 0 || (largest ? key >= best[group] : key <= best[group])) {
            best[group] = key;
            rows_of[group] = row;
        }
    }
}
