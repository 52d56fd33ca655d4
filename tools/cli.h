/* What every command shares towards its user: messages on stderr, the exit status, signals, and standard output that is
 * checked. Nothing else of the tool writes to stderr, except the progress line. */
#ifndef TOOLS_CLI_H
#define TOOLS_CLI_H

#include <shardpack/error.h>
#include <stddef.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

#define CLI_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Occupies the standard descriptors that the caller left closed, so that no file takes their place: reading and writing
 * there fails. */
void cli_start(void);

/* "shardpack: TEXT" on stderr, one line; control bytes and stray bytes in it are escaped. Returns CLI_FAILED. */
int cli_error(const char *format, ...) CLI_PRINTF(1, 2);
/* The same with the name of the command (may be NULL) and a pointer to its help. Returns CLI_USAGE. */
int cli_usage(const char *command, const char *format, ...) CLI_PRINTF(2, 3);
/* "shardpack: note: TEXT". */
void cli_note(const char *format, ...) CLI_PRINTF(1, 2);
int cli_no_memory(void);
/* Reports what a library call left behind. Returns the exit status: CLI_FAILED, or that of the signal if the user
 * interrupted. `resume` is the message's end in that case, or NULL. */
int cli_fail(const spk_error *err, const char *resume);

/* Lets SIGINT and SIGTERM stop the command cleanly: cli_interrupted() is then the signal's number. A second one kills.
 */
void cli_catch_signals(void);
int cli_interrupted(void);
/* "shardpack: interrupted; RESUME" and the exit status 128 + signal. */
int cli_say_interrupted(const char *resume);

/* Nonzero after standard output failed: no use in writing more. Ends the process by SIGPIPE if its reader has gone. */
int cli_stdout_failed(void);
/* Flushes and closes standard output; returns status, or CLI_FAILED after a message if something was not written. */
int cli_close_stdout(int status);

/* Tells that a line without an end stands on the terminal, which a message has to clear first. */
void cli_set_line_open(int open);

#endif
