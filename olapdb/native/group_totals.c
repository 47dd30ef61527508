/* Counts, sums and extremes of groups in one pass: some rows at a time get their keys, which stay in the first cache,
 * and are added to the totals of these. Every key has a place, whether it occurs or not. */

#include "kernels.h"

/* Rows that take `LANES` places of a key in turn need not wait for the sum of the row before, which often has the same
 * key. A packed word has a count above `SUM_BITS` and a sum of numbers of at most 32 bits below it, which has that many
 * bits for so many rows. */
enum { STEP_ROWS = 1024, LANES = 4, PACKED_ROWS = 32768, SUM_BITS = 48 };

/* Packed words are taken apart after so many rows: with more places that costs more than it saves. */
enum { PACKED_PLACES_MAX = 8192 };

/* Rows that follow each other and have one key are a run; a step of at most so many is added up run by run. */
enum { RUNS_MAX = STEP_ROWS / 16 };

/* A column as a digit of a row's key, as in `olapdb_pack`. */
typedef struct {
    int64_t type;
    const void *values;
    const uint8_t *validity;
    int64_t bit;
    uint64_t low, count;
} Digit;

enum { COUNT, SUM, LEAST, LARGEST, MARK };

/* What is kept of a column for each key. `out` has a number for each: the rows that are not null; their sum in 64 bits,
 * which wraps around, of floats as Float64, in row order; or their extreme, of the column's type, which begins with the
 * other end of the type. Counts and sums of integers have `lanes` numbers for each key, those of a lane together; in the
 * end the first lane has what all have. `ends` becomes what `SIGN_ENDS` gives of all integers of 64 bits that are added
 * up. */
typedef struct {
    int64_t kind, type;
    const void *values;
    const uint8_t *validity;
    int64_t bit;
    void *out;
    uint64_t ends;
} Total;

static ALWAYS_INLINE void add_digit(const Digit *digit, int64_t start, int64_t rows, int is_first, uint32_t *keys) {
    uint32_t count = (uint32_t)digit->count;
    switch (digit->type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = (const T *)digit->values + start;                                          \
        if (is_first && digit->validity == NULL)                                                    \
            for (int64_t at = 0; at < rows; at++)                                                   \
                keys[at] = (uint32_t)((uint64_t)typed[at] - digit->low);                            \
        else if (digit->validity == NULL)                                                           \
            for (int64_t at = 0; at < rows; at++)                                                   \
                keys[at] = keys[at] * count + (uint32_t)((uint64_t)typed[at] - digit->low);         \
        else                                                                                        \
            for (int64_t at = 0; at < rows; at++) {                                                 \
                uint32_t value = is_valid(digit->validity, digit->bit, start + at)                  \
                                     ? (uint32_t)((uint64_t)typed[at] - digit->low)                 \
                                     : count - 1;                                                   \
                keys[at] = (is_first ? 0 : keys[at] * count) + value;                               \
            }                                                                                       \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
}

/* Rows from `start` on, and how keys have places. */
typedef struct {
    int64_t start, rows, radix;
    int lanes;  /* 1 or LANES */
    int64_t runs; /* 0: the rows have more than RUNS_MAX; few are often so where rows are sorted */
    const int32_t *run_starts;
    const uint32_t *keys;
} Step;

/* Write where the runs of a step begin, and behind them where the last one ends; return their number, 0 if they are
 * more than RUNS_MAX. Keys that are all those before them are passed BLOCK at a time. */
static ALWAYS_INLINE int64_t find_runs(const uint32_t *keys, int64_t rows, int32_t *run_starts) {
    enum { BLOCK = 16 };
    int64_t runs = 1, at = 1;
    run_starts[0] = 0;
    while (at < rows) {
        int64_t end = at + BLOCK < rows ? at + BLOCK : rows;
        uint32_t differences = 0;
        if (end - at == BLOCK)
            for (int64_t next = at; next < at + BLOCK; next++) differences |= keys[next] ^ keys[next - 1];
        if (end - at == BLOCK && differences == 0) {
            at = end;
            continue;
        }
        for (; at < end; at++) {
            run_starts[runs] = (int32_t)at;
            runs += keys[at] != keys[at - 1];
            if (runs > RUNS_MAX) return 0;
        }
    }
    run_starts[runs] = (int32_t)rows;
    return runs;
}

static ALWAYS_INLINE int have_one_key(const uint32_t *keys, int64_t rows) {
    uint32_t differences = 0;
    if (keys[0] != keys[rows - 1]) return 0;
    for (int64_t at = 1; at < rows; at++) differences |= keys[at] ^ keys[0];
    return differences == 0;
}

/* Write whether each row of a step has a value, as 0 or 1: eight bits become eight bytes at once. */
static ALWAYS_INLINE void spread_bits(const Total *total, int64_t start, int64_t rows, uint8_t *flags) {
    const uint8_t *bytes = total->validity + ((total->bit + start) >> 3);
    int shift = (int)((total->bit + start) & 7);
    int64_t at = 0;
    for (; at + 8 <= rows; at += 8) {
        uint64_t bits = bytes[at >> 3];
        if (shift != 0) bits = (bits >> shift | (uint64_t)bytes[(at >> 3) + 1] << (8 - shift)) & 0xFF;
        /* Bit b of the byte is the lowest one of byte b: each byte keeps its own bit, and carries it to the top. */
        bits = (bits * 0x0101010101010101u) & 0x8040201008040201u;
        bits = ((bits + 0x7F7F7F7F7F7F7F7Fu) >> 7) & 0x0101010101010101u;
        memcpy(flags + at, &bits, 8);
    }
    for (; at < rows; at++) flags[at] = (uint8_t)is_valid(total->validity, total->bit, start + at);
}

/* The step in variables, which no store to a total may change. */
#define LOCALS(step)                                                                                \
    const int64_t start = (step)->start, rows = (step)->rows, radix = (step)->radix, lanes = (step)->lanes; \
    const uint32_t *const keys = (step)->keys

/* Add each row's number to the place of its key, in the next lane each time. */
#define SPREAD(places, number)                                                                      \
    do {                                                                                            \
        int64_t at = 0;                                                                             \
        for (int64_t run = 0; run < step->runs; run++) {                                            \
            uint64_t sum = 0;                                                                       \
            for (at = step->run_starts[run]; at < step->run_starts[run + 1]; at++) sum += number(at); \
            (places)[keys[at - 1]] += sum;                                                          \
        }                                                                                           \
        if (step->runs == 0 && lanes == LANES) \
            for (; at + LANES <= rows; at += LANES) {                                               \
                (places)[keys[at]] += number(at);                                                   \
                (places)[radix + keys[at + 1]] += number(at + 1);                                   \
                (places)[2 * radix + keys[at + 2]] += number(at + 2);                               \
                (places)[3 * radix + keys[at + 3]] += number(at + 3);                               \
            }                                                                                       \
        for (; at < rows; at++) (places)[keys[at]] += number(at);                                   \
    } while (0)
#define ONE(at) 1
#define ONE_IF_VALID(at) flags[at]
#define VALUE(at) (uint64_t)typed[at]
#define VALUE_IF_VALID(at) ((uint64_t)typed[at] & -(uint64_t)ONE_IF_VALID(at))
#define PACKED_VALUE(at) (((uint64_t)1 << SUM_BITS) + (uint64_t)typed[at])

static ALWAYS_INLINE void count_rows(const Total *total, const Step *step) {
    int64_t *counts = total->out;
    LOCALS(step);
    if (total->validity == NULL) {
        SPREAD(counts, ONE);
        return;
    }
    uint8_t flags[STEP_ROWS];
    spread_bits(total, start, rows, flags);
    SPREAD(counts, ONE_IF_VALID);
}

static ALWAYS_INLINE void sum_rows(Total *total, const Step *step) {
    uint64_t ends = 0;
    uint8_t flags[STEP_ROWS];
    LOCALS(step);
    if (total->validity != NULL) spread_bits(total, start, rows, flags);
    switch (total->type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = (const T *)total->values + start;                                    \
        uint64_t *sums = total->out;                                                                \
        if (sizeof(T) == 8)                                                                         \
            for (int64_t at = 0; at < rows; at++) ends |= SIGN_ENDS(typed[at]);               \
        if (total->validity == NULL)                                                                \
            SPREAD(sums, VALUE);                                                                    \
        else                                                                                        \
            SPREAD(sums, VALUE_IF_VALID);                                                           \
        break;                                                                                      \
    }
        FOR_INTEGERS(CASE)
#undef CASE
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = (const T *)total->values + start;                                    \
        double *sums = total->out;                                                                  \
        for (int64_t at = 0; at < rows; at++)                                                 \
            if (total->validity == NULL || flags[at])                                              \
                sums[keys[at]] += (double)typed[at];                                          \
        break;                                                                                      \
    }
        CASE(FLOAT32, float)
        CASE(FLOAT64, double)
#undef CASE
    }
    total->ends |= ends;
}

static ALWAYS_INLINE void keep_extremes(const Total *total, const Step *step) {
    int largest = total->kind == LARGEST;
    const int64_t start = step->start, rows = step->rows;
    const uint32_t *const keys = step->keys;
    uint8_t flags[STEP_ROWS];
    if (total->validity != NULL) spread_bits(total, start, rows, flags);
    switch (total->type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = (const T *)total->values + start;                                    \
        T *kept = total->out;                                                                       \
        for (int64_t at = 0; at < rows; at++) {                                               \
            T value = typed[at], *known = kept + keys[at];                                    \
            if (total->validity != NULL && !flags[at]) continue;                                    \
            if (largest ? value > *known : value < *known) *known = value;                          \
        }                                                                                           \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
}

/* Count rows, and sum numbers of at most 32 bits without nulls, by one addition to a packed word each. */
static ALWAYS_INLINE void add_packed(const Total *total, const Step *step, uint64_t *packed) {
    LOCALS(step);
    switch (total->type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = (const T *)total->values + start;                                    \
        SPREAD(packed, PACKED_VALUE);                                                               \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
}

/* Add packed words to counts and sums, and begin them again. */
static ALWAYS_INLINE void unpack(uint64_t *packed, int64_t places, int64_t *counts, uint64_t *sums) {
    for (int64_t place = 0; place < places; place++) {
        uint64_t sum = (uint64_t)((int64_t)(packed[place] << (64 - SUM_BITS)) >> (64 - SUM_BITS));
        counts[place] += (int64_t)((packed[place] - sum) >> SUM_BITS);
        sums[place] += sum;
        packed[place] = 0;
    }
}

static int is_narrow(const Total *total) {
    return total->kind == SUM && total->validity == NULL && total->type <= UINT32;
}

/* Write the key and the first row of each key that occurs, in the order of their first rows, until `count` are found;
 * `counts` has the rows of each key, whose sign marks those that are found. */
static void find_firsts(const Digit *digits, int64_t digit_count, int64_t rows, int64_t count, int64_t *counts,
                        int64_t *group_keys, int64_t *firsts) {
    uint32_t keys[STEP_ROWS];
    int64_t found = 0;
    for (int64_t start = 0; start < rows && found < count; start += STEP_ROWS) {
        int64_t step = rows - start < STEP_ROWS ? rows - start : STEP_ROWS;
        for (int64_t digit = 0; digit < digit_count; digit++)
            add_digit(digits + digit, start, step, digit == 0, keys);
        if (counts[keys[0]] < 0 && have_one_key(keys, step)) continue;
        for (int64_t at = 0; at < step; at++) {
            if (counts[keys[at]] < 0) continue;
            counts[keys[at]] = -counts[keys[at]];
            group_keys[found] = keys[at];
            firsts[found++] = start + at;
        }
    }
    for (int64_t group = 0; group < count; group++) counts[group_keys[group]] = -counts[group_keys[group]];
}

/* Write the first row of each key that occurs, in their order, and set the byte of the key in `seen`; return their
 * number. */
static int64_t mark_keys(const Digit *digits, int64_t digit_count, int64_t rows, uint8_t *seen, int64_t *firsts) {
    uint32_t keys[STEP_ROWS];
    int64_t count = 0;
    for (int64_t start = 0; start < rows; start += STEP_ROWS) {
        int64_t step = rows - start < STEP_ROWS ? rows - start : STEP_ROWS;
        for (int64_t digit = 0; digit < digit_count; digit++)
            add_digit(digits + digit, start, step, digit == 0, keys);
        for (int64_t at = 0; at < step; at++) {
            if (seen[keys[at]]) continue;
            seen[keys[at]] = 1;
            firsts[count++] = start + at;
        }
    }
    return count;
}

/* Add rows to the totals of their keys, which their digits are and which are below `radix`. The first total counts all
 * rows. Write the key and the first row of each key that occurs, in the order of their first rows; return their number.
 * A first total that marks keys is the only one: only the first rows are written then, and `out` has a byte for each key.
 * `packed` has `lanes` * `radix` zeros; `group_keys` and `firsts` have room for the fewer of rows and `radix`. */
EXPORT int64_t olapdb_group_totals(const Digit *digits, int64_t digit_count, int64_t rows, int64_t radix,
                                   int64_t lanes, uint64_t *packed, Total *totals, int64_t total_count,
                                   int64_t *group_keys, int64_t *firsts) {
    uint32_t keys[STEP_ROWS];
    int64_t *counts = totals->out, count = 0, narrow = 1;
    int32_t run_starts[RUNS_MAX + 1];
    if (totals->kind == MARK) return mark_keys(digits, digit_count, rows, totals->out, firsts);
    while (narrow < total_count && !is_narrow(totals + narrow)) narrow++;
    if (lanes * radix > PACKED_PLACES_MAX) narrow = total_count;
    for (int64_t start = 0; start < rows; start += STEP_ROWS) {
        int64_t step_rows = rows - start < STEP_ROWS ? rows - start : STEP_ROWS;
        Step step = {start, step_rows, radix, (int)lanes, 0, run_starts, keys};
        for (int64_t digit = 0; digit < digit_count; digit++)
            add_digit(digits + digit, start, step.rows, digit == 0, keys);
        step.runs = find_runs(keys, step.rows, run_starts);
        if (narrow == total_count) {
            count_rows(totals, &step);
        } else {
            add_packed(totals + narrow, &step, packed);
            if ((start + STEP_ROWS) % PACKED_ROWS == 0 || start + STEP_ROWS >= rows)
                unpack(packed, lanes * radix, counts, totals[narrow].out);
        }
        for (int64_t at = 1; at < total_count; at++) {
            if (at == narrow) continue;
            if (totals[at].kind == COUNT)
                count_rows(totals + at, &step);
            else if (totals[at].kind == SUM)
                sum_rows(totals + at, &step);
            else
                keep_extremes(totals + at, &step);
        }
    }
    for (int64_t at = 0; at < total_count; at++) {
        uint64_t *sums = totals[at].out;
        if (totals[at].kind > SUM || (totals[at].kind == SUM && totals[at].type > UINT64)) continue;
        for (int64_t place = radix; place < lanes * radix; place++) sums[place % radix] += sums[place];
    }
    for (int64_t key = 0; key < radix; key++) count += counts[key] > 0;
    find_firsts(digits, digit_count, rows, count, counts, group_keys, firsts);
    return count;
}
