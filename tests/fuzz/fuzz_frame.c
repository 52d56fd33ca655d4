/* One zstd frame: any bytes are decoded or refused; any bytes that are compressed come back. */
#include <stdlib.h>
#include <string.h>

#include "../unit/index_fixture.h"
#include "shard/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void decode_any(const uint8_t *data, size_t n)
{
    spk_frame_reader *r = NULL;
    spk_error err;
    size_t bytes = 0;
    uint64_t content = 0;
    fixture_must(spk_frame_reader_new(&r, fe));
    if (spk_frame_probe(data, n, &bytes, &content, &err) == SPK_OK && content <= (16u << 20)) {
        uint8_t *out = malloc((size_t)content + 1);
        if (spk_frame_decode(r, data, bytes, out, (size_t)content, &err) == SPK_OK &&
            content > spk_frame_content_bound(bytes))
            abort();
        if (spk_frame_decode(r, data, n, out, (size_t)content, &err) == SPK_OK && bytes != n)
            abort();
        free(out);
    }
    spk_frame_reader_free(r);
}

static void round_trip(const uint8_t *data, size_t n, int level)
{
    spk_frame_writer *w = NULL;
    spk_frame_reader *r = NULL;
    spk_frame_info info;
    spk_buf z = {0};
    uint8_t *out = malloc(n + 1);
    fixture_must(spk_frame_writer_new(&w, fe));
    fixture_must(spk_frame_reader_new(&r, fe));
    fixture_must(spk_frame_begin(w, level, n, fixture_to_buf, &z, fe));
    fixture_must(spk_frame_write(w, data, n / 2, fe));
    fixture_must(spk_frame_write(w, data + n / 2, n - n / 2, fe));
    fixture_must(spk_frame_end(w, &info, fe));
    fixture_must(spk_frame_decode(r, z.data, z.len, out, n, fe));
    if (info.bytes != z.len || (n > 0 && memcmp(out, data, n) != 0))
        abort();
    spk_frame_writer_free(w);
    spk_frame_reader_free(r);
    spk_buf_free(&z);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    if (data[0] == 0)
        decode_any(data + 1, n - 1);
    else
        round_trip(data + 1, n - 1, data[0] % 12 - 2);
    return 0;
}
