/* JSON: the tokens of texts and the tree that they make, and where the rows of a stream begin and end. */

#include "kernels.h"

/* The classes of tokens; `functions/json/index.py` has the same order. */
enum { SCALAR, STRING, OBJECT, OBJECT_END, ARRAY, ARRAY_END, COLON, COMMA };
enum { DEPTH_MAX = 1024, VALID = 1, INVALID = 0, UNKNOWN = -1 };

/* The tokens that are written. `close` and `rank` are those of the token. */
typedef struct {
    uint8_t *kind;
    int64_t *start, *end, *row, *parent, *rank, *close;
    int64_t count;
} Tokens;

static inline int is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

static inline int is_hexadecimal(uint8_t byte) {
    uint8_t letter = byte | 32;
    return is_digit(byte) || (letter >= 'a' && letter <= 'f');
}

/* Return the number of four hexadecimal digits, -1 where there are fewer. */
static int hexadecimal(const uint8_t *text, int64_t left) {
    int code = 0;
    if (left < 4) return -1;
    for (int at = 0; at < 4; at++) {
        if (!is_hexadecimal(text[at])) return -1;
        code = code * 16 + (is_digit(text[at]) ? text[at] - '0' : (text[at] & 7) + 9);
    }
    return code;
}

/* Return the position behind the closing quote of a string that begins behind `at`; -1 where it does not end, has a
 * control character, an unknown escape, or half of a surrogate pair. */
static ALWAYS_INLINE int64_t end_of_string(const uint8_t *data, int64_t at, int64_t stop) {
    while (at < stop) {
        uint8_t byte = data[at];
        if (byte == '"') return at + 1;
        if (byte < 0x20) return -1;
        at++;
        if (byte != '\\') continue;
        if (at >= stop) return -1;
        byte = data[at++];
        if (byte == 'u') {
            int code = hexadecimal(data + at, stop - at);
            if (code < 0 || code >> 10 == 0xDC00 >> 10) return -1;
            at += 4;
            if (code >> 10 == 0xD800 >> 10) {
                if (stop - at < 6 || data[at] != '\\' || data[at + 1] != 'u') return -1;
                code = hexadecimal(data + at + 2, stop - at - 2);
                if (code < 0 || code >> 10 != 0xDC00 >> 10) return -1;
                at += 6;
            }
        } else if (byte == 0 || strchr("\"\\/bfnrt", byte) == NULL)
            return -1;
    }
    return -1;
}

/* Return whether a scalar is true, false, null or a number that a Float64 holds; UNKNOWN for the few numbers so near the
 * largest one that their digits decide. */
static int is_scalar(const uint8_t *text, int64_t size) {
    if (size == 4 && (!memcmp(text, "true", 4) || !memcmp(text, "null", 4))) return VALID;
    if (size == 5 && !memcmp(text, "false", 5)) return VALID;
    int64_t at = 0, whole, leading = 0, exponent = 0;
    int is_zero = 1;
    if (at < size && text[at] == '-') at++;
    int64_t first = at;
    while (at < size && is_digit(text[at])) is_zero &= text[at++] == '0';
    whole = at - first;
    if (!whole || (whole > 1 && text[first] == '0')) return INVALID;
    int is_fraction = is_zero;
    if (at < size && text[at] == '.') {
        int64_t point = at++;
        for (; at < size && is_digit(text[at]); at++) {
            leading += is_zero && text[at] == '0';
            is_zero &= text[at] == '0';
        }
        if (at == point + 1) return INVALID;
    }
    if (at < size && (text[at] | 32) == 'e') {
        at++;
        int is_negative = at < size && text[at] == '-';
        if (at < size && (text[at] == '-' || text[at] == '+')) at++;
        int64_t digits = at;
        for (; at < size && is_digit(text[at]); at++)
            if (exponent < 1000000000) exponent = 10 * exponent + text[at] - '0';
        if (at == digits) return INVALID;
        if (is_negative) exponent = -exponent;
        if (at == size && !is_zero && exponent >= 100) {
            int64_t magnitude = exponent + (is_fraction ? -leading - 1 : whole - 1);
            if (magnitude > 308) return INVALID;
            if (magnitude == 308) return UNKNOWN;
        }
    }
    return at == size ? VALID : INVALID;
}

/* Append the tokens of one text; return VALID, INVALID, or UNKNOWN. */
static ALWAYS_INLINE int index_text(const uint8_t *data, int64_t at, int64_t stop, int64_t row, Tokens *tokens) {
    int64_t open[DEPTH_MAX + 1], ranks[DEPTH_MAX + 1], depth = 0, values = 0;
    int outcome = VALID;
    while (at < stop) {
        uint8_t byte = data[at];
        int kind;
        switch (byte) {
            case ' ': case '\t': case '\r': case '\n': at++; continue;
            case '"': kind = STRING; break;
            case '{': kind = OBJECT; break;
            case '}': kind = OBJECT_END; break;
            case '[': kind = ARRAY; break;
            case ']': kind = ARRAY_END; break;
            case ':': kind = COLON; break;
            case ',': kind = COMMA; break;
            default: kind = SCALAR;
        }
        int64_t token = tokens->count, start = at++, rank = 0, parent = -1;
        int is_value = kind <= OBJECT || kind == ARRAY, closes = kind == OBJECT_END || kind == ARRAY_END;
        if (depth) {
            parent = open[depth - 1];
            rank = ranks[depth - 1]++;
            if (tokens->kind[parent] == OBJECT) {
                int place = (int)(rank & 3);
                int right = place == 0 ? kind == STRING : place == 1 ? kind == COLON : place == 2 ? is_value : kind == COMMA;
                if (closes) right = kind == OBJECT_END && (rank == 0 || place == 3);
                if (!right) return INVALID;
            } else {
                int right = rank & 1 ? kind == COMMA : is_value;
                if (closes) right = kind == ARRAY_END && (rank == 0 || (rank & 1));
                if (!right) return INVALID;
            }
        } else if (!is_value || values++)
            return INVALID;
        if (closes) {
            depth--;
            tokens->close[parent] = token;
        } else if (depth >= DEPTH_MAX)
            return INVALID;
        if (kind == STRING) {
            at = end_of_string(data, at, stop);
            if (at < 0) return INVALID;
        } else if (kind == SCALAR) {
            for (; at < stop; at++) {
                byte = data[at];
                if (byte <= ' ' && (byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n')) break;
                if (byte == '"' || byte == ',' || byte == ':' || (byte | 32) == '{' || (byte | 32) == '}') break;
            }
            int is_known = is_scalar(data + start, at - start);
            if (is_known == INVALID) return INVALID;
            if (is_known == UNKNOWN) outcome = UNKNOWN;
        } else if (kind == OBJECT || kind == ARRAY) {
            open[depth] = token;
            ranks[depth++] = 0;
        }
        tokens->kind[token] = (uint8_t)kind;
        tokens->start[token] = start;
        tokens->end[token] = at;
        tokens->row[token] = row;
        tokens->parent[token] = parent;
        tokens->rank[token] = rank;
        tokens->close[token] = token;
        tokens->count++;
    }
    return depth || values != 1 ? INVALID : outcome;
}

/* Return how many bytes are brackets, colons and commas. JSON texts have at most twice as many tokens, and one each. */
EXPORT int64_t olapdb_json_marks(const uint8_t *data, int64_t size) {
    int64_t count = 0;
    for (int64_t at = 0; at < size; at++) {
        uint8_t byte = data[at], letter = byte | 32;
        count += (letter == '{') | (letter == '}') | (byte == ':') | (byte == ',');
    }
    return count;
}

/* Write the tokens of JSON texts, the fields of `JsonIndex`, and for each text the token of its value, -1 where it is no
 * valid JSON; return the number of tokens. Text i has the bytes from offsets[i] to offsets[i + 1]. There is room for a
 * token for each text and two for each mark. Return -1 where a number is so near the largest Float64 that its digits
 * decide. */
EXPORT int64_t olapdb_json_index(const uint8_t *data, const int64_t *offsets, int64_t rows, uint8_t *kind,
                                 int64_t *start, int64_t *end, int64_t *row_of, int64_t *parent, int64_t *rank,
                                 int64_t *close, int64_t *root) {
    Tokens tokens = {kind, start, end, row_of, parent, rank, close, 0};
    for (int64_t row = 0; row < rows; row++) {
        int64_t before = tokens.count;
        int outcome = index_text(data, offsets[row], offsets[row + 1], row, &tokens);
        if (outcome == UNKNOWN) return -1;
        if (outcome == INVALID) tokens.count = before;
        root[row] = outcome == VALID ? before : -1;
    }
    return tokens.count;
}

/* Write where each object or array at a depth begins and ends; return the number of those that end. There is room for one
 * for each bracket. Brackets and quotes need not match. */
EXPORT int64_t olapdb_json_rows(const uint8_t *data, int64_t size, int64_t depth, int64_t *starts, int64_t *ends) {
    int64_t level = 0, begun = 0, ended = 0;
    uint8_t is_special[256] = {0};
    is_special['"'] = is_special['\\'] = is_special['{'] = is_special['['] = is_special['}'] = is_special[']'] = 1;
    for (int64_t at = 0; at < size; at++) {
        uint8_t byte = data[at];
        if (!is_special[byte]) continue;
        if (byte == '\\') {
            /* It escapes a quote outside of strings, too. */
            if (at + 1 < size && (data[at + 1] == '"' || data[at + 1] == '\\')) at++;
        } else if (byte == '"') {
            for (at++; at < size && data[at] != '"'; at++) at += data[at] == '\\';
        } else if (byte == '{' || byte == '[') {
            if (level++ == depth) starts[begun++] = at;
        } else if (--level == depth)
            ends[ended++] = at + 1;
    }
    return ended;
}
