/* The partitions of rows by their hashes; `compute/spill/partitions.py` has the other form. */

#include "kernels.h"

#define GOLDEN 0x9E3779B97F4A7C15u

/* Combine the hashes of rows with those of a further column, in place. */
EXPORT void olapdb_combine_hashes(uint64_t *hashes, const uint64_t *others, int64_t rows) {
    for (int64_t row = 0; row < rows; row++) hashes[row] = mix(hashes[row] + GOLDEN) ^ others[row];
}

/* Write the partition of each row: the lowest `bits` bits, at most 8, of its hash, spread with `salt`, from
 * bit `shift` on. */
EXPORT void olapdb_partition_numbers(const uint64_t *hashes, int64_t rows, uint64_t salt, int shift, int bits,
                                     uint8_t *numbers) {
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    for (int64_t row = 0; row < rows; row++)
        numbers[row] = (uint8_t)(mix((hashes[row] ^ salt) + GOLDEN) >> shift & mask);
}

/* Write the rows of each partition, partition after partition, and where each of the `partitions`, at most 256,
 * ends. */
EXPORT void olapdb_partition_order(const uint8_t *numbers, int64_t rows, int64_t partitions, int64_t *order,
                                   int64_t *ends) {
    int64_t next[256], start = 0;
    memset(ends, 0, (size_t)partitions * sizeof *ends);
    for (int64_t row = 0; row < rows; row++) ends[numbers[row]]++;
    for (int64_t partition = 0; partition < partitions; partition++) {
        next[partition] = start;
        start += ends[partition];
        ends[partition] = start;
    }
    for (int64_t row = 0; row < rows; row++) order[next[numbers[row]]++] = row;
}
