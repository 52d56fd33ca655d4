/* Sets of a block's numbers are words: bit 63 - k stands for number k in zigzag order, so that they come from the upper
 * end on, like the bits of the file. */
#include "image/jpeg_progressive.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

_Static_assert(64 * SPK_HUFFMAN_BITS_MAX * SPK_SCAN_SLOTS_MAX / 8 + 32 < SPK_FEED_SLACK, "an MCU fits into the slack");

typedef enum content { SEQUENTIAL, DC_FIRST, DC_FINER } content;

static SPK_INLINE int16_t *block_at(const spk_scan_plane *p, uint32_t x, uint32_t y)
{
    return p->coef + 64 * ((size_t)(y - p->y0) * (p->x1 - p->x0) + (x - p->x0));
}

static SPK_INLINE int16_t shifted(int32_t v, uint32_t low)
{
    return (int16_t)((uint32_t)v << low);
}

/* ---- MCUs with DC ---- */

static SPK_INLINE bool first_dc(spk_bits *b, const spk_huffman *h, int32_t *last, uint32_t low, int16_t *out, bool keep)
{
    spk_bits_refill(b);
    uint32_t e = spk_bits_peek(b, h);
    *last += spk_bits_number(b, e);
    spk_bits_drop(b, e);
    if (keep)
        *out = shifted(*last, low);
    return e >> 24 == 0 && *last >= INT16_MIN >> low && *last <= INT16_MAX >> low;
}

static SPK_INLINE void finer_dc(spk_bits *b, uint32_t low, int16_t *out, bool keep)
{
    spk_bits_refill(b);
    if (keep)
        *out = (int16_t)(*out | (int16_t)((b->window >> 63) << low));
    spk_bits_drop(b, 1);
}

static SPK_INLINE bool read_slot(spk_scan *s, const spk_scan_slot *slot, spk_bits *b, uint32_t x, uint32_t y, bool keep,
                                 content what)
{
    const spk_scan_plane *p = &s->plane[slot->component];
    int32_t *last = &s->coded.last_dc[slot->component];
    x = x * slot->h + slot->bx;
    y = y * slot->v + slot->by;
    int16_t *out = keep ? block_at(p, x, y) : NULL;
    if (what == DC_FIRST)
        return first_dc(b, slot->dc, last, s->low, out, keep);
    if (what == DC_FINER) {
        finer_dc(b, s->low, out, keep);
        return true;
    }
    uint32_t at = spk_bits_read_block(b, slot->dc, s->ac[slot->component], last, out, keep);
    if (keep)
        p->known[y * p->stride + x] = at != SPK_HUFFMAN_END;
    return !spk_bits_is_fault(at);
}

static SPK_INLINE bool read_mcus(spk_scan *s, uint32_t x, uint32_t y, uint32_t count, bool keep, content what)
{
    spk_bits b = s->coded.bits;
    bool good = true;
    for (; count > 0; count--, x++) {
        if (b.p > s->coded.limit || s->coded.to_go == 0) {
            s->coded.bits = b;
            if (!spk_jpeg_coded_look_after(&s->coded))
                return false;
            b = s->coded.bits;
        }
        s->coded.to_go--;
        for (uint32_t i = 0; i < s->slots_n; i++)
            good &= read_slot(s, &s->slots[i], &b, x, y, keep, what);
    }
    s->coded.bits = b;
    return good;
}

/* ---- AC ---- */

/* The number of blocks from this one on that a code stands for. */
static SPK_INLINE uint32_t read_run(spk_bits *b, uint32_t e)
{
    uint32_t size = e >> 16 & 15;
    spk_bits_drop(b, e >> 8 & 63);
    uint32_t run = (1u << size) + (uint32_t)spk_bits_next(b, size);
    spk_bits_drop(b, size);
    return run;
}

/* Where the numbers of a block go. */
typedef struct block {
    int16_t *out;
    uint64_t known;
    uint32_t low;
    bool keep;
} block;

static SPK_INLINE void put(block *k, uint32_t at, int32_t v)
{
    k->known |= (uint64_t)(v != 0) << (63 - at);
    if (k->keep)
        k->out[spk_zigzag[at]] = shifted(v, k->low);
}

/* Reads the numbers of a block that has any; *run: blocks from this one on without more of them. */
static SPK_INLINE bool first_block(spk_bits *b, const spk_huffman *h, uint32_t at, uint32_t to, block *k, uint32_t *run)
{
    uint32_t one, two;
    uint64_t e;
    for (;; at = two) {
        spk_bits_refill(b);
        e = spk_bits_peek_pair(b, h);
        one = at + (uint32_t)(e >> 32 & 255);
        two = at + (uint32_t)(e >> 24 & 255);
        if (two >= to)
            break;
        put(k, one, (int16_t)(e >> 48));
        put(k, two, spk_bits_number(b, (uint32_t)e));
        spk_bits_drop(b, (uint32_t)e);
    }
    if ((e >> 40 & 255) > 0) { /* the first one's bits */
        if (one > to)
            return false;
        put(k, one, (int16_t)(e >> 48));
        if (one == to) { /* what follows is the next block's */
            spk_bits_drop(b, (uint32_t)(e >> 40 & 255));
            return true;
        }
    }
    if (two == to) {
        put(k, two, spk_bits_number(b, (uint32_t)e));
        spk_bits_drop(b, (uint32_t)e);
    } else if (two >= SPK_HUFFMAN_END) {
        *run = read_run(b, (uint32_t)e);
    }
    return two == to || two >= SPK_HUFFMAN_END;
}

/* Bits of `bits` from its lower end on in the places of `mask`, from its lower end on. */
typedef uint64_t (*deposit_fn)(uint64_t bits, uint64_t mask);

static uint64_t deposit_plain(uint64_t bits, uint64_t mask)
{
    uint64_t out = 0;
    for (; mask; mask &= mask - 1, bits >>= 1)
        out |= bits & 1 ? mask & -mask : 0;
    return out;
}

#ifdef __x86_64__
SPK_BMI static inline uint64_t deposit_bmi(uint64_t bits, uint64_t mask)
{
    return _pdep_u64(bits, mask);
}
#else
#define deposit_bmi deposit_plain
#endif

/* Corrections of the numbers in `of`: those whose bit is set. */
static SPK_INLINE uint64_t corrections(spk_bits *b, uint64_t of, deposit_fn deposit)
{
    uint64_t found = 0;
    uint32_t n = (uint32_t)__builtin_popcountll(of);
    if (__builtin_expect(n > 32, 0)) { /* in two, for which there are bits enough */
        uint64_t first = of & ~(uint64_t)UINT32_MAX;
        n = (uint32_t)__builtin_popcountll(first);
        spk_bits_refill(b);
        found = deposit(spk_bits_next(b, n), first);
        spk_bits_drop(b, n);
        spk_bits_refill(b);
        of &= UINT32_MAX;
        n = (uint32_t)__builtin_popcountll(of);
    }
    found |= deposit(spk_bits_next(b, n), of);
    spk_bits_drop(b, n);
    return found;
}

static SPK_INLINE void correct(block *k, uint64_t which)
{
    while (which) {
        uint32_t at = (uint32_t)__builtin_clzll(which);
        int16_t *v = &k->out[spk_zigzag[at]];
        *v = (int16_t)(*v + shifted(*v >> 15 | 1, k->low));
        which ^= (uint64_t)1 << (63 - at);
    }
}

/* A block of a finer scan; `band`: the scan's numbers; *run: blocks from this one on without new numbers. */
static SPK_INLINE bool finer_block(spk_bits *b, const spk_huffman *h, uint64_t band, block *k, uint32_t *run,
                                   deposit_fn deposit)
{
    uint64_t old = k->known & band, left = band, wrong = 0;
    while (left && *run == 0) {
        spk_bits_refill(b);
        uint32_t e = spk_bits_peek(b, h), zeros = (e >> 24) - 1, size = e >> 16 & 15;
        if (e >> 24 == SPK_HUFFMAN_END) {
            *run = read_run(b, e);
            break;
        }
        uint64_t open = left & ~old;
        uint32_t n = (uint32_t)__builtin_popcountll(open);
        if (zeros >= n) /* also of no code at all */
            return false;
        uint64_t place = deposit((uint64_t)1 << (n - 1 - zeros), open);
        bool negative = (b->window << (e >> 8 & 63)) >> 63 == 0;
        spk_bits_drop(b, e);
        if (size > 0) {
            k->known |= place;
            if (k->keep)
                k->out[spk_zigzag[__builtin_clzll(place)]] = shifted(negative ? -1 : 1, k->low);
        }
        wrong |= corrections(b, old & left & -place, deposit);
        left &= place - 1;
    }
    if (*run > 0) {
        spk_bits_refill(b);
        wrong |= corrections(b, old & left, deposit);
    }
    if (k->keep)
        correct(k, wrong);
    return true;
}

/* Numbers from to to of the scan's only component. */
static SPK_INLINE bool read_ac(spk_scan *s, uint32_t x, uint32_t y, uint32_t count, bool keep, bool finer,
                               deposit_fn deposit)
{
    uint32_t c = s->slots[0].component;
    const spk_scan_plane *p = &s->plane[c];
    const spk_huffman *h = s->ac[c];
    const uint64_t band = UINT64_MAX >> s->from & UINT64_MAX << (63 - s->to);
    uint64_t *known = p->known + y * p->stride + x;
    block k = {keep && count > 0 ? block_at(p, x, y) : NULL, 0, s->low, keep};
    spk_bits b = s->coded.bits;
    uint32_t run = s->coded.run;
    bool good = true;
    for (uint32_t i = 0; i < count && good; i++) {
        if (b.p > s->coded.limit || s->coded.to_go == 0) {
            s->coded.bits = b;
            s->coded.run = run;
            if (!spk_jpeg_coded_look_after(&s->coded))
                return false;
            b = s->coded.bits;
            run = s->coded.run;
        }
        s->coded.to_go--;
        k.known = known[i];
        if (finer)
            good = finer_block(&b, h, band, &k, &run, deposit);
        else if (run == 0)
            good = first_block(&b, h, s->from - 1, s->to, &k, &run);
        known[i] = k.known;
        run -= run > 0;
        if (keep)
            k.out += 64;
    }
    s->coded.bits = b;
    s->coded.run = run;
    return good;
}

/* ---- with and without BMI ---- */

#define READERS(how, target, deposit)                                                                                  \
    target static bool sequential_##how(spk_scan *s, uint32_t x, uint32_t y, uint32_t count, bool keep)                \
    {                                                                                                                  \
        return read_mcus(s, x, y, count, keep, SEQUENTIAL);                                                            \
    }                                                                                                                  \
    target static bool dc_first_##how(spk_scan *s, uint32_t x, uint32_t y, uint32_t count, bool keep)                  \
    {                                                                                                                  \
        return read_mcus(s, x, y, count, keep, DC_FIRST);                                                              \
    }                                                                                                                  \
    target static bool dc_finer_##how(spk_scan *s, uint32_t x, uint32_t y, uint32_t count, bool keep)                  \
    {                                                                                                                  \
        return read_mcus(s, x, y, count, keep, DC_FINER);                                                              \
    }                                                                                                                  \
    target static bool ac_first_##how(spk_scan *s, uint32_t x, uint32_t y, uint32_t count, bool keep)                  \
    {                                                                                                                  \
        return keep ? read_ac(s, x, y, count, true, false, deposit) : read_ac(s, x, y, count, false, false, deposit);  \
    }                                                                                                                  \
    target static bool ac_finer_##how(spk_scan *s, uint32_t x, uint32_t y, uint32_t count, bool keep)                  \
    {                                                                                                                  \
        return keep ? read_ac(s, x, y, count, true, true, deposit) : read_ac(s, x, y, count, false, true, deposit);    \
    }

READERS(plain, , deposit_plain)
READERS(bmi, SPK_BMI, deposit_bmi)

spk_scan_fn spk_scan_reader(const spk_scan *s, bool progressive, bool finer, bool vectors)
{
    if (!progressive)
        return vectors ? sequential_bmi : sequential_plain;
    if (s->from > 0 && !finer)
        return vectors ? ac_first_bmi : ac_first_plain;
    if (s->from > 0)
        return vectors ? ac_finer_bmi : ac_finer_plain;
    if (finer)
        return vectors ? dc_finer_bmi : dc_finer_plain;
    return vectors ? dc_first_bmi : dc_first_plain;
}
