/* Private to image/: Huffman codes of JPEG (ITU-T T.81, annexes C, F and G), and the entropy-coded bytes without their
 * stuffing. Whatever is out of order is left to libjpeg: nothing here makes an error text. */
#ifndef SPK_IMAGE_JPEG_HUFFMAN_H
#define SPK_IMAGE_JPEG_HUFFMAN_H

#include <shardpack/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPK_HUFFMAN_PEEK 11 /* bits looked up at once */

/* What a table is for: DC; AC of a sequential scan; of progressive ones AC the first time, and finer. */
typedef enum spk_huffman_kind {
    SPK_HUFFMAN_DC = 0,
    SPK_HUFFMAN_AC = 1,
    SPK_HUFFMAN_AC_FIRST = 2,
    SPK_HUFFMAN_AC_FINER = 3
} spk_huffman_kind;

/* What a code stands for. bits: of the code and of the number behind it together; code_bits: of the code alone; size:
 * of the number; advance: 1 + zeros skipped, SPK_HUFFMAN_END for the end of the block, 0 for DC; SPK_HUFFMAN_BAD for no
 * code at all. Behind the end of a block in a progressive scan stand the lower bits of the number of blocks. */
#define SPK_HUFFMAN_ENTRY(bits, code_bits, size, advance)                                                              \
    ((uint32_t)(bits) | (uint32_t)(code_bits) << 8 | (uint32_t)(size) << 16 | (uint32_t)(advance) << 24)
#define SPK_HUFFMAN_LONG 0x80u /* an entry's first byte has this bit: the code is longer than SPK_HUFFMAN_PEEK */
#define SPK_HUFFMAN_END 128u
#define SPK_HUFFMAN_BAD 64u
#define SPK_HUFFMAN_BITS_MAX 30u /* of a code and its number */

/* Two codes at once, as AC needs most of the time: one with its number, which is then known (`value`, at `place` places
 * further on, after `first` bits), and the code behind it, whose number may reach beyond what was looked up. The lower
 * half is an entry for both together, SPK_HUFFMAN_LONG as there. A code that does not fit before another one is the
 * second; then first and value are 0 and place is 1, where the zero written does no harm. */
#define SPK_HUFFMAN_PAIR(entry, place, first, value)                                                                   \
    ((uint64_t)(entry) | (uint64_t)(place) << 32 | (uint64_t)(first) << 40 | (uint64_t)(uint16_t)(value) << 48)
#define SPK_HUFFMAN_RUN_MAX 16u /* places that a number is further on than the one before, at most */

typedef struct spk_huffman {
    uint64_t pair[1 << SPK_HUFFMAN_PEEK]; /* of AC */
    uint32_t entry[1 << SPK_HUFFMAN_PEEK];
    uint32_t symbol[256];          /* entries in the order of the codes */
    int32_t max[17];               /* largest code of each length, -1 without */
    int32_t offset[17];            /* from a code to its place in symbol */
    uint8_t bits[17], values[256]; /* as given */
    spk_huffman_kind kind;
    bool made;
} spk_huffman;

/* From a DHT segment's contents: bits[1 .. 16] and values, 256 of them. False if it is out of order, or has symbols
 * that no encoder needs; in AC of progressive scans these are BAD. Costs nothing for the table that is there already.
 */
bool spk_huffman_make(spk_huffman *h, const uint8_t bits[17], const uint8_t values[256], spk_huffman_kind kind);

/* The entry of the code that the upper bits of `window` start with. */
uint32_t spk_huffman_find(const spk_huffman *h, uint64_t window);

/* Entropy-coded bytes in a window of memory, with SPK_FEED_SLACK zero bytes behind the last one. */
#define SPK_FEED_SLACK 2048u
#define SPK_FEED_BYTES (32u << 10)
typedef struct spk_feed {
    const uint8_t *src, *end; /* what has not been looked at */
    uint8_t *bytes;           /* SPK_FEED_BYTES and the slack */
    size_t len;
    bool closed; /* no more until the marker, or the end of the file, where src is now */
    bool cut;    /* closed not by a marker: libjpeg would read on, and perhaps complain of what comes */
} spk_feed;

/* The byte after the last SOS segment, and the end of the file. */
SPK_CHECK spk_status spk_feed_begin(spk_feed *f, const uint8_t *src, const uint8_t *end, spk_error *err);
void spk_feed_free(spk_feed *f);
/* Moves the bytes from *p on to the front and adds more; *p stays at the same byte. */
void spk_feed_more(spk_feed *f, const uint8_t **p);
/* Goes past the marker RSTn; false if it is not the one that is next. */
bool spk_feed_restart(spk_feed *f, uint32_t n);
/* Bytes that count: all up to a marker; else as many as libjpeg comes to without looking ahead of them. */
size_t spk_feed_usable(const spk_feed *f);

#endif
