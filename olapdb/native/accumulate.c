/* Accumulators of groups: each kernel adds the rows of a column to the states of their groups.
 *
 * `codes[row]` is the group of a row; without codes (NULL) all rows are in group 0, and the loop has no
 * scatter, so that the compiler vectorises it. Rows that are null are skipped. */

#include "kernels.h"

typedef unsigned __int128 uint128_t;

/* Rows that are looked at together: rows of a sorted table often have the same group one after the other.
 * Then the block is added up in registers; one addition to memory after the other would wait for it. */
enum { BLOCK = 8 };

/* Return whether the rows of a block have one group. */
static inline int is_one_group(const int64_t *codes) {
    int64_t differences = 0;
    for (int at = 1; at < BLOCK; at++) differences |= codes[at] ^ codes[0];
    return differences == 0;
}

/* All bits of a word if the row is valid, else none: nulls add 0 without a branch, which a condition
 * true for half of the rows would mispredict. */
#define WHERE_VALID(validity, bit, row) (-(uint64_t)is_valid(validity, bit, row))

/* Count the rows of each group that are not null. */
EXPORT void olapdb_count(const uint8_t *validity, int64_t bit, const int64_t *codes, int64_t rows,
                         int64_t *counts) {
    int64_t row = 0;
    if (codes == NULL) {
        for (; row < rows; row++) counts[0] += is_valid(validity, bit, row);
        return;
    }
    if (validity == NULL)
        for (; row + BLOCK <= rows; row += BLOCK) {
            if (is_one_group(codes + row))
                counts[codes[row]] += BLOCK;
            else
                for (int at = 0; at < BLOCK; at++) counts[codes[row + at]]++;
        }
    for (; row < rows; row++) counts[codes[row]] += is_valid(validity, bit, row);
}

/* Add integers up in 64 bits; sums wrap around. */
EXPORT void olapdb_sum_integers(int type, const void *values, const uint8_t *validity, int64_t bit,
                                const int64_t *codes, int64_t rows, uint64_t *sums) {
    int64_t row = 0;
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        if (codes == NULL) {                                                                        \
            uint64_t sum = 0;                                                                       \
            if (validity == NULL)                                                                   \
                for (; row < rows; row++) sum += (uint64_t)typed[row];                              \
            else                                                                                    \
                for (; row < rows; row++)                                                           \
                    sum += (uint64_t)typed[row] & WHERE_VALID(validity, bit, row);                  \
            sums[0] += sum;                                                                         \
            return;                                                                                 \
        }                                                                                           \
        if (validity == NULL)                                                                       \
            for (; row + BLOCK <= rows; row += BLOCK) {                                             \
                if (is_one_group(codes + row)) {                                                    \
                    uint64_t sum = 0;                                                               \
                    for (int at = 0; at < BLOCK; at++) sum += (uint64_t)typed[row + at];            \
                    sums[codes[row]] += sum;                                                        \
                } else {                                                                            \
                    for (int at = 0; at < BLOCK; at++)                                              \
                        sums[codes[row + at]] += (uint64_t)typed[row + at];                         \
                }                                                                                   \
            }                                                                                       \
        for (; row < rows; row++)                                                                   \
            sums[codes[row]] += (uint64_t)typed[row] & WHERE_VALID(validity, bit, row);             \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
}

/* Tables of sums that rows take in turn: the next row need not wait for the sum of the one before, which often
 * has the same group. They pay for few groups. */
enum { TABLES = 4, TABLE_GROUPS_MAX = 256 };

/* Add decimals of 64 bits up; return the bits that the widest one needs besides the sign, nulls included. Sums
 * wrap around: the caller looks whether they may. */
EXPORT int64_t olapdb_sum_short_decimals(const int64_t *values, const uint8_t *validity, int64_t bit,
                                         const int64_t *codes, int64_t rows, int64_t groups, uint64_t *sums) {
    uint64_t ends = 0;
    int64_t row = 0;
    if (codes == NULL) {
        uint64_t sum = 0;
        if (validity == NULL)
            for (; row < rows; row++) {
                ends |= SIGN_ENDS(values[row]);
                sum += (uint64_t)values[row];
            }
        for (; row < rows; row++) {
            ends |= SIGN_ENDS(values[row]);
            sum += (uint64_t)values[row] & WHERE_VALID(validity, bit, row);
        }
        sums[0] += sum;
        return bits_of_sign_ends(ends);
    }
    if (validity == NULL && groups <= TABLE_GROUPS_MAX) {
        uint64_t tables[TABLES][TABLE_GROUPS_MAX];
        memset(tables, 0, sizeof tables);
        for (; row + TABLES <= rows; row += TABLES) {
            if (row % 64 == 0) {
                PREFETCH_AFTER(values + row);
                PREFETCH_AFTER(codes + row);
            }
            for (int at = 0; at < TABLES; at++) {
                ends |= SIGN_ENDS(values[row + at]);
                tables[at][codes[row + at]] += (uint64_t)values[row + at];
            }
        }
        for (int64_t group = 0; group < groups; group++)
            for (int at = 0; at < TABLES; at++) sums[group] += tables[at][group];
    } else if (validity == NULL) {
        for (; row + BLOCK <= rows; row += BLOCK) {
            uint64_t sum = 0;
            if (row % 64 == 0) {
                PREFETCH_AFTER(values + row);
                PREFETCH_AFTER(codes + row);
            }
            for (int at = 0; at < BLOCK; at++) ends |= SIGN_ENDS(values[row + at]);
            if (is_one_group(codes + row)) {
                for (int at = 0; at < BLOCK; at++) sum += (uint64_t)values[row + at];
                sums[codes[row]] += sum;
            } else {
                for (int at = 0; at < BLOCK; at++) sums[codes[row + at]] += (uint64_t)values[row + at];
            }
        }
    }
    for (; row < rows; row++) {
        ends |= SIGN_ENDS(values[row]);
        sums[codes[row]] += (uint64_t)values[row] & WHERE_VALID(validity, bit, row);
    }
    return bits_of_sign_ends(ends);
}

/* Rows whose numbers are made before they are added up: only the additions wait for each other. */
enum { FLOAT_STEP = 64 };

/* Return the bits of a bitmap for the 64 rows from a bit on. */
static ALWAYS_INLINE uint64_t valid_word(const uint8_t *validity, int64_t bit) {
    const uint8_t *bytes = validity + (bit >> 3);
    int shift = (int)(bit & 7);
    uint64_t word = load_64(bytes) >> shift;
    return shift == 0 ? word : word | (uint64_t)bytes[8] << (64 - shift);
}

/* Return a number as Float64 where the mask is all ones, 0 where it is 0: by its bits, since a branch mispredicts. */
#define FLOAT_WHERE(value, mask, number)                                                            \
    do {                                                                                            \
        double converted = (double)(value);                                                         \
        uint64_t bits;                                                                              \
        memcpy(&bits, &converted, sizeof bits);                                                     \
        bits &= (mask);                                                                             \
        memcpy(&(number), &bits, sizeof bits);                                                      \
    } while (0)

/* Return a number as Float64, 0 where the row is null. */
#define FLOAT_WHERE_VALID(value, validity, bit, row, number)                                        \
    FLOAT_WHERE(value, WHERE_VALID(validity, bit, row), number)

/* Add numbers up as Float64, in row order, so that the result is the same as numpy's bincount. Adding 0
 * for a null changes no sum: a sum that begins with 0 is never -0. */
EXPORT void olapdb_sum_floats(int type, const void *values, const uint8_t *validity, int64_t bit,
                              const int64_t *codes, int64_t rows, double *sums) {
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        if (codes == NULL) {                                                                        \
            double sum = sums[0], number;                                                           \
            if (validity == NULL)                                                                   \
                for (int64_t row = 0; row < rows; row++) sum += (double)typed[row];                 \
            else {                                                                                  \
                int64_t row = 0;                                                                    \
                for (; row + FLOAT_STEP <= rows; row += FLOAT_STEP) {                               \
                    double numbers[FLOAT_STEP];                                                     \
                    uint64_t valid = valid_word(validity, bit + row);                               \
                    for (int at = 0; at < FLOAT_STEP; at++)                                         \
                        FLOAT_WHERE(typed[row + at], -(valid >> at & 1), numbers[at]);              \
                    for (int at = 0; at < FLOAT_STEP; at++) sum += numbers[at];                     \
                }                                                                                   \
                for (; row < rows; row++) {                                                         \
                    FLOAT_WHERE_VALID(typed[row], validity, bit, row, number);                      \
                    sum += number;                                                                  \
                }                                                                                   \
            }                                                                                       \
            sums[0] = sum;                                                                          \
        } else if (validity == NULL) {                                                              \
            for (int64_t row = 0; row < rows; row++) sums[codes[row]] += (double)typed[row];        \
        } else {                                                                                    \
            double number;                                                                          \
            for (int64_t row = 0; row < rows; row++) {                                              \
                FLOAT_WHERE_VALID(typed[row], validity, bit, row, number);                          \
                sums[codes[row]] += number;                                                         \
            }                                                                                       \
        }                                                                                           \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
        CASE(FLOAT32, float)
        CASE(FLOAT64, double)
#undef CASE
    }
}

/* Add up, in row order, the deviations of `left` from the shift of each row's group, each times that of `right` where
 * there is one. Without codes all rows are of group 0. Nothing is fused: the sums are numpy's. */
EXPORT void olapdb_sum_deviations(const double *left, const double *left_shifts, const double *right,
                                  const double *right_shifts, const int64_t *codes, int64_t rows, double *sums) {
    if (codes == NULL) {
        double sum = sums[0], left_shift = left_shifts[0], right_shift = right == NULL ? 0 : right_shifts[0];
        if (right == NULL)
            for (int64_t row = 0; row < rows; row++) sum += left[row] - left_shift;
        else
            for (int64_t row = 0; row < rows; row++) sum += (left[row] - left_shift) * (right[row] - right_shift);
        sums[0] = sum;
    } else if (right == NULL) {
        for (int64_t row = 0; row < rows; row++) sums[codes[row]] += left[row] - left_shifts[codes[row]];
    } else {
        for (int64_t row = 0; row < rows; row++) {
            int64_t code = codes[row];
            sums[code] += (left[row] - left_shifts[code]) * (right[row] - right_shifts[code]);
        }
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

/* Return how many bits the decimals of 128 bits need besides the sign, 127 if more than 63. */
EXPORT int64_t olapdb_decimal_bits(const uint64_t *values, const uint8_t *validity, int64_t bit,
                                   int64_t rows) {
    uint64_t used = 0, wide = 0;
    int64_t bits = 0;
    if (validity == NULL)
        for (int64_t row = 0; row < rows; row++) {
            uint64_t sign = -(values[2 * row] >> 63);
            used |= values[2 * row] ^ sign;
            wide |= values[2 * row + 1] ^ sign;
        }
    else
        for (int64_t row = 0; row < rows; row++) {
            uint64_t sign = -(values[2 * row] >> 63), mask = WHERE_VALID(validity, bit, row);
            used |= (values[2 * row] ^ sign) & mask;
            wide |= (values[2 * row + 1] ^ sign) & mask;
        }
    for (; used != 0; used >>= 1) bits++;
    return wide ? 127 : bits;
}

/* Add decimals of 128 bits up whose sums the caller knows to fit 64 bits: their low halves are added,
 * then each sum's sign fills its high half. */
EXPORT void olapdb_sum_narrow_decimals(const uint64_t *values, const uint8_t *validity, int64_t bit,
                                       const int64_t *codes, int64_t rows, int64_t groups, uint64_t *sums) {
    int64_t row = 0;
    if (codes == NULL) {
        uint64_t sum = 0;
        if (validity == NULL)
            for (; row < rows; row++) sum += values[2 * row];
        else
            for (; row < rows; row++) sum += values[2 * row] & WHERE_VALID(validity, bit, row);
        sums[0] = sum;
    } else if (validity == NULL) {
        for (; row + BLOCK <= rows; row += BLOCK) {
            if (is_one_group(codes + row)) {
                uint64_t sum = 0;
                for (int at = 0; at < BLOCK; at++) sum += values[2 * (row + at)];
                sums[2 * codes[row]] += sum;
            } else {
                for (int at = 0; at < BLOCK; at++) sums[2 * codes[row + at]] += values[2 * (row + at)];
            }
        }
        for (; row < rows; row++) sums[2 * codes[row]] += values[2 * row];
    } else {
        for (; row < rows; row++)
            sums[2 * codes[row]] += values[2 * row] & WHERE_VALID(validity, bit, row);
    }
    for (int64_t group = 0; group < groups; group++)
        sums[2 * group + 1] = (uint64_t)((int64_t)sums[2 * group] >> 63);
}

/* Keep the least (`largest`: the largest) value of each group in `best`, of the values' type, which
 * starts at the other end of the type's range; `seen[group]` becomes 1 for a group with a value. A null
 * counts as that other end, which changes nothing. */
EXPORT void olapdb_extremes(int type, const void *values, const uint8_t *validity, int64_t bit,
                            const int64_t *codes, int64_t rows, int largest, void *best, uint8_t *seen) {
    switch (type) {
#define BETTER(value, kept) (largest ? (value) > (kept) : (value) < (kept))
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
        } else if (codes == NULL) {                                                                 \
            T other_end = kept[0], extreme = other_end;                                             \
            uint8_t any = 0;                                                                        \
            for (int64_t row = 0; row < rows; row++) {                                              \
                uint8_t valid = (uint8_t)is_valid(validity, bit, row);                              \
                T mask = (T) - (T)valid;                                                            \
                T value = (T)((typed[row] & mask) | (other_end & (T)~mask));                        \
                extreme = BETTER(value, extreme) ? value : extreme;                                 \
                any |= valid;                                                                       \
            }                                                                                       \
            kept[0] = extreme;                                                                      \
            seen[0] |= any;                                                                         \
        } else {                                                                                    \
            for (int64_t row = 0; row < rows; row++) {                                              \
                if (!is_valid(validity, bit, row)) continue;                                        \
                int64_t group = codes[row];                                                         \
                T value = typed[row];                                                               \
                if (BETTER(value, kept[group])) kept[group] = value;                                \
                seen[group] = 1;                                                                    \
            }                                                                                       \
        }                                                                                           \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
#undef CASE
#undef BETTER
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
