/* Pages of Parquet: their headers, levels and encodings. Every length is checked against what is there, and what is
 * there must be used up, since no checksum covers the headers. A page that is not as our writer makes it gives UNKNOWN
 * or DAMAGED, and the caller reads it with Arrow, which says what is wrong.
 * https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift and Encodings.md beside it. */

#ifndef OLAPDB_PAGES_H
#define OLAPDB_PAGES_H

#include <errno.h>
#include <unistd.h>

#include "checksums.h"
#include "lz4.h"
#include "page_format.h"
#include "unpacking.h"

enum { DONE, UNKNOWN, DAMAGED };

/* A file that is open, or one in memory (`file` is below 0). */
typedef struct {
    int64_t file;
    const uint8_t *memory;
    int64_t size;
} Source;

/* A column in a row group: where its pages are in the file, the rows, the bytes of its pages without compression. */
typedef struct {
    int64_t offset, bytes, rows, page_bytes;
} Chunk;

/* A piece of memory that belongs to the caller. */
typedef struct {
    uint8_t *bytes;
    int64_t size;
} Room;

typedef struct {
    int64_t type, page_bytes, stored_bytes, values, encoding, level_encoding;
    uint32_t crc;
} PageHeader;

/* Take `size` bytes and SLACK of a room, at a multiple of 64; NULL if they are not there. */
static inline uint8_t *taken(Room *room, int64_t size) {
    uint8_t *bytes = room->bytes;
    int64_t all;
    if (size < 0 || size > room->size) return NULL;
    all = (size + SLACK + 63) & ~(int64_t)63;
    if (all > room->size) return NULL;
    room->bytes += all;
    room->size -= all;
    return bytes;
}

/* Read bytes of a source. */
static int read_source(const Source *source, int64_t offset, int64_t size, uint8_t *to) {
    if (offset < 0 || size < 0) return DAMAGED;
    if (source->file < 0) {
        if (offset > source->size || size > source->size - offset) return DAMAGED;
        memcpy(to, source->memory + offset, (size_t)size);
        return DONE;
    }
    while (size > 0) {
        ssize_t got = pread((int)source->file, to, (size_t)size, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return DAMAGED;
        to += got;
        offset += got;
        size -= got;
    }
    return DONE;
}

/* --- headers: structs of Thrift's compact protocol */

typedef struct {
    const uint8_t *at, *end;
    int failed;
} Cursor;

static uint64_t read_varint(Cursor *cursor) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && cursor->at < cursor->end; shift += 7) {
        uint8_t byte = *cursor->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
    cursor->failed = 1;
    return 0;
}

static int64_t read_integer(Cursor *cursor) {
    uint64_t value = read_varint(cursor);
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

/* Read the header of a field; return its kind, 0 at the end of a struct. */
static int next_field(Cursor *cursor, int64_t *field) {
    uint8_t header;
    if (cursor->failed || cursor->at >= cursor->end) {
        cursor->failed = 1;
        return 0;
    }
    header = *cursor->at++;
    if (header == 0) return 0;
    *field = header >> 4 ? *field + (header >> 4) : read_integer(cursor);
    return header & 15;
}

/* Skip a value that is no list, set or map, of which page headers have none. */
static void skip_value(Cursor *cursor, int kind, int depth) {
    uint64_t size;
    switch (kind) {
        case 1: case 2: return; /* booleans are their header */
        case 3: size = 1; break;
        case 4: case 5: case 6: read_varint(cursor); return;
        case 7: size = 8; break;
        case 8: size = read_varint(cursor); break;
        case 12:
            if (depth < 8) {
                int64_t field = 0;
                for (int inner; (inner = next_field(cursor, &field)) != 0;) skip_value(cursor, inner, depth + 1);
                return;
            } /* fall through */
        default: cursor->failed = 1; return;
    }
    if (cursor->failed || size > (uint64_t)(cursor->end - cursor->at)) cursor->failed = 1;
    else cursor->at += size;
}

/* Read the struct that describes the values of a page. */
static void read_values_header(Cursor *cursor, PageHeader *header) {
    int64_t field = 0;
    for (int kind; (kind = next_field(cursor, &field)) != 0;) {
        if (kind == 5 && field == 1) header->values = read_integer(cursor);
        else if (kind == 5 && field == 2) header->encoding = read_integer(cursor);
        else if (kind == 5 && field == 3 && header->type == DATA_PAGE) header->level_encoding = read_integer(cursor);
        else skip_value(cursor, kind, 1);
    }
}

/* Read a page's header. Pages of other types, and those without a checksum, are UNKNOWN. */
static int read_header(Cursor *cursor, PageHeader *header) {
    int64_t field = 0;
    int has_crc = 0;
    *header = (PageHeader){-1, -1, -1, -1, -1, RLE, 0};
    for (int kind; (kind = next_field(cursor, &field)) != 0;) {
        if (kind == 5 && field == 1) header->type = read_integer(cursor);
        else if (kind == 5 && field == 2) header->page_bytes = read_integer(cursor);
        else if (kind == 5 && field == 3) header->stored_bytes = read_integer(cursor);
        else if (kind == 5 && field == 4) {
            header->crc = (uint32_t)read_integer(cursor);
            has_crc = 1;
        } else if (kind == 12 && field == (header->type == DATA_PAGE ? 5 : 7)) read_values_header(cursor, header);
        else skip_value(cursor, kind, 0);
    }
    if (cursor->failed) return DAMAGED;
    if ((header->type != DATA_PAGE && header->type != DICTIONARY_PAGE) || !has_crc) return UNKNOWN;
    if (header->page_bytes < 0 || header->page_bytes > INT32_MAX || header->stored_bytes < 0 || header->values < 0 ||
        header->values > INT32_MAX)
        return DAMAGED;
    return header->stored_bytes > cursor->end - cursor->at ? DAMAGED : DONE;
}

/* Read the next page of a chunk, verify its checksum, and decompress it to `to`, where `room` bytes and SLACK are free.
 * A page without compression is left where it is. `page` is where it begins. */
static int next_page(Cursor *cursor, int codec, uint8_t *to, int64_t room, PageHeader *header, const uint8_t **page) {
    int problem = read_header(cursor, header);
    const uint8_t *stored = cursor->at;
    if (problem) return problem;
    if (crc32_of(stored, header->stored_bytes) != header->crc) return DAMAGED;
    cursor->at += header->stored_bytes;
    if (header->page_bytes > room) return DAMAGED;
    if (codec == UNCOMPRESSED) {
        *page = stored;
        return header->stored_bytes == header->page_bytes ? DONE : DAMAGED;
    }
    *page = to;
    return lz4_decompress(stored, header->stored_bytes, to, header->page_bytes) ? DONE : DAMAGED;
}

/* --- encodings. Behind a page SLACK bytes may be read. */

/* Unpack values of `width` bits, at most 32; return the greatest one. */
static ALWAYS_INLINE uint32_t unpack(const uint8_t *packed, int width, int64_t count, uint32_t *to) {
    int64_t wide = unpacks_wide(width) ? count & ~(int64_t)7 : 0;
    uint64_t mask = ((uint64_t)1 << width) - 1, word;
    uint32_t most = wide ? unpack_wide(packed, width, wide, to) : 0;
    for (int64_t row = wide, bit = wide * width; row < count; row++, bit += width) {
        memcpy(&word, packed + (bit >> 3), 8);
        to[row] = (uint32_t)(word >> (bit & 7) & mask);
        most = to[row] > most ? to[row] : most;
    }
    return most;
}

/* Read runs of repeated and of packed values of `width` bits, at most 32, as 32-bit numbers below `limit`. */
static int read_runs(const uint8_t *at, const uint8_t *end, int width, int64_t count, uint32_t limit, uint32_t *to) {
    Cursor cursor = {at, end, 0};
    int64_t value_bytes = (width + 7) >> 3;
    if (width < 0 || width > 32) return DAMAGED;
    while (count > 0) {
        uint64_t header = read_varint(&cursor), run = header >> 1;
        uint32_t most = 0;
        if (cursor.failed || run == 0) return DAMAGED;
        if (header & 1) {
            int64_t left = cursor.end - cursor.at, values;
            if (run > (uint64_t)INT32_MAX) return DAMAGED;
            values = (int64_t)run * 8 < count ? (int64_t)run * 8 : count;
            if ((values * width + 7) >> 3 > left) return DAMAGED;
            most = unpack(cursor.at, width, values, to);
            cursor.at += (int64_t)run * width < left ? (int64_t)run * width : left;
            run = (uint64_t)values;
        } else {
            if (value_bytes > cursor.end - cursor.at) return DAMAGED;
            for (int64_t byte = 0; byte < value_bytes; byte++) most |= (uint32_t)cursor.at[byte] << 8 * byte;
            cursor.at += value_bytes;
            if (run > (uint64_t)count) return DAMAGED;
            for (uint64_t row = 0; row < run; row++) to[row] = most;
        }
        if (most >= limit) return DAMAGED;
        to += run;
        count -= (int64_t)run;
    }
    return cursor.at == end ? DONE : DAMAGED;
}

/* Set the bits from `start` on; `bits` has no other ones set there. */
static void set_bits(uint8_t *bits, int64_t start, int64_t count) {
    for (; count > 0 && (start & 7); start++, count--) bits[start >> 3] |= (uint8_t)(1 << (start & 7));
    memset(bits + (start >> 3), 255, (size_t)(count >> 3));
    if (count & 7) bits[(start + count) >> 3] |= (uint8_t)((1 << (count & 7)) - 1);
}

/* Read the definition levels of a page of an optional column, 1 bit each, as a validity bitmap from bit `start` on.
 * Return how many rows have a value, below 0 if the levels are damaged. `page` moves behind them. */
static int64_t read_levels(const uint8_t **page, const uint8_t *end, int64_t rows, uint8_t *validity, int64_t start) {
    uint32_t size;
    int64_t present = 0;
    Cursor cursor;
    if (end - *page < 4) return -1;
    memcpy(&size, *page, 4);
    if (size > (uint64_t)(end - *page - 4)) return -1;
    cursor = (Cursor){*page + 4, *page + 4 + size, 0};
    *page += 4 + (int64_t)size;
    while (rows > 0) {
        uint64_t header = read_varint(&cursor), run = header >> 1;
        int64_t left = cursor.end - cursor.at, values;
        if (cursor.failed || run == 0 || run > (uint64_t)INT32_MAX) return -1;
        if (header & 1) {
            values = (int64_t)run * 8 < rows ? (int64_t)run * 8 : rows;
            if ((values + 7) >> 3 > left) return -1;
            for (int64_t row = 0; row < values; row += 8) {
                unsigned byte = cursor.at[row >> 3], mask = values - row < 8 ? (1u << (values - row)) - 1 : 255;
                int64_t at = start + row;
                byte &= mask;
                present += __builtin_popcount(byte);
                validity[at >> 3] |= (uint8_t)(byte << (at & 7));
                if (byte >> (8 - (at & 7))) validity[(at >> 3) + 1] |= (uint8_t)(byte >> (8 - (at & 7)));
            }
            cursor.at += (int64_t)run < left ? (int64_t)run : left;
        } else {
            uint8_t level;
            if (left < 1) return -1;
            level = *cursor.at++;
            if (level > 1) return -1;
            values = (int64_t)run;
            if (values > rows) return -1;
            if (level) {
                set_bits(validity, start, values);
                present += values;
            }
        }
        start += values;
        rows -= values;
    }
    return cursor.at == cursor.end ? present : -1;
}

#endif
