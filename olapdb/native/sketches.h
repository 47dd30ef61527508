/* Hashes that sketches of distinct values are made of, and the sketches' registers. `functions/kernels/hashing.py` describes
 * the hashes, which are part of the on-disk format, and `storage/distinct_counts.py` the sketches; both have the other form. */

#ifndef OLAPDB_SKETCHES_H
#define OLAPDB_SKETCHES_H

#include "kernels.h"

#define GOLDEN 0x9E3779B97F4A7C15u
#define POSITION 0xD6E8FEB86659FD93u

enum { REGISTER_BITS = 8, RANK_BITS = 52, REGISTERS = 1 << REGISTER_BITS, SKETCHED_ROWS = 4096, HASHED_ROWS = 32 };

static ALWAYS_INLINE uint64_t hash_of_text(const uint8_t *text, uint64_t size) {
    uint64_t sum = 0, position = 0, word;
    for (; position + 8 <= size; position += 8) {
        word = load_64(text + position);
        sum += mix(word + position / 8 * POSITION + GOLDEN);
    }
    if (position < size) {
        word = short_word(text + position, (int64_t)(size - position));
        sum += mix(word + position / 8 * POSITION + GOLDEN);
    }
    return mix((sum ^ size) + GOLDEN);
}

/* Raise the register that the upper `index_bits` of a hash choose to the rank of the hash: one more than the zeros before
 * the first 1 of its lower `rank_bits`. */
static ALWAYS_INLINE void raise_register(uint8_t *registers, uint64_t hash, int index_bits, int rank_bits) {
    uint64_t rest = hash & (((uint64_t)1 << rank_bits) - 1);
    uint8_t *known = registers + (hash >> (64 - index_bits));
    int rank = rank_bits + 1 - (rest == 0 ? 0 : 64 - __builtin_clzll(rest));
    if (rank > *known) *known = (uint8_t)rank;
}

/* Return what the lower bits of a hash must be below to raise any of a sketch's registers. */
static ALWAYS_INLINE uint64_t raising_bound(const uint8_t *registers) {
    uint8_t least = 255;
    for (int at = 0; at < REGISTERS; at++) least = registers[at] < least ? registers[at] : least;
    return least > RANK_BITS ? 0 : (uint64_t)1 << (RANK_BITS - least);
}

/* Raise registers to the ranks of integers that are there. Once no register is low, few hashes can raise one: the sign of
 * `some` says whether a hash of some rows does. */
#define SKETCH_VALUES(T, HASH)                                                                      \
    {                                                                                               \
        const T *typed = values;                                                                    \
        for (int64_t start = 0; start < rows; start += SKETCHED_ROWS) {                             \
            int64_t stop = rows - start < SKETCHED_ROWS ? rows : start + SKETCHED_ROWS;             \
            uint64_t bound = raising_bound(registers), mask = ((uint64_t)1 << RANK_BITS) - 1;       \
            for (int64_t first = start; first < stop; first += HASHED_ROWS) {                       \
                int64_t here = stop - first < HASHED_ROWS ? stop - first : HASHED_ROWS;             \
                uint64_t hashes[HASHED_ROWS], some = 0;                                             \
                for (int64_t at = 0; at < here; at++) {                                             \
                    uint64_t hash = HASH(typed[first + at]);                                        \
                    hashes[at] = hash;                                                              \
                    some |= (hash & mask) - bound;                                                  \
                }                                                                                   \
                if (some >> 63 == 0) continue;                                                      \
                for (int64_t at = 0; at < here; at++)                                               \
                    if ((hashes[at] & mask) < bound && is_valid(validity, bit, first + at))         \
                        raise_register(registers, hashes[at], REGISTER_BITS, RANK_BITS);            \
            }                                                                                       \
        }                                                                                           \
        return;                                                                                     \
    }
#define HASH_OF_INTEGER(value) mix((uint64_t)(value) + GOLDEN)
#define HASH_OF_DECIMAL(value) mix((mix((uint64_t)(value) + GOLDEN) ^ (uint64_t)((value) >> 64)) + GOLDEN)

static ALWAYS_INLINE void sketch_numbers(int type, const void *values, const uint8_t *validity, int64_t bit, int64_t rows,
                                         uint8_t *registers) {
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: SKETCH_VALUES(T, HASH_OF_INTEGER)
        FOR_INTEGERS(CASE)
#undef CASE
        case DECIMAL128: SKETCH_VALUES(int128_t, HASH_OF_DECIMAL)
    }
}

#endif
