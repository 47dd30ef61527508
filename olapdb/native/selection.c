/* Selections: the positions of the rows that a mask keeps. */

#include "kernels.h"

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
