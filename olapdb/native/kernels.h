/* What the kernels share. They are plain C11 without Python.h: `library.py` calls them by ctypes.
 *
 * Columns come as Arrow keeps them: the address of the first value, and a validity bitmap (NULL: no
 * row is null) whose bit `bit + row` is 1 where the row has a value. All memory belongs to the caller:
 * no kernel allocates. Nothing here depends on global state, so any number of threads may call a
 * kernel at once. */

#ifndef OLAPDB_KERNELS_H
#define OLAPDB_KERNELS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#error "The kernels need GCC or clang: 128-bit integers and prefetching."
#endif

/* Each kernel is compiled twice where the loader can choose between the two: for processors with AVX2, and for any.
 * The results are the same: no operations of floats are joined or reordered. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && !defined(__clang__)
#define EXPORT __attribute__((visibility("default"), target_clones("avx2", "default")))
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* A function that is compiled with each kernel that calls it, so that it has the kernel's instructions. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* The types of values; `library.py` has the same numbers. */
enum { INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FLOAT32, FLOAT64, DECIMAL128 };

typedef __int128 int128_t;

#define FOR_INTEGERS(X)                                                                             \
    X(INT8, int8_t)                                                                                 \
    X(UINT8, uint8_t)                                                                               \
    X(INT16, int16_t)                                                                               \
    X(UINT16, uint16_t)                                                                             \
    X(INT32, int32_t)                                                                               \
    X(UINT32, uint32_t)                                                                             \
    X(INT64, int64_t)                                                                               \
    X(UINT64, uint64_t)

/* Ask for the values that come 4 KiB after a block of 64. Loops that also read at random places keep the processor
 * from seeing in time that it will need them. An address behind the last value does no harm. */
#define PREFETCH_AFTER(block)                                                                       \
    for (size_t byte = 0; byte < 64 * sizeof *(block); byte += 64)                                  \
    PREFETCH((const char *)(const void *)(block) + 4096 + byte)

static inline int is_valid(const uint8_t *validity, int64_t bit, int64_t row) {
    int64_t at = bit + row;
    return validity == NULL || (validity[at >> 3] >> (at & 7)) & 1;
}

/* Bit w is the highest one that is set where a 64-bit integer needs w bits besides the sign, none for 0: the
 * bits that differ from the one below. The bits of many values together tell what the widest one needs. */
#define SIGN_ENDS(value) ((uint64_t)(value) ^ ((uint64_t)(value) << 1))

static inline int bits_of_sign_ends(uint64_t ends) { return ends ? 63 - __builtin_clzll(ends) : 0; }

/* Compare texts by their bytes: below 0, 0 or above 0. */
static inline int compare_texts(const uint8_t *left, int64_t left_bytes, const uint8_t *right,
                                int64_t right_bytes) {
    int64_t shared = left_bytes < right_bytes ? left_bytes : right_bytes;
    int order;
    if (shared > 0 && left[0] != right[0]) return left[0] < right[0] ? -1 : 1;
    order = shared > 0 ? memcmp(left, right, (size_t)shared) : 0;
    if (order != 0) return order;
    return left_bytes < right_bytes ? -1 : left_bytes > right_bytes;
}

static inline uint64_t load_64(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

static inline uint64_t load_32(const uint8_t *at) {
    uint32_t word;
    memcpy(&word, at, 4);
    return word;
}

/* Return all bytes of a text of at most 8 as a number; no byte beyond it is read. */
static inline uint64_t short_word(const uint8_t *text, int64_t size) {
    if (size >= 8) return load_64(text);
    if (size >= 4) return load_32(text) | load_32(text + size - 4) << 8 * (size - 4);
    if (size == 0) return 0;
    return text[0] | (uint64_t)text[size >> 1] << 8 * (size >> 1) | (uint64_t)text[size - 1] << 8 * (size - 1);
}

/* Return a text of at most 8 bytes as a number. Up to `end` may be read. */
static ALWAYS_INLINE uint64_t whole_word(const uint8_t *text, int64_t size, const uint8_t *end) {
    if (end - text < 8) return short_word(text, size);
    return load_64(text) & (size < 8 ? ((uint64_t)1 << 8 * size) - 1 : ~(uint64_t)0);
}

/* A text of at most 8 bytes that was met lately, as a number, and its code. A table of 256 of them fits a processor's
 * first cache. */
enum { RECENT_BITS = 8 };

typedef struct {
    uint64_t word;
    int64_t size, code;
} ShortText;

/* Sort by the digits, of `bits` bits (at most 11), of the distances from `low`, the least significant first;
 * `span` is the largest distance. Return where the sorted words are: in `words` or in `others`. */
static inline uint64_t *sorted_by_digits(uint64_t *words, int64_t count, uint64_t low, uint64_t span, int bits,
                                         uint64_t *others) {
    uint64_t *from = words, *to = others, mask = ((uint64_t)1 << bits) - 1;
    int64_t starts[1 << 11];
    for (int shift = 0; shift < 64 && span >> shift != 0; shift += bits) {
        int64_t start = 0;
        memset(starts, 0, (mask + 1) * sizeof *starts);
        for (int64_t at = 0; at < count; at++) starts[(from[at] - low) >> shift & mask]++;
        for (uint64_t digit = 0; digit <= mask; digit++) {
            int64_t size = starts[digit];
            starts[digit] = start;
            start += size;
        }
        for (int64_t at = 0; at < count; at++) to[starts[(from[at] - low) >> shift & mask]++] = from[at];
        uint64_t *swapped = from;
        from = to;
        to = swapped;
    }
    return from;
}

/* splitmix64 (Steele, Lea, Flood 2014): a bijection that spreads near keys over all bits. */
static inline uint64_t mix(uint64_t key) {
    key ^= key >> 30;
    key *= 0xBF58476D1CE4E5B9u;
    key ^= key >> 27;
    key *= 0x94D049BB133111EBu;
    return key ^ (key >> 31);
}

#endif
