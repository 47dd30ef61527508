/* Compress a block of LZ4: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md, in the manner of its fast mode:
 * a table of where four bytes were seen last, and longer steps where matches are rare. */

#ifndef OLAPDB_LZ4_COMPRESS_H
#define OLAPDB_LZ4_COMPRESS_H

#include "kernels.h"

enum { LZ4_TABLE_BITS = 12, LZ4_DISTANCE_MAX = 65535, LZ4_NO_MATCH_BYTES = 12, LZ4_LITERAL_BYTES = 5, LZ4_PATIENCE = 6 };

/* The most bytes that a block of `size` bytes may take. */
static inline int64_t lz4_bound(int64_t size) { return size + size / 255 + 16; }

static inline uint32_t lz4_word(const uint8_t *at) {
    uint32_t word;
    memcpy(&word, at, 4);
    return word;
}

/* Hash five bytes; eight may be read. */
static inline uint32_t lz4_slot(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return (uint32_t)((word << 24) * 889523592379u >> (64 - LZ4_TABLE_BITS));
}

/* Return how many bytes are the same from `at` and `from` on, before `end`. */
static ALWAYS_INLINE int64_t lz4_same(const uint8_t *at, const uint8_t *from, const uint8_t *end) {
    const uint8_t *start = at;
    uint64_t left, right;
    while (end - at >= 8) {
        memcpy(&left, at, 8);
        memcpy(&right, from, 8);
        if (left != right) return at - start + (__builtin_ctzll(left ^ right) >> 3); /* little endian */
        at += 8;
        from += 8;
    }
    while (at < end && *at == *from) at++, from++;
    return at - start;
}

static inline uint8_t *lz4_put_length(uint8_t *to, int64_t length) {
    for (; length >= 255; length -= 255) *to++ = 255;
    *to++ = (uint8_t)length;
    return to;
}

/* Append a sequence: literals, and a match of `length` bytes at `distance`, which the last sequence lacks (0). Few literals
 * are copied 16 bytes at a time, if so many are there before `end`. */
static ALWAYS_INLINE uint8_t *lz4_put(uint8_t *to, const uint8_t *literals, int64_t count, const uint8_t *end, int64_t distance,
                                      int64_t length) {
    int64_t extra = length - 4;
    uint8_t *token = to++;
    *token = (uint8_t)((count < 15 ? count : 15) << 4);
    if (count >= 15) to = lz4_put_length(to, count - 15);
    if (count <= 16 && end - literals >= 16) memcpy(to, literals, 16);
    else memcpy(to, literals, (size_t)count);
    to += count;
    if (distance == 0) return to;
    to[0] = (uint8_t)distance;
    to[1] = (uint8_t)(distance >> 8);
    to += 2;
    *token |= (uint8_t)(extra < 15 ? extra : 15);
    return extra >= 15 ? lz4_put_length(to, extra - 15) : to;
}

/* Compress `size` bytes, below 4 GiB, to `to`, which has `lz4_bound(size)` bytes, and 16 that may be written to. `table` has 2^LZ4_TABLE_BITS places.
 * Return the bytes. */
static ALWAYS_INLINE int64_t lz4_compress(const uint8_t *from, int64_t size, uint8_t *to, uint32_t *table) {
    const uint8_t *at = from, *anchor = from, *end = from + size, *last = end - LZ4_NO_MATCH_BYTES;
    uint8_t *start = to;
    memset(table, 0, sizeof *table << LZ4_TABLE_BITS);
    if (size > LZ4_NO_MATCH_BYTES) {
        at++;
        while (at <= last) {
            const uint8_t *seen;
            uint32_t tries = 1 << LZ4_PATIENCE, slot;
            int64_t length;
            for (;;) {
                slot = lz4_slot(at);
                seen = from + table[slot];
                table[slot] = (uint32_t)(at - from);
                if (at - seen <= LZ4_DISTANCE_MAX && lz4_word(seen) == lz4_word(at)) break;
                at += tries++ >> LZ4_PATIENCE;
                if (at > last) goto rest;
            }
            while (at > anchor && seen > from && at[-1] == seen[-1]) at--, seen--;
            do {
                length = 4 + lz4_same(at + 4, seen + 4, end - LZ4_LITERAL_BYTES);
                to = lz4_put(to, anchor, at - anchor, end, at - seen, length);
                anchor = at += length;
                if (at > last) goto rest;
                table[lz4_slot(at - 2)] = (uint32_t)(at - 2 - from);
                slot = lz4_slot(at);
                seen = from + table[slot];
                table[slot] = (uint32_t)(at - from);
            } while (at - seen <= LZ4_DISTANCE_MAX && lz4_word(seen) == lz4_word(at));
            at++;
        }
    }
rest:
    return lz4_put(to, anchor, end - anchor, end, 0, 4) - start;
}

#endif
