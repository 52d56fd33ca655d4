/* What a server's reply says, taken from its header lines. Pure: bytes in, numbers out; every line is untrusted. */
#ifndef SPK_IO_REPLY_H
#define SPK_IO_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPK_REPLY_UNKNOWN UINT64_MAX

typedef struct spk_reply {
    int status;
    bool has_range;           /* Content-Range: bytes from-last/total */
    uint64_t from, to, total; /* to is behind the last; total may be UNKNOWN */
    uint64_t length;          /* Content-Length, or UNKNOWN */
    uint32_t retry_after;     /* seconds; 0: not said */
    int64_t date, retry_date; /* seconds since 1970; 0: not said. The server's clock tells how long it is until then */
    bool is_html;
    bool is_coded;   /* Content-Encoding: compressed, though nobody asked for that */
    char etag[96];   /* "": none; one that is too long counts as none */
    char region[32]; /* x-amz-bucket-region */
} spk_reply;

/* One header line, with or without its line end. A status line begins a new reply. */
void spk_reply_line(spk_reply *r, const char *line, size_t n);

#endif
