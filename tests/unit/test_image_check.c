/* image/: sniffing and the check, on sound, damaged and hostile images. */
#include "check_main.h"

#include "image/check.h"
#include "image_fixture.h"

static spk_image_checker *checker;
static spk_image_info info;
static spk_error err;
static unsigned char *p;
static size_t n;

static void setup(void)
{
    spk_error_clear(&err);
    ck_ok(spk_image_checker_new(&checker, &err), err);
    p = NULL;
}

static void teardown(void)
{
    spk_image_checker_free(checker);
    free(p);
}

static spk_status check(const void *data, size_t len)
{
    return spk_image_check(checker, data, len, 1, 0, &info, &err);
}

static void take_jpeg(unsigned w, unsigned h, int components, int progressive)
{
    free(p);
    p = make_jpeg(w, h, components, progressive, &n);
}

static void take_png(unsigned w, unsigned h, int color, int depth, int interlaced)
{
    free(p);
    p = make_png(w, h, color, depth, interlaced, &n);
}

static void is_image(spk_image_kind kind, uint32_t w, uint32_t h, int components)
{
    ck_ok(check(p, n), err);
    ck_assert_int_eq(info.kind, kind);
    ck_assert_uint_eq(info.width, w);
    ck_assert_uint_eq(info.height, h);
    ck_assert_int_eq(info.components, components);
}

START_TEST(sound_jpegs)
{
    static const int components[] = {1, 3, 4};
    for (int progressive = 0; progressive < 2; progressive++)
        for (int i = 0; i < 3; i++) {
            take_jpeg(123, 77, components[i], progressive);
            is_image(SPK_IMAGE_JPEG, 123, 77, components[i]);
        }
    take_jpeg(1, 1, 3, 0);
    is_image(SPK_IMAGE_JPEG, 1, 1, 3);
    take_jpeg(1600, 1200, 3, 1);
    is_image(SPK_IMAGE_JPEG, 1600, 1200, 3);
}
END_TEST

START_TEST(damaged_jpegs)
{
    for (int progressive = 0; progressive < 2; progressive++) {
        take_jpeg(200, 150, 3, progressive);
        ck_fails(check(p, n / 2), err, SPK_E_FORMAT, "truncated JPEG: Premature end of JPEG file after ");
        ck_fails(check(p, n - 2), err, SPK_E_FORMAT, "truncated JPEG: Premature end of JPEG file after ");
        ck_ok(spk_image_check(checker, p, n - 2, 0, 0, &info, &err), err); /* the header is sound */
        unsigned char *longer = malloc(n + 10);
        memcpy(longer, p, n);
        memset(longer + n, 'x', 10);
        ck_ok(check(longer, n + 10), err);
        free(longer);
        is_image(SPK_IMAGE_JPEG, 200, 150, 3); /* the checker is fit for use after each error */
    }
    take_jpeg(200, 150, 3, 0);
    memset(p + n / 2, 0xFF, 40);
    ck_fails(check(p, n), err, SPK_E_FORMAT, "bad JPEG: ");
    ck_fails(check("\xff\xd8\xff\xe0", 4), err, SPK_E_FORMAT, "truncated JPEG");
}
END_TEST

static void set_jpeg_size(unsigned w, unsigned h)
{
    for (size_t i = 2; i + 9 < n; i++)
        if (p[i] == 0xFF && (p[i + 1] == 0xC0 || p[i + 1] == 0xC2)) {
            p[i + 5] = (unsigned char)(h >> 8);
            p[i + 6] = (unsigned char)h;
            p[i + 7] = (unsigned char)(w >> 8);
            p[i + 8] = (unsigned char)w;
            return;
        }
    ck_abort_msg("no frame header");
}

START_TEST(header_bombs)
{
    for (int progressive = 0; progressive < 2; progressive++) {
        take_jpeg(64, 64, 3, progressive);
        set_jpeg_size(60000, 60000);
        ck_fails(check(p, n), err, SPK_E_LIMIT, "60000 x 60000 is 3600000000 pixels: more than the limit of 178956970");
        ck_fails(spk_image_check(checker, p, n, 0, 1000, &info, &err), err, SPK_E_LIMIT, "more than the limit of 1000");
        set_jpeg_size(12000, 12000);
        ck_fails(check(p, n), err, SPK_E_FORMAT, "truncated JPEG: 12000 x 12000 pixels need at least ");
    }
}
END_TEST

/* An image with its last scan over and over. */
START_TEST(scan_bombs)
{
    take_jpeg(16, 16, 3, 2);
    is_image(SPK_IMAGE_JPEG, 16, 16, 3);
    size_t last = 0;
    for (size_t i = 0; i + 1 < n; i++)
        if (p[i] == 0xFF && p[i + 1] == 0xDA)
            last = i;
    size_t scan = n - 2 - last, total = last + scan * 1200 + 2;
    unsigned char *bomb = malloc(total);
    memcpy(bomb, p, last);
    for (size_t i = 0; i < 1200; i++)
        memcpy(bomb + last + i * scan, p + last, scan);
    memcpy(bomb + total - 2, "\xff\xd9", 2);
    ck_fails(check(bomb, total), err, SPK_E_LIMIT, "JPEG with more than 1000 scans");
    free(bomb);
}
END_TEST

START_TEST(sound_pngs)
{
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        take_png(33, 21, PNG_COLOR_TYPE_GRAY, 16, interlaced);
        is_image(SPK_IMAGE_PNG, 33, 21, 1);
        take_png(33, 21, PNG_COLOR_TYPE_GRAY, 1, interlaced);
        is_image(SPK_IMAGE_PNG, 33, 21, 1);
        take_png(3, 2, PNG_COLOR_TYPE_RGB, 8, interlaced);
        is_image(SPK_IMAGE_PNG, 3, 2, 3);
        take_png(33, 21, PNG_COLOR_TYPE_RGB_ALPHA, 16, interlaced);
        is_image(SPK_IMAGE_PNG, 33, 21, 4);
        take_png(33, 21, PNG_COLOR_TYPE_PALETTE, 4, interlaced);
        is_image(SPK_IMAGE_PNG, 33, 21, 3);
    }
}
END_TEST

START_TEST(damaged_pngs)
{
    take_png(100, 80, PNG_COLOR_TYPE_RGB, 8, 0);
    ck_fails(check(p, n / 2), err, SPK_E_FORMAT, "truncated PNG: ends after ");
    ck_fails(check(p, n - 12), err, SPK_E_FORMAT, "truncated PNG: ends after ");
    ck_fails(check(p, 8), err, SPK_E_FORMAT, "truncated PNG: ends after 8 bytes");
    p[n / 2] ^= 1;
    ck_fails(check(p, n), err, SPK_E_FORMAT, "bad PNG: ");
    p[n / 2] ^= 1;
    p[n - 13] ^= 1; /* checksum of the last IDAT */
    ck_fails(check(p, n), err, SPK_E_FORMAT, "bad PNG: ");
    p[n - 13] ^= 1;
    is_image(SPK_IMAGE_PNG, 100, 80, 3);
    p = realloc(p, n + 5);
    memcpy(p + n, "trail", 5);
    ck_ok(check(p, n + 5), err);
    ck_fails(spk_image_check(checker, p, n, 1, 7999, &info, &err), err, SPK_E_LIMIT,
             "100 x 80 is 8000 pixels: more than the limit of 7999");
}
END_TEST

START_TEST(no_images)
{
    ck_fails(check("hello", 5), err, SPK_E_FORMAT, "not an image: begins with \"hello\"");
    ck_fails(check("<html>\nmore", 11), err, SPK_E_FORMAT, "not an image: begins with \"<html>\"");
    ck_fails(check("\0\1\2", 3), err, SPK_E_FORMAT, "not an image: begins with bytes 00 01 02");
    ck_fails(check("", 0), err, SPK_E_FORMAT, "empty file");
    ck_fails(check(NULL, 0), err, SPK_E_FORMAT, "empty file");
    ck_fails(check("BMW is a car maker, as we all know", 34), err, SPK_E_FORMAT, "not an image");
}
END_TEST

START_TEST(other_formats_give_their_size)
{
    static const unsigned char gif[] = "GIF89a\x05\x00\x07\x00\x00\x00\x00";
    ck_ok(check(gif, sizeof gif - 1), err);
    ck_assert(info.kind == SPK_IMAGE_GIF && info.width == 5 && info.height == 7);
    static const unsigned char webp[30] = "RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\x63\0\0\x31\0\0";
    ck_ok(check(webp, sizeof webp), err);
    ck_assert(info.kind == SPK_IMAGE_WEBP && info.width == 100 && info.height == 50 && info.components == 4);
    static const unsigned char bmp[54] = "BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0\x09\0\0\0\xf8\xff\xff\xff";
    ck_ok(check(bmp, sizeof bmp), err);
    ck_assert(info.kind == SPK_IMAGE_BMP && info.width == 9 && info.height == 8);
    static const unsigned char tiff[] = "MM\0*\0\0\0\x08\0\2\x01\0\0\3\0\0\0\1\0\x20\0\0\x01\1\0\3\0\0\0\1\0\x10\0\0";
    ck_ok(check(tiff, sizeof tiff - 1), err);
    ck_assert(info.kind == SPK_IMAGE_TIFF && info.width == 32 && info.height == 16);
    ck_fails(check(tiff, 12), err, SPK_E_FORMAT, "bad TIFF: no dimensions in the header, file has 12 bytes");
    ck_fails(check(gif, 8), err, SPK_E_FORMAT, "bad GIF: no dimensions");
}
END_TEST

START_TEST(names_and_versions)
{
    ck_assert_str_eq(spk_image_kind_name(SPK_IMAGE_JPEG), "JPEG");
    ck_assert_str_eq(spk_image_kind_name((spk_image_kind)99), "unknown");
    ck_assert_ptr_eq(strstr(spk_jpeg_version(), "libjpeg-turbo "), spk_jpeg_version());
    ck_assert_ptr_eq(strstr(spk_png_version(), "libpng 1."), spk_png_version());
    spk_image_checker_free(NULL);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("image/check");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, sound_jpegs);
    tcase_add_test(t, damaged_jpegs);
    tcase_add_test(t, header_bombs);
    tcase_add_test(t, scan_bombs);
    tcase_add_test(t, sound_pngs);
    tcase_add_test(t, damaged_pngs);
    tcase_add_test(t, no_images);
    tcase_add_test(t, other_formats_give_their_size);
    tcase_add_test(t, names_and_versions);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
