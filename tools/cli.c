/* Messages, exit status, signals, standard output. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "out.h"

#define TEXT_MAX (2 * SPK_ERROR_TEXT) /* of a message, before its escapes */

static volatile sig_atomic_t caught_signal;
static int line_open;

void cli_start(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            _exit(CLI_FAILED);
}

void cli_set_line_open(int open)
{
    line_open = open;
}

static void say(const char *before, const char *format, va_list args, const char *after) CLI_PRINTF(2, 0);

/* Cuts a message that is too long in its middle: the object stands in front, the cause at the end. */
static void cut_middle(char *text, size_t max)
{
    size_t n = strlen(text), head = max / 2, tail = max - head - 4, from = n - tail;
    if (n < max)
        return;
    while (head > 0 && ((unsigned char)text[head] & 0xc0) == 0x80)
        head--;
    while (from < n && ((unsigned char)text[from] & 0xc0) == 0x80)
        from++;
    memcpy(text + head, "...", 3);
    memmove(text + head + 3, text + from, n - from + 1);
}

static void say(const char *before, const char *format, va_list args, const char *after)
{
    char fixed[TEXT_MAX], safe[4 * TEXT_MAX], *text = fixed, *grown = NULL;
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(fixed, sizeof fixed, format, args);
    if (n >= (int)sizeof fixed && (grown = malloc((size_t)n + 1))) { /* an operand may have any length */
        vsnprintf(grown, (size_t)n + 1, format, again);
        text = grown;
    }
    va_end(again);
    cut_middle(text, TEXT_MAX);
    out_escape(safe, sizeof safe, text);
    free(grown);
    if (line_open)
        fputs("\r\033[K", stderr);
    line_open = 0;
    fprintf(stderr, "shardpack: %s%s%s\n", before, safe, after);
}

int cli_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say("", format, args, "");
    va_end(args);
    return CLI_FAILED;
}

int cli_usage(const char *command, const char *format, ...)
{
    char before[64], after[96];
    va_list args;
    snprintf(before, sizeof before, "%s%s", command ? command : "", command ? ": " : "");
    snprintf(after, sizeof after, " (see: shardpack %s%s--help)", command ? command : "", command ? " " : "");
    va_start(args, format);
    say(before, format, args, after);
    va_end(args);
    return CLI_USAGE;
}

void cli_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say("note: ", format, args, "");
    va_end(args);
}

int cli_no_memory(void)
{
    return cli_error("out of memory");
}

int cli_fail(const spk_error *err, const char *resume)
{
    if (err->code == SPK_E_CANCELLED && ferror(stdout)) /* cli_close_stdout says why */
        return CLI_FAILED;
    if (err->code == SPK_E_CANCELLED && caught_signal)
        return cli_say_interrupted(resume);
    return cli_error("%s", err->text[0] ? err->text : spk_status_name(err->code));
}

static void on_signal(int number)
{
    caught_signal = number;
}

void cli_catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < 2; i++) {
        struct sigaction old, act;
        memset(&act, 0, sizeof act);
        act.sa_handler = on_signal;
        act.sa_flags = (int)SA_RESETHAND;
        /* Stays ignored where the caller wants that, as nohup and background jobs of scripts do. */
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &act, NULL);
    }
}

int cli_interrupted(void)
{
    return caught_signal;
}

int cli_say_interrupted(const char *resume)
{
    if (resume)
        cli_error("interrupted; %s", resume);
    else
        cli_error("interrupted");
    return 128 + (int)caught_signal;
}

/* The reader of our output has gone: end as any filter does, also where SIGPIPE was ignored. */
static void die_of_pipe(void)
{
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
    _exit(128 + SIGPIPE);
}

int cli_stdout_failed(void)
{
    if (!ferror(stdout))
        return 0;
    if (errno == EPIPE)
        die_of_pipe();
    return 1;
}

int cli_close_stdout(int status)
{
    int failed = ferror(stdout), reason = failed ? errno : 0;
    errno = 0;
    if (fclose(stdout) != 0) {
        failed = 1;
        reason = errno;
    }
    if (failed && reason == EPIPE)
        die_of_pipe();
    if (failed)
        return cli_error("standard output: %s", reason ? strerror(reason) : "not all was written");
    return status;
}
