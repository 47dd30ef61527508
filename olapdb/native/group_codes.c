/* Group codes: equal rows get equal numbers 0, 1, ... in the order of their first appearance. */

#include "kernels.h"

enum { AHEAD = 32 }; /* rows whose slots are prefetched together */

/* Write the least and the largest value that is not null to `bounds`, as 64 bits of the value.
 * Return the number of values that are not null; without any, `bounds` is not written. */
EXPORT int64_t olapdb_bounds(int type, const void *values, const uint8_t *validity, int64_t bit,
                             int64_t rows, uint64_t *bounds) {
    int64_t count = rows;
    if (rows == 0) return 0;
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        T low, high;                                                                                \
        int64_t row = 0;                                                                            \
        while (row < rows && !is_valid(validity, bit, row)) row++;                                  \
        if (row == rows) return 0;                                                                  \
        low = high = typed[row];                                                                    \
        if (validity == NULL) {                                                                     \
            for (; row < rows; row++) {                                                             \
                T value = typed[row];                                                               \
                low = value < low ? value : low;                                                    \
                high = value > high ? value : high;                                                 \
            }                                                                                       \
        } else {                                                                                    \
            count = 0;                                                                              \
            for (; row < rows; row++) {                                                             \
                if (!is_valid(validity, bit, row)) continue;                                        \
                T value = typed[row];                                                               \
                count++;                                                                            \
                low = value < low ? value : low;                                                    \
                high = value > high ? value : high;                                                 \
            }                                                                                       \
        }                                                                                           \
        bounds[0] = (uint64_t)low;                                                                  \
        bounds[1] = (uint64_t)high;                                                                 \
        return count;                                                                               \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
    return -1;
}

/* Write how many steps each value is above `low`; return whether all are whole numbers of steps below 2^32. `inverse` is
 * 2^64 / `step`, rounded up: a number of steps that is not exact is seen by multiplying it again. */
EXPORT int olapdb_count_steps(int type, const void *values, int64_t rows, uint64_t low, uint64_t step,
                              uint64_t inverse, uint32_t *steps) {
    uint64_t differences = 0;
    switch (type) {
#define CASE(NAME, T)\
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        for (int64_t row = 0; row < rows; row++) {                                                  \
            uint64_t distance = (uint64_t)typed[row] - low;                                         \
            steps[row] = (uint32_t)((unsigned __int128)distance * inverse >> 64);                           \
            differences |= distance - steps[row] * step;                                            \
        }                                                                                           \
        return differences == 0;                                                                    \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
    return 0;
}

/* Round values down to multiples of `step`, at least 2; return whether all are numbers of 32 bits without sign: else what
 * is written is void. `inverse` is 2^64 / `step`, rounded up, which gives the quotient of such a number. */
EXPORT int olapdb_multiples(const uint64_t *values, int64_t rows, uint64_t step, uint64_t inverse, uint64_t *multiples) {
    uint64_t bits = 0;
    for (int64_t row = 0; row < rows; row++) {
        bits |= values[row];
        multiples[row] = (uint64_t)((unsigned __int128)values[row] * inverse >> 64) * step;
    }
    return bits >> 32 == 0;
}

/* Append a digit to each row's packed key: packed = packed * radix + (value - low), with radix - 1 for
 * null where there is a bitmap. `is_first` starts from 0 instead of reading `packed`. */
EXPORT void olapdb_pack(int type, const void *values, const uint8_t *validity, int64_t bit, int64_t rows,
                        uint64_t low, uint64_t radix, int is_first, uint64_t *packed) {
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        if (validity == NULL && is_first)                                                           \
            for (int64_t row = 0; row < rows; row++) packed[row] = (uint64_t)typed[row] - low;      \
        else if (validity == NULL)                                                                  \
            for (int64_t row = 0; row < rows; row++)                                                \
                packed[row] = packed[row] * radix + ((uint64_t)typed[row] - low);                   \
        else                                                                                        \
            for (int64_t row = 0; row < rows; row++) {                                              \
                uint64_t digit =                                                                    \
                    is_valid(validity, bit, row) ? (uint64_t)typed[row] - low : radix - 1;          \
                packed[row] = (is_first ? 0 : packed[row] * radix) + digit;                         \
            }                                                                                       \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
}

/* Number rows through `table`, of `radix` entries, by their keys: the digit of the value, value - low or
 * radix - 1 for null where there is a bitmap, and above it those that `packed` has (NULL: none), which are
 * below radix / digits. Write the code of each row and the first row of each code; return the number of
 * codes. `codes` may be `packed`. */
EXPORT int64_t olapdb_number_values(int type, const void *values, const uint8_t *validity, int64_t bit,
                                    int64_t rows, uint64_t low, uint64_t digits, int64_t radix,
                                    const int64_t *packed, int32_t *table, int64_t *codes,
                                    int64_t *firsts) {
    int64_t count = 0;
    memset(table, 0xFF, (size_t)radix * sizeof *table);
    switch (type) {
#define NUMBER(KEY)                                                                                 \
    for (int64_t row = 0; row < rows; row++) {                                                      \
        uint64_t key = (KEY);                                                                       \
        if (row % 64 == 0) PREFETCH_AFTER(typed + row);                                             \
        int32_t code = table[key];                                                                  \
        if (code < 0) {                                                                             \
            code = (int32_t)count;                                                                  \
            table[key] = code;                                                                      \
            firsts[count++] = row;                                                                  \
        }                                                                                           \
        codes[row] = code;                                                                          \
    }
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        if (validity == NULL && packed == NULL) {                                                   \
            NUMBER((uint64_t)typed[row] - low)                                                      \
        } else if (validity == NULL) {                                                              \
            NUMBER((uint64_t)packed[row] * digits + ((uint64_t)typed[row] - low))                   \
        } else {                                                                                    \
            NUMBER((packed == NULL ? 0 : (uint64_t)packed[row] * digits) +                          \
                   (is_valid(validity, bit, row) ? (uint64_t)typed[row] - low : digits - 1))        \
        }                                                                                           \
        return count;                                                                               \
    }
        FOR_INTEGERS(CASE)
#undef CASE
#undef NUMBER
    }
    return -1;
}

typedef struct {
    uint64_t key; /* of texts: their hash */
    int64_t code; /* -1: the slot is free */
} Slot;

/* Where numbering stands, so that it goes on with a larger table when one is full. */
typedef struct {
    int64_t row;       /* the first row without a code */
    int64_t count;     /* the codes so far */
    int64_t null_code; /* the code of null, -1 before the first null */
} Progress;

static inline int64_t count_max(int64_t capacity) { return capacity / 8 * 5; }

static inline void insert(Slot *slots, uint64_t mask, uint64_t hash, uint64_t key, int64_t code) {
    uint64_t place = hash & mask;
    while (slots[place].code >= 0) place = (place + 1) & mask;
    slots[place] = (Slot){key, code};
}

static inline void number_null(Progress *progress, int64_t row, int64_t *codes, int64_t *firsts) {
    if (progress->null_code < 0) {
        progress->null_code = progress->count;
        firsts[progress->count++] = row;
    }
    codes[row] = progress->null_code;
}

/* Number keys of 64 bits by a hash table (open addressing, linear probing) of `capacity` slots, a power
 * of two. Null equals null. Write the code of each row and the first row of each code. Stop where the
 * table is full: the caller calls again with a larger one until `progress->row` is `rows`. */
EXPORT void olapdb_number_hashed(const uint64_t *keys, const uint8_t *validity, int64_t bit, int64_t rows,
                                 Slot *slots, int64_t capacity, Progress *progress, int64_t *codes,
                                 int64_t *firsts) {
    uint64_t mask = (uint64_t)capacity - 1, hashes[AHEAD];
    memset(slots, 0xFF, (size_t)capacity * sizeof *slots);
    for (int64_t code = 0; code < progress->count; code++)
        if (code != progress->null_code)
            insert(slots, mask, mix(keys[firsts[code]]), keys[firsts[code]], code);
    while (progress->row < rows && progress->count + AHEAD <= count_max(capacity)) {
        int64_t start = progress->row, stop = start + AHEAD < rows ? start + AHEAD : rows;
        PREFETCH_AFTER(keys + start);
        for (int64_t row = start; row < stop; row++) {
            hashes[row - start] = mix(keys[row]);
            PREFETCH(&slots[hashes[row - start] & mask]);
        }
        for (int64_t row = start; row < stop; row++) {
            if (!is_valid(validity, bit, row)) {
                number_null(progress, row, codes, firsts);
                continue;
            }
            uint64_t key = keys[row], place = hashes[row - start] & mask;
            while (slots[place].code >= 0 && slots[place].key != key) place = (place + 1) & mask;
            if (slots[place].code < 0) {
                slots[place] = (Slot){key, progress->count};
                firsts[progress->count++] = row;
            }
            codes[row] = slots[place].code;
        }
        progress->row = stop;
    }
}

static inline uint64_t read_word(const uint8_t *data, int64_t size) {
    uint64_t word = 0;
    memcpy(&word, data, (size_t)size);
    return word;
}

static inline uint64_t hash_bytes(const uint8_t *data, int64_t size) {
    uint64_t hash = (uint64_t)size * 0x9E3779B97F4A7C15u;
    if (size < 8) {
        uint64_t word = 0;
        if (size >= 4)
            word = read_word(data, 4) | read_word(data + size - 4, 4) << 32;
        else if (size > 0)
            word = data[0] | (uint64_t)data[size >> 1] << 8 | (uint64_t)data[size - 1] << 16;
        return mix(hash ^ word);
    }
    for (int64_t at = 0; at + 8 < size; at += 8) {
        hash = (hash ^ read_word(data + at, 8)) * 0xBF58476D1CE4E5B9u;
        hash ^= hash >> 29;
    }
    return mix(hash ^ read_word(data + size - 8, 8));
}

/* Texts as Arrow keeps them: offsets of 4 or 8 bytes, or none where each has `width` bytes. */
typedef struct {
    const uint8_t *data;
    const void *offsets;
    int64_t offset_bytes, width;
} Texts;

static inline const uint8_t *text_at(const Texts *texts, int64_t row, int64_t *size) {
    if (texts->offset_bytes == 4) {
        const int32_t *offsets = texts->offsets;
        *size = offsets[row + 1] - offsets[row];
        return texts->data + offsets[row];
    }
    if (texts->offset_bytes == 8) {
        const int64_t *offsets = texts->offsets;
        *size = offsets[row + 1] - offsets[row];
        return texts->data + offsets[row];
    }
    *size = texts->width;
    return texts->data + row * texts->width;
}

/* Short texts that were met lately, each as a number: one comparison tells a text's code. `hits` and `misses` count the
 * texts that were looked up, so that columns of many different texts are not looked up for long. */
typedef struct {
    ShortText texts[1 << RECENT_BITS];
    int64_t hits, misses;
} RecentTexts;

enum { LOOKED_UP_MIN = 1024 };

static inline void forget_texts(RecentTexts *recent) {
    for (int place = 0; place < 1 << RECENT_BITS; place++) recent->texts[place].size = -1;
    recent->hits = recent->misses = 0;
}

static ALWAYS_INLINE ShortText *place_of(RecentTexts *recent, uint64_t word, int64_t size) {
    return recent->texts + ((word + (uint64_t)size) * 0x9E3779B97F4A7C15u >> (64 - RECENT_BITS));
}

/* Write the codes of the rows from `start` up to `stop` whose texts were met lately. Put the other rows into `others`, in
 * order; return how many these are. Up to `end` may be read. */
static ALWAYS_INLINE int64_t code_recent(RecentTexts *recent, const Texts *texts, const uint8_t *validity, int64_t bit,
                                         int64_t start, int64_t stop, const uint8_t *end, int64_t *others,
                                         int64_t *codes) {
    int64_t left = 0, hits = 0;
    for (int64_t row = start; row < stop; row++) {
        int64_t size;
        const uint8_t *text = text_at(texts, row, &size);
        if (size <= 8 && is_valid(validity, bit, row)) {
            uint64_t word = whole_word(text, size, end);
            const ShortText *known = place_of(recent, word, size);
            if (known->size == size && known->word == word) {
                codes[row] = known->code;
                hits++;
                continue;
            }
        }
        others[left++] = row;
    }
    recent->hits += hits;
    recent->misses += left;
    return left;
}

/* Number texts, or values of a fixed width, as `olapdb_number_hashed` numbers keys. `offset_bytes` is
 * 4, 8, or 0 where each value has `width` bytes and `offsets` is not read. */
EXPORT void olapdb_number_texts(const uint8_t *data, const void *offsets, int64_t offset_bytes,
                                int64_t width, const uint8_t *validity, int64_t bit, int64_t rows,
                                Slot *slots, int64_t capacity, Progress *progress, int64_t *codes,
                                int64_t *firsts) {
    Texts texts = {data, offsets, offset_bytes, width};
    uint64_t mask = (uint64_t)capacity - 1, hashes[AHEAD];
    int64_t size, known_size, others[AHEAD];
    RecentTexts recent;
    const uint8_t *end = text_at(&texts, rows - 1, &size) + size;
    forget_texts(&recent);
    memset(slots, 0xFF, (size_t)capacity * sizeof *slots);
    for (int64_t code = 0; code < progress->count; code++) {
        if (code == progress->null_code) continue;
        const uint8_t *text = text_at(&texts, firsts[code], &size);
        uint64_t hash = hash_bytes(text, size);
        insert(slots, mask, hash, hash, code);
    }
    while (progress->row < rows && progress->count + AHEAD <= count_max(capacity)) {
        int64_t start = progress->row, stop = start + AHEAD < rows ? start + AHEAD : rows, left = stop - start;
        int looks_up = recent.misses <= recent.hits + LOOKED_UP_MIN;
        if (looks_up) left = code_recent(&recent, &texts, validity, bit, start, stop, end, others, codes);
        else
            for (int64_t at = 0; at < left; at++) others[at] = start + at;
        for (int64_t at = 0; at < left; at++) {
            const uint8_t *text = text_at(&texts, others[at], &size);
            hashes[at] = is_valid(validity, bit, others[at]) ? hash_bytes(text, size) : 0;
            PREFETCH(&slots[hashes[at] & mask]);
        }
        for (int64_t at = 0; at < left; at++) {
            int64_t row = others[at];
            if (!is_valid(validity, bit, row)) {
                number_null(progress, row, codes, firsts);
                continue;
            }
            const uint8_t *text = text_at(&texts, row, &size);
            uint64_t hash = hashes[at], place = hash & mask;
            for (; slots[place].code >= 0; place = (place + 1) & mask) {
                if (slots[place].key != hash) continue;
                const uint8_t *known = text_at(&texts, firsts[slots[place].code], &known_size);
                /* Of texts of one size, up to 8 bytes, no two have one hash. */
                if (known_size == size && (size <= 8 || memcmp(known, text, (size_t)size) == 0)) break;
            }
            if (slots[place].code < 0) {
                slots[place] = (Slot){hash, progress->count};
                firsts[progress->count++] = row;
            }
            codes[row] = slots[place].code;
            if (looks_up && size <= 8) {
                uint64_t word = whole_word(text, size, end);
                *place_of(&recent, word, size) = (ShortText){word, size, codes[row]};
            }
        }
        progress->row = stop;
    }
}

/* A column of a key: numbers of a fixed width, or codes. */
typedef struct {
    int64_t type;
    const void *values;
    const uint8_t *validity;
    int64_t bit;
} KeyColumn;

enum { NULL_WORD = 0x5BD1E995 };

/* Add a column to the hashes of the rows from `start` up to `stop`. */
static ALWAYS_INLINE void add_column(const KeyColumn *column, int64_t start, int64_t stop, uint64_t *hashes) {
    switch (column->type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = column->values;                                                            \
        for (int64_t row = start; row < stop; row++) {                                              \
            uint64_t word = is_valid(column->validity, column->bit, row) ? (uint64_t)typed[row] : NULL_WORD; \
            hashes[row - start] = mix(hashes[row - start] * 31 + word);                             \
        }                                                                                           \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
}

/* Return whether two rows have the same value, or null, in a column. */
static ALWAYS_INLINE int have_one_value(const KeyColumn *column, int64_t left, int64_t right) {
    if (column->validity != NULL) {
        int known = is_valid(column->validity, column->bit, left);
        if (known != is_valid(column->validity, column->bit, right)) return 0;
        if (!known) return 1;
    }
    switch (column->type) {
#define CASE(NAME, T)                                                                               \
    case NAME: return ((const T *)column->values)[left] == ((const T *)column->values)[right];
        FOR_INTEGERS(CASE)
#undef CASE
    }
    return 0;
}

/* Number the rows from `start` up to `stop`, at most AHEAD of them, through a table that has a free slot for each. */
static ALWAYS_INLINE void number_some(const KeyColumn *columns, int64_t count, int64_t start, int64_t stop,
                                      uint64_t *slots, uint64_t mask, int64_t *groups, int64_t *codes,
                                      int64_t *firsts) {
    uint64_t hashes[AHEAD] = {0};
    for (int64_t at = 0; at < count; at++) add_column(columns + at, start, stop, hashes);
    for (int64_t row = start; row < stop; row++) PREFETCH(&slots[hashes[row - start] & mask]);
    for (int64_t row = start; row < stop; row++) {
        uint64_t hash = hashes[row - start], place = hash & mask;
        int64_t code = -1;
        for (; slots[place] != 0; place = (place + 1) & mask) {
            int64_t at = 0, known = (int64_t)(slots[place] & 0xFFFFFFFFu) - 1;
            if (slots[place] >> 32 != hash >> 32) continue;
            while (at < count && have_one_value(columns + at, firsts[known], row)) at++;
            if (at < count) continue;
            code = known;
            break;
        }
        if (code < 0) {
            code = (*groups)++;
            slots[place] = (hash >> 32 << 32) | (uint64_t)(code + 1);
            firsts[code] = row;
        }
        codes[row] = code;
    }
}

/* Number rows of `count` columns as `olapdb_number_hashed` numbers keys. A slot of `slots`, of which there are
 * `capacity`, has the upper half of a row's hash and, in the lower half, its code + 1; 0 is a free one. There are fewer
 * than 2^31 rows. */
EXPORT void olapdb_number_rows(const KeyColumn *columns, int64_t count, int64_t rows, uint64_t *slots,
                               int64_t capacity, Progress *progress, int64_t *codes, int64_t *firsts) {
    uint64_t mask = (uint64_t)capacity - 1;
    memset(slots, 0, (size_t)capacity * sizeof *slots);
    for (int64_t code = 0; code < progress->count; code++) {
        uint64_t hash = 0, place;
        for (int64_t at = 0; at < count; at++) add_column(columns + at, firsts[code], firsts[code] + 1, &hash);
        place = hash & mask;
        while (slots[place] != 0) place = (place + 1) & mask;
        slots[place] = (hash >> 32 << 32) | (uint64_t)(code + 1);
    }
    while (progress->row < rows && progress->count + AHEAD <= count_max(capacity)) {
        int64_t start = progress->row, stop = start + AHEAD < rows ? start + AHEAD : rows;
        number_some(columns, count, start, stop, slots, mask, &progress->count, codes, firsts);
        progress->row = stop;
    }
}

/* Number rows of which those before each of `ends` are equal to none behind it, through one table that has room for the
 * rows between two of them and is emptied at each. Return the number of groups. */
EXPORT int64_t olapdb_number_divided(const KeyColumn *columns, int64_t count, const int64_t *ends, int64_t divisions,
                                     uint64_t *slots, int64_t capacity, int64_t *codes, int64_t *firsts) {
    int64_t groups = 0, start = 0;
    for (int64_t division = 0; division < divisions; division++) {
        int64_t end = ends[division], room = capacity;
        while (room > 64 && count_max(room / 2) >= end - start + AHEAD) room /= 2;
        memset(slots, 0, (size_t)room * sizeof *slots);
        while (start < end) {
            int64_t stop = start + AHEAD < end ? start + AHEAD : end;
            number_some(columns, count, start, stop, slots, (uint64_t)room - 1, &groups, codes, firsts);
            start = stop;
        }
    }
    return groups;
}

/* Write the values, of `width` bytes, of the divisions from `first` up to `last`, division after division, each with
 * its values of all pieces. Piece p has the values at the address `pieces[p]`, those of division d from place
 * `starts[p * (divisions + 1) + d]` on. */
EXPORT void olapdb_join_divisions(const int64_t *pieces, const int64_t *starts, int64_t count, int64_t divisions,
                                  int64_t first, int64_t last, int64_t width, uint8_t *values) {
    for (int64_t division = first; division < last; division++)
        for (int64_t piece = 0; piece < count; piece++) {
            const int64_t *own = starts + piece * (divisions + 1) + division;
            size_t bytes = (size_t)((own[1] - own[0]) * width);
            memcpy(values, (const uint8_t *)(intptr_t)pieces[piece] + own[0] * width, bytes);
            values += bytes;
        }
}
