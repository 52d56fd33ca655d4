/* shardpack cat: files of a dataset to standard output; one frame is read per sample. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "cmd.h"
#include "find.h"
#include "remote.h"
#include "target.h"

typedef struct cat_values {
    int force;
    remote_values remote;
} cat_values;

static const opt options[] = {
    {.name = "force",
     .kind = OPT_FLAG,
     .letter = 'f',
     .offset = offsetof(cat_values, force),
     .help = "Write binary data to a terminal, too."},
    REMOTE_ROWS(cat_values),
    {0},
};

static const operand operands[] = {
    {.name = "DATASET",
     .help = "Folder or manifest of a dataset, or one shard file; or a URL of these.",
     .complete = COMPLETE_FILE},
    {.name = "NAME",
     .help = "KEY.FIELD as ls -l shows it, #NUMBER.FIELD with the number of a sample, or an original path."},
    {0},
};

static const example examples[] = {
    {"shardpack cat photos.shards zebra/n02391049_87.jpg > zebra.jpg", "Take one image out."},
    {"shardpack cat photos.shards '#0.cls'", "The label of the first sample."},
    {0},
};

/* Text may go to a terminal; anything with other control bytes than those of text may change its state. */
static int is_binary(const void *data, size_t n)
{
    const unsigned char *s = data;
    for (size_t i = 0; i < n; i++)
        if ((s[i] < 0x20 && !strchr("\t\n\r\f", s[i])) || s[i] == 0 || s[i] == 0x7f ||
            (s[i] == 0xc2 && i + 1 < n && s[i + 1] >= 0x80 && s[i + 1] < 0xa0)) /* C1 in UTF-8 */
            return 1;
    return 0;
}

static int write_field(const cat_values *v, const char *name, const spk_field *f)
{
    if (!v->force && isatty(STDOUT_FILENO) && is_binary(f->data, f->size))
        return cli_error(
            "\"%s\" is binary data, which is not written to a terminal; redirect the output, or use --force", name);
    if (strcmp(f->encoding, "jpeg_pixels") == 0)
        cli_note("\"%s\" is not the file that was packed, but one with its pixels", name);
    fwrite(f->data, 1, f->size, stdout);
    return cli_stdout_failed() ? CLI_FAILED : CLI_OK;
}

static int cat_one(const cat_values *v, const target *t, spk_reader *reader, const char *name)
{
    found_member at;
    const spk_sample *sample;
    spk_error err;
    int rc = find_member(t, name, &at);
    if (rc != CLI_OK)
        return rc;
    spk_error_clear(&err);
    if (spk_reader_seek(reader, at.number, &err) < 0 || spk_reader_next(reader, &sample, &err) != SPK_OK)
        return cli_fail(&err, NULL);
    for (size_t i = 0; i < sample->field_count; i++)
        if (strcmp(sample->fields[i].name, at.field) == 0)
            return write_field(v, name, &sample->fields[i]);
    return cli_error("%s: \"%s\": the sample has lost its field \"%s\"", t->path, name, at.field);
}

static int run(const opts *o)
{
    target t;
    spk_reader *reader = NULL;
    int rc = target_open(&t, o->operands[0], &((const cat_values *)o->values)->remote);
    if (rc == CLI_OK)
        rc = target_reader(&t, 0, &reader);
    for (size_t i = 1; i < o->operand_count && rc == CLI_OK; i++)
        rc = cat_one(o->values, &t, reader, o->operands[i]);
    spk_reader_close(reader);
    target_close(&t);
    return rc;
}

const command cmd_cat = {
    .name = "cat",
    .summary = "write files of a dataset to standard output",
    .synopsis = "[OPTION]... DATASET NAME...",
    .description =
        "Writes the bytes of each NAME, one after the other. Of the data, one frame is read per name (about 1 MiB "
        "unless packed otherwise). A name is first taken as KEY.FIELD, then as an original path.",
    .options = options,
    .operands = operands,
    .min_operands = 2,
    .max_operands = SIZE_MAX,
    .examples = examples,
    .failure = "if a name is not in the dataset, or could not be read.",
    .values_size = sizeof(cat_values),
    .run = run,
};
