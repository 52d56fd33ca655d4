/* Output for people and machines: escaped names, sizes, counts, times, JSON lines. */
#ifndef TOOLS_OUT_H
#define TOOLS_OUT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Copies a message with control bytes, and bytes that are not UTF-8, as \n, \t or \xNN; cut at the end of buf. Returns
 * buf. Backslashes stay: the library's messages hold such escapes already. */
char *out_escape(char *buf, size_t size, const char *text);
/* Writes a name from a data set in the same way, with each backslash doubled, so that it can be read back. */
void out_name(FILE *f, const char *text);
/* Writes the next character of text in the safe form of out_escape; returns how many bytes of text it took. */
size_t out_safe_char(FILE *f, const char *text);
/* Columns that UTF-8 text takes, one per character. */
size_t out_columns(const char *text);

/* "1.2 MiB", three digits at least. */
char *out_size(char *buf, size_t size, uint64_t bytes);
/* The shortest exact form: "256MiB", "65537". */
char *out_size_exact(char *buf, size_t size, uint64_t bytes);
/* "1,234,567". */
char *out_count(char *buf, size_t size, uint64_t n);
/* "35 ms", "0.8 s", "2 min 05 s", "3 h 12 min". */
char *out_time(char *buf, size_t size, double seconds);
/* "1 sample", "1,234 samples"; plural NULL: singular and an s. */
char *out_plural(char *buf, size_t size, uint64_t n, const char *singular, const char *plural);

/* Sets object[key]; a value that is no UTF-8 becomes KEY_hex with its bytes in hex. value NULL: null. */
void out_json_text(json_t *object, const char *key, const char *value);
void out_json_count(json_t *object, const char *key, uint64_t n);
/* Writes the value on one line to standard output and releases it. Returns the exit status. */
int out_json_line(json_t *value);
/* The same, indented. */
int out_json(json_t *value);

/* Monotonic seconds. */
double out_now(void);

#endif
