/* shardpack help: help texts, and, for the build, manual pages and completions. */
#include <string.h>

#include "cli.h"
#include "cmd.h"

typedef struct help_values {
    int man;
    int completion; /* 0: none, else a shell */
} help_values;

enum { SHELL_NONE, SHELL_BASH, SHELL_ZSH, SHELL_FISH };
static const char *const shells[] = {"none", "bash", "zsh", "fish", NULL};

static const opt options[] = {
    {.name = "man",
     .kind = OPT_FLAG,
     .hidden = 1,
     .offset = offsetof(help_values, man),
     .help = "Print the manual page instead."},
    {.name = "completion",
     .kind = OPT_ENUM,
     .hidden = 1,
     .arg = "SHELL",
     .offset = offsetof(help_values, completion),
     .values = shells,
     .help = "Print the completions for a shell instead."},
    {0},
};

static const operand operands[] = {
    {.name = "COMMAND", .help = "A command, urls or environment; without it, the list of commands."},
    {0},
};

static const example examples[] = {
    {"shardpack help pack", "Explain the command pack."},
    {"shardpack help urls", "What there is to know of datasets on web servers and S3."},
    {0},
};

static void print_completion(int shell)
{
    if (shell == SHELL_BASH)
        opts_completion_bash(stdout, &tool);
    else if (shell == SHELL_ZSH)
        opts_completion_zsh(stdout, &tool);
    else
        opts_completion_fish(stdout, &tool);
}

static const topic *find_topic(const char *name)
{
    const topic *about = topics;
    while (about->name && strcmp(about->name, name) != 0)
        about++;
    return about->name ? about : NULL;
}

static int run(const opts *o)
{
    const help_values *v = o->values;
    const command *c = NULL;
    const topic *about = o->operand_count ? find_topic(o->operands[0]) : NULL;
    if (v->completion) {
        print_completion(v->completion);
        return CLI_OK;
    }
    if (about && !v->man) {
        opts_topic(stdout, about);
        return CLI_OK;
    }
    if (o->operand_count && !(c = cmd_find(o->operands[0])))
        return cmd_unknown(o->operands[0]);
    if (v->man)
        opts_man(stdout, &tool, c);
    else if (c)
        opts_help(stdout, &tool, c);
    else
        opts_overview(stdout, &tool);
    return CLI_OK;
}

const command cmd_help = {
    .name = "help",
    .summary = "explain a command",
    .synopsis = "[COMMAND]",
    .description = "Prints what \"shardpack COMMAND --help\" prints, what concerns several commands, or the list of "
                   "commands.",
    .options = options,
    .operands = operands,
    .max_operands = 1,
    .examples = examples,
    .failure = "if the text could not be written.",
    .values_size = sizeof(help_values),
    .run = run,
    .hidden = 1,
};
