/* Keys as 16 bytes each: hash and sample number, sorted by hash. Whoever finds equal hashes compares the real keys. */
#ifndef SPK_DATASET_KEYTAB_H
#define SPK_DATASET_KEYTAB_H

#include <shardpack/error.h>

#include "base/error.h"

typedef struct spk_keytab_entry {
    uint64_t hash;
    uint64_t number;
} spk_keytab_entry;

/* Zero-initialise; free with spk_keytab_free. */
typedef struct spk_keytab {
    spk_keytab_entry *items;
    size_t n, cap;
} spk_keytab;

/* XXH64 of the key, and of the key with ASCII capitals made small. */
uint64_t spk_key_hash(const char *key, size_t len);
uint64_t spk_key_hash_folded(const char *key, size_t len);
/* Like strcmp, with ASCII capitals taken as small. */
int spk_key_compare_folded(const char *a, const char *b);

SPK_CHECK spk_status spk_keytab_add(spk_keytab *t, uint64_t hash, uint64_t number, spk_error *err);
/* In place, by hash; entries of equal hash in no particular order. */
void spk_keytab_sort(spk_keytab *t);
/* First entry with the hash, its count in *n (0: none). */
const spk_keytab_entry *spk_keytab_find(const spk_keytab *t, uint64_t hash, size_t *n);
void spk_keytab_free(spk_keytab *t);

#endif
