/* The shard index. Input: mode, number of frames, and per frame a u8 of samples and a u16 of tar blocks; then, by mode,
 * the whole index frame (0: as it is, 1: with its digest made to fit) or the decompressed sample list (else), around
 * which a valid frame is made. */
#include <stdlib.h>
#include <string.h>

#include "../unit/index_fixture.h"

#define FRAMES 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Looks at everything the index points to. */
static void look(const spk_index *x)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < x->samples_n; i++) {
        const spk_index_sample *s = &x->samples[i];
        if (spk_key_problem(x->strings + s->key, strlen(x->strings + s->key)) != NULL)
            abort();
        for (uint32_t j = 0; j < s->members; j++) {
            const spk_index_member *m = &x->members[s->first + j];
            if (m->field >= x->fields_n || m->offset + m->size > x->tar_bytes)
                abort();
            if (m->original > SPK_ORIGINAL_MAX)
                abort();
            if (m->path_len > 0 && strlen(x->strings + m->path) != m->path_len)
                abort();
            sum += m->size;
        }
    }
    if (sum > x->tar_bytes)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint32_t counts[FRAMES], contents[FRAMES];
    if (n < 2 + 3 * FRAMES)
        return 0;
    size_t frames = 1 + data[1] % FRAMES;
    for (size_t i = 0; i < FRAMES; i++) {
        counts[i] = data[2 + 3 * i];
        contents[i] = (data[3 + 3 * i] | (uint32_t)data[4 + 3 * i] << 8) * SPK_TAR_BLOCK;
    }
    const uint8_t *rest = data + 2 + 3 * FRAMES;
    size_t left = n - 2 - 3 * FRAMES;
    spk_index *x = NULL;
    spk_error err;
    if (data[0] < 2) {
        spk_buf b = {0};
        fixture_must(spk_buf_append(&b, rest, left, fe));
        if (data[0] == 1 && left >= SPK_SKIP_HEADER + SPK_INDEX_FIXED)
            fixture_index_seal(b.data, b.len);
        if (spk_index_parse(&x, b.data, b.len, contents, frames, &err) == SPK_OK)
            look(x);
        spk_buf_free(&b);
    } else {
        spk_buf b = {0};
        fixture_index(&b, rest, left, counts, contents, frames);
        if (spk_index_parse(&x, b.data, b.len, contents, frames, &err) == SPK_OK)
            look(x);
        spk_buf_free(&b);
    }
    spk_index_free(x);
    return 0;
}
