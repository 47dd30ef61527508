/* Encode numbers of a row group as pages of Parquet. `storage/parquet/page_encoder.py` calls it; the other form is
 * Arrow's writer. */

#include "page_writing.h"

enum { NEAR_ROWS_MIN = 4 }; /* rows for each number between the least and the greatest value, to mark those that are met */

/* How values are stored: the bytes of a value, whether rows may be NULL, the codec, what multiplies the values (seconds
 * become milliseconds), and the encoding. */
typedef struct {
    int64_t width, optional, codec, multiplier, encoding;
} NumberForm;

/* Append numbers as differences: the least one of each block of 128, and how far the others are above it. */
#define PUT_DIFFERENCES(NAME, T, S)                                                                 \
    static ALWAYS_INLINE uint8_t *NAME(uint8_t *to, const T *values, int64_t count) {               \
        to = put_varint(to, BLOCK_VALUES);                                                          \
        to = put_varint(to, MINIBLOCKS);                                                            \
        to = put_varint(to, (uint64_t)count);                                                       \
        to = put_integer(to, count ? (S)values[0] : 0);                                             \
        for (int64_t row = 1; row < count; row += BLOCK_VALUES) {                                   \
            T steps[BLOCK_VALUES];                                                                  \
            int64_t here = count - row < BLOCK_VALUES ? count - row : BLOCK_VALUES;                 \
            S least;                                                                                \
            uint8_t *widths;                                                                        \
            for (int64_t at = 0; at < here; at++) steps[at] = values[row + at] - values[row + at - 1]; \
            least = (S)steps[0];                                                                    \
            for (int64_t at = 1; at < here; at++) least = (S)steps[at] < least ? (S)steps[at] : least; \
            for (int64_t at = 0; at < here; at++) steps[at] -= (T)least;                            \
            for (int64_t at = here; at < BLOCK_VALUES; at++) steps[at] = 0;                         \
            to = put_integer(to, least);                                                            \
            widths = to;                                                                            \
            to += MINIBLOCKS;                                                                       \
            for (int mini = 0; mini < MINIBLOCKS; mini++) {                                         \
                const T *ahead = steps + mini * MINIBLOCK_VALUES;                                   \
                T all = 0;                                                                          \
                for (int at = 0; at < MINIBLOCK_VALUES; at++) all |= ahead[at];                     \
                widths[mini] = (uint8_t)(all ? 64 - __builtin_clzll((uint64_t)all) : 0);            \
                to = put_miniblock_##T(to, ahead, widths[mini]);                                    \
            }                                                                                       \
        }                                                                                           \
        return to;                                                                                  \
    }

static ALWAYS_INLINE uint8_t *put_miniblock_uint32_t(uint8_t *to, const uint32_t *values, int width) {
    return width ? put_packed(to, values, MINIBLOCK_VALUES, width) : to;
}

static ALWAYS_INLINE uint8_t *put_miniblock_uint64_t(uint8_t *to, const uint64_t *values, int width) {
    unsigned __int128 held = 0;
    int bits = 0;
    if (width <= 32) {
        uint32_t narrow[MINIBLOCK_VALUES];
        for (int at = 0; at < MINIBLOCK_VALUES; at++) narrow[at] = (uint32_t)values[at];
        return put_miniblock_uint32_t(to, narrow, width);
    }
    for (int at = 0; at < MINIBLOCK_VALUES; at++) {
        held |= (unsigned __int128)values[at] << bits;
        bits += width;
        for (; bits >= 32; bits -= 32, held >>= 32, to += 4) {
            uint32_t word = (uint32_t)held;
            memcpy(to, &word, 4);
        }
    }
    return to; /* 32 values of any width are whole words */
}

PUT_DIFFERENCES(put_differences_32, uint32_t, int32_t)
PUT_DIFFERENCES(put_differences_64, uint64_t, int64_t)

/* Gather the values that are there, at the width at which they are stored. */
#define GATHER(T, S)                                                                                \
    {                                                                                               \
        const T *typed = values;                                                                    \
        S *stored = to;                                                                             \
        S factor = (S)multiplier;                                                                   \
        if (validity == NULL) {                                                                     \
            for (int64_t row = 0; row < rows; row++) stored[row] = (S)typed[row] * factor;          \
            return rows;                                                                            \
        }                                                                                           \
        for (int64_t row = 0; row < rows; row++) {                                                  \
            stored[present] = (S)typed[row] * factor;                                               \
            present += is_valid(validity, bit, row);                                                \
        }                                                                                           \
        return present;                                                                             \
    }

static ALWAYS_INLINE int64_t gather(int type, const void *values, const uint8_t *validity, int64_t bit, int64_t rows,
                                    int64_t width, int64_t multiplier, void *to) {
    int64_t present = 0;
    switch (type) {
        case INT8: GATHER(int8_t, uint32_t)
        case UINT8: GATHER(uint8_t, uint32_t)
        case INT16: GATHER(int16_t, uint32_t)
        case UINT16: GATHER(uint16_t, uint32_t)
        case INT32: case UINT32: case FLOAT32: GATHER(uint32_t, uint32_t)
        case INT64: case UINT64: case FLOAT64: GATHER(uint64_t, uint64_t)
        case DECIMAL128:
            if (width == 4) GATHER(int128_t, uint32_t)
            GATHER(int128_t, uint64_t)
    }
    return -1;
}

#define FIND_RANGE(NAME, T)                                                                         \
    static ALWAYS_INLINE void NAME(const void *values, int64_t count, PageFacts *facts) {           \
        const T *typed = values;                                                                    \
        T least = typed[0], greatest = typed[0];                                                    \
        for (int64_t row = 1; row < count; row++) {                                                 \
            least = typed[row] < least ? typed[row] : least;                                        \
            greatest = typed[row] > greatest ? typed[row] : greatest;                               \
        }                                                                                           \
        facts->has_range = 1;                                                                       \
        memcpy(&facts->least, &least, sizeof least);                                                \
        memcpy(&facts->greatest, &greatest, sizeof greatest);                                       \
    }

FIND_RANGE(find_range_i32, int32_t)
FIND_RANGE(find_range_u32, uint32_t)
FIND_RANGE(find_range_i64, int64_t)
FIND_RANGE(find_range_u64, uint64_t)

/* Find the least and the greatest of floats other than NaN, in 8 lanes. 0 is written as -0 where it is the least one, and as
 * +0 where it is the greatest, as the format wants it. */
#define FIND_FLOAT_RANGE(NAME, T)                                                                   \
    static ALWAYS_INLINE void NAME(const void *values, int64_t count, PageFacts *facts) {           \
        const T *typed = values;                                                                    \
        T low[8], high[8], least = (T)__builtin_inf(), greatest = -(T)__builtin_inf();              \
        int64_t row = 0;                                                                            \
        for (int lane = 0; lane < 8; lane++) low[lane] = least, high[lane] = greatest;              \
        for (; row + 8 <= count; row += 8)                                                          \
            for (int lane = 0; lane < 8; lane++) {                                                  \
                T value = typed[row + lane];                                                        \
                low[lane] = value < low[lane] ? value : low[lane];                                  \
                high[lane] = value > high[lane] ? value : high[lane];                               \
            }                                                                                       \
        for (; row < count; row++) {                                                                \
            low[0] = typed[row] < low[0] ? typed[row] : low[0];                                     \
            high[0] = typed[row] > high[0] ? typed[row] : high[0];                                  \
        }                                                                                           \
        for (int lane = 0; lane < 8; lane++) {                                                      \
            least = low[lane] < least ? low[lane] : least;                                          \
            greatest = high[lane] > greatest ? high[lane] : greatest;                               \
        }                                                                                           \
        if (least == 0) least = (T)-0.0;                                                            \
        if (greatest == 0) greatest = 0;                                                            \
        facts->has_range = least <= greatest;                                                       \
        memcpy(&facts->least, &least, sizeof least);                                                \
        memcpy(&facts->greatest, &greatest, sizeof greatest);                                       \
        for (row = 0; row < count; row++) facts->has_nan |= typed[row] != typed[row];               \
    }

FIND_FLOAT_RANGE(find_range_f32, float)
FIND_FLOAT_RANGE(find_range_f64, double)

static ALWAYS_INLINE void find_range(int type, int64_t width, const void *values, int64_t count, PageFacts *facts) {
    if (count == 0) return;
    if (type == FLOAT32) find_range_f32(values, count, facts);
    else if (type == FLOAT64) find_range_f64(values, count, facts);
    else if (type == UINT32) find_range_u32(values, count, facts);
    else if (type == UINT64) find_range_u64(values, count, facts);
    else if (width == 4) find_range_i32(values, count, facts);
    else find_range_i64(values, count, facts);
}

/* Mark the distance of each value that is there from the least one, then raise registers to those that were met. */
#define SKETCH_MARKED(T)                                                                            \
    {                                                                                               \
        const T *typed = values;                                                                    \
        uint64_t low = (uint64_t)(int64_t)(T)least;                                                 \
        for (int64_t row = 0; row < rows; row++)                                                    \
            if (is_valid(validity, bit, row)) met[(uint64_t)typed[row] - low] = 1;                  \
        for (int64_t at = 0; at <= span; at++)                                                      \
            if (met[at]) raise_register(registers, HASH_OF_INTEGER((T)(low + (uint64_t)at)), REGISTER_BITS, RANK_BITS); \
        return;                                                                                     \
    }

/* Raise registers to integers that lie within `span` of the least one. `met` has room for span + 1 marks. */
static ALWAYS_INLINE void sketch_near(int type, const void *values, const uint8_t *validity, int64_t bit, int64_t rows,
                                      int64_t least, int64_t span, uint8_t *met, uint8_t *registers) {
    memset(met, 0, (size_t)span + 1);
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: SKETCH_MARKED(T)
        FOR_INTEGERS(CASE)
#undef CASE
    }
}

/* Return how far the greatest value is from the least one where values are integers as they are stored, and lie near each
 * other for so many rows: it is quicker then to hash each distinct value once. -1 for others. */
static int64_t near_span(int type, const NumberForm *as, const PageFacts *told, int64_t rows) {
    uint64_t span;
    if (!told->has_range || as->multiplier != 1 || type == DECIMAL128) return -1;
    span = as->width == 4 ? (uint64_t)((uint32_t)told->greatest - (uint32_t)told->least)
                          : (uint64_t)told->greatest - (uint64_t)told->least;
    return span < (uint64_t)rows / NEAR_ROWS_MIN ? (int64_t)span : -1;
}

/* Encode a column of a row group as one page at `out`. `form` is a NumberForm, `facts` gets PageFacts. `registers`, those of
 * a sketch (NULL: none), are raised to the values, which are integers then. Return 0, or another number if the memory is too
 * small or the type unknown. */
EXPORT int olapdb_encode_numbers(int type, const void *values, const uint8_t *validity, int64_t bit, int64_t rows,
                                 const int64_t *form, uint8_t *scratch, int64_t scratch_bytes, uint8_t *out, int64_t room,
                                 int64_t *facts, uint8_t *registers) {
    NumberForm as = {form[0], form[1], form[2], form[3], form[4]};
    PageFacts told = {0};
    Workroom memory = {scratch, scratch + scratch_bytes};
    /* The last block of differences is filled with zeros. */
    int64_t body_bytes = as.width * (rows + BLOCK_VALUES) + (rows / BLOCK_VALUES + 1) * 16 + (rows >> 3) + 64;
    int64_t present = rows, size;
    uint32_t *table = take_room(&memory, sizeof *table << LZ4_TABLE_BITS);
    uint8_t *gathered = take_room(&memory, 8 * rows), *body = take_room(&memory, body_bytes), *to = body;
    uint8_t *compressed = take_room(&memory, lz4_bound(body_bytes));
    const uint8_t *stored = values;
    int is_stored = as.multiplier == 1 && (as.width == 4 ? type == INT32 || type == UINT32 || type == FLOAT32
                                                         : type == INT64 || type == UINT64 || type == FLOAT64);
    if (table == NULL || gathered == NULL || body == NULL || compressed == NULL) return NOT_WRITTEN;
    if (as.width != 4 && as.width != 8) return NOT_WRITTEN;
    if (!as.optional && validity != NULL) return NOT_WRITTEN;
    if (!is_stored || validity != NULL) {
        present = gather(type, values, validity, bit, rows, as.width, as.multiplier, gathered);
        stored = gathered;
    }
    if (present < 0) return NOT_WRITTEN;
    told.nulls = rows - present;
    told.encoding = as.encoding;
    find_range(type, as.width, stored, present, &told);
    if (registers != NULL) {
        int64_t span = near_span(type, &as, &told, rows);
        int64_t least = as.width == 4 ? (int64_t)(int32_t)told.least : told.least;
        if (span < 0) sketch_numbers(type, values, validity, bit, rows, registers);
        else sketch_near(type, values, validity, bit, rows, least, span, compressed, registers);
    }
    if (as.optional) to = put_levels(to, validity, bit, rows);
    if (as.encoding == DELTA_BINARY_PACKED) {
        to = as.width == 4 ? put_differences_32(to, (const uint32_t *)(const void *)stored, present)
                           : put_differences_64(to, (const uint64_t *)(const void *)stored, present);
    } else if (as.encoding != PLAIN) {
        return NOT_WRITTEN;
    } else if (as.optional) {
        memcpy(to, stored, (size_t)(present * as.width));
        to += present * as.width;
    }
    size = to - body;
    if (as.encoding == PLAIN && !as.optional) { /* the values are the page */
        body = (uint8_t *)(uintptr_t)stored;
        size = present * as.width;
    }
    to = put_page(out, out + room, DATA_PAGE, rows, (int)as.encoding, body, size,
                  as.codec == LZ4_RAW ? LZ4_RAW : UNCOMPRESSED, compressed, table, &told);
    if (to == NULL) return NOT_WRITTEN;
    told.bytes = to - out;
    memcpy(facts, &told, sizeof told);
    return WRITTEN;
}
