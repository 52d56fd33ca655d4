/* A local file as a byte source; reached through spk_source_open. */
#ifndef SPK_IO_SOURCE_FILE_H
#define SPK_IO_SOURCE_FILE_H

#include "io/source.h"

/* path is taken as it is: no URL, no decoding. Only regular files: INVALID otherwise. */
SPK_CHECK spk_status spk_source_file(spk_source **out, const char *path, spk_error *err);

#endif
