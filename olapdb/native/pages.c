/* Decode numbers of Parquet pages straight into the form that the column cache keeps.
 * `storage/page_decoder.py` calls it; the other form is Arrow's reader. */

#define _XOPEN_SOURCE 700
#include "differences.h"
#include "pages.h"

/* Parquet's physical types. */
enum { PHYSICAL_INT32 = 1, PHYSICAL_INT64 = 2, PHYSICAL_FLOAT = 4, PHYSICAL_DOUBLE = 5 };

/* What to make of the values: their physical type, whether rows may be NULL, the codec of the pages, the bytes of a
 * value of the column, and what divides the values (seconds are stored as milliseconds). */
typedef struct {
    int64_t physical, optional, codec, width, divisor;
} Form;

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
