/* Between MCUs of a scan. */
#include "image/jpeg_coded.h"

#include "base/error.h"

const uint8_t spk_zigzag[SPK_ZIGZAG_ROOM] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                             12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                             35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                             58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

static void load(spk_jpeg_coded *c)
{
    if (!c->feed.closed && (size_t)(c->bits.p - c->feed.bytes) + SPK_FEED_SLACK > c->feed.len)
        spk_feed_more(&c->feed, &c->bits.p);
    c->limit = c->feed.bytes + c->feed.len;
    if (!c->feed.closed)
        c->limit -= SPK_FEED_SLACK;
}

static void start(spk_jpeg_coded *c)
{
    c->bits = (spk_bits){0, c->feed.bytes, 0};
    c->to_go = c->interval > 0 ? c->interval : UINT32_MAX;
    c->run = 0;
    memset(c->last_dc, 0, sizeof c->last_dc);
}

spk_status spk_jpeg_coded_begin(spk_jpeg_coded *c, const uint8_t *src, const uint8_t *end, uint32_t interval,
                                spk_error *err)
{
    SPK_TRY(spk_feed_begin(&c->feed, src, end, err));
    c->interval = interval;
    c->next_restart = 0;
    start(c);
    load(c);
    return SPK_OK;
}

void spk_jpeg_coded_free(spk_jpeg_coded *c)
{
    spk_feed_free(&c->feed);
}

bool spk_jpeg_coded_overrun(const spk_jpeg_coded *c)
{
    const spk_bits *b = &c->bits;
    return 8 * (size_t)(b->p - c->feed.bytes) > 8 * spk_feed_usable(&c->feed) + b->n % 64;
}

/* Whether nothing but the last byte's padding is left. */
static bool is_used_up(spk_jpeg_coded *c)
{
    spk_bits *b = &c->bits;
    if (!c->feed.closed)
        spk_feed_more(&c->feed, &b->p);
    size_t used = 8 * (size_t)(b->p - c->feed.bytes) - b->n % 64;
    return used + 7 >= 8 * c->feed.len;
}

static bool restart(spk_jpeg_coded *c)
{
    if (!is_used_up(c) || !spk_feed_restart(&c->feed, c->next_restart))
        return false;
    c->next_restart = (c->next_restart + 1) % 8;
    start(c);
    return true;
}

bool spk_jpeg_coded_look_after(spk_jpeg_coded *c)
{
    if (spk_jpeg_coded_overrun(c) || (c->to_go == 0 && !restart(c)))
        return false;
    load(c);
    return true;
}

const uint8_t *spk_jpeg_coded_end(spk_jpeg_coded *c)
{
    bool good = !spk_jpeg_coded_overrun(c) && is_used_up(c) && c->feed.closed && !c->feed.cut;
    return good ? c->feed.src : NULL;
}
