/* Decimals whose digits fit 64 bits: arithmetic, and their form with 64 bits beside that with 128. */

#include "kernels.h"

enum { PLUS, MINUS, MULTIPLY };
enum { STEP_ROWS = 256 };

/* Write the integers of rows `row`… times `power` as 64-bit integers; return 0 if one does not fit. */
static ALWAYS_INLINE int widen(int type, const void *values, int64_t row, int64_t rows, int64_t power, int64_t *wide) {
    uint64_t lost = 0;
#define CASE(NAME, T)                                                                               \
    case NAME:                                                                                      \
        for (int64_t at = 0; at < rows; at++) wide[at] = (int64_t)((const T *)values)[row + at];    \
        break;
    switch (type) {
        CASE(INT8, int8_t)
        CASE(UINT8, uint8_t)
        CASE(INT16, int16_t)
        CASE(UINT16, uint16_t)
        CASE(INT32, int32_t)
        CASE(UINT32, uint32_t)
        CASE(INT64, int64_t)
        case UINT64:
            for (int64_t at = 0; at < rows; at++) {
                wide[at] = ((const int64_t *)values)[row + at];
                lost |= (uint64_t)wide[at] >> 63;
            }
            break;
        case DECIMAL128:
            for (int64_t at = 0; at < rows; at++) { /* two words, the lower one first */
                int64_t words[2];
                memcpy(words, (const char *)values + 16 * (row + at), sizeof words);
                wide[at] = words[0];
                lost |= (uint64_t)(words[1] ^ (words[0] >> 63));
            }
            break;
        default: return 0;
    }
#undef CASE
    if (power != 1)
        for (int64_t at = 0; at < rows; at++) {
            int64_t product;
            lost |= (uint64_t)__builtin_mul_overflow(wide[at], power, &product);
            wide[at] = product;
        }
    return lost == 0;
}

/* Write the sums, differences or products of two columns without their points; return 0 if an operand does
 * not fit 64 bits, or a result does not fit `bits` (32, 64 or 128).  Each column is multiplied by its power
 * of ten first.  A column whose step is 0 has one value for all rows. */
EXPORT int olapdb_combine_decimals(int operation, int left_type, const void *left, int left_step,
                                   int64_t left_power, int right_type, const void *right, int right_step,
                                   int64_t right_power, int64_t rows, int bits, void *results) {
    int64_t lefts[STEP_ROWS], rights[STEP_ROWS];
    for (int64_t row = 0; row < rows; row += STEP_ROWS) {
        int64_t count = rows - row < STEP_ROWS ? rows - row : STEP_ROWS;
        uint64_t lost = 0;
        if (!widen(left_type, left, row * left_step, left_step ? count : 1, left_power, lefts)) return 0;
        if (!widen(right_type, right, row * right_step, right_step ? count : 1, right_power, rights)) return 0;
        if (!left_step)
            for (int64_t at = 1; at < count; at++) lefts[at] = lefts[0];
        if (!right_step)
            for (int64_t at = 1; at < count; at++) rights[at] = rights[0];
#define LOOP(RESULT)                                                                                \
    for (int64_t at = 0; at < count; at++) {                                                        \
        int128_t result = (RESULT);                                                                 \
        int64_t words[2] = {(int64_t)result, (int64_t)(result >> 64)};                              \
        if (bits <= 64) lost |= (uint64_t)(words[1] ^ (words[0] >> 63));                            \
        if (bits <= 32) lost |= (uint64_t)(words[0] ^ (int64_t)(int32_t)words[0]);                  \
        memcpy((char *)results + 16 * (row + at), words, sizeof words);                             \
    }
        switch (operation) {
            case PLUS: LOOP((int128_t)lefts[at] + rights[at]) break;
            case MINUS: LOOP((int128_t)lefts[at] - rights[at]) break;
            default: LOOP((int128_t)lefts[at] * rights[at]) break;
        }
#undef LOOP
        if (lost) return 0;
    }
    return 1;
}

/* Write decimals of 64 bits as decimals of 128 bits, two words each, the lower one first. */
EXPORT void olapdb_lengthen_decimals(const int64_t *values, int64_t rows, int64_t *words) {
    for (int64_t row = 0; row < rows; row++) {
        words[2 * row] = values[row];
        words[2 * row + 1] = values[row] >> 63;
    }
}

/* Write decimals of 128 bits that fit 64 bits as such. */
EXPORT void olapdb_shorten_decimals(const int64_t *words, int64_t rows, int64_t *values) {
    for (int64_t row = 0; row < rows; row++) values[row] = words[2 * row];
}

/* Return the bits that 64-bit integers need besides the sign. */
static ALWAYS_INLINE int used_bits(const int64_t *values, int64_t rows) {
    uint64_t used = 0;
    for (int64_t at = 0; at < rows; at++) used |= SIGN_ENDS(values[at]);
    return bits_of_sign_ends(used);
}

/* Write the products of two columns; return 0 if one does not fit 64 bits. */
static ALWAYS_INLINE int multiply(const int64_t *left, const int64_t *right, int64_t rows, int64_t *products) {
    uint64_t lost = 0;
    if (used_bits(left, rows) + used_bits(right, rows) < 63) {
        for (int64_t at = 0; at < rows; at++) products[at] = left[at] * right[at];
        return 1;
    }
    for (int64_t at = 0; at < rows; at++) {
        int64_t product;
        lost |= (uint64_t)__builtin_mul_overflow(left[at], right[at], &product);
        products[at] = product;
    }
    return lost == 0;
}

/* Write the sums, or the differences, of two columns; return 0 if one does not fit 64 bits. */
static ALWAYS_INLINE int add(const int64_t *left, const int64_t *right, int64_t rows, int is_minus, int64_t *sums) {
    uint64_t lost = 0;
    if (is_minus)
        for (int64_t at = 0; at < rows; at++) {
            int64_t a = left[at], b = right[at], result = (int64_t)((uint64_t)a - (uint64_t)b);
            lost |= (uint64_t)((a ^ b) & (a ^ result));
            sums[at] = result;
        }
    else
        for (int64_t at = 0; at < rows; at++) {
            int64_t a = left[at], b = right[at], result = (int64_t)((uint64_t)a + (uint64_t)b);
            lost |= (uint64_t)((a ^ result) & (b ^ result));
            sums[at] = result;
        }
    return lost >> 63 == 0;
}

/* The operations of a program; `native/decimals.py` has the same numbers. */
enum { ADD, SUBTRACT, TIMES, COLUMN, CONSTANT, SCALE };
enum { DEPTH_MAX = 8 };

/* Write the values of an expression over columns of integers and decimals, 64 bits each.
 *
 * `steps` is the expression in reverse Polish notation: each step has three numbers, its operation, an operand
 * and the width of its result, 32 or 64.  COLUMN pushes the operand's column, CONSTANT the operand, SCALE
 * multiplies the top by the operand.  `columns` has a type and an address for each column.  Returns 0 if a
 * value does not fit its width, an input does not fit 64 bits, or there are more than DEPTH_MAX constants. */
EXPORT int olapdb_compute_decimals(const int64_t *steps, int64_t count, const int64_t *columns,
                                   int64_t rows, int64_t *results) {
    int64_t memory[DEPTH_MAX][STEP_ROWS], constants[DEPTH_MAX][STEP_ROWS];
    const int64_t *stack[DEPTH_MAX];
    int constant = 0;
    for (const int64_t *step = steps; step < steps + 3 * count; step += 3)
        if (step[0] == CONSTANT) {
            if (constant == DEPTH_MAX) return 0;
            for (int64_t at = 0; at < STEP_ROWS; at++) constants[constant][at] = step[1];
            constant++;
        }
    for (int64_t row = 0; row < rows; row += STEP_ROWS) {
        int64_t size = rows - row < STEP_ROWS ? rows - row : STEP_ROWS;
        int top = -1;
        constant = 0;
        for (const int64_t *step = steps; step < steps + 3 * count; step += 3) {
            int64_t *out, operand = step[1];
            switch (step[0]) {
                case COLUMN: {
                    const int64_t *column = columns + 2 * operand;
                    top++;
                    if (column[0] == INT64) {
                        stack[top] = (const int64_t *)(intptr_t)column[1] + row;
                        for (int64_t at = 0; at < size; at += 64) PREFETCH_AFTER(stack[top] + at);
                        continue;
                    }
                    out = memory[top];
                    if (!widen((int)column[0], (const void *)(intptr_t)column[1], row, size, 1, out)) return 0;
                    break;
                }
                case CONSTANT:
                    stack[++top] = constants[constant++];
                    continue;
                case SCALE: {
                    uint64_t lost = 0;
                    const int64_t *value = stack[top];
                    out = memory[top];
                    for (int64_t at = 0; at < size; at++) {
                        int64_t product;
                        lost |= (uint64_t)__builtin_mul_overflow(value[at], operand, &product);
                        out[at] = product;
                    }
                    if (lost) return 0;
                    break;
                }
                default:
                    top--;
                    out = memory[top];
                    if (step[0] == TIMES) {
                        if (!multiply(stack[top], stack[top + 1], size, out)) return 0;
                    } else if (!add(stack[top], stack[top + 1], size, step[0] == SUBTRACT, out)) {
                        return 0;
                    }
                    if (step[2] == 32 && used_bits(out, size) > 31) return 0;
            }
            stack[top] = out;
        }
        memcpy(results + row, stack[0], (size_t)size * sizeof *results);
    }
    return 1;
}
