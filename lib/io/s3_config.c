/* The shared config and credentials files in the manner of the AWS command line: sections are profiles, lines are
 * KEY = VALUE, indented lines belong to the key above. No environment but the names of the files and the profile. */
#define _GNU_SOURCE
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/s3.h"

#define FILE_MAX ((size_t)1 << 20)

/* A line without blanks at its ends. */
typedef struct span {
    const char *p;
    size_t n;
} span;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static span trim(const char *p, const char *end)
{
    while (p < end && is_blank(*p))
        p++;
    while (end > p && is_blank(end[-1]))
        end--;
    return (span){p, (size_t)(end - p)};
}

static bool is_text(span s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

/* "[name]", with blanks inside taken as one. */
static bool is_section(span line, const char *section)
{
    span name = trim(line.p + 1, line.p + line.n - 1);
    size_t i = 0;
    for (const char *c = section; *c; c++) {
        if (i >= name.n || (is_blank(*c) ? !is_blank(name.p[i]) : name.p[i] != *c))
            return false;
        i++;
        while (is_blank(*c) && i < name.n && is_blank(name.p[i]))
            i++;
    }
    return i == name.n;
}

spk_status spk_ini_get(const char *text, const char *section, const char *parent, const char *key, char **out,
                       spk_error *err)
{
    bool inside = false, below = false;
    *out = NULL;
    for (const char *p = text, *end = NULL; *p; p = *end ? end + 1 : end) {
        end = strchrnul(p, '\n');
        bool indented = is_blank(*p);
        span line = trim(p, end);
        if (line.n == 0 || *line.p == '#' || *line.p == ';')
            continue;
        if (*line.p == '[' && line.p[line.n - 1] == ']') {
            inside = is_section(line, section);
            below = false;
            continue;
        }
        const char *equal = memchr(line.p, '=', line.n);
        if (!inside || !equal)
            continue;
        span name = trim(line.p, equal), value = trim(equal + 1, line.p + line.n);
        if (!indented)
            below = parent && is_text(name, parent);
        if ((parent ? below && indented : !indented) && is_text(name, key)) {
            *out = strndup(value.p, value.n);
            return *out ? SPK_OK : spk_error_nomem(err, value.n);
        }
    }
    return SPK_OK;
}

bool spk_ini_has(const char *text, const char *section)
{
    for (const char *p = text, *end = NULL; *p; p = *end ? end + 1 : end) {
        end = strchrnul(p, '\n');
        span line = trim(p, end);
        if (line.n > 1 && *line.p == '[' && line.p[line.n - 1] == ']' && is_section(line, section))
            return true;
    }
    return false;
}

static spk_status home_folder(char **out, spk_error *err)
{
    const char *home = secure_getenv("HOME");
    struct passwd entry, *found = NULL;
    char room[4096];
    if ((!home || !*home) && getpwuid_r(geteuid(), &entry, room, sizeof room, &found) == 0 && found)
        home = found->pw_dir;
    *out = strdup(home && *home ? home : "/");
    return *out ? SPK_OK : spk_error_nomem(err, 0);
}

/* A file that is not there, or may not be read, is empty. */
static spk_status read_file(const char *variable, const char *name, char **out, spk_error *err)
{
    const char *given = secure_getenv(variable);
    char *home = NULL, path[4096];
    SPK_TRY(home_folder(&home, err));
    int n = given && *given ? snprintf(path, sizeof path, "%s", given)
                            : snprintf(path, sizeof path, "%s/.aws/%s", home, name);
    free(home);
    *out = calloc(1, 1);
    if (!*out)
        return spk_error_nomem(err, 1);
    FILE *f = n < (int)sizeof path ? fopen(path, "rbe") : NULL;
    if (!f)
        return given && *given && errno != ENOENT ? spk_error_sys(err, errno, "%s", path) : SPK_OK;
    char *text = malloc(FILE_MAX + 1);
    if (!text) {
        fclose(f);
        return spk_error_nomem(err, FILE_MAX);
    }
    size_t got = fread(text, 1, FILE_MAX, f);
    fclose(f);
    text[got] = '\0';
    free(*out);
    *out = text;
    return SPK_OK;
}

spk_status spk_s3_files_read(spk_s3_files *out, spk_error *err)
{
    const char *profile = secure_getenv("AWS_PROFILE");
    memset(out, 0, sizeof *out);
    out->chosen = profile && *profile;
    out->profile = strdup(out->chosen ? profile : "default");
    spk_status st = out->profile ? read_file("AWS_CONFIG_FILE", "config", &out->config, err) : spk_error_nomem(err, 0);
    if (st == SPK_OK)
        st = read_file("AWS_SHARED_CREDENTIALS_FILE", "credentials", &out->credentials, err);
    if (st < 0)
        spk_s3_files_free(out);
    return st;
}

void spk_s3_files_free(spk_s3_files *f)
{
    if (f->config)
        explicit_bzero(f->config, strlen(f->config));
    if (f->credentials)
        explicit_bzero(f->credentials, strlen(f->credentials));
    free(f->config);
    free(f->credentials);
    free(f->profile);
    memset(f, 0, sizeof *f);
}

spk_status spk_s3_setting(const spk_s3_files *f, const char *parent, const char *key, char **out, spk_error *err)
{
    char section[256];
    snprintf(section, sizeof section, "%s%.200s", strcmp(f->profile, "default") == 0 ? "" : "profile ", f->profile);
    return spk_ini_get(f->config, section, parent, key, out, err);
}
