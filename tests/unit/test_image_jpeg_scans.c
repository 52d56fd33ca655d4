/* image/: our decoder of JPEG in several scans against libjpeg-turbo: the same pixels, errors and texts, with vectors
 * and without, for whole images and parts. TEST_LONG=1 tries more sizes and crops. */
#include "check_main.h"

#include "jpeg_compare.h"
#include "jpeg_odd_scans.h"
#include "jpeg_scripts.h"

static void setup(void)
{
    compare_setup(47);
}

static void compare_script(const jpeg_variant *v, const script *s, uint32_t parts, bool own)
{
    char what[160];
    size_t n;
    unsigned char *p = encode_scans(v, s->scan, s->scans, &rng, &n);
    snprintf(what, sizeof what, "script %d: %u x %u, %d x %d, colours %d, q %d, restart %u, content %d",
             (int)(s - scripts), v->width, v->height, v->h, v->v, v->stored, v->quality, v->restart, v->content);
    compare(p, n, NULL, 3, own, what);
    for (uint32_t i = 0; i < parts; i++) {
        spk_rect r = {pick(0, v->width - 1), pick(0, v->height - 1), 1, 1};
        r.w = pick(1, i % 3 ? v->width - r.x : v->width - r.x < 4 ? v->width - r.x : 4);
        r.h = pick(1, i % 4 ? v->height - r.y : v->height - r.y < 4 ? v->height - r.y : 4);
        compare(p, n, &r, i % 5 ? 3 : 1, own, what);
    }
    free(p);
}

/* Each script in each layout that it can have. */
#define EACH_SCRIPT(s, k)                                                                                              \
    for (const script *s = scripts; s < scripts + SCRIPTS; s++)                                                        \
        for (size_t k = 0; k < (s->gray ? 1 : LAYOUTS); k++)

START_TEST(sizes)
{
    uint32_t largest = long_run ? 70 : 40;
    EACH_SCRIPT(s, k)
    for (uint32_t h = 1; h <= largest; h += long_run ? 1 : pick(1, 5))
        for (uint32_t w = 1; w <= largest; w += long_run ? 1 : pick(1, 7)) {
            jpeg_variant v = variant_of(s, k);
            v.width = w;
            v.height = h;
            v.restart = pick(0, 2) == 0 ? pick(1, 9) : 0;
            compare_script(&v, s, 1, v.h == 1 || w > 4);
        }
}
END_TEST

START_TEST(qualities_and_contents)
{
    static const int qualities[] = {1, 5, 30, 50, 75, 90, 100};
    EACH_SCRIPT(s, k)
    for (size_t q = 0; q < sizeof qualities / sizeof *qualities; q++)
        for (int content = CONTENT_SMOOTH; content <= CONTENT_FLAT; content++) {
            jpeg_variant v = variant_of(s, k);
            v.width = pick(60, 130);
            v.height = pick(60, 130);
            v.quality = qualities[q];
            v.content = (jpeg_content)content;
            v.optimize = (int)q % 2;
            v.restart = q % 3 == 0 ? pick(1, 40) : 0;
            v.wide_step = q == 3 ? pick(1, 1000) : 0;
            compare_script(&v, s, long_run ? 20 : 2, v.wide_step == 0 || no_limits);
        }
}
END_TEST

START_TEST(parts)
{
    EACH_SCRIPT(s, k)
    {
        jpeg_variant v = variant_of(s, k);
        v.width = 250 + pick(0, 40);
        v.height = 150 + pick(0, 40);
        v.quality = 90;
        compare_script(&v, s, long_run ? 1000 : 40, true);
    }
}
END_TEST

/* The longest runs of blocks, and runs with as many corrections as libjpeg holds back. */
START_TEST(long_runs)
{
    const script *s = scripts + 4;
    jpeg_variant v = variant_of(s, 3);
    v.width = v.height = 1480;
    v.quality = 10;
    compare_script(&v, s, 2, true);
    s = scripts + 2;
    v = variant_of(s, 3);
    v.width = v.height = 500;
    v.quality = 96;
    compare_script(&v, s, 2, true);
}
END_TEST

START_TEST(gray_with_factors)
{
    for (int h = 1; h <= 2; h++)
        for (int f = 1; f <= 2; f++)
            for (uint32_t i = 1; i < 40; i += long_run ? 1 : 3) {
                jpeg_variant v = variant_of(scripts + 8, 0);
                v.h = h;
                v.v = f;
                v.width = pick(1, 60);
                v.height = i;
                compare_script(&v, scripts + 8 + i % 2, 3, true);
            }
}
END_TEST

static void compare_scans(const jpeg_scan_info *scan, int scans, bool gray, bool own)
{
    script s = {scan, scans, gray, true};
    jpeg_variant v = variant_of(&s, 0);
    size_t n;
    spk_rect part = {20, 30, 40, 13};
    v.width = v.height = 90;
    unsigned char *p = encode_scans(&v, s.scan, s.scans, &rng, &n);
    compare(p, n, NULL, 3, own, "scans");
    ck_assert(own || !got.own);
    compare(p, n, &part, 3, own, "scans");
    free(p);
}

/* What is missing libjpeg makes up; bits of which few files have so many it decodes, too. */
START_TEST(others_are_left_to_libjpeg)
{
    static const jpeg_scan_info deep[] = {{ONE(0), 0, 0, 0, 0},  {ONE(0), 1, 63, 0, 6}, {ONE(0), 1, 63, 6, 5},
                                          {ONE(0), 1, 63, 5, 4}, {ONE(0), 1, 63, 4, 3}, {ONE(0), 1, 63, 3, 2},
                                          {ONE(0), 1, 63, 2, 1}, {ONE(0), 1, 63, 1, 0}};
    jpeg_variant v = variant_of(scripts, 0);
    size_t n;
    compare_scans(SCRIPT(unfinished), false, false);
    compare_scans(SCRIPT(luma_alone), false, false);
    compare_scans(SCRIPT(deep), true, false);
    compare_scans(deep, 1, true, false);
    v.width = 4;
    v.height = 50;
    unsigned char *p = encode_variant(&v, &rng, &n);
    compare(p, n, NULL, 3, false, "narrow");
    ck_assert(!got.own);
    free(p);
}
END_TEST

/* One for each bit of each coefficient. */
START_TEST(number_of_scans)
{
    jpeg_scan_info scan[1 + 63 + 5 * 63] = {{ONE(0), 0, 0, 0, 0}};
    int n = 1;
    for (int low = 5; low >= 0; low--)
        for (int k = 1; k < 64; k++)
            scan[n++] = (jpeg_scan_info){ONE(0), k, k, low < 5 ? low + 1 : 0, low};
    compare_scans(scan, n, true, true);
}
END_TEST

START_TEST(wild_coefficients)
{
    for (unsigned i = 0; i < (long_run ? 4000 : 400); i++) {
        const script *s = &scripts[i % SCRIPTS];
        jpeg_variant v = variant_of(s, pick(0, LAYOUTS - 1));
        spk_rect part = {1, 0, 4, 1};
        size_t n;
        v.width = pick(5, 80);
        v.height = pick(1, 80);
        v.restart = i % 3 ? 0 : pick(1, 9);
        unsigned char *p = encode_wild(&v, s->scan, s->scans, &rng, &n);
        compare(p, n, NULL, 3, false, "wild");
        compare(p, n, &part, 3, false, "wild");
        free(p);
    }
}
END_TEST

START_TEST(odd_codes)
{
    static odd_file f;
    f = (odd_file){.p = malloc(ODD_BYTES), .rng = &rng};
    for (uint32_t i = 0; i < (long_run ? 20000 : 1500); i++) {
        uint32_t wide = pick(1, 20), high = pick(1, 20);
        spk_rect part = {pick(0, 8 * wide - 1), pick(0, 8 * high - 1), 1, 1};
        part.w = pick(1, 8 * wide - part.x);
        part.h = pick(1, 8 * high - part.y);
        f.code_bits = i % 3 == 0 ? 8 : i % 3 == 1 ? 12 : 16;
        f.restart = i % 4 == 0 ? pick(1, 50) : 0;
        f.last = pick(0, 7);
        odd_write(&f, wide, high);
        compare(f.p, f.n, NULL, 3, no_limits, "odd codes");
        ck_assert_str_eq(expected.text, "");
        compare(f.p, f.n, &part, 3, no_limits, "odd codes");
    }
    free(f.p);
}
END_TEST

/* ---- damage ---- */

/* A place between the first SOS and the end. */
static size_t place_in(const unsigned char *p, size_t n)
{
    size_t first = 2;
    while (first + 2 < n && (p[first] != 0xFF || p[first + 1] != 0xDA))
        first++;
    return pick((uint32_t)first, (uint32_t)n - 2);
}

/* Bits flipped, bytes inserted, lost and cut off: what libjpeg says of it, and its pixels where it says nothing. */
START_TEST(damage)
{
    int sound = 0, bad = 0;
    for (unsigned i = 0; i < (long_run ? 60000 : 4000); i++) {
        const script *s = &scripts[i % SCRIPTS];
        jpeg_variant v = variant_of(s, pick(0, LAYOUTS - 1));
        size_t n;
        v.width = pick(5, 60);
        v.height = pick(5, 60);
        v.restart = i % 3 ? 0 : pick(1, 9);
        unsigned char *p = encode_scans(&v, s->scan, s->scans, &rng, &n);
        spk_rect r = {pick(0, v.width - 1), pick(0, v.height - 1), 1, 1};
        size_t at = i % 4 ? place_in(p, n) : pick(2, (uint32_t)n - 2);
        switch (i / 2 % 6) {
        case 0:
            n = at;
            break;
        case 1:
            memmove(p + at, p + at + 1, --n - at);
            break;
        case 2:
            p[at] = (unsigned char)pick(0, 255);
            break;
        case 3:
            p[at] = 0xFF;
            break;
        case 4: /* fill bytes and no marker, or none that ends the scan */
            memset(p + at, 0xFF, i % 4 && n - at > 9 ? pick(1, 8) : n - at);
            break;
        default:
            p[at] ^= (unsigned char)(1u << pick(0, 7));
        }
        unsigned char *exact = malloc(n);
        memcpy(exact, p, n);
        compare(exact, n, i % 2 ? &r : NULL, 3, false, "damaged");
        *(got.text[0] ? &bad : &sound) += 1;
        free(exact);
        free(p);
    }
    ck_assert_int_gt(sound, 200);
    ck_assert_int_gt(bad, 200);
}
END_TEST

/* ---- between scans ---- */

/* Where the bytes after scan number `scan` begin (from 0), or EOI. */
static size_t behind_scan(const unsigned char *p, size_t n, int scan)
{
    size_t at = 2;
    for (int seen = -1; at + 4 <= n;) {
        bool sos = p[at + 1] == 0xDA;
        seen += sos;
        at += 2 + ((size_t)p[at + 2] << 8 | p[at + 3]);
        while (sos && at + 2 <= n && (p[at] != 0xFF || p[at + 1] == 0 || (p[at + 1] >= 0xD0 && p[at + 1] <= 0xD7)))
            at++;
        if (sos && (seen == scan || p[at + 1] == 0xD9))
            break;
    }
    return at;
}

static void compare_with(const unsigned char *p, size_t n, size_t at, const char *bytes, size_t count, bool own)
{
    unsigned char *file = malloc(n + count);
    memcpy(file, p, at);
    memcpy(file + at, bytes, count);
    memcpy(file + at + count, p + at, n - at);
    compare(file, n + count, NULL, 3, own, "between scans");
    free(file);
}

START_TEST(between_scans)
{
    static const struct {
        const char *bytes;
        size_t n;
        bool own; /* between scans */
    } inserts[] = {{"\xFF\xFE\x00\x05"
                    "abc",
                    7, true},
                   {"\xFF\xFE\x00\x02", 4, true},
                   {"\xFF\xFE\x00\x01", 4, false},
                   {"\xFF", 1, true},
                   {"\xFF\xFF\xFF", 3, true},
                   {"\x00", 1, false},
                   {"abc", 3, false},
                   {"\xFF\x00", 2, false},
                   {"\xFF\xD0", 2, false},
                   {"\xFF\xD7", 2, false},
                   {"\xFF\xD8", 2, false},
                   {"\xFF\x01", 2, false},
                   {"\xFF\xDD\x00\x04\x00\x00", 6, false}, /* in the last script with restart markers */
                   {"\xFF\xDD\x00\x05\x00\x00\x00", 7, false},
                   {"\xFF\xE0\x00\x10JFIF\x00\x03\x01\x00\x00\x01\x00\x01\x00\x00", 18, false},
                   {"\xFF\xE0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00", 18, false},
                   {"\xFF\xEE\x00\x0E"
                    "Adobe\x00\x64\x00\x00\x00\x00\x00",
                    16, false},
                   {"\xFF\xC4\x00\x03\x00", 5, false},
                   {"\xFF\xC4\x00\x02", 4, true},
                   {"\xFF\xDA\x00\x08\x01\x01\x00\x00\x3F\x00", 10, false},
                   {"\xFF\xD9", 2, false}};
    for (const script *s = scripts; s < scripts + SCRIPTS; s++)
        for (int restart = 0; restart < 2; restart++) {
            jpeg_variant v = variant_of(s, 0);
            size_t n;
            v.width = 61;
            v.height = 47;
            v.restart = restart ? 3 : 0;
            unsigned char *p = encode_scans(&v, s->scan, s->scans, &rng, &n);
            size_t end = behind_scan(p, n, 1000);
            ck_assert_uint_eq(end, n - 2);
            for (size_t i = 0; i < sizeof inserts / sizeof *inserts; i++) {
                for (int scan = 0; scan < 3; scan++) {
                    size_t at = behind_scan(p, n, scan);
                    bool own = inserts[i].own && (at < end || inserts[i].bytes[1] == '\xFF' || inserts[i].n == 1);
                    compare_with(p, n, at, inserts[i].bytes, inserts[i].n, own);
                }
                compare_with(p, n, end, inserts[i].bytes, inserts[i].n, false);
                compare_with(p, n, n, inserts[i].bytes, inserts[i].n, true);
            }
            compare(p, n - 1, NULL, 3, false, "half an end");
            compare(p, n - 2, NULL, 3, false, "no end");
            free(p);
        }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("image/jpeg_scans");
    TCase *t = tcase_create("jpeg_scans");
    tcase_set_timeout(t, 600);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, sizes);
    tcase_add_test(t, qualities_and_contents);
    tcase_add_test(t, parts);
    tcase_add_test(t, long_runs);
    tcase_add_test(t, gray_with_factors);
    tcase_add_test(t, others_are_left_to_libjpeg);
    tcase_add_test(t, number_of_scans);
    tcase_add_test(t, wild_coefficients);
    tcase_add_test(t, odd_codes);
    tcase_add_test(t, damage);
    tcase_add_test(t, between_scans);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
