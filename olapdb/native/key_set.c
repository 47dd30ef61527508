/* A growing set of keys of 64 bits, null among them: open addressing, linear probing. */

#include "kernels.h"

enum { AHEAD = 32 };

/* A slot of 0 is free; behind the `capacity` slots one tells whether the set has key 0, one whether it has
 * null. */
enum { HAS_ZERO = 0, HAS_NULL = 1 };

/* How far a batch is inserted: the next row, the keys in the slots, and the rows with new keys so far. */
typedef struct {
    int64_t row;
    int64_t keys;
    int64_t new_rows;
} Progress;

static inline uint64_t place_of(const uint64_t *slots, uint64_t mask, uint64_t hash, uint64_t key) {
    uint64_t place = hash & mask;
    while (slots[place] != 0 && slots[place] != key) place = (place + 1) & mask;
    return place;
}

/* Insert keys; write the rows whose keys are new to `new_rows`, ascending. Stop where half of the slots are
 * taken: the caller calls again with more slots until `progress->row` is `rows`. */
EXPORT void olapdb_insert_keys(const uint64_t *keys, const uint8_t *validity, int64_t bit, int64_t rows,
                               uint64_t *slots, int64_t capacity, Progress *progress, int64_t *new_rows) {
    uint64_t mask = (uint64_t)capacity - 1, hashes[AHEAD];
    uint64_t *flags = slots + capacity;
    while (progress->row < rows && progress->keys + AHEAD <= capacity / 2) {
        int64_t start = progress->row, stop = start + AHEAD < rows ? start + AHEAD : rows;
        for (int64_t row = start; row < stop; row++) {
            hashes[row - start] = mix(keys[row]);
            PREFETCH(&slots[hashes[row - start] & mask]);
        }
        for (int64_t row = start; row < stop; row++) {
            uint64_t *slot;
            if (!is_valid(validity, bit, row)) {
                slot = flags + HAS_NULL;
            } else if (keys[row] == 0) {
                slot = flags + HAS_ZERO;
            } else {
                slot = slots + place_of(slots, mask, hashes[row - start], keys[row]);
                progress->keys += *slot == 0;
            }
            if (*slot != 0) continue;
            *slot = slot >= flags ? 1 : keys[row];
            new_rows[progress->new_rows++] = row;
        }
        progress->row = stop;
    }
}

/* Copy a set into one of more slots, which are free. */
EXPORT void olapdb_grow_keys(const uint64_t *slots, int64_t capacity, uint64_t *larger,
                             int64_t larger_capacity) {
    uint64_t mask = (uint64_t)larger_capacity - 1;
    for (int64_t at = 0; at < capacity; at++)
        if (slots[at] != 0) larger[place_of(larger, mask, mix(slots[at]), slots[at])] = slots[at];
    larger[larger_capacity + HAS_ZERO] = slots[capacity + HAS_ZERO];
    larger[larger_capacity + HAS_NULL] = slots[capacity + HAS_NULL];
}
