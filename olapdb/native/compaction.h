/* Move the values that a mask keeps together, four or eight at a time, where the processor has AVX2. The loop beside the
 * call gives the same. */

#ifndef OLAPDB_COMPACTION_H
#define OLAPDB_COMPACTION_H

#include "avx2.h"

/* Bytes behind the last value that is kept, to which this may write. */
enum { COMPACTION_SLACK = 32 };

#ifdef HAS_AVX2_FORMS
/* Where the bits of a byte are 1, the lowest first; of a half byte, as pairs of 32-bit lanes. */
static uint8_t kept_places[256][8];
static uint32_t kept_pairs[16][8];

__attribute__((constructor)) static void fill_compaction(void) {
    for (int bits = 0; bits < 256; bits++)
        for (int bit = 0, count = 0; bit < 8; bit++)
            if (bits >> bit & 1) kept_places[bits][count++] = (uint8_t)bit;
    for (int bits = 0; bits < 16; bits++)
        for (int lane = 0; lane < 8; lane++)
            kept_pairs[bits][lane] = 2u * kept_places[bits][lane / 2] + (uint32_t)(lane & 1);
}

/* Return whether values of a width are moved here. */
static inline int compacts_wide(int bytes) { return has_avx2 && bytes <= 8; }

/* Write the values of a width from `from` on whose bit is 1, of 64; return their number. COMPACTION_SLACK bytes behind
 * them may be written, too. */
AVX2 static int64_t compact_64(int bytes, const void *from, uint64_t word, void *to) {
    const uint8_t *values = from;
    uint8_t *out = to;
    int64_t kept = __builtin_popcountll(word);
    if (bytes == 8) {
        for (int at = 0; at < 64; at += 4, values += 32, word >>= 4) {
            __m256i four = _mm256_loadu_si256((const __m256i *)(const void *)values);
            __m256i lanes = _mm256_loadu_si256((const __m256i *)(const void *)kept_pairs[word & 15]);
            _mm256_storeu_si256((__m256i *)(void *)out, _mm256_permutevar8x32_epi32(four, lanes));
            out += 8 * __builtin_popcountll(word & 15);
        }
        return kept;
    }
    for (int at = 0; at < 64; at += 8, values += 8 * bytes, word >>= 8) {
        __m128i places = _mm_loadl_epi64((const __m128i *)(const void *)kept_places[word & 255]);
        if (bytes == 4) {
            __m256i eight = _mm256_loadu_si256((const __m256i *)(const void *)values);
            eight = _mm256_permutevar8x32_epi32(eight, _mm256_cvtepu8_epi32(places));
            _mm256_storeu_si256((__m256i *)(void *)out, eight);
        } else if (bytes == 2) {
            __m128i eight = _mm_loadu_si128((const __m128i *)(const void *)values);
            __m128i twice = _mm_unpacklo_epi8(places, places);
            __m128i pairs = _mm_add_epi8(_mm_add_epi8(twice, twice), _mm_set1_epi16(0x0100));
            _mm_storeu_si128((__m128i *)(void *)out, _mm_shuffle_epi8(eight, pairs));
        } else {
            __m128i eight = _mm_loadl_epi64((const __m128i *)(const void *)values);
            _mm_storel_epi64((__m128i *)(void *)out, _mm_shuffle_epi8(eight, places));
        }
        out += bytes * __builtin_popcountll(word & 255);
    }
    return kept;
}
#else
static inline int compacts_wide(int bytes) { return (void)bytes, 0; }

static inline int64_t compact_64(int bytes, const void *from, uint64_t word, void *to) {
    return (void)bytes, (void)from, (void)word, (void)to, 0;
}
#endif

#endif
