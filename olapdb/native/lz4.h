/* Decompress a block of LZ4: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md */

#ifndef OLAPDB_LZ4_H
#define OLAPDB_LZ4_H

#include "kernels.h"
#include "page_format.h"

/* Add the bytes that continue a length of 15. Return the position behind them, NULL if the block ends before. */
static inline const uint8_t *lz4_length(const uint8_t *at, const uint8_t *end, int64_t *length) {
    uint8_t byte;
    do {
        if (at >= end) return NULL;
        byte = *at++;
        *length += byte;
    } while (byte == 255);
    return at;
}

static inline void copy_by_16(uint8_t *to, const uint8_t *from, const uint8_t *end) {
    do {
        memcpy(to, from, 16);
        to += 16;
        from += 16;
    } while (to < end);
}

/* Copy `length` bytes that begin `distance` before `to`, which may be among those that are written. */
static inline void lz4_repeat(uint8_t *to, int64_t distance, int64_t length) {
    uint8_t *end = to + length;
    const uint8_t *from = to - distance;
    if (distance >= 16) {
        copy_by_16(to, from, end);
    } else if (distance >= 8) {
        do {
            memcpy(to, from, 8);
            to += 8;
            from += 8;
        } while (to < end);
    } else if (distance == 1) {
        memset(to, *from, (size_t)length);
    } else { /* repeat the bytes until they are 8 or more */
        uint8_t pattern[8];
        int64_t whole = 8 - 8 % distance;
        for (int64_t at = 0; at < 8; at++) pattern[at] = from[at % distance];
        for (; to < end; to += whole) memcpy(to, pattern, 8);
    }
}

/* Decompress `size` bytes to exactly `wanted` bytes. Both are followed by SLACK bytes, and `to` by nothing that is
 * needed. Return whether that was possible. */
static int lz4_decompress(const uint8_t *from, int64_t size, uint8_t *to, int64_t wanted) {
    const uint8_t *end = from + size;
    uint8_t *start = to, *stop = to + wanted;
    while (from < end) {
        unsigned token = *from++;
        int64_t literals = token >> 4, length = (token & 15) + 4, distance;
        if (literals == 15 && (from = lz4_length(from, end, &literals)) == NULL) return 0;
        if (literals > end - from || literals > stop - to) return 0;
        if (literals <= 16) memcpy(to, from, 16);
        else copy_by_16(to, from, to + literals);
        to += literals;
        from += literals;
        if (from == end) return to == stop; /* the last sequence has no match */
        if (end - from < 2) return 0;
        distance = from[0] | from[1] << 8;
        from += 2;
        if (distance == 0 || distance > to - start) return 0;
        if (length == 19 && (from = lz4_length(from, end, &length)) == NULL) return 0;
        if (length > stop - to) return 0;
        if (distance >= 16 && length <= 32) { /* most of them */
            memcpy(to, to - distance, 16);
            memcpy(to + 16, to + 16 - distance, 16);
        } else if (distance >= 8 && length <= 16) {
            memcpy(to, to - distance, 8);
            memcpy(to + 8, to + 8 - distance, 8);
        } else {
            lz4_repeat(to, distance, length);
        }
        to += length;
    }
    return 0;
}

#endif
