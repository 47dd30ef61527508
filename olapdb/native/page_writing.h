/* What writes pages of Parquet: headers, levels and encodings. `pages.h` has what reads them.
 * https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift and Encodings.md beside it. */

#ifndef OLAPDB_PAGE_WRITING_H
#define OLAPDB_PAGE_WRITING_H

#include "checksums.h"
#include "lz4_compress.h"
#include "page_format.h"
#include "sketches.h"

enum { WRITTEN, NOT_WRITTEN };
enum { PAGE_HEADER_BYTES = 64 };
enum { BLOCK_VALUES = 128, MINIBLOCK_VALUES = 32, MINIBLOCKS = 4, REPEATS_MIN = 16 };

/* What a kernel tells of the pages of a column in a row group. Of numbers `least` and `greatest` are the bits, of texts
 * the rows. `has_nan` is 1 if a value is NaN. */
typedef struct {
    int64_t bytes, dictionary_bytes, page_bytes, nulls, encoding, has_range, least, greatest, has_nan;
} PageFacts;

/* Memory in which the pages are made. */
typedef struct {
    uint8_t *at, *end;
} Workroom;

/* Take `size` bytes, behind which SLACK may be written to, at a multiple of 64; NULL if they are not there. */
static inline void *take_room(Workroom *room, int64_t size) {
    uint8_t *bytes = room->at;
    int64_t all = (size + SLACK + 63) & ~(int64_t)63;
    if (size < 0 || all > room->end - room->at) return NULL;
    room->at += all;
    return bytes;
}

static inline uint8_t *put_varint(uint8_t *to, uint64_t value) {
    for (; value > 127; value >>= 7) *to++ = (uint8_t)(value | 128);
    *to++ = (uint8_t)value;
    return to;
}

static inline uint8_t *put_integer(uint8_t *to, int64_t value) {
    return put_varint(to, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

/* Put an integer as the next field of a struct of Thrift's compact protocol. */
static inline uint8_t *put_field(uint8_t *to, int64_t value) {
    *to++ = 0x15;
    return put_integer(to, value);
}

/* Append a page to `to`, of `size` bytes, and count it in `facts`; NULL if it would end behind `end`. */
static ALWAYS_INLINE uint8_t *put_page(uint8_t *to, const uint8_t *end, int type, int64_t values, int encoding,
                                       const uint8_t *bytes, int64_t size, int codec, uint8_t *compressed, uint32_t *table, PageFacts *facts) {
    uint8_t *start = to;
    int64_t stored = size;
    if (codec == LZ4_RAW) {
        stored = lz4_compress(bytes, size, compressed, table);
        bytes = compressed;
    }
    if (to == NULL || end - to < PAGE_HEADER_BYTES + stored) return NULL;
    to = put_field(to, type);
    to = put_field(to, size);
    to = put_field(to, stored);
    to = put_field(to, (int32_t)crc32_of(bytes, stored));
    *to++ = type == DATA_PAGE ? 0x1C : 0x3C;
    to = put_field(to, values);
    to = put_field(to, encoding);
    if (type == DATA_PAGE) {
        to = put_field(to, RLE);
        to = put_field(to, RLE);
    }
    *to++ = 0;
    *to++ = 0;
    facts->page_bytes += to - start + size;
    memcpy(to, bytes, (size_t)stored);
    return to + stored;
}

/* Append values of `width` bits, at most 32, one behind the other; the last byte is filled with zeros. */
static ALWAYS_INLINE uint8_t *put_packed(uint8_t *to, const uint32_t *values, int64_t count, int width) {
    uint64_t held = 0;
    int bits = 0;
    for (int64_t at = 0; at < count; at++) {
        held |= (uint64_t)values[at] << bits;
        bits += width;
        if (bits >= 32) {
            uint32_t word = (uint32_t)held;
            memcpy(to, &word, 4);
            to += 4;
            held >>= 32;
            bits -= 32;
        }
    }
    for (; bits > 0; bits -= 8, held >>= 8) *to++ = (uint8_t)held;
    return to;
}

/* Append numbers below 2^width as runs: of one value, or of packed ones. `to` has room for 8 bytes a value. */
static ALWAYS_INLINE uint8_t *put_runs(uint8_t *to, const uint32_t *values, int64_t count, int width) {
    int64_t packed = 0, row = 0; /* the values from `packed` to `row` are not written yet, a multiple of 8 */
    while (row < count) {
        int64_t end = row + 1, stop;
        while (end < count && values[end] == values[row]) end++;
        if (end - row >= REPEATS_MIN) {
            stop = packed + ((row - packed + 7) & ~(int64_t)7); /* packed values come in eights */
            if (end - stop >= 8) {
                if (stop > packed) {
                    to = put_varint(to, (uint64_t)(stop - packed) >> 3 << 1 | 1);
                    to = put_packed(to, values + packed, stop - packed, width);
                }
                to = put_varint(to, (uint64_t)(end - stop) << 1);
                for (int bit = 0; bit < width; bit += 8) *to++ = (uint8_t)(values[row] >> bit);
                packed = end;
            }
        }
        row = end;
    }
    if (packed < count) {
        int64_t left = count - packed, whole = left & ~(int64_t)7;
        uint32_t tail[8] = {0};
        to = put_varint(to, (uint64_t)(left + 7) >> 3 << 1 | 1);
        to = put_packed(to, values + packed, whole, width);
        if (whole < left) {
            for (int64_t at = whole; at < left; at++) tail[at - whole] = values[packed + at];
            to = put_packed(to, tail, 8, width);
        }
    }
    return to;
}

/* Append the definition levels of a page of an optional column: 1 where the row has a value. */
static ALWAYS_INLINE uint8_t *put_levels(uint8_t *to, const uint8_t *validity, int64_t bit, int64_t rows) {
    uint8_t *start = to;
    uint32_t size;
    to += 4;
    if (validity == NULL) {
        to = put_varint(to, (uint64_t)rows << 1);
        *to++ = 1;
    } else {
        to = put_varint(to, (uint64_t)(rows + 7) >> 3 << 1 | 1);
        for (int64_t row = 0; row < rows; row += 8) {
            unsigned byte = 0;
            int64_t stop = rows - row < 8 ? rows - row : 8;
            for (int64_t at = 0; at < stop; at++) byte |= (unsigned)is_valid(validity, bit, row + at) << at;
            *to++ = (uint8_t)byte;
        }
    }
    size = (uint32_t)(to - start - 4);
    memcpy(start, &size, 4);
    return to;
}

#endif
