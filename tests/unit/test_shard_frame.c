/* shard/frame: what is written can be read, and what differs from it is refused before or while decompressing. */
#include "check_main.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/rng.h"
#include "shard/format.h"
#include "shard/frame.h"

#include <xxhash.h>
#include <zstd.h>

static spk_status to_buf(void *ctx, const void *p, size_t n, spk_error *err)
{
    return spk_buf_append(ctx, p, n, err);
}

static spk_status refuses(void *ctx, const void *p, size_t n, spk_error *err)
{
    (void)ctx;
    (void)p;
    return spk_error_set(err, SPK_E_IO, "sink refuses %zu bytes", n);
}

/* Half noise, half text, so that there are raw and compressed blocks. */
static uint8_t *make_content(size_t n)
{
    uint8_t *p = malloc(n + 8);
    spk_rng r = {1, 2, 0};
    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < n; i += 8) {
        uint64_t v = i < n / 2 ? spk_rng_u64(&r) : i & 0xF0;
        memcpy(p + i, &v, 8);
    }
    return p;
}

static void compress(spk_buf *out, const uint8_t *p, size_t n, size_t step, int level, spk_frame_info *info)
{
    spk_frame_writer *w = NULL;
    spk_error err;
    ck_ok(spk_frame_writer_new(&w, &err), err);
    ck_ok(spk_frame_begin(w, level, n, to_buf, out, &err), err);
    for (size_t i = 0; i < n; i += step)
        ck_ok(spk_frame_write(w, p + i, n - i < step ? n - i : step, &err), err);
    ck_ok(spk_frame_end(w, info, &err), err);
    spk_frame_writer_free(w);
}

START_TEST(frames_round_trip_whatever_the_cuts)
{
    static const size_t sizes[] = {0, 1, 511, 131072, 131073, 3000000};
    static const int levels[] = {-5, 1, 3, 9, 19};
    for (size_t s = 0; s < 6; s++) {
        uint8_t *p = make_content(sizes[s]), *back = malloc(sizes[s] + 1);
        for (size_t l = 0; l < 5; l++) {
            spk_buf whole = {0}, pieces = {0};
            spk_frame_info info, other;
            spk_error err;
            compress(&whole, p, sizes[s], sizes[s] + 1, levels[l], &info);
            compress(&pieces, p, sizes[s], 70001, levels[l], &other);
            ck_assert_uint_eq(whole.len, pieces.len);
            ck_assert_mem_eq(whole.data, pieces.data, whole.len);
            ck_assert_mem_eq(&info.digest, &other.digest, 16);
            ck_assert_uint_eq(info.bytes, whole.len);
            ck_assert_uint_eq(info.content, sizes[s]);
            ck_assert_uint_eq(info.checksum, (uint32_t)XXH64(p, sizes[s], 0));
            ck_assert_uint_eq(info.checksum, spk_le32_load(whole.data + whole.len - 4));
            uint8_t digest[32];
            ck_ok(spk_sha256_once(whole.data, whole.len, digest, &err), err);
            ck_assert_mem_eq(digest, info.digest, 16);
            spk_frame_reader *r = NULL;
            ck_ok(spk_frame_reader_new(&r, &err), err);
            ck_ok(spk_frame_decode(r, whole.data, whole.len, back, sizes[s], &err), err);
            ck_assert(sizes[s] == 0 || memcmp(back, p, sizes[s]) == 0);
            spk_frame_reader_free(r);
            size_t bytes = 0;
            uint64_t content = 0;
            if (whole.len >= 18) {
                ck_ok(spk_frame_probe(whole.data, whole.len, &bytes, &content, &err), err);
                ck_assert_uint_eq(bytes, whole.len);
                ck_assert_uint_eq(content, sizes[s]);
                ck_assert_int_eq(spk_frame_probe(whole.data, whole.len - 1, &bytes, &content, &err), SPK_END);
            }
            ck_assert_uint_le(content, spk_frame_content_bound(whole.len));
            spk_buf_free(&whole);
            spk_buf_free(&pieces);
        }
        free(p);
        free(back);
    }
}
END_TEST

START_TEST(large_frames_keep_the_window_small)
{
    size_t n = 6 << 20;
    uint8_t *p = calloc(1, n);
    for (int level = 1; level <= 19; level += 6) {
        spk_buf out = {0};
        spk_frame_info info;
        compress(&out, p, n, n, level, &info);
        ck_assert_uint_eq(out.data[4] & 0x20, 0); /* not a single segment */
        ck_assert_uint_le(10 + (out.data[5] >> 3), 21);
        spk_buf_free(&out);
    }
    free(p);
}
END_TEST

START_TEST(writers_misuse_is_told)
{
    spk_frame_writer *w = NULL;
    spk_frame_info info;
    spk_buf out = {0};
    spk_error err;
    ck_ok(spk_frame_writer_new(&w, &err), err);
    ck_fails(spk_frame_write(w, "x", 1, &err), err, SPK_E_STATE, "no frame was begun");
    ck_fails(spk_frame_end(w, &info, &err), err, SPK_E_STATE, "no frame was begun");
    ck_fails(spk_frame_begin(w, 99, 1, to_buf, &out, &err), err, SPK_E_INVALID, "compression level 99 is outside");
    ck_fails(spk_frame_begin(w, 1, SPK_FRAME_CONTENT_MAX + 1ull, to_buf, &out, &err), err, SPK_E_LIMIT, "at most");
    ck_ok(spk_frame_begin(w, 1, 4, to_buf, &out, &err), err);
    ck_fails(spk_frame_write(w, "12345", 5, &err), err, SPK_E_INVALID, "frame of 4 bytes is given more");
    ck_ok(spk_frame_write(w, "12", 2, &err), err);
    ck_fails(spk_frame_end(w, &info, &err), err, SPK_E_INVALID, "ended after 2");
    ck_ok(spk_frame_begin(w, 1, 2, refuses, NULL, &err), err);
    ck_ok(spk_frame_write(w, "12", 2, &err), err);
    ck_fails(spk_frame_end(w, &info, &err), err, SPK_E_IO, "sink refuses");
    ck_ok(spk_frame_begin(w, 1, 2, to_buf, &out, &err), err);
    ck_ok(spk_frame_write(w, "12", 2, &err), err);
    ck_ok(spk_frame_end(w, &info, &err), err);
    spk_frame_writer_free(w);
    spk_frame_writer_free(NULL);
    spk_buf_free(&out);
    ck_assert_str_eq(spk_zstd_version(), ZSTD_versionString());
}
END_TEST

static size_t other_frame(uint8_t *out, size_t cap, const uint8_t *p, size_t n, int checksum, int size)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, checksum);
    ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, size);
    size_t r = ZSTD_compress2(c, out, cap, p, n);
    ZSTD_freeCCtx(c);
    ck_assert(!ZSTD_isError(r));
    return r;
}

START_TEST(frames_of_another_kind_are_refused)
{
    uint8_t *p = make_content(5000), *z = malloc(20000), *back = malloc(20000);
    spk_frame_reader *r = NULL;
    spk_error err;
    ck_ok(spk_frame_reader_new(&r, &err), err);
    size_t n = other_frame(z, 20000, p, 5000, 0, 1);
    ck_fails(spk_frame_decode(r, z, n, back, 5000, &err), err, SPK_E_FORMAT, "no checksum recorded");
    n = other_frame(z, 20000, p, 5000, 1, 0);
    ck_fails(spk_frame_decode(r, z, n, back, 5000, &err), err, SPK_E_FORMAT, "no content size recorded");
    n = other_frame(z, 20000, p, 5000, 1, 1);
    ck_ok(spk_frame_decode(r, z, n, back, 5000, &err), err);
    ck_fails(spk_frame_decode(r, z, n, back, 4999, &err), err, SPK_E_FORMAT, "content of 5000 bytes, expected 4999");
    ck_fails(spk_frame_decode(r, z, n - 1, back, 5000, &err), err, SPK_E_FORMAT, "zstd: ");
    ck_fails(spk_frame_decode(r, z, n + 1, back, 5000, &err), err, SPK_E_FORMAT, "expected");
    ck_fails(spk_frame_decode(r, z, 5, back, 5000, &err), err, SPK_E_FORMAT, "not a zstd frame");
    z[4] |= 1;
    ck_fails(spk_frame_decode(r, z, n, back, 5000, &err), err, SPK_E_FORMAT, "names a dictionary");
    z[4] = (uint8_t)((z[4] & ~1) | 0x10);
    ck_fails(spk_frame_decode(r, z, n, back, 5000, &err), err, SPK_E_FORMAT, "reserved bits");
    z[4] &= (uint8_t)~0x10;
    z[n - 1] ^= 1;
    ck_fails(spk_frame_decode(r, z, n, back, 5000, &err), err, SPK_E_CHECKSUM, "checksum mismatch");
    /* A window descriptor of 2^28 and a content size of 4 bytes. */
    static const uint8_t wide[] = {0x28, 0xB5, 0x2F, 0xFD, 0x84, 18 << 3, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    ck_fails(spk_frame_decode(r, wide, sizeof wide, back, 1, &err), err, SPK_E_LIMIT, "window of 268435456 bytes");
    spk_frame_reader_free(r);
    spk_frame_reader_free(NULL);
    free(p);
    free(z);
    free(back);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("shard/frame");
    TCase *t = tcase_create("frame");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, frames_round_trip_whatever_the_cuts);
    tcase_add_test(t, large_frames_keep_the_window_small);
    tcase_add_test(t, writers_misuse_is_told);
    tcase_add_test(t, frames_of_another_kind_are_refused);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
