/* How libjpeg's errors, warnings and appetite are held in bounds. */
#include "image/jpeg_trap.h"

#include <string.h>

#include <jerror.h>

#include "image/checker.h"

#define HEADER_MEMORY (16L << 20)

/* Where libjpeg stands in the file; it reads a byte or two ahead. */
static size_t position(const spk_jpeg_trap *t)
{
    size_t left = t->jpeg->src ? t->jpeg->src->bytes_in_buffer : 0;
    return left <= t->file_bytes ? t->file_bytes - left : t->file_bytes;
}

_Noreturn static void spring(j_common_ptr common)
{
    spk_jpeg_trap *t = common->client_data;
    char text[JMSG_LENGTH_MAX];
    common->err->format_message(common, text);
    size_t len = strlen(text);
    if (len > 0 && text[len - 1] == '.')
        text[len - 1] = '\0';
    if (common->err->msg_code == JERR_OUT_OF_MEMORY)
        t->status = spk_error_set(t->err, SPK_E_NOMEM, "JPEG: %s", text);
    else if (common->err->msg_code == JWRN_JPEG_EOF || common->err->msg_code == JERR_INPUT_EOF)
        t->status = spk_error_set(t->err, SPK_E_FORMAT, "truncated JPEG: %s after %zu bytes", text, t->file_bytes);
    else
        t->status = spk_error_set(t->err, SPK_E_FORMAT, "bad JPEG: %s (near byte %zu of %zu)", text, position(t),
                                  t->file_bytes);
    longjmp(t->jump, 1);
}

static void on_message(j_common_ptr common, int level)
{
    if (level < 0)
        spring(common);
}

static void on_output(j_common_ptr common)
{
    (void)common; /* the library never prints */
}

/* Called while scans are consumed. */
static void on_progress(j_common_ptr common)
{
    spk_jpeg_trap *t = common->client_data;
    if (t->jpeg->input_scan_number > SPK_JPEG_SCANS_MAX) {
        t->status = spk_error_set(t->err, SPK_E_LIMIT, "JPEG with more than %d scans", SPK_JPEG_SCANS_MAX);
        longjmp(t->jump, 1);
    }
}

spk_status spk_jpeg_trap_create(spk_jpeg_trap *t, struct jpeg_decompress_struct *jpeg, spk_error *err)
{
    t->jpeg = jpeg;
    jpeg->err = jpeg_std_error(&t->errors);
    jpeg->client_data = t;
    t->errors.error_exit = spring;
    t->errors.emit_message = on_message;
    t->errors.output_message = on_output;
    t->progress.progress_monitor = on_progress;
    spk_jpeg_trap_arm(t, 0, err);
    if (setjmp(t->jump))
        return t->status;
    jpeg_create_decompress(jpeg); /* keeps err and client_data */
    t->created = true;
    jpeg->progress = &t->progress;
    return SPK_OK;
}

void spk_jpeg_trap_destroy(spk_jpeg_trap *t)
{
    if (t->created)
        jpeg_destroy_decompress(t->jpeg);
    t->created = false;
}

void spk_jpeg_trap_arm(spk_jpeg_trap *t, size_t file_bytes, spk_error *err)
{
    t->file_bytes = file_bytes;
    t->err = err;
    t->status = SPK_OK;
}

/* Tables of an image stay in a decompressor for the next one, which may then lack its own and decode to something else
 * than it would alone. A new one costs next to nothing. */
void spk_jpeg_trap_header(spk_jpeg_trap *t, const void *data)
{
    jpeg_destroy_decompress(t->jpeg);
    jpeg_create_decompress(t->jpeg);
    t->jpeg->progress = &t->progress;
    t->jpeg->mem->max_memory_to_use = HEADER_MEMORY;
    jpeg_mem_src(t->jpeg, data, t->file_bytes);
    jpeg_read_header(t->jpeg, TRUE);
}

/* A Huffman-coded image spends at least one bit on each block of 64 coefficients, so a header that promises more blocks
 * than the file has bits is a bomb or a stump. */
spk_status spk_jpeg_trap_limit(spk_jpeg_trap *t)
{
    const struct jpeg_decompress_struct *j = t->jpeg;
    uint64_t blocks = 0;
    for (int i = 0; i < j->num_components; i++)
        blocks += (uint64_t)j->comp_info[i].width_in_blocks * j->comp_info[i].height_in_blocks;
    if (!j->arith_code && blocks > 8 * (uint64_t)t->file_bytes)
        return spk_error_set(t->err, SPK_E_FORMAT,
                             "truncated JPEG: %u x %u pixels need at least %llu bytes, the file has %zu",
                             j->image_width, j->image_height, (unsigned long long)(blocks / 8), t->file_bytes);
    /* Coefficients of a progressive image are kept: 2 bytes each, and padding at the borders; and a few rows of blocks
     * at full size. */
    uint64_t memory = blocks * 128 + blocks * 32 + 1024 * (uint64_t)j->image_width + (16u << 20);
    t->jpeg->mem->max_memory_to_use = memory < INT32_MAX ? (long)memory : INT32_MAX;
    return SPK_OK;
}
