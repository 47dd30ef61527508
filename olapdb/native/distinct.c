/* Distinct values of groups, ascending. `olapdb_group_values` brings the values of each group together,
 * `olapdb_distinct_sorted` sorts each group without its duplicates. Values are compared as unsigned words:
 * the first kernel flips the sign bit of signed ones. */

#include "kernels.h"

enum { AHEAD = 32, FEW = 24, DIGIT_BITS = 8, STEPS_PER_VALUE = 8, SPARE = 64, WORD_BITS = 64 };

#define FREE UINT64_MAX

/* Return whether 2^skip divides a word. */
static inline int is_kept(const int64_t *skips, int64_t group, uint64_t word) {
    if (skips == NULL) return 1;
    return skips[group] < WORD_BITS ? (word & (((uint64_t)1 << skips[group]) - 1)) == 0 : word == 0;
}

/* Write the values that are not null to `grouped`, those of group 0 first; within a group in row order.
 * `starts`, of groups + 1 zeros, becomes the positions where the groups begin. With `skips`, only values
 * that 2^skips[group] divides are written. */
EXPORT void olapdb_group_values(int type, const void *values, const uint8_t *validity, int64_t bit,
                                const int64_t *codes, int64_t rows, int64_t groups, const int64_t *skips,
                                int64_t *starts, uint64_t *grouped) {
    uint64_t sign = type == INT8 || type == INT16 || type == INT32 || type == INT64 ? (uint64_t)1 << 63 : 0;
    switch (type) {
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        if (codes == NULL && validity == NULL && skips == NULL) {                                   \
            for (int64_t row = 0; row < rows; row++) grouped[row] = (uint64_t)typed[row] ^ sign;    \
            starts[1] = rows;                                                                       \
            return;                                                                                 \
        }                                                                                           \
        for (int64_t row = 0; row < rows; row++) {                                                  \
            int64_t group = codes == NULL ? 0 : codes[row];                                         \
            starts[group + 1] +=                                                                    \
                is_valid(validity, bit, row) && is_kept(skips, group, (uint64_t)typed[row]);        \
        }                                                                                           \
        for (int64_t group = 0; group < groups; group++) starts[group + 1] += starts[group];        \
        for (int64_t row = 0; row < rows; row++) {                                                  \
            int64_t group = codes == NULL ? 0 : codes[row];                                         \
            uint64_t word = (uint64_t)typed[row];                                                   \
            if (is_valid(validity, bit, row) && is_kept(skips, group, word))                        \
                grouped[starts[group]++] = word ^ sign;                                             \
        }                                                                                           \
        break;                                                                                      \
    }
        FOR_INTEGERS(CASE)
#undef CASE
    }
    for (int64_t group = groups; group > 0; group--) starts[group] = starts[group - 1];
    starts[0] = 0;
}

/* Each kernel below writes the distinct ones of `count` words, ascending, to `out`, which may be `words` or
 * memory before them; it returns how many they are. */

static int64_t without_repeats(const uint64_t *words, int64_t count, uint64_t *out) {
    int64_t distinct = 1;
    uint64_t last = out[0] = words[0];
    for (int64_t at = 1; at < count; at++) {
        if (words[at] == last) continue;
        last = out[distinct++] = words[at];
    }
    return distinct;
}

static int64_t distinct_few(uint64_t *words, int64_t count, uint64_t *out) {
    for (int64_t at = 1; at < count; at++) {
        uint64_t word = words[at];
        int64_t place = at;
        for (; place > 0 && words[place - 1] > word; place--) words[place] = words[place - 1];
        words[place] = word;
    }
    return without_repeats(words, count, out);
}

/* A bit for each number from `low` on; there are fewer numbers than `count` times 64. */
static int64_t distinct_by_bits(const uint64_t *words, int64_t count, uint64_t low, uint64_t span,
                                uint64_t *bits, uint64_t *out) {
    int64_t length = (int64_t)(span / WORD_BITS) + 1, distinct = 0;
    memset(bits, 0, (size_t)length * sizeof *bits);
    for (int64_t at = 0; at < count; at++) {
        uint64_t offset = words[at] - low;
        bits[offset / WORD_BITS] |= (uint64_t)1 << (offset % WORD_BITS);
    }
    for (int64_t at = 0; at < length; at++)
        for (uint64_t left = bits[at]; left != 0; left &= left - 1)
            out[distinct++] = low + (uint64_t)at * WORD_BITS + (uint64_t)__builtin_ctzll(left);
    return distinct;
}

/* A hash table whose hash ascends with the value (linear probing; a value pushes larger ones on), so that
 * its slots are sorted. Return -1 where values lie so close together that a search takes many steps. */
static int64_t distinct_by_table(const uint64_t *words, int64_t count, uint64_t low, uint64_t span,
                                 uint64_t *slots, uint64_t *out) {
    int64_t capacity = 2 * count, distinct = 0, written = 0, steps = 0, has_last = 0;
    int shift = __builtin_clzll(span);
    uint64_t places[AHEAD];
    memset(slots, 0xFF, (size_t)(capacity + SPARE) * sizeof *slots);
    for (int64_t start = 0; start < count; start += AHEAD) {
        int64_t stop = start + AHEAD < count ? start + AHEAD : count;
        for (int64_t at = start; at < stop; at++) {
            uint64_t offset = (words[at] - low) << shift;
            places[at - start] = (uint64_t)(((unsigned __int128)offset * (uint64_t)capacity) >> WORD_BITS);
            PREFETCH(&slots[places[at - start]]);
        }
        for (int64_t at = start; at < stop; at++) {
            uint64_t offset = words[at] - low, place = places[at - start], first = place;
            if (offset == FREE) {
                has_last = 1;
                continue;
            }
            while (slots[place] < offset) place++;
            if (slots[place] != offset) {
                distinct++;
                while (slots[place] != FREE) {
                    uint64_t larger = slots[place];
                    slots[place++] = offset;
                    offset = larger;
                }
                if (place >= (uint64_t)(capacity + SPARE - 1)) return -1; /* the last slot stays free */
                slots[place] = offset;
            }
            steps += (int64_t)(place - first);
        }
        if (steps > STEPS_PER_VALUE * (count + AHEAD)) return -1;
    }
    for (uint64_t *slot = slots; written < distinct; slot++) {
        out[written] = low + *slot;
        written += *slot != FREE;
    }
    if (has_last) out[written++] = low + FREE;
    return written;
}

static int64_t distinct_words(uint64_t *words, int64_t count, uint64_t *workspace, uint64_t *out) {
    uint64_t low, high, is_ascending = 1;
    if (count == 0) return 0;
    if (count <= FEW) return distinct_few(words, count, out);
    low = high = words[0];
    for (int64_t at = 1; at < count; at++) {
        is_ascending &= words[at - 1] <= words[at];
        low = words[at] < low ? words[at] : low;
        high = words[at] > high ? words[at] : high;
    }
    if (is_ascending) return without_repeats(words, count, out);
    if ((high - low) / WORD_BITS < (uint64_t)count)
        return distinct_by_bits(words, count, low, high - low, workspace, out);
    int64_t distinct = distinct_by_table(words, count, low, high - low, workspace, out);
    if (distinct >= 0) return distinct;
    return without_repeats(sorted_by_digits(words, count, low, high - low, DIGIT_BITS, workspace), count, out);
}

/* Sort the words of each group without duplicates, where `starts` has the positions of the groups in
 * `words`. Close the groups up, change `starts` to it, and return the number of all words. `workspace` has
 * room for twice the words of the largest group and 64 more.
 *
 * With `skips` a group keeps at most `limit` words: while it has more, its skip grows by one, and the words
 * that 2^skip does not divide are dropped. */
EXPORT int64_t olapdb_distinct_sorted(uint64_t *words, int64_t groups, int64_t *starts, int64_t *skips,
                                      int64_t limit, uint64_t *workspace) {
    int64_t written = 0, start = 0;
    for (int64_t group = 0; group < groups; group++) {
        int64_t stop = starts[group + 1];
        uint64_t *out = words + written;
        int64_t count = distinct_words(words + start, stop - start, workspace, out);
        while (skips != NULL && count > limit) {
            int64_t kept = 0;
            skips[group]++;
            for (int64_t at = 0; at < count; at++)
                if (is_kept(skips, group, out[at])) out[kept++] = out[at];
            count = kept;
        }
        written += count;
        start = stop;
        starts[group + 1] = written;
    }
    return written;
}

/* Set a bit for each code that occurs in a group and is not null. Each group has `words` words of bits, one bit for
 * each code from 0 on; `bits` begins with zeros. */
EXPORT void olapdb_mark_codes(int type, const void *values, const uint8_t *validity, int64_t bit,
                              const int64_t *codes, int64_t rows, int64_t words, uint64_t *bits) {
    switch (type) {
#define MARK(GROUP, KEEPS)                                                                          \
    for (int64_t row = 0; row < rows; row++) {                                                      \
        if (row % 64 == 0) PREFETCH_AFTER(typed + row);                                             \
        uint64_t code = (uint64_t)typed[row];                                                       \
        if (KEEPS) bits[(GROUP) * words + (int64_t)(code / WORD_BITS)] |= (uint64_t)1 << (code % WORD_BITS); \
    }
#define CASE(NAME, T)                                                                               \
    case NAME: {                                                                                    \
        const T *typed = values;                                                                    \
        if (codes == NULL && validity == NULL) {                                                    \
            MARK(0, 1)                                                                              \
        } else if (codes == NULL) {                                                                 \
            MARK(0, is_valid(validity, bit, row))                                                   \
        } else if (validity == NULL) {                                                              \
            MARK(codes[row], 1)                                                                     \
        } else {                                                                                    \
            MARK(codes[row], is_valid(validity, bit, row))                                          \
        }                                                                                           \
        return;                                                                                     \
    }
        FOR_INTEGERS(CASE)
#undef CASE
#undef MARK
    }
}

/* Set the bits of the codes in `lists` lists, where `starts` has the positions of the lists in `codes`, for the group of
 * each list. */
EXPORT void olapdb_mark_lists(const int32_t *codes, const int64_t *starts, int64_t lists, const int64_t *groups,
                              int64_t words, uint64_t *bits) {
    for (int64_t list = 0; list < lists; list++) {
        uint64_t *own = bits + groups[list] * words;
        for (int64_t at = starts[list]; at < starts[list + 1]; at++)
            own[codes[at] / WORD_BITS] |= (uint64_t)1 << (codes[at] % WORD_BITS);
    }
}

/* Add the bits of `sets` sets, `words` words each, to those of the group of each set. */
EXPORT void olapdb_join_marks(const uint64_t *marks, const int64_t *groups, int64_t sets, int64_t words, uint64_t *bits) {
    for (int64_t set = 0; set < sets; set++) {
        const uint64_t *own = marks + set * words;
        uint64_t *joined = bits + groups[set] * words;
        for (int64_t at = 0; at < words; at++) joined[at] |= own[at];
    }
}

/* Write how many bits of each group are set, as positions where the groups begin, to `starts`, of groups + 1; and with
 * `out` the codes of these bits, ascending in each group. Return the number of all. */
EXPORT int64_t olapdb_marked_codes(const uint64_t *bits, int64_t groups, int64_t words, int64_t *starts,
                                   int32_t *out) {
    int64_t count = 0;
    starts[0] = 0;
    for (int64_t group = 0; group < groups; group++) {
        const uint64_t *own = bits + group * words;
        if (out == NULL)
            for (int64_t at = 0; at < words; at++) count += __builtin_popcountll(own[at]);
        else
            for (int64_t at = 0; at < words; at++)
                for (uint64_t left = own[at]; left != 0; left &= left - 1)
                    out[count++] = (int32_t)(at * WORD_BITS + __builtin_ctzll(left));
        starts[group + 1] = count;
    }
    return count;
}
