/* Numbers of Parquet that those who read and those who write pages share.
 * https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift */

#ifndef OLAPDB_PAGE_FORMAT_H
#define OLAPDB_PAGE_FORMAT_H

/* The codecs, by which Python calls the kernels; Parquet has other numbers. */
enum { UNCOMPRESSED, LZ4_RAW };
enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2 };
enum { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, DELTA_BINARY_PACKED = 5, RLE_DICTIONARY = 8 };

/* Bytes behind a page, compressed or not, that may be read or written to: copies are made 16 or 32 bytes at a time. */
#define SLACK 64

#endif
