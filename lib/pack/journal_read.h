/* Reading a journal that an earlier run left: used by journal.c only. */
#ifndef SPK_PACK_JOURNAL_READ_H
#define SPK_PACK_JOURNAL_READ_H

#include "pack/journal.h"

#define SPK_JOURNAL_MAGIC "shardpack-journal 1"

typedef struct spk_journal_seen {
    bool matches; /* its first line is whole and equals this run's */
    bool options_differ, versions_differ, input_differs, stamps_differ;
    uint64_t shards; /* whole records of shards with samples */
    uint64_t whole;  /* bytes up to the end of the last whole record */
} spk_journal_seen;

/* Calls the hooks only if the first line matches. A first line that is cut short means that nothing was recorded yet.
 */
SPK_CHECK spk_status spk_journal_read(int fd, const char *name, const spk_pack_plan_digest *digest, size_t fields_n,
                                      const spk_journal_hooks *hooks, spk_journal_seen *seen, spk_error *err);

#endif
