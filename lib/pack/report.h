/* bad-files.tsv: every bad file of the dataset, what became of it, and why. */
#ifndef SPK_PACK_REPORT_H
#define SPK_PACK_REPORT_H

#include "base/buf.h"

#define SPK_BAD_FILES_NAME "bad-files.tsv"

/* Appends the header and the lines ("path TAB action TAB reason LF" each), sorted by path, to out. */
SPK_CHECK spk_status spk_report_encode(spk_buf *out, const spk_buf *lines, spk_error *err);

/* EXISTS if the folder holds something of that name that does not begin with our header: no one's notes are replaced.
 */
SPK_CHECK spk_status spk_report_check(int dirfd, const char *folder, spk_error *err);

#endif
