/* Kinds of JPEG files, and how they are made by libjpeg-turbo. */
#include "identity.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define AUTO JCS_UNKNOWN
/* Coefficients beyond those of any picture, which such tables may give: elsewhere they are left to libjpeg. */
#ifdef __x86_64__
#define OURS_WIDE true
#else
#define OURS_WIDE false
#endif

struct scan_list {
    int n;
    jpeg_scan_info scan[16];
};

/* clang-format off */
static const struct scan_list
    bands = {6, {{3, {0, 1, 2}, 0, 0, 0, 0}, {1, {0}, 1, 9, 0, 0}, {1, {2}, 1, 5, 0, 0}, {1, {2}, 6, 63, 0, 0},
                 {1, {1}, 1, 63, 0, 0}, {1, {0}, 10, 63, 0, 0}}},
    bits = {13, {{3, {0, 1, 2}, 0, 0, 0, 2}, {1, {0}, 1, 63, 0, 3}, {1, {1}, 1, 63, 0, 2}, {1, {2}, 1, 63, 0, 1},
                 {3, {0, 1, 2}, 0, 0, 2, 1}, {1, {0}, 1, 63, 3, 2}, {1, {1}, 1, 63, 2, 1}, {1, {0}, 1, 63, 2, 1},
                 {2, {0, 2}, 0, 0, 1, 0}, {1, {1}, 0, 0, 1, 0}, {1, {2}, 1, 63, 1, 0}, {1, {1}, 1, 63, 1, 0},
                 {1, {0}, 1, 63, 1, 0}}},
    gray = {6, {{1, {0}, 0, 0, 0, 1}, {1, {0}, 1, 6, 0, 2}, {1, {0}, 7, 63, 0, 1}, {1, {0}, 1, 6, 2, 1},
                {1, {0}, 0, 0, 1, 0}, {1, {0}, 1, 63, 1, 0}}},
    in_turn = {3, {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}}},
    luma_first = {2, {{1, {0}, 0, 63, 0, 0}, {2, {1, 2}, 0, 63, 0, 0}}};

const kind all_kinds[] = {
    {.name = "as it is"},
    {.name = "quality 5", .quality = 5, .ours = true},
    {.name = "quality 30", .quality = 30, .ours = true},
    {.name = "quality 50", .quality = 50, .ours = true},
    {.name = "quality 75", .quality = 75, .ours = true},
    {.name = "quality 90", .quality = 90, .ours = true},
    {.name = "quality 100", .quality = 100, .ours = true},
    {.name = "4:2:0", .quality = 85, .colour = JCS_YCbCr, .h = 2, .v = 2, .ours = true},
    {.name = "4:2:2", .quality = 85, .colour = JCS_YCbCr, .h = 2, .v = 1, .ours = true},
    {.name = "4:4:0", .quality = 85, .colour = JCS_YCbCr, .h = 1, .v = 2, .ours = true},
    {.name = "4:4:4", .quality = 85, .colour = JCS_YCbCr, .h = 1, .v = 1, .ours = true},
    {.name = "gray", .quality = 85, .colour = JCS_GRAYSCALE, .h = 1, .v = 1, .ours = true},
    {.name = "RGB", .quality = 85, .colour = JCS_RGB, .h = 1, .v = 1, .ours = true},
    {.name = "optimised tables", .quality = 80, .optimize = true, .ours = true},
    {.name = "restart markers", .quality = 80, .restart = true, .ours = true},
    {.name = "restart, optimised", .quality = 95, .restart = true, .optimize = true, .ours = true},
    {.name = "16-bit tables", .quality = 60, .wide = true, .ours = OURS_WIDE},
    {.name = "progressive", .quality = 85, .progressive = true, .ours = true},
    {.name = "progressive 4:4:4", .quality = 95, .h = 1, .v = 1, .progressive = true, .ours = true},
    {.name = "progressive, restart", .quality = 60, .progressive = true, .restart = true, .ours = true},
    {.name = "progressive gray", .quality = 85, .colour = JCS_GRAYSCALE, .h = 1, .v = 1, .progressive = true, .scans = &gray, .ours = true},
    {.name = "progressive RGB", .quality = 90, .colour = JCS_RGB, .h = 1, .v = 1, .progressive = true, .ours = true},
    {.name = "progressive, bands", .quality = 80, .colour = JCS_YCbCr, .h = 2, .v = 1, .progressive = true, .scans = &bands, .ours = true},
    {.name = "progressive, bits", .quality = 97, .colour = JCS_YCbCr, .h = 2, .v = 2, .progressive = true, .scans = &bits, .ours = true},
    {.name = "in turn", .quality = 85, .colour = JCS_YCbCr, .h = 2, .v = 2, .restart = true, .scans = &in_turn, .ours = true},
    {.name = "luma first", .quality = 85, .colour = JCS_YCbCr, .h = 1, .v = 2, .scans = &luma_first, .ours = true},
    {.name = "4:1:1", .quality = 85, .colour = JCS_YCbCr, .h = 4, .v = 1},
    {.name = "4:1:0", .quality = 85, .colour = JCS_YCbCr, .h = 4, .v = 2},
    {.name = "3 x 1", .quality = 85, .colour = JCS_YCbCr, .h = 3, .v = 1},
    {.name = "Cb wider than Cr", .quality = 85, .colour = JCS_YCbCr, .h = 2, .v = 1, .chroma_h = 2},
    {.name = "gray 2 x 2", .quality = 85, .colour = JCS_GRAYSCALE, .h = 2, .v = 2, .stored = true},
    {.name = "CMYK", .quality = 85, .colour = JCS_CMYK, .h = 1, .v = 1},
    {.name = "arithmetic", .quality = 85, .arithmetic = true},
};
const size_t kinds_n = sizeof all_kinds / sizeof *all_kinds;

const kind sized_kinds[] = {
    {.name = "4:2:0, 1 to 70", .quality = 90, .colour = JCS_YCbCr, .h = 2, .v = 2, .ours = true},
    {.name = "4:2:2, 1 to 70", .quality = 90, .colour = JCS_YCbCr, .h = 2, .v = 1, .ours = true},
    {.name = "4:4:0, 1 to 70", .quality = 90, .colour = JCS_YCbCr, .h = 1, .v = 2, .ours = true},
    {.name = "4:4:4, 1 to 70", .quality = 90, .colour = JCS_YCbCr, .h = 1, .v = 1, .ours = true},
    {.name = "gray, 1 to 70", .quality = 90, .colour = JCS_GRAYSCALE, .h = 1, .v = 1, .ours = true},
    {.name = "RGB, 1 to 70", .quality = 90, .colour = JCS_RGB, .h = 1, .v = 1, .ours = true},
    {.name = "all tools, 1 to 70", .quality = 40, .restart = true, .optimize = true, .wide = true, .ours = OURS_WIDE},
    {.name = "progressive, 1 to 70", .quality = 80, .progressive = true, .ours = true},
    {.name = "prog. bands, 1 to 70", .quality = 90, .colour = JCS_YCbCr, .h = 2, .v = 1, .progressive = true, .scans = &bands, .ours = true},
    {.name = "prog. bits, 1 to 70", .quality = 75, .colour = JCS_YCbCr, .h = 2, .v = 2, .progressive = true, .restart = true, .scans = &bits, .ours = true},
    {.name = "prog. gray, 1 to 70", .quality = 90, .colour = JCS_GRAYSCALE, .h = 1, .v = 1, .progressive = true, .scans = &gray, .ours = true},
    {.name = "in turn, 1 to 70", .quality = 75, .colour = JCS_YCbCr, .h = 1, .v = 2, .scans = &in_turn, .ours = true},
};
const size_t sized_kinds_n = sizeof sized_kinds / sizeof *sized_kinds;
/* clang-format on */

typedef struct error_trap {
    struct jpeg_error_mgr mgr;
    jmp_buf jump;
} error_trap;

static void on_error(j_common_ptr j)
{
    longjmp(((error_trap *)j->err)->jump, 1);
}

static void on_message(j_common_ptr j, int level)
{
    (void)j, (void)level; /* it warns of 16-bit tables */
}

static uint32_t below(spk_rng *rng, uint32_t n)
{
    return (uint32_t)spk_rng_below(rng, n);
}

static void set_up(struct jpeg_compress_struct *j, const picture *p, const kind *k, spk_rng *rng)
{
    J_COLOR_SPACE colour = k->colour != AUTO ? k->colour : p->gray ? JCS_GRAYSCALE : JCS_YCbCr;
    j->in_color_space = colour == JCS_GRAYSCALE ? JCS_GRAYSCALE : colour == JCS_CMYK ? JCS_CMYK : JCS_RGB;
    j->input_components = j->in_color_space == JCS_GRAYSCALE ? 1 : j->in_color_space == JCS_CMYK ? 4 : 3;
    jpeg_set_defaults(j);
    jpeg_set_colorspace(j, colour);
    jpeg_set_quality(j, k->quality, TRUE);
    for (int c = 0; c < j->num_components; c++) {
        j->comp_info[c].h_samp_factor = c == 0 ? (k->h ? k->h : p->h) : c == 1 && k->chroma_h ? k->chroma_h : 1;
        j->comp_info[c].v_samp_factor = c == 0 ? (k->v ? k->v : p->v) : 1;
        if (colour == JCS_GRAYSCALE && k->h == 0)
            j->comp_info[c].h_samp_factor = j->comp_info[c].v_samp_factor = 1;
    }
    uint32_t step = 1 + below(rng, 600); /* all odd: at 8192 libjpeg-turbo's encoder divides by zero */
    for (uint32_t i = 0; i < 64 && k->wide; i++)
        for (int t = 0; t < 2; t++)
            if (j->quant_tbl_ptrs[t])
                j->quant_tbl_ptrs[t]->quantval[i] = (UINT16)((1 + i * step) | 1);
    j->optimize_coding = k->optimize;
    j->arith_code = k->arithmetic;
    if (k->restart && below(rng, 2))
        j->restart_in_rows = 1 + (int)below(rng, 3);
    else if (k->restart)
        j->restart_interval = 1 + below(rng, 40);
    if (k->progressive)
        jpeg_simple_progression(j);
    if (k->scans) {
        j->scan_info = k->scans->scan;
        j->num_scans = k->scans->n;
    }
}

static void write_rows(struct jpeg_compress_struct *j, const picture *p, spk_rect part, uint8_t *line)
{
    for (uint32_t y = 0; y < part.h; y++) {
        const uint8_t *from = p->rgb + ((size_t)(part.y + y) * p->width + part.x) * 3;
        if (j->input_components == 3)
            memcpy(line, from, (size_t)part.w * 3);
        for (size_t x = 0; x < part.w && j->input_components == 1; x++)
            line[x] = from[3 * x + 1];
        for (size_t x = 0; x < part.w && j->input_components == 4; x++)
            for (size_t c = 0; c < 4; c++)
                line[4 * x + c] = c < 3 ? from[3 * x + c] : (uint8_t)(255 - from[3 * x] / 4);
        jpeg_write_scanlines(j, &line, 1);
    }
}

unsigned char *make_file(const picture *p, spk_rect part, const kind *k, spk_rng *rng, size_t *n)
{
    struct jpeg_compress_struct j;
    error_trap trap;
    unsigned char *volatile result = NULL;
    uint8_t *line = malloc((size_t)part.w * 4);
    unsigned char *out = NULL;
    unsigned long size = 0;
    if (!line)
        abort();
    j.err = jpeg_std_error(&trap.mgr);
    trap.mgr.error_exit = on_error;
    trap.mgr.emit_message = on_message;
    jpeg_create_compress(&j);
    jpeg_mem_dest(&j, &out, &size);
    if (setjmp(trap.jump) == 0) {
        j.image_width = part.w;
        j.image_height = part.h;
        set_up(&j, p, k, rng);
        jpeg_start_compress(&j, TRUE);
        write_rows(&j, p, part, line);
        jpeg_finish_compress(&j);
        result = out;
    }
    jpeg_destroy_compress(&j);
    free(line);
    *n = size;
    return result;
}
