/* zstd as a container of Huffman codes: matches as short as they come here only cost, bytes and time, so none are
 * looked for; where the blocks are cut matters most. One part a block at first, then the pair of neighbours that gains
 * most is joined until none gains. */
#include "coef/pack.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/error.h"

#define PARTS_MAX 128u
#define LOGS 4096u
#define BLOCK_MAX (1 << 17)
#define LITERALS_MODE ZSTD_c_experimentalParam5 /* ZSTD_c_literalCompressionMode; 1: always with Huffman codes */

typedef struct part {
    size_t begin, end;
    size_t before, next; /* neighbours; PARTS_MAX: none */
    uint32_t counts[256];
    int64_t cost; /* in 1/16 bytes */
    int64_t gain; /* of joining it with the next one; 0 without */
} part;

struct spk_coef_packer {
    ZSTD_CCtx *in;
    ZSTD_DCtx *out;
    uint32_t logs[LOGS];  /* log2(i) in 1/4096 */
    uint32_t times[LOGS]; /* i * log2(i) */
    int64_t more;         /* what decoding a block more is worth, in 1/16 bytes */
    part parts[PARTS_MAX];
};

/* log2 of an integer by squaring: 12 bits behind the point, rounded down. */
static uint32_t log2_of(uint32_t v)
{
    uint32_t whole = 31 - (uint32_t)__builtin_clz(v), fraction = 0;
    uint64_t x = (uint64_t)v << (31 - whole); /* 1 to 2, times 2^31 */
    for (int i = 0; i < 12; i++) {
        x = x * x >> 31;
        fraction = fraction << 1 | (uint32_t)(x >> 32);
        x >>= x >> 32;
    }
    return whole << 12 | fraction;
}

spk_status spk_coef_packer_new(spk_coef_packer **out, spk_error *err)
{
    spk_coef_packer *p = calloc(1, sizeof *p);
    if (!p)
        return spk_error_nomem(err, sizeof *p);
    for (uint32_t i = 1; i < LOGS; i++) {
        p->logs[i] = log2_of(i);
        p->times[i] = i * p->logs[i];
    }
    *out = p;
    return SPK_OK;
}

void spk_coef_packer_free(spk_coef_packer *p)
{
    if (!p)
        return;
    ZSTD_freeCCtx(p->in);
    ZSTD_freeDCtx(p->out);
    free(p);
}

/* v * log2(v) in 1/4096. */
static inline uint64_t weigh(const spk_coef_packer *p, uint32_t v)
{
    if (__builtin_expect(v < LOGS, 1))
        return p->times[v];
    uint32_t shift = 20 - (uint32_t)__builtin_clz(v);
    return (uint64_t)v * (p->logs[v >> shift] + (shift << 12));
}

uint64_t spk_coef_entropy(const spk_coef_packer *p, const uint32_t *counts, uint32_t n)
{
    uint64_t sum = 0;
    uint32_t all = 0;
    for (size_t i = 0; i < n; i++) {
        all += counts[i];
        sum += weigh(p, counts[i]);
    }
    return weigh(p, all) - sum;
}

/* Bytes of a block, in sixteenths: its symbols, at least a bit each, and the code; or as they are. The symbols are
 * those of a and, unless it is NULL, of b. */
static int64_t block_cost(const spk_coef_packer *p, const part *a, const part *b)
{
    static const uint32_t none[256] = {0};
    const uint32_t *others = b ? b->counts : none;
    uint64_t sum = 0, all = a->end - a->begin + (b ? b->end - b->begin : 0);
    int64_t kinds = 0;
    for (size_t i = 0; i < 256; i++) {
        uint32_t n = a->counts[i] + others[i];
        sum += weigh(p, n);
        kinds += n > 0;
    }
    if (kinds <= 1)
        return 4 * 16;
    int64_t coded = (int64_t)((weigh(p, (uint32_t)all) - sum) / 2048 * 253 / 250), least = (int64_t)all * 2;
    coded = (coded > least ? coded : least) + 20 * 16 + kinds * 10;
    int64_t plain = ((int64_t)all + 3) * 16;
    return coded < plain ? coded : plain;
}

/* Equal bytes often follow each other, and to count one up twice in a row takes long: hence four tables. */
static void count(const uint8_t *data, size_t n, uint32_t counts[256])
{
    uint32_t parts[4][256];
    size_t i = 0;
    memset(parts, 0, sizeof parts);
    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            parts[k][data[i + k]]++;
    for (; i < n; i++)
        parts[0][data[i]]++;
    for (i = 0; i < 256; i++)
        counts[i] = parts[0][i] + parts[1][i] + parts[2][i] + parts[3][i];
}

static void set_gain(spk_coef_packer *p, part *a)
{
    const part *b = a->next < PARTS_MAX ? &p->parts[a->next] : NULL;
    a->gain = b ? a->cost + b->cost + p->more - block_cost(p, a, b) : 0;
}

/* A part and the next one become one. */
static void join(spk_coef_packer *p, size_t k)
{
    part *a = &p->parts[k], *b = &p->parts[a->next];
    for (size_t i = 0; i < 256; i++)
        a->counts[i] += b->counts[i];
    a->end = b->end;
    a->next = b->next;
    if (a->next < PARTS_MAX)
        p->parts[a->next].before = k;
    a->cost = block_cost(p, a, NULL);
    set_gain(p, a);
    if (a->before < PARTS_MAX)
        set_gain(p, &p->parts[a->before]);
}

/* Parts 0, its next, and so on are what the blocks will hold. */
static void cut(spk_coef_packer *p, const uint8_t *data, const size_t *borders, size_t n)
{
    part *parts = p->parts;
    for (size_t k = 0; k < n; k++) {
        parts[k].begin = k == 0 ? 0 : borders[k - 1];
        parts[k].end = borders[k];
        parts[k].before = k == 0 ? PARTS_MAX : k - 1;
        parts[k].next = k + 1 == n ? PARTS_MAX : k + 1;
        count(data + parts[k].begin, parts[k].end - parts[k].begin, parts[k].counts);
        parts[k].cost = block_cost(p, &parts[k], NULL);
    }
    for (size_t k = 0; k < n; k++)
        set_gain(p, &parts[k]);
    for (;;) {
        size_t best = 0;
        for (size_t k = 0; k < PARTS_MAX; k = parts[k].next)
            best = parts[k].gain > parts[best].gain ? k : best;
        if (parts[best].gain <= 0)
            return;
        join(p, best);
    }
}

static spk_status set_up(spk_coef_packer *p, size_t content, spk_error *err)
{
    /* A target as long as a block: the search steps over all of it. That alone would leave the bytes without codes. */
    static const struct {
        ZSTD_cParameter name;
        int value;
    } set[] = {{ZSTD_c_compressionLevel, 1}, {ZSTD_c_strategy, ZSTD_fast}, {ZSTD_c_targetLength, BLOCK_MAX},
               {LITERALS_MODE, 1},           {ZSTD_c_hashLog, 6},          {ZSTD_c_chainLog, 6},
               {ZSTD_c_windowLog, 17},       {ZSTD_c_contentSizeFlag, 1},  {ZSTD_c_checksumFlag, 0},
               {ZSTD_c_dictIDFlag, 0}};
    if (!p->in && !(p->in = ZSTD_createCCtx()))
        return spk_error_nomem(err, sizeof *p);
    size_t r = ZSTD_CCtx_reset(p->in, ZSTD_reset_session_and_parameters);
    for (size_t i = 0; i < sizeof set / sizeof *set && !ZSTD_isError(r); i++)
        r = ZSTD_CCtx_setParameter(p->in, set[i].name, set[i].value);
    if (!ZSTD_isError(r))
        r = ZSTD_CCtx_setPledgedSrcSize(p->in, content);
    return ZSTD_isError(r) ? spk_error_set(err, SPK_E_INVALID, "zstd: %s", ZSTD_getErrorName(r)) : SPK_OK;
}

spk_status spk_coef_pack(spk_coef_packer *p, const uint8_t *data, const size_t *borders, size_t n, uint32_t block,
                         spk_buf *out, spk_error *err)
{
    if (n > PARTS_MAX)
        return spk_error_set(err, SPK_E_INVALID, "%zu parts", n);
    size_t content = borders[n - 1];
    p->more = (int64_t)block * 16;
    cut(p, data, borders, n);
    SPK_TRY(set_up(p, content, err));
    SPK_TRY(spk_buf_reserve(out, ZSTD_compressBound(content) + 16 * n + 64, err));
    ZSTD_outBuffer to = {out->data + out->len, out->cap - out->len, 0};
    for (size_t k = 0; k < PARTS_MAX; k = p->parts[k].next) {
        ZSTD_inBuffer from = {data + p->parts[k].begin, p->parts[k].end - p->parts[k].begin, 0};
        ZSTD_EndDirective how = p->parts[k].next == PARTS_MAX ? ZSTD_e_end : ZSTD_e_flush;
        size_t left = ZSTD_compressStream2(p->in, &to, &from, how);
        if (left != 0)
            return spk_error_set(err, SPK_E_INVALID, "zstd: %s",
                                 ZSTD_isError(left) ? ZSTD_getErrorName(left) : "more bytes than its bound");
    }
    out->len += to.pos;
    return SPK_OK;
}

spk_status spk_coef_unpack(spk_coef_packer *p, const void *blob, size_t n, size_t most, size_t slack, spk_buf *out,
                           spk_error *err)
{
    unsigned long long content = ZSTD_getFrameContentSize(blob, n);
    if (content == ZSTD_CONTENTSIZE_ERROR || content == ZSTD_CONTENTSIZE_UNKNOWN)
        return spk_error_set(err, SPK_E_FORMAT, "%zu bytes are not a zstd frame with its content's size", n);
    if (content > most)
        return spk_error_set(err, SPK_E_LIMIT, "content of %llu bytes in %zu", content, n);
    if (!p->out && !(p->out = ZSTD_createDCtx()))
        return spk_error_nomem(err, sizeof *p);
    out->len = 0;
    SPK_TRY(spk_buf_reserve(out, (size_t)content + slack, err));
    size_t r = ZSTD_decompressDCtx(p->out, out->data, (size_t)content, blob, n);
    if (ZSTD_isError(r) || r != content)
        return spk_error_set(err, SPK_E_FORMAT, "zstd: %s", ZSTD_isError(r) ? ZSTD_getErrorName(r) : "too few bytes");
    if (ZSTD_findFrameCompressedSize(blob, n) != n) /* now that the bytes are in cache */
        return spk_error_set(err, SPK_E_FORMAT, "%zu bytes are more than one zstd frame", n);
    memset(out->data + content, 0, slack);
    out->len = (size_t)content;
    return SPK_OK;
}
