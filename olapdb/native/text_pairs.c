/* How alike the two texts of each row are. A text comes as codes, its bytes or code points, those of row r from
 * offsets[r] to offsets[r + 1]; `room` is memory of the caller. */

#include "kernels.h"

static ALWAYS_INLINE int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

/* Write to `distances` how many codes to insert, delete or replace, or, with `swaps`, to swap with their neighbour,
 * make the left text the right one (each code is moved once at most). `room` has three times one number more than
 * the longest right text has codes. */
EXPORT void olapdb_edit_distances(const int32_t *left, const int64_t *left_offsets, const int32_t *right,
                                  const int64_t *right_offsets, int64_t rows, int swaps, int32_t *room,
                                  int64_t room_codes, int64_t *distances) {
    for (int64_t row = 0; row < rows; row++) {
        const int32_t *a = left + left_offsets[row], *b = right + right_offsets[row];
        int64_t a_codes = left_offsets[row + 1] - left_offsets[row];
        int64_t b_codes = right_offsets[row + 1] - right_offsets[row];
        int32_t *before = room, *last = room + room_codes, *costs = room + 2 * room_codes;
        for (int64_t to = 0; to <= b_codes; to++) last[to] = (int32_t)to;
        for (int64_t at = 0; at < a_codes; at++) {
            int32_t *next;
            costs[0] = (int32_t)at + 1;
            for (int64_t to = 0; to < b_codes; to++) {
                int32_t cost = least(least(last[to + 1], costs[to]) + 1, last[to] + (a[at] != b[to]));
                if (swaps && at && to && a[at] == b[to - 1] && a[at - 1] == b[to])
                    cost = least(cost, before[to - 1] + 1);
                costs[to + 1] = cost;
            }
            next = before;
            before = last;
            last = costs;
            costs = next;
        }
        distances[row] = last[b_codes];
    }
}

/* Write to counts[3 * row …] Jaro's numbers of two texts: the codes that are in both, near each other, how many of
 * these stand at another place among them, and how many codes at the beginning are equal. `room` has as many bytes
 * as the longest left and right text have codes together, and comes as zeros. */
EXPORT void olapdb_jaro_counts(const int32_t *left, const int64_t *left_offsets, const int32_t *right,
                               const int64_t *right_offsets, int64_t rows, uint8_t *room, int64_t right_most,
                               int64_t *counts) {
    for (int64_t row = 0; row < rows; row++) {
        const int32_t *a = left + left_offsets[row], *b = right + right_offsets[row];
        int64_t a_codes = left_offsets[row + 1] - left_offsets[row];
        int64_t b_codes = right_offsets[row + 1] - right_offsets[row];
        int64_t longest = a_codes > b_codes ? a_codes : b_codes, shortest = a_codes + b_codes - longest;
        int64_t reach = longest / 2 - 1, common = 0, moved = 0, prefix = 0, next = 0;
        uint8_t *in_right = room, *in_left = room + right_most;
        if (reach < 0) reach = 0;
        for (int64_t at = 0; at < a_codes; at++) {
            int64_t start = at > reach ? at - reach : 0;
            int64_t stop = at + reach + 1 < b_codes ? at + reach + 1 : b_codes;
            for (int64_t to = start; to < stop; to++) {
                if (in_right[to] || b[to] != a[at]) continue;
                in_right[to] = in_left[at] = 1;
                common++;
                break;
            }
        }
        for (int64_t at = 0; at < a_codes; at++) {
            if (!in_left[at]) continue;
            while (!in_right[next]) next++;
            moved += a[at] != b[next++];
        }
        while (prefix < shortest && a[prefix] == b[prefix]) prefix++;
        memset(in_right, 0, (size_t)b_codes);
        memset(in_left, 0, (size_t)a_codes);
        counts[3 * row] = common;
        counts[3 * row + 1] = moved;
        counts[3 * row + 2] = prefix;
    }
}

/* Write to `common` how many keys the two bags of each row have in common, each as often as the bag that has it
 * less often. `slots` and `slot_counts` have `slot_count` places, a power of two above the number of keys of each
 * right bag, and the counts come as zeros. */
EXPORT void olapdb_common_keys(const uint64_t *left, const int64_t *left_offsets, const uint64_t *right,
                               const int64_t *right_offsets, int64_t rows, uint64_t *slots, int32_t *slot_counts,
                               int64_t slot_count, int64_t *common) {
    uint64_t mask = (uint64_t)slot_count - 1;
    for (int64_t row = 0; row < rows; row++) {
        int64_t start = right_offsets[row], stop = right_offsets[row + 1], both = 0;
        /* a slot that was taken has a count of its keys plus one, so that it stays taken when all are matched */
        for (int64_t at = start; at < stop; at++) {
            uint64_t place = (right[at] * 0x9E3779B97F4A7C15ull >> 32) & mask;
            while (slot_counts[place] && slots[place] != right[at]) place = (place + 1) & mask;
            slots[place] = right[at];
            slot_counts[place] += slot_counts[place] ? 1 : 2;
        }
        for (int64_t at = left_offsets[row]; at < left_offsets[row + 1]; at++) {
            uint64_t place = (left[at] * 0x9E3779B97F4A7C15ull >> 32) & mask;
            while (slot_counts[place] && slots[place] != left[at]) place = (place + 1) & mask;
            if (slot_counts[place] > 1) {
                slot_counts[place]--;
                both++;
            }
        }
        /* a walk from the place of each key frees its slot: all between the two were taken too */
        for (int64_t at = start; at < stop; at++) {
            uint64_t place = (right[at] * 0x9E3779B97F4A7C15ull >> 32) & mask;
            for (; slot_counts[place]; place = (place + 1) & mask) slot_counts[place] = 0;
        }
        common[row] = both;
    }
}
