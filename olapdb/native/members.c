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
