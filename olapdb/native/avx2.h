/* Whether the processor has AVX2, for loops that the compiler cannot vectorise. The loops beside each call give the
 * same. */

#ifndef OLAPDB_AVX2_H
#define OLAPDB_AVX2_H

#include "kernels.h"

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && !defined(__clang__)
#include <immintrin.h>

#define HAS_AVX2_FORMS 1
#define AVX2 __attribute__((target("avx2")))

static int has_avx2;

/* Run before any kernel can be called. */
__attribute__((constructor)) static void ask_processor(void) {
    __builtin_cpu_init();
    has_avx2 = __builtin_cpu_supports("avx2") != 0;
}
#endif

#endif
