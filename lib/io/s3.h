/* Private to io/: what is known of S3: endpoint, region, credentials and where they come from. */
#ifndef SPK_IO_S3_H
#define SPK_IO_S3_H

#include <stdbool.h>
#include <time.h>

#include "base/buf.h"

typedef struct spk_s3_keys {
    char *access, *secret, *token; /* token: NULL, or of temporary ones */
    time_t expires;                /* 0: unknown */
} spk_s3_keys;
void spk_s3_keys_free(spk_s3_keys *k); /* wipes them */

/* ---- s3_config.c: the shared files ---- */

typedef struct spk_s3_files {
    char *config, *credentials; /* their text; empty if a file is not there */
    char *profile;
    bool chosen; /* the profile was named by AWS_PROFILE */
} spk_s3_files;
SPK_CHECK spk_status spk_s3_files_read(spk_s3_files *out, spk_error *err);
void spk_s3_files_free(spk_s3_files *f);
/* Value of a key in a section of INI text (malloc'ed); with `parent`, of the indented lines below that key. NULL in
 * *out if it is not there. */
SPK_CHECK spk_status spk_ini_get(const char *text, const char *section, const char *parent, const char *key, char **out,
                                 spk_error *err);
bool spk_ini_has(const char *text, const char *section);
/* The same from the profile of the config file. */
SPK_CHECK spk_status spk_s3_setting(const spk_s3_files *f, const char *parent, const char *key, char **out,
                                    spk_error *err);

/* How long a service may take, and who is asked meanwhile: nonzero ends it with CANCELLED. on_wait may be NULL. */
typedef struct spk_s3_wait {
    uint64_t until_ns;
    int (*on_wait)(void *user);
    void *user;
    bool cancelled;
} spk_s3_wait;

/* ---- s3_credentials.c: the chain ---- */

/* Environment, shared files, container, instance, in this order. NOT_FOUND says where was looked. */
SPK_CHECK spk_status spk_s3_keys_find(spk_s3_keys *out, spk_s3_wait *wait, spk_error *err);

/* ---- s3_metadata.c: container and instance ---- */

/* *found is false if this machine offers none. */
SPK_CHECK spk_status spk_s3_keys_container(spk_s3_keys *out, spk_s3_wait *wait, bool *found, spk_error *err);
SPK_CHECK spk_status spk_s3_keys_instance(spk_s3_keys *out, spk_s3_wait *wait, bool *found, spk_error *err);

#endif
