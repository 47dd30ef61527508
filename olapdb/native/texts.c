/* Texts as Arrow keeps them: the bytes of all rows in one buffer, and the 32-bit offset where each row
 * begins. No kernel makes a text. */

#include "kernels.h"

enum { SAMPLE_BYTES = 4096, BYTES = 256 };

/* Return the place of the byte of `piece` that is the rarest in a sample of the data. */
static int64_t rarest(const uint8_t *data, int64_t data_bytes, const uint8_t *piece, int64_t piece_bytes) {
    int32_t counts[BYTES] = {0};
    int64_t best = 0;
    for (int64_t at = 0; at < data_bytes && at < SAMPLE_BYTES; at++) counts[data[at]]++;
    for (int64_t at = 1; at < piece_bytes; at++)
        if (counts[piece[at]] < counts[piece[best]]) best = at;
    return best;
}

/* Return the first place of `piece` in data[start … stop), -1 where there is none; `rare` is a place in it. */
static int64_t find(const uint8_t *data, int64_t start, int64_t stop, const uint8_t *piece,
                    int64_t piece_bytes, int64_t rare) {
    int64_t last = stop - piece_bytes;
    for (int64_t at = start; at <= last; at++) {
        const uint8_t *hit = memchr(data + at + rare, piece[rare], (size_t)(last - at + 1));
        if (hit == NULL) return -1;
        at = hit - data - rare;
        if (memcmp(data + at, piece, (size_t)piece_bytes) == 0) return at;
    }
    return -1;
}

/* Mark the rows that contain `piece`, which is not empty: one search over the bytes of all rows. */
static void contains(const int32_t *offsets, const uint8_t *data, int64_t rows, const uint8_t *piece,
                     int64_t piece_bytes, uint8_t *matches) {
    int64_t stop = offsets[rows], at = offsets[0], row = 0;
    int64_t rare = rarest(data + at, stop - at, piece, piece_bytes);
    while ((at = find(data, at, stop, piece, piece_bytes, rare)) >= 0) {
        while (offsets[row + 1] <= at) row++;
        if (at + piece_bytes <= offsets[row + 1]) {
            matches[row] = 1;
            at = offsets[row + 1];
        } else {
            at++; /* the piece begins in one row and ends in another */
        }
    }
}

/* Set matches[row] to 1 for texts that have all pieces one behind the other; `matches` comes as zeros. The
 * bytes of piece i end at piece_ends[i]. The first piece stands at the beginning of the text if
 * `from_start`, the last one at its end if `to_end`. The values of null rows are arbitrary. */
EXPORT void olapdb_match_pieces(const int32_t *offsets, const uint8_t *data, int64_t rows,
                                const uint8_t *pieces, const int64_t *piece_ends, int64_t count,
                                int from_start, int to_end, uint8_t *matches) {
    if (count == 1 && !from_start && !to_end && piece_ends[0] > 0) {
        contains(offsets, data, rows, pieces, piece_ends[0], matches);
        return;
    }
    for (int64_t row = 0; row < rows; row++) {
        int64_t start = offsets[row], stop = offsets[row + 1], piece = 0, end = count, is_match = 1;
        if (from_start && count) {
            int64_t bytes = piece_ends[0];
            if (bytes > stop - start || memcmp(data + start, pieces, (size_t)bytes) != 0) continue;
            start += bytes;
            piece = 1;
            if (to_end && count == 1) { /* no wildcard: the whole text */
                matches[row] = start == stop;
                continue;
            }
        }
        if (to_end && count) {
            int64_t begin = count > 1 ? piece_ends[count - 2] : 0, bytes = piece_ends[count - 1] - begin;
            if (bytes > stop - start || memcmp(data + stop - bytes, pieces + begin, (size_t)bytes) != 0)
                continue;
            stop -= bytes;
            end = count - 1;
        }
        for (; piece < end && is_match; piece++) {
            int64_t begin = piece ? piece_ends[piece - 1] : 0, bytes = piece_ends[piece] - begin;
            int64_t at = bytes ? find(data, start, stop, pieces + begin, bytes, 0) : start;
            is_match = at >= 0;
            start = at + bytes;
        }
        matches[row] = (uint8_t)is_match;
    }
}

/* Write to `best` the least (greatest) text of each group: its position among the texts, of which row r
 * has the one at indices[r], or at r without indices. `best` comes as -1, which groups without texts keep.
 * `validity` is that of the rows. */
EXPORT void olapdb_extreme_texts(const int32_t *offsets, const uint8_t *data, const uint8_t *validity,
                                 int64_t bit, const int32_t *indices, const int64_t *codes, int64_t rows,
                                 int largest, int64_t *best) {
    for (int64_t row = 0; row < rows; row++) {
        int64_t text = indices == NULL ? row : indices[row], held;
        int64_t *place = &best[codes == NULL ? 0 : codes[row]];
        int order;
        if (!is_valid(validity, bit, row)) continue;
        held = *place;
        if (held == text) continue;
        if (held >= 0) {
            order = compare_texts(data + offsets[text], offsets[text + 1] - offsets[text],
                                  data + offsets[held], offsets[held + 1] - offsets[held]);
            if (largest ? order <= 0 : order >= 0) continue;
        }
        *place = text;
    }
}

/* Write the bytes of spans one after the other. Span i has lengths[i] bytes from starts[i] on. */
EXPORT void olapdb_join_spans(const uint8_t *data, const int64_t *starts, const int64_t *offsets, int64_t count,
                              uint8_t *out) {
    for (int64_t span = 0; span < count; span++)
        memcpy(out + offsets[span], data + starts[span], (size_t)(offsets[span + 1] - offsets[span]));
}
