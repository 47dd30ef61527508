/* IPv4 addresses as texts. */

#include "kernels.h"

/* Write the texts of the addresses, such as 10.0.0.1, one behind the other, and where each begins and the last one
 * ends. `texts` has room for 15 bytes a row. The values of null rows are arbitrary. */
EXPORT void olapdb_ipv4_texts(const uint32_t *addresses, int64_t rows, int32_t *offsets, uint8_t *texts) {
    uint8_t *to = texts;
    for (int64_t row = 0; row < rows; row++) {
        offsets[row] = (int32_t)(to - texts);
        for (int shift = 24; shift >= 0; shift -= 8) {
            uint32_t octet = addresses[row] >> shift & 255;
            if (octet >= 100) *to++ = (uint8_t)('0' + octet / 100);
            if (octet >= 10) *to++ = (uint8_t)('0' + octet / 10 % 10);
            *to++ = (uint8_t)('0' + octet % 10);
            if (shift) *to++ = '.';
        }
    }
    offsets[rows] = (int32_t)(to - texts);
}
