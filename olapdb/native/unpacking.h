/* Unpack values of few bits, eight at a time, where the processor has AVX2. The loops beside each call give the same. */

#ifndef OLAPDB_UNPACKING_H
#define OLAPDB_UNPACKING_H

#include "avx2.h"

#ifdef HAS_AVX2_FORMS
/* With more bits a value and the bits before it may not fit into four bytes. */
enum { WIDE_BITS_MAX = 25 };

/* Of eight values of a width: the four bytes that have each one, counted from the first byte of the first and of the
 * fifth value, and the bits before it in these. Filled before any kernel can be called. */
static uint8_t bytes_of_values[WIDE_BITS_MAX + 1][32];
static uint32_t bits_before_values[WIDE_BITS_MAX + 1][8];

__attribute__((constructor)) static void fill_unpacking(void) {
    for (int width = 0; width <= WIDE_BITS_MAX; width++)
        for (int value = 0; value < 8; value++) {
            int bit = value < 4 ? value * width : value * width - (4 * width & ~7);
            bits_before_values[width][value] = (uint32_t)bit & 7;
            for (int byte = 0; byte < 4; byte++)
                bytes_of_values[width][4 * value + byte] = (uint8_t)((bit >> 3) + byte);
        }
}

/* Return whether values of a width are unpacked here. Equal steps, of no bits, are added up by the loops. */
static inline int unpacks_wide(int width) { return has_avx2 && width > 0 && width <= WIDE_BITS_MAX; }

/* What unpacks eight values of one width. */
typedef struct {
    __m256i bytes, before, mask;
    int64_t fifth;
} Unpacking;

AVX2 static inline Unpacking unpacking_of(int width) {
    return (Unpacking){
        _mm256_loadu_si256((const __m256i *)(const void *)bytes_of_values[width]),
        _mm256_loadu_si256((const __m256i *)(const void *)bits_before_values[width]),
        _mm256_set1_epi32((int)(((uint32_t)1 << width) - 1)),
        4 * width >> 3,
    };
}

/* Unpack eight values. 28 bytes from `packed` on may be read. */
AVX2 static inline __m256i unpack_8(const uint8_t *packed, const Unpacking *by) {
    __m128i first = _mm_loadu_si128((const __m128i *)(const void *)packed);
    __m128i fifth = _mm_loadu_si128((const __m128i *)(const void *)(packed + by->fifth));
    __m256i words = _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(first), fifth, 1), by->bytes);
    return _mm256_and_si256(_mm256_srlv_epi32(words, by->before), by->mask);
}

/* Unpack values, `count` of them, a multiple of 8; return the greatest one. */
AVX2 static inline uint32_t unpack_wide(const uint8_t *packed, int width, int64_t count, uint32_t *to) {
    Unpacking by = unpacking_of(width);
    __m256i most = _mm256_setzero_si256();
    uint32_t lanes[8], greatest = 0;
    for (int64_t row = 0; row < count; row += 8, packed += width) {
        __m256i values = unpack_8(packed, &by);
        most = _mm256_max_epu32(most, values);
        _mm256_storeu_si256((__m256i *)(void *)(to + row), values);
    }
    _mm256_storeu_si256((__m256i *)(void *)lanes, most);
    for (int lane = 0; lane < 8; lane++) greatest = lanes[lane] > greatest ? lanes[lane] : greatest;
    return greatest;
}

/* Add up differences, `count` of them, a multiple of 8, each `least` more than what is packed, and store the sums as
 * numbers of 32 bits. */
AVX2 static inline uint64_t add_up_wide_32(const uint8_t *packed, int width, int64_t count, uint64_t least, uint64_t value,
                                    uint8_t *to) {
    Unpacking by = unpacking_of(width);
    const __m256i step = _mm256_set1_epi32((int)(uint32_t)least), zeros = _mm256_setzero_si256();
    const __m256i fourth = _mm256_set1_epi32(3), eighth = _mm256_set1_epi32(7);
    __m256i before = _mm256_set1_epi32((int)(uint32_t)value);
    for (int64_t row = 0; row < count; row += 8, packed += width) {
        __m256i sums = _mm256_add_epi32(unpack_8(packed, &by), step);
        sums = _mm256_add_epi32(sums, _mm256_slli_si256(sums, 4));
        sums = _mm256_add_epi32(sums, _mm256_slli_si256(sums, 8));
        sums = _mm256_add_epi32(sums, _mm256_blend_epi32(zeros, _mm256_permutevar8x32_epi32(sums, fourth), 0xF0));
        _mm256_storeu_si256((__m256i *)(void *)(to + 4 * row), _mm256_add_epi32(sums, before));
        before = _mm256_add_epi32(before, _mm256_permutevar8x32_epi32(sums, eighth));
    }
    return (uint32_t)_mm256_extract_epi32(before, 0);
}

/* Return the sums of four differences, each with those before it. */
AVX2 static inline __m256i sums_of_4(__m256i steps) {
    __m256i sums = _mm256_add_epi64(steps, _mm256_slli_si256(steps, 8));
    return _mm256_add_epi64(
        sums, _mm256_blend_epi32(_mm256_setzero_si256(), _mm256_permute4x64_epi64(sums, 0x55), 0xF0));
}

/* Add up differences as above, to numbers of 64 bits. */
AVX2 static inline uint64_t add_up_wide_64(const uint8_t *packed, int width, int64_t count, uint64_t least, uint64_t value,
                                    uint8_t *to) {
    Unpacking by = unpacking_of(width);
    const __m256i step = _mm256_set1_epi64x((long long)least);
    __m256i before = _mm256_set1_epi64x((long long)value);
    for (int64_t row = 0; row < count; row += 8, packed += width) {
        __m256i values = unpack_8(packed, &by);
        __m256i low = sums_of_4(_mm256_add_epi64(_mm256_cvtepu32_epi64(_mm256_castsi256_si128(values)), step));
        __m256i high = sums_of_4(_mm256_add_epi64(_mm256_cvtepu32_epi64(_mm256_extracti128_si256(values, 1)), step));
        _mm256_storeu_si256((__m256i *)(void *)(to + 8 * row), _mm256_add_epi64(low, before));
        before = _mm256_add_epi64(before, _mm256_permute4x64_epi64(low, 0xFF));
        _mm256_storeu_si256((__m256i *)(void *)(to + 8 * row + 32), _mm256_add_epi64(high, before));
        before = _mm256_add_epi64(before, _mm256_permute4x64_epi64(high, 0xFF));
    }
    return (uint64_t)_mm256_extract_epi64(before, 0);
}
#else
static inline int unpacks_wide(int width) { return (void)width, 0; }

static inline uint32_t unpack_wide(const uint8_t *packed, int width, int64_t count, uint32_t *to) {
    return (void)packed, (void)width, (void)count, (void)to, 0;
}

static inline uint64_t add_up_wide_32(const uint8_t *packed, int width, int64_t count, uint64_t least, uint64_t value,
                                      uint8_t *to) {
    return (void)packed, (void)width, (void)count, (void)least, (void)to, value;
}

static inline uint64_t add_up_wide_64(const uint8_t *packed, int width, int64_t count, uint64_t least, uint64_t value,
                                      uint8_t *to) {
    return add_up_wide_32(packed, width, count, least, value, to);
}
#endif

#endif
