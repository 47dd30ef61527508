/* Decode texts of Parquet pages straight into Arrow's form: the bytes of all, and where each begins.
 * `storage/page_decoder.py` calls it; the other form is Arrow's reader. */

#define _XOPEN_SOURCE 700
#include "pages.h"

enum { FULL = 3 }; /* beside DONE, UNKNOWN and DAMAGED */

/* A text: where it begins in its page, and its bytes. */
typedef struct {
    uint32_t start, size;
} Text;

/* The texts that were decoded: `rows` of them, which end at `used` of `room` bytes. */
typedef struct {
    int32_t *offsets;
    uint8_t *bytes, *validity;
    int64_t rows, used, room, nulls;
} Texts;

static ALWAYS_INLINE int append_text(Texts *texts, const uint8_t *from, uint32_t size) {
    uint8_t *to = texts->bytes + texts->used;
    if (size > texts->room - texts->used) return 0;
    memcpy(to, from, 16); /* behind both there are SLACK bytes */
    if (size > 16) copy_by_16(to + 16, from + 16, to + size);
    texts->used += size;
    return 1;
}

/* Find the texts of a plain page, each behind the number of its bytes. */
static int find_texts(const uint8_t *page, int64_t bytes, int64_t count, Text *texts) {
    int64_t at = 0;
    for (int64_t row = 0; row < count; row++) {
        uint32_t size;
        if (bytes - at < 4) return DAMAGED;
        memcpy(&size, page + at, 4);
        at += 4;
        if (size > bytes - at) return DAMAGED;
        texts[row] = (Text){(uint32_t)at, size};
        at += size;
    }
    return at == bytes ? DONE : DAMAGED;
}

/* Append the texts of a page, plain ones (`codes` NULL) or those of a dictionary. */
static ALWAYS_INLINE int append_page(Texts *texts, const uint8_t *page, int64_t bytes, const uint32_t *codes,
                                     const uint8_t *dictionary, const Text *entries, const uint8_t *valid,
                                     int64_t rows) {
    int64_t at = 0, next = 0;
    for (int64_t row = 0; row < rows; row++) {
        if (valid == NULL || is_valid(valid, texts->rows, row)) {
            const uint8_t *from;
            uint32_t size;
            if (codes != NULL) {
                Text entry = entries[codes[next++]];
                from = dictionary + entry.start;
                size = entry.size;
            } else {
                if (bytes - at < 4) return DAMAGED;
                memcpy(&size, page + at, 4);
                at += 4;
                if (size > bytes - at) return DAMAGED;
                from = page + at;
                at += size;
            }
            if (!append_text(texts, from, size)) return FULL;
        }
        texts->offsets[texts->rows + row + 1] = (int32_t)texts->used;
    }
    texts->rows += rows;
    return at == bytes ? DONE : DAMAGED;
}

/* Append the texts of one column of one row group. */
static ALWAYS_INLINE int append_chunk(const Source *source, const Chunk *chunk, int optional, int codec, Room room,
                                      Texts *texts) {
    int64_t end_row = texts->rows + chunk->rows, dictionary_size = 0;
    uint8_t *stored = taken(&room, chunk->bytes), *scratch = taken(&room, chunk->page_bytes);
    uint8_t *dictionary = taken(&room, chunk->page_bytes);
    Text *entries = (Text *)(void *)taken(&room, 2 * chunk->page_bytes);
    uint32_t *codes = (uint32_t *)(void *)taken(&room, 4 * chunk->rows);
    const uint8_t *values = dictionary;
    Cursor cursor = {stored, stored + chunk->bytes, 0};
    int problem;
    if (stored == NULL || scratch == NULL || dictionary == NULL || entries == NULL || codes == NULL) return UNKNOWN;
    if ((problem = read_source(source, chunk->offset, chunk->bytes, stored))) return problem;
    memset(stored + chunk->bytes, 0, SLACK);
    while (texts->rows < end_row) {
        PageHeader header;
        Cursor ahead = cursor;
        const uint8_t *page, *end, *valid = NULL;
        int64_t present;
        if ((problem = read_header(&ahead, &header))) return problem;
        if (header.type == DICTIONARY_PAGE) {
            if (dictionary_size || texts->rows != end_row - chunk->rows) return UNKNOWN;
            if (header.encoding != PLAIN && header.encoding != PLAIN_DICTIONARY) return UNKNOWN;
            if ((problem = next_page(&cursor, codec, dictionary, chunk->page_bytes, &header, &values))) return problem;
            if (header.values > header.page_bytes / 4 || header.page_bytes > chunk->page_bytes) return DAMAGED;
            if ((problem = find_texts(values, header.page_bytes, header.values, entries))) return problem;
            dictionary_size = header.values;
            continue;
        }
        if ((problem = next_page(&cursor, codec, scratch, chunk->page_bytes, &header, &page))) return problem;
        if (header.values > end_row - texts->rows) return DAMAGED;
        if (header.level_encoding != RLE) return UNKNOWN;
        end = page + header.page_bytes;
        present = header.values;
        if (optional) {
            present = read_levels(&page, end, header.values, texts->validity, texts->rows);
            if (present < 0) return DAMAGED;
            texts->nulls += header.values - present;
            if (present < header.values) valid = texts->validity;
        }
        if (header.encoding == PLAIN) {
            problem = append_page(texts, page, end - page, NULL, NULL, NULL, valid, header.values);
        } else if (header.encoding == RLE_DICTIONARY || header.encoding == PLAIN_DICTIONARY) {
            if (present && (page == end || dictionary_size == 0)) return DAMAGED;
            if (present && (problem = read_runs(page + 1, end, *page, present, (uint32_t)dictionary_size, codes)))
                return problem;
            problem = append_page(texts, NULL, 0, codes, values, entries, valid, header.values);
        } else {
            return UNKNOWN;
        }
        if (problem) return problem;
    }
    return cursor.at == cursor.end ? DONE : UNKNOWN;
}

/* Decode a text column of row groups, from `progress[0]` of `count` on: `progress` has the row groups that are done,
 * their rows, bytes and NULLs. `offsets` is of all rows and one more, `texts` has `room` bytes and SLACK more,
 * `validity` is as in `olapdb_decode_numbers`, without bits at first. `form` says whether rows may be NULL, and the
 * codec. Return FULL where the next row group needs more room. */
EXPORT int olapdb_decode_texts(const int64_t *source, const int64_t *chunks, int64_t count, const int64_t *form,
                               uint8_t *scratch, int64_t scratch_bytes, int32_t *offsets, uint8_t *bytes, int64_t room,
                               uint8_t *validity, int64_t *progress) {
    Source from = {source[0], (const uint8_t *)(intptr_t)source[1], source[2]};
    Room memory = {scratch, scratch_bytes};
    const Chunk *columns = (const Chunk *)(const void *)chunks;
    Texts texts = {offsets, bytes, validity, progress[1], progress[2], room, progress[3]};
    if (room > INT32_MAX) return UNKNOWN;
    if (texts.rows == 0) offsets[0] = 0;
    for (int64_t at = progress[0]; at < count; at++) {
        int problem = append_chunk(&from, columns + at, form[0] != 0, (int)form[1], memory, &texts);
        if (problem) return problem;
        progress[0] = at + 1;
        progress[1] = texts.rows;
        progress[2] = texts.used;
        progress[3] = texts.nulls;
    }
    return DONE;
}
