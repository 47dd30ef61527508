/* Hashes of values, and lookups by them. `functions/kernels/hashing.py` describes the hashes, which are
 * part of the on-disk format, and has their other form; `compute/hash_index.py` has that of lookups. */

#include "sketches.h"

enum { AHEAD = 32 };

/* Hash integers at any width as their 64-bit value, floats as the bits of a Float64 with one NaN; a null
 * gives 0. */
EXPORT void olapdb_hash_numbers(int type, const void *values, const uint8_t *validity, int64_t bit,
                                int64_t rows, uint64_t *hashes) {
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        for (int64_t row = 0; row < rows; row++) hashes[row] = mix((uint64_t)typed[row] + GOLDEN);  \
        break;                                                                                      \
    }
        FOR_INTEGERS(CASE)
#undef CASE
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        for (int64_t row = 0; row < rows; row++) {                                                  \
            double value = (double)typed[row];                                                      \
            uint64_t bits = 0x7FF8000000000000u;                                                    \
            if (value == value) memcpy(&bits, &value, sizeof bits);                                 \
            hashes[row] = mix(bits + GOLDEN);                                                       \
        }                                                                                           \
        break;                                                                                      \
    }
        CASE(FLOAT32, float)
        CASE(FLOAT64, double)
#undef CASE
    }
    if (validity != NULL)
        for (int64_t row = 0; row < rows; row++)
            if (!is_valid(validity, bit, row)) hashes[row] = 0;
}

/* Hash texts with offsets of 4 bytes; a null gives 0. */
EXPORT void olapdb_hash_texts(const uint8_t *data, const int32_t *offsets, const uint8_t *validity,
                              int64_t bit, int64_t rows, uint64_t *hashes) {
    for (int64_t row = 0; row < rows; row++) {
        uint64_t size = (uint64_t)(offsets[row + 1] - offsets[row]);
        hashes[row] = is_valid(validity, bit, row) ? hash_of_text(data + offsets[row], size) : 0;
    }
}

/* Raise the registers of a HyperLogLog sketch, one for each number of the hashes' upper `index_bits`, to the
 * ranks of the hashes: one more than the zeros before the first 1 of their lower `rank_bits`. */
EXPORT void olapdb_raise_registers(const uint64_t *hashes, int64_t rows, int index_bits, int rank_bits,
                                   uint8_t *registers) {
    for (int64_t row = 0; row < rows; row++) raise_register(registers, hashes[row], index_bits, rank_bits);
}

/* Write for each hash the first group that has it, -1 if there is none. `indexed` are the hashes of the
 * `count` groups, ascending; `buckets[b]` is the first group whose hash has upper bits of at least b,
 * where the upper bits are those above `shift`. Few buckets have more than two groups: both are compared
 * without a branch. A group of another bucket has another hash, so that the end of the bucket needs no
 * check for them. */
#define FIND(NAME, T)                                                                               \
    EXPORT void NAME(const uint64_t *hashes, int64_t rows, const uint64_t *indexed, int64_t count,  \
                     const T *buckets, int64_t shift, int64_t *groups) {                            \
        int64_t last = count - 1;                                                                   \
        for (int64_t start = 0; start < rows; start += AHEAD) {                                     \
            int64_t stop = start + AHEAD < rows ? start + AHEAD : rows;                             \
            for (int64_t row = start; row < stop; row++) PREFETCH(&buckets[hashes[row] >> shift]);  \
            for (int64_t row = start; row < stop; row++)                                            \
                PREFETCH(&indexed[buckets[hashes[row] >> shift]]);                                  \
            for (int64_t row = start; row < stop; row++) {                                          \
                uint64_t hash = hashes[row], bucket = hash >> shift;                                \
                int64_t first = buckets[bucket], end = buckets[bucket + 1], found = -1;             \
                int64_t second = first + 1;                                                         \
                first = first < last ? first : last;                                                \
                second = second < last ? second : last;                                             \
                found = indexed[second] == hash ? second : found;                                   \
                found = indexed[first] == hash ? first : found;                                     \
                if (end - first > 2 && found < 0)                                                   \
                    for (int64_t group = second + 1; group < end && found < 0; group++)              \
                        found = indexed[group] == hash ? group : found;                             \
                groups[row] = found;                                                                \
            }                                                                                       \
        }                                                                                           \
    }
FIND(olapdb_find_hashes32, int32_t)
FIND(olapdb_find_hashes64, int64_t)

/* Write a bit for each hash, in words of 64: whether it is among the `count` hashes of groups, which are indexed as for
 * the kernels above. A hash is looked up only where the bit of its upper bits, those above `mark_shift`, is set in
 * `marks`: most hashes that no group has are told by that, and the marks stay in a near cache. */
EXPORT void olapdb_contains_hashes(const uint64_t *hashes, int64_t rows, const uint64_t *indexed, int64_t count,
                                   const int32_t *buckets, int64_t shift, const uint8_t *marks,
                                   int64_t mark_shift, uint64_t *found) {
    int64_t last = count - 1;
    for (int64_t start = 0; start < rows; start += 64) {
        int64_t block = rows - start < 64 ? rows - start : 64, candidates = 0;
        uint8_t places[64];
        uint64_t bits = 0;
        for (int64_t at = 0; at < block; at++) {
            uint64_t mark = hashes[start + at] >> mark_shift;
            places[candidates] = (uint8_t)at;
            candidates += marks[mark >> 3] >> (mark & 7) & 1;
        }
        for (int64_t at = 0; at < candidates; at++) PREFETCH(&buckets[hashes[start + places[at]] >> shift]);
        for (int64_t at = 0; at < candidates; at++)
            PREFETCH(&indexed[buckets[hashes[start + places[at]] >> shift]]);
        for (int64_t at = 0; at < candidates; at++) {
            uint64_t hash = hashes[start + places[at]], bucket = hash >> shift, is_found;
            int64_t first = buckets[bucket], end = buckets[bucket + 1], second = first + 1;
            is_found = indexed[first < last ? first : last] == hash;
            is_found |= indexed[second < last ? second : last] == hash;
            for (int64_t group = second + 1; group < end && !is_found; group++) is_found = indexed[group] == hash;
            bits |= is_found << places[at];
        }
        found[start / 64] = bits;
    }
}
