/* Encode texts of a row group as pages of Parquet: those of a dictionary where they repeat, else as they are.
 * `storage/parquet/page_encoder.py` calls it; the other form is Arrow's writer. */

#include "page_writing.h"

enum { TRIED_ROWS = 4096 };

/* The texts of the rows, as Arrow keeps them. */
typedef struct {
    const int32_t *offsets;
    const uint8_t *data;
} TextRows;

/* The distinct texts: of each code the first row and the hash, and of each slot the code and 1 more, 0 for none. */
typedef struct {
    uint32_t *slots, *first, *hashes;
    uint32_t mask;
    int64_t count, most;
} Distinct;

static inline int64_t text_bytes(const TextRows *rows, int64_t row) { return rows->offsets[row + 1] - rows->offsets[row]; }

static ALWAYS_INLINE uint32_t hash_text(const uint8_t *text, int64_t size) {
    const uint64_t factor = 0x9E3779B97F4A7C15u;
    uint64_t hash = (uint64_t)size * factor;
    int64_t at = 0;
    for (; at + 8 < size; at += 8) {
        hash = (hash ^ load_64(text + at)) * factor;
        hash ^= hash >> 32;
    }
    hash = (hash ^ (size > 8 ? load_64(text + size - 8) : short_word(text, size))) * factor;
    hash = (hash ^ hash >> 32) * factor; /* the last bytes of texts differ, which are the upper ones here */
    return (uint32_t)(hash >> 32);
}

/* Return the code of the text of a row, that of a new one if it was not met; -1 if there are too many. */
static ALWAYS_INLINE int64_t code_of(Distinct *distinct, const TextRows *rows, int64_t row) {
    const uint8_t *text = rows->data + rows->offsets[row];
    int64_t size = text_bytes(rows, row);
    uint32_t hash = hash_text(text, size);
    for (uint32_t slot = hash & distinct->mask;; slot = (slot + 1) & distinct->mask) {
        uint32_t held = distinct->slots[slot];
        if (held == 0) {
            if (distinct->count == distinct->most) return -1;
            distinct->first[distinct->count] = (uint32_t)row;
            distinct->hashes[distinct->count] = hash;
            distinct->slots[slot] = (uint32_t)++distinct->count;
            return distinct->count - 1;
        }
        if (distinct->hashes[held - 1] == hash) {
            int64_t other = distinct->first[held - 1];
            if (text_bytes(rows, other) == size) {
                const uint8_t *known = rows->data + rows->offsets[other];
                if (size <= 8 ? short_word(known, size) == short_word(text, size) : memcmp(known, text, (size_t)size) == 0)
                    return held - 1;
            }
        }
    }
}

/* Eight bytes of a text, fewer at its end, so that numbers compare as the texts do, unless they are the same. */
static inline uint64_t word_of(const uint8_t *text, int64_t size) {
    return __builtin_bswap64(short_word(text, size)); /* little endian */
}

/* The rows of the least and the greatest text so far. */
typedef struct {
    int64_t least, greatest;
} Extremes;

/* Compare a text with both at once, from the first eight bytes on that are not the same in all three. */
static ALWAYS_INLINE void compare_row(Extremes *ends, const TextRows *rows, int64_t row) {
    const uint8_t *text = rows->data + rows->offsets[row], *low, *high;
    int64_t size = text_bytes(rows, row), low_size, high_size, at = 0;
    uint64_t word, low_word, high_word;
    if (ends->least < 0) {
        ends->least = ends->greatest = row;
        return;
    }
    low = rows->data + rows->offsets[ends->least];
    high = rows->data + rows->offsets[ends->greatest];
    low_size = text_bytes(rows, ends->least);
    high_size = text_bytes(rows, ends->greatest);
    for (;; at += 8) {
        word = word_of(text + at, size - at);
        low_word = word_of(low + at, low_size - at);
        high_word = word_of(high + at, high_size - at);
        if (word != low_word || word != high_word || size - at < 8 || low_size - at < 8 || high_size - at < 8) break;
    }
    if (word < low_word || (word == low_word && compare_texts(text + at, size - at, low + at, low_size - at) < 0))
        ends->least = row;
    if (word > high_word || (word == high_word && compare_texts(text + at, size - at, high + at, high_size - at) > 0))
        ends->greatest = row;
}

/* Raise the registers of a sketch, if there is one, to a text. */
static ALWAYS_INLINE void sketch_row(const TextRows *rows, int64_t row, uint8_t *registers) {
    if (registers == NULL) return;
    raise_register(registers, hash_of_text(rows->data + rows->offsets[row], (uint64_t)text_bytes(rows, row)), REGISTER_BITS,
                   RANK_BITS);
}

/* Append a text and before it its size. Up to `end` may be read of the data. */
static ALWAYS_INLINE uint8_t *put_text(uint8_t *to, const TextRows *rows, int64_t row, const uint8_t *end) {
    const uint8_t *text = rows->data + rows->offsets[row];
    uint32_t size = (uint32_t)text_bytes(rows, row);
    memcpy(to, &size, 4);
    to += 4;
    if (size <= 16 && end - text >= 16) memcpy(to, text, 16);
    else memcpy(to, text, size);
    return to + size;
}

/* Find the codes of the rows that have a text, unless too many differ. Return how many rows have one, -1 if too many
 * texts differ. Short texts that were met lately are told by one comparison. */
static ALWAYS_INLINE int64_t find_codes(Distinct *distinct, const TextRows *texts, const uint8_t *validity, int64_t bit,
                                        int64_t rows, uint32_t *codes) {
    const uint8_t *end = texts->data + texts->offsets[rows];
    ShortText recent[1 << RECENT_BITS];
    int64_t present = 0;
    for (int place = 0; place < 1 << RECENT_BITS; place++) recent[place].size = -1;
    for (int64_t row = 0; row < rows; row++) {
        int64_t code, size = text_bytes(texts, row);
        if (!is_valid(validity, bit, row)) continue;
        if (size <= 8) {
            uint64_t word = whole_word(texts->data + texts->offsets[row], size, end);
            ShortText *known = recent + ((word + (uint64_t)size) * 0x9E3779B97F4A7C15u >> (64 - RECENT_BITS));
            if (known->word == word && known->size == size) {
                code = known->code;
            } else {
                code = code_of(distinct, texts, row);
                *known = (ShortText){word, size, code};
            }
        } else {
            code = code_of(distinct, texts, row);
        }
        if (code < 0) return -1;
        codes[present++] = (uint32_t)code;
        if (present % TRIED_ROWS == 0 && 4 * distinct->count > 3 * present) return -1;
    }
    return present;
}

/* Encode a column of a row group at `out`. `form` says whether rows may be NULL, the codec, whether a dictionary may be
 * made, and of how many texts at most. `facts` gets PageFacts. `registers`, those of a sketch (NULL: none), are raised to the
 * texts. Return 0, or another number if the memory is too small. */
EXPORT int olapdb_encode_texts(const int32_t *offsets, const uint8_t *data, const uint8_t *validity, int64_t bit, int64_t rows,
                               const int64_t *form, uint8_t *scratch, int64_t scratch_bytes, uint8_t *out, int64_t room,
                               int64_t *facts, uint8_t *registers) {
    int optional = form[0] != 0, codec = form[1] == LZ4_RAW ? LZ4_RAW : UNCOMPRESSED;
    int64_t most = form[2], slots = 64, bytes = offsets[rows] - offsets[0];
    int64_t body_bytes = 12 * rows + bytes + 64, coded = -1, present = 0;
    TextRows texts = {offsets, data};
    Extremes ends = {-1, -1};
    PageFacts told = {0};
    Workroom memory = {scratch, scratch + scratch_bytes};
    const uint8_t *end = data + offsets[rows];
    uint32_t *table, *codes;
    uint8_t *body, *compressed, *at, *to = out;
    Distinct distinct = {NULL, NULL, NULL, 0, 0, most};
    while (slots < 2 * most) slots *= 2;
    table = take_room(&memory, sizeof *table << LZ4_TABLE_BITS);
    codes = take_room(&memory, 4 * rows);
    distinct.slots = take_room(&memory, 4 * slots);
    distinct.first = take_room(&memory, 4 * most);
    distinct.hashes = take_room(&memory, 4 * most);
    body = take_room(&memory, body_bytes);
    compressed = take_room(&memory, lz4_bound(body_bytes));
    if (table == NULL || codes == NULL || distinct.slots == NULL || distinct.first == NULL || distinct.hashes == NULL ||
        body == NULL || compressed == NULL)
        return NOT_WRITTEN;
    if (!optional && validity != NULL) return NOT_WRITTEN;
    if (most > 0) {
        memset(distinct.slots, 0, (size_t)(4 * slots));
        distinct.mask = (uint32_t)(slots - 1);
        coded = find_codes(&distinct, &texts, validity, bit, rows, codes);
    }
    if (coded > 0) {
        int width = distinct.count > 1 ? 32 - __builtin_clz((uint32_t)(distinct.count - 1)) : 1;
        at = body;
        for (int64_t code = 0; code < distinct.count; code++) {
            compare_row(&ends, &texts, distinct.first[code]);
            sketch_row(&texts, distinct.first[code], registers);
            at = put_text(at, &texts, distinct.first[code], end);
        }
        to = put_page(to, out + room, DICTIONARY_PAGE, distinct.count, PLAIN, body, at - body, codec, compressed, table,
                      &told);
        if (to == NULL) return NOT_WRITTEN;
        told.dictionary_bytes = to - out;
        told.encoding = RLE_DICTIONARY;
        present = coded;
        at = optional ? put_levels(body, validity, bit, rows) : body;
        *at++ = (uint8_t)width;
        at = put_runs(at, codes, present, width);
    } else {
        at = optional ? put_levels(body, validity, bit, rows) : body;
        for (int64_t row = 0; row < rows; row++) {
            if (!is_valid(validity, bit, row)) continue;
            compare_row(&ends, &texts, row);
            sketch_row(&texts, row, registers);
            at = put_text(at, &texts, row, end);
            present++;
        }
        told.encoding = PLAIN;
    }
    to = put_page(to, out + room, DATA_PAGE, rows, (int)told.encoding, body, at - body, codec, compressed, table, &told);
    if (to == NULL) return NOT_WRITTEN;
    told.bytes = to - out;
    told.nulls = rows - present;
    told.has_range = present > 0;
    told.least = ends.least;
    told.greatest = ends.greatest;
    memcpy(facts, &told, sizeof told);
    return WRITTEN;
}

/* Find the rows of the least and the greatest text; -1 without one. */
EXPORT void olapdb_text_range(const int32_t *offsets, const uint8_t *data, const uint8_t *validity, int64_t bit, int64_t rows,
                              int64_t *range) {
    TextRows texts = {offsets, data};
    Extremes ends = {-1, -1};
    for (int64_t row = 0; row < rows; row++)
        if (is_valid(validity, bit, row)) compare_row(&ends, &texts, row);
    range[0] = ends.least;
    range[1] = ends.greatest;
}
