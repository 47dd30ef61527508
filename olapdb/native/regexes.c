/* Regular expressions over ASCII texts, by backtracking: the first of the alternatives that matches wins, as in Perl
 * and RE2. A match that takes too many steps, or a text with other bytes than ASCII, is left to the caller.
 *
 * A program has HEADER words: the number of slots, whether it matches at the beginning of a text alone, the set of
 * first bytes or -1, the only first byte or -1, the set of a run at the beginning or -1. Then come instructions of
 * WORDS words: the operation and its arguments. A set is a table of 128 bytes, 1 for its members. Slots 2 g and
 * 2 g + 1 hold the begin and the end of group g; group 0 is the whole match. */

#include "kernels.h"

enum { HEADER = 8, WORDS = 4, SET_BYTES = 128, STACK = 192, SLOTS_MAX = 20, STEPS_MIN = 256, STEPS_A_BYTE = 24 };
enum { MATCH, CHAR, SET, RUN, RUN_ALL, LAZY, SPLIT, JUMP, SAVE, BEGIN, END };
enum { NO_MATCH, IS_MATCH, GAVE_UP };

/* What is tried next where the present way fails: for a SPLIT its other branch; for a run one byte less, down to
 * `bound`; for a lazy run one byte more, up to `bound`; for SAVE nothing, the slot gets its older value. */
typedef struct {
    int32_t operation, instruction, position, bound;
} Choice;

typedef struct {
    const int32_t *header, *instructions;
    const uint8_t *sets;
} Program;

static inline const uint8_t *set_of(const Program *program, int32_t number) {
    return program->sets + SET_BYTES * number;
}

static int is_ascii(const uint8_t *text, int32_t length) {
    uint64_t all = 0;
    int32_t at = 0;
    for (; at + 8 <= length; at += 8) all |= load_64(text + at);
    for (; at < length; at++) all |= text[at];
    return (all & 0x8080808080808080u) == 0;
}

/* Return the end of the run of the set's bytes that begins at `from`, at most `stop`. */
static inline int32_t run_end(const uint8_t *set, const uint8_t *text, int32_t from, int32_t stop) {
    while (from < stop && set[text[from]]) from++;
    return from;
}

/* Match at `start` alone; fill the slots of a match. */
static int match_at(const Program *program, const uint8_t *text, int32_t length, int32_t start, int32_t *slots,
                    int64_t *steps) {
    Choice stack[STACK];
    int32_t depth = 0, next = 0, at = start;
    for (int32_t slot = 0; slot < program->header[0]; slot++) slots[slot] = -1;
    for (;;) {
        const int32_t *instruction = program->instructions + WORDS * next;
        if (--*steps < 0 || depth > STACK - 2) return GAVE_UP;
        switch (instruction[0]) {
        case MATCH:
            slots[0] = start;
            slots[1] = at;
            return IS_MATCH;
        case CHAR:
            if (at == length || text[at] != instruction[1]) break;
            at++, next++;
            continue;
        case SET:
            if (at == length || !set_of(program, instruction[1])[text[at]]) break;
            at++, next++;
            continue;
        case RUN:
        case RUN_ALL: {
            int32_t least = instruction[2], most = instruction[3], end;
            end = run_end(set_of(program, instruction[1]), text, at, most < 0 || most > length - at ? length : at + most);
            *steps -= (end - at) >> 3;
            if (end - at < least) break;
            if (instruction[0] == RUN && end - at > least)
                stack[depth++] = (Choice){RUN, next + 1, end, at + least};
            at = end, next++;
            continue;
        }
        case LAZY: {
            int32_t least = instruction[2], most = instruction[3];
            int32_t stop = most < 0 || most > length - at ? length : at + most;
            if (least > length - at) break;
            if (run_end(set_of(program, instruction[1]), text, at, at + least) != at + least) break;
            at += least;
            if (at < stop) stack[depth++] = (Choice){LAZY, next, at, stop};
            next++;
            continue;
        }
        case SPLIT:
            stack[depth++] = (Choice){SPLIT, instruction[2], at, 0};
            next = instruction[1];
            continue;
        case JUMP:
            next = instruction[1];
            continue;
        case SAVE:
            if (depth) stack[depth++] = (Choice){SAVE, instruction[1], slots[instruction[1]], 0};
            slots[instruction[1]] = at;
            next++;
            continue;
        case BEGIN:
            if (at != 0) break;
            next++;
            continue;
        case END:
            if (at != length) break;
            next++;
            continue;
        }
        for (int resumed = 0; !resumed;) {
            Choice *choice;
            if (depth == 0) return NO_MATCH;
            choice = &stack[depth - 1];
            --*steps;
            switch (choice->operation) {
            case SAVE:
                slots[choice->instruction] = choice->position;
                depth--;
                break;
            case SPLIT:
                next = choice->instruction, at = choice->position;
                depth--;
                resumed = 1;
                break;
            case RUN:
                if (choice->position > choice->bound) {
                    next = choice->instruction, at = --choice->position;
                    resumed = 1;
                } else {
                    depth--;
                }
                break;
            default: {
                const int32_t *lazy = program->instructions + WORDS * choice->instruction;
                if (choice->position < choice->bound && set_of(program, lazy[1])[text[choice->position]]) {
                    next = choice->instruction + 1, at = ++choice->position;
                    resumed = 1;
                } else {
                    depth--;
                }
            }
            }
        }
    }
}

/* Find the first match that begins at `from` or later. */
static int find_match(const Program *program, const uint8_t *text, int32_t length, int32_t from, int32_t *slots,
                      int64_t *steps) {
    const int32_t *header = program->header;
    if (header[1]) return from ? NO_MATCH : match_at(program, text, length, 0, slots, steps);
    for (int32_t start = from; start <= length; start++) {
        int outcome;
        if (header[3] >= 0) {
            const uint8_t *hit = memchr(text + start, header[3], (size_t)(length - start));
            if (hit == NULL) return NO_MATCH;
            start = (int32_t)(hit - text);
        } else if (header[2] >= 0) {
            const uint8_t *first = set_of(program, header[2]);
            while (start < length && !first[text[start]]) start++;
            if (start == length) return NO_MATCH;
        }
        outcome = match_at(program, text, length, start, slots, steps);
        if (outcome != NO_MATCH) return outcome;
        if (header[4] >= 0) /* a match that begins within the run ends where this one failed */
            start = run_end(set_of(program, header[4]), text, start, length);
    }
    return NO_MATCH;
}

/* Find the first match of a whole text; GAVE_UP for a text that is not ASCII. */
static int search(const Program *program, const uint8_t *text, int32_t length, int32_t *slots) {
    int64_t steps = STEPS_MIN + (int64_t)STEPS_A_BYTE * length;
    return is_ascii(text, length) ? find_match(program, text, length, 0, slots, &steps) : GAVE_UP;
}

/* Write to outcomes[row] whether the row's text has a match: NO_MATCH, IS_MATCH or GAVE_UP. */
EXPORT void olapdb_regex_matches(const int32_t *words, const uint8_t *sets, const int32_t *offsets,
                                 const uint8_t *data, int64_t rows, uint8_t *outcomes) {
    Program program = {words, words + HEADER, sets};
    int32_t slots[SLOTS_MAX];
    for (int64_t row = 0; row < rows; row++)
        outcomes[row] = (uint8_t)search(&program, data + offsets[row], offsets[row + 1] - offsets[row], slots);
}

/* Write the groups 1 … groups of each row's first match to `starts` and `lengths`, group after group with `rows`
 * places each: places in `data`, no bytes for a group without a part of the text and where there is no match. */
EXPORT void olapdb_regex_groups(const int32_t *words, const uint8_t *sets, const int32_t *offsets,
                                const uint8_t *data, int64_t rows, int64_t groups, uint8_t *outcomes,
                                int32_t *starts, int32_t *lengths) {
    Program program = {words, words + HEADER, sets};
    int32_t slots[SLOTS_MAX];
    for (int64_t row = 0; row < rows; row++) {
        int32_t begin = offsets[row];
        outcomes[row] = (uint8_t)search(&program, data + begin, offsets[row + 1] - begin, slots);
        for (int64_t group = 0; group < groups; group++) {
            const int32_t *slot = slots + 2 * (group + 1);
            int has_text = outcomes[row] == IS_MATCH && slot[0] >= 0 && slot[1] >= 0;
            starts[group * rows + row] = begin + (has_text ? slot[0] : 0);
            lengths[group * rows + row] = has_text ? slot[1] - slot[0] : 0;
        }
    }
}

/* Write the bytes data[starts[row] … starts[row] + lengths[row]) of the rows one behind the other, and where each
 * row's begin and the last one's end. */
EXPORT void olapdb_copy_spans(const uint8_t *data, const int32_t *starts, const int32_t *lengths, int64_t rows,
                              int32_t *offsets, uint8_t *copied) {
    int32_t at = 0;
    for (int64_t row = 0; row < rows; row++) {
        offsets[row] = at;
        memcpy(copied + at, data + starts[row], (size_t)lengths[row]);
        at += lengths[row];
    }
    offsets[rows] = at;
}

/* Write what replaces a match to `to`, up to `end`; return the end of what was written, or NULL where it does not fit.
 * Piece p is group pieces[3 p], or where that is -1 the bytes pieces[3 p + 1] … pieces[3 p + 2] of `literals`. */
static uint8_t *append(const int32_t *pieces, int64_t count, const uint8_t *literals, const uint8_t *text,
                       const int32_t *slots, uint8_t *to, const uint8_t *end) {
    for (int64_t piece = 0; piece < count; piece++) {
        const int32_t *given = pieces + 3 * piece;
        const uint8_t *from = literals + given[1];
        int64_t size = given[2] - given[1];
        if (given[0] >= 0) {
            const int32_t *slot = slots + 2 * given[0];
            size = slot[0] < 0 || slot[1] < 0 ? 0 : slot[1] - slot[0];
            from = text + slot[0];
        }
        if (end - to < size) return NULL;
        if (size) memcpy(to, from, (size_t)size);
        to += size;
    }
    return to;
}

/* Replace up to `most` matches in each row's text, all if `most` is -1; no match may be empty. Write the new texts one
 * behind the other, nothing for a row that the kernel gives up, and where each row's begins and the last one's ends.
 * Return the number of rows whose texts fit the `capacity` bytes of `replaced`. */
EXPORT int64_t olapdb_regex_replace(const int32_t *words, const uint8_t *sets, const int32_t *offsets,
                                    const uint8_t *data, int64_t rows, int64_t most, const int32_t *pieces,
                                    int64_t count, const uint8_t *literals, uint8_t *outcomes,
                                    int32_t *new_offsets, uint8_t *replaced, int64_t capacity) {
    Program program = {words, words + HEADER, sets};
    int32_t slots[SLOTS_MAX];
    uint8_t *to = replaced;
    const uint8_t *end = replaced + capacity;
    for (int64_t row = 0; row < rows; row++) {
        const uint8_t *text = data + offsets[row];
        uint8_t *begin = to;
        int32_t length = offsets[row + 1] - offsets[row], from = 0;
        int64_t steps = STEPS_MIN + (int64_t)STEPS_A_BYTE * length;
        int outcome = is_ascii(text, length) ? IS_MATCH : GAVE_UP;
        new_offsets[row] = (int32_t)(begin - replaced);
        for (int64_t number = 0; number != most && outcome == IS_MATCH; number++) {
            outcome = find_match(&program, text, length, from, slots, &steps);
            if (outcome != IS_MATCH) break;
            if (end - to < slots[0] - from) return row;
            memcpy(to, text + from, (size_t)(slots[0] - from));
            to = append(pieces, count, literals, text, slots, to + slots[0] - from, end);
            if (to == NULL) return row;
            from = slots[1];
        }
        outcomes[row] = outcome == GAVE_UP ? GAVE_UP : IS_MATCH;
        if (outcome == GAVE_UP) {
            to = begin;
            continue;
        }
        if (end - to < length - from) return row;
        if (length > from) memcpy(to, text + from, (size_t)(length - from));
        to += length - from;
    }
    new_offsets[rows] = (int32_t)(to - replaced);
    return rows;
}
