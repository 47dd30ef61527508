/* Numbers of Parquet that are encoded as differences, DELTA_BINARY_PACKED. */

#ifndef OLAPDB_DIFFERENCES_H
#define OLAPDB_DIFFERENCES_H

#include "pages.h"
#include "unpacking.h"

/* Add up `count` differences of `width` bits, each `least` more than what is packed, and store the sums. */
#define ADD_UP(NAME, T)                                                                             \
    static ALWAYS_INLINE uint64_t NAME(const uint8_t *packed, int width, int64_t count, uint64_t least, uint64_t value, \
                                       uint8_t *to) {                                               \
        T narrow;                                                                                   \
        if (width == 0) {                                                                           \
            for (int64_t row = 0; row < count; row++) {                                             \
                value += least;                                                                     \
                narrow = (T)value;                                                                  \
                memcpy(to + row * (int64_t)sizeof(T), &narrow, sizeof(T));                          \
            }                                                                                       \
        } else if (width <= 56) {                                                                   \
            uint64_t mask = ((uint64_t)1 << width) - 1, word;                                       \
            for (int64_t row = 0, bit = 0; row < count; row++, bit += width) {                      \
                memcpy(&word, packed + (bit >> 3), 8);                                              \
                value += least + (word >> (bit & 7) & mask);                                        \
                narrow = (T)value;                                                                  \
                memcpy(to + row * (int64_t)sizeof(T), &narrow, sizeof(T));                          \
            }                                                                                       \
        } else {                                                                                    \
            uint64_t mask = width == 64 ? ~(uint64_t)0 : ((uint64_t)1 << width) - 1, word, more;    \
            for (int64_t row = 0, bit = 0; row < count; row++, bit += width) {                      \
                memcpy(&word, packed + (bit >> 3), 8);                                              \
                more = packed[(bit >> 3) + 8];                                                      \
                if (bit & 7) word = word >> (bit & 7) | more << (64 - (bit & 7));                   \
                value += least + (word & mask);                                                     \
                narrow = (T)value;                                                                  \
                memcpy(to + row * (int64_t)sizeof(T), &narrow, sizeof(T));                          \
            }                                                                                       \
        }                                                                                           \
        return value;                                                                               \
    }

ADD_UP(add_up_32, uint32_t)
ADD_UP(add_up_64, uint64_t)

/* Add up differences as above, of numbers of `bytes` bytes: 4 or 8. */
static ALWAYS_INLINE uint64_t add_up(const uint8_t *packed, int width, int64_t count, int bytes, uint64_t least,
                                     uint64_t value, uint8_t *to) {
    int64_t wide = unpacks_wide(width) ? count & ~(int64_t)7 : 0;
    if (wide) {
        value = bytes == 4 ? add_up_wide_32(packed, width, wide, least, value, to)
                           : add_up_wide_64(packed, width, wide, least, value, to);
        packed += wide / 8 * width;
        to += wide * bytes;
    }
    if (wide == count) return value;
    return bytes == 4 ? add_up_32(packed, width, count - wide, least, value, to)
                      : add_up_64(packed, width, count - wide, least, value, to);
}

/* Read numbers that are encoded as differences, of `bytes` bytes each: 4 or 8. */
static ALWAYS_INLINE int read_differences(const uint8_t *at, const uint8_t *end, int bytes, int64_t count, uint8_t *to) {
    Cursor cursor = {at, end, 0};
    uint64_t block = read_varint(&cursor), miniblocks = read_varint(&cursor), total = read_varint(&cursor);
    uint64_t value = (uint64_t)read_integer(&cursor);
    uint32_t narrow = (uint32_t)value;
    int64_t in_miniblock, row = 1;
    if (cursor.failed || total != (uint64_t)count) return DAMAGED;
    if (block == 0 || block > 1 << 20 || miniblocks == 0 || miniblocks > 512 || block % miniblocks) return DAMAGED;
    in_miniblock = (int64_t)(block / miniblocks);
    if (in_miniblock % 8) return DAMAGED;
    if (count > 0 && bytes == 4) memcpy(to, &narrow, 4);
    else if (count > 0) memcpy(to, &value, 8);
    while (row < count) {
        uint64_t least = (uint64_t)read_integer(&cursor);
        const uint8_t *widths = cursor.at;
        if (cursor.failed || (uint64_t)(cursor.end - cursor.at) < miniblocks) return DAMAGED;
        cursor.at += miniblocks;
        for (uint64_t mini = 0; mini < miniblocks && row < count; mini++) {
            int width = widths[mini];
            int64_t size = in_miniblock / 8 * width, left = cursor.end - cursor.at;
            int64_t values = in_miniblock < count - row ? in_miniblock : count - row;
            if (width > 8 * bytes || (values * width + 7) >> 3 > left) return DAMAGED;
            value = add_up(cursor.at, width, values, bytes, least, value, to + bytes * row);
            row += values;
            cursor.at += size < left ? size : left;
        }
    }
    return cursor.at == end ? DONE : DAMAGED;
}

#endif
