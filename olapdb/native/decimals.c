/* Arithmetic of decimals whose digits fit 64 bits. */

#include "kernels.h"

enum { PLUS, MINUS, MULTIPLY };
enum { STEP_ROWS = 256 };

/* Write the integers of rows `row`… times `power` as 64-bit integers; return 0 if one does not fit. */
static int widen(int type, const void *values, int64_t row, int64_t rows, int64_t power, int64_t *wide) {
    uint64_t lost = 0;
#define CASE(NAME, T)                                                                               \
    case NAME:                                                                                      \
        for (int64_t at = 0; at < rows; at++) wide[at] = (int64_t)((const T *)values)[row + at];    \
        break;
    switch (type) {
        CASE(INT8, int8_t)
        CASE(UINT8, uint8_t)
        CASE(INT16, int16_t)
        CASE(UINT16, uint16_t)
        CASE(INT32, int32_t)
        CASE(UINT32, uint32_t)
        CASE(INT64, int64_t)
        case UINT64:
            for (int64_t at = 0; at < rows; at++) {
                wide[at] = ((const int64_t *)values)[row + at];
                lost |= (uint64_t)wide[at] >> 63;
            }
            break;
        case DECIMAL128:
            for (int64_t at = 0; at < rows; at++) { /* two words, the lower one first */
                int64_t words[2];
                memcpy(words, (const char *)values + 16 * (row + at), sizeof words);
                wide[at] = words[0];
                lost |= (uint64_t)(words[1] ^ (words[0] >> 63));
            }
            break;
        default: return 0;
    }
#undef CASE
    if (power != 1)
        for (int64_t at = 0; at < rows; at++)
            lost |= (uint64_t)__builtin_mul_overflow(wide[at], power, &wide[at]);
    return lost == 0;
}

/* Write the sums, differences or products of two columns without their points; return 0 if an operand does
 * not fit 64 bits, or a result does not fit `bits` (32, 64 or 128).  Each column is multiplied by its power
 * of ten first.  A column whose step is 0 has one value for all rows. */
EXPORT int olapdb_combine_decimals(int operation, int left_type, const void *left, int left_step,
                                   int64_t left_power, int right_type, const void *right, int right_step,
                                   int64_t right_power, int64_t rows, int bits, void *results) {
    int64_t lefts[STEP_ROWS], rights[STEP_ROWS];
    for (int64_t row = 0; row < rows; row += STEP_ROWS) {
        int64_t count = rows - row < STEP_ROWS ? rows - row : STEP_ROWS;
        uint64_t lost = 0;
        if (!widen(left_type, left, row * left_step, left_step ? count : 1, left_power, lefts)) return 0;
        if (!widen(right_type, right, row * right_step, right_step ? count : 1, right_power, rights)) return 0;
        if (!left_step)
            for (int64_t at = 1; at < count; at++) lefts[at] = lefts[0];
        if (!right_step)
            for (int64_t at = 1; at < count; at++) rights[at] = rights[0];
#define LOOP(RESULT)                                                                                \
    for (int64_t at = 0; at < count; at++) {                                                        \
        int128_t result = (RESULT);                                                                 \
        int64_t words[2] = {(int64_t)result, (int64_t)(result >> 64)};                              \
        if (bits <= 64) lost |= (uint64_t)(words[1] ^ (words[0] >> 63));                            \
        if (bits <= 32) lost |= (uint64_t)(words[0] ^ (int64_t)(int32_t)words[0]);                  \
        memcpy((char *)results + 16 * (row + at), words, sizeof words);                             \
    }
        switch (operation) {
            case PLUS: LOOP((int128_t)lefts[at] + rights[at]) break;
            case MINUS: LOOP((int128_t)lefts[at] - rights[at]) break;
            default: LOOP((int128_t)lefts[at] * rights[at]) break;
        }
#undef LOOP
        if (lost) return 0;
    }
    return 1;
}
