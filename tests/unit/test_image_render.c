/* image/: from bytes to the pixels of a row. Flips, padding, turns and pairs against the plain image; every byte is
 * written; options are checked. That the plain image is Pillow's is tests/pixels' part. */
#include "check_main.h"

#include <math.h>

#include "image/render.h"
#include "image_encode.h"

static spk_error err;
static const spk_draw_key key = {3, 1, 0, 42};
static unsigned char *jpeg, *png;
static size_t jpeg_n, png_n;

static spk_image_params params_of(spk_crop_kind crop, uint32_t w, uint32_t h)
{
    return (spk_image_params){
        .crop = crop,
        .resize = 64,
        .scale = {0.08, 1},
        .ratio = {3.0 / 4, 4.0 / 3},
        .format = {
            .width = w, .height = h, .channels = 3, .mean = {0.485f, 0.456f, 0.406f}, .std = {0.229f, 0.224f, 0.225f}}};
}

static void setup(void)
{
    jpeg_kind kind = {JCS_RGB, JCS_YCbCr, 2, 2, 0, 0, 0, 0};
    spk_error_clear(&err);
    jpeg = encode_jpeg(120, 90, &kind, &jpeg_n);
    png = make_png(120, 90, PNG_COLOR_TYPE_RGB, 8, 0, &png_n);
}

static void teardown(void)
{
    free(jpeg);
    free(png);
}

/* Malloc'ed at its exact size and filled with `fill` before. */
static uint8_t *render(const spk_image_params *p, const void *data, size_t n, const spk_geometry *paired,
                       spk_geometry *used, int fill)
{
    spk_renderer *r;
    size_t bytes = spk_pixel_bytes(&p->format);
    uint8_t *out = malloc(bytes);
    memset(out, fill, bytes);
    ck_ok(spk_renderer_new(&r, p, &err), err);
    ck_ok(spk_renderer_run(r, data, n, &key, paired, out, used, &err), err);
    spk_renderer_free(r);
    return out;
}

static void ck_same(uint8_t *a, uint8_t *b, size_t n, const char *what)
{
    ck_assert_msg(memcmp(a, b, n) == 0, "%s differ", what);
    free(a);
    free(b);
}

START_TEST(every_byte_is_written)
{
    static const uint32_t sizes[][2] = {{50, 40}, {200, 150}, {7, 300}, {65, 64}, {1, 1}};
    for (int crop = 0; crop <= SPK_CROP_NONE; crop++)
        for (int filter = 0; filter <= SPK_FILTER_NEAREST; filter++)
            for (int i = 0; i < 48; i++)
                for (size_t s = 0; s < 5; s++) {
                    spk_image_params p = params_of((spk_crop_kind)crop, sizes[s][0], sizes[s][1]);
                    p.filter = (spk_filter)filter;
                    p.format.type = (spk_pixel_type)(i % 3);
                    p.format.order = (spk_pixel_order)(i / 3 % 2);
                    p.format.channels = i / 6 % 2 ? 3 : 1;
                    p.format.normalize = i % 3 && i / 12 % 2;
                    p.hflip = p.vflip = i / 24;
                    ck_same(render(&p, jpeg, jpeg_n, NULL, NULL, 0x11), render(&p, jpeg, jpeg_n, NULL, NULL, 0xEE),
                            spk_pixel_bytes(&p.format), "outputs over different buffers");
                }
}
END_TEST

static void flip(uint8_t *image, uint32_t w, uint32_t h, bool across, bool down)
{
    uint8_t *copy = malloc((size_t)w * h * 3);
    memcpy(copy, image, (size_t)w * h * 3);
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++)
            memcpy(image + (y * w + x) * 3, copy + ((down ? h - 1 - y : y) * w + (across ? w - 1 - x : x)) * 3, 3);
    free(copy);
}

START_TEST(flips_mirror_the_output)
{
    static const uint32_t sizes[][2] = {{50, 40}, {133, 150}, {70, 31}};
    for (int i = 0; i < 4; i++)
        for (int crop = 0; crop <= SPK_CROP_NONE; crop++)
            for (int filter = 0; filter <= SPK_FILTER_NEAREST; filter++)
                for (size_t s = 0; s < 3; s++) {
                    spk_image_params p = params_of((spk_crop_kind)crop, sizes[s][0], sizes[s][1]);
                    spk_geometry plain, flipped;
                    p.filter = (spk_filter)filter;
                    uint8_t *one = render(&p, jpeg, jpeg_n, NULL, &plain, 0);
                    p.hflip = i & 1, p.vflip = i >> 1;
                    uint8_t *two = render(&p, jpeg, jpeg_n, NULL, &flipped, 0);
                    ck_assert_int_eq(flipped.hflip, i & 1);
                    ck_assert_int_eq(flipped.vflip, i >> 1);
                    ck_assert_mem_eq(&plain.crop, &flipped.crop, sizeof plain.crop);
                    flip(one, sizes[s][0], sizes[s][1], i & 1, i >> 1);
                    ck_same(one, two, spk_pixel_bytes(&p.format), "flips");
                }
}
END_TEST

START_TEST(small_images_are_padded)
{
    size_t n;
    unsigned char *small = make_png(4, 4, PNG_COLOR_TYPE_RGB, 8, 0, &n);
    spk_image_params p = params_of(SPK_CROP_CENTRE, 9, 6);
    p.resize = 4;
    uint8_t *out = render(&p, small, n, NULL, NULL, 0xEE);
    for (uint32_t y = 0; y < 6; y++)
        for (uint32_t x = 0; x < 27; x++) { /* 2 columns left, 3 right; 1 row above and below */
            bool inside = y >= 1 && y < 5 && x >= 6 && x < 18;
            ck_assert_uint_eq(out[y * 27 + x], inside ? image_byte(x - 6, y - 1, 0) : 0);
        }
    free(out);
    /* Padding is a black pixel, normalised like any other. */
    p.format.type = SPK_PIXEL_FLOAT32;
    p.format.order = SPK_PIXEL_NCHW;
    p.format.normalize = true;
    float *f = (float *)(void *)render(&p, small, n, NULL, NULL, 0xEE);
    for (int c = 0; c < 3; c++)
        ck_assert(f[c * 54] == (0.0f - p.format.mean[c]) / p.format.std[c]);
    free(f);
    free(small);
}
END_TEST

START_TEST(pairs_share_the_crop)
{
    spk_image_params p = params_of(SPK_CROP_RANDOM, 40, 40), q;
    spk_geometry first, second;
    size_t n;
    unsigned char *other = make_png(120, 91, PNG_COLOR_TYPE_GRAY, 8, 0, &n);
    spk_renderer *r;
    p.hflip = p.vflip = 0.5;
    free(render(&p, jpeg, jpeg_n, NULL, &first, 0));
    first.hflip = true, first.vflip = false;
    q = p;
    q.filter = SPK_FILTER_NEAREST;
    q.hflip = 0, q.vflip = 1; /* not asked: the pair's flips hold */
    free(render(&q, png, png_n, &first, &second, 0));
    ck_assert_mem_eq(&first.crop, &second.crop, sizeof first.crop);
    ck_assert(second.hflip && !second.vflip && first.crop.w < 120);
    uint8_t out[40 * 40 * 3];
    ck_ok(spk_renderer_new(&r, &q, &err), err);
    ck_fails(spk_renderer_run(r, other, n, &key, &first, out, NULL, &err), err, SPK_E_FORMAT,
             "120 x 91 pixels, but the image that it is paired with has 120 x 90");
    spk_renderer_free(r);
    free(other);
}
END_TEST

/* An image with an orientation tag gives what the turned image gives without: a PNG of the turned pixels, since a JPEG
 * cannot be turned without loss. */
static unsigned char *turned_png(const uint8_t *pixels, uint32_t w, uint32_t h, int orientation, size_t *n)
{
    bool swap = orientation >= 5;
    uint32_t tw = swap ? h : w, th = swap ? w : h;
    png_memory m = {NULL, 0};
    png_structp p = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(p);
    png_set_write_fn(p, &m, png_memory_write, NULL);
    png_set_IHDR(p, info, tw, th, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, 0, 0);
    png_write_info(p, info);
    uint8_t *row = malloc((size_t)tw * 3);
    for (uint32_t y = 0; y < th; y++) {
        for (uint32_t x = 0; x < tw; x++) { /* where pixel x, y lies as it is stored */
            static const int from_right[9] = {0, 0, 1, 1, 0, 0, 0, 1, 1}, from_bottom[9] = {0, 0, 0, 1, 1, 0, 1, 1, 0};
            uint32_t u = swap ? y : x, v = swap ? x : y;
            u = from_right[orientation] ? w - 1 - u : u;
            v = from_bottom[orientation] ? h - 1 - v : v;
            memcpy(row + 3 * (size_t)x, pixels + ((size_t)v * w + u) * 3, 3);
        }
        png_write_row(p, row);
    }
    png_write_end(p, NULL);
    png_destroy_write_struct(&p, &info);
    free(row);
    *n = m.n;
    return m.p;
}

START_TEST(orientation_turns_first)
{
    for (int o = 1; o <= 8; o++) {
        jpeg_kind kind = {JCS_RGB, JCS_YCbCr, 2, 2, 0, 0, 0, o};
        size_t n, m;
        unsigned char *tagged = encode_jpeg(120, 90, &kind, &n);
        spk_image_params plain = params_of(SPK_CROP_NONE, 120, 90);
        uint8_t *pixels = render(&plain, tagged, n, NULL, NULL, 0); /* the tag is not looked at */
        unsigned char *turned = turned_png(pixels, 120, 90, o, &m);
        for (int crop = 0; crop <= SPK_CROP_NONE; crop++)
            for (int filter = 0; filter <= SPK_FILTER_NEAREST; filter++) {
                spk_image_params p = params_of((spk_crop_kind)crop, 45, 70);
                spk_geometry one, two;
                p.filter = (spk_filter)filter;
                uint8_t *a = render(&p, turned, m, NULL, &one, 0);
                p.exif_orientation = true;
                uint8_t *b = render(&p, tagged, n, NULL, &two, 0);
                ck_assert_uint_eq(one.width, o >= 5 ? 90 : 120);
                ck_assert_mem_eq(&one.crop, &two.crop, sizeof one.crop);
                ck_same(a, b, spk_pixel_bytes(&p.format), "tagged and turned");
            }
        free(turned);
        free(tagged);
        free(pixels);
    }
}
END_TEST

/* Close to the exact pixels in all orientations, and exact where the crop is too small. */
START_TEST(fast_is_close)
{
    for (int o = 1; o <= 8; o++)
        for (uint32_t denom = 2; denom <= 8; denom *= 2) {
            jpeg_kind kind = {JCS_RGB, JCS_YCbCr, 1, 1, 0, 0, 0, o};
            size_t n;
            unsigned char *p = encode_jpeg(16 * 17 + 5, 16 * 13 + 11, &kind, &n);
            uint32_t w = 16 * 17 / (2 * denom), h = 16 * 13 / (2 * denom);
            spk_image_params q = params_of(SPK_CROP_NONE, o >= 5 ? h : w, o >= 5 ? w : h);
            q.exif_orientation = true;
            uint8_t *exact = render(&q, p, n, NULL, NULL, 0);
            q.fast = true;
            uint8_t *fast = render(&q, p, n, NULL, NULL, 0);
            double sum = 0;
            for (uint32_t i = 0; i < w * h * 3; i++)
                sum += (exact[i] - fast[i]) * (exact[i] - fast[i]);
            ck_assert_msg(sum > 0 && sum / (w * h * 3) < 12, "orientation %d, 1/%u: error %g", o, denom,
                          sum / (w * h * 3));
            free(exact);
            free(fast);
            q.format.width = o >= 5 ? 54 : 70, q.format.height = o >= 5 ? 70 : 54; /* less than four times */
            fast = render(&q, p, n, NULL, NULL, 0);
            q.fast = false;
            ck_same(render(&q, p, n, NULL, NULL, 0), fast, spk_pixel_bytes(&q.format), "large outputs");
            free(p);
        }
}
END_TEST

START_TEST(errors_leave_a_working_renderer)
{
    spk_image_params p = params_of(SPK_CROP_RANDOM, 30, 20);
    spk_renderer *r;
    uint8_t out[1800], again[1800];
    p.max_pixels = 120 * 90;
    ck_ok(spk_renderer_new(&r, &p, &err), err);
    ck_ok(spk_renderer_run(r, jpeg, jpeg_n, &key, NULL, out, NULL, &err), err);
    ck_fails(spk_renderer_run(r, jpeg, 400, &key, NULL, again, NULL, &err), err, SPK_E_FORMAT, "JPEG");
    ck_fails(spk_renderer_run(r, png, 400, &key, NULL, again, NULL, &err), err, SPK_E_FORMAT, "truncated PNG");
    ck_fails(spk_renderer_run(r, "BM", 2, &key, NULL, again, NULL, &err), err, SPK_E_FORMAT, "not an image");
    ck_ok(spk_renderer_run(r, jpeg, jpeg_n, &key, NULL, again, NULL, &err), err);
    ck_assert_mem_eq(out, again, sizeof out);
    spk_renderer_free(r);
    p.max_pixels--;
    ck_ok(spk_renderer_new(&r, &p, &err), err);
    ck_fails(spk_renderer_run(r, jpeg, jpeg_n, &key, NULL, out, NULL, &err), err, SPK_E_LIMIT, "limit of 10799");
    spk_renderer_free(r);
}
END_TEST

static void refused(const spk_image_params *p, const char *part)
{
    spk_renderer *r;
    ck_fails(spk_renderer_new(&r, p, &err), err, SPK_E_INVALID, part);
}

START_TEST(options_are_checked)
{
    spk_image_params good = params_of(SPK_CROP_RANDOM, 224, 224), p;
    ck_ok(spk_image_params_check(&good, &err), err);
    p = good, p.format.width = 0, refused(&p, "224 x 0, but each must be 1 to 16384");
    p = good, p.format.height = 16385, refused(&p, "16385");
    p = good, p.format.channels = 4, refused(&p, "channels: 4");
    p = good, p.format.type = (spk_pixel_type)7, refused(&p, "dtype: 7");
    p = good, p.format.order = (spk_pixel_order)2, refused(&p, "layout: 2");
    p = good, p.format.normalize = true, refused(&p, "normalize: not with uint8");
    p = good, p.format.normalize = true, p.format.type = SPK_PIXEL_FLOAT16, p.format.std[2] = 0;
    refused(&p, "channel 2");
    p = good, p.scale[0] = 2, refused(&p, "scale: 2 to 1");
    p = good, p.scale[1] = INFINITY, refused(&p, "scale");
    p = good, p.ratio[0] = 0, refused(&p, "ratio: 0 to 1.33333");
    p = good, p.hflip = 1.5, refused(&p, "hflip: 1.5");
    p = good, p.vflip = NAN, refused(&p, "vflip");
    p = good, p.filter = (spk_filter)3, refused(&p, "interpolation: 3");
    p = good, p.crop = (spk_crop_kind)3, refused(&p, "transform: 3");
    p = good, p.crop = SPK_CROP_CENTRE, p.resize = 0, refused(&p, "resize: 0");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("image/render");
    TCase *t = tcase_create("render");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, every_byte_is_written);
    tcase_add_test(t, flips_mirror_the_output);
    tcase_add_test(t, small_images_are_padded);
    tcase_add_test(t, pairs_share_the_crop);
    tcase_add_test(t, orientation_turns_first);
    tcase_add_test(t, fast_is_close);
    tcase_add_test(t, errors_leave_a_working_renderer);
    tcase_add_test(t, options_are_checked);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
