/* image/: the decoder. Each part of an image equals that part of the whole; damage is an error unless it lies below;
 * what passes the check never fails here. */
#include "check_main.h"

#include "base/rng.h"
#include "image/decode.h"
#include "image/decoder.h"
#include "image/exif.h"
#include "image_encode.h"

#include <shardpack/image.h>

static const jpeg_kind kinds[] = JPEG_KINDS;
#define KINDS (sizeof kinds / sizeof *kinds)

static spk_decoder *decoder;
static spk_decoder_info info;
static spk_error err;
static spk_rng rng;
static bool indices; /* of a palette, not its colours */

static void setup(void)
{
    spk_error_clear(&err);
    ck_ok(spk_decoder_new(&decoder, &err), err);
    rng = (spk_rng){21, 1, 0};
    indices = false;
}

static void teardown(void)
{
    spk_decoder_free(decoder);
}

static uint32_t pick(uint32_t low, uint32_t high)
{
    return low + (uint32_t)spk_rng_below(&rng, high - low + 1);
}

typedef struct rows {
    uint8_t *p;
    size_t row, n;
    unsigned touched;
} rows;

static void keep(void *ctx, const uint8_t *row)
{
    rows *out = ctx;
    memcpy(out->p + out->n, row, out->row);
    for (unsigned i = 0; i < SPK_ROW_PAD; i++) /* readable, says ASan */
        out->touched += row[out->row + i];
    out->n += out->row;
}

static spk_status decode(const void *data, size_t n, const spk_rect *part, uint32_t denom, uint32_t channels, rows *out)
{
    memset(out, 0, sizeof *out);
    spk_status status = spk_decoder_open(decoder, data, n, 0, &info, &err);
    if (status < 0)
        return status;
    spk_rect whole = {0, 0, (info.width + denom - 1) / denom, (info.height + denom - 1) / denom};
    spk_decode_job job = {part ? *part : whole, denom, channels, keep, out, indices};
    out->row = (size_t)job.part.w * channels;
    out->p = malloc(out->row * job.part.h);
    status = spk_decoder_run(decoder, &job, &err);
    if (status == SPK_OK)
        ck_assert_uint_eq(out->n, out->row * job.part.h);
    return status;
}

static void compare_parts(const void *data, size_t n, int parts, const char *what)
{
    for (uint32_t channels = 1; channels <= 3; channels += 2) {
        rows whole, part;
        ck_ok(decode(data, n, NULL, 1, channels, &whole), err);
        uint32_t w = info.width, h = info.height;
        for (int i = 0; i < parts; i++) {
            spk_rect r = {pick(0, w - 1), pick(0, h - 1), 1, 1};
            r.w = pick(1, i % 3 ? w - r.x : w - r.x < 4 ? w - r.x : 4);
            r.h = pick(1, h - r.y);
            ck_ok(decode(data, n, &r, 1, channels, &part), err);
            for (uint32_t y = 0; y < r.h; y++)
                ck_assert_msg(
                    memcmp(part.p + y * part.row, whole.p + ((size_t)(r.y + y) * w + r.x) * channels, part.row) == 0,
                    "%s: %u x %u at %u, %u of %u x %u, %u channels, row %u", what, r.w, r.h, r.x, r.y, w, h, channels,
                    y);
            free(part.p);
        }
        free(whole.p);
    }
}

START_TEST(parts_of_jpegs)
{
    static const unsigned sizes[][2] = {{131, 67}, {64, 48}, {33, 100}, {5, 9}, {2, 2}, {1, 1}};
    for (size_t k = 0; k < KINDS; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            char what[64];
            size_t n;
            unsigned char *p = encode_jpeg(sizes[s][0], sizes[s][1], &kinds[k], &n);
            snprintf(what, sizeof what, "JPEG kind %zu", k);
            compare_parts(p, n, 60, what);
            free(p);
        }
}
END_TEST

START_TEST(parts_of_pngs)
{
    static const int types[][2] = {
        {PNG_COLOR_TYPE_GRAY, 1},       {PNG_COLOR_TYPE_GRAY, 2},        {PNG_COLOR_TYPE_GRAY, 4},
        {PNG_COLOR_TYPE_GRAY, 8},       {PNG_COLOR_TYPE_GRAY, 16},       {PNG_COLOR_TYPE_RGB, 8},
        {PNG_COLOR_TYPE_RGB, 16},       {PNG_COLOR_TYPE_PALETTE, 1},     {PNG_COLOR_TYPE_PALETTE, 8},
        {PNG_COLOR_TYPE_GRAY_ALPHA, 8}, {PNG_COLOR_TYPE_GRAY_ALPHA, 16}, {PNG_COLOR_TYPE_RGB_ALPHA, 8},
        {PNG_COLOR_TYPE_RGB_ALPHA, 16}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            size_t n;
            unsigned char *p = make_png(37, 23, types[t][0], types[t][1], interlaced, &n);
            compare_parts(p, n, 20, "PNG");
            free(p);
        }
}
END_TEST

START_TEST(png_values)
{
    size_t n;
    rows out;
    unsigned char *p = make_png(5, 2, PNG_COLOR_TYPE_GRAY, 16, 0, &n);
    ck_ok(decode(p, n, NULL, 1, 1, &out), err);
    for (unsigned x = 0; x < 5; x++) /* 16 bits: the upper byte */
        ck_assert_uint_eq(out.p[x], image_byte(2 * x, 0, 0));
    free(out.p);
    free(p);
    p = make_png(8, 1, PNG_COLOR_TYPE_GRAY, 2, 0, &n);
    ck_ok(decode(p, n, NULL, 1, 3, &out), err);
    for (unsigned x = 0; x < 8; x++) /* two bits: times 85 */
        ck_assert_uint_eq(out.p[3 * x + 1], (image_byte(x / 4, 0, 0) >> (6 - 2 * (x % 4)) & 3) * 85);
    free(out.p);
    free(p);
    p = make_png(3, 1, PNG_COLOR_TYPE_RGB_ALPHA, 8, 0, &n);
    ck_ok(decode(p, n, NULL, 1, 3, &out), err);
    for (unsigned x = 0; x < 3; x++) /* alpha dropped */
        for (unsigned c = 0; c < 3; c++)
            ck_assert_uint_eq(out.p[3 * x + c], image_byte(4 * x + c, 0, 0));
    ck_assert_int_eq(info.components, 4);
    free(out.p);
    free(p);
}
END_TEST

/* A mask: what was stored, bit for bit; with three channels, or if nobody asks, colours. */
START_TEST(palette_indices)
{
    for (int depth = 1; depth <= 8; depth *= 2)
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            size_t n;
            rows out;
            const spk_rect part = {3, 5, 30, 9};
            unsigned char *p = make_png(37, 23, PNG_COLOR_TYPE_PALETTE, depth, interlaced, &n);
            indices = true;
            ck_ok(decode(p, n, &part, 1, 1, &out), err);
            for (unsigned y = 0; y < part.h; y++)
                for (unsigned x = 0; x < part.w; x++) {
                    unsigned bit = (x + part.x) * (unsigned)depth, byte = image_byte(bit / 8, y + part.y, 0);
                    unsigned want = byte >> (8 - (unsigned)depth - bit % 8) & ((1u << depth) - 1);
                    ck_assert_uint_eq(out.p[y * part.w + x], want);
                }
            free(out.p);
            ck_ok(decode(p, n, NULL, 1, 3, &out), err);
            ck_assert_uint_eq(out.p[0] + out.p[1], 255);
            free(out.p);
            free(p);
        }
}
END_TEST

START_TEST(colour_arithmetic)
{
    static const uint8_t cmyk[] = {255, 255, 255, 255, 0, 255, 255, 255, 255, 128, 0, 200, 10, 20, 30, 0};
    static const uint8_t want[] = {255, 255, 255, 0, 255, 255, 200, 100, 0, 0, 0, 0};
    uint8_t rgb[12], gray[4];
    spk_cmyk_to_rgb(rgb, cmyk, 4);
    ck_assert_mem_eq(rgb, want, 12);
    spk_rgb_to_gray(gray, (const uint8_t *)"\xff\0\0\0\xff\0\0\0\xff\xff\xff\xff", 4);
    ck_assert_mem_eq(gray, "\x4c\x96\x1d\xff", 4);
}
END_TEST

START_TEST(scaled_sizes)
{
    size_t n;
    unsigned char *p = encode_jpeg(131, 67, &kinds[0], &n);
    for (uint32_t denom = 1; denom <= 8; denom *= 2) {
        rows out;
        ck_ok(decode(p, n, NULL, denom, 3, &out), err);
        ck_assert_uint_eq(out.n, (size_t)((131 + denom - 1) / denom) * ((67 + denom - 1) / denom) * 3);
        free(out.p);
    }
    free(p);
}
END_TEST

static void fails(const void *data, size_t n, spk_status want, const char *part)
{
    rows out;
    ck_fails(decode(data, n, NULL, 1, 3, &out), err, want, part);
    free(out.p);
}

START_TEST(errors)
{
    size_t n, m;
    rows out;
    unsigned char *p = encode_jpeg(100, 80, &kinds[0], &n), *q = make_png(100, 80, PNG_COLOR_TYPE_RGB, 8, 0, &m);
    fails("", 0, SPK_E_FORMAT, "empty image");
    fails("hello", 5, SPK_E_FORMAT, "not an image (5 bytes)");
    fails("GIF89a\1\0\1\0\0\0\0", 13, SPK_E_UNSUPPORTED, "GIF images are not decoded");
    fails("RIFF\0\0\0\0WEBP", 12, SPK_E_UNSUPPORTED, "WebP");
    fails(p, n / 2, SPK_E_FORMAT, "truncated JPEG");
    fails(p, 30, SPK_E_FORMAT, "JPEG");
    fails(q, m / 2, SPK_E_FORMAT, "truncated PNG");
    fails(q, 20, SPK_E_FORMAT, "truncated PNG");
    ck_fails(spk_decoder_open(decoder, p, n, 7999, &info, &err), err, SPK_E_LIMIT, "100 x 80 is 8000 pixels");
    ck_fails(spk_decoder_open(decoder, q, m, 7999, &info, &err), err, SPK_E_LIMIT, "limit of 7999");
    ck_ok(spk_decoder_open(decoder, q, m, 8000, &info, &err), err);
    spk_decode_job job = {{0, 0, 100, 80}, 2, 3, keep, &out, false};
    ck_fails(spk_decoder_run(decoder, &job, &err), err, SPK_E_INVALID, "PNG at 1/2");
    job.denom = 1;
    job.part.x = 1;
    ck_fails(spk_decoder_run(decoder, &job, &err), err, SPK_E_INVALID, "100x80 at 1, 0 is not inside 100x80");
    /* After all that both decoders still work. */
    ck_ok(decode(p, n, NULL, 1, 3, &out), err);
    free(out.p);
    ck_fails(spk_decoder_run(decoder, &job, &err), err, SPK_E_STATE, "no image");
    ck_ok(decode(q, m, NULL, 1, 3, &out), err);
    free(out.p);
    free(p);
    free(q);
}
END_TEST

/* What is cut off below the part does not matter. */
START_TEST(cut_below_the_part)
{
    size_t n;
    rows whole, part;
    unsigned char *p = encode_jpeg(200, 400, &kinds[1], &n);
    spk_rect r = {20, 10, 100, 60};
    ck_ok(decode(p, n, &r, 1, 3, &whole), err);
    unsigned char *half = malloc(n / 2);
    memcpy(half, p, n / 2);
    ck_ok(decode(half, n / 2, &r, 1, 3, &part), err);
    ck_assert_mem_eq(whole.p, part.p, whole.n);
    free(half);
    free(whole.p);
    free(part.p);
    free(p);
}
END_TEST

/* Bytes changed at random: where the check finds nothing, decoding any part works. */
START_TEST(checked_images_decode)
{
    spk_image_checker *checker;
    spk_image_info checked;
    int sound = 0;
    for (int i = 0; i < 3000; i++) {
        size_t n;
        unsigned char *p =
            i % 5 ? encode_jpeg(40, 30, &kinds[(size_t)i % KINDS], &n)
                  : make_png(20, 30, i % 2 ? PNG_COLOR_TYPE_PALETTE : PNG_COLOR_TYPE_RGB, 8, i % 3 == 0, &n);
        for (uint32_t k = pick(1, 3); k > 0; k--)
            p[pick(2, (uint32_t)n - 1)] ^= (unsigned char)(1u << pick(0, 7));
        ck_ok(spk_image_checker_new(&checker, &err), err);
        if (spk_image_check(checker, p, n, 1, 1 << 20, &checked, &err) == SPK_OK) {
            rows out;
            sound++;
            ck_ok(decode(p, n, NULL, 1, i % 2 ? 3 : 1, &out), err);
            free(out.p);
        }
        spk_image_checker_free(checker);
        free(p);
    }
    ck_assert_int_gt(sound, 500);
}
END_TEST

/* A JPEG without its quantisation tables is no image, whatever was decoded before. */
START_TEST(images_do_not_depend_on_others)
{
    size_t n, m = 2;
    rows out;
    unsigned char *p = encode_jpeg(50, 40, &kinds[0], &n), *q = malloc(n);
    memcpy(q, p, 2);
    for (size_t at = 2; at < n;) {
        size_t len = p[at + 1] == 0xDA ? n - at : 2 + (size_t)(p[at + 2] << 8 | p[at + 3]);
        if (p[at + 1] != 0xDB) {
            memcpy(q + m, p + at, len);
            m += len;
        }
        at += len;
    }
    fails(q, m, SPK_E_FORMAT, "Quantization table 0x00 was not defined");
    ck_ok(decode(p, n, NULL, 1, 3, &out), err);
    free(out.p);
    fails(q, m, SPK_E_FORMAT, "Quantization table 0x00 was not defined");
    free(p);
    free(q);
}
END_TEST

static int orientation_of(const void *exif, size_t exif_n)
{
    unsigned char p[256] = {0xFF, 0xD8, 0xFF, 0xE1, 0, (unsigned char)(exif_n + 2)};
    memcpy(p + 6, exif, exif_n);
    unsigned char *exact = malloc(exif_n + 6);
    memcpy(exact, p, exif_n + 6);
    int o = spk_exif_orientation(SPK_IMAGE_JPEG, exact, exif_n + 6);
    free(exact);
    return o;
}

START_TEST(orientation_tags)
{
    unsigned char exif[64];
    for (int o = 1; o <= 8; o++)
        for (int big = 0; big < 2; big++) {
            size_t n = make_exif(exif, o, 3, big);
            ck_assert_int_eq(orientation_of(exif, n), o);
            n = make_exif(exif, o, 4, big);
            ck_assert_int_eq(orientation_of(exif, n), o);
            for (size_t cut = 0; cut < n; cut++) /* a directory that is cut off has no entry */
                ck_assert_int_eq(orientation_of(exif, cut), cut >= 28 ? o : 1);
        }
    ck_assert_int_eq(orientation_of(exif, make_exif(exif, 9, 3, 0)), 1);
    ck_assert_int_eq(orientation_of(exif, make_exif(exif, 6, 2, 0)), 1);
    make_exif(exif, 6, 3, 0);
    exif[10] = 0xFF, exif[11] = 0xFF, exif[12] = 0xFF, exif[13] = 0xFF; /* directory far outside */
    ck_assert_int_eq(orientation_of(exif, 32), 1);
    for (int o = 0; o <= 8; o++) {
        jpeg_kind kind = kinds[0];
        size_t n;
        kind.orientation = o;
        unsigned char *p = encode_jpeg(10, 10, &kind, &n);
        ck_ok(spk_decoder_open(decoder, p, n, 0, &info, &err), err);
        ck_assert_int_eq(info.orientation, o ? o : 1);
        free(p);
    }
}
END_TEST

START_TEST(orientation_of_png)
{
    unsigned char exif[64], p[128] = "\x89PNG\r\n\x1a\n\0\0\0\x1a"
                                     "eXIf";
    size_t n = make_exif(exif, 6, 3, 1) - 6;
    memcpy(p + 16, exif + 6, n);
    p[11] = (unsigned char)n;
    ck_assert_int_eq(spk_exif_orientation(SPK_IMAGE_PNG, p, 16 + n + 4), 6);
    ck_assert_int_eq(spk_exif_orientation(SPK_IMAGE_PNG, p, 16 + n + 3), 1);
    memcpy(p + 12, "IDAT", 4);
    ck_assert_int_eq(spk_exif_orientation(SPK_IMAGE_PNG, p, 16 + n + 4), 1);
}
END_TEST

/* The public calls give what the decoder gives, and nothing is written that is not asked for. */
START_TEST(whole_images)
{
    for (size_t k = 0; k < KINDS; k++)
        for (uint32_t channels = 1; channels <= 3; channels += 2) {
            size_t n = 0;
            rows want;
            uint32_t w = 0, h = 0;
            spk_image_decode_options o = {.size = sizeof o, .channels = channels};
            unsigned char *file = encode_jpeg(37, 21, &kinds[k], &n);
            ck_ok(decode(file, n, NULL, 1, channels, &want), err);
            ck_ok(spk_image_get_size(file, n, NULL, &w, &h, &err), err);
            ck_assert_uint_eq(w, 37);
            ck_assert_uint_eq(h, 21);
            uint8_t *have = malloc(37u * 21 * 3);
            ck_ok(spk_image_decode(file, n, &o, have, want.n, &err), err);
            ck_assert_mem_eq(have, want.p, want.n);
            ck_fails(spk_image_decode(file, n, &o, have, want.n - 1, &err), err, SPK_E_INVALID,
                     "image of 37x21 pixels");
            o.channels = 2;
            ck_fails(spk_image_decode(file, n, &o, have, want.n, &err), err, SPK_E_INVALID, "channels of 2");
            o = (spk_image_decode_options){.size = sizeof o, .max_pixels = 776};
            ck_fails(spk_image_get_size(file, n, &o, &w, &h, &err), err, SPK_E_LIMIT, "776");
            ck_fails(spk_image_decode(file, n / 2, NULL, have, 37u * 21 * 3, &err), err, SPK_E_FORMAT,
                     "truncated JPEG");
            ck_fails(spk_image_get_size("text", 4, NULL, &w, &h, &err), err, SPK_E_FORMAT, "not an image");
            free(have);
            free(want.p);
            free(file);
        }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("image/decode");
    TCase *t = tcase_create("decode");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, whole_images);
    tcase_add_test(t, parts_of_jpegs);
    tcase_add_test(t, parts_of_pngs);
    tcase_add_test(t, png_values);
    tcase_add_test(t, palette_indices);
    tcase_add_test(t, colour_arithmetic);
    tcase_add_test(t, scaled_sizes);
    tcase_add_test(t, errors);
    tcase_add_test(t, cut_below_the_part);
    tcase_add_test(t, checked_images_decode);
    tcase_add_test(t, images_do_not_depend_on_others);
    tcase_add_test(t, orientation_tags);
    tcase_add_test(t, orientation_of_png);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
