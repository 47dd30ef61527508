/* Sets of integers in a narrow span: a bit, or a code, for each number from the least on. */

#include "kernels.h"

/* What lies below `low` wraps around to more than the span. Numbers are sign-extended to 64 bits first. */
#define FOR_NUMBERS(LOOP)                                                                           \
    switch (type) {                                                                                 \
        LOOP(INT8, int8_t)                                                                          \
        LOOP(UINT8, uint8_t)                                                                        \
        LOOP(INT16, int16_t)                                                                        \
        LOOP(UINT16, uint16_t)                                                                      \
        LOOP(INT32, int32_t)                                                                        \
        LOOP(UINT32, uint32_t)                                                                      \
        LOOP(INT64, int64_t)                                                                        \
        LOOP(UINT64, uint64_t)                                                                      \
    }
enum { FEW_OF_WORD = 12 };

#define OFFSET(T) ((uint64_t)(int64_t)((const T *)values)[row] - low)

/* Return 64 bytes of 0 or 1 as bits, the first byte as the lowest. A product moves the bits of eight bytes into
 * its uppermost byte: bytes are independent, where bits of one word would wait for each other. */
static uint64_t packed(const uint8_t *flags) {
    uint64_t word = 0;
    for (int part = 0; part < 8; part++) {
        uint64_t eight;
        memcpy(&eight, flags + 8 * part, sizeof eight);
        word |= (eight * 0x0102040810204080u >> 56) << (8 * part);
    }
    return word;
}

/* Set the bit of each value in `bits`. All values lie in the span that begins with `low`; none is NULL. */
EXPORT void olapdb_mark_members(int type, const void *values, int64_t rows, uint64_t low, uint8_t *bits) {
#define LOOP(NAME, T)                                                                               \
    case NAME:                                                                                      \
        for (int64_t row = 0; row < rows; row++) bits[OFFSET(T) >> 3] |= (uint8_t)(1 << (OFFSET(T) & 7)); \
        break;
    FOR_NUMBERS(LOOP)
#undef LOOP
}

/* Write a bit for each row, in words of 64: whether the set has its value. NULL is in no set. `bits` has one
 * for each number of the span, and a 0 behind the last. */
EXPORT void olapdb_find_members(int type, const void *values, const uint8_t *validity, int64_t bit, int64_t rows,
                                uint64_t low, uint64_t span, const uint8_t *bits, uint64_t *members) {
#define LOOP(NAME, T)                                                                               \
    case NAME:                                                                                      \
        for (int64_t start = 0; start < rows; start += 64) {                                        \
            int64_t stop = rows - start < 64 ? rows : start + 64;                                   \
            uint8_t found[64] = {0};                                                                \
            PREFETCH_AFTER((const T *)values + start);                                              \
            for (int64_t row = start; row < stop; row++) {                                          \
                uint64_t at = OFFSET(T);                                                            \
                at = at < span ? at : span;                                                         \
                found[row - start] = (bits[at >> 3] >> (at & 7)) & 1;                               \
            }                                                                                       \
            uint64_t word = packed(found);                                                          \
            if (validity != NULL)                                                                   \
                for (int64_t row = start; row < stop; row++)                                        \
                    if (!is_valid(validity, bit, row)) word &= ~((uint64_t)1 << (row - start));     \
            members[start >> 6] = word;                                                             \
        }                                                                                           \
        break;
    FOR_NUMBERS(LOOP)
#undef LOOP
}

/* Keep in `kept`, a bit for each row from bit 0, the rows whose value the set has. NULL is in no set. Bits behind
 * the last row become 0. Where few rows of 64 are kept so far, the others are not looked up. */
EXPORT void olapdb_keep_members(int type, const void *values, const uint8_t *validity, int64_t bit, int64_t rows,
                                uint64_t low, uint64_t span, const uint8_t *bits, uint64_t *kept) {
#define LOOP(NAME, T)                                                                               \
    case NAME:                                                                                      \
        for (int64_t start = 0; start < rows; start += 64) {                                        \
            int64_t step = rows - start < 64 ? rows - start : 64;                                   \
            uint64_t word = kept[start >> 6], found_word = 0;                                       \
            if (word == 0) continue;                                                                \
            PREFETCH_AFTER((const T *)values + start);                                              \
            if (step < 64) word &= ((uint64_t)1 << step) - 1;                                       \
            if (__builtin_popcountll(word) <= FEW_OF_WORD) {                                        \
                for (uint64_t left = word; left != 0; left &= left - 1) {                           \
                    int64_t row = start + __builtin_ctzll(left);                                    \
                    uint64_t at = OFFSET(T);                                                        \
                    at = at < span ? at : span;                                                     \
                    found_word |= (uint64_t)((bits[at >> 3] >> (at & 7)) & 1) << (row - start);     \
                }                                                                                   \
            } else {                                                                                \
                uint8_t found[64] = {0};                                                            \
                for (int64_t row = start; row < start + step; row++) {                              \
                    uint64_t at = OFFSET(T);                                                        \
                    at = at < span ? at : span;                                                     \
                    found[row - start] = (bits[at >> 3] >> (at & 7)) & 1;                           \
                }                                                                                   \
                found_word = packed(found);                                                         \
            }                                                                                       \
            word &= found_word;                                                                     \
            if (validity != NULL)                                                                   \
                for (uint64_t left = word; left != 0; left &= left - 1)                             \
                    if (!is_valid(validity, bit, start + __builtin_ctzll(left))) word &= ~(left & -left); \
            kept[start >> 6] = word;                                                                \
        }                                                                                           \
        break;
    FOR_NUMBERS(LOOP)
#undef LOOP
}

/* Write for each row how many members are less than its value, -1 for NULL and for a value that is none. `bits` is as
 * above, in words of 64; `ranks` has the number of members before each word. */
EXPORT void olapdb_rank_members(int type, const void *values, const uint8_t *validity, int64_t bit, int64_t rows,
                                uint64_t low, uint64_t span, const uint64_t *bits, const int32_t *ranks,
                                int64_t *codes) {
#define LOOP(NAME, T)                                                                               \
    case NAME:                                                                                      \
        for (int64_t row = 0; row < rows; row++) {                                                  \
            uint64_t at = OFFSET(T);                                                                \
            if (row % 64 == 0) PREFETCH_AFTER((const T *)values + row);                             \
            at = at < span ? at : span;                                                             \
            uint64_t word = bits[at >> 6], before = word & (((uint64_t)1 << (at & 63)) - 1);        \
            codes[row] = word >> (at & 63) & 1 ? ranks[at >> 6] + __builtin_popcountll(before) : -1; \
        }                                                                                           \
        break;
    FOR_NUMBERS(LOOP)
#undef LOOP
    if (validity != NULL)
        for (int64_t row = 0; row < rows; row++)
            if (!is_valid(validity, bit, row)) codes[row] = -1;
}

/* Write the code of each row's value, -1 for NULL and for a value that the set lacks. `table` has the code of
 * each number of the span, and a -1 behind the last. */
EXPORT void olapdb_find_numbers(int type, const void *values, const uint8_t *validity, int64_t bit, int64_t rows,
                                uint64_t low, uint64_t span, const int32_t *table, int64_t *codes) {
#define LOOP(NAME, T)                                                                               \
    case NAME:                                                                                      \
        for (int64_t row = 0; row < rows; row++) {                                                  \
            uint64_t at = OFFSET(T);                                                                \
            if (row % 64 == 0) PREFETCH_AFTER((const T *)values + row);                             \
            codes[row] = table[at < span ? at : span];                                              \
        }                                                                                           \
        break;
    FOR_NUMBERS(LOOP)
#undef LOOP
    if (validity != NULL)
        for (int64_t row = 0; row < rows; row++)
            if (!is_valid(validity, bit, row)) codes[row] = -1;
}
