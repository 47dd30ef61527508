/* Rows of plain literals, as VALUES has them, become CSV in one pass over the bytes. */

#include "kernels.h"

enum { FACT_CSV_BYTES, FACT_ROW_BYTES_MAX, FACT_HAS_NEWLINES };
enum { NOT_PLAIN = -1, STAYS = -1, NEITHER = -2 };

typedef struct {
    const uint8_t *data;
    int64_t bytes, at; /* what is read, and the next byte of it */
    uint8_t *csv;
    int64_t written;
    int has_newlines;
} Scan;

/* Return the byte that `\letter` denotes; STAYS if the backslash is kept, NEITHER for what only the grammar
 * reads. */
static int unescaped(uint8_t letter) {
    static const char letters[] = "abefnrtv0\\'\"`/=", bytes[] = "\a\b\x1b\f\n\r\t\v\0\\'\"`/=";
    const char *known;
    if (letter == 'x' || letter == 'N') return NEITHER;
    if ((letter > 0 && letter < 32) || letter == 127) return letter;
    known = letter == 0 ? NULL : strchr(letters, letter);
    return known == NULL ? STAYS : (uint8_t)bytes[known - letters];
}

static int is_space(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

static int is_bare(uint8_t byte) {
    uint8_t letter = byte | 32;
    return (letter >= 'a' && letter <= 'z') || (byte >= '0' && byte <= '9') || byte == '+' || byte == '-' ||
           byte == '.';
}

/* Skip white space; return the byte behind it, 0 at the end. */
static uint8_t next_byte(Scan *scan) {
    while (scan->at < scan->bytes && is_space(scan->data[scan->at])) scan->at++;
    return scan->at < scan->bytes ? scan->data[scan->at] : 0;
}

/* Copy a string with its quotes, without its escapes; return whether it is plain and ends. */
static int copy_string(Scan *scan) {
    scan->csv[scan->written++] = scan->data[scan->at++];
    while (scan->at < scan->bytes) {
        uint8_t byte = scan->data[scan->at++];
        if (byte == '\\') {
            int value;
            if (scan->at == scan->bytes) return 0;
            value = unescaped(scan->data[scan->at]);
            if (value == NEITHER) return 0;
            if (value == '\'') scan->csv[scan->written++] = '\'';
            if (value != STAYS) {
                byte = (uint8_t)value;
                scan->at++;
            }
        } else if (byte == '\'') {
            scan->csv[scan->written++] = byte;
            if (scan->at == scan->bytes || scan->data[scan->at] != '\'') return 1;
            scan->at++; /* a doubled quote */
        }
        scan->has_newlines |= byte == '\n' || byte == '\r';
        scan->csv[scan->written++] = byte;
    }
    return 0;
}

/* Copy a field and return the comma or parenthesis behind it; 0 if the field is no plain literal. */
static uint8_t copy_field(Scan *scan, uint8_t *first) {
    *first = next_byte(scan);
    if (*first == '\'') {
        if (!copy_string(scan)) return 0;
    } else {
        if (!is_bare(*first)) return 0;
        while (scan->at < scan->bytes && is_bare(scan->data[scan->at]))
            scan->csv[scan->written++] = scan->data[scan->at++];
    }
    return next_byte(scan);
}

/* Write rows of plain literals as CSV: strings in `'`, doubled inside, without escapes; a comma between
 * fields, a line feed after each row, nothing between them. Return the number of rows; -1 if a value is no plain literal, or a
 * row does not have `columns` values. `csv` has a place for each byte of `data`, `first` one for each
 * second byte: it gets the first byte of each field. `facts` gets the bytes of the CSV, those of the
 * longest row with both parentheses, and whether a string has a line break. */
EXPORT int64_t olapdb_plain_rows(const uint8_t *data, int64_t bytes, int64_t columns, uint8_t *csv,
                                 uint8_t *first, int64_t *facts) {
    Scan scan = {data, bytes, 0, csv, 0, 0};
    int64_t rows = 0, longest = 0;
    for (;;) {
        int64_t start = scan.written;
        if (next_byte(&scan) != '(') return NOT_PLAIN;
        scan.at++;
        for (int64_t column = 0; column < columns; column++) {
            int is_last = column == columns - 1;
            if (copy_field(&scan, first++) != (is_last ? ')' : ',')) return NOT_PLAIN;
            scan.at++;
            csv[scan.written++] = is_last ? '\n' : ',';
        }
        if (scan.written - start + 1 > longest) longest = scan.written - start + 1;
        rows++;
        if (next_byte(&scan) == 0 && scan.at == bytes) break;
        if (data[scan.at++] != ',') return NOT_PLAIN;
    }
    facts[FACT_CSV_BYTES] = scan.written;
    facts[FACT_ROW_BYTES_MAX] = longest;
    facts[FACT_HAS_NEWLINES] = scan.has_newlines;
    return rows;
}
