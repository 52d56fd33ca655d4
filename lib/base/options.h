/* Reading the option structs of the public headers. */
#ifndef SPK_BASE_OPTIONS_H
#define SPK_BASE_OPTIONS_H

#include <shardpack/error.h>

/* Copies an options struct that begins with its size: an older caller's is shorter, a newer one's longer part must be
 * zero. out has been zeroed; options may be NULL. */
SPK_CHECK spk_status spk_options_copy(void *out, size_t size, const void *options, spk_error *err);

#endif
