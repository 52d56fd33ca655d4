/* The tar dialect of format-spec/shard.md section 3: plain ustar, regular members only. libarchive is used for reading
 * foreign archives and as the independent reader in tests; writing 512 fixed bytes needs none of it, and its formatted
 * writer cannot promise the same bytes in every version. Pure functions. */
#ifndef SPK_SHARD_TAR_H
#define SPK_SHARD_TAR_H

#include <shardpack/error.h>

#include "shard/format.h"

/* Bytes of a member in the tar: header, data, padding. */
static inline uint64_t spk_tar_member_bytes(uint64_t size)
{
    return SPK_TAR_BLOCK + ((size + SPK_TAR_BLOCK - 1) & ~(uint64_t)(SPK_TAR_BLOCK - 1));
}

/* Writes the header of a regular member "key.field" with `size` bytes of data. Fixed: mode 0444, uid, gid 0, mtime 0,
 * no owner names. INVALID if the name does not fit or holds a byte that keys and fields may not. */
SPK_CHECK spk_status spk_tar_header(uint8_t out[SPK_TAR_BLOCK], const char *key, const char *field, uint64_t size,
                                    spk_error *err);

/* The name of a field as a member has it: field itself, or "field.encoding" in room if it is stored in one. NULL if
 * that is longer than SPK_FIELD_MAX. */
const char *spk_tar_field(char room[SPK_FIELD_MAX + 1], const char *field, const char *encoding);

/* The same without the checks, for keys and fields that passed them. */
void spk_tar_header_unchecked(uint8_t out[SPK_TAR_BLOCK], const char *key, size_t key_len, const char *field,
                              size_t field_len, uint64_t size);

/* What a header says. */
typedef struct spk_tar_entry {
    char name[SPK_NAME_MAX + 1];
    uint64_t size;
} spk_tar_entry;

/* Parses a header of our dialect; anything else (other magic, type, mode, bad checksum, bytes behind the name, prefix
 * field in use) is FORMAT with the reason. SPK_END for a zero block. */
SPK_CHECK spk_status spk_tar_parse(const uint8_t block[SPK_TAR_BLOCK], spk_tar_entry *out, spk_error *err);

/* Rules of format-spec/dataset.md on keys and fields: NULL if ok, else the reason as static text. */
const char *spk_key_problem(const char *key, size_t len);
const char *spk_field_problem(const char *field, size_t len);

#endif
