/* Sets of a block's numbers are words: bit 63 - k stands for number k in zigzag order, so that they come from the upper
 * end on, like the bits of the file. */
#include "image/jpeg_progressive.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

_Static_assert(64 * SPK_HUFFMAN_BITS_MAX * SPK_SCAN_SLOTS_MAX / 8 + 32 < SPK_FEED_SLACK, "an MCU fits into the slack");

typedef enum content { SEQUENTIAL, DC_FIRST, DC_FINER } content;

/* The number of a block among those that are kept. */
static SPK_INLINE size_t number_of(const spk_scan_plane *p, uint32_t x, uint32_t y)
{
    return (size_t)(y - p->y0) * (p->x1 - p->x0) + (x - p->x0);
}

static SPK_INLINE void clear(int16_t *block)
{
    for (size_t i = 0; i < 64; i += 8) /* row by row: all at once, gcc makes a loop of bytes of it, which is slow */
        memset(block + i, 0, 8 * sizeof *block);
}

static SPK_INLINE int16_t shifted(int32_t v, uint32_t low)
{
    return (int16_t)((uint32_t)v << low);
}

/* From a bit to the place in rows. */
static const uint8_t place_of[64] = {63, 62, 55, 47, 54, 61, 60, 53, 46, 39, 31, 38, 45, 52, 59, 58,
                                     51, 44, 37, 30, 23, 15, 22, 29, 36, 43, 50, 57, 56, 49, 42, 35,
                                     28, 21, 14, 7,  6,  13, 20, 27, 34, 41, 48, 40, 33, 26, 19, 12,
                                     5,  4,  11, 18, 25, 32, 24, 17, 10, 3,  2,  9,  16, 8,  1,  0};

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
    size_t i = keep ? number_of(p, x, y) : 0;
    int16_t *dc = keep ? p->dc + i : NULL, *out = keep ? p->coef + 64 * i : NULL;
    if (what == DC_FIRST)
        return first_dc(b, slot->dc, last, s->low, dc, keep);
    if (what == DC_FINER) {
        finer_dc(b, s->low, dc, keep);
        return true;
    }
    if (keep)
        clear(out);
    uint32_t at = spk_bits_read_block(b, slot->dc, s->ac[slot->component], last, out, keep);
    if (keep) {
        p->known[y * p->stride + x] = at != SPK_HUFFMAN_END;
        *dc = (int16_t)*last;
    }
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

#ifdef __x86_64__
SPK_BMI static inline uint64_t deposit_bmi(uint64_t bits, uint64_t mask)
{
    return _pdep_u64(bits, mask);
}
#endif

/* The bits of `bits`, from its lower end on, in the places of `mask`, from its lower end on. pdep: the processor does
 * it, and fast. */
static SPK_INLINE uint64_t deposit(uint64_t bits, uint64_t mask, bool pdep)
{
    uint64_t out = 0;
#ifdef __x86_64__
    if (pdep)
        return deposit_bmi(bits, mask);
#endif
    (void)pdep;
    for (; mask; mask &= mask - 1, bits >>= 1)
        out |= bits & 1 ? mask & -mask : 0;
    return out;
}

/* Bit number n > 0 of those that are set, from the upper end on; 0 without. */
static SPK_INLINE uint64_t nth(uint64_t set, uint32_t n, bool pdep)
{
    if (pdep) /* a shift by 64 is none here, and finds nothing either */
        return deposit((uint64_t)1 << __builtin_popcountll(set) >> (n & 63), set, pdep);
    for (; set && n > 1; n--)
        set &= UINT64_MAX >> 1 >> __builtin_clzll(set);
    return set ? (uint64_t)1 << 63 >> __builtin_clzll(set) : 0;
}

/* Corrections of the numbers in `of`: those whose bit is set. Of 39 bits in the window it leaves 11. */
static SPK_INLINE uint64_t corrections(spk_bits *b, uint64_t of, bool pdep)
{
    uint64_t found = 0;
    uint32_t n = (uint32_t)__builtin_popcountll(of);
    if (__builtin_expect(n > 28, 0)) { /* in two, for which there are bits enough */
        uint64_t first = of & ~(uint64_t)UINT32_MAX;
        n = (uint32_t)__builtin_popcountll(first);
        spk_bits_refill(b);
        found = deposit(spk_bits_next(b, n), first, pdep);
        spk_bits_drop(b, n);
        spk_bits_refill(b);
        of &= UINT32_MAX;
        n = (uint32_t)__builtin_popcountll(of);
    }
    found |= deposit(spk_bits_next(b, n), of, pdep);
    spk_bits_drop(b, n);
    return found;
}

static SPK_INLINE void correct(block *k, uint64_t which)
{
    for (; which; which &= which - 1) {
        int16_t *v = &k->out[place_of[__builtin_ctzll(which)]];
        *v = (int16_t)(*v + shifted(*v >> 15 | 1, k->low));
    }
}

/* A block of a finer scan; `band`: the scan's numbers; *run: blocks from this one on without new numbers. */
static SPK_INLINE bool finer_block(spk_bits *b, const spk_huffman *h, uint64_t band, block *k, uint32_t *run, bool pdep)
{
    uint64_t old = k->known & band, open = band & ~old, wrong = 0, place = 0;
    if (*run == 0)
        spk_bits_refill(b);
    while ((open | old) && *run == 0) { /* there are bits enough to look a code up */
        uint32_t e = spk_bits_peek(b, h), advance = e >> 24;
        spk_bits_refill(b);
        if (advance == SPK_HUFFMAN_END) {
            *run = read_run(b, e);
            break;
        }
        place = nth(open, advance, pdep);
        if (place == 0) /* so many zeros are not there; or no code */
            return false;
        uint64_t passed = old & -place;
        bool negative = (b->window << (e >> 8 & 63)) >> 63 == 0;
        spk_bits_drop(b, e);
        if (e >> 16 & 15) {
            k->known |= place;
            if (k->keep)
                k->out[place_of[__builtin_ctzll(place)]] = shifted(negative ? -1 : 1, k->low);
        }
        wrong |= corrections(b, passed, pdep);
        old &= place - 1;
        open &= place - 1;
    }
    if (*run > 0 && old != 0) {
        spk_bits_refill(b);
        wrong |= corrections(b, old, pdep);
    }
    if (k->keep)
        correct(k, wrong);
    return true;
}

/* Numbers from to to of the scan's only component. */
static SPK_INLINE bool read_ac(spk_scan *s, uint32_t x, uint32_t y, uint32_t count, bool keep, bool finer, bool pdep)
{
    uint32_t c = s->slots[0].component;
    const spk_scan_plane *p = &s->plane[c];
    const spk_huffman *h = s->ac[c];
    const uint64_t band = UINT64_MAX >> s->from & UINT64_MAX << (63 - s->to);
    uint64_t *known = p->known + y * p->stride + x;
    block k = {keep && count > 0 ? p->coef + 64 * number_of(p, x, y) : NULL, 0, s->low, keep};
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
        if (keep && run == 0 && k.known == 0)
            clear(k.out);
        if (finer)
            good = finer_block(&b, h, band, &k, &run, pdep);
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

#define READER(name, target, read_some, ...)                                                                           \
    target static bool name(spk_scan *s, uint32_t x, uint32_t y, uint32_t count, bool keep)                            \
    {                                                                                                                  \
        if (keep)                                                                                                      \
            return read_some(s, x, y, count, true, __VA_ARGS__);                                                       \
        return read_some(s, x, y, count, false, __VA_ARGS__);                                                          \
    }

READER(sequential_plain, , read_mcus, SEQUENTIAL)
READER(sequential_bmi, SPK_BMI, read_mcus, SEQUENTIAL)
READER(dc_first_plain, , read_mcus, DC_FIRST)
READER(dc_first_bmi, SPK_BMI, read_mcus, DC_FIRST)
READER(dc_finer_plain, , read_mcus, DC_FINER)
READER(dc_finer_bmi, SPK_BMI, read_mcus, DC_FINER)
READER(ac_first_plain, , read_ac, false, false)
READER(ac_first_bmi, SPK_BMI, read_ac, false, false)
READER(ac_finer_plain, , read_ac, true, false)
READER(ac_finer_bmi, SPK_BMI, read_ac, true, false)
READER(ac_finer_pdep, SPK_BMI, read_ac, true, true)

/* AMD's first processors with PDEP take up to 300 cycles for it. */
static bool is_pdep_slow(void)
{
#ifdef __x86_64__
    return __builtin_cpu_is("znver1") || __builtin_cpu_is("znver2") || __builtin_cpu_is("bdver4");
#else
    return true;
#endif
}

spk_scan_fn spk_scan_reader(const spk_scan *s, bool progressive, bool finer, bool vectors)
{
    if (!progressive)
        return vectors ? sequential_bmi : sequential_plain;
    if (s->from == 0 && finer)
        return vectors ? dc_finer_bmi : dc_finer_plain;
    if (s->from == 0)
        return vectors ? dc_first_bmi : dc_first_plain;
    if (!finer)
        return vectors ? ac_first_bmi : ac_first_plain;
    return !vectors ? ac_finer_plain : is_pdep_slow() ? ac_finer_bmi : ac_finer_pdep;
}
