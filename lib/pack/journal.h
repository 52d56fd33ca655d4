/* The journal of a pack in progress: DST/.shardpack/journal, lines of text that are only ever appended. Each line ends
 * with a checksum; what follows the last whole record (a write cut short) is dropped when it is opened again.
 *
 *   shardpack-journal 1 TAB options TAB versions TAB input TAB stamps TAB xxh64
 *   bad TAB path TAB action TAB reason TAB xxh64                      (of the shard line that follows)
 *   shard TAB number TAB samples ... TAB tail TAB counts ... TAB xxh64
 *   publish TAB split TAB fingerprint TAB xxh64
 *
 * Thread-safety: spk_journal_shard may be called from several threads, the rest is confined. */
#ifndef SPK_PACK_JOURNAL_H
#define SPK_PACK_JOURNAL_H

#include "pack/plan.h"
#include "pack/tally.h"
#include "shard/writer.h"

#define SPK_JOURNAL_NAME "journal"

typedef struct spk_journal spk_journal;

/* Records of an earlier run, in order, while the journal is opened. Repeated numbers are possible. */
typedef struct spk_journal_hooks {
    spk_status (*on_shard)(void *ctx, uint64_t number, const spk_shard_info *info, const spk_tally *tally,
                           spk_error *err);
    spk_status (*on_publish)(void *ctx, uint64_t split, const char *fingerprint, spk_error *err);
    void *ctx;
} spk_journal_hooks;

/* Opens the journal in work_fd (name: the work folder, for messages) or begins one. A journal of other options,
 * versions or input is CHANGED, with the parts that differ, unless `force`, or unless it holds no finished shard; then
 * it begins anew. *fresh tells that it holds nothing. fields_n: counts per record. */
SPK_CHECK spk_status spk_journal_open(spk_journal **out, int work_fd, const char *name,
                                      const spk_pack_plan_digest *digest, size_t fields_n, bool force,
                                      const spk_journal_hooks *hooks, bool *fresh, spk_error *err);
/* Appends a finished shard, durably. */
SPK_CHECK spk_status spk_journal_shard(spk_journal *j, uint64_t number, const spk_shard_info *info,
                                       const spk_tally *tally, spk_error *err);
/* Appends, durably, that the shards of a split go to their final names. */
SPK_CHECK spk_status spk_journal_publish(spk_journal *j, uint64_t split, const char *fingerprint, spk_error *err);
void spk_journal_close(spk_journal *j);

#endif
