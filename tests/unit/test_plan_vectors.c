/* plan/ and image/transform.h against format-spec/vectors/epoch-order.tsv and augment.tsv, which an independent
 * implementation made. SHARDPACK_VECTORS is the folder; else format-spec/vectors, from the repository's root. */
#include "check_main.h"
#include "plan_fixture.h"

#include "base/hash.h"
#include "image/transform.h"

#define LINE 4096

static FILE *open_vectors(const char *name)
{
    const char *folder = getenv("SHARDPACK_VECTORS");
    char path[LINE];
    snprintf(path, sizeof path, "%s/%s", folder && *folder ? folder : "format-spec/vectors", name);
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "cannot open %s: run from the repository's root, or set SHARDPACK_VECTORS", path);
    return f;
}

/* The next line that is no comment, cut at its tabs; the number of columns, 0 at the end. */
static int next_row(FILE *f, char line[LINE], char *columns[16])
{
    do
        if (!fgets(line, LINE, f))
            return 0;
    while (line[0] == '#');
    int n = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *at = line; n < 16; at++) {
        columns[n++] = at;
        at += strcspn(at, "\t");
        if (*at == '\0')
            break;
        *at = '\0';
    }
    return n;
}

static uint64_t number(const char *text)
{
    return strtoull(text, NULL, 10);
}

static spk_plan *plan_of(char **columns)
{
    uint64_t shards = 0, *first = plan_shards(columns[0], &shards);
    const spk_plan_spec spec = {.seed = number(columns[1]),
                                .epoch = (uint32_t)number(columns[2]),
                                .global_batch = number(columns[3]),
                                .chunk = (uint32_t)number(columns[4]),
                                .groups = (uint32_t)number(columns[5]),
                                .buffer = (uint32_t)number(columns[6]),
                                .span = (uint32_t)number(columns[7]),
                                .echo = (uint32_t)number(columns[8]),
                                .shuffle = number(columns[9]) != 0};
    spk_error err;
    spk_plan *p = NULL;
    ck_assert_ptr_nonnull(first);
    ck_ok(spk_plan_new(&p, first, shards, &spec, &err), err);
    free(first);
    return p;
}

/* "a,b,c", or "-" for none. */
static void check_first(const char *text, const uint64_t *order, uint64_t count, int row)
{
    uint64_t i = 0;
    for (const char *at = text; *at != '-' && *at != '\0'; i++) {
        char *end = NULL;
        ck_assert_msg(i < count && order[i] == strtoull(at, &end, 10), "vector %d: entry %llu differs", row,
                      (unsigned long long)i);
        at = *end == ',' ? end + 1 : end;
    }
    ck_assert_uint_eq(i, count < 16 ? count : 16);
}

START_TEST(orders_are_those_of_the_specification)
{
    FILE *f = open_vectors("epoch-order.tsv");
    char line[LINE], *columns[16];
    int rows = 0;
    for (; next_row(f, line, columns) == 14; rows++) {
        spk_plan *p = plan_of(columns);
        uint64_t from = number(columns[10]), left = from < p->total ? p->total - from : 0;
        uint64_t count = strcmp(columns[11], "all") == 0 || number(columns[11]) > left ? left : number(columns[11]);
        uint64_t *order = malloc((size_t)(count + 1) * sizeof *order);
        uint8_t digest[SPK_SHA256_BYTES];
        char hex[SPK_SHA256_HEX];
        spk_error err;
        ck_ok(plan_order(p, from, count, order, &err), err);
        check_first(columns[13], order, count, rows + 1);
        for (uint64_t i = 0; i < count; i++) { /* little-endian, whatever this machine is */
            uint8_t bytes[8];
            for (int b = 0; b < 8; b++)
                bytes[b] = (uint8_t)(order[i] >> 8 * b);
            memcpy(&order[i], bytes, 8);
        }
        ck_ok(spk_sha256_once(order, (size_t)count * 8, digest, &err), err);
        spk_hex(hex, digest, sizeof digest);
        ck_assert_msg(strcmp(hex, columns[12]) == 0, "vector %d (%s): another order", rows + 1, columns[0]);
        free(order);
        spk_plan_free(p);
    }
    fclose(f);
    ck_assert_int_ge(rows, 60);
}
END_TEST

START_TEST(crops_are_those_of_the_specification)
{
    FILE *f = open_vectors("augment.tsv");
    char line[LINE], *c[16];
    int rows = 0;
    for (; next_row(f, line, c) == 16; rows++) {
        const spk_draw_key key = {.seed = number(c[0]),
                                  .epoch = (uint32_t)number(c[1]),
                                  .index = number(c[2]),
                                  .repeat = (uint32_t)number(c[3])};
        const double scale[2] = {strtod(c[6], NULL), strtod(c[7], NULL)};
        const double ratio[2] = {strtod(c[8], NULL), strtod(c[9], NULL)};
        spk_rect r = spk_random_crop((uint32_t)number(c[4]), (uint32_t)number(c[5]), scale, ratio, &key);
        char made[LINE], wanted[LINE];
        snprintf(made, sizeof made, "%u %u %u %u %d %d", r.x, r.y, r.w, r.h, spk_draw_event(&key, SPK_DRAW_HFLIP, 0.5),
                 spk_draw_event(&key, SPK_DRAW_VFLIP, 0.25));
        snprintf(wanted, sizeof wanted, "%s %s %s %s %s %s", c[10], c[11], c[12], c[13], c[14], c[15]);
        ck_assert_msg(strcmp(made, wanted) == 0, "crop %d: %s instead of %s", rows + 1, made, wanted);
        for (unsigned k = 0; k < 64; k++) { /* one definition of the draw, not two */
            uint64_t word = spk_draw(key.seed, key.epoch, SPK_DRAW_AUGMENT, key.repeat, key.index * 64 + k);
            ck_assert(spk_draw_uniform(&key, k) == (double)(word >> 11) * 0x1p-53);
        }
    }
    fclose(f);
    ck_assert_int_ge(rows, 40);
}
END_TEST

/* Digests of the vectors of each version of the order. */
static const char *const vectors_of_order[] = {NULL,
                                               "e22e67a52a20c8ceabfa0edf344cb5250227cdd9cf7b8c8e92d4c7efc3ae2192"};

/* Whoever changes the order makes the vectors anew, and comes by here. */
START_TEST(an_order_has_a_version)
{
    static const char *const files[] = {"epoch-order.tsv", "augment.tsv"};
    char line[LINE], hex[SPK_SHA256_HEX];
    uint8_t digest[SPK_SHA256_BYTES];
    spk_sha256 *sha = NULL;
    spk_error err;
    ck_ok(spk_sha256_new(&sha, &err), err);
    spk_sha256_init(sha);
    for (size_t i = 0; i < 2; i++) {
        FILE *f = open_vectors(files[i]);
        while (fgets(line, LINE, f))
            if (line[0] != '#')
                spk_sha256_update(sha, line, strlen(line));
        fclose(f);
    }
    spk_sha256_final(sha, digest);
    spk_sha256_free(sha);
    spk_hex(hex, digest, sizeof digest);
    ck_assert_uint_eq(sizeof vectors_of_order / sizeof vectors_of_order[0], SPK_PLAN_ORDER + 1);
    ck_assert_msg(strcmp(hex, vectors_of_order[SPK_PLAN_ORDER]) == 0,
                  "the vectors are others (%s) than those of order %u: if the order or a draw has changed, raise "
                  "SPK_PLAN_ORDER and add their digest; if only vectors were added, replace it",
                  hex, SPK_PLAN_ORDER);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("plan/vectors");
    TCase *t = tcase_create("vectors");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, orders_are_those_of_the_specification);
    tcase_add_test(t, crops_are_those_of_the_specification);
    tcase_add_test(t, an_order_has_a_version);
    suite_add_tcase(s, t);
    return s;
}

CHECK_MAIN(suite)
