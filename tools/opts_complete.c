/* Completions for bash, zsh and fish, from the same tables as --help. */
#include <string.h>

#include "opts.h"

typedef struct target {
    FILE *f;
    const char *command;
} target;

/* Text inside single quotes of a POSIX-like shell. */
static void put_quoted(FILE *f, const char *text)
{
    for (; *text; text++)
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, 0}, f);
}

/* The first sentence of a help text, without its full stop: enough beside an option. */
static size_t short_help(const char *help)
{
    const char *stop = strstr(help, ". ");
    size_t n = stop ? (size_t)(stop - help) : strlen(help);
    return n && help[n - 1] == '.' ? n - 1 : n;
}

static void put_words(FILE *f, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        fprintf(f, "%s%s", i ? " " : "", words[i]);
}

static void put_commands(FILE *f, const tool_info *t)
{
    for (const command *const *c = t->commands; *c; c++)
        fprintf(f, "%s%s", c == t->commands ? "" : " ", (*c)->name);
}

/* ---- bash ---- */

static void bash_option(void *ctx, const opt *r)
{
    target *t = ctx;
    if (r->kind == OPT_GROUP)
        return;
    fprintf(t->f, " --%s%s", r->name, r->arg ? "=" : "");
    if (r->negatable)
        fprintf(t->f, " --no-%s", r->name);
    if (r->letter)
        fprintf(t->f, " -%c", r->letter);
}

static void bash_pattern(FILE *f, const char *name, const opt *r)
{
    fprintf(f, "    %s:--%s", name, r->name);
    if (r->letter)
        fprintf(f, " | %s:-%c", name, r->letter);
    fputs(") ", f);
}

static void bash_argument(void *ctx, const opt *r)
{
    target *t = ctx;
    if (!r->arg || r->kind == OPT_GROUP)
        return;
    bash_pattern(t->f, t->command, r);
    if (r->kind == OPT_ENUM) {
        fputs("words='", t->f);
        put_words(t->f, r->values);
        fputs("' ;;\n", t->f);
    } else if (r->complete != COMPLETE_NONE) {
        fprintf(t->f, "how=%s ;;\n", r->complete == COMPLETE_FOLDER ? "-d" : "-f");
    } else {
        fputs("return 0 ;;\n", t->f);
    }
}

/* Words that operands of a command complete to; empty: files. */
static void bash_operands(FILE *f, const tool_info *t, const command *c)
{
    fprintf(f, "    %s) ", c->name);
    if (strcmp(c->name, "help") == 0) {
        fputs("words='", f);
        put_commands(f, t);
        for (const topic *about = t->topics; about->name; about++)
            fprintf(f, " %s", about->name);
        fputs("' ;;\n", f);
        return;
    }
    int files = !c->operands || !c->operands->name;
    for (const operand *o = c->operands; o && o->name; o++)
        files |= o->complete != COMPLETE_NONE;
    fputs(files ? "how=-f" : "how=''", f);
    for (const operand *o = c->operands; o && o->name; o++)
        if (o->values) {
            fputs(" words='", f);
            put_words(f, o->values);
            putc('\'', f);
        }
    fputs(" ;;\n", f);
}

static void bash_tables(FILE *f, const tool_info *t)
{
    fputs("  case \"$command\" in\n", f);
    for (const command *const *c = t->commands; *c; c++) {
        fprintf(f, "    %s) options='", (*c)->name);
        opts_each(*c, bash_option, &(target){f, (*c)->name});
        fputs("' ;;\n", f);
    }
    fputs("    *) options='--help --version' words='", f);
    put_commands(f, t);
    fputs("' ;;\n  esac\n  case \"$command:$previous\" in\n", f);
    for (const command *const *c = t->commands; *c; c++)
        opts_each(*c, bash_argument, &(target){f, (*c)->name});
    fputs("    *)\n      if [[ \"$word\" == -* ]]; then\n        words=$options\n      else\n"
          "        case \"$command\" in\n",
          f);
    for (const command *const *c = t->commands; *c; c++) {
        fputs("      ", f);
        bash_operands(f, t, *c);
    }
    fputs("        esac\n      fi ;;\n  esac\n", f);
}

void opts_completion_bash(FILE *f, const tool_info *t)
{
    fputs("# bash completion for shardpack, made by: shardpack help --completion bash\n"
          "_shardpack() {\n"
          "  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command='' how='' words='' "
          "options\n"
          "  COMPREPLY=()\n"
          "  [[ $COMP_CWORD -gt 1 ]] && command=${COMP_WORDS[1]}\n"
          "  # \"--option=word\" comes as three words where = separates words.\n"
          "  if [[ \"$word\" == '=' ]]; then\n"
          "    word=''\n"
          "  elif [[ \"$previous\" == '=' && $COMP_CWORD -gt 2 ]]; then\n"
          "    previous=${COMP_WORDS[COMP_CWORD-2]}\n"
          "  fi\n",
          f);
    bash_tables(f, t);
    fputs("  [[ -n \"$words\" ]] && mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
          "  if [[ -n \"$how\" ]]; then\n"
          "    local found\n"
          "    while IFS= read -r found; do COMPREPLY+=(\"$found\"); done < <(compgen \"$how\" -- \"$word\")\n"
          "    compopt -o filenames 2>/dev/null\n"
          "  fi\n"
          "  [[ ${#COMPREPLY[@]} -eq 1 && \"${COMPREPLY[0]}\" == *= ]] && compopt -o nospace 2>/dev/null\n"
          "  return 0\n"
          "}\n"
          "complete -F _shardpack shardpack\n",
          f);
}

/* ---- zsh ---- */

static void zsh_escaped(FILE *f, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strchr("[]:\\", text[i]))
            putc('\\', f);
        fputs(text[i] == '\'' ? "'\\''" : (char[]){text[i], 0}, f);
    }
}

static void zsh_action(FILE *f, const char *const *words, opt_complete complete)
{
    if (words) {
        putc('(', f);
        put_words(f, words);
        putc(')', f);
    } else if (complete != COMPLETE_NONE) {
        fputs(complete == COMPLETE_FOLDER ? "_files -/" : "_files", f);
    } else {
        putc(' ', f);
    }
}

static void zsh_spec(FILE *f, const opt *r, const char *name)
{
    fprintf(f, " \\\n        '%s%s%s[", r->kind == OPT_LIST ? "*" : "", name, r->arg ? name[1] == '-' ? "=" : "+" : "");
    zsh_escaped(f, r->help, short_help(r->help));
    putc(']', f);
    if (r->arg) {
        putc(':', f);
        zsh_escaped(f, r->arg, strlen(r->arg));
        putc(':', f);
        zsh_action(f, r->kind == OPT_ENUM ? r->values : NULL, r->complete);
    }
    putc('\'', f);
}

static void zsh_option(void *ctx, const opt *r)
{
    target *t = ctx;
    char name[64];
    if (r->kind == OPT_GROUP)
        return;
    snprintf(name, sizeof name, "--%s", r->name);
    zsh_spec(t->f, r, name);
    if (r->letter)
        zsh_spec(t->f, r, (char[]){'-', r->letter, 0});
    snprintf(name, sizeof name, "--no-%s", r->name);
    if (r->negatable)
        zsh_spec(t->f, r, name);
}

void opts_completion_zsh(FILE *f, const tool_info *t)
{
    fputs("#compdef shardpack\n# zsh completion for shardpack, made by: shardpack help --completion zsh\n"
          "_shardpack() {\n  local curcontext=$curcontext state line\n  local -a commands\n  commands=(\n",
          f);
    for (const command *const *c = t->commands; *c; c++) {
        fprintf(f, "    '%s:", (*c)->name);
        zsh_escaped(f, (*c)->summary, strlen((*c)->summary));
        fputs("'\n", f);
    }
    fputs("  )\n  _arguments -C '(- *)'{-h,--help}'[Show the list of commands]' '(- *)--version[Show the version]' \\\n"
          "    '1: :->command' '*:: :->arguments'\n"
          "  case $state in\n  command) _describe command commands ;;\n  arguments)\n    case $line[1] in\n",
          f);
    for (const command *const *c = t->commands; *c; c++) {
        fprintf(f, "    %s)\n      _arguments -s -S", (*c)->name);
        opts_each(*c, zsh_option, &(target){f, (*c)->name});
        for (const operand *o = (*c)->operands; o && o->name; o++) {
            int last = !o[1].name && (*c)->max_operands == SIZE_MAX;
            fprintf(f, " \\\n        '%s:", last ? "*" : "");
            zsh_escaped(f, o->name, strlen(o->name));
            putc(':', f);
            zsh_action(f, o->values, o->complete);
            putc('\'', f);
        }
        fputs(" ;;\n", f);
    }
    fputs("    esac ;;\n  esac\n}\n_shardpack \"$@\"\n", f);
}

/* ---- fish ---- */

static void fish_option(void *ctx, const opt *r)
{
    target *t = ctx;
    if (r->kind == OPT_GROUP)
        return;
    for (int negative = 0; negative <= r->negatable; negative++) {
        fprintf(t->f, "complete -c shardpack -n '__fish_seen_subcommand_from %s' -l %s%s", t->command,
                negative ? "no-" : "", r->name);
        if (r->letter && !negative)
            fprintf(t->f, " -s %c", r->letter);
        if (r->kind == OPT_ENUM) {
            fputs(" -x -a '", t->f);
            put_words(t->f, r->values);
            putc('\'', t->f);
        } else if (r->arg) {
            fputs(r->complete == COMPLETE_FOLDER ? " -x -a '(__fish_complete_directories)'"
                  : r->complete                  ? " -r -F"
                                                 : " -x",
                  t->f);
        }
        char help[256];
        snprintf(help, sizeof help, "%.*s", (int)short_help(r->help), r->help);
        fputs(" -d '", t->f);
        put_quoted(t->f, help);
        fputs("'\n", t->f);
    }
}

void opts_completion_fish(FILE *f, const tool_info *t)
{
    fputs("# fish completion for shardpack, made by: shardpack help --completion fish\n", f);
    fputs("complete -c shardpack -n __fish_use_subcommand -f -s h -l help -d 'Show the list of commands'\n"
          "complete -c shardpack -n __fish_use_subcommand -f -l version -d 'Show the version'\n",
          f);
    for (const command *const *c = t->commands; *c; c++) {
        fprintf(f, "complete -c shardpack -n __fish_use_subcommand -f -a %s -d '", (*c)->name);
        put_quoted(f, (*c)->summary);
        fputs("'\n", f);
    }
    for (const command *const *c = t->commands; *c; c++) {
        opts_each(*c, fish_option, &(target){f, (*c)->name});
        for (const operand *o = (*c)->operands; o && o->name; o++)
            if (o->values) {
                fprintf(f, "complete -c shardpack -n '__fish_seen_subcommand_from %s' -a '", (*c)->name);
                put_words(f, o->values);
                fputs("'\n", f);
            }
    }
}
