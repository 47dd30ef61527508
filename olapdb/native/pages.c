/* Decode numbers of Parquet pages straight into the form that the column cache keeps.
 * `storage/page_decoder.py` calls it; the other form is Arrow's reader. */

#define _XOPEN_SOURCE 700
#include "pages.h"

/* Parquet's physical types. */
enum { PHYSICAL_INT32 = 1, PHYSICAL_INT64 = 2, PHYSICAL_FLOAT = 4, PHYSICAL_DOUBLE = 5 };

/* What to make of the values: their physical type, whether rows may be NULL, the codec of the pages, the bytes of a
 * value of the column, and what divides the values (seconds are stored as milliseconds). */
typedef struct {
    int64_t physical, optional, codec, width, divisor;
} Form;

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
            value = bytes == 4 ? add_up_32(cursor.at, width, values, least, value, to + 4 * row)
                               : add_up_64(cursor.at, width, values, least, value, to + 8 * row);
            row += values;
            cursor.at += size < left ? size : left;
        }
    }
    return cursor.at == end ? DONE : DAMAGED;
}

/* Write values of the physical type IN as those of the column, OUT, one for each row; 0 where a row has none. */
#define SPREAD(NAME, IN, OUT, VALUE)                                                                \
    static ALWAYS_INLINE int NAME(const uint8_t *from, const uint8_t *validity, int64_t start, int64_t rows,           \
                                  int64_t divisor, uint8_t *to) {                                   \
        OUT *values = (OUT *)(void *)to;                                                            \
        IN inexact = 0, in;                                                                         \
        if (validity == NULL) {                                                                     \
            for (int64_t row = 0; row < rows; row++) {                                              \
                memcpy(&in, from + row * (int64_t)sizeof in, sizeof in);                            \
                values[row] = (OUT)(VALUE);                                                         \
            }                                                                                       \
        } else {                                                                                    \
            for (int64_t row = 0; row < rows; row++) {                                              \
                int present = is_valid(validity, start, row);                                       \
                in = 0;                                                                             \
                if (present) memcpy(&in, from, sizeof in);                                          \
                from += present ? (int64_t)sizeof in : 0;                                           \
                values[row] = (OUT)(VALUE);                                                         \
            }                                                                                       \
        }                                                                                           \
        (void)divisor;                                                                              \
        return inexact != 0;                                                                        \
    }

SPREAD(spread_32_8, int32_t, uint8_t, in)
SPREAD(spread_32_16, int32_t, uint16_t, in)
SPREAD(spread_32_32, int32_t, uint32_t, in)
SPREAD(spread_32_64, int32_t, int64_t, in)
SPREAD(spread_64_64, int64_t, int64_t, in)
SPREAD(spread_seconds, int64_t, int64_t, (inexact |= in % 1000, in / 1000))

static ALWAYS_INLINE int spread(const Form *form, const uint8_t *from, const uint8_t *validity, int64_t start,
                                int64_t rows, uint8_t *to) {
    int is_32 = form->physical == PHYSICAL_INT32 || form->physical == PHYSICAL_FLOAT;
    int inexact;
    if (is_32 && form->width == 1) inexact = spread_32_8(from, validity, start, rows, 1, to);
    else if (is_32 && form->width == 2) inexact = spread_32_16(from, validity, start, rows, 1, to);
    else if (is_32 && form->width == 4) inexact = spread_32_32(from, validity, start, rows, 1, to);
    else if (is_32) inexact = spread_32_64(from, validity, start, rows, 1, to);
    else if (form->divisor == 1) inexact = spread_64_64(from, validity, start, rows, 1, to);
    else inexact = spread_seconds(from, validity, start, rows, form->divisor, to);
    return inexact ? UNKNOWN : DONE;
}

/* Decode one column of one row group to `to`, and its validity from bit `start` on; count the NULLs. */
static ALWAYS_INLINE int decode_chunk(const Source *source, const Chunk *chunk, const Form *form, Room room, uint8_t *to,
                                      uint8_t *validity, int64_t start, int64_t *nulls) {
    int64_t bytes = form->physical == PHYSICAL_INT32 || form->physical == PHYSICAL_FLOAT ? 4 : 8;
    int is_direct = !form->optional && form->width == bytes && form->divisor == 1 && form->codec == LZ4_RAW;
    int64_t done = 0, dictionary_size = 0;
    uint8_t *stored = taken(&room, chunk->bytes), *scratch = taken(&room, chunk->page_bytes);
    uint8_t *dictionary = taken(&room, chunk->page_bytes), *decoded = taken(&room, 8 * chunk->rows);
    uint32_t *codes = (uint32_t *)(void *)taken(&room, 4 * chunk->rows);
    Cursor cursor = {stored, stored + chunk->bytes, 0};
    int problem;
    if (stored == NULL || scratch == NULL || dictionary == NULL || decoded == NULL || codes == NULL) return UNKNOWN;
    if ((problem = read_source(source, chunk->offset, chunk->bytes, stored))) return problem;
    memset(stored + chunk->bytes, 0, SLACK);
    while (done < chunk->rows) {
        PageHeader header;
        Cursor ahead = cursor;
        const uint8_t *page, *end, *values;
        const uint8_t *valid = NULL;
        int64_t present;
        uint8_t *rows_at = to + done * form->width;
        /* Plain values need no place of their own: they are decompressed where they belong. */
        if ((problem = read_header(&ahead, &header))) return problem;
        if (is_direct && header.type == DATA_PAGE && header.encoding == PLAIN) {
            if (header.values > chunk->rows - done || header.page_bytes != header.values * bytes) return DAMAGED;
            if ((problem = next_page(&cursor, LZ4_RAW, rows_at, header.page_bytes, &header, &page))) return problem;
            done += header.values;
            continue;
        }
        if (header.type == DICTIONARY_PAGE) {
            if (dictionary_size || done) return UNKNOWN;
            if (header.encoding != PLAIN && header.encoding != PLAIN_DICTIONARY) return UNKNOWN;
            problem = next_page(&cursor, (int)form->codec, dictionary, chunk->page_bytes, &header, &page);
            if (problem) return problem;
            if (header.values == 0 || header.page_bytes != header.values * bytes) return DAMAGED;
            if (page != dictionary) memcpy(dictionary, page, (size_t)header.page_bytes);
            dictionary_size = header.values;
            continue;
        }
        if ((problem = next_page(&cursor, (int)form->codec, scratch, chunk->page_bytes, &header, &page))) return problem;
        if (header.values > chunk->rows - done) return DAMAGED;
        if (header.level_encoding != RLE) return UNKNOWN;
        end = page + header.page_bytes;
        present = header.values;
        if (form->optional) {
            present = read_levels(&page, end, header.values, validity, start + done);
            if (present < 0) return DAMAGED;
            *nulls += header.values - present;
            if (present < header.values) valid = validity;
        }
        values = decoded;
        if (header.encoding == PLAIN) {
            if (end - page != present * bytes) return DAMAGED;
            values = page;
        } else if (header.encoding == DELTA_BINARY_PACKED && form->physical <= PHYSICAL_INT64) {
            if ((problem = read_differences(page, end, (int)bytes, present, decoded))) return problem;
        } else if (header.encoding == RLE_DICTIONARY || header.encoding == PLAIN_DICTIONARY) {
            if (present && (page == end || dictionary_size == 0)) return DAMAGED;
            if (present && (problem = read_runs(page + 1, end, *page, present, (uint32_t)dictionary_size, codes)))
                return problem;
            if (bytes == 4)
                for (int64_t row = 0; row < present; row++) memcpy(decoded + 4 * row, dictionary + 4 * (int64_t)codes[row], 4);
            else
                for (int64_t row = 0; row < present; row++) memcpy(decoded + 8 * row, dictionary + 8 * (int64_t)codes[row], 8);
        } else {
            return UNKNOWN;
        }
        if ((problem = spread(form, values, valid, start + done, header.values, rows_at))) return problem;
        done += header.values;
    }
    return cursor.at == cursor.end ? DONE : UNKNOWN;
}

/* Decode a column of `count` row groups, one after the other, to `values`, behind which SLACK bytes are free.
 * `validity` is a bitmap of all rows, for an optional column, with a byte more; `nulls` counts its zeros.
 * Return 0, or another number if the pages are not as the kernel knows them, or damaged: then what it wrote is void. */
EXPORT int olapdb_decode_numbers(const int64_t *source, const int64_t *chunks, int64_t count, const int64_t *form,
                                 uint8_t *scratch, int64_t scratch_bytes, uint8_t *values, uint8_t *validity,
                                 int64_t *nulls) {
    Source from = {source[0], (const uint8_t *)(intptr_t)source[1], source[2]};
    Form as = {form[0], form[1], form[2], form[3], form[4]};
    Room room = {scratch, scratch_bytes};
    int64_t start = 0, all = 0;
    const Chunk *columns = (const Chunk *)(const void *)chunks;
    *nulls = 0;
    for (int64_t at = 0; at < count; at++) all += columns[at].rows;
    if (as.optional) memset(validity, 0, (size_t)((all >> 3) + 1));
    for (int64_t at = 0; at < count; at++) {
        int problem = decode_chunk(&from, columns + at, &as, room, values + start * as.width, validity, start, nulls);
        if (problem) return problem;
        start += columns[at].rows;
    }
    return DONE;
}
