/* Where S3 credentials come from. The first place that has any decides, so that a half-set place is an error and not a
 * surprise. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/s3.h"

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void spk_s3_keys_free(spk_s3_keys *k)
{
    wipe(k->access);
    wipe(k->secret);
    wipe(k->token);
    memset(k, 0, sizeof *k);
}

static char *env(const char *name)
{
    const char *value = secure_getenv(name);
    return value && *value ? strdup(value) : NULL;
}

static spk_status check_whole(const spk_s3_keys *k, const char *where, bool *found, spk_error *err)
{
    *found = k->access || k->secret;
    if (*found && (!k->access || !k->secret))
        return spk_error_set(err, SPK_E_INVALID, "S3 credentials: %s has %s but no %s", where,
                             k->access ? "an access key" : "a secret key", k->access ? "secret key" : "access key");
    return SPK_OK;
}

static spk_status from_environment(spk_s3_keys *k, spk_s3_wait *wait, bool *found, spk_error *err)
{
    (void)wait;
    k->access = env("AWS_ACCESS_KEY_ID");
    k->secret = env("AWS_SECRET_ACCESS_KEY");
    k->token = env("AWS_SESSION_TOKEN");
    return check_whole(k, "the environment", found, err);
}

static spk_status from_section(spk_s3_keys *k, const char *text, const char *section, bool *found, spk_error *err)
{
    char where[300];
    SPK_TRY(spk_ini_get(text, section, NULL, "aws_access_key_id", &k->access, err));
    SPK_TRY(spk_ini_get(text, section, NULL, "aws_secret_access_key", &k->secret, err));
    SPK_TRY(spk_ini_get(text, section, NULL, "aws_session_token", &k->token, err));
    snprintf(where, sizeof where, "profile \"%.200s\"", section);
    return check_whole(k, where, found, err);
}

static spk_status from_files(spk_s3_keys *k, spk_s3_wait *wait, bool *found, spk_error *err)
{
    spk_s3_files f;
    char section[256];
    (void)wait;
    SPK_TRY(spk_s3_files_read(&f, err));
    bool plain = strcmp(f.profile, "default") == 0;
    snprintf(section, sizeof section, "%s%.200s", plain ? "" : "profile ", f.profile);
    spk_status st = from_section(k, f.credentials, f.profile, found, err);
    if (st == SPK_OK && !*found) {
        spk_s3_keys_free(k);
        st = from_section(k, f.config, section, found, err);
    }
    if (st == SPK_OK && !*found && f.chosen && !spk_ini_has(f.credentials, f.profile) &&
        !spk_ini_has(f.config, section))
        st = spk_error_set(err, SPK_E_NOT_FOUND, "S3 credentials: AWS_PROFILE is \"%.80s\", which no file has",
                           f.profile);
    spk_s3_files_free(&f);
    return st;
}

spk_status spk_s3_keys_find(spk_s3_keys *out, spk_s3_wait *wait, spk_error *err)
{
    static spk_status (*const places[])(spk_s3_keys *, spk_s3_wait *, bool *, spk_error *) = {
        from_environment, from_files, spk_s3_keys_container, spk_s3_keys_instance};
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        bool found = false;
        spk_status st = places[i](out, wait, &found, err);
        if (wait->cancelled)
            st = spk_error_set(err, SPK_E_CANCELLED, "cancelled while S3 credentials were asked for");
        if (st == SPK_OK && found)
            return SPK_OK;
        spk_s3_keys_free(out);
        SPK_TRY(st);
    }
    return spk_error_set(err, SPK_E_NOT_FOUND,
                         "S3 credentials: none in the environment (AWS_ACCESS_KEY_ID), the shared files, or from "
                         "container or instance; AWS_NO_SIGN_REQUEST=1 reads a public bucket without");
}
