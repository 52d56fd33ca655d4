/* shard/index: what the writer makes is read back, and each rule of the list and the fixed part is enforced. */
#include "check_main.h"

#include "index_fixture.h"
#include "shard/index.h"

/* The index of members as one frame each, and the contents of the frames. */
static void build(spk_buf *out, const fixture_member *m, size_t n, size_t per_frame, uint32_t *contents, size_t *frames)
{
    spk_index_writer *w = NULL;
    spk_index_part *part = NULL;
    spk_error err;
    uint64_t total = 0;
    ck_ok(spk_index_writer_new(&w, &err), err);
    ck_ok(spk_index_part_new(&part, &err), err);
    *frames = 0;
    for (size_t i = 0; i < n; i += per_frame) {
        uint8_t digest[16];
        uint64_t content = i + per_frame >= n ? SPK_TAR_END : 0;
        memset(digest, (int)*frames, sizeof digest);
        for (size_t j = i; j < n && j < i + per_frame; j++) {
            if (j == 0 || strcmp(m[j].key, m[j - 1].key) != 0)
                ck_ok(spk_index_part_sample(part, m[j].key, &err), err);
            ck_ok(spk_index_part_member(part, m[j].field, m[j].encoding ? m[j].encoding : "identity", m[j].path,
                                        m[j].size, m[j].size, &err),
                  err);
            content += spk_tar_member_bytes(m[j].size);
        }
        ck_ok(spk_index_writer_add(w, part, digest, &err), err);
        spk_index_part_reset(part);
        total += content;
        contents[(*frames)++] = (uint32_t)content;
    }
    ck_ok(spk_index_writer_finish(w, total, out, &err), err);
    spk_index_part_free(part);
    spk_index_writer_free(w);
}

START_TEST(indexes_round_trip)
{
    spk_buf b = {0};
    uint32_t contents[8];
    size_t frames = 0;
    spk_index *x = NULL;
    spk_error err;
    build(&b, fixture_small, 6, 3, contents, &frames);
    ck_ok(spk_index_parse(&x, b.data, b.len, contents, frames, &err), err);
    ck_assert_uint_eq(x->frames, 2);
    ck_assert_uint_eq(x->samples_n, 3);
    ck_assert_uint_eq(x->members_n, 6);
    ck_assert_uint_eq(x->frame_first[1], 2);
    ck_assert_uint_eq(x->frame_first[2], 3);
    ck_assert_uint_eq(x->digests[1][5], 1);
    uint64_t offset = 0;
    size_t member = 0;
    for (size_t i = 0; i < x->samples_n; i++) {
        for (uint32_t j = 0; j < x->samples[i].members; j++, member++) {
            const spk_index_member *m = &x->members[x->samples[i].first + j];
            const fixture_member *f = &fixture_small[member];
            ck_assert_str_eq(x->strings + x->samples[i].key, f->key);
            ck_assert_str_eq(x->fields[m->field].name, f->field);
            ck_assert_str_eq(x->fields[m->field].encoding, "identity");
            ck_assert_uint_eq(m->size, f->size);
            ck_assert_uint_eq(m->offset, offset + 512);
            ck_assert_uint_eq(m->path_len, f->path ? strlen(f->path) : 0);
            if (f->path)
                ck_assert_str_eq(x->strings + m->path, f->path);
            offset += spk_tar_member_bytes(f->size);
        }
    }
    ck_assert_uint_eq(x->tar_bytes, offset + SPK_TAR_END);
    spk_index_free(x);
    spk_index_free(NULL);
    spk_buf_free(&b);
}
END_TEST

START_TEST(many_fields_and_samples_round_trip)
{
    enum { N = 5000 };
    fixture_member *m = calloc(N, sizeof *m);
    char(*text)[2][24] = calloc(N, sizeof *text);
    for (unsigned i = 0; i < N; i++) {
        snprintf(text[i][0], 24, "k%u", i * 2654435761u);
        snprintf(text[i][1], 24, "f%u", i % 1000);
        m[i] = (fixture_member){text[i][0], text[i][1], "", i % 777, NULL, i % 2000 < 1000 ? NULL : "other-1", 0};
    }
    spk_buf b = {0};
    uint32_t contents[128];
    size_t frames = 0;
    spk_index *x = NULL;
    spk_error err;
    build(&b, m, N, 64, contents, &frames);
    ck_ok(spk_index_parse(&x, b.data, b.len, contents, frames, &err), err);
    ck_assert_uint_eq(x->fields_n, 2000);
    ck_assert_str_eq(x->fields[x->members[N - 1].field].name, text[N - 1][1]);
    ck_assert_str_eq(x->strings + x->samples[N - 1].key, text[N - 1][0]);
    spk_index_free(x);
    spk_buf_free(&b);
    free(m);
    free(text);
}
END_TEST

START_TEST(the_part_refuses_what_reading_would)
{
    spk_index_part *p = NULL;
    spk_index_writer *w = NULL;
    spk_buf out = {0};
    spk_error err;
    uint8_t digest[16] = {0};
    char *longest = malloc(SPK_PATH_MAX + 2);
    memset(longest, 'p', SPK_PATH_MAX + 1);
    longest[SPK_PATH_MAX + 1] = '\0';
    ck_ok(spk_index_part_new(&p, &err), err);
    ck_ok(spk_index_writer_new(&w, &err), err);
    ck_fails(spk_index_writer_finish(w, 0, &out, &err), err, SPK_E_INVALID, "a shard without samples");
    ck_fails(spk_index_writer_add(w, p, digest, &err), err, SPK_E_INVALID, "a frame without samples");
    ck_fails(spk_index_part_member(p, "jpg", "identity", NULL, 1, 1, &err), err, SPK_E_STATE, "before its sample");
    ck_fails(spk_index_part_sample(p, "a.b", &err), err, SPK_E_INVALID, "key \"a.b\" holds");
    ck_ok(spk_index_part_sample(p, "a", &err), err);
    ck_fails(spk_index_writer_add(w, p, digest, &err), err, SPK_E_INVALID, "a sample without members");
    ck_fails(spk_index_part_sample(p, "b", &err), err, SPK_E_STATE, "sample \"a\" has no members");
    ck_fails(spk_index_part_member(p, "J", "identity", NULL, 1, 1, &err), err, SPK_E_INVALID, "field \"J\"");
    ck_fails(spk_index_part_member(p, "jpg", "identity", NULL, 1, 2, &err), err, SPK_E_INVALID, "1 bytes for 2");
    ck_fails(spk_index_part_member(p, "jpg", "x", NULL, 1, (1u << 30) + 1, &err), err, SPK_E_INVALID,
             "1 bytes for 10737");
    ck_fails(spk_index_part_member(p, "jpg", "", NULL, 1, 1, &err), err, SPK_E_INVALID, "encoding \"\" is empty");
    ck_fails(spk_index_part_member(p, "jpg", "A", NULL, 1, 1, &err), err, SPK_E_INVALID, "encoding \"A\" holds");
    ck_fails(spk_index_part_member(p, "jpg", "identity", "", 1, 1, &err), err, SPK_E_INVALID, "path \"\" is empty");
    ck_fails(spk_index_part_member(p, "jpg", "identity", "/a", 1, 1, &err), err, SPK_E_INVALID, "is absolute");
    ck_fails(spk_index_part_member(p, "jpg", "identity", "a/../b", 1, 1, &err), err, SPK_E_INVALID,
             "leaves its folder");
    ck_fails(spk_index_part_member(p, "jpg", "identity", "..", 1, 1, &err), err, SPK_E_INVALID, "leaves its folder");
    ck_fails(spk_index_part_member(p, "jpg", "identity", longest, 1, 1, &err), err, SPK_E_INVALID, "longer than 65535");
    ck_ok(spk_index_part_member(p, "jpg", "identity", "..a/b../...", 1, 1, &err), err);
    ck_fails(spk_index_part_member(p, "cls", "identity", NULL, 1, 1, &err), err, SPK_E_INVALID,
             "field \"cls\" after \"jpg\"");
    ck_fails(spk_index_part_member(p, "jpg", "other", NULL, 1, 1, &err), err, SPK_E_INVALID, "ordered by field");
    ck_assert_uint_eq(spk_index_part_samples(p), 1);
    spk_index_part_free(p);
    spk_index_part_free(NULL);
    spk_index_writer_free(w);
    spk_index_writer_free(NULL);
    spk_buf_free(&out);
    free(longest);
}
END_TEST

#define FIELDS "\x02\x03jpg\x08identity\x03txt\x08identity"
#define ENCODED "\x02\x03jpg\x01x\x03txt\x08identity"
#define LIST(text) text, sizeof(text) - 1

static const struct {
    const char *list;
    size_t n;
    const char *text;
} list_cases[] = {
    {LIST(FIELDS "\x01"
                 "a\x02\x00\x05\x00\x01\x05\x01\x01"
                 "b\x01\x00\x05\x04p/q"),
     NULL},
    {LIST(ENCODED "\x01"
                  "a\x02\x00\x05\x85\x02\x00\x01\x05\x01\x01"
                  "b\x01\x00\x05\x80\x80\x80\x80\x04\x00"),
     NULL},
    {LIST(ENCODED "\x01"
                  "a\x02\x00\x05\x85\x02\x00\x01\x05\x01\x01"
                  "b\x01\x00\x05\x81\x80\x80\x80\x04\x00"),
     "sample \"b\": byte 41: stands for 1073741825 bytes"},
    {LIST(ENCODED "\x01"
                  "a\x02\x00\x05\x85\x02\x00\x01\x05\x01\x01"
                  "b\x01\x00\x05"),
     "cut short"},
    {LIST(""), "2 samples cannot stand in a list of 0 bytes"},
    {LIST("\x00..............."), "0 fields cannot stand"},
    {LIST("\x80\x80\x80\x80\x01" FIELDS), "fields cannot stand in"},
    {LIST("\x01\x03JPG\x08identity\x01"
          "a\x01\x00\x05\x00\x01"
          "b\x01\x00\x05\x00"),
     "field \"JPG\" holds"},
    {LIST("\x01\x20jpg\x08identity.........................."), "name of 32 bytes, at most 27"},
    {LIST("\x01\x03jpg\x08iDentity........"), "encoding \"iDentity\" holds"},
    {LIST("\x02\x03jpg\x08identity\x03jpg\x08identity....."), "field \"jpg\" is listed twice"},
    {LIST(FIELDS "\x03"
                 "a.b\x01\x00\x05\x00\x01"
                 "b\x01\x00\x05\x00"),
     "key \"a.b\" holds"},
    {LIST(FIELDS "\x07"
                 "../evil\x01\x00\x05\x00\x01"
                 "b\x01\x00\x05\x00"),
     "key \"../evil\" holds"},
    {LIST(FIELDS "\x05/evil\x01\x00\x05\x00\x01"
                 "b\x01\x00\x05\x00"),
     "key \"/evil\" has an empty component"},
    {LIST(FIELDS "\x01"
                 "a\x00...............\x00"),
     "sample \"a\" of 0 members"},
    {LIST(FIELDS "\x01"
                 "a\x81\x08..............."),
     "of 1025 members"},
    {LIST(FIELDS "\x01"
                 "a\x02\x01\x05\x00\x00\x05\x01\x01"
                 "b\x01\x00\x05\x00"),
     "field number 1 is not one of 2 in order of first use"},
    {LIST(FIELDS "\x01"
                 "a\x01\x02\x05\x00\x01"
                 "b\x01\x00\x05\x00"),
     "sample \"a\": byte 32: field number 2"},
    {LIST(FIELDS "\x01"
                 "a\x02\x00\x05\x00\x00\x05\x01\x01"
                 "b\x01\x00\x05\x00"),
     "field \"jpg\" after \"jpg\""},
    {LIST(FIELDS "\x01"
                 "a\x02\x00\x05\x00\x01\x85\x08\x01\x01"
                 "b\x01\x00\x05\x00"),
     "member of 1029 bytes, its frame has 1024 left"},
    {LIST(FIELDS "\x01"
                 "a\x02\x00\x05\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\x01"
                 "b\x01\x00\x05\x00"),
     "member of 18446744073709551615 bytes"},
    {LIST(FIELDS "\x01"
                 "a\x02\x00\x05\x00\x01\x00\x01\x01"
                 "b\x01\x00\x05\x00"),
     "its samples end 512 bytes before its content"},
    {LIST(FIELDS "\x01"
                 "a\x02\x00\x05\x00\x01\x05\x85\x80\x00\x01"
                 "b\x01\x00\x05\x00"),
     "cut short, or a number in a wrong form"},
    {LIST(FIELDS "\x01"
                 "a\x02\x00\x05\x00\x01\x05\x81\x80\x04"
                 "b\x01\x00\x05\x00"),
     "original path of 65536 bytes"},
    {LIST(FIELDS "\x01"
                 "a\x02\x00\x05\x00\x01\x05\x03/a\x01"
                 "b\x01\x00\x05\x00"),
     "original path \"/a\" is absolute"},
    {LIST(FIELDS "\x01"
                 "a\x02\x00\x05\x00\x01\x05\x05../a\x01"
                 "b\x01\x00\x05\x00"),
     "leaves its folder"},
    {LIST(FIELDS "\x01"
                 "a\x02\x00\x05\x00\x01\x05\x03"
                 "a\x00\x01"
                 "b\x01\x00\x05\x00"),
     "holds a zero byte"},
    {LIST(FIELDS "\x01"
                 "a\x02\x00\x05\x00\x01\x05\x01\x01"
                 "b\x01\x00\x05\x09p/q"),
     "cut short"},
    {LIST(FIELDS "\x01"
                 "a\x02\x00\x05\x00\x01\x05\x01\x01"
                 "b\x01\x00\x05\x00!"),
     "1 bytes behind the last sample"},
    {LIST(FIELDS "\x01"
                 "a\x02\x00\x05\x00\x01\x05\x01\x01"
                 "a\x01\x00\x05\x00"),
     "key \"a\" is listed twice"},
    {LIST(FIELDS "\x01"
                 "b\x02\x00\x05\x00\x01\x05\x01\x01"
                 "B\x01\x00\x05\x00"),
     "differ only in case"},
    {LIST("\x03\x03jpg\x08identity\x03txt\x08identity\x03png\x08identity\x01"
          "a\x02\x00\x05\x00\x01\x05\x01\x01"
          "b\x01\x00\x05\x00"),
     "1 of 3 fields are not used"},
};

START_TEST(lists_must_follow_the_rules)
{
    const uint32_t counts[] = {1, 1}, contents[] = {2048, 2048};
    for (size_t i = 0; i < sizeof list_cases / sizeof list_cases[0]; i++) {
        spk_buf b = {0};
        spk_index *x = NULL;
        spk_error err;
        fixture_index(&b, list_cases[i].list, list_cases[i].n, counts, contents, 2);
        if (list_cases[i].text)
            ck_fails(spk_index_parse(&x, b.data, b.len, contents, 2, &err), err, SPK_E_FORMAT, list_cases[i].text);
        else
            ck_ok(spk_index_parse(&x, b.data, b.len, contents, 2, &err), err);
        spk_index_free(x);
        spk_buf_free(&b);
    }
}
END_TEST

START_TEST(the_fixed_part_must_follow_the_rules)
{
    static const struct {
        unsigned at; /* behind the skippable header */
        uint32_t value;
        spk_status code;
        const char *text;
    } cases[] = {
        {0, 0x12345678, SPK_E_FORMAT, "shard index: magic not found"},
        {8, 2, SPK_E_UNSUPPORTED, "version 2 is newer than this library reads (1)"},
        {8, 0, SPK_E_FORMAT, "version 0 does not exist"},
        {12, 0x100, SPK_E_UNSUPPORTED, "flags 0x00000100 are unknown"},
        {16, 0, SPK_E_FORMAT, "2 samples in 0 frames"},
        {16, 3, SPK_E_FORMAT, "2 samples in 3 frames: none may be empty"},
        {16, 1, SPK_E_FORMAT, "lists 1 data frames, the seek table 2"},
        {20, 0xFFFFFFFF, SPK_E_FORMAT, "4294967295 samples cannot stand in a list of"},
        {20, 3, SPK_E_FORMAT, "samples of the frames add up to 2, not to 3"},
        {24, 4095, SPK_E_FORMAT, "tar of 4095 bytes, the seek table's frames hold 4096"},
        {28, 0xFFFFFFFF, SPK_E_FORMAT, "the seek table's frames hold 4096"},
        {32, 0xFFFFFFFF, SPK_E_FORMAT, "a list of 4294967295 bytes"},
        {36, 0x40000001, SPK_E_LIMIT, "sample list of 1073741825 bytes"},
        {36, 0x40000000, SPK_E_FORMAT, "bytes cannot hold 1073741824"},
        {36, 100, SPK_E_FORMAT, "sample list: zstd header: content of"},
        {40, 0, SPK_E_CHECKSUM, "shard index: SHA-256 mismatch of frame table and sample list"},
        {56, 0, SPK_E_FORMAT, "frame 0 has no samples"},
        {56, 0xFFFFFFFF, SPK_E_FORMAT, "add up to at least 4294967295"},
    };
    static const char list[] = FIELDS "\x01"
                                      "a\x02\x00\x05\x00\x01\x05\x01\x01"
                                      "b\x01\x00\x05\x00";
    const uint32_t counts[] = {1, 1}, contents[] = {2048, 2048};
    spk_index *x = NULL;
    spk_error err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        spk_buf b = {0};
        fixture_index(&b, list, sizeof list - 1, counts, contents, 2);
        spk_le32_store(b.data + SPK_SKIP_HEADER + cases[i].at, cases[i].value);
        if (cases[i].at >= SPK_INDEX_FIXED)
            fixture_index_seal(b.data, b.len);
        ck_fails(spk_index_parse(&x, b.data, b.len, contents, 2, &err), err, cases[i].code, cases[i].text);
        spk_buf_free(&b);
    }
    spk_buf b = {0};
    fixture_index(&b, list, sizeof list - 1, counts, contents, 2);
    ck_fails(spk_index_parse(&x, b.data, 63, contents, 2, &err), err, SPK_E_FORMAT, "63 bytes are too few");
    ck_fails(spk_index_parse(&x, b.data, b.len - 1, contents, 2, &err), err, SPK_E_FORMAT, "header says");
    const uint32_t odd[] = {2047, 2049};
    ck_fails(spk_index_parse(&x, b.data, b.len, odd, 2, &err), err, SPK_E_FORMAT, "is no run of tar members");
    b.data[b.len - 1] ^= 1;
    ck_fails(spk_index_parse(&x, b.data, b.len, contents, 2, &err), err, SPK_E_CHECKSUM, "SHA-256 mismatch");
    fixture_index_seal(b.data, b.len);
    ck_fails(spk_index_parse(&x, b.data, b.len, contents, 2, &err), err, SPK_E_CHECKSUM,
             "shard index: sample list: checksum mismatch");
    spk_buf_free(&b);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("shard/index");
    TCase *t = tcase_create("index");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, indexes_round_trip);
    tcase_add_test(t, many_fields_and_samples_round_trip);
    tcase_add_test(t, the_part_refuses_what_reading_would);
    tcase_add_test(t, lists_must_follow_the_rules);
    tcase_add_test(t, the_fixed_part_must_follow_the_rules);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
