/* The shape of CSV: which bytes are within quotes. */

#include "kernels.h"

/* What the bytes of some rows are like; `csv.py` has the same order. */
enum { END_OF_ROWS, IS_OPEN, TEXT_BEHIND_QUOTES, HAS_BLANKS };

static inline int is_blank(uint8_t byte) { return byte == ' ' || byte == '\t'; }

/* Walk through rows of CSV. A quote opens a value where only blanks come between it and a delimiter, the end of a line or
 * the start; it closes the value unless another quote follows. Write 1 in `inside`, if there is one, for the bytes from an
 * opening quote up to its closing quote, which has a 0, and four facts:
 * the number of bytes up to and including the last line feed outside quotes; whether the last value in quotes does not
 * end; the first closing quote behind which something other than blanks and an edge follows, -1 without one; and whether
 * a blank outside quotes is beside an edge. */
EXPORT void olapdb_csv_shape(const uint8_t *data, int64_t size, int delimiter, uint8_t *inside, int64_t *facts) {
    int at_edge = 1, behind_quote = 0, has_blanks = 0;
    int64_t end_of_rows = 0, junk = -1, closing = 0, at = 0;
    uint8_t is_special[256] = {0};
    is_special['"'] = is_special['\n'] = is_special['\r'] = is_special[' '] = is_special['\t'] = 1;
    is_special[(uint8_t)delimiter] = 1;
    facts[IS_OPEN] = 0;
    while (at < size) {
        uint8_t byte = data[at];
        int is_edge = byte == delimiter || byte == '\n' || byte == '\r';
        if (is_edge) {
            if (byte == '\n') end_of_rows = at + 1;
            has_blanks |= at > 0 && data[at - 1] != delimiter && is_blank(data[at - 1]);
            at_edge = 1, behind_quote = 0;
        } else if (byte == '"' && at_edge) {
            int64_t opening = at++;
            for (; at < size; at++) {
                const uint8_t *quote = memchr(data + at, '"', (size_t)(size - at));
                at = quote == NULL ? size : quote - data;
                if (at + 1 >= size || data[at + 1] != '"') break;
                at++;
            }
            if (inside != NULL) memset(inside + opening, 1, (size_t)((at < size ? at : size) - opening));
            if (at >= size) {
                facts[IS_OPEN] = 1;
                break;
            }
            closing = at;
            at_edge = 0, behind_quote = 1;
        } else if (is_blank(byte)) {
            has_blanks |= at == 0 || data[at - 1] == delimiter || data[at - 1] == '\n' || data[at - 1] == '\r';
        } else {
            if (behind_quote && byte != '"' && junk < 0) junk = closing;
            at_edge = 0, behind_quote = 0;
            int64_t first = at;
            while (at + 1 < size && !is_special[data[at + 1]]) at++;
            if (inside != NULL) memset(inside + first, 0, (size_t)(at - first));
        }
        if (inside != NULL) inside[at] = 0;
        at++;
    }
    if (size > 0 && !facts[IS_OPEN] && data[size - 1] != delimiter && is_blank(data[size - 1])) has_blanks = 1;
    facts[END_OF_ROWS] = end_of_rows;
    facts[TEXT_BEHIND_QUOTES] = junk;
    facts[HAS_BLANKS] = has_blanks;
}
