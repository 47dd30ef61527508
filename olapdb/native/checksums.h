/* The CRC-32 of zlib, which Parquet has of each page. */

#ifndef OLAPDB_CHECKSUMS_H
#define OLAPDB_CHECKSUMS_H

#include "kernels.h"

/* Row n has the checksum of a byte that n zero bytes follow. Filled before any kernel can be called. */
static uint32_t crc_tables[8][256];

__attribute__((constructor)) static void fill_crc_tables(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0xEDB88320u & (0u - (crc & 1)));
        crc_tables[0][byte] = crc;
    }
    for (int row = 1; row < 8; row++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = crc_tables[row - 1][byte];
            crc_tables[row][byte] = before >> 8 ^ crc_tables[0][before & 255];
        }
}

/* Eight bytes at a time, by tables. */
static uint32_t crc_by_tables(uint32_t crc, const uint8_t *bytes, int64_t size) {
    for (; size >= 8; bytes += 8, size -= 8) {
        uint32_t low, high;
        memcpy(&low, bytes, 4);
        memcpy(&high, bytes + 4, 4);
        low ^= crc;
        crc = crc_tables[7][low & 255] ^ crc_tables[6][low >> 8 & 255] ^ crc_tables[5][low >> 16 & 255] ^
              crc_tables[4][low >> 24] ^ crc_tables[3][high & 255] ^ crc_tables[2][high >> 8 & 255] ^
              crc_tables[1][high >> 16 & 255] ^ crc_tables[0][high >> 24];
    }
    for (; size > 0; bytes++, size--) crc = crc >> 8 ^ crc_tables[0][(crc ^ *bytes) & 255];
    return crc;
}

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && !defined(__clang__)
#include <immintrin.h>

#define CLMUL __attribute__((target("pclmul,sse4.1")))

/* Multiply both halves of `sum` by the factors, and add them to the next 16 bytes. */
CLMUL static inline __m128i folded(__m128i sum, __m128i factors, __m128i next) {
    __m128i low = _mm_clmulepi64_si128(sum, factors, 0x00);
    __m128i high = _mm_clmulepi64_si128(sum, factors, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* 64 bytes at a time, by multiplication without carries: Gopal et al., "Fast CRC Computation for Generic Polynomials
 * Using PCLMULQDQ Instruction", Intel 2009. `size` is a multiple of 16, 64 at least. */
CLMUL static uint32_t crc_by_products(uint32_t crc, const uint8_t *bytes, int64_t size) {
    const __m128i by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i by_8 = _mm_set_epi64x(0, 0x0163cd6124);
    const __m128i polynomial = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i words = _mm_setr_epi32(~0, 0, ~0, 0);
    const __m128i *from = (const __m128i *)(const void *)bytes;
    __m128i a = _mm_xor_si128(_mm_loadu_si128(from), _mm_cvtsi32_si128((int)crc));
    __m128i b = _mm_loadu_si128(from + 1), c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3), carried;
    for (from += 4, size -= 64; size >= 64; from += 4, size -= 64) {
        a = folded(a, by_64, _mm_loadu_si128(from));
        b = folded(b, by_64, _mm_loadu_si128(from + 1));
        c = folded(c, by_64, _mm_loadu_si128(from + 2));
        d = folded(d, by_64, _mm_loadu_si128(from + 3));
    }
    a = folded(folded(folded(a, by_16, b), by_16, c), by_16, d);
    for (; size >= 16; from++, size -= 16) a = folded(a, by_16, _mm_loadu_si128(from));
    a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by_16, 0x10));
    a = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(a, words), by_8, 0x00), _mm_srli_si128(a, 4));
    carried = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(a, words), polynomial, 0x10), words);
    a = _mm_xor_si128(a, _mm_clmulepi64_si128(carried, polynomial, 0x00));
    return (uint32_t)_mm_extract_epi32(a, 1);
}

static uint32_t crc32_of(const uint8_t *bytes, int64_t size) {
    uint32_t crc = ~0u;
    if (size >= 64 && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1")) {
        int64_t even = size & ~(int64_t)15;
        crc = crc_by_products(crc, bytes, even);
        bytes += even;
        size -= even;
    }
    return ~crc_by_tables(crc, bytes, size);
}
#else
static uint32_t crc32_of(const uint8_t *bytes, int64_t size) { return ~crc_by_tables(~0u, bytes, size); }
#endif

#endif
