/* Selections: the positions of the rows that a mask or a code keeps. */

#include "compaction.h"

static inline uint64_t word_at(const uint8_t *bits, int64_t bit) {
    uint64_t word;
    memcpy(&word, bits + (bit >> 3), sizeof word);
    return word;
}

/* Write the positions of the rows whose bit is 1 in `mask`, and in `validity` if there is one, ascending;
 * return their number. Row 0 has the bit `bit` of both bitmaps. `positions` has room for the rows that
 * are kept. */
EXPORT int64_t olapdb_positions(const uint8_t *mask, const uint8_t *validity, int64_t bit, int64_t rows,
                                int64_t *positions) {
    int64_t count = 0, row = 0;
    for (; row < rows && (bit + row) & 7; row++)
        if (is_valid(mask, bit, row) && is_valid(validity, bit, row)) positions[count++] = row;
    for (; row + 64 <= rows; row += 64) {
        uint64_t word = word_at(mask, bit + row);
        if (validity != NULL) word &= word_at(validity, bit + row);
        for (; word; word &= word - 1) positions[count++] = row + __builtin_ctzll(word);
    }
    for (; row < rows; row++)
        if (is_valid(mask, bit, row) && is_valid(validity, bit, row)) positions[count++] = row;
    return count;
}

/* Write the rows whose code is 0 or more, ascending, and their codes; return their number. Both outputs have room for
 * all rows: each row is written, the next one over one without a code, so that no branch is mispredicted. */
EXPORT int64_t olapdb_coded_rows(const int64_t *codes, int64_t rows, int64_t *coded, int64_t *kept) {
    int64_t count = 0;
    for (int64_t row = 0; row < rows; row++) {
        coded[count] = row;
        kept[count] = codes[row];
        count += codes[row] >= 0;
    }
    return count;
}

typedef struct { uint64_t words[2]; } two_words_t;

/* From so many rows of 64 on, all values are written, the next one over one that is not kept: no branch is
 * mispredicted. */
enum { DENSE_ROWS_MIN = 24 };

/* From so many rows of 64 on, some values are moved at once where the processor can. */
enum { WIDE_ROWS_MIN = 12 };

/* Write the values of the rows whose bit is 1 in `mask`, in their order. `bytes` is the width of a value; row
 * 0 has the bit `bit`, a multiple of 8. `kept` has room for the values that are kept, and COMPACTION_SLACK bytes more. */
EXPORT void olapdb_keep_values(int bytes, const void *values, const uint8_t *mask, int64_t bit, int64_t rows,
                               void *kept) {
    int64_t count = 0, row = 0;
    int is_wide = compacts_wide(bytes);
    switch (bytes) {
#define CASE(BYTES, T)                                                                              \
    case BYTES: {                                                                                   \
        const T *typed = values;                                                                    \
        T *out = kept;                                                                              \
        for (; row + 64 <= rows; row += 64) {                                                       \
            uint64_t word = word_at(mask, bit + row);                                               \
            const T *from = typed + row;                                                            \
            PREFETCH_AFTER(from);                                                                   \
            if (word == ~(uint64_t)0) {                                                             \
                memcpy(out + count, from, 64 * sizeof(T));                                          \
                count += 64;                                                                        \
            } else if (is_wide && __builtin_popcountll(word) >= WIDE_ROWS_MIN) {                    \
                count += compact_64(BYTES, from, word, out + count);                                \
            } else if (__builtin_popcountll(word) >= DENSE_ROWS_MIN) {                              \
                for (int at = 0; at < 64; at++, word >>= 1) {                                       \
                    out[count] = from[at];                                                          \
                    count += (int64_t)(word & 1);                                                   \
                }                                                                                   \
            } else {                                                                                \
                for (; word; word &= word - 1) out[count++] = from[__builtin_ctzll(word)];          \
            }                                                                                       \
        }                                                                                           \
        for (; row < rows; row++)                                                                   \
            if (is_valid(mask, bit, row)) out[count++] = typed[row];                                \
        return;                                                                                     \
    }
        CASE(1, uint8_t)
        CASE(2, uint16_t)
        CASE(4, uint32_t)
        CASE(8, uint64_t)
        CASE(16, two_words_t)
#undef CASE
    }
}

/* Write the positions of the rows whose value does not come after `bound` in an order, ascending; return
 * their number. `first` says whether NULL and NaN come before all values: these rows are kept, too.
 * `positions` has room for all rows. */
EXPORT int64_t olapdb_within(int type, const void *values, const uint8_t *validity, int64_t bit, int64_t rows,
                             const void *bound, int descending, int first, int64_t *positions) {
    int64_t count = 0;
#define LOOP(T, KEEPS)                                                                              \
    {                                                                                               \
        const char *bytes = values; /* decimals may not be aligned as C wants them */                \
        T limit, value;                                                                                    \
        memcpy(&limit, bound, sizeof limit);                                                        \
        if (validity == NULL)                                                                       \
            for (int64_t row = 0; row < rows; row++) {                                              \
                memcpy(&value, bytes + row * (int64_t)sizeof value, sizeof value);                  \
                positions[count] = row;                                                             \
                count += (KEEPS);                                                                   \
            }                                                                                       \
        else                                                                                        \
            for (int64_t row = 0; row < rows; row++) {                                              \
                memcpy(&value, bytes + row * (int64_t)sizeof value, sizeof value);                  \
                positions[count] = row;                                                             \
                count += is_valid(validity, bit, row) ? (KEEPS) : first;                            \
            }                                                                                       \
    }
#define CASE(NAME, T)                                                                               \
    case NAME:                                                                                      \
        if (descending) LOOP(T, value >= limit) else LOOP(T, value <= limit) break;
#define FLOAT_CASE(NAME, T)                                                                         \
    case NAME:                                                                                      \
        if (descending) LOOP(T, (value >= limit) | (first & (value != value)))                      \
        else LOOP(T, (value <= limit) | (first & (value != value))) break;
    switch (type) {
        FOR_INTEGERS(CASE)
        CASE(DECIMAL128, int128_t)
        FLOAT_CASE(FLOAT32, float)
        FLOAT_CASE(FLOAT64, double)
    }
#undef FLOAT_CASE
#undef CASE
#undef LOOP
    return count;
}

/* Do the same for texts, which compare by their bytes. */
EXPORT int64_t olapdb_texts_within(const int32_t *offsets, const uint8_t *data, const uint8_t *validity,
                                   int64_t bit, int64_t rows, const uint8_t *bound, int64_t bound_bytes,
                                   int descending, int first, int64_t *positions) {
    int64_t count = 0;
    for (int64_t row = 0; row < rows; row++) {
        int64_t bytes = offsets[row + 1] - offsets[row];
        int order;
        positions[count] = row;
        if (!is_valid(validity, bit, row)) {
            count += first;
            continue;
        }
        order = compare_texts(data + offsets[row], bytes, bound, bound_bytes);
        count += descending ? order >= 0 : order <= 0;
    }
    return count;
}

/* The 64 bytes of 0 or 1 as bits, the first as the lowest. */
static inline uint64_t packed_flags(const uint8_t *flags) {
    uint64_t bits = 0;
    for (int at = 0; at < 8; at++) {
        uint64_t eight;
        memcpy(&eight, flags + 8 * at, sizeof eight);
        bits |= ((eight * 0x0102040810204080u) >> 56) << (8 * at);
    }
    return bits;
}

/* Keep in `kept`, a bit for each row from bit 0, the rows whose value lies between `low` and `high`, both
 * included; or with `outside`, which is 0 or 1, those whose value does not. Return their number. NaN lies in no
 * range, and NULL is never kept. Bits behind the last row become 0. `low` and `high` point to values of the
 * column's type. */
EXPORT int64_t olapdb_keep_between(int type, const void *values, const uint8_t *validity, int64_t bit,
                                        int64_t rows, const void *low, const void *high, int outside,
                                        uint64_t *kept) {
    int64_t count = 0;
    uint64_t inverted = outside ? ~(uint64_t)0 : 0;
    uint8_t flags[64];
#define LOOP(T, DECLARED, KEEPS)                                                                    \
    {                                                                                               \
        const char *bytes = values; /* decimals may not be aligned as C wants them */               \
        T least, most, value;                                                                       \
        memcpy(&least, low, sizeof least);                                                          \
        memcpy(&most, high, sizeof most);                                                           \
        DECLARED;                                                                                   \
        for (int64_t row = 0; row < rows; row += 64) {                                              \
            int64_t step = rows - row < 64 ? rows - row : 64;                                       \
            if (kept[row >> 6] == 0) continue;                                                      \
            PREFETCH_AFTER((const T *)values + row);                                                \
            if (step < 64) memset(flags, 0, sizeof flags);                                          \
            for (int64_t at = 0; at < step; at++) {                                                 \
                memcpy(&value, bytes + (row + at) * (int64_t)sizeof value, sizeof value);           \
                flags[at] = (KEEPS);                                                                \
            }                                                                                       \
            kept[row >> 6] &= packed_flags(flags) ^ inverted;                                       \
            if (step < 64) kept[row >> 6] &= ((uint64_t)1 << step) - 1;                             \
            if (validity != NULL)                                                                   \
                for (int64_t at = 0; at < step; at++)                                               \
                    if (!is_valid(validity, bit, row + at)) kept[row >> 6] &= ~((uint64_t)1 << at); \
            count += __builtin_popcountll(kept[row >> 6]);                                          \
        }                                                                                           \
    }
/* One comparison: what is less than `least` wraps around to more than the span. */
#define CASE(NAME, T, U)                                                                            \
    case NAME: LOOP(T, U span = (U)((U)most - (U)least), (U)((U)value - (U)least) <= span) break;
#define FLOAT_CASE(NAME, T)                                                                         \
    case NAME: LOOP(T, , (value >= least) & (value <= most)) break;
    switch (type) {
        CASE(INT8, int8_t, uint8_t)
        CASE(UINT8, uint8_t, uint8_t)
        CASE(INT16, int16_t, uint16_t)
        CASE(UINT16, uint16_t, uint16_t)
        CASE(INT32, int32_t, uint32_t)
        CASE(UINT32, uint32_t, uint32_t)
        CASE(INT64, int64_t, uint64_t)
        CASE(UINT64, uint64_t, uint64_t)
        CASE(DECIMAL128, int128_t, unsigned __int128)
        FLOAT_CASE(FLOAT32, float)
        FLOAT_CASE(FLOAT64, double)
    }
#undef FLOAT_CASE
#undef CASE
#undef LOOP
    return count;
}

/* Put a value into a heap of at most `limit` values, the greatest first, and keep the least ones of all that came.
 * Return the new size. */
#define DEFINE_PUSH(NAME, T)                                                                        \
    static inline int64_t push_##T(T *heap, int64_t size, int64_t limit, T value) {                 \
        int64_t at = 0, child;                                                                      \
        if (size < limit) {                                                                         \
            for (at = size; at > 0 && heap[(at - 1) / 2] < value; at = (at - 1) / 2)                \
                heap[at] = heap[(at - 1) / 2];                                                      \
            heap[at] = value;                                                                       \
            return size + 1;                                                                        \
        }                                                                                           \
        if (value >= heap[0]) return size;                                                          \
        while ((child = 2 * at + 1) < size) {                                                       \
            child += child + 1 < size && heap[child + 1] > heap[child];                             \
            if (heap[child] <= value) break;                                                        \
            heap[at] = heap[child];                                                                 \
            at = child;                                                                             \
        }                                                                                           \
        heap[at] = value;                                                                           \
        return size;                                                                                \
    }
FOR_INTEGERS(DEFINE_PUSH)
#undef DEFINE_PUSH

/* Keep in `kept`, a bit for each row from bit 0, the rows whose value, an integer, comes neither after `bound` nor
 * after the `limit`-th best value of the rows in `kept`: the `limit`-th least one, or with `descending` the greatest.
 * `bound` points to a value of the column's type, or is NULL. `heap` has room for `limit` values, at least one. Bits
 * behind the last row become 0. Return the number of rows kept. */
EXPORT int64_t olapdb_keep_best(int type, const void *values, int64_t rows, int descending, const void *bound,
                                int64_t limit, void *heap, uint64_t *kept) {
    int64_t count = 0, size = 0;
    uint8_t flags[64];
    if (rows & 63) kept[rows >> 6] &= ((uint64_t)1 << (rows & 63)) - 1;
    switch (type) {
/* The bits of a descending value turned around make it an ascending one. Until `limit` values have come, `last` is the
 * greatest value of all: its bits without the sign's, where the type has one. */
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        const int is_signed = (T)-1 < (T)1;                                                         \
        T flip = (T)(descending ? ~(T)0 : (T)0);                                                    \
        T last = (T)(~(uint64_t)0 >> (64 - 8 * (int)sizeof(T) + is_signed));                        \
        if (bound != NULL) last = (T)(*(const T *)bound ^ flip);                                    \
        for (int64_t row = 0; row < rows; row += 64) {                                              \
            int64_t step = rows - row < 64 ? rows - row : 64;                                       \
            uint64_t left, bits = 0;                                                                \
            if (kept[row >> 6] == 0) continue;                                                      \
            PREFETCH_AFTER(typed + row);                                                            \
            if (step < 64) memset(flags, 0, sizeof flags);                                          \
            for (int64_t at = 0; at < step; at++) flags[at] = (T)(typed[row + at] ^ flip) <= last;  \
            for (left = packed_flags(flags) & kept[row >> 6]; left != 0; left &= left - 1) {        \
                T value = (T)(typed[row + __builtin_ctzll(left)] ^ flip);                           \
                if (value > last) continue;                                                         \
                bits |= left & -left;                                                               \
                size = push_##T(heap, size, limit, value);                                          \
                if (size == limit && *(T *)heap < last) last = *(T *)heap;                          \
            }                                                                                       \
            kept[row >> 6] = bits;                                                                  \
        }                                                                                           \
        for (int64_t row = 0; row < rows; row += 64) {                                              \
            uint64_t left = kept[row >> 6];                                                         \
            for (; left != 0; left &= left - 1)                                                     \
                if ((T)(typed[row + __builtin_ctzll(left)] ^ flip) > last)                          \
                    kept[row >> 6] &= ~(left & -left);                                              \
            count += __builtin_popcountll(kept[row >> 6]);                                          \
        }                                                                                           \
        break;                                                                                      \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
    return count;
}

/* Keep in `kept`, a bit for each row from bit 0, the rows whose code, an integer from 0, has a flag of 1; rows
 * that are NULL have the flag of the code `null_code`. Bits behind the last row become 0. */
EXPORT void olapdb_keep_flagged(int type, const void *codes, const uint8_t *validity, int64_t bit,
                                int64_t rows, const uint8_t *flag_of_code, int64_t null_code,
                                uint64_t *kept) {
    uint8_t flags[64];
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = codes;                                                                     \
        for (int64_t row = 0; row < rows; row += 64) {                                              \
            int64_t step = rows - row < 64 ? rows - row : 64;                                       \
            if (kept[row >> 6] == 0) continue;                                                      \
            if (step < 64) memset(flags, 0, sizeof flags);                                          \
            if (validity == NULL)                                                                   \
                for (int64_t at = 0; at < step; at++) flags[at] = flag_of_code[typed[row + at]];    \
            else                                                                                    \
                for (int64_t at = 0; at < step; at++)                                               \
                    flags[at] = flag_of_code[is_valid(validity, bit, row + at)                      \
                                                 ? (int64_t)typed[row + at]                         \
                                                 : null_code];                                      \
            kept[row >> 6] &= packed_flags(flags);                                                  \
        }                                                                                           \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
}
