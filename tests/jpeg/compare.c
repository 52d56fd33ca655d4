/* One file against libjpeg-turbo, which is called here and not through image/: accurate integer inverse DCT, smooth
 * upsampling, RGB. */
#include "identity.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "coef/coef.h"
#include "image/decoder.h"

struct comparer {
    spk_transcoder *transcoder;
    spk_coef_reader *reader;
    spk_decoder *decoder;
    spk_buf blob, file;
    picture want;
    uint8_t *luma;
    size_t cap;
    /* of a comparison under way */
    spk_rect part;
    uint32_t channels, y;
    bool same;
};

static void must(bool ok)
{
    if (!ok) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
}

comparer *comparer_new(void)
{
    comparer *c = calloc(1, sizeof *c);
    spk_error err;
    must(c && spk_transcoder_new(&c->transcoder, &err) == SPK_OK && spk_coef_reader_new(&c->reader, &err) == SPK_OK &&
         spk_decoder_new(&c->decoder, &err) == SPK_OK);
    return c;
}

void comparer_free(comparer *c)
{
    spk_transcoder_free(c->transcoder);
    spk_coef_reader_free(c->reader);
    spk_decoder_free(c->decoder);
    spk_buf_free(&c->blob);
    spk_buf_free(&c->file);
    free(c->want.rgb);
    free(c->luma);
    free(c);
}

picture compared_picture(const comparer *c)
{
    return c->want;
}

/* ---- libjpeg ---- */

typedef struct error_trap {
    struct jpeg_error_mgr mgr;
    jmp_buf jump;
    bool said;
} error_trap;

static void on_error(j_common_ptr j)
{
    longjmp(((error_trap *)j->err)->jump, 1);
}

static void on_message(j_common_ptr j, int level)
{
    if (level < 0)
        ((error_trap *)j->err)->said = true;
}

static void read_rows(comparer *c, struct jpeg_decompress_struct *j)
{
    picture *p = &c->want;
    bool cmyk = j->jpeg_color_space == JCS_CMYK || j->jpeg_color_space == JCS_YCCK;
    j->dct_method = JDCT_ISLOW;
    j->do_fancy_upsampling = TRUE;
    j->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(j);
    p->width = j->output_width;
    p->height = j->output_height;
    p->gray = j->num_components == 1;
    p->h = j->comp_info[0].h_samp_factor;
    p->v = j->comp_info[0].v_samp_factor;
    size_t pixels = (size_t)p->width * p->height;
    if (pixels > c->cap) {
        p->rgb = realloc(p->rgb, 3 * pixels);
        c->luma = realloc(c->luma, pixels);
        must(p->rgb && c->luma);
        c->cap = pixels;
    }
    JSAMPARRAY line = j->mem->alloc_sarray((j_common_ptr)j, JPOOL_IMAGE, 4 * p->width, 1);
    while (j->output_scanline < j->output_height) {
        uint8_t *out = p->rgb + 3 * (size_t)p->width * j->output_scanline;
        jpeg_read_scanlines(j, line, 1);
        if (cmyk)
            spk_cmyk_to_rgb(out, line[0], p->width);
        else
            memcpy(out, line[0], 3 * (size_t)p->width);
    }
    jpeg_finish_decompress(j);
    for (size_t i = 0; i < pixels; i++) {
        const uint8_t *at = p->rgb + 3 * i;
        c->luma[i] = (uint8_t)((19595u * at[0] + 38470u * at[1] + 7471u * at[2] + 32768u) >> 16);
    }
}

/* False if it warns or gives up. */
static bool ask_libjpeg(comparer *c, const uint8_t *data, size_t n)
{
    struct jpeg_decompress_struct j;
    error_trap trap;
    volatile bool done = false;
    trap.said = false;
    j.err = jpeg_std_error(&trap.mgr);
    trap.mgr.error_exit = on_error;
    trap.mgr.emit_message = on_message;
    jpeg_create_decompress(&j);
    if (setjmp(trap.jump) == 0) {
        jpeg_mem_src(&j, data, n);
        jpeg_read_header(&j, TRUE);
        read_rows(c, &j);
        done = true;
    }
    jpeg_destroy_decompress(&j);
    return done && !trap.said;
}

/* ---- ours ---- */

static void on_row(void *ctx, const uint8_t *row)
{
    comparer *c = ctx;
    const uint8_t *all = c->channels == 1 ? c->luma : c->want.rgb;
    size_t at = (size_t)(c->part.y + c->y) * c->want.width + c->part.x;
    if (c->y >= c->part.h || memcmp(row, all + at * c->channels, (size_t)c->part.w * c->channels) != 0)
        c->same = false;
    c->y++;
}

/* What is wrong with that part of the file or its stored form: NULL, or words. */
static const char *compare_part(comparer *c, const uint8_t *data, size_t n, spk_jpeg_engine engine, spk_rect part,
                                uint32_t channels)
{
    spk_decoder_info info;
    spk_error err;
    spk_error_clear(&err);
    spk_decoder_use(c->decoder, engine);
    if (spk_decoder_open(c->decoder, data, n, 0, &info, &err) < 0)
        return "refused";
    if (info.width != c->want.width || info.height != c->want.height)
        return "other size";
    spk_decode_job job = {part, 1, channels, on_row, c, false};
    c->part = part;
    c->channels = channels;
    c->y = 0;
    c->same = true;
    if (spk_decoder_run(c->decoder, &job, &err) < 0)
        return "error while decoding";
    return !c->same ? "other pixels" : c->y != part.h ? "rows missing" : NULL;
}

static uint32_t pick(spk_rng *rng, uint32_t low, uint32_t high)
{
    return low + (uint32_t)spk_rng_below(rng, high - low + 1);
}

/* Shapes as RandomResizedCrop draws them, single pixels, rows and columns, parts at the borders. */
static spk_rect draw_part(const picture *p, uint32_t number, spk_rng *rng)
{
    spk_rect r = {0, 0, 1, 1};
    if (number % 8 < 5) {
        uint32_t share = pick(rng, 28, 100), ratio = pick(rng, 866, 1154);
        r.w = (uint32_t)((uint64_t)p->width * share * ratio / 100000);
        r.h = (uint32_t)((uint64_t)p->height * share * 1000 / ratio / 100);
    } else if (number % 8 == 6) {
        r.w = pick(rng, 1, p->width);
        r.h = pick(rng, 1, p->height < 4 ? p->height : 4);
    } else if (number % 8 == 7) {
        r.w = pick(rng, 1, p->width < 4 ? p->width : 4);
        r.h = pick(rng, 1, p->height);
    }
    r.w = r.w < 1 ? 1 : r.w > p->width ? p->width : r.w;
    r.h = r.h < 1 ? 1 : r.h > p->height ? p->height : r.h;
    r.x = number % 5 == 4 ? p->width - r.w : pick(rng, 0, p->width - r.w);
    r.y = number % 7 == 6 ? p->height - r.h : pick(rng, 0, p->height - r.h);
    return r;
}

/* One part in all ways; `stored`: from the stored form, too. */
static bool compare_ways(comparer *c, const uint8_t *data, size_t n, bool stored, spk_rect part, uint32_t channels,
                         const char *what, tally *t)
{
    bool good = true;
    for (int way = 0; way < (stored ? 4 : 2); way++) {
        spk_jpeg_engine engine = way % 2 ? SPK_JPEG_PLAIN : SPK_JPEG_OWN;
        const char *fault = way < 2 ? compare_part(c, data, n, engine, part, channels)
                                    : compare_part(c, c->blob.data, c->blob.len, engine, part, channels);
        if (fault)
            fprintf(stderr, "%s: %s, %s: part %u x %u at %u, %u, %u channels: %s\n", what, way < 2 ? "file" : "stored",
                    way % 2 ? "plain" : "vectors", part.w, part.h, part.x, part.y, channels, fault);
        good = good && !fault;
        t->pixels += (uint64_t)part.w * part.h;
    }
    return good;
}

/* The stored form in c->blob, if there is one: smaller than the file or not. */
static bool make_stored(comparer *c, const uint8_t *data, size_t n, bool needed, const char *what, tally *t,
                        bool *stored)
{
    spk_transcode_result result;
    spk_error err;
    must(spk_transcode(c->transcoder, data, n, 0, &c->blob, &result, &err) == SPK_OK);
    t->results[result]++;
    *stored = result == SPK_TRANSCODED || result == SPK_TRANSCODE_NO_GAIN;
    if (!*stored) {
        if (needed)
            fprintf(stderr, "%s: no stored form: result %d\n", what, (int)result);
        return !needed;
    }
    t->bytes += n;
    t->stored_bytes += c->blob.len;
    c->file.len = 0;
    if (spk_coef_open(c->reader, c->blob.data, c->blob.len, &err) == SPK_OK &&
        spk_coef_restore(c->reader, &c->file, &err) == SPK_OK && c->file.len == n && memcmp(c->file.data, data, n) == 0)
        return true;
    fprintf(stderr, "%s: the file does not come back\n", what);
    return false;
}

/* libjpeg finds fault: so must we. */
static bool compare_damaged(comparer *c, const uint8_t *data, size_t n, const char *what, tally *t)
{
    spk_decoder_info info;
    spk_error err;
    picture nowhere = {0};
    free(c->want.rgb);
    free(c->luma);
    c->want = nowhere;
    c->luma = NULL;
    c->cap = 0;
    t->damaged++;
    for (int engine = SPK_JPEG_OWN; engine <= SPK_JPEG_PLAIN; engine++) {
        spk_decoder_use(c->decoder, (spk_jpeg_engine)engine);
        if (spk_decoder_open(c->decoder, data, n, 0, &info, &err) < 0)
            continue;
        uint64_t pixels = (uint64_t)info.width * info.height;
        spk_decode_job job = {{0, 0, info.width, info.height}, 1, 3, on_row, c, false};
        c->part = (spk_rect){0, 0, 0, 0};
        if (pixels < 1u << 26 && spk_decoder_run(c->decoder, &job, &err) == SPK_OK) {
            fprintf(stderr, "%s: libjpeg finds fault with it, engine %d does not\n", what, engine);
            return false;
        }
    }
    return true;
}

bool compare_file(comparer *c, const uint8_t *data, size_t n, uint32_t crops, const kind *k, spk_rng *rng,
                  const char *what, tally *t)
{
    bool stored, ours = k && k->ours, needed = ours || (k && k->stored);
    t->images++;
    if (!ask_libjpeg(c, data, n)) {
        bool good = compare_damaged(c, data, n, what, t);
        t->wrong += !good;
        return good;
    }
    bool good = make_stored(c, data, n, needed, what, t, &stored);
    spk_rect whole = {0, 0, c->want.width, c->want.height};
    good = compare_ways(c, data, n, stored, whole, 3, what, t) && good;
    for (uint32_t i = 0; i < crops; i++) {
        spk_rect part = draw_part(&c->want, i, rng);
        good = compare_ways(c, data, n, stored, part, i % 4 == 3 ? 1 : 3, what, t) && good;
        t->crops++;
    }
    bool own =
        compare_part(c, data, n, SPK_JPEG_PLAIN, (spk_rect){0, 0, 1, 1}, 3) == NULL && spk_decoder_did_own(c->decoder);
    t->own += own;
    if (ours && !own)
        fprintf(stderr, "%s: left to libjpeg\n", what);
    good = good && (own || !ours);
    t->wrong += !good;
    return good;
}
