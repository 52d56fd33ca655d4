/* Samples whose JPEG is stored as coefficients: what a reader gives as files and as stored, and what the public calls
 * on single images make of the stored form. */
#include "check_main.h"

#include <shardpack/dataset.h>
#include <shardpack/image.h>

#include "shard/shard.h"
#include "shard_fixture.h"
#include "stored_fixture.h"

static const jpeg_variant makes[] = {{70, 45, JCS_YCbCr, 2, 2, 90, 0, 0, 0, 0, CONTENT_SMOOTH},
                                     {33, 64, JCS_YCbCr, 2, 1, 95, 1, 1, 0, 0, CONTENT_SMOOTH},
                                     {51, 17, JCS_GRAYSCALE, 1, 1, 80, 0, 0, 3, 0, CONTENT_NOISE},
                                     {40, 40, JCS_RGB, 1, 1, 85, 0, 0, 0, 0, CONTENT_SMOOTH}};
enum { MAKES = sizeof makes / sizeof *makes, TURNED = 3 };
#define PIXELS_MAX (70u * 64u * 3u)

static struct {
    unsigned char *file;
    size_t n;
    spk_buf blob;
} images[MAKES];
static char *folder;
static spk_shard *shard;
static spk_reader *samples;

/* Samples a to d are the images, with a label each. */
static void open_shard(const fixture_member *m, size_t n)
{
    char path[4096];
    spk_shard_info info;
    snprintf(path, sizeof path, "%s/x.tar.zst", folder);
    fixture_shard(path, m, n, n, 1, &info);
    ck_ok(spk_shard_open(&shard, path, NULL, &err), err);
    ck_ok(spk_reader_open_shard(&samples, shard, 0, &err), err);
}

static void close_shard(void)
{
    spk_reader_close(samples);
    spk_shard_close(shard);
}

static void open_images(void)
{
    static const char *const keys[MAKES] = {"a", "b", "c", "d"};
    fixture_member m[2 * MAKES];
    for (size_t i = 0; i < MAKES; i++) {
        const spk_buf *b = &images[i].blob;
        m[2 * i] = (fixture_member){.key = keys[i], .field = "cls", .data = "7", .size = 1};
        m[2 * i + 1] = (fixture_member){keys[i], "jpg", b->data, b->len, NULL, SPK_COEF_NAME, images[i].n};
    }
    m[2 * MAKES - 1].encoding = SPK_COEF_PIXELS_NAME;
    open_shard(m, sizeof m / sizeof *m);
}

/* Behind SOI: an Exif block that says how to turn the image. */
static void insert_exif(unsigned char **p, size_t *n)
{
    static const unsigned char exif[] = {0xFF, 0xE1, 0,    34,   'E', 'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0,
                                         1,    0,    0x12, 0x01, 3,   0,   1,   0,   0, 0, 6,   0,   0,  0, 0, 0, 0, 0};
    unsigned char *out = malloc(*n + sizeof exif);
    memcpy(out, *p, 2);
    memcpy(out + 2, exif, sizeof exif);
    memcpy(out + 2 + sizeof exif, *p + 2, *n - 2);
    free(*p);
    *p = out;
    *n += sizeof exif;
}

static void setup_images(void)
{
    stored_setup(7);
    folder = check_temp_folder();
    for (size_t i = 0; i < MAKES; i++) {
        spk_transcode_result result;
        images[i].file = encode_variant(&makes[i], &rng, &images[i].n);
        if (i == TURNED)
            insert_exif(&images[i].file, &images[i].n);
        ck_ok(spk_transcode(transcoder, images[i].file, images[i].n, 1u << 22, &images[i].blob, &result, &err), err);
        ck_assert(result == SPK_TRANSCODED || result == SPK_TRANSCODE_NO_GAIN);
    }
}

static void teardown_images(void)
{
    for (size_t i = 0; i < MAKES; i++) {
        free(images[i].file);
        spk_buf_free(&images[i].blob);
    }
    check_remove_tree(folder);
    teardown();
}

static const spk_sample *next_sample(void)
{
    const spk_sample *s = NULL;
    ck_ok(spk_reader_next(samples, &s, &err), err);
    ck_assert_uint_eq(s->field_count, 2);
    return s;
}

static void check_bytes(const spk_field *f, const void *data, size_t n)
{
    ck_assert_uint_eq(f->size, n);
    ck_assert_mem_eq(f->data, data, n);
}

/* Files, stored forms, and files again, from the same reader. */
START_TEST(files_and_stored_forms)
{
    open_images();
    for (int stored = 0; stored < 3; stored++) {
        ck_ok(spk_reader_seek(samples, 0, &err), err);
        spk_reader_set_stored(samples, stored % 2);
        for (size_t i = 0; i < MAKES; i++) {
            const spk_sample *s = next_sample();
            const spk_buf *b = &images[i].blob;
            check_bytes(&s->fields[0], "7", 1);
            ck_assert_uint_eq(s->fields[0].original, 1);
            ck_assert_str_eq(s->fields[0].encoding, "identity");
            check_bytes(&s->fields[1], stored % 2 ? b->data : images[i].file, stored % 2 ? b->len : images[i].n);
            ck_assert_uint_eq(s->fields[1].original, images[i].n);
            ck_assert_str_eq(s->fields[1].encoding, i + 1 < MAKES ? SPK_COEF_NAME : SPK_COEF_PIXELS_NAME);
        }
    }
    close_shard();
}
END_TEST

/* Whoever wants files is told of what cannot be one; whoever takes what is stored sees to that later. An encoding that
 * is unknown is told to both. */
START_TEST(broken_and_unknown)
{
    const spk_buf *b = &images[0].blob;
    const fixture_member m[] = {{"a", "jpg", "no blob", 7, NULL, SPK_COEF_NAME, 100},
                                {"b", "jpg", b->data, b->len, NULL, SPK_COEF_NAME, images[0].n + 1},
                                {"c", "jpg", b->data, b->len, NULL, "later", images[0].n},
                                {"d", "jpg", b->data, b->len, NULL, SPK_COEF_NAME, images[0].n}};
    const spk_sample *s = NULL;
    open_shard(m, 4);
    ck_fails(spk_reader_next(samples, &s, &err), err, SPK_E_FORMAT, "x.tar.zst: sample \"a\": field \"jpg\": ");
    ck_fails(spk_reader_next(samples, &s, &err), err, SPK_E_FORMAT, "the index says");
    ck_fails(spk_reader_next(samples, &s, &err), err, SPK_E_UNSUPPORTED, "stored as \"later\"");
    ck_ok(spk_reader_next(samples, &s, &err), err);
    ck_ok(spk_reader_seek(samples, 0, &err), err);
    spk_reader_set_stored(samples, 1);
    ck_ok(spk_reader_next(samples, &s, &err), err);
    check_bytes(&s->fields[0], "no blob", 7);
    ck_ok(spk_reader_next(samples, &s, &err), err);
    ck_assert_uint_eq(s->fields[0].original, images[0].n + 1);
    ck_fails(spk_reader_next(samples, &s, &err), err, SPK_E_UNSUPPORTED, "stored as \"later\"");
    ck_ok(spk_reader_next(samples, &s, &err), err);
    close_shard();
}
END_TEST

START_TEST(files_of_stored_forms)
{
    void *have = NULL;
    size_t n = 0;
    for (size_t i = 0; i < MAKES; i++) {
        ck_ok(spk_image_restore(images[i].blob.data, images[i].blob.len, &have, &n, &err), err);
        ck_assert_uint_eq(n, images[i].n);
        ck_assert_mem_eq(have, images[i].file, n);
        spk_free(have);
    }
    const spk_buf *b = &images[0].blob;
    ck_fails(spk_image_restore(b->data, b->len - 1, &have, &n, &err), err, SPK_E_FORMAT, "bad jpeg_coefficients: ");
    ck_assert_ptr_null(have);
    ck_fails(spk_image_restore(images[0].file, images[0].n, &have, &n, &err), err, SPK_E_FORMAT, "bad jpeg");
    ck_fails(spk_image_restore("", 0, &have, &n, &err), err, SPK_E_FORMAT, "bad jpeg");
}
END_TEST

/* Pixels of the stored form are those of the file, by one decoder for all and by one for each. */
START_TEST(pixels)
{
    static uint8_t want[PIXELS_MAX], have[PIXELS_MAX];
    spk_image_decoder *d = NULL;
    spk_image_head head;
    ck_ok(spk_image_decoder_new(&d, &err), err);
    for (uint32_t i = 0; i < 2 * MAKES; i++) {
        const spk_buf *b = &images[i / 2].blob;
        spk_image_decode_options o = {.size = sizeof o, .channels = i % 2 ? 1 : 3};
        const jpeg_variant *v = &makes[i / 2];
        uint32_t w = 0, h = 0;
        size_t n = (size_t)v->width * v->height * o.channels;
        ck_ok(spk_image_decode(images[i / 2].file, images[i / 2].n, &o, want, n, &err), err);
        ck_ok(spk_image_get_size(b->data, b->len, &o, &w, &h, &err), err);
        ck_assert(w == v->width && h == v->height);
        ck_ok(spk_image_decode(b->data, b->len, &o, have, n, &err), err);
        ck_assert_mem_eq(have, want, n);
        memset(have, 0, n);
        ck_ok(spk_image_decoder_open(d, b->data, b->len, &o, &head, &err), err);
        ck_assert(head.width == w && head.height == h && head.encoded && head.orientation == (i / 2 == TURNED ? 6 : 1));
        ck_fails(spk_image_decoder_read(d, have, n - 1, &err), err, SPK_E_INVALID, "for an image of");
        ck_ok(spk_image_decoder_read(d, have, n, &err), err);
        ck_assert_mem_eq(have, want, n);
        ck_fails(spk_image_decoder_read(d, have, n, &err), err, SPK_E_STATE, "no image is open");
        ck_ok(spk_image_decoder_open(d, images[i / 2].file, images[i / 2].n, &o, &head, &err), err);
        ck_assert(head.width == w && head.height == h && !head.encoded);
        ck_ok(spk_image_decoder_read(d, have, n, &err), err);
        ck_assert_mem_eq(have, want, n);
    }
    spk_image_decoder_free(d);
    spk_image_decoder_free(NULL);
}
END_TEST

START_TEST(limits_and_damage)
{
    const spk_buf *b = &images[0].blob;
    const spk_image_decode_options few = {.size = sizeof few, .max_pixels = 70 * 45 - 1};
    const spk_image_decode_options two = {.size = sizeof two, .channels = 2};
    spk_image_decoder *d = NULL;
    spk_image_head head;
    uint8_t pixel[3];
    ck_ok(spk_image_decoder_new(&d, &err), err);
    ck_fails(spk_image_decoder_read(d, pixel, 3, &err), err, SPK_E_STATE, "no image is open");
    ck_fails(spk_image_decoder_open(d, b->data, b->len, &few, &head, &err), err, SPK_E_LIMIT, "3149");
    ck_assert_uint_eq(head.width, 0);
    ck_fails(spk_image_decoder_open(d, images[0].file, images[0].n, &few, &head, &err), err, SPK_E_LIMIT, "3149");
    ck_fails(spk_image_decoder_open(d, b->data, b->len / 2, NULL, &head, &err), err, SPK_E_FORMAT,
             "bad jpeg_coefficients: ");
    ck_fails(spk_image_decoder_open(d, b->data, b->len, &two, &head, &err), err, SPK_E_INVALID, "channels of 2");
    ck_fails(spk_image_decoder_open(d, "text", 4, NULL, &head, &err), err, SPK_E_FORMAT, "not an image");
    ck_fails(spk_image_decoder_read(d, pixel, 3, &err), err, SPK_E_STATE, "no image is open");
    spk_image_decoder_free(d);
}
END_TEST

/* Bytes of the marker segment at p. */
static size_t segment(const unsigned char *p, const unsigned char *end)
{
    ck_assert(end - p >= 4 && p[0] == 0xFF);
    return 2 + (size_t)(p[2] << 8 | p[3]);
}

/* The next segment that is no Huffman table. */
static const unsigned char *skip_tables(const unsigned char *p, const unsigned char *end)
{
    while (p[1] == 0xC4)
        p += segment(p, end);
    return p;
}

/* As in the file up to the first scan, but for Huffman tables. */
static void check_header(const unsigned char *p, size_t n, const unsigned char *want, size_t want_n)
{
    const unsigned char *end = p + n, *want_end = want + want_n;
    bool scan = false;
    ck_assert(n > 2 && memcmp(p, want, 2) == 0);
    for (p += 2, want += 2; !scan;) {
        p = skip_tables(p, end);
        want = skip_tables(want, want_end);
        scan = want[1] == 0xDA;
        size_t size = segment(want, want_end);
        ck_assert(size <= (size_t)(end - p));
        ck_assert_mem_eq(p, want, size);
        p += size;
        want += size;
    }
}

START_TEST(headers)
{
    spk_image_decoder *d = NULL;
    spk_image_head head;
    const void *header = NULL;
    size_t n = 0;
    ck_ok(spk_image_decoder_new(&d, &err), err);
    ck_fails(spk_image_decoder_header(d, &header, &n, &err), err, SPK_E_STATE, "no encoded image is open");
    for (size_t i = 0; i < MAKES; i++) {
        ck_ok(spk_image_decoder_open(d, images[i].blob.data, images[i].blob.len, NULL, &head, &err), err);
        ck_ok(spk_image_decoder_header(d, &header, &n, &err), err);
        check_header(header, n, images[i].file, images[i].n);
        ck_ok(spk_image_decoder_open(d, images[i].file, images[i].n, NULL, &head, &err), err);
        ck_fails(spk_image_decoder_header(d, &header, &n, &err), err, SPK_E_STATE, "no encoded image is open");
    }
    spk_image_decoder_free(d);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("shard_encoded");
    TCase *t = tcase_create("encoded");
    tcase_add_checked_fixture(t, setup_images, teardown_images);
    tcase_add_test(t, files_and_stored_forms);
    tcase_add_test(t, broken_and_unknown);
    tcase_add_test(t, files_of_stored_forms);
    tcase_add_test(t, pixels);
    tcase_add_test(t, limits_and_damage);
    tcase_add_test(t, headers);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
