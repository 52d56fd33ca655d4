/* A whole shard from memory: opened, listed, read and verified. Input: 0 and the file; or another byte, a u16 of list
 * bytes, the sample list and the tar bytes of one frame, around which the file is made. */
#include <stdlib.h>
#include <string.h>

#include "../unit/index_fixture.h"
#include "shard/seek_table.h"
#include "shard/shard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void on_problem(void *ctx, const spk_error *problem)
{
    if (problem->code >= 0 || problem->text[0] == '\0')
        abort();
    ++*(int *)ctx;
}

static void read_all(const spk_shard *s)
{
    spk_reader *r = NULL;
    const spk_sample *x = NULL;
    spk_error err;
    spk_status st = SPK_OK;
    volatile uint8_t sink = 0; /* keeps the reads */
    fixture_must(spk_reader_open_shard(&r, s, 0, fe));
    while ((st = spk_reader_next(r, &x, &err)) == SPK_OK || st == SPK_E_FORMAT || st == SPK_E_CHECKSUM ||
           st == SPK_E_LIMIT || st == SPK_E_UNSUPPORTED)
        for (size_t i = 0; st == SPK_OK && i < x->field_count; i++)
            if (x->fields[i].size > 0)
                sink ^= (uint8_t)(((const uint8_t *)x->fields[i].data)[0] ^
                                  ((const uint8_t *)x->fields[i].data)[x->fields[i].size - 1]);
    (void)sink;
    spk_reader_close(r);
}

static void use(const uint8_t *data, size_t n)
{
    spk_source *source = NULL;
    spk_shard *s = NULL;
    spk_error err;
    int problems = 0;
    uint64_t samples = 0;
    const spk_shard_verify_hooks hooks = {on_problem, NULL, NULL, &problems, NULL};
    fixture_must(spk_source_memory(&source, data, n, "x.tar.zst", fe));
    fixture_must(spk_shard_verify(source, NULL, &hooks, &samples, fe));
    if (spk_shard_open_source(&s, source, NULL, NULL, &err) == SPK_OK) {
        read_all(s);
        spk_shard_close(s);
    } else if (problems == 0) {
        abort();
    }
}

static void make(spk_buf *file, const uint8_t *list, size_t list_n, const uint8_t *tar, size_t tar_n, uint32_t samples)
{
    spk_frame_writer *w = NULL;
    spk_frame_info info;
    uint32_t content = (uint32_t)tar_n;
    fixture_must(spk_frame_writer_new(&w, fe));
    fixture_must(spk_frame_begin(w, 1, tar_n, fixture_to_buf, file, fe));
    fixture_must(spk_frame_write(w, tar, tar_n, fe));
    fixture_must(spk_frame_end(w, &info, fe));
    spk_frame_writer_free(w);
    size_t at = file->len;
    fixture_index(file, list, list_n, &samples, &content, 1);
    memcpy(file->data + at + SPK_SKIP_HEADER + SPK_INDEX_FIXED + 4, info.digest, SPK_FRAME_DIGEST);
    fixture_index_seal(file->data + at, file->len - at);
    const spk_seek_entry entries[] = {{(uint32_t)info.bytes, content, info.checksum},
                                      {(uint32_t)(file->len - at), 0, SPK_SEEK_EMPTY_CHECKSUM}};
    fixture_must(spk_seek_table_encode(file, entries, 2, fe));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 1)
        return 0;
    if (data[0] == 0) {
        use(data + 1, n - 1);
        return 0;
    }
    if (n < 3)
        return 0;
    size_t list = data[1] | (size_t)data[2] << 8;
    if (list > n - 3)
        return 0;
    spk_buf file = {0};
    make(&file, data + 3, list, data + 3 + list, n - 3 - list, data[0]);
    use(file.data, file.len);
    spk_buf_free(&file);
    return 0;
}
