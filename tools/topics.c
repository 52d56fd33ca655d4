/* What concerns several commands: shown by `shardpack help TOPIC`, and as sections of the manual page shardpack(1). */
#include "cmd.h"

const topic topics[] = {
    {"urls", "Datasets by URL",
     "Wherever a command takes a dataset, it takes the URL of its folder or manifest, too: http://, https:// or "
     "s3://BUCKET/PREFIX. The server must answer range requests, as S3 and the usual web servers do; \"python3 -m "
     "http.server\" does not.\n\n"
     "All bytes are compared with a SHA-256 before anything is decompressed: the manifest has that of the table, the "
     "table "
     "that of each shard's index, the index that of each frame. With several mirrors the manifest is taken as two of "
     "them have it; with one it is as good as the connection: use https.\n\n"
     "Mirrors (--mirror, or mirrors in manifest.json): the one that answers fastest is asked; what fails, stalls, "
     "throttles or lies is fetched from another one, in the middle of a shard if need be. A read gives up after "
     "--deadline seconds and tells what each mirror did. 401, 403 and 404 are never tried again on the same mirror.\n\n"
     "Cache (--cache-dir, --cache-limit): frames are kept under the SHA-256 of their shard and fetched once per "
     "machine, "
     "whatever the number of processes. The limit holds at every moment. \"shardpack cache\" looks at it and clears "
     "it.\n\n"
     "S3: endpoint, region, credentials and profiles come from where the AWS tools take them: the variables of "
     "\"shardpack help environment\", "
     "~/.aws/config and credentials (also services and addressing_style), container and instance services. SSO, "
     "credential_process and web identities are not read: let the AWS command line write temporary keys (\"aws "
     "configure "
     "export-credentials\").\n\n"
     "HTTP: proxies by https_proxy and no_proxy; user and password in the URL or in .netrc; a query behind the "
     "dataset's "
     "URL goes to every object (signed URLs).\n\n"
     "Credentials go over http:// only with SHARDPACK_PLAIN_CREDENTIALS=1, never to another host by a redirect, and "
     "are "
     "in no message, no command line and no shared memory."},
    {"environment", "Environment",
     "For datasets by URL:\n"
     "  SHARDPACK_CACHE_DIR          folder of the cache, as --cache-dir\n"
     "  SHARDPACK_CACHE_LIMIT        its size, as --cache-limit\n"
     "  SHARDPACK_DEADLINE           seconds for a read, as --deadline\n"
     "  SHARDPACK_PLAIN_CREDENTIALS  1: credentials may go over http://\n"
     "  SHARDPACK_S3_ADDRESSING      path, virtual or auto: where the bucket stands\n"
     "  AWS_ENDPOINT_URL(_S3), AWS_REGION, AWS_PROFILE, AWS_ACCESS_KEY_ID,\n"
     "  AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_CONFIG_FILE and so on\n"
     "                               as the AWS tools take them\n"
     "  AWS_NO_SIGN_REQUEST          1: for public buckets\n"
     "  CURL_CA_BUNDLE, SSL_CERT_FILE  certificates to trust, else the system's\n\n"
     "Of the loader:\n"
     "  SHARDPACK_WORKER             path of its worker program\n"
     "  SHARDPACK_CUDART             path of the CUDA runtime library"},
    {0},
};
