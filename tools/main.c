/* The shardpack command: finds the row of the command in a table and runs it. */
#include <shardpack/types.h>
#include <string.h>

#include "cli.h"
#include "cmd.h"

static const command *const commands[] = {
    &cmd_pack,   &cmd_repack, &cmd_ls,    &cmd_info,   &cmd_cat,   &cmd_extract, &cmd_verify, &cmd_prune,
    &cmd_export, &cmd_stream, &cmd_bench, &cmd_mirror, &cmd_cache, &cmd_help,    NULL,
};

const tool_info tool = {
    .name = "shardpack",
    .version = SPK_VERSION_STRING,
    .date = SPK_VERSION_DATE,
    .summary = "Packs image folders into large shards that tar, zstd and webdataset read, and reads them back.",
    .description =
        "shardpack turns a folder of images into a dataset: a few large .tar.zst files (shards), a small manifest.json "
        "and a table of the shards with their checksums. Files are stored bit for bit, and come back so. Each file of "
        "a sample is called "
        "KEY.FIELD, where the key is the cleaned path without extension and the field the extension; the original path "
        "is kept in the shard's index.\n\n"
        "A shard is a plain tar file, compressed by zstd in small frames, so \"tar --zstd -t\" and \"zstd -d\" read "
        "it, and single samples can be fetched without reading the rest. With \"pack --jpeg=fast\" the JPEG images in "
        "it are blobs to other tools.\n\n"
        "Sizes are given in bytes or with one of the letters k, M, G and T, powers of 1024, as in 64k, 256M or 1.5GiB. "
        "Results go to standard output, messages and progress to standard error. With --json the result is JSON.",
    .commands = commands,
    .topics = topics,
};

const command *cmd_find(const char *name)
{
    for (const command *const *c = commands; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

int cmd_unknown(const char *name)
{
    const char *words[sizeof commands / sizeof *commands];
    size_t n = 0;
    for (const command *const *c = commands; *c; c++)
        words[n++] = (*c)->name;
    words[n] = NULL;
    const char *near = opts_nearest(name, words);
    if (near)
        return cli_usage(NULL, "unknown command %s; did you mean %s?", name, near);
    return cli_usage(NULL, "unknown command %s", name);
}

static int run_command(const command *c, int argc, char **argv)
{
    opts o;
    int rc = opts_parse(&o, c, argc, argv);
    if (rc == 0 && o.help)
        opts_help(stdout, &tool, c);
    else if (rc == 0)
        rc = c->run(&o);
    opts_free(&o);
    return rc;
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        opts_overview(stderr, &tool);
        return CLI_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        opts_overview(stdout, &tool);
        return CLI_OK;
    }
    if (strcmp(word, "--version") == 0) {
        printf("shardpack %s\n", spk_version());
        return CLI_OK;
    }
    if (word[0] == '-') {
        const char *near = opts_nearest(word, (const char *const[]){"--help", "--version", NULL});
        return cli_usage(NULL, "unknown option %s%s%s%s", word, near ? "; did you mean " : "", near ? near : "",
                         near ? "?" : "");
    }
    const command *c = cmd_find(word);
    return c ? run_command(c, argc - 2, argv + 2) : cmd_unknown(word);
}

int main(int argc, char **argv)
{
    cli_start();
    return cli_close_stdout(run(argc, argv));
}
