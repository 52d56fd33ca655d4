/* Every magic, size and limit of the shard format; section numbers are those of format-spec/shard.md. */
#ifndef SPK_SHARD_FORMAT_H
#define SPK_SHARD_FORMAT_H

#include <stdint.h>

/* tar (section 3) */
#define SPK_TAR_BLOCK 512u
#define SPK_TAR_END 1024u /* end marker: two zero blocks */
#define SPK_NAME_MAX 100u /* member name "key.field" */
#define SPK_KEY_MAX 72u   /* bytes of a key */
#define SPK_FIELD_MAX 27u /* bytes of a field name: 72 + 1 + 27 = 100 */
#define SPK_ENCODING_MAX 63u
#define SPK_IDENTITY "identity"      /* the encoding of fields that are stored as they are */
#define SPK_ORIGINAL_MAX 0x40000000u /* 1 GiB: most bytes that a stored field stands for */
#define SPK_PATH_MAX 65535u          /* bytes of an original path */
#define SPK_MEMBERS_MAX 1024u        /* members of one sample */

/* frames (section 4) */
#define SPK_FRAME_CONTENT_MAX 0x40000000u /* 1 GiB: most tar bytes in one frame */
#define SPK_FRAME_BYTES_MAX 0x50000000u   /* most compressed bytes in one frame, the sample list's too */
#define SPK_FRAMES_MAX 0x8000000u         /* 2^27 frames in a shard */
#define SPK_FRAME_DIGEST 16u              /* first bytes of the SHA-256 of a frame's compressed bytes */
#define SPK_WINDOW_LOG_MAX 27

/* shard index (section 5) */
#define SPK_INDEX_FRAME_MAGIC 0x184D2A5Bu
#define SPK_INDEX_MAGIC "SPKINDEX" /* 8 bytes, no NUL */
#define SPK_INDEX_VERSION 1u
#define SPK_INDEX_FIXED 56u  /* bytes of the fixed head behind the skippable header */
#define SPK_INDEX_DIGEST 40u /* where in it the digest is: first half of SHA-256 over all that follows it */
#define SPK_INDEX_DIGEST_BYTES 16u
#define SPK_INDEX_PER_FRAME 20u        /* u32 samples, 16 bytes digest */
#define SPK_INDEX_LIST_MAX 0x40000000u /* most bytes of the decompressed sample list */
#define SPK_SAMPLES_MAX 0xFFFFFFFFu    /* samples in a shard */

/* seek table (section 6) */
#define SPK_SEEK_FRAME_MAGIC 0x184D2A5Eu
#define SPK_SEEK_MAGIC 0x8F92EAB1u
#define SPK_SEEK_FOOTER 9u
#define SPK_SKIP_HEADER 8u                  /* magic and size of a skippable frame */
#define SPK_SEEK_EMPTY_CHECKSUM 0x51D8E999u /* low half of XXH64 of nothing: the index frame's entry */

#endif
